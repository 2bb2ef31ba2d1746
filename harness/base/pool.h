/* Threads for independent jobs: indices come from one counter, results land by index, so the number of threads cannot
 * show. */
#ifndef FL_POOL_H
#define FL_POOL_H

#include "traces/diag.h"

/* One job; must touch nothing but what belongs to its index. */
typedef fl_status (*fl_job)(void *user, size_t index, fl_diag *d);

/* Runs job 0..count-1 on `threads` threads (0 = as many as the machine has). The diagnostic of the failing job with the
 * lowest index, whichever failed first; jobs above it may not have run. progress: what the work is called where
 * its progress is shown (traces/stage.h), a text that lives for ever; NULL = nothing is shown. */
fl_status fl_pool_run(fl_job job, void *user, size_t count, unsigned threads, const char *progress, fl_diag *d);

/* As many as `threads` says, or the machine has where it is 0; at least 1. */
unsigned fl_threads(unsigned threads);

/* Runs work(user) on so many threads, this one among them, and returns when all have. What cannot be started only makes
 * it slower. */
void fl_threads_run(unsigned threads, void *(*work)(void *user), void *user);

/* The row that asks for `threads`, for tables of options (harness/base/args.h). */
#define FL_THREADS_OPTION(into)                                                                                        \
    { "threads", "N", FL_OPTION_INT, into, 1, 1024, "threads (all); the result does not depend on it" }

#endif
