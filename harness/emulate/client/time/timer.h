/* What all kinds of timers share: what a program asks for, and how the server is told. */
#pragma once

#include "harness/emulate/client/time/core.h"

/* What timer_settime and its kin ask for: by a clock where absolute, else from now; first 0: it is not set. */
typedef struct fl_timer_want {
    clockid_t clock;
    bool absolute;
    struct timespec first, interval;
} fl_timer_want;

/* want NULL: only looks. was: as it was before. -1 where there is no such timer. */
int fl_timer_arm(fl_timer_kind kind, uint32_t number, const fl_timer_want *want, fl_timer_state *was);
/* What it is set to then. */
int64_t fl_timer_first(const fl_timer_want *want);
int64_t fl_timer_interval(const fl_timer_want *want);
/* How long until then, as programs are told it: 0 where it is not set, and never 0 where it is. */
struct timespec fl_timer_left(int64_t next_ns);
void fl_timer_tell(const fl_timer_state *s, struct itimerspec *out);
/* Sets errno. Returns -1. */
int fl_timer_refuse(int error);
bool fl_timer_clock(clockid_t clock); /* of the day or since the start: timers can go by it here */
bool fl_timer_proper(const struct timespec *t);
timer_t fl_timer_id(uint32_t number, bool thread, clockid_t clock);
