/* What the files of harness/emulate/virtual share. Other modules include the public header alone. */
#pragma once

#include "harness/emulate/client/client.h"
#include "harness/emulate/driver/driver.h"
#include "harness/emulate/virtual/virtual.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

/* Adds a thread of which only its process is known. NULL where memory runs out; the session then ends. */
fl_turn *fl_token_add(fl_token *token, pid_t pid, bool process);
fl_turn *fl_token_find(const fl_token *token, uint64_t number);
void fl_token_remove(fl_token *token, fl_turn *t);

/* Answers the thread's last request: with a number, or with size bytes. */
void fl_token_answer(fl_token *token, fl_turn *t, int32_t result, uint64_t value);
void fl_token_tell(fl_token *token, fl_turn *t, int32_t result, const void *bytes, size_t size);
/* Lets it run from now on; woken: FL_WOKEN_... */
void fl_token_give(fl_token *token, fl_turn *t, int32_t woken);

/* The thread sleeps until t_ns, and in any case for the time of its readings. */
void fl_token_sleep(fl_token *token, fl_turn *t, int64_t t_ns);

/* A signal: every thread of the process that sleeps or waits is ready. */
void fl_token_wake(fl_token *token, pid_t pid);
/* Fires the timers whose time has come. */
void fl_token_fire(fl_token *token);
/* Stops the holder from advancing the clock by itself. */
void fl_token_hold_clock(fl_token *token);
/* Whether the holder owes time for readings that its next look at the clock must show. */
void fl_token_owe(fl_token *token);

/* The thread waits for an action of others, until a time. again: it has looked in vain; outside: for a descriptor. */
void fl_turns_wait(fl_token *token, fl_turn *t, int64_t until_ns, bool again, bool outside);

/* A system call of a program without our hooks (Go, static), while the kernel holds it. */

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

/* value: below 0 the error. */
void fl_held_answer(fl_turn *t, int64_t value);
/* Lets the call go on in the kernel. */
void fl_held_go_on(fl_turn *t);
/* The same for a call of no thread of virtual time. */
void fl_held_let(int listener, uint64_t id);

/* Held calls that begin or end threads and programs. */

void fl_held_bear(fl_token *token, fl_turn *t);
/* Its next call is here: where what it began does not exist, it could not be begun (too many processes, refused flags).
 */
void fl_held_missed(fl_token *token, fl_turn *t);
/* It has its own memory from here on, or has ended: who lent it is ready. */
void fl_held_give_back(fl_token *token, fl_turn *t);
/* The end of a thread that is not its process's. */
void fl_held_end(fl_token *token, fl_turn *t);

/* What becomes of a held system call in virtual time. The thread has the token. The call is answered here, or goes on
 * in the kernel, or blocks. */

/* One step of the call of a thread that has the token. */
void fl_held_step(fl_token *token, fl_turn *t);
/* What a signal that its last call sent means for the others. */
void fl_held_settle(fl_token *token, fl_turn *t);

/* Held calls that look at the clock or sleep. */

/* The time of its readings passes before it sees a clock: true where it sleeps first. */
bool fl_held_pays(fl_token *token, fl_turn *t);
/* A call that programs spin on: after many without a sleep, each takes a little time. True where it sleeps first. */
bool fl_held_gives_way(fl_token *token, fl_turn *t);
/* The session's time from one in the thread's memory, FOREVER for none: 0 or an error. */
int fl_held_read_until(fl_token *token, const fl_turn *t, uint64_t at, bool absolute, uint64_t clock, int64_t *until);

void fl_held_look_at_clock(fl_token *token, fl_turn *t);
void fl_held_sleep(fl_token *token, fl_turn *t);
void fl_held_yield(fl_token *token, fl_turn *t);

/* Held calls that wait for descriptors: whether they would block is asked of copies of the descriptors. */

/* When a call of the kind of poll, select or epoll_wait is late: 0 or the error. none: it does not wait. */
int fl_held_io_until(const fl_turn *t, int64_t now_ns, int64_t *until_ns, bool *none);
/* Whether it names more descriptors than are looked at here. */
bool fl_held_io_many(const fl_turn *t);
/* Whether the call brings a mask of signals of its own. */
bool fl_held_io_masked(const fl_turn *t, uint64_t *mask);
/* The call is about to be over: tells the thread how much of its time is left. */
void fl_held_io_left(const fl_turn *t, int64_t now_ns);
/* Whether the call is over: answered, or gone on in the kernel, where it does not block. */
bool fl_held_io_look(fl_token *token, fl_turn *t);
/* It is late: nothing was ready. */
void fl_held_io_late(const fl_turn *t);
bool fl_held_io_readable(fl_token *token, const fl_turn *t, int fd);
