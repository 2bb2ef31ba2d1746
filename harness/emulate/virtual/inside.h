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

/* The timer that fires next; NULL: none is set that signals anything. */
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

/* Answers the call; a value below 0 is the error. */
void fl_held_answer(fl_turn *t, int64_t value);
/* Lets the call continue in the kernel. */
void fl_held_go_on(fl_turn *t);
/* Lets a call continue that belongs to no thread of virtual time. */
void fl_held_let(int listener, uint64_t id);

/* Held calls that begin or end threads and programs. */

void fl_held_bear(fl_token *token, fl_turn *t);
/* The thread's next call has arrived. If the thread or process that it began does not exist, it could not be started
 * (too many processes, refused flags). */
void fl_held_missed(fl_token *token, fl_turn *t);
/* The thread has its own memory from here on, or has ended: the thread that lent it memory is ready. */
void fl_held_give_back(fl_token *token, fl_turn *t);
/* The end of a thread while its process lives on. */
void fl_held_end(fl_token *token, fl_turn *t);

/* One step of the call of a thread that has the token: the call is answered, continues in the kernel, or blocks. */
void fl_held_step(fl_token *token, fl_turn *t);
/* Wakes the threads that a signal of its last call concerns. */
void fl_held_settle(fl_token *token, fl_turn *t);

/* Held calls that look at the clock or sleep. */

/* Lets the time of the thread's readings pass before it sees a clock. True: it sleeps first. */
bool fl_held_pays(fl_token *token, fl_turn *t);
/* Gives a call that programs spin on a little time, after many calls without a sleep. True: it sleeps first. */
bool fl_held_gives_way(fl_token *token, fl_turn *t);
/* The session's time from one in the thread's memory, FOREVER for none: 0 or an error. */
int fl_held_read_until(fl_token *token, const fl_turn *t, uint64_t at, bool absolute, uint64_t clock, int64_t *until);

void fl_held_look_at_clock(fl_token *token, fl_turn *t);
void fl_held_sleep(fl_token *token, fl_turn *t);
void fl_held_yield(fl_token *token, fl_turn *t);

/* Held calls that wait for descriptors. Copies of the descriptors show whether a call would block. */

/* Gets the deadline of a call like poll, select or epoll_wait. Returns 0 or the error. none: the call does not wait. */
int fl_held_io_until(const fl_turn *t, int64_t now_ns, int64_t *until_ns, bool *none);
/* True if the call names more descriptors than the server looks at. */
bool fl_held_io_many(const fl_turn *t);
/* True if the call has a signal mask of its own. */
bool fl_held_io_masked(const fl_turn *t, uint64_t *mask);
/* Writes the remaining time into the thread's memory, just before the call ends. */
void fl_held_io_left(const fl_turn *t, int64_t now_ns);
/* True if the call is over: answered, or continued in the kernel, where it does not block. */
bool fl_held_io_look(fl_token *token, fl_turn *t);
/* Ends a call at its deadline: nothing was ready. */
void fl_held_io_late(const fl_turn *t);
bool fl_held_io_readable(fl_token *token, const fl_turn *t, int fd);
