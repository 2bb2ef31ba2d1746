/* Clocks and sleeps. */
#include "harness/emulate/client/time/inside.h"

#include "harness/emulate/client/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* ---- clocks ---- */

#define US_NS 1000
#define S_NS INT64_C(1000000000)

FL_SHOWN int clock_gettime(clockid_t clock, struct timespec *t) {
    if (!fl_time_on())
        return REAL(clock_gettime)(clock, t);
    if (clock < CLOCK_REALTIME || clock > CLOCK_TAI)
        return REAL(clock_gettime)(clock, t); /* of another process or a device */
    *t = fl_time_spec(fl_time_base(clock) + fl_time_now(true));
    return 0;
}

FL_SHOWN int gettimeofday(struct timeval *restrict t, void *restrict zone) {
    if (!fl_time_on())
        return REAL(gettimeofday)(t, zone);
    const struct timespec s = fl_time_spec(fl_time_base(CLOCK_REALTIME) + fl_time_now(true));
    *t = (struct timeval){s.tv_sec, s.tv_nsec / US_NS};
    return 0;
}

FL_SHOWN time_t time(time_t *out) {
    if (!fl_time_on())
        return REAL(time)(out);
    const time_t t = (time_t)((fl_time_base(CLOCK_REALTIME) + fl_time_now(true)) / S_NS);
    if (out)
        *out = t;
    return t;
}

FL_SHOWN int timespec_get(struct timespec *t, int base) {
    if (!fl_time_on() || base != TIME_UTC)
        return REAL(timespec_get)(t, base);
    *t = fl_time_spec(fl_time_base(CLOCK_REALTIME) + fl_time_now(true));
    return base;
}

FL_SHOWN clock_t clock(void) {
    return fl_time_on() ? (clock_t)(fl_time_now(true) / (S_NS / CLOCKS_PER_SEC)) : REAL(clock)();
}

FL_SHOWN clock_t times(struct tms *t) {
    if (!fl_time_on())
        return REAL(times)(t);
    const clock_t now = (clock_t)(fl_time_now(true) / (S_NS / sysconf(_SC_CLK_TCK)));
    if (t)
        *t = (struct tms){.tms_utime = now};
    return now;
}

/* 0, or EINTR with what is left of it in *rest. */
static int sleep_until(int64_t until, struct timespec *rest) {
    while (fl_time_sleep(until) == FL_WOKEN_SIGNAL) {
        if (!fl_link_signalled())
            continue;
        const int64_t left = until - fl_time_now(false);
        if (rest)
            *rest = fl_time_spec(left > 0 ? left : 0);
        return EINTR;
    }
    return 0;
}

static bool proper(const struct timespec *t) { return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < S_NS; }

FL_SHOWN int nanosleep(const struct timespec *want, struct timespec *rest) {
    if (!fl_time_on())
        return REAL(nanosleep)(want, rest);
    const int e = proper(want) ? sleep_until(fl_time_after(want), rest) : EINVAL;
    if (e)
        errno = e;
    return e ? -1 : 0;
}

FL_SHOWN int clock_nanosleep(clockid_t clock, int flags, const struct timespec *want, struct timespec *rest) {
    if (!fl_time_on())
        return REAL(clock_nanosleep)(clock, flags, want, rest);
    if (!proper(want))
        return EINVAL;
    const bool absolute = flags & TIMER_ABSTIME;
    return sleep_until(absolute ? fl_time_of(clock, want) : fl_time_after(want), absolute ? NULL : rest);
}

FL_SHOWN int usleep(useconds_t us) {
    const struct timespec t = fl_time_spec((int64_t)us * US_NS);
    return nanosleep(&t, NULL);
}

FL_SHOWN unsigned int sleep(unsigned int s) {
    const struct timespec t = {.tv_sec = s};
    struct timespec rest = {0, 0};
    return nanosleep(&t, &rest) ? (unsigned int)rest.tv_sec + (rest.tv_nsec > 0) : 0;
}

FL_SHOWN int thrd_sleep(const struct timespec *want, struct timespec *rest) {
    return nanosleep(want, rest) ? (errno == EINTR ? -1 : -2) : 0;
}

/* Timers behind a descriptor. An eventfd stands for it, whose count the server raises: it is read, polled, copied and
 * inherited as the real one is. All who have it find its timer by the id that the kernel gives each eventfd. */

/* One more than the kernel's id of it; 0 where it has none. */
static uint32_t id_of(int fd) { return fl_time_fdinfo(fd, "eventfd-id:", UINT32_MAX) + 1; }

FL_SHOWN int timerfd_create(int clock, int flags) {
    fl_ask q;
    if (!fl_time_on())
        return REAL(timerfd_create)(clock, flags);
    if (!fl_timer_clock(clock) || flags & ~(TFD_NONBLOCK | TFD_CLOEXEC))
        return fl_timer_refuse(EINVAL);
    const int fd = eventfd(0, (flags & TFD_NONBLOCK ? EFD_NONBLOCK : 0) | (flags & TFD_CLOEXEC ? EFD_CLOEXEC : 0));
    if (fd < 0)
        return -1;
    memset(&q, 0, sizeof q);
    q.op = FL_TIME_TIMER;
    q.a = FL_TIMER_DESCRIPTOR;
    q.b = (uint32_t)clock;
    q.wide = id_of(fd);
    q.spare = fd + 1;
    if (!q.wide) /* a kernel before 5.2 */
        fl_time_fail("timerfd_create");
    const uint64_t number = fl_time_number(&q);
    if (!number) {
        close(fd);
        return fl_timer_refuse(ENOMEM);
    }
    return fd;
}

static int arm(int fd, fl_timer_want *want, fl_timer_state *was) {
    const uint32_t id = id_of(fd);
    if (fcntl(fd, F_GETFD) < 0)
        return fl_timer_refuse(EBADF);
    if (!id || fl_timer_arm(FL_TIMER_DESCRIPTOR, id, NULL, was))
        return fl_timer_refuse(EINVAL);
    if (!want)
        return 0;
    want->clock = (clockid_t)was->clock;
    return fl_timer_arm(FL_TIMER_DESCRIPTOR, id, want, NULL);
}

FL_SHOWN int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old) {
    fl_timer_state was = {.next_ns = FL_VIRTUAL_FOREVER};
    if (!fl_time_on())
        return REAL(timerfd_settime)(fd, flags, value, old);
    if (!value || !fl_timer_proper(&value->it_value) || !fl_timer_proper(&value->it_interval))
        return fl_timer_refuse(EINVAL);
    fl_timer_want want = {
        .absolute = flags & TFD_TIMER_ABSTIME, .first = value->it_value, .interval = value->it_interval};
    if (arm(fd, &want, &was))
        return -1;
    if (old)
        fl_timer_tell(&was, old);
    return 0;
}

FL_SHOWN int timerfd_gettime(int fd, struct itimerspec *value) {
    fl_timer_state was = {.next_ns = FL_VIRTUAL_FOREVER};
    if (!fl_time_on())
        return REAL(timerfd_gettime)(fd, value);
    if (arm(fd, NULL, &was))
        return -1;
    fl_timer_tell(&was, value);
    return 0;
}
