#include "harness/emulate/client/time/timer.h"

#include <errno.h>
#include <string.h>

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

int64_t fl_timer_first(const fl_timer_want *w) {
    if (nothing(&w->first))
        return FL_VIRTUAL_FOREVER;
    const int64_t t = w->absolute ? fl_time_of(plain(w->clock), &w->first) : fl_time_after(&w->first);
    return t < 0 ? 0 : t;
}

int64_t fl_timer_interval(const fl_timer_want *w) {
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

struct timespec fl_timer_left(int64_t next_ns) {
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

/* A timer's id here: number, whether a thread of this program is told, clock. */
timer_t fl_timer_id(uint32_t number, bool thread, clockid_t clock) {
    return (timer_t)((uintptr_t)number << 5 | (uintptr_t)thread << 4 | (uintptr_t)clock);
}
