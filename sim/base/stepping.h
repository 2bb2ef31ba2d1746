/* Which call of a policy is under way on this thread: for whoever has to name it when the policy crashes or does not
 * come back (harness/input/policy/plugin_watch.h). Written around every call, read by signal handlers of the same thread. */
#pragma once

#include "policies/policy.h"

#include <signal.h>
#include <stdbool.h>

typedef enum fl_call {
    FL_CALL_NONE,
    FL_CALL_LOAD, /* constructors of a plug-in: there is no policy yet, only calls counts */
    FL_CALL_INIT,
    FL_CALL_STEP
} fl_call;

typedef struct fl_stepping {
    volatile sig_atomic_t call; /* fl_call; the rest holds while it is not FL_CALL_NONE */
    const fl_policy *policy;
    const char *label, *run; /* of the instance's options; NULL where nobody said */
    uint64_t seed, step;     /* step: of the sample */
    int64_t time_ns;
    uint64_t calls; /* so far: two calls are told apart by it */
    bool watched;   /* fl_stepping_watch was called on this thread */
} fl_stepping;

extern _Thread_local fl_stepping fl_stepping_now;

/* Called once on each thread, before the first call of a policy there. NULL = nobody watches. To be set before any
 * thread starts. */
extern void (*fl_stepping_watch)(void);
