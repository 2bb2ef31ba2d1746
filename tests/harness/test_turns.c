/* Items in turns: stages in order, no more under way than asked for, the first failure told, whatever the threads. */
#include "harness/base/work/work.h"
#include "policies/random.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <unistd.h>

enum { ITEMS = 40, STAGES = 4, JOBS = 5 };

typedef struct plan {
    size_t jobs[ITEMS][STAGES], done[ITEMS][STAGES];
    bool ran[ITEMS][STAGES][JOBS], over[ITEMS];
    size_t bad_item, bad_stage, bad_job, worse_item; /* worse_item fails too, in its first job; ITEMS: none */
    size_t under_way, most;
    bool early; /* a job ran before the stage before was over */
    pthread_mutex_t lock;
} plan;

static bool has_jobs(const plan *p, size_t item) {
    return p->jobs[item][0] + p->jobs[item][1] + p->jobs[item][2] + p->jobs[item][3] > 0;
}

static size_t jobs_of(void *user, size_t item, size_t stage) {
    plan *p = user;
    if (stage < STAGES)
        return p->jobs[item][stage];
    pthread_mutex_lock(&p->lock);
    p->under_way -= has_jobs(p, item);
    p->over[item] = true;
    pthread_mutex_unlock(&p->lock);
    return FL_TURNS_OVER;
}

static fl_status run(void *user, size_t item, size_t stage, size_t job, fl_diag *d) {
    plan *p = user;
    bool first = true;
    pthread_mutex_lock(&p->lock);
    for (size_t k = 0; k < STAGES; k++)
        for (size_t i = 0; i < JOBS; i++)
            first &= !p->ran[item][k][i];
    p->under_way += first;
    p->most = p->under_way > p->most ? p->under_way : p->most;
    for (size_t k = 0; k < stage; k++)
        p->early |= p->done[item][k] < p->jobs[item][k];
    p->early |= p->ran[item][stage][job];
    p->ran[item][stage][job] = true;
    pthread_mutex_unlock(&p->lock);
    pthread_mutex_lock(&p->lock);
    p->done[item][stage]++;
    pthread_mutex_unlock(&p->lock);
    if (item == p->bad_item && stage == p->bad_stage && job >= p->bad_job)
        return fl_refuse(d, "job %zu", job);
    return item == p->worse_item ? fl_refuse(d, "another") : FL_OK;
}

static void test_turns(void) {
    for (uint64_t seed = 1; seed <= 150; seed++) {
        fl_random r = fl_random_seed(seed, 31);
        plan *p = calloc(1, sizeof *p);
        fl_diag d = {0};
        const size_t at_once = 1 + (size_t)fl_random_below(&r, 4);
        p->bad_item = p->worse_item = ITEMS;
        pthread_mutex_init(&p->lock, NULL);
        for (size_t i = 0; i < ITEMS; i++)
            for (size_t k = 0; k < STAGES; k++)
                p->jobs[i][k] = (size_t)fl_random_below(&r, JOBS + 1);
        const bool fails = seed % 3 == 0;
        if (fails) {
            p->bad_item = (size_t)fl_random_below(&r, ITEMS);
            p->bad_stage = (size_t)fl_random_below(&r, STAGES);
            p->jobs[p->bad_item][p->bad_stage] = JOBS;
            p->bad_job = (size_t)fl_random_below(&r, JOBS);
            p->worse_item = p->bad_item + 1;
        }
        const fl_turns t = {jobs_of, run, p, ITEMS, at_once};
        const fl_status s = fl_turns_run(&t, (unsigned)(1 + seed % 4), &d);
        FL_CHECK(!p->early && p->most <= at_once, "seed %d: %zu at once, expected %zu", (int)seed, p->most, at_once);
        char expected[32];
        snprintf(expected, sizeof expected, "job %zu", p->bad_job);
        FL_CHECK(fails ? s == FL_BAD_INPUT && !strcmp(d.message, expected) : !s, "seed %d: %s", (int)seed, d.message);
        for (size_t i = 0; i < (fails ? p->bad_item : ITEMS); i++)
            for (size_t k = 0; k < STAGES; k++)
                FL_CHECK(p->done[i][k] == p->jobs[i][k] && p->over[i], "seed %d: item %zu", (int)seed, i);
        pthread_mutex_destroy(&p->lock);
        free(p);
    }
}

/* Two items side by side. The later one fails once the first has: told is the first item's failure, though the other
 * came after it. */
typedef struct pair {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool later_runs, first_failed;
} pair;

static size_t pair_jobs(void *user, size_t item, size_t stage) {
    (void)user, (void)item;
    return stage ? FL_TURNS_OVER : 1;
}

static fl_status pair_run(void *user, size_t item, size_t stage, size_t job, fl_diag *d) {
    pair *p = user;
    (void)stage, (void)job;
    pthread_mutex_lock(&p->lock);
    while (item ? !p->first_failed : !p->later_runs) {
        p->later_runs |= item > 0;
        pthread_cond_broadcast(&p->changed);
        pthread_cond_wait(&p->changed, &p->lock);
    }
    p->first_failed |= item == 0;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (item) /* until the other has handed its failure in; were it not done yet, the answer would be the same */
        usleep(50000);
    return fl_refuse(d, "item %zu", item);
}

static void test_first_told(void) {
    pair p = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    const fl_turns t = {pair_jobs, pair_run, &p, 2, 2};
    fl_diag d = {0};
    FL_CHECK(fl_turns_run(&t, 2, &d) == FL_BAD_INPUT && !strcmp(d.message, "item 0"), "told: %s", d.message);
}

FL_SUITE("turns", {"turns", test_turns}, {"the first failure is told", test_first_told})
