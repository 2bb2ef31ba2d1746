/* What a run is worth against the driver's default and the oracles, under one bound for the whole table. */
#pragma once

#include "sim/node/node.h"
#include "sim/oracle/oracle.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fl_reference {      /* of one workload, shared by all policies */
    const fl_workload *w;          /* for the windows of each stream; NULL: no worst window */
    const fl_run_result *standard; /* the driver's default, nothing set */
    const fl_static_point *point;
    size_t point_count;
    const fl_oracle_table *table; /* NULL: no clairvoyant schedule */
    fl_objective objective;
    double bound;                 /* on the slowdown: 0.10 = 10 %; INFINITY = none */
    size_t best_static;           /* under the bound; point_count = none */
    fl_oracle_result clairvoyant; /* under the bound */
    double known; /* objective of the best schedule known that holds the bound, where the clairvoyant one is bounded:
                     its own, unless a baseline's is less; NAN where there is none */
} fl_reference;

/* Fills best_static, clairvoyant and known from the rest. */
fl_status fl_reference_solve(fl_reference *ref, fl_diag *d);
/* A schedule that was found elsewhere: it is the best one known where it holds the bound and its objective is less. */
void fl_reference_offer(fl_reference *ref, double energy_j, double time_s, int64_t time_ps);

typedef struct fl_score {
    double energy_j, makespan_s, mean_power_w, peak_power_w, edp, ed2p;
    double slowdown;              /* makespan over the default's, less 1 */
    double worst_window_slowdown; /* the worst over windows of work: equal shares of each stream's reference time; NAN
                                     where the reference names no workload or it has no windows */
    bool violated;                /* makespan_ps > fl_limit_ps(default, bound) */
    /* Regret in the objective asked for: J for energy, J s for EDP, J s^2 for ED2P. NAN where violated or not defined.
     * The clairvoyant regret is against `known` and is not defined (NAN) where the table is not exact: a reference that
     * a policy may well beat is no measure of what could have been reached. Below 0 the run itself is the best known.
     */
    double regret_static_j, regret_static_pct;
    double regret_clairvoyant_j, regret_clairvoyant_pct;
    /* Against the oracle at the run's own makespan, also where the run violates the bound or the table is only a
     * reference; a run faster than every schedule (rounding of picoseconds) is held against the fastest. NAN only
     * without a table. */
    double regret_at_own_slowdown_j;
    uint64_t switches;
} fl_score;

fl_status fl_score_run(const fl_run_result *run, const fl_reference *ref, fl_score *out, fl_diag *d);

/* Mean and half-width of the 95 % interval (Student's t) of count >= 1 values; half NAN for fewer than two. NANs
 * skipped. */
void fl_mean_interval(const double *value, size_t count, double *mean, double *half);
