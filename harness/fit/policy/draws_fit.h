/* What a distribution replay (sim/draws/draws.h) needs and a table of published energies does not contain: run times, the
 * core/uncore ratio, and the variation of both. They follow from the rows of the policies with which EnergyUCB is
 * compared, and from the two regrets that its paper prints. EnergyUCB's own row of energies is not used.
 *
 *   1. Run times are T(f) = T(top) ((c top/f)^p + 1 - c^p)^(1/p). A round robin that takes each clock for one step uses
 *      sum(E/T) / sum(1/T), whatever it observes. The share c of each workload is the one that gives its published row.
 *   2. The ratio is r (T(f)/T(top))^g. Epsilon-greedy's choices depend on g and not on r. The exponent g of a workload
 *      is the smallest, on a grid, whose likelihood of the published row is within one standard deviation of the
 * largest.
 *   3. The regret of a round robin is r times a known number. This gives r, one for all workloads.
 *   4. One deviation of energy and ratio remains, the same for all workloads. It is the one, on a grid, with which
 *      EnergyUCB's mean regret over forty runs is nearest to the published one. Steps 2 and 3 are repeated for each. */
#pragma once

#include "traces/io/diag.h"

#include <stdint.h>

enum { FL_DRAWS_CLOCKS_MAX = 64, FL_DRAWS_WORKLOADS_MAX = 64 };

typedef struct fl_draws_row { /* one workload */
    const char *name;         /* borrowed */
    double energy_j[FL_DRAWS_CLOCKS_MAX];
    double top_time_s;
    double round_robin_j, epsilon_greedy_j; /* published */
    double core_share;                      /* c; NAN: to be found */
    /* outputs */
    double time_s[FL_DRAWS_CLOCKS_MAX]; /* in steps of 10 ms, as a sweep gives them */
    double round_robin_fit_j, epsilon_greedy_fit_j, exponent;
} fl_draws_row;

typedef struct fl_draws_fit {
    int32_t mhz[FL_DRAWS_CLOCKS_MAX]; /* ascending */
    uint32_t clock_count, row_count;
    fl_draws_row row[FL_DRAWS_WORKLOADS_MAX];
    double step_ms, sharpness; /* p */
    uint32_t regret_row; /* the row whose regrets are published, after this many steps, a multiple of FL_DRAWS_MARK */
    uint64_t regret_steps;
    double round_robin_regret, energyucb_regret; /* published */
    /* outputs */
    double ratio, cv, energyucb_regret_fit;
} fl_draws_fit;

/* Fills the outputs. FL_BAD_INPUT where a workload ends before the steps of the published regret. */
fl_status fl_draws_fit_run(fl_draws_fit *f, unsigned threads, fl_diag *d);
