/* Timers in virtual time: alarms and interval timers, timers of programs, and timers behind a descriptor. The server
 * keeps them, so that they outlive an exec where they should, and fires each at its instant: nobody runs then, so who
 * hears of it first does not depend on the machine. */
#pragma once

#include "harness/emulate/driver/peers.h"

typedef struct fl_timer {
    fl_timer_kind kind;
    uint32_t number; /* of a descriptor: the id of its eventfd + 1 */
    uint64_t order;  /* of two that fire at one instant, the lower is first */
    pid_t pid;       /* whose timer it is */
    int32_t tid;     /* who gets its signal; 0: any thread */
    int signal;      /* 0: nobody hears of it */
    uint64_t value;
    int fd; /* -1: none */
    fl_timer_state state;
    struct fl_timer *next;
} fl_timer;

typedef struct fl_timers {
    fl_timer *first;
    uint32_t numbers;
    size_t descriptors; /* counted since the closed ones were removed */
} fl_timers;

void fl_timers_close(fl_timers *all);
/* As FL_TIME_TIMER asks: its number, 0 where memory runs out. */
uint32_t fl_timers_add(fl_timers *all, const fl_peers *peers, pid_t pid, const fl_ask *q);
/* NULL where there is none; an alarm is made when first asked for. */
fl_timer *fl_timers_find(fl_timers *all, pid_t pid, uint32_t kind, uint32_t number);
void fl_timers_remove(fl_timers *all, fl_timer *timer);
/* A process has ended, or only its program (exec): its timers go; those behind descriptors may have other owners. */
void fl_timers_drop(fl_timers *all, pid_t pid, bool program_only);

/* The one that fires next; NULL where none is set of which anybody hears. */
fl_timer *fl_timers_first(const fl_timers *all);
fl_timer_state fl_timer_now(fl_timer *timer, int64_t now_ns);
void fl_timer_set(fl_timer *timer, const fl_timer_state *state);
/* Sends its signal, or makes its descriptor readable, and sets it for the next time. */
void fl_timer_fire(fl_timer *timer, int64_t now_ns);
