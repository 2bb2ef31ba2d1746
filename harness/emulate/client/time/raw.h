/* System calls that a program makes by itself, past the C library. */
#pragma once

#include <signal.h>

/* Is told of one that asks for time, or for what would: the system call, in words. It returns where the call may be
 * made. */
typedef void fl_raw_refuse(const char *call);

/* From here on this thread's are seen. */
void fl_raw_catch(fl_raw_refuse *refuse);

/* Makes a call that a filter of the kernel handed over (seccomp): its result, below 0 the error. */
typedef long fl_raw_caught(long number, const long a[3]);
/* Whether such calls are heard of here: from now on by this function. */
int fl_raw_filtered(fl_raw_caught *make);

/* The program's own handler of SIGSYS (either may be NULL): it hears of what was not handed over. 0 where nothing is
 * handed over here, and it may be the system's. */
int fl_raw_handler(const struct sigaction *a, struct sigaction *old);
