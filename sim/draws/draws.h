/* A distribution replay, as EnergyUCB evaluates itself: no kernels. For each clock the replay knows the mean and
 * deviation of what one step costs, and how long the whole run takes.
 *
 * fl_draws_make reads distributions from a sweep, fl_draws_replay steps one policy over them; the caller frees both
 * results. FL_BAD_INPUT where the sweep has no row of the workload, or the policy refuses its parameters.
 *
 * At each step energy and core/uncore ratio are drawn for the clock in force (normal, drawn again while not positive)
 * and progress grows by step / run time. The run ends when progress reaches one, within the last step. The policy is
 * stepped through sim/instance and sees counters: energy and its time, core and uncore activity, the clock, and mean
 * power. A clock that it sets holds from the next step on. */
#pragma once

#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fl_draw_clock {
    double mhz, time_s;
    double energy_j, energy_sd_j; /* of one step, all GPUs */
    double ratio, ratio_sd;       /* core over uncore utilisation */
    double total_j;               /* of the whole run at this clock, as measured */
} fl_draw_clock;

typedef struct fl_draws {
    fl_draw_clock *clock; /* clock_count, ascending */
    size_t clock_count;
    int64_t step_ns;
    uint64_t steps_max; /* a run ends here, done or not; 0: it ends with the work */
    bool one_seed;      /* all repetitions draw alike */
} fl_draws;

typedef struct fl_draws_options { /* for what the rows of a sweep do not say */
    double step_ms;
    double steps_max;
    bool one_seed;
    double energy_cv, ratio_cv;
    double ratio, ratio_exponent; /* ratio (T(f) / T(top))^exponent */
    double best_mhz, slope;       /* best_mhz above 0: in place of the exponent. The cost of a step, energy times ratio,
                                     is then least at that clock, and grows by this share of it with each 100 MHz */
} fl_draws_options;

/* Make the distributions from the rows of one workload of a sweep (name: index into s->names), one row for each clock.
 * FL_BAD_INPUT where there are none. */
fl_status fl_draws_make(fl_draws *out, const fl_sweep *s, uint32_t name, const fl_draws_options *o, fl_diag *d);
void fl_draws_free(fl_draws *draws);

/* Return the seed of a repetition, counted from 0. With one_seed all have the first one's seed. */
uint64_t fl_draws_seed(const fl_draws *draws, uint64_t first, uint64_t repetition);

typedef struct fl_draws_run {
    const fl_draws *draws;
    const fl_facts *facts; /* its SM ladder is that of the draws; its seed seeds policy and draws */
    const fl_policy *policy;
    const char *label, *run; /* see fl_instance_options */
    const fl_layer *layer;
    size_t layer_count;
    fl_step_function on_step; /* may be NULL */
    void *user;
} fl_draws_run;

enum { FL_DRAWS_MARK = 1000 }; /* steps between the marks of the regret */

typedef struct fl_draws_result {
    double energy_j, time_s;
    double reward_regret; /* EnergyUCB Eq. 3: sum of mu* - mu_I over the steps, mu = -E UC/UU */
    uint64_t steps, switches, faults;
    double progress;     /* 1, or what was done by step steps_max */
    double *step_count;  /* clock_count: steps spent at each clock, the last one in part */
    double *regret_mark; /* mark_count: reward_regret after each FL_DRAWS_MARK steps */
    size_t mark_count, mark_room;
} fl_draws_result;

fl_status fl_draws_replay(const fl_draws_run *o, fl_draws_result *r, fl_diag *d);
void fl_draws_result_free(fl_draws_result *r);
