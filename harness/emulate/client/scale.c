/* Scaled time inside a client (--time 10x): its clocks run as fast as the session's, and its sleeps and timeouts are as
 * much shorter, so that what it measures over time (watts from an energy counter) is right. It stands before the C
 * library (LD_PRELOAD). Timers, alarms, and programs that ask the kernel by themselves (Go) keep the machine's time. */
#include "harness/emulate/client/client.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define S_NS INT64_C(1000000000)

static struct {
    bool tried, on;
    double scale;
    int64_t from[2]; /* CLOCK_REALTIME and CLOCK_MONOTONIC as the session began */
} session;

static bool is_on(void) {
    if (session.tried)
        return session.on;
    const char *text = getenv(FL_EMULATE_SCALE);
    char *end = NULL;
    session.tried = true;
    session.scale = text ? strtod(text, &end) : 0;
    session.from[0] = text ? strtoll(end, &end, 10) : 0;
    session.from[1] = text ? strtoll(end, &end, 10) : 0;
    session.on = session.scale > 0 && session.from[0] > 0 && session.from[1] > 0;
    return session.on;
}

static int64_t ns_of(const struct timespec *t) { return (int64_t)t->tv_sec * S_NS + t->tv_nsec; }

static struct timespec spec_of(int64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / S_NS), .tv_nsec = (long)(ns % S_NS)};
}

/* When this clock stood at the session's start; NULL of those that are not of the day. */
static const int64_t *origin(clockid_t clock) {
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        return &session.from[0];
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
        return &session.from[1];
    default:
        return NULL;
    }
}

/* An instant of the client's clock, as the machine's has it. */
static struct timespec machine_time(clockid_t clock, const struct timespec *t) {
    const int64_t *from = origin(clock);
    if (!from || t->tv_sec >= INT64_MAX / S_NS - 1)
        return *t;
    return spec_of(*from + (int64_t)((double)(ns_of(t) - *from) / session.scale));
}

/* A stretch of it; at least a nanosecond stays one. */
static struct timespec machine_span(const struct timespec *t) {
    if (t->tv_sec < 0 || t->tv_nsec < 0 || t->tv_nsec >= S_NS || t->tv_sec >= INT64_MAX / S_NS - 1)
        return *t;
    const double ns = (double)ns_of(t) / session.scale;
    return ns < 9e18 ? spec_of(ns > 0 && ns < 1 ? 1 : (int64_t)ns) : *t;
}

static int64_t machine_ms(int64_t ms) {
    const double scaled = (double)ms / session.scale;
    return ms <= 0 ? ms : scaled < 1 ? 1 : scaled > 2e9 ? 2000000000 : (int64_t)scaled;
}

FL_SHOWN int clock_gettime(clockid_t clock, struct timespec *t) {
    const int r = REAL(clock_gettime)(clock, t);
    const int64_t *from = is_on() ? origin(clock) : NULL;
    if (!r && from)
        *t = spec_of(*from + (int64_t)((double)(ns_of(t) - *from) * session.scale));
    return r;
}
FL_SHOWN int gettimeofday(struct timeval *restrict t, void *restrict zone) {
    struct timespec now;
    (void)zone;
    const int r = clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return r;
}
FL_SHOWN time_t time(time_t *out) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
FL_SHOWN int timespec_get(struct timespec *t, int base) {
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, t) ? base : 0;
}

/* ---- sleeps ---- */

static int sleep_until(clockid_t clock, int flags, const struct timespec *t, struct timespec *left) {
    if (!is_on())
        return REAL(clock_nanosleep)(clock, flags, t, left);
    const struct timespec asked = flags & TIMER_ABSTIME ? machine_time(clock, t) : machine_span(t);
    const int e =
        REAL(clock_nanosleep)(origin(clock) == &session.from[1] ? CLOCK_MONOTONIC : clock, flags, &asked, left);
    if (e == EINTR && left && !(flags & TIMER_ABSTIME))
        *left = spec_of((int64_t)((double)ns_of(left) * session.scale));
    return e;
}
FL_SHOWN int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t, struct timespec *left) {
    return sleep_until(clock, flags, t, left);
}
FL_SHOWN int nanosleep(const struct timespec *t, struct timespec *left) {
    const int e = sleep_until(CLOCK_MONOTONIC, 0, t, left);
    if (e)
        errno = e;
    return e ? -1 : 0;
}
FL_SHOWN int usleep(useconds_t us) {
    const struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
    return nanosleep(&t, NULL);
}
FL_SHOWN unsigned int sleep(unsigned int s) {
    struct timespec t = {s, 0}, left = {0, 0};
    return nanosleep(&t, &left) ? (unsigned int)left.tv_sec + (left.tv_nsec > 0) : 0;
}

/* ---- timeouts ---- */

FL_SHOWN int poll(struct pollfd *fd, nfds_t n, int ms) { return REAL(poll)(fd, n, is_on() ? (int)machine_ms(ms) : ms); }
FL_SHOWN int ppoll(struct pollfd *fd, nfds_t n, const struct timespec *t, const sigset_t *mask) {
    const struct timespec span = t && is_on() ? machine_span(t) : (struct timespec){0};
    return REAL(ppoll)(fd, n, t && is_on() ? &span : t, mask);
}
FL_SHOWN int pselect(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict x,
                     const struct timespec *restrict t, const sigset_t *restrict mask) {
    const struct timespec span = t && is_on() ? machine_span(t) : (struct timespec){0};
    return REAL(pselect)(n, r, w, x, t && is_on() ? &span : t, mask);
}
FL_SHOWN int select(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict x, struct timeval *restrict t) {
    if (!t || !is_on())
        return REAL(select)(n, r, w, x, t);
    const struct timespec asked = {t->tv_sec, t->tv_usec * 1000}, span = machine_span(&asked);
    struct timeval left = {span.tv_sec, span.tv_nsec / 1000};
    const int got = REAL(select)(n, r, w, x, &left);
    const int64_t ns = (int64_t)(((double)left.tv_sec * 1e9 + (double)left.tv_usec * 1e3) * session.scale);
    *t = (struct timeval){(time_t)(ns / S_NS), (suseconds_t)(ns % S_NS / 1000)}; /* as Linux does: what is left */
    return got;
}
FL_SHOWN int epoll_wait(int fd, struct epoll_event *event, int n, int ms) {
    return REAL(epoll_wait)(fd, event, n, is_on() ? (int)machine_ms(ms) : ms);
}
FL_SHOWN int epoll_pwait(int fd, struct epoll_event *event, int n, int ms, const sigset_t *mask) {
    return REAL(epoll_pwait)(fd, event, n, is_on() ? (int)machine_ms(ms) : ms, mask);
}
FL_SHOWN int sem_timedwait(sem_t *restrict s, const struct timespec *restrict t) {
    const struct timespec at = is_on() ? machine_time(CLOCK_REALTIME, t) : *t;
    return REAL(sem_timedwait)(s, &at);
}
FL_SHOWN int pthread_cond_clockwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m, clockid_t clock,
                                    const struct timespec *restrict t) {
    const struct timespec at = is_on() ? machine_time(clock, t) : *t;
    return REAL(pthread_cond_clockwait)(c, m, clock, &at);
}
/* Which clock a condition waits by only its attributes know; glibc keeps it in the second bit of this word. */
FL_SHOWN int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
                                    const struct timespec *restrict t) {
    const clockid_t clock = c->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
    const struct timespec at = is_on() ? machine_time(clock, t) : *t;
    return REAL(pthread_cond_timedwait)(c, m, &at);
}
