#include "harness/base/work/turns.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct turn { /* an item in progress */
    size_t item, stage, jobs, next, done;
} turn;

typedef struct table {
    const fl_turns *t;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    turn *open; /* open_count, ascending by item */
    size_t open_count, begun;
    bool failed;
    turn at; /* the job that failed: item, stage and (next) job */
    fl_diag diag;
} table;

static bool before(const turn *a, const turn *b) {
    if (a->item != b->item)
        return a->item < b->item;
    return a->stage != b->stage ? a->stage < b->stage : a->next < b->next;
}

/* Advances to the next stage that has jobs; false where there is none. */
static bool move_on(const table *x, turn *t) {
    while (t->next == t->jobs && t->done == t->jobs) {
        const size_t jobs = x->t->jobs(x->t->user, t->item, ++t->stage);
        if (jobs == FL_TURNS_OVER)
            return false;
        *t = (turn){.item = t->item, .stage = t->stage, .jobs = jobs};
    }
    return true;
}

static void begin_items(table *x) {
    while (!x->failed && x->begun < x->t->items && x->open_count < x->t->at_once) {
        turn t = {.item = x->begun++};
        t.jobs = x->t->jobs(x->t->user, t.item, 0);
        if (t.jobs != FL_TURNS_OVER && move_on(x, &t))
            x->open[x->open_count++] = t;
    }
}

static turn *find_job(table *x) {
    for (size_t i = 0; i < x->open_count; i++)
        if (x->open[i].next < x->open[i].jobs && (!x->failed || before(&x->open[i], &x->at)))
            return &x->open[i];
    return NULL;
}

static bool is_busy(const table *x) {
    for (size_t i = 0; i < x->open_count; i++)
        if (x->open[i].next > x->open[i].done)
            return true;
    return false;
}

static void finish_job(table *x, const turn *mine, fl_status s, const fl_diag *d) {
    size_t i = 0;
    while (x->open[i].item != mine->item)
        i++;
    x->open[i].done++;
    if (s && (!x->failed || before(mine, &x->at))) {
        x->failed = true;
        x->at = *mine;
        x->diag = *d;
    }
    const bool stuck = x->failed && x->at.item == mine->item; /* its further stages would build on the failed one */
    if (!stuck && !move_on(x, &x->open[i])) {
        x->open_count--;
        for (; i < x->open_count; i++)
            x->open[i] = x->open[i + 1];
    }
    begin_items(x);
    pthread_cond_broadcast(&x->changed);
}

static void *work(void *user) {
    table *x = user;
    pthread_mutex_lock(&x->lock);
    begin_items(x);
    for (;;) {
        turn *t = find_job(x);
        if (!t && !is_busy(x))
            break;
        if (!t) {
            pthread_cond_wait(&x->changed, &x->lock);
            continue;
        }
        const turn mine = *t;
        t->next++;
        pthread_mutex_unlock(&x->lock);
        fl_diag d = {0};
        const fl_status s = x->t->run(x->t->user, mine.item, mine.stage, mine.next, &d);
        pthread_mutex_lock(&x->lock);
        finish_job(x, &mine, s, &d);
    }
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

fl_status fl_turns_run(const fl_turns *t, unsigned threads, fl_diag *d) {
    table x = {.t = t, .open = calloc(t->at_once + 1, sizeof *x.open)};
    if (!x.open)
        return fl_no_memory(d, NULL);
    pthread_mutex_init(&x.lock, NULL);
    pthread_cond_init(&x.changed, NULL);
    fl_threads_run(fl_threads(threads), work, &x);
    free(x.open);
    pthread_cond_destroy(&x.changed);
    pthread_mutex_destroy(&x.lock);
    if (x.failed && d)
        *d = x.diag;
    return x.failed ? x.diag.status : FL_OK;
}
