/* Shared by the two walks over the ops after a row of a table of prefix sums. Internal to sim/prefix_walk*.c. */
#pragma once

#include "sim/prefix_table.h"
#include "sim/rates.h"
#include "sim/work.h"

#include <stdbool.h>

/* Length of an op at the table's clocks, and the gap before it. */
static inline int64_t fl_prefix_op(const fl_prefix *p, uint64_t i, int64_t *gap_ps, uint32_t *class_id) {
    int64_t work_ns;
    fl_workload_op(p->s, i, gap_ps, &work_ns, class_id);
    *gap_ps *= FL_PS_PER_NS;
    return fl_length_ps(work_ns, p->rates->row[*class_id].mul);
}

/* Records that the ops up to `op` add up to *sums. */
static inline void fl_prefix_add(fl_prefix_place *at, uint64_t op, const fl_prefix_sums *sums) {
    at->op = op;
    at->sums.t_ps += sums->t_ps;
    at->sums.busy_ps += sums->busy_ps;
    at->sums.dyn_fj += sums->dyn_fj;
    at->sums.memory += sums->memory;
    at->sums.alu += sums->alu;
    at->sums.sms += sums->sms;
    at->sums.sm_fj += sums->sm_fj;
    at->sums.memory_fj += sums->memory_fj;
}

/* The two forms, for the test. Use the second only where fl_prefix_walks_eight allows it; it stops before the last ops
 * that are fewer than eight, and at one that needs more than 32 bits. True: an op did not end by t_ps. */
void fl_prefix_walk_one(fl_prefix_place *at, uint64_t stop, uint64_t t_ps, fl_prefix_depth depth);
bool fl_prefix_walk_eight(fl_prefix_place *at, uint64_t stop, uint64_t t_ps, fl_prefix_depth depth);
bool fl_prefix_walks_eight(void);
