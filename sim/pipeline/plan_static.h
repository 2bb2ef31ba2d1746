/* Plans of few clocks, which a planned one is compared with: one clock for all parts, and one for each rank. */
#pragma once

#include "sim/pipeline/plan_program.h"

/* Each part at the clock of its rank, by rank; where it may not have that one, at the highest below that it may have,
 * or else at its lowest. at: places in the tables, filled. */
void fl_plan_at_clocks(const fl_plan_program *g, const int32_t *mhz, uint32_t *at);

typedef struct fl_plan_same { /* one clock for all */
    int32_t mhz;
    double time_s, energy_j;
} fl_plan_same;

/* A plan for each clock of the ladder of rank 0. The caller frees *same. */
fl_status fl_plan_all_same(const fl_plan_program *g, fl_plan_same **same, size_t *count, fl_diag *d);
/* All ranks at one clock, as fl_plan_at_clocks has it. */
void fl_plan_at_clock(const fl_plan_program *g, int32_t mhz, uint32_t *at);

/* One clock for each rank that makes E + price t small: from the clocks in mhz, by rank, each rank in turn goes to the
 * best of the ladder's clocks near its own until none gains. No search over all of them, so the least it finds may not
 * be the least there is. */
fl_status fl_plan_rank_clocks(const fl_plan_program *g, double price, int32_t *mhz, uint32_t *at, double *time_s,
                              double *energy_j, fl_diag *d);
