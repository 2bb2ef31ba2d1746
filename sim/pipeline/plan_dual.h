/* Clocks for a price on time, and a bound that no plan can beat.
 *
 * Let part i take T_i at an energy over blocked of e_i(T_i), a point of its table (sim/pipeline/plan_program.h), and let t(T) be
 * the length of the longest path. A plan of energy E and length t has E = t B + sum_i e_i. For a price lambda >= 0 on
 * each second and Lambda = B + lambda, minimise
 *     E + lambda t = sum_i e_i(T_i) + Lambda t(T).
 * t(T) is the largest, over all flows y of one unit from begin to end (convex mixtures of paths), of
 *     sum_i y_i T_i + sum_j y_j d_j,    d_j: lengths that no clock changes.
 * So for any one flow y, and any plan,
 *     E + lambda t >= sum_i e_i(T_i) + Lambda (sum_i y_i T_i + sum_j y_j d_j)
 *                  >= sum_i min_T [e_i(T) + Lambda y_i T] + Lambda sum_j y_j d_j =: g(lambda).
 * This is weak duality: it holds whatever y is, also before anything has converged, and the minimum over the points of
 * a table is that over its convex hull, on which each part looks by itself. Hence every plan of at most t seconds has
 *     E >= g(lambda) - lambda t    for each lambda >= 0.
 *
 * y is found by Frank and Wolfe ("An algorithm for quadratic programming", 1956): each part takes the point of its hull
 * that is best at its price Lambda y_i, the longest path at these lengths is found, and y moves towards it. The
 * lengths, averaged over the rounds, are nearly those of the best mixture of clocks. */
#pragma once

#include "sim/pipeline/plan_program.h"

typedef struct fl_plan_dual {
    const fl_plan_program *g;
    double *flow; /* by part: y */
    double fixed; /* sum of y d over what no clock changes */
    double *mean; /* by part: seconds */
    size_t *near; /* by part: vertex of its hull at its price */
    double *length_s, *end_s;
    uint32_t *before;
    bool begun; /* there is a flow to go on from */
} fl_plan_dual;

typedef struct fl_plan_line { /* what a price says */
    double price;             /* lambda, W: joules that a second may cost */
    double bound;             /* g: every plan has E + price t >= bound */
    double time_s, energy_j;  /* of the mixture of clocks found */
} fl_plan_line;

fl_status fl_plan_dual_new(fl_plan_dual *s, const fl_plan_program *g, fl_diag *d);
void fl_plan_dual_free(fl_plan_dual *s);

/* price: lambda. Goes on from the flow that the
 * solver has, so prices are best asked for in their order. *line and s->mean are filled. */
void fl_plan_dual_solve(fl_plan_dual *s, double price, fl_plan_line *line);
