/* Timers that send a signal: setitimer, alarm, timer_create. The server keeps them and sends the signal, except those
 * that call a function in a thread (time_notify.c). Timers of the processor's time cannot be virtual. */
#include "harness/emulate/client/time/notify.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define S_US 1000000

/* ---- one of a process: setitimer, alarm ---- */

static struct timespec of_us(struct timeval t) { return (struct timespec){t.tv_sec, t.tv_usec * 1000}; }
static struct timeval to_us(struct timespec t) { /* what is set is never told as nothing */
    return (struct timeval){t.tv_sec, t.tv_nsec / 1000 + (!t.tv_sec && t.tv_nsec && t.tv_nsec < 1000)};
}
static bool us_proper(const struct timeval *t) { return t->tv_sec >= 0 && t->tv_usec >= 0 && t->tv_usec < S_US; }

static void tell_itimer(const fl_timer_state *s, struct itimerval *out) {
    out->it_value = to_us(fl_timer_left(s->next_ns));
    out->it_interval = to_us(fl_time_spec(s->interval_ns));
}

FL_SHOWN int setitimer(__itimer_which_t which, const struct itimerval *restrict value, struct itimerval *restrict old) {
    fl_timer_state was = {.next_ns = FL_VIRTUAL_FOREVER};
    if (!fl_time_on())
        return REAL(setitimer)(which, value, old);
    if (which != ITIMER_REAL) {
        if (value && (value->it_value.tv_sec || value->it_value.tv_usec))
            fl_time_fail("setitimer of the processor's time");
        return REAL(setitimer)(which, value, old);
    }
    if (value && (!us_proper(&value->it_value) || !us_proper(&value->it_interval)))
        return fl_timer_refuse(EINVAL);
    const fl_timer_want want = {.first = value ? of_us(value->it_value) : (struct timespec){0, 0},
                                .interval = value ? of_us(value->it_interval) : (struct timespec){0, 0}};
    if (fl_timer_arm(FL_TIMER_ALARM, 0, &want, &was))
        return fl_timer_refuse(ENOMEM);
    if (old)
        tell_itimer(&was, old);
    return 0;
}

FL_SHOWN int getitimer(__itimer_which_t which, struct itimerval *value) {
    fl_timer_state was = {.next_ns = FL_VIRTUAL_FOREVER};
    if (!fl_time_on() || which != ITIMER_REAL)
        return REAL(getitimer)(which, value);
    (void)fl_timer_arm(FL_TIMER_ALARM, 0, NULL, &was);
    tell_itimer(&was, value);
    return 0;
}

FL_SHOWN unsigned int alarm(unsigned int s) {
    const struct itimerval value = {.it_value = {.tv_sec = (time_t)s}};
    struct itimerval old;
    if (!fl_time_on())
        return REAL(alarm)(s);
    if (setitimer(ITIMER_REAL, &value, &old))
        return 0;
    const bool up = old.it_value.tv_usec >= S_US / 2 || (!old.it_value.tv_sec && old.it_value.tv_usec);
    return (unsigned int)old.it_value.tv_sec + up; /* as the kernel rounds */
}

FL_SHOWN useconds_t ualarm(useconds_t us, useconds_t interval) {
    const struct itimerval value = {.it_value = {us / S_US, us % S_US},
                                    .it_interval = {interval / S_US, interval % S_US}};
    struct itimerval old;
    if (!fl_time_on())
        return REAL(ualarm)(us, interval);
    return setitimer(ITIMER_REAL, &value, &old) ? (useconds_t)-1
                                                : (useconds_t)(old.it_value.tv_sec * S_US + old.it_value.tv_usec);
}

/* ---- as many as a program makes: timer_create ---- */

static uint32_t number_of(timer_t id) { return (uint32_t)((uintptr_t)id >> 5); }
static bool notifies(timer_t id) { return (uintptr_t)id >> 4 & 1; }

