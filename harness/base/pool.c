#include "harness/base/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef struct fl_pool {
    fl_job job;
    void *user;
    size_t count;
    atomic_size_t next, done, failed; /* failed: lowest index that failed, count = none */
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
        atomic_fetch_add(&p->done, 1);
    }
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct fl_progress {
    fl_pool *pool;
    const char *what;
    atomic_bool stop;
} fl_progress;

static void *show_progress(void *arg) {
    fl_progress *g = arg;
    double start = seconds();
    bool shown = false;
    while (!atomic_load(&g->stop)) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        double past = seconds() - start;
        if (past < 1)
            continue;
        size_t done = atomic_load(&g->pool->done);
        fprintf(stderr, "\r%s: %zu of %zu, %.0f s", g->what, done, g->pool->count, past);
        if (done)
            fprintf(stderr, ", about %.0f s to go", past / (double)done * (double)(g->pool->count - done));
        fprintf(stderr, "\033[K");
        shown = true;
    }
    if (shown)
        fprintf(stderr, "\r\033[K");
    return NULL;
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
    fl_progress g = {.pool = &p, .what = progress};
    pthread_t shower;
    bool showing = progress && isatty(STDERR_FILENO) && !pthread_create(&shower, NULL, show_progress, &g);
    pthread_t *t = calloc(threads, sizeof *t);
    unsigned started = 0;
    while (t && started + 1 < threads && !pthread_create(&t[started], NULL, work, &p))
        started++;
    work(&p); /* this thread too: what could not be started only makes it slower */
    for (unsigned i = 0; i < started; i++)
        pthread_join(t[i], NULL);
    free(t);
    if (showing) {
        atomic_store(&g.stop, true);
        pthread_join(shower, NULL);
    }
    pthread_mutex_destroy(&p.lock);
    if (atomic_load(&p.failed) == count)
        return FL_OK;
    if (d)
        *d = p.diag;
    return p.diag.status;
}
