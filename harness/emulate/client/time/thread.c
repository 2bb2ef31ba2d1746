/* Threads: announced before they begin, so that their order is that of their making; their end hands over. */
#include "harness/emulate/client/time/inside.h"

#include "harness/emulate/client/client.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>

/* Calls are handed over by SIGSYS (raw.c): a handler of the program's own must not take its place, and no handler
 * may block it while it runs, or the next call that is handed over would end the program. */

FL_SHOWN int sigaction(int number, const struct sigaction *restrict a, struct sigaction *restrict old) {
    struct sigaction own;
    if (!fl_time_on())
        return REAL(sigaction)(number, a, old);
    if (number == SIGSYS && fl_raw_handler(a, old))
        return 0;
    if (!a)
        return REAL(sigaction)(number, NULL, old);
    own = *a;
    sigdelset(&own.sa_mask, SIGSYS);
    return REAL(sigaction)(number, &own, old);
}

FL_SHOWN sighandler_t signal(int number, sighandler_t handler) {
    struct sigaction a, old;
    memset(&a, 0, sizeof a);
    a.sa_handler = handler;
    a.sa_flags = SA_RESTART;
    return fl_time_on() && number == SIGSYS && fl_raw_handler(&a, &old) ? old.sa_handler
                                                                        : REAL(signal)(number, handler);
}

/* ---- begin and end of threads ---- */

typedef struct fl_thread_record {
    pthread_t id;
    void *(*start)(void *);
    void *argument;
    uint64_t number;
    bool done, detached;
    struct fl_thread_record *next;
} fl_thread_record;

static fl_thread_record *records;

static void forget(fl_thread_record *r) {
    for (fl_thread_record **at = &records; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            free(r);
            return;
        }
}

static void finish(void *of) {
    fl_thread_record *r = of;
    r->done = true;
    if (r->detached)
        forget(r);
    fl_time_end();
}

static void *run(void *of) {
    fl_thread_record *r = of;
    void *result;
    fl_time_begin(r->number);
    pthread_cleanup_push(finish, r);
    result = r->start(r->argument);
    pthread_cleanup_pop(1);
    return result;
}

FL_SHOWN int pthread_create(pthread_t *restrict id, const pthread_attr_t *restrict a, void *(*start)(void *),
                            void *restrict argument) {
    if (!fl_time_on())
        return REAL(pthread_create)(id, a, start, argument);
    fl_thread_record *r = calloc(1, sizeof *r);
    if (!r)
        return EAGAIN;
    *r = (fl_thread_record){.start = start, .argument = argument, .number = fl_time_say(FL_TIME_BEAR, 0, 0)};
    int state = PTHREAD_CREATE_JOINABLE;
    if (a)
        (void)pthread_attr_getdetachstate(a, &state);
    r->detached = state == PTHREAD_CREATE_DETACHED;
    const int e = REAL(pthread_create)(id, a, run, r);
    if (e) {
        (void)fl_time_say(FL_TIME_MISSED, (uint32_t)r->number, 0);
        free(r);
        return e;
    }
    r->id = *id;
    r->next = records; /* until joined; of a detached thread, until its end */
    records = r;
    return 0;
}

static fl_thread_record *record_of(pthread_t id) {
    fl_thread_record *r = records;
    while (r && !pthread_equal(r->id, id))
        r = r->next;
    return r;
}

static bool look_done(void *of) { return ((const fl_thread_record *)of)->done; }

static int join(pthread_t id, void **result, int64_t until) {
    fl_thread_record *r = record_of(id);
    if (!r)
        return REAL(pthread_join)(id, result);
    const int late = fl_time_wait(look_done, r, until, false);
    if (late)
        return late;
    const int e = REAL(pthread_join)(id, result); /* it has handed over, and is about to end */
    if (!e)
        forget(r);
    return e;
}

FL_SHOWN int pthread_detach(pthread_t id) {
    fl_thread_record *r = fl_time_on() ? record_of(id) : NULL;
    const int e = REAL(pthread_detach)(id);
    if (r && !e)
        r->detached = true;
    if (r && !e && r->done)
        forget(r);
    return e;
}
FL_SHOWN int pthread_join(pthread_t id, void **result) {
    return fl_time_on() ? join(id, result, FL_VIRTUAL_FOREVER) : REAL(pthread_join)(id, result);
}
FL_SHOWN int pthread_timedjoin_np(pthread_t id, void **result, const struct timespec *t) {
    return fl_time_on() ? join(id, result, fl_time_of(CLOCK_REALTIME, t)) : REAL(pthread_timedjoin_np)(id, result, t);
}
FL_SHOWN int pthread_clockjoin_np(pthread_t id, void **result, clockid_t c, const struct timespec *t) {
    return fl_time_on() ? join(id, result, fl_time_of(c, t)) : REAL(pthread_clockjoin_np)(id, result, c, t);
}
FL_SHOWN int pthread_tryjoin_np(pthread_t id, void **result) {
    if (!fl_time_on())
        return REAL(pthread_tryjoin_np)(id, result);
    const fl_thread_record *r = record_of(id);
    if (r && !r->done) {
        fl_time_spin();
        return EBUSY;
    }
    return join(id, result, FL_VIRTUAL_FOREVER);
}

FL_SHOWN _Noreturn void pthread_exit(void *result) {
    const fl_thread_record *r = fl_time_on() ? record_of(pthread_self()) : NULL;
    if (!r)
        fl_time_end(); /* the main thread: others go on */
    REAL(pthread_exit)(result);
    abort();
}

FL_SHOWN int sched_yield(void) {
    if (!fl_time_on())
        return REAL(sched_yield)();
    (void)fl_time_sleep(fl_time_now(true));
    return 0;
}
FL_SHOWN void thrd_yield(void) { (void)sched_yield(); }

FL_SHOWN int pthread_cancel(pthread_t id) {
    if (fl_time_on())
        fl_time_fail("pthread_cancel");
    return REAL(pthread_cancel)(id);
}
FL_SHOWN int thrd_create(thrd_t *id, thrd_start_t start, void *argument) {
    if (fl_time_on())
        fl_time_fail("thrd_create");
    return REAL(thrd_create)(id, start, argument);
}
