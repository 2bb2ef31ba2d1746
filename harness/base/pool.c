#include "harness/base/pool.h"

#include "traces/stage.h"

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

fl_status fl_pool_run(fl_job job, void *user, size_t count, unsigned threads, const char *progress, fl_diag *d) {
    fl_pool p = {.job = job, .user = user, .count = count};
    atomic_store(&p.failed, count);
    pthread_mutex_init(&p.lock, NULL);
    if (!threads) {
        long n = sysconf(_SC_NPROCESSORS_ONLN);
        threads = n > 0 ? (unsigned)n : 1;
    }
    if (threads > count)
        threads = count ? (unsigned)count : 1;
    if (progress && count > 1) /* a single job tells of its own parts */
        p.stage = fl_stage_begin(progress, count);
    pthread_t *t = calloc(threads, sizeof *t);
    unsigned started = 0;
    while (t && started + 1 < threads && !pthread_create(&t[started], NULL, work, &p))
        started++;
    work(&p); /* this thread too: what could not be started only makes it slower */
    for (unsigned i = 0; i < started; i++)
        pthread_join(t[i], NULL);
    free(t);
    fl_stage_end(p.stage);
    pthread_mutex_destroy(&p.lock);
    if (atomic_load(&p.failed) == count)
        return FL_OK;
    if (d)
        *d = p.diag;
    return p.diag.status;
}
