/* Virtual time with one token: exactly one thread of the whole session runs. A thread passes the token on when it
 * sleeps or waits. Time jumps to the earliest deadline only when no thread is ready; ties go by order of arrival.
 *
 * A thread that waits for an action of others (a lock, a byte in a pipe, a child's end) polls: after any other thread
 * has run, it gets the token for one look, in order of arrival. Every kind of waiting is therefore handled in the same
 * way, also across processes, and a waiter whose process is killed leaves nothing behind. */
#pragma once

#include "harness/emulate/driver/sets.h"
#include "harness/emulate/virtual/timers.h"

typedef enum fl_turn_state {
    FL_TURN_READY,
    FL_TURN_RUNS,
    FL_TURN_SLEEPS,
    FL_TURN_WAITS,
    FL_TURN_LENT, /* its memory is lent to a child that has not started its program (vfork) */
} fl_turn_state;

typedef struct fl_turn { /* one thread */
    uint64_t number, order;
    pid_t pid;
    int32_t tid; /* 0 until its first request */
    fl_conn *conn;
    struct fl_held_call *held; /* of a program without our hooks (emulate_held_calls.h) */
    fl_turn_state state;
    bool must_answer; /* it waits for the answer to its last request */
    bool process;     /* it is a new process with a program image of its own */
    bool look;        /* something has happened since its last look */
    bool outside;     /* it waits on a descriptor */
    int32_t woken;
    int64_t until_ns;
    int64_t debt_ns; /* time of its readings that has not passed yet */
    int64_t read_at_ns;
    uint64_t read_gpus[16]; /* read at that instant */
    bool setting;           /* it is inside a set call */
    fl_conn *set_conn;
    fl_ask set;
    struct fl_turn *next;
} fl_turn;

typedef struct fl_token {
    fl_sets *sets;
    fl_peers *peers;
    fl_outcome *outcome;
    bool command_ended; /* the remaining processes must not sleep for ever */
    bool held_back;     /* one of them sleeps for so long that time is held back */
    bool dooms;         /* a process group is about to be killed */
    bool over;          /* nothing else will come: the session ends */
    fl_clock_page *page;
    fl_timers timers;
    fl_turn *turn, *holder;
    uint64_t numbers, orders, heard; /* given out so far; requests */
    unsigned quiet, still, stuck;    /* the watchdog's looks (emulate_watch.c) since the last event of each kind */
} fl_token;

/* Takes sets, peers and outcome; the rest must be zeroed. dir: the session's folder, where it creates the shared clock.
 */
fl_status fl_token_open(fl_token *token, const char *dir, fl_diag *d);
void fl_token_close(fl_token *token);
int64_t fl_token_now(const fl_token *token);
size_t fl_token_threads(const fl_token *token); /* number of threads that exist */

/* Adds a thread of which only its process is known. NULL where memory runs out; the session then ends. */
fl_turn *fl_token_add(fl_token *token, pid_t pid, bool process);
fl_turn *fl_token_find(const fl_token *token, uint64_t number);
void fl_token_remove(fl_token *token, fl_turn *t);

/* Answers the thread's last request: with a number, or with size bytes. */
void fl_token_answer(fl_token *token, fl_turn *t, int32_t result, uint64_t value);
void fl_token_tell(fl_token *token, fl_turn *t, int32_t result, const void *bytes, size_t size);
/* Lets it run from now on; woken: FL_WOKEN_... */
void fl_token_give(fl_token *token, fl_turn *t, int32_t woken);
/* Where the token is free, selects the thread that runs next; timers whose time has come fire before. */
void fl_token_pass(fl_token *token);
/* The thread sleeps until t_ns, and in any case for the time of its readings. */
void fl_token_sleep(fl_token *token, fl_turn *t, int64_t t_ns);
/* Other waiting threads have a reason for a new look. */
void fl_token_stir(fl_token *token, const fl_turn *by);
/* A signal: every thread of the process that sleeps or waits is ready. */
void fl_token_wake(fl_token *token, pid_t pid);
/* Fires the timers whose time has come. */
void fl_token_fire(fl_token *token);
/* Stops the holder from advancing the clock by itself. */
void fl_token_hold_clock(fl_token *token);
/* Whether the holder owes time for readings that its next look at the clock must show. */
void fl_token_owe(fl_token *token);
