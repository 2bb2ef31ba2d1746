/* Clocks for a pipeline that cost the least energy within a time: for one time, or for many from the shortest possible
 * to that of the least energy of all (the frontier). Each plan comes with a bound that no plan as fast can beat.
 *
 * The frontier of mixtures of clocks is convex, so that prices on time find it (sim/pipeline/plan_dual.h), and the price that is
 * asked next is the slope between two points that are known (Eisner and Severance, "Mathematical techniques for
 * efficient record segmentation in large shared databases", 1976), until the line between them is near enough to the
 * bound. A time between two is met by mixing their lengths, and lengths become clocks of the ladder by
 * sim/pipeline/plan_round.h; where the plan is not near its bound, the best plan of one clock is filled up to the time, too, and
 * the better one of both is taken. What then is still far from its bound begins at the plan of the next faster time,
 * too, and is polished (sim/pipeline/plan_polish.h). The same pipeline gives the same plans, bit by bit. */
#pragma once

#include "sim/pipeline/plan_dual.h"
#include "sim/pipeline/plan_polish.h"
#include "sim/pipeline/plan_round.h"
#include "sim/pipeline/plan_static.h"

typedef struct fl_plan_point {
    double limit_s; /* what was asked for, but no more than the plan of least energy takes */
    double time_s, energy_j;
    double bound_j; /* no plan of at most time_s takes less */
    uint32_t *at;   /* by part: place in its table; owned */
} fl_plan_point;

typedef struct fl_planner {
    const fl_plan_program *g;
    fl_plan_dual dual;
    fl_plan_round round;
    fl_plan_polish polish;
    fl_plan_line *line; /* one for each price that was asked for */
    size_t line_count, line_room;
    fl_plan_same *same; /* same_count: plans of one clock, from which a plan may begin, too */
    size_t same_count;
    uint32_t *trial;     /* by part */
    fl_plan_point least; /* the plan of least energy of all; without places before the first plan is asked for */
    double fastest_s;    /* no plan takes less */
    double least_s;      /* what the plan of least energy takes; 0 before the first plan is asked for */
} fl_planner;

fl_status fl_planner_new(fl_planner *pl, const fl_plan_program *g, fl_diag *d);
void fl_planner_free(fl_planner *pl);

/* The best plans found of at most limit_s[i] each; the limits descend. Fills point[count], whose owner frees each with
 * fl_plan_point_free, also after a failure. Beyond least_s it is the plan of least energy. FL_BAD_INPUT where a limit
 * is below fastest_s. */
fl_status fl_plan_within(fl_planner *pl, const double *limit_s, size_t count, fl_plan_point *point, fl_diag *d);

/* Up to `count` plans, from a ten-thousandth above fastest_s to least_s in equal steps of time; those that another
 * equals or beats in both time and energy are left out. *point: *found of them, by ascending time; the caller frees
 * all. */
fl_status fl_plan_frontier(fl_planner *pl, size_t count, fl_plan_point **point, size_t *found, fl_diag *d);

/* What no plan of at most time_s can beat, by all prices that were asked for. */
double fl_plan_bound(const fl_planner *pl, double time_s);
/* What no plan has less of: energy times time to this power (1 or 2). */
double fl_plan_product_bound(const fl_planner *pl, int power);

void fl_plan_point_free(fl_plan_point *p);
