/* What cannot be virtual ends the session, never with a quiet wrong time; and system calls by number. */
#include "harness/emulate/client/time/core.h"
#include "harness/emulate/client/time/process.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

FL_SHOWN int daemon(int nochdir, int noclose) {
    if (fl_time_on())
        fl_time_fail("daemon");
    return REAL(daemon)(nochdir, noclose);
}
FL_SHOWN int clone(int (*f)(void *), void *stack, int flags, void *argument, ...) {
    if (fl_time_on())
        fl_time_fail("clone");
    va_list list;
    va_start(list, argument);
    void *parent = va_arg(list, void *), *tls = va_arg(list, void *), *child = va_arg(list, void *);
    va_end(list);
    return REAL(clone)(f, stack, flags, argument, parent, tls, child);
}

/* ---- futexes ---- */

static long futex_wait(const int *at, int value, int64_t until) {
    fl_line me;
    if (__atomic_load_n(at, __ATOMIC_SEQ_CST) != value) {
        errno = EAGAIN;
        return -1;
    }
    fl_line_join(&me, at);
    const int e = fl_time_wait(fl_line_woken, &me, until, true);
    fl_line_leave(&me);
    if (e)
        errno = e;
    return e ? -1 : 0;
}

static long futex(long a[6]) {
    const int operation = (int)a[1] & FUTEX_CMD_MASK;
    const clockid_t clock = a[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    const struct timespec *t = (const struct timespec *)a[3];
    switch (operation) {
    case FUTEX_WAIT:
        return futex_wait((const int *)a[0], (int)a[2], fl_time_after(t));
    case FUTEX_WAIT_BITSET:
        return futex_wait((const int *)a[0], (int)a[2], fl_time_of(clock, t));
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
        return fl_line_wake((const void *)a[0], (int)a[2]);
    default:
        fl_time_fail("futex");
    }
}

FL_SHOWN long syscall(long number, ...) {
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (!fl_time_on())
        return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    switch (number) {
    case SYS_futex:
        return futex(a);
    case SYS_clock_gettime:
        return clock_gettime((clockid_t)a[0], (struct timespec *)a[1]);
    case SYS_gettimeofday:
        return gettimeofday((struct timeval *)a[0], (void *)a[1]);
    case SYS_nanosleep:
        return nanosleep((const struct timespec *)a[0], (struct timespec *)a[1]);
    case SYS_clock_nanosleep: {
        const int e =
            clock_nanosleep((clockid_t)a[0], (int)a[1], (const struct timespec *)a[2], (struct timespec *)a[3]);
        if (e)
            errno = e;
        return e ? -1 : 0;
    }
    case SYS_sched_yield:
        return sched_yield();
    case SYS_timer_create:
    case SYS_timerfd_create:
    case SYS_setitimer:
    case SYS_clone:
    case SYS_clone3:
#ifdef SYS_alarm
    case SYS_alarm:
    case SYS_fork:
    case SYS_vfork:
    case SYS_time:
#endif
    {
        char text[48];
        snprintf(text, sizeof text, "system call %ld", number);
        fl_time_fail(text);
    }
    case SYS_pidfd_send_signal: {
        const pid_t pid = fl_time_pid_of((int)a[0]);
        const long r = REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        if (!r && a[1])
            (void)fl_time_say(FL_TIME_SIGNAL, (uint32_t)pid, (uint32_t)a[1]);
        return r;
    }
    default:
        return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}
