/* Virtual time: exactly one thread of all programs of a session runs, and time jumps when none is ready.
 *
 * fl_token_open makes the token and the shared clock. The session passes each request of a thread to fl_turns_ask,
 * tells of ends by fl_turns_hung_up and fl_turns_died, and calls fl_token_pass, which picks the next thread and fires
 * timers. For programs without our hooks the kernel holds the system calls: fl_hold_listen hears them, fl_hold_go
 * answers them.
 *
 * The token borrows sets, peers and outcome of emulate/driver and owns its threads and timers until fl_token_close. A
 * call that cannot be virtual ends the session through fl_outcome_fail. */
#pragma once

#include "harness/emulate/client/client.h"
#include "harness/emulate/driver/driver.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Timers in virtual time: alarms and interval timers, timers of programs, and timers behind a descriptor. The server
 * keeps them, so that they outlive an exec where they should. It fires each at its instant, while no thread runs, so
 * the order of events does not depend on the machine. */

typedef struct fl_timer {
    fl_timer_kind kind;
    uint32_t number; /* of a descriptor: the id of its eventfd + 1 */
    uint64_t order;  /* of two timers at one instant, the lower fires first */
    pid_t pid;       /* its process */
    int32_t tid;     /* the thread that gets its signal; 0: any thread */
    int signal;      /* 0: it sends none */
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

/* Virtual time with one token: exactly one thread of the whole session runs. A thread passes the token on when it
 * sleeps or waits. Time jumps to the earliest deadline only when no thread is ready; ties go by order of arrival.
 *
 * A thread that waits for an action of others (a lock, a byte in a pipe, a child's end) polls: after any other thread
 * has run, it gets the token for one look, in order of arrival. Every kind of waiting is therefore handled in the same
 * way, also across processes, and a waiter whose process is killed leaves nothing behind. */

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
    struct fl_held_call *held; /* of a program without our hooks (inside.h) */
    fl_turn_state state;
    bool must_answer; /* it waits for the answer to its last request */
    bool process;     /* it is a new process with a program image of its own */
    ino_t image;      /* inode of the program that announced itself; 0: not known */
    bool silent;      /* its program image has not announced itself */
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
    unsigned quiet, still,
        stuck; /* the watchdog's looks (harness/emulate/session/watch.c) since the last event of each kind */
} fl_token;

/* Takes sets, peers and outcome; the rest must be zeroed. dir: the session's folder, where it creates the shared clock.
 */
fl_status fl_token_open(fl_token *token, const char *dir, fl_diag *d);
void fl_token_close(fl_token *token);
int64_t fl_token_now(const fl_token *token);
size_t fl_token_threads(const fl_token *token); /* number of threads that exist */

/* If the token is free, fire the timers whose time has come, and select the thread that runs next. */
void fl_token_pass(fl_token *token);

/* Give all other waiting threads a reason for a new look. */
void fl_token_stir(fl_token *token, const fl_turn *by);

/* The heir: a process that waits for the emulator's end and then ends what is left. When the emulator is killed, the
 * kernel fails every call that it held, also the one by which a program ends. Such a program would run for ever. */

typedef struct fl_heir {
    pid_t pid; /* 0: none */
    int wire;
} fl_heir;

/* Start it. clean: removes the session's files; the heir calls it if the emulator was killed. Return false with errno.
 */
bool fl_heir_open(fl_heir *heir, void (*clean)(void *user), void *user);

/* Turns: the requests of a session's threads to virtual time, and their ends. */

/* Give the token to the command, which is about to start. */
void fl_turns_command(fl_token *token, pid_t command);
/* Handle one request (FL_TIME_...). */
void fl_turns_ask(fl_token *token, fl_conn *c, const fl_ask *q);
/* A set call makes the running thread sleep for the length of the call. A reading adds its time to the thread's debt.
 */
void fl_turns_set(fl_token *token, fl_conn *c, const fl_ask *q);
void fl_turns_read(fl_token *token, uint32_t gpu);

void fl_turns_hung_up(fl_token *token, const fl_conn *c);
/* State that a signal was sent to a process, so that the result does not depend on its speed. */
void fl_turns_signalled(fl_token *token, pid_t pid, int number);
void fl_turns_died(fl_token *token, pid_t pid, pid_t parent);
/* Return true if the process runs a program that has not announced itself to virtual time: it has the machine's time.
 * A program whose calls the kernel holds never announces itself; fl_hold_has finds it. */
bool fl_turns_silent(const fl_token *token, pid_t pid);

/* Programs without our hooks in virtual time: the kernel holds their system calls (fl_filter_install of
 * emulate/client/client.h). The server finds the thread of each call and answers the thread that has the token. The
 * others wait in their call. */

typedef struct fl_hold {
    fl_token *token;
    int events; /* an epoll of the kernel's ends; -1 = none yet */
    struct fl_hold_listener *listeners;
    struct fl_hold_image *first;
    fl_heir heir;
} fl_hold;

/* Listen for calls at this descriptor of the process, of which the function takes a copy. Return false with errno. */
bool fl_hold_listen(fl_hold *hold, pid_t pid, int fd);
/* Take the calls that have arrived. */
void fl_hold_hear(fl_hold *hold);
/* Answer the thread that has the token, and each thread that gets it then. */
void fl_hold_go(fl_hold *hold);
/* Ends the programs whose calls are held: without the server none of their calls would succeed. */
void fl_hold_end(fl_hold *hold);
void fl_hold_died(fl_hold *hold, pid_t pid);
/* Return true if the kernel holds the calls of the process. */
bool fl_hold_has(const fl_hold *hold, pid_t pid);
void fl_hold_close(fl_hold *hold);
