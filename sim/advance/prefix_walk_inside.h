/* Shared by the two walks over the ops after a row of a table of prefix sums. Internal to sim/prefix_walk*.c. */
#pragma once

#include "sim/gpu/prefix_table.h"
#include "sim/gpu/rates.h"
#include "sim/gpu/work.h"

#include <stdbool.h>

/* Length of an op at the table's clocks, and the gap before it. */
static inline int64_t fl_prefix_op(const fl_prefix *p, uint64_t i, int64_t *gap_ps, uint32_t *class_id) {
    int64_t work_ns;
    fl_workload_op(p->s, i, gap_ps, &work_ns, class_id);
    *gap_ps *= FL_PS_PER_NS;
    return fl_length_ps(work_ns, p->rates->row[*class_id].mul);
}

/* Moves a place past its op, whose length and gap these are. */
static inline void fl_prefix_pass(fl_prefix_place *at, int64_t gap_ps, int64_t length_ps, uint32_t class_id,
                                  fl_prefix_depth depth) {
    const fl_row *row = &at->table->rates->row[class_id];
    const fl_row_parts *parts = &at->table->rates->parts[class_id];
    const uint64_t length = (uint64_t)length_ps;
    fl_prefix_sums *sums = &at->sums;
    at->op++;
    sums->t_ps += (uint64_t)gap_ps + length;
    sums->busy_ps += length;
    if (depth == FL_PREFIX_BUSY)
        return;
    sums->dyn_fj += length * (uint64_t)(int64_t)row->dyn_mw;
    sums->memory += length * row->memory;
    sums->sm_fj += length * (uint64_t)(int64_t)parts->sm_mw;
    sums->memory_fj += length * (uint64_t)(int64_t)parts->memory_mw;
    if (depth == FL_PREFIX_ENERGY)
        return;
    sums->alu += length * row->alu;
    sums->sms += length * row->sms;
}

/* The two forms, for the test. Use the second only where fl_prefix_walks_eight allows it; it stops before the last ops
 * that are fewer than eight, and at one that needs more than 32 bits. True: an op did not end by t_ps. */
void fl_prefix_walk_one(fl_prefix_place *at, uint64_t stop, uint64_t t_ps, fl_prefix_depth depth);
bool fl_prefix_walk_eight(fl_prefix_place *at, uint64_t stop, uint64_t t_ps, fl_prefix_depth depth);
bool fl_prefix_walks_eight(void);
