/* What the files of harness/emulate/client/time share. Other modules include the public header alone. */
#pragma once

#include "harness/emulate/client/client.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Virtual time inside a client: functions that replace the C library's clocks, sleeps and waits (LD_PRELOAD). The
 * server gives one token to one thread of the whole session, and only that thread runs. The state here needs no locks.
 */

/* False where this process is not part of a session, and for a thread that has ended its turn. */
bool fl_time_on(void);
/* ns since the session began. looking: a program asks for it, which passes the time that readings took, and after many
 * looks without a sleep a little more. */
int64_t fl_time_now(bool looking);
/* Counts a call that does not block, of a kind that programs spin on. */
void fl_time_spin(void);
/* Until t; how it ended: FL_WOKEN_TIME, or FL_WOKEN_SIGNAL where a signal's handler has run. */
int fl_time_sleep(int64_t t);

/* Waits until look(of) is true: 0; until t: ETIMEDOUT; until a handler has run: EINTR, where `interrupted` allows. */
typedef bool fl_time_look(void *of);
int fl_time_wait(fl_time_look *look, void *of, int64_t until, bool interrupted);

/* Waits on a descriptor, as fl_time_wait; the event may come from outside the session. */
int fl_time_wait_io(fl_time_look *look, void *of, int64_t until);
/* True for the session's own output, whose reader is outside the session. */
bool fl_time_is_output(uint64_t dev, uint64_t ino);

/* The number behind `key` in what the kernel tells of a descriptor; `none` where there is none. */
uint32_t fl_time_fdinfo(int fd, const char *key, uint32_t none);

_Noreturn void fl_time_fail(const char *call);
/* One request; the answer's result. */
int fl_time_ask(fl_ask *q, fl_answer *a);
/* One request; the answer's number, 0 where it has none. */
uint64_t fl_time_number(fl_ask *q);
uint64_t fl_time_say(fl_ask_op op, uint32_t a, uint32_t b);
/* In a new thread or a forked child: waits for its first turn. */
void fl_time_begin(uint64_t number);
void fl_time_end(void);

/* ns of the session's time from a time of a clock; FOREVER for NULL. */
int64_t fl_time_of(clockid_t clock, const struct timespec *t);
/* From now; FOREVER for NULL. */
int64_t fl_time_after(const struct timespec *t);
struct timespec fl_time_spec(int64_t ns);
int64_t fl_time_base(clockid_t clock);

/* Waiters in line for something in memory: conditions and futexes. */
typedef struct fl_line {
    const void *key;
    struct fl_line *next;
    bool woken;
} fl_line;
void fl_line_join(fl_line *me, const void *key);
void fl_line_leave(fl_line *me);
int fl_line_wake(const void *key, int most);
bool fl_line_woken(void *me);
void fl_line_forget(void); /* after a fork */

/* What all kinds of timers share. */

/* A request of timer_settime and similar calls: absolute times by the clock, else from now on; first 0 disarms. */
typedef struct fl_timer_want {
    clockid_t clock;
    bool absolute;
    struct timespec first, interval;
} fl_timer_want;

/* want NULL: only looks. was: as it was before. -1 where there is no such timer. */
int fl_timer_arm(fl_timer_kind kind, uint32_t number, const fl_timer_want *want, fl_timer_state *was);

void fl_timer_tell(const fl_timer_state *s, struct itimerspec *out);
/* Sets errno. Returns -1. */
int fl_timer_refuse(int error);
bool fl_timer_clock(clockid_t clock); /* of the day or since the start: timers can go by it here */
bool fl_timer_proper(const struct timespec *t);

/* The process of a pidfd, 0 where that is not known. */
pid_t fl_time_pid_of(int pidfd);

/* System calls that a program makes by itself, past the C library. */

/* Receives, in words, a system call that asks for time. It returns only if the call may be made. */
typedef void fl_raw_refuse(const char *call);

/* Catches this thread's raw system calls from here on. */
void fl_raw_catch(fl_raw_refuse *refuse);

/* Makes a call that a filter of the kernel handed over (seccomp): its result, below 0 the error. */
typedef long fl_raw_caught(long number, const long a[3]);
/* Installs the function for such calls. Returns whether the kernel hands them over here. */
int fl_raw_filtered(fl_raw_caught *make);

/* The program's own handler of SIGSYS (either may be NULL): it hears of what was not handed over. 0 where nothing is
 * handed over here, and it may be the system's. */
int fl_raw_handler(const struct sigaction *a, struct sigaction *old);
