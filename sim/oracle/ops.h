/* Ops of a stretch of one stream, sorted by class, so that their lengths at many clocks cost one multiplication each.
 * Internal to sim/. Lengths are rounded op by op, as in the engine. */
#pragma once

#include "sim/workload/workload.h"
#include "sim/base/wide.h"

#define FL_OP_BLOCK_MAX 65536 /* ops */

typedef struct fl_op_block {
    const fl_workload *w;
    fl_wide gap_ps;     /* sum */
    size_t class_count; /* classes that occur, in order of first occurrence */
    uint32_t *class_id; /* class_count */
    size_t *first;      /* class_count + 1: ops of class_id[k] are low[first[k]] .. low[first[k + 1] - 1] */
    uint16_t *low;      /* the lowest 16 bits of their work, ns */
    uint64_t *work_ns;  /* class_count: of all ops of the class together */
    uint32_t *place;    /* by class of the workload, 1 + its k, 0 where it does not occur */
    uint32_t *of;       /* class of each op while it is sorted */
    fl_big *big;        /* ops too long for 32 bits */
    size_t big_count, big_room;
} fl_op_block;

fl_status fl_op_block_open(fl_op_block *b, const fl_workload *w, fl_diag *d);
void fl_op_block_close(fl_op_block *b); /* takes a zeroed one */

/* Ops first .. end - 1 of a stream; at most FL_OP_BLOCK_MAX. */
fl_status fl_op_block_fill(fl_op_block *b, const fl_stream *s, uint64_t first, uint64_t end, fl_diag *d);

/* Sum of the lengths of the k-th class, ps. */
fl_wide fl_op_block_length_ps(const fl_op_block *b, size_t k, uint32_t mul);
