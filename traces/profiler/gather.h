/* Shared by the readers of foreign kernel traces. They intern names and kinds, sort rows by time, and part ops that
 * overlap within one lane (traces/files/lanes.h). */
#pragma once

#include "traces/import/import.h"
#include "traces/io/intern.h"

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
    size_t renamed; /* names that contained something other than printable UTF-8 */
    bool disorder;  /* some op starts before its predecessor */
    bool overlap;   /* some op starts before an earlier one of its lane ends */
} fl_gather;

/* Zero the struct and set out. Adds one op of the given name and size to out->kernels and fills op->kind and op->type.
 * Times must satisfy 0 <= start <= end. The caller enters the waits. */
fl_status fl_gather_op(fl_gather *g, const char *name, size_t size, const uint32_t grid[3], const uint32_t block[3],
                       fl_trace_op *op, fl_diag *d);

/* Sorts the ops (only where no op waits for another), resolves overlaps, notes what it changed, and sets has_kernels.
 */
fl_status fl_gather_end(fl_gather *g, fl_diag *d);
void fl_gather_free(fl_gather *g);
