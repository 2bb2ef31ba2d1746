/* The threads of virtual time. Internal to emulate_turns.c and emulate_watch.c. */
#ifndef FL_EMULATE_TURNS_H
#define FL_EMULATE_TURNS_H

#include "harness/emulate/emulate_inside.h"

typedef enum fl_turn_state {
    FL_TURN_READY,
    FL_TURN_RUNS,
    FL_TURN_SLEEPS,
    FL_TURN_WAITS,
} fl_turn_state;

typedef struct fl_turn { /* one thread */
    uint64_t number, order;
    pid_t pid;
    int32_t tid; /* 0 until it has said a word */
    fl_conn *conn;
    fl_turn_state state;
    bool must_answer; /* it waits for the answer to its last request */
    bool process;     /* a new one, which has a program image of its own */
    bool look;        /* something has happened since it last looked */
    bool outside;     /* waits on a descriptor */
    int32_t woken;
    int64_t until_ns;
    int64_t debt_ns; /* readings whose time has not passed */
    int64_t read_at_ns;
    uint64_t read_gpus[16]; /* read at that instant */
    bool setting;           /* within a set call */
    fl_conn *set_conn;
    fl_ask set;
    struct fl_turn *next;
} fl_turn;

struct fl_turns {
    fl_clock_page *page;
    fl_turn *turn, *holder;
    uint64_t numbers, orders;
    uint64_t heard, watched; /* requests; at the last look of the watchdog */
    unsigned quiet, still, stuck;
    unsigned long long switches;
    bool told_spin, told_wait;
};

/* Others that wait have something new to look at. */
void fl_turns_stir(fl_emulator *e, const fl_turn *by);
/* Where the token is free: who runs next. */
void fl_turns_pass(fl_emulator *e);

#endif
