/* A plan of clocks that is far above its bound, made better bit by bit: a few parts that are near each other become
 * faster, the time that this leaves is given away again by step 2 of sim/pipeline/plan_round.h, and what costs less is kept
 * (Shaw, "Using constraint programming and local search methods to solve vehicle routing problems", 1998, calls it a
 * search of large neighbourhoods). Rounding takes one part after the other and cannot go back; where the clocks that
 * are of use lie far apart it loses most, and this wins part of that back. It draws from one generator,
 * so what becomes of a plan depends on the plans before it; the same series of plans becomes the same series. */
#pragma once

#include "policies/random.h"
#include "sim/pipeline/plan_round.h"

typedef struct fl_plan_polish {
    const fl_plan_program *g;
    uint32_t *near;  /* part_count: parts, those that run at about the same time beside each other */
    uint32_t *trial; /* by part */
    fl_random random;
} fl_plan_polish;

fl_status fl_plan_polish_new(fl_plan_polish *p, const fl_plan_program *g, fl_diag *d);
void fl_plan_polish_free(fl_plan_polish *p);

/* at: places in the tables of a plan that takes *time_s <= limit_s and *energy_j; all three become those of the best
 * plan found, which takes no longer than limit_s. r: scratch of the same program. */
void fl_plan_polish_plan(fl_plan_polish *p, fl_plan_round *r, double limit_s, uint32_t *at, double *time_s,
                         double *energy_j);
