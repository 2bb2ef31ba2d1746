#include "harness/live/collector/flusher.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

static struct {
    int (*flush)(uint32_t flag);
    unsigned ms;
    bool running, stop;
    pthread_t thread;
    pthread_mutex_t lock; /* of stop; never held while flush runs */
    pthread_cond_t wake;
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct timespec after_ms(clockid_t clock, unsigned ms) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

static bool wait_for_stop(void) {
    const struct timespec until = after_ms(CLOCK_MONOTONIC, own.ms);
    pthread_mutex_lock(&own.lock);
    while (!own.stop && !pthread_cond_timedwait(&own.wake, &own.lock, &until)) {
    }
    const bool stop = own.stop;
    pthread_mutex_unlock(&own.lock);
    return stop;
}

static void *run(void *user) {
    while (!wait_for_stop())
        own.flush(0);
    return user;
}

bool fl_flusher_start(int (*flush)(uint32_t flag), unsigned ms) {
    pthread_condattr_t steady;
    sigset_t all, before;
    own.flush = flush;
    own.ms = ms;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&own.wake, &steady);
    pthread_condattr_destroy(&steady);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread inherits it */
    own.running = !pthread_create(&own.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (own.running)
        pthread_setname_np(own.thread, "foldline-flush");
    return own.running;
}

bool fl_flusher_stop(void) {
    if (!own.running)
        return true;
    pthread_mutex_lock(&own.lock);
    own.stop = true;
    pthread_cond_signal(&own.wake);
    pthread_mutex_unlock(&own.lock);
    const struct timespec until = after_ms(CLOCK_REALTIME, 1000);
    own.running = false;
    return !pthread_timedjoin_np(own.thread, NULL, &until);
}
