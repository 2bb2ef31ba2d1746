#include "harness/emulate/virtual/held_clock.h"

#include "harness/emulate/driver/remote.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#ifdef __x86_64__

#define S_NS INT64_C(1000000000)
#define LOOKS_FREE 1000 /* as in client/time_core.c */
#define LOOK_NS 1000

static int64_t base_of(const fl_token *token, uint64_t clock) {
    return fl_virtual_base((clockid_t)clock, token->page->realtime_ns);
}

static void sleep_until(fl_token *token, fl_turn *t, int64_t until_ns) {
    fl_token_sleep(token, t, until_ns);
    fl_token_stir(token, t);
    fl_token_pass(token);
}

/* The time that the thread's readings take passes before the thread reads a clock. */
bool fl_held_pays(fl_token *token, fl_turn *t) {
    if (t->debt_ns <= 0)
        return false;
    t->held->looks = 0;
    sleep_until(token, t, 0);
    return true;
}

/* For calls in which programs spin: after many without a sleep, each takes a little time. */
bool fl_held_gives_way(fl_token *token, fl_turn *t) {
    fl_held_call *h = t->held;
    if (h->gave_way || fl_token_now(token) != h->looked_ns) {
        h->looks = h->gave_way ? h->looks : 0;
        h->looked_ns = fl_token_now(token);
        return false;
    }
    if (++h->looks <= LOOKS_FREE)
        return false;
    h->gave_way = true;
    fl_token_sleep(token, t, fl_token_now(token) + LOOK_NS);
    if (h->looks % LOOKS_FREE == 0)
        fl_token_stir(token, t);
    fl_token_pass(token);
    return true;
}

void fl_held_look_at_clock(fl_token *token, fl_turn *t) {
    fl_held_call *h = t->held;
    const uint64_t clock = h->number == SYS_clock_gettime ? h->a[0] : CLOCK_REALTIME;
    if ((int32_t)clock < CLOCK_REALTIME || (int32_t)clock > CLOCK_TAI) {
        fl_held_go_on(t);
        return;
    }
    if (fl_held_pays(token, t) || fl_held_gives_way(token, t))
        return;
    const int64_t since = fl_token_now(token), ns = base_of(token, clock) + since, s = ns / S_NS;
    const clock_t ticks = (clock_t)(since / (S_NS / sysconf(_SC_CLK_TCK)));
    const struct timespec spec = {s, ns % S_NS};
    const struct timeval val = {s, ns % S_NS / 1000};
    const struct tms used = {.tms_utime = ticks};
    bool ok = true;
    if (h->number == SYS_clock_gettime)
        ok = fl_remote_write(t->pid, h->a[1], &spec, sizeof spec);
    else if (h->number == SYS_gettimeofday)
        ok = !h->a[0] || fl_remote_write(t->pid, h->a[0], &val, sizeof val);
    else if (h->a[0])
        ok = h->number == SYS_time ? fl_remote_write(t->pid, h->a[0], &s, sizeof s)
                                   : fl_remote_write(t->pid, h->a[0], &used, sizeof used);
    fl_held_answer(t, !ok ? -EFAULT : h->number == SYS_time ? s : h->number == SYS_times ? ticks : 0);
}

/* Converts a time in the thread's memory to the session's time, *until. Returns 0 or an error. */
int fl_held_read_until(fl_token *token, const fl_turn *t, uint64_t at, bool absolute, uint64_t clock, int64_t *until) {
    struct timespec s;
    *until = FL_VIRTUAL_FOREVER;
    if (!at)
        return 0;
    if (!fl_remote_read(t->pid, at, &s, sizeof s))
        return -EFAULT;
    if (s.tv_sec < 0 || s.tv_nsec < 0 || s.tv_nsec >= S_NS)
        return -EINVAL;
    const int64_t from = absolute ? -base_of(token, clock) : fl_token_now(token);
    if (s.tv_sec < FL_VIRTUAL_FOREVER / S_NS / 2)
        *until = s.tv_sec * S_NS + s.tv_nsec + from;
    return 0;
}

void fl_held_sleep(fl_token *token, fl_turn *t) {
    fl_held_call *h = t->held;
    const bool plain = h->number == SYS_nanosleep, absolute = !plain && h->a[1] & TIMER_ABSTIME;
    if (!h->blocked) {
        if (fl_held_pays(token, t))
            return;
        const int e = fl_held_read_until(token, t, plain ? h->a[0] : h->a[2], absolute,
                                         plain ? CLOCK_MONOTONIC : h->a[0], &h->until_ns);
        if (e || !(plain ? h->a[0] : h->a[2])) {
            fl_held_answer(t, e ? e : -EFAULT);
            return;
        }
        if (h->until_ns > fl_token_now(token))
            h->looks = 0;
    } else if (t->woken == FL_WOKEN_TIME) {
        fl_held_answer(t, 0);
        return;
    } else if (fl_remote_signalled(t->pid, t->tid, false, 0)) {
        const int64_t ns = h->until_ns - fl_token_now(token), left = ns > 0 ? ns : 0;
        const struct timespec rest = {left / S_NS, left % S_NS};
        const uint64_t at = plain ? h->a[1] : h->a[3];
        if (at && !absolute)
            (void)fl_remote_write(t->pid, at, &rest, sizeof rest);
        fl_held_answer(t, -EINTR);
        return;
    }
    h->blocked = true;
    sleep_until(token, t, h->until_ns);
}

void fl_held_yield(fl_token *token, fl_turn *t) {
    if (t->held->blocked) {
        fl_held_answer(t, 0);
        return;
    }
    if (fl_held_pays(token, t) || fl_held_gives_way(token, t))
        return;
    t->held->blocked = true;
    sleep_until(token, t, fl_token_now(token));
}

#endif
