/* Threads: independent jobs (pool), and items in stages (turns). */
#include "harness/base/work/work.h"

#include "traces/io/io.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- independent jobs ---- */

typedef struct fl_pool {
    fl_job job;
    void *user;
    size_t count;
    fl_stage stage;
    atomic_size_t next, failed; /* failed: lowest index that failed, count = none */
    pthread_mutex_t lock;
    fl_diag diag;
} fl_pool;

static void *work_on_jobs(void *arg) {
    fl_pool *p = arg;
    for (;;) {
        size_t i = atomic_fetch_add(&p->next, 1);
        if (i >= p->count || i > atomic_load(&p->failed))
            return NULL;
        fl_diag d = {0};
        if (p->job(p->user, i, &d)) {
            pthread_mutex_lock(&p->lock);
            if (i < atomic_load(&p->failed)) {
                atomic_store(&p->failed, i);
                p->diag = d;
            }
            pthread_mutex_unlock(&p->lock);
        }
        fl_stage_add(p->stage, 1);
    }
}

unsigned fl_threads(unsigned threads) {
    const long n = threads ? (long)threads : sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}

/* Runs work(user) on this many threads, including the calling one, and returns when all have finished. A thread that
 * cannot be started only makes the work slower. */
static void fl_threads_run(unsigned threads, void *(*run)(void *user), void *user) {
    pthread_t *thread = calloc(threads, sizeof *thread);
    unsigned started = 0;
    while (thread && started + 1 < threads && !pthread_create(&thread[started], NULL, run, user))
        started++;
    run(user);
    for (unsigned i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    free(thread);
}

fl_status fl_pool_run(fl_job job, void *user, size_t count, unsigned threads, const char *progress, fl_diag *d) {
    fl_pool p = {.job = job, .user = user, .count = count};
    atomic_store(&p.failed, count);
    pthread_mutex_init(&p.lock, NULL);
    threads = fl_threads(threads);
    if (threads > count)
        threads = count ? (unsigned)count : 1;
    if (progress && count > 1) /* a single job reports its own parts */
        p.stage = fl_stage_begin(progress, count);
    fl_threads_run(threads, work_on_jobs, &p);
    fl_stage_end(p.stage);
    pthread_mutex_destroy(&p.lock);
    if (atomic_load(&p.failed) == count)
        return FL_OK;
    if (d)
        *d = p.diag;
    return p.diag.status;
}

/* ---- items in stages ---- */

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

static void *work_on_stages(void *user) {
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
    fl_threads_run(fl_threads(threads), work_on_stages, &x);
    free(x.open);
    pthread_cond_destroy(&x.changed);
    pthread_mutex_destroy(&x.lock);
    if (x.failed && d)
        *d = x.diag;
    return x.failed ? x.diag.status : FL_OK;
}
