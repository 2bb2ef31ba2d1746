/* Policies over distribution replays (sim/draws/draws.h), as EnergyUCB evaluates itself: an experiment with "draws".
 *
 * "draws": {"step_ms": 10, "energy_cv": 0.1, "ratio": 1, "ratio_exponent": {"a": 1, "b": 0}, "ratio_cv": 0.1,
 * "steps_max": 100000, "one_seed": false}: what the sweep's rows do not say, each a number, or one for each workload. A
 * run ends with its work, or after steps_max steps (0, the standard: never); its row's note then says how much was
 * done. one_seed: all repetitions draw alike, as those of the released EnergyUCB. A variant may change any of them.
 * Slowdown, saving and regret are against the sweep's own rows: the top clock, and the clock of the least energy under
 * the bound.
 */
#pragma once

#include "harness/input/experiment/experiment.h"
#include "harness/study/compare/comparison.h"

/* The scenes are those of the experiment's sweep. Rows as fl_comparison_run makes them, without the clairvoyant ones.
 */
fl_status fl_draws_compare(const fl_experiment *e, const fl_comparison_options *o, fl_comparison *c, fl_diag *d);

/* The cumulative regret of every policy (EnergyUCB Eq. 3) as CSV: workload,policy,platform,variant,step,runs,
 * reward_regret,low,high; each thousand steps, mean over the seeds and its 95 % interval (harness/base/work/bootstrap.h), as
 * far as all runs of a policy went. */
fl_status fl_draws_write_regret(const fl_comparison *c, const char *path, uint64_t seed, fl_diag *d);

/* energy, saving, energy regret, Eq. 3 regret and slowdown together; each: by workload, over its seeds. */
void fl_draws_print(const fl_comparison *c, const fl_comparison_options *o, bool each, FILE *out);