FL_SHOWN int timer_create(clockid_t clock, struct sigevent *restrict e, timer_t *restrict id) {
    if (!fl_time_on())
        return REAL(timer_create)(clock, e, id);
    if (clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID || clock < 0)
        fl_time_fail("timer_create of the processor's time");
    const int how = e ? e->sigev_notify : SIGEV_SIGNAL, signal = e ? e->sigev_signo : SIGALRM;
    if (!fl_timer_clock(clock) || (how != SIGEV_NONE && how != SIGEV_THREAD && (signal < 1 || signal >= NSIG)))
        return fl_timer_refuse(EINVAL);
    if (how == SIGEV_THREAD)
        return fl_notify_create(clock, e, id) ? fl_timer_refuse(EAGAIN) : 0;
    fl_ask q;
    memset(&q, 0, sizeof q);
    q.op = FL_TIME_TIMER;
    q.a = FL_TIMER_OF_PROGRAM;
    q.b = how == SIGEV_NONE ? 0 : (uint32_t)signal;
    q.c = how == SIGEV_THREAD_ID ? (uint32_t)e->_sigev_un._tid : 0;
    if (e)
        memcpy(&q.wide, &e->sigev_value, sizeof q.wide);
    const uint64_t number = fl_time_number(&q);
    if (!number)
        return fl_timer_refuse(EAGAIN);
    *id = fl_timer_id((uint32_t)number, false, clock);
    return 0;
}

static int arm(timer_t id, const fl_timer_want *want, fl_timer_state *was) {
    return notifies(id) ? fl_notify_arm(number_of(id), want, was)
                        : fl_timer_arm(FL_TIMER_OF_PROGRAM, number_of(id), want, was);
}

FL_SHOWN int timer_settime(timer_t id, int flags, const struct itimerspec *restrict value,
                           struct itimerspec *restrict old) {
    fl_timer_state was = {.next_ns = FL_VIRTUAL_FOREVER};
    if (!fl_time_on())
        return REAL(timer_settime)(id, flags, value, old);
    if (!value || !fl_timer_proper(&value->it_value) || !fl_timer_proper(&value->it_interval))
        return fl_timer_refuse(EINVAL);
    const fl_timer_want want = {.clock = (clockid_t)((uintptr_t)id & 15),
                                .absolute = flags & TIMER_ABSTIME,
                                .first = value->it_value,
                                .interval = value->it_interval};
    if (arm(id, &want, &was))
        return fl_timer_refuse(EINVAL);
    if (old)
        fl_timer_tell(&was, old);
    return 0;
}

FL_SHOWN int timer_gettime(timer_t id, struct itimerspec *value) {
    fl_timer_state was = {.next_ns = FL_VIRTUAL_FOREVER};
    if (!fl_time_on())
        return REAL(timer_gettime)(id, value);
    if (arm(id, NULL, &was))
        return fl_timer_refuse(EINVAL);
    fl_timer_tell(&was, value);
    return 0;
}

FL_SHOWN int timer_getoverrun(timer_t id) {
    fl_timer_state was = {.next_ns = FL_VIRTUAL_FOREVER};
    if (!fl_time_on())
        return REAL(timer_getoverrun)(id);
    if (arm(id, NULL, &was))
        return fl_timer_refuse(EINVAL);
    return was.missed > INT32_MAX ? INT32_MAX : (int)was.missed;
}

FL_SHOWN int timer_delete(timer_t id) {
    fl_ask q;
    fl_answer a;
    if (!fl_time_on())
        return REAL(timer_delete)(id);
    if (notifies(id))
        return fl_notify_end(number_of(id)) ? fl_timer_refuse(EINVAL) : 0;
    memset(&q, 0, sizeof q);
    q.op = FL_TIME_TIMER_END;
    q.a = FL_TIMER_OF_PROGRAM;
    q.b = number_of(id);
    return fl_time_ask(&q, &a) ? fl_timer_refuse(EINVAL) : 0;
}
