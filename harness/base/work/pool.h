/* Threads for independent jobs. Indices come from one counter and results are stored by index, so the number of threads
 * does not affect the result. */
#pragma once

#include "traces/io/diag.h"

/* One job. It must touch nothing except what belongs to its index. */
typedef fl_status (*fl_job)(void *user, size_t index, fl_diag *d);

/* Runs job 0..count-1 on `threads` threads (0 = as many as the machine has). On failure the diagnostic is that of the
 * failing job with the lowest index, whichever failed first; jobs above it may not have run. progress: the name of the
 * work where its progress is shown (traces/io/stage.h), a static text; NULL = no progress. */
fl_status fl_pool_run(fl_job job, void *user, size_t count, unsigned threads, const char *progress, fl_diag *d);

/* The number of threads: `threads`, or as many as the machine has where `threads` is 0; at least 1. */
unsigned fl_threads(unsigned threads);

/* Runs work(user) on this many threads, including the calling one, and returns when all have finished. A thread that
 * cannot be started only makes the work slower. */
void fl_threads_run(unsigned threads, void *(*work)(void *user), void *user);

/* The option row for `threads`, for tables of options (harness/base/cli/args.h). */
#define FL_THREADS_OPTION(into)                                                                                        \
    { "threads", "N", FL_OPTION_INT, into, 1, 1024, "threads (all); the result does not depend on it" }
