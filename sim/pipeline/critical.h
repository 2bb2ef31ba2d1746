/* When each op of a workload ends if each takes a given time: streams in order, ops that wait for each other, nothing
 * shared, no clock that changes. One pass over the ops: what a planner of clocks asks thousands of times. A run on the
 * engine ends at the same instants, but for the rounding to picoseconds (test_critical). */
#pragma once

#include "sim/workload/workload.h"

typedef struct fl_critical { /* ops are numbered stream by stream, in order */
    const fl_workload *w;
    size_t count;
    size_t *first;   /* stream_count + 1: number of the first op of each stream */
    uint32_t *order; /* count: such that an op comes after all that it waits for */
    size_t *until;   /* count: what the op order[n] waits for is on[until[n - 1]] .. on[until[n] - 1] */
    uint32_t *on;    /* the op before it in its stream, then those of other streams */
} fl_critical;

/* w: no launches and no gaps, at most 2^32 - 1 ops; it must outlive *c. FL_BAD_INPUT where ops wait for each other for
 * ever. */
fl_status fl_critical_new(fl_critical *c, const fl_workload *w, fl_diag *d);
void fl_critical_free(fl_critical *c);

/* length_s: of each op. end_s: when each ends. before: what each op starts at the end of, or FL_NONE at time 0; NULL:
 * not asked for. Returns the end of the last. */
double fl_critical_ends(const fl_critical *c, const double *length_s, double *end_s, uint32_t *before);
