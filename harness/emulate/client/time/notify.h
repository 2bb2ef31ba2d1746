/* Timers that call a function of their program (SIGEV_THREAD), by their numbers. -1 where there is no such timer. */
#pragma once

#include "harness/emulate/client/time/timer.h"

#include <signal.h>

int fl_notify_create(clockid_t clock, const struct sigevent *e, timer_t *id);
int fl_notify_arm(uint32_t number, const fl_timer_want *want, fl_timer_state *was);
int fl_notify_end(uint32_t number);
