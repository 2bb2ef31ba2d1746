/* A system call of a program without our hooks (Go, static), while the kernel holds it (client/filter.h). */
#pragma once

#include "harness/emulate/virtual/turns.h"

typedef struct fl_held_call { /* of one thread */
    int listener;             /* the kernel's end, not owned */
    uint64_t id, a[6];
    int number;
    bool strange; /* not of the 64-bit interface */
    bool here;    /* it has arrived, and has no answer */
    bool blocked; /* the thread has slept or waited in it */
    bool gave_way;
    int64_t until_ns;
    uint64_t line;     /* place in the line for a futex; 0 = in none */
    unsigned looks;    /* at the clock, while the session's time stood still */
    int64_t looked_ns; /* that time */
    bool kills;        /* its last call sent a signal */
    pid_t killed;
    int signal;
    uint64_t birth;  /* number of the thread that its last call began, until that arrives */
    uint64_t lender; /* number of the thread that waits until this one starts its program or ends */
} fl_held_call;

#define FL_HELD_RESTART                                                                                                \
    (-512) /* ERESTARTSYS: the kernel makes it EINTR, or makes the call again, as the handler says */

/* value: below 0 the error. */
void fl_held_answer(fl_turn *t, int64_t value);
/* Lets the call go on in the kernel. */
void fl_held_go_on(fl_turn *t);
/* The same for a call of no thread of virtual time. */
void fl_held_let(int listener, uint64_t id);
