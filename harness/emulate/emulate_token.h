/* Virtual time: one token. Exactly one thread of the whole session runs. It passes the token on when it sleeps or
 * waits; time jumps to the earliest deadline only when nobody is ready, ties by order of arrival.
 *
 * A thread that waits for what others do (a lock, a byte in a pipe, a child's end) looks for itself: it gets the token
 * for one look after any other thread has run, in order of arrival. So every kind of waiting is alike, across processes
 * too, and a waiter whose process is killed leaves nothing behind. */
#ifndef FL_EMULATE_TOKEN_H
#define FL_EMULATE_TOKEN_H

#include "harness/emulate/emulate_sets.h"

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

typedef struct fl_token {
    fl_sets *sets;
    fl_peers *peers;
    fl_outcome *outcome;
    bool command_ended; /* what it left behind does not sleep for ever */
    bool held_back;     /* that sleeps for so long that time does not go on */
    bool over;          /* and nothing else will come: the session ends */
    fl_clock_page *page;
    fl_turn *turn, *holder;
    uint64_t numbers, orders, heard; /* given out so far; requests */
    unsigned quiet, still, stuck;    /* looks of the watchdog (emulate_watch.c) since something last happened */
} fl_token;

/* Takes sets, peers and outcome, the rest zeroed. dir: the session's folder, where the clock that all share is made. */
fl_status fl_token_open(fl_token *token, const char *dir, fl_diag *d);
void fl_token_close(fl_token *token);
int64_t fl_token_now(const fl_token *token);
size_t fl_token_threads(const fl_token *token); /* that are still there */

/* A thread of which nothing is known but its process; the end of the session where there is no memory for it: NULL. */
fl_turn *fl_token_add(fl_token *token, pid_t pid, bool process);
fl_turn *fl_token_find(const fl_token *token, uint64_t number);
void fl_token_remove(fl_token *token, fl_turn *t);

/* Answers the thread's last request. */
void fl_token_answer(fl_token *token, fl_turn *t, int32_t result, uint64_t value);
/* It runs from here on; woken: FL_WOKEN_... */
void fl_token_give(fl_token *token, fl_turn *t, int32_t woken);
/* Where the token is free: who runs next. */
void fl_token_pass(fl_token *token);
/* The thread sleeps until t_ns, and in any case for what its readings took. */
void fl_token_sleep(fl_token *token, fl_turn *t, int64_t t_ns);
/* Others that wait have something new to look at. */
void fl_token_stir(fl_token *token, const fl_turn *by);
/* A signal: every thread of the process that sleeps or waits is ready. */
void fl_token_wake(fl_token *token, pid_t pid);
/* The holder may no longer move the clock by itself. */
void fl_token_hold_clock(fl_token *token);
/* Whether the holder owes time for readings, where its next look at the clock must see it. */
void fl_token_owe(fl_token *token);

#endif
