/* Held calls that look at the clock or sleep. */
#pragma once

#include "harness/emulate/virtual/held.h"

/* The time of its readings passes before it sees a clock: true where it sleeps first. */
bool fl_held_pays(fl_token *token, fl_turn *t);
/* A call that programs spin on: after many without a sleep, each takes a little time. True where it sleeps first. */
bool fl_held_gives_way(fl_token *token, fl_turn *t);
/* The session's time from one in the thread's memory, FOREVER for none: 0 or an error. */
int fl_held_read_until(fl_token *token, const fl_turn *t, uint64_t at, bool absolute, uint64_t clock, int64_t *until);

void fl_held_look_at_clock(fl_token *token, fl_turn *t);
void fl_held_sleep(fl_token *token, fl_turn *t);
void fl_held_yield(fl_token *token, fl_turn *t);
