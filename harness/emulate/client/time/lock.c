/* Locks, conditions, semaphores, barriers. One thread runs at a time, so most calls go straight to the C library; those
 * that would block wait for their turn to look again. Conditions and barriers are kept here: the C library's cannot be
 * asked without blocking. */
#include "harness/emulate/client/time/inside.h"

#include "harness/emulate/client/client.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* ---- mutexes and read-write locks ---- */

typedef struct fl_try {
    int (*take)(void *);
    void *lock;
    int result;
} fl_try;

static bool look_lock(void *of) {
    fl_try *t = of;
    t->result = t->take(t->lock);
    return t->result != EBUSY;
}

static int take_lock(int (*take)(void *), void *lock, int64_t until) {
    fl_try t = {.take = take, .lock = lock};
    const int late = fl_time_wait(look_lock, &t, until, false);
    return late ? late : t.result;
}

static int try_mutex(void *m) { return REAL(pthread_mutex_trylock)(m); }
static int try_read(void *l) { return REAL(pthread_rwlock_tryrdlock)(l); }
static int try_write(void *l) { return REAL(pthread_rwlock_trywrlock)(l); }

static int lock_mutex(pthread_mutex_t *m, int64_t until) {
    if ((m->__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK && m->__data.__owner == (int)gettid())
        return EDEADLK;
    return take_lock(try_mutex, m, until);
}

FL_SHOWN int pthread_mutex_lock(pthread_mutex_t *m) {
    return fl_time_on() ? lock_mutex(m, FL_VIRTUAL_FOREVER) : REAL(pthread_mutex_lock)(m);
}
FL_SHOWN int pthread_mutex_trylock(pthread_mutex_t *m) {
    const int r = REAL(pthread_mutex_trylock)(m);
    if (r == EBUSY && fl_time_on())
        fl_time_spin();
    return r;
}
FL_SHOWN int pthread_mutex_timedlock(pthread_mutex_t *restrict m, const struct timespec *restrict t) {
    return fl_time_on() ? lock_mutex(m, fl_time_of(CLOCK_REALTIME, t)) : REAL(pthread_mutex_timedlock)(m, t);
}
FL_SHOWN int pthread_mutex_clocklock(pthread_mutex_t *restrict m, clockid_t c, const struct timespec *restrict t) {
    return fl_time_on() ? lock_mutex(m, fl_time_of(c, t)) : REAL(pthread_mutex_clocklock)(m, c, t);
}

#define FL_RWLOCK(kind, try)                                                                                           \
    FL_SHOWN int pthread_rwlock_##kind##lock(pthread_rwlock_t *l) {                                                    \
        return fl_time_on() ? take_lock(try, l, FL_VIRTUAL_FOREVER) : REAL(pthread_rwlock_##kind##lock)(l);            \
    }                                                                                                                  \
    FL_SHOWN int pthread_rwlock_timed##kind##lock(pthread_rwlock_t *restrict l, const struct timespec *restrict t) {   \
        return fl_time_on() ? take_lock(try, l, fl_time_of(CLOCK_REALTIME, t))                                         \
                            : REAL(pthread_rwlock_timed##kind##lock)(l, t);                                            \
    }                                                                                                                  \
    FL_SHOWN int pthread_rwlock_clock##kind##lock(pthread_rwlock_t *restrict l, clockid_t c,                           \
                                                  const struct timespec *restrict t) {                                 \
        return fl_time_on() ? take_lock(try, l, fl_time_of(c, t)) : REAL(pthread_rwlock_clock##kind##lock)(l, c, t);   \
    }
FL_RWLOCK(rd, try_read)
FL_RWLOCK(wr, try_write)

/* ---- conditions: the first word of each holds its clock, the rest is ours to leave alone ---- */

static clockid_t clock_of(const pthread_cond_t *c) {
    return *(const unsigned *)(const void *)c == CLOCK_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

FL_SHOWN int pthread_cond_init(pthread_cond_t *restrict c, const pthread_condattr_t *restrict a) {
    clockid_t clock = CLOCK_REALTIME;
    int shared = PTHREAD_PROCESS_PRIVATE;
    if (!fl_time_on())
        return REAL(pthread_cond_init)(c, a);
    if (a && (pthread_condattr_getclock(a, &clock) || pthread_condattr_getpshared(a, &shared)))
        return EINVAL;
    if (shared != PTHREAD_PROCESS_PRIVATE)
        fl_time_fail("a condition shared between processes");
    *c = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    *(unsigned *)(void *)c = (unsigned)clock;
    return 0;
}
FL_SHOWN int pthread_cond_destroy(pthread_cond_t *c) { return fl_time_on() ? 0 : REAL(pthread_cond_destroy)(c); }

static int wait_cond(pthread_cond_t *c, pthread_mutex_t *m, int64_t until) {
    fl_line me;
    fl_line_join(&me, c);
    const int e = pthread_mutex_unlock(m);
    if (e) {
        fl_line_leave(&me);
        return e;
    }
    const int late = fl_time_wait(fl_line_woken, &me, until, false);
    fl_line_leave(&me);
    const int l = lock_mutex(m, FL_VIRTUAL_FOREVER);
    return l ? l : late;
}

FL_SHOWN int pthread_cond_wait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m) {
    return fl_time_on() ? wait_cond(c, m, FL_VIRTUAL_FOREVER) : REAL(pthread_cond_wait)(c, m);
}
FL_SHOWN int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
                                    const struct timespec *restrict t) {
    return fl_time_on() ? wait_cond(c, m, fl_time_of(clock_of(c), t)) : REAL(pthread_cond_timedwait)(c, m, t);
}
FL_SHOWN int pthread_cond_clockwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m, clockid_t k,
                                    const struct timespec *restrict t) {
    return fl_time_on() ? wait_cond(c, m, fl_time_of(k, t)) : REAL(pthread_cond_clockwait)(c, m, k, t);
}
FL_SHOWN int pthread_cond_signal(pthread_cond_t *c) {
    if (!fl_time_on())
        return REAL(pthread_cond_signal)(c);
    (void)fl_line_wake(c, 1);
    return 0;
}
FL_SHOWN int pthread_cond_broadcast(pthread_cond_t *c) {
    if (!fl_time_on())
        return REAL(pthread_cond_broadcast)(c);
    (void)fl_line_wake(c, INT_MAX);
    return 0;
}

