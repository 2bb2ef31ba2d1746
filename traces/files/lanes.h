/* A trace holds one op at a time in each lane (device, process and stream). Recordings do not: this parts what
 * overlaps.
 *
 * - Time stamps are rounded, and ends are late by some ns. An overlap of up to FL_LANES_ROUNDING_NS is cut off the end
 * of the earlier op.
 * - Dependent launches (CUDA's programmatic dependent launch, on Hopper and later) let the next kernel of a stream
 * begin before the one before it has ended. Libraries use them: of 106,232 kernels of three PyTorch programs on an H200
 * 1,213 began up to 13.8 us early, each ended after the one before it, and no third began meanwhile (tests/hardware).
 * Such a kernel is taken to wait for that end, and begins there. This is for records of a stream's own kernels: a
 * profiler's file may show the branches of a graph as one stream, which overlap just so.
 * - Other overlaps are of ops that run beside each other (graphs, several hardware queues). The later op moves to a
 * stream number of its own.
 *
 * Either cut takes at most half of the earlier op's length as overlap. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

#include <stdbool.h>

#define FL_LANES_ROUNDING_NS 1000
#define FL_LANES_DEPENDENT_NS 20000

typedef struct fl_lanes_parted {
    size_t cut;       /* ops that end earlier now */
    size_t dependent; /* ops that begin later now */
    size_t moved;     /* ops on other streams now */
    size_t streams;   /* made for them */
    int64_t first;    /* number of the first of these */
} fl_lanes_parted;

/* dependent: take overlaps of up to FL_LANES_DEPENDENT_NS for dependent launches. In place; the rows keep their order,
 * so one that begins later may stand before one that begins earlier. FL_BAD_INPUT where there is no stream number left.
 */
fl_status fl_lanes_part(fl_kernel_trace *t, bool dependent, fl_lanes_parted *out, fl_diag *d);
/* What was changed, as sentences: number 0, 1, ... until it returns false. Of those that do not apply the text is "".
 */
bool fl_lanes_text(const fl_lanes_parted *p, int number, char *text, size_t size);
