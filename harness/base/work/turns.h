/* Threads for work on many items. Each item is a sequence of stages, and each stage has independent jobs. A stage
 * begins when the one before it is complete. Only a limited number of items are in progress at once, which bounds the
 * memory they need. Results are stored by index, so the number of threads does not affect the result. */
#pragma once

#include "harness/base/work/pool.h"
#include "traces/io/diag.h"

#define FL_TURNS_OVER SIZE_MAX

typedef struct fl_turns {
    /* The number of jobs of a stage, may be 0; FL_TURNS_OVER: the item is complete. Called once for each stage, one
     * call at a time. */
    size_t (*jobs)(void *user, size_t item, size_t stage);
    fl_status (*run)(void *user, size_t item, size_t stage, size_t job, fl_diag *d);
    void *user;
    size_t items, at_once; /* at_once: items in progress at the same time; at least 1 */
} fl_turns;

/* threads: 0 = as many as the machine has. Of several failures, the diagnostic is that of the first item's first
 * stage's first job; work after it may not have run. */
fl_status fl_turns_run(const fl_turns *t, unsigned threads, fl_diag *d);
