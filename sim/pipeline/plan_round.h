/* From lengths to clocks of the ladder: a plan that takes no longer than the lengths do, or than it may.
 *
 * 1. Parts get their clocks in the order in which they start. Each takes the slowest clock with which it ends by the
 *    time at which it ends under the lengths given. It never starts later than it does there, so there always is one;
 *    and what one part is early by, the next has for itself: errors do not add up.
 * 2. What time is left behind parts that others do not wait for is given to those that save most by it: parts become
 * one clock slower where a second saves at least a price, which goes down from the highest to nothing. Kelley's float
 * ("Critical-path planning and scheduling: mathematical basis", 1961) is what a part may be later by. */
#pragma once

#include "sim/pipeline/plan_program.h"

typedef struct fl_plan_round {
    const fl_plan_program *g;
    double *length_s, *end_s, *latest_s; /* by op; latest_s: when it has to end */
    double steepest;                     /* what a clock more saves at most, W */
} fl_plan_round;

fl_status fl_plan_round_new(fl_plan_round *r, const fl_plan_program *g, fl_diag *d);
void fl_plan_round_free(fl_plan_round *r);

/* mean_s: by part, none below the fastest of its table. limit_s: what the plan may take; it is raised to what the
 * lengths take. corners: step 1 takes only clocks that are corners of the hull, which are the cheapest to mix; better
 * where the others lie well above it, worse where the corners lie far apart. at: places in the tables, filled. Returns
 * the seconds that the plan takes. */
double fl_plan_round_off(fl_plan_round *r, const double *mean_s, double limit_s, bool corners, uint32_t *at);

/* Step 2 alone, from a plan that is there: `at`, places in the tables, becomes a plan that takes at most limit_s, or
 * what the plan took, whichever is more, and whose parts cost no more each. Returns the seconds that it takes. */
double fl_plan_round_fill(fl_plan_round *r, double limit_s, uint32_t *at);
