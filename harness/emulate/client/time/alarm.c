/* Timers that send a signal: setitimer, alarm, timer_create. The server keeps them and sends the signal, except those
 * that call a function in a thread (alarm.c). Timers of the processor's time cannot be virtual. */
#include "harness/emulate/client/time/inside.h"

#include "harness/emulate/client/client.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* ---- what all kinds of timers share ---- */

#define S_NS INT64_C(1000000000)

bool fl_timer_proper(const struct timespec *t) { return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < S_NS; }

bool fl_timer_clock(clockid_t clock) {
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME || clock == CLOCK_TAI ||
           clock == CLOCK_REALTIME_ALARM || clock == CLOCK_BOOTTIME_ALARM;
}

static clockid_t plain(clockid_t clock) {
    return clock == CLOCK_REALTIME_ALARM ? CLOCK_REALTIME : clock == CLOCK_BOOTTIME_ALARM ? CLOCK_BOOTTIME : clock;
}

static bool nothing(const struct timespec *t) { return !t->tv_sec && !t->tv_nsec; }

/* Return the first expiry that a caller asks for, in ns of virtual time; FL_VIRTUAL_FOREVER disarms the timer. */
static int64_t fl_timer_first(const fl_timer_want *w) {
    if (nothing(&w->first))
        return FL_VIRTUAL_FOREVER;
    const int64_t t = w->absolute ? fl_time_of(plain(w->clock), &w->first) : fl_time_after(&w->first);
    return t < 0 ? 0 : t;
}

static int64_t fl_timer_interval(const fl_timer_want *w) {
    const int64_t most = INT64_MAX / S_NS - 1;
    return w->interval.tv_sec > most ? 0 : (int64_t)w->interval.tv_sec * S_NS + w->interval.tv_nsec;
}

int fl_timer_arm(fl_timer_kind kind, uint32_t number, const fl_timer_want *want, fl_timer_state *was) {
    fl_ask q;
    fl_answer a;
    fl_timer_state state = {.next_ns = FL_VIRTUAL_FOREVER};
    memset(&q, 0, sizeof q);
    q.op = want ? FL_TIME_TIMER_SET : FL_TIME_TIMER_GET;
    q.a = kind;
    q.b = number;
    if (want) {
        q.wide = (uint64_t)fl_timer_first(want);
        state.interval_ns = fl_timer_interval(want);
        memcpy(q.text, &state, sizeof state);
    }
    if (fl_time_ask(&q, &a))
        return -1;
    if (was && a.size == sizeof *was)
        memcpy(was, a.bytes, sizeof *was);
    return 0;
}

/* Return the time left as programs see it: 0 for a disarmed timer, and never 0 for an armed one. */
static struct timespec fl_timer_left(int64_t next_ns) {
    const int64_t left = next_ns - fl_time_now(false);
    return next_ns == FL_VIRTUAL_FOREVER ? (struct timespec){0, 0} : fl_time_spec(left > 0 ? left : 1);
}

void fl_timer_tell(const fl_timer_state *s, struct itimerspec *out) {
    *out = (struct itimerspec){.it_value = fl_timer_left(s->next_ns), .it_interval = fl_time_spec(s->interval_ns)};
}

int fl_timer_refuse(int error) {
    errno = error;
    return -1;
}

/* Pack a timer's id: its number, whether a thread of this program is notified, its clock. */
static timer_t fl_timer_id(uint32_t number, bool thread, clockid_t clock) {
    return (timer_t)((uintptr_t)number << 5 | (uintptr_t)thread << 4 | (uintptr_t)clock);
}

/* Timers that call a function: a thread for each waits for its instants, and starts a thread that calls it. Only one
 * thread of the session runs, so that nothing here needs a lock. */

typedef struct fl_notifier {
    uint32_t number;
    pid_t owner; /* a forked child has its parent's memory, but not its timers */
    void (*call)(union sigval);
    union sigval value;
    pthread_attr_t *attributes;
    fl_timer_state state;
    bool changed, ended;
    struct fl_notifier *next;
} fl_notifier;

static fl_notifier *notifiers;
static uint32_t numbers;

static void *call_it(void *of) {
    const fl_notifier n = *(fl_notifier *)of;
    free(of);
    n.call(n.value);
    return NULL;
}

static void start_call(const fl_notifier *n) {
    pthread_attr_t own;
    pthread_t id;
    fl_notifier *copy = malloc(sizeof *copy);
    if (!copy)
        return; /* without a thread there is no notification */
    *copy = *n;
    pthread_attr_init(&own);
    pthread_attr_setdetachstate(&own, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&id, n->attributes ? n->attributes : &own, call_it, copy))
        free(copy);
    pthread_attr_destroy(&own);
}

static bool look_changed(void *of) { return ((const fl_notifier *)of)->changed; }

static void *wait_for_instants(void *of) {
    fl_notifier *n = of;
    while (!n->ended) {
        n->changed = false;
        if (!fl_time_wait(look_changed, n, n->state.next_ns, false))
            continue;
        n->state.next_ns =
            n->state.interval_ns ? fl_virtual_after(n->state.next_ns, n->state.interval_ns) : FL_VIRTUAL_FOREVER;
        start_call(n);
    }
    free(n);
    return NULL;
}

/* Signals are the program's own threads' to hear. */
static int start_waiting(fl_notifier *n) {
    sigset_t all, before;
    pthread_attr_t own;
    pthread_t id;
    sigfillset(&all);
    pthread_attr_init(&own);
    pthread_attr_setdetachstate(&own, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int e = pthread_create(&id, &own, wait_for_instants, n);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&own);
    return e;
}

static int fl_notify_create(clockid_t clock, const struct sigevent *e, timer_t *id) {
    fl_notifier *n = calloc(1, sizeof *n);
    if (!n)
        return -1;
    *n = (fl_notifier){.number = ++numbers,
                       .owner = getpid(),
                       .call = e->sigev_notify_function,
                       .value = e->sigev_value,
                       .attributes = e->sigev_notify_attributes,
                       .state = {.next_ns = FL_VIRTUAL_FOREVER},
                       .next = notifiers};
    if (start_waiting(n)) {
        free(n);
        return -1;
    }
    notifiers = n;
    *id = fl_timer_id(n->number, true, clock);
    return 0;
}

static fl_notifier **find(uint32_t number) {
    fl_notifier **at = &notifiers;
    while (*at && ((*at)->number != number || (*at)->owner != getpid()))
        at = &(*at)->next;
    return at;
}

static int fl_notify_arm(uint32_t number, const fl_timer_want *want, fl_timer_state *was) {
    fl_notifier *n = *find(number);
    if (!n)
        return -1;
    if (was)
        *was = n->state;
    if (want) {
        n->state = (fl_timer_state){.next_ns = fl_timer_first(want), .interval_ns = fl_timer_interval(want)};
        n->changed = true;
    }
    return 0;
}

static int fl_notify_end(uint32_t number) {
    fl_notifier **at = find(number), *n = *at;
    if (!n)
        return -1;
    *at = n->next;
    n->changed = n->ended = true; /* its thread frees it */
    return 0;
}

/* ---- timers that send a signal ---- */

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
