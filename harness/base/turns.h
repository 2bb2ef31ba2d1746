/* Threads for work on many items, each a sequence of stages of independent jobs: a stage of an item begins when the one
 * before it is over, and only so many items are under way at once, so that what they need of memory is bounded. Results
 * land by index, so the number of threads cannot show. */
#ifndef FL_TURNS_H
#define FL_TURNS_H

#include "harness/base/pool.h"
#include "traces/diag.h"

#define FL_TURNS_OVER SIZE_MAX

typedef struct fl_turns {
    /* The jobs of a stage, 0 too; FL_TURNS_OVER: the item is over. Called once for each stage, one call at a time. */
    size_t (*jobs)(void *user, size_t item, size_t stage);
    fl_status (*run)(void *user, size_t item, size_t stage, size_t job, fl_diag *d);
    void *user;
    size_t items, at_once; /* items under way; at least 1 */
} fl_turns;

/* threads: 0 = as many as the machine has. Of several failures the diagnostic of the first item's first stage's first
 * job; what comes behind it may not have run. */
fl_status fl_turns_run(const fl_turns *t, unsigned threads, fl_diag *d);

#endif
