/* A plug-in may crash, end the program or never return. Then the program ends with one line that names the policy, the
 * step and its time, and with FL_EXIT_SYSTEM. Results are written at the end of a run, so nothing is half-written.
 *
 * What is found: a signal of a fault (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS) within a call of a
 * policy, also on a stack that ran over; exit() within one, or the end of its thread; a call that takes more processor
 * time than the limit, or that waits ten times as long without using any. Loading a plug-in counts as a call. A timer
 * of each thread looks at the limit, so the policies see nothing of it, and results do not depend on it: it only ends
 * the program. What is outside a call is as it was before.
 */
#pragma once

#include "harness/base/cli/args.h"

/* For live control: a crash is told, and the program then ends by the signal, as it would have, so that its guardian
 * sees the same; the limit on time is the guardian's. To be called before a plug-in is opened. */
void fl_plugin_watch_live(void);

/* Starts watching, once: from now on what this thread and later ones call is watched. */
void fl_plugin_watch_start(void);
/* The path of a plug-in that this thread is about to load; NULL: it is loaded. */
void fl_plugin_watch_loading(const char *path);
/* The path behind a policy's functions, for the line. Kept for the life of the program. */
void fl_plugin_watch_path(const char *path, const void *step);

#define FL_STEP_LIMIT_S 60
extern double fl_step_limit_s; /* processor time of one call, in s */

/* The row for tables of options. */
#define FL_STEP_LIMIT_OPTION                                                                                           \
    {                                                                                                                  \
        "step-limit", "S", FL_OPTION_REAL, &fl_step_limit_s, 0.1, 1e6,                                                 \
            "processor time that one step of a plug-in may take before it counts as a loop, in s (" FL_AS_TEXT(        \
                FL_STEP_LIMIT_S) ")"                                                                                   \
    }
