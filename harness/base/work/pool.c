#include "harness/base/work/pool.h"

#include "traces/io/stage.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct fl_pool {
    fl_job job;
    void *user;
    size_t count;
    fl_stage stage;
    atomic_size_t next, failed; /* failed: lowest index that failed, count = none */
    pthread_mutex_t lock;
    fl_diag diag;
} fl_pool;

static void *work(void *arg) {
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

void fl_threads_run(unsigned threads, void *(*run)(void *user), void *user) {
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
    fl_threads_run(threads, work, &p);
    fl_stage_end(p.stage);
    pthread_mutex_destroy(&p.lock);
    if (atomic_load(&p.failed) == count)
        return FL_OK;
    if (d)
        *d = p.diag;
    return p.diag.status;
}