/* C11's are the same, but for names and results. */
FL_SHOWN int mtx_lock(mtx_t *m) { return pthread_mutex_lock((pthread_mutex_t *)m) ? thrd_error : thrd_success; }
FL_SHOWN int mtx_timedlock(mtx_t *restrict m, const struct timespec *restrict t) {
    const int e = pthread_mutex_timedlock((pthread_mutex_t *)m, t);
    return !e ? thrd_success : e == ETIMEDOUT ? thrd_timedout : thrd_error;
}
FL_SHOWN int cnd_init(cnd_t *c) { return pthread_cond_init((pthread_cond_t *)c, NULL) ? thrd_error : thrd_success; }
FL_SHOWN void cnd_destroy(cnd_t *c) { (void)pthread_cond_destroy((pthread_cond_t *)c); }
FL_SHOWN int cnd_wait(cnd_t *c, mtx_t *m) {
    return pthread_cond_wait((pthread_cond_t *)c, (pthread_mutex_t *)m) ? thrd_error : thrd_success;
}
FL_SHOWN int cnd_timedwait(cnd_t *restrict c, mtx_t *restrict m, const struct timespec *restrict t) {
    const int e = pthread_cond_timedwait((pthread_cond_t *)c, (pthread_mutex_t *)m, t);
    return !e ? thrd_success : e == ETIMEDOUT ? thrd_timedout : thrd_error;
}
FL_SHOWN int cnd_signal(cnd_t *c) { return pthread_cond_signal((pthread_cond_t *)c) ? thrd_error : thrd_success; }
FL_SHOWN int cnd_broadcast(cnd_t *c) { return pthread_cond_broadcast((pthread_cond_t *)c) ? thrd_error : thrd_success; }

/* ---- semaphores ---- */

static bool look_sem(void *of) { return !REAL(sem_trywait)(of); }

static int take_sem(sem_t *s, int64_t until) {
    const int saved = errno, e = fl_time_wait(look_sem, s, until, true);
    errno = e ? e : saved;
    return e ? -1 : 0;
}

FL_SHOWN int sem_wait(sem_t *s) { return fl_time_on() ? take_sem(s, FL_VIRTUAL_FOREVER) : REAL(sem_wait)(s); }
FL_SHOWN int sem_timedwait(sem_t *restrict s, const struct timespec *restrict t) {
    return fl_time_on() ? take_sem(s, fl_time_of(CLOCK_REALTIME, t)) : REAL(sem_timedwait)(s, t);
}
FL_SHOWN int sem_clockwait(sem_t *restrict s, clockid_t c, const struct timespec *restrict t) {
    return fl_time_on() ? take_sem(s, fl_time_of(c, t)) : REAL(sem_clockwait)(s, c, t);
}
FL_SHOWN int sem_trywait(sem_t *s) {
    const int r = REAL(sem_trywait)(s);
    if (r && fl_time_on())
        fl_time_spin();
    return r;
}

/* ---- barriers: in the memory of the C library's own, so that processes can share them ---- */

typedef struct fl_barrier {
    unsigned count, come, round;
} fl_barrier;
typedef struct fl_barrier_wait {
    const fl_barrier *b;
    unsigned round;
} fl_barrier_wait;

static bool look_barrier(void *of) {
    const fl_barrier_wait *w = of;
    return w->b->round != w->round;
}

FL_SHOWN int pthread_barrier_init(pthread_barrier_t *restrict b, const pthread_barrierattr_t *restrict a,
                                  unsigned int count) {
    if (!fl_time_on())
        return REAL(pthread_barrier_init)(b, a, count);
    if (!count)
        return EINVAL;
    *(fl_barrier *)(void *)b = (fl_barrier){.count = count};
    return 0;
}
FL_SHOWN int pthread_barrier_destroy(pthread_barrier_t *b) {
    return fl_time_on() ? 0 : REAL(pthread_barrier_destroy)(b);
}
FL_SHOWN int pthread_barrier_wait(pthread_barrier_t *at) {
    if (!fl_time_on())
        return REAL(pthread_barrier_wait)(at);
    fl_barrier *b = (fl_barrier *)(void *)at;
    if (++b->come == b->count) {
        b->come = 0;
        b->round++;
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    fl_barrier_wait w = {b, b->round};
    (void)fl_time_wait(look_barrier, &w, FL_VIRTUAL_FOREVER, false);
    return 0;
}
