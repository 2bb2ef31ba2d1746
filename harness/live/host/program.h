/* A program of the user's that runs under a command of the live side: started, told what we are told, and waited for,
 * so that it never outlives its recording and its exit status is always its own. */
#pragma once

#include "traces/io/diag.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct fl_program {
    pid_t pid; /* 0 = not started */
    bool ended;
    int exit_status;  /* once it has ended; 128 + the signal that ended it, as shells say */
    int64_t limit_ns; /* CLOCK_MONOTONIC: asked then to end by TERM, and after FL_PROGRAM_GRACE_NS by KILL; 0 = never */
    bool asked;       /* by TERM */
} fl_program;

#define FL_PROGRAM_GRACE_NS INT64_C(5000000000)

/* environment: name, value, name, value, ..., NULL. A command that cannot be run ends with 127, as under a shell. */
fl_status fl_program_start(fl_program *p, char *const *command, const char *const *environment, fl_diag *d);

/* Hands on a signal that asked us to stop, unless the program has it from its terminal; keeps its limit; sees whether
 * it has ended. True once it has. */
bool fl_program_look(fl_program *p);
/* Until when to sleep at most, so that the limit is kept. */
int64_t fl_program_wake_ns(const fl_program *p, int64_t until_ns);
/* The same until it has ended; nothing to do where it was not started. */
void fl_program_wait(fl_program *p);
