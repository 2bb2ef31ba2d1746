/* What readers of foreign kernel traces share: names and kinds are interned, rows put in order of time, and ops that
 * overlap within one lane (device, process and stream) sorted out, as a trace knows one op at a time there. */
#ifndef FL_GATHER_H
#define FL_GATHER_H

#include "traces/import.h"
#include "traces/intern.h"

/* Time stamps are rounded and ends are late by some ns: an overlap up to this, and up to half of the earlier op, is
 * taken off the end of the earlier op. Longer ones are real (graphs, dependent launches, several hardware queues): the
 * later op goes to a stream number of its own. */
#define FL_GATHER_OVERLAP_NS 1000

typedef struct fl_gather_lane {
    int32_t device, process, stream;
    int64_t end_ns;
} fl_gather_lane;

typedef struct fl_gather {
    fl_imported *out;
    fl_intern names, kinds, lanes;
    fl_gather_lane *lane;
    size_t lane_count, lane_room, last_lane;
    int64_t last_start_ns;
    size_t renamed; /* names that held something else than printable UTF-8 */
    bool disorder;  /* some op starts before the one before it */
    bool overlap;   /* or before an earlier one of its lane ends */
} fl_gather;

/* Zero the struct, set out. Adds one op of that name and size to out->kernels: fills op->kind and op->type. Times must
 * be 0 <= start <= end. Waits are entered by the caller. */
fl_status fl_gather_op(fl_gather *g, const char *name, size_t size, const uint32_t grid[3], const uint32_t block[3],
                       fl_trace_op *op, fl_diag *d);

/* Sorts (only where no op waits for another), sorts out overlaps, notes what was done, sets has_kernels. */
fl_status fl_gather_end(fl_gather *g, fl_diag *d);
void fl_gather_free(fl_gather *g);

#endif
