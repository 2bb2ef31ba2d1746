/* Regret is against the best schedule known. Where a policy of a run is better than the clairvoyant schedule and the
 * baselines (it went to clocks at which its workload is only extrapolated, or --positions made the schedule coarse), it
 * is the reference itself. */
#pragma once

#include "harness/study/trial/trial.h"

#include <stdio.h>

/* The rows of one workload, policies and baselines: where one of them is better than what the regrets are against, it
 * becomes the reference of all of them, so that none is below 0, and its note says so. */
void fl_best_known(fl_row_result *row, size_t count, fl_objective objective);
/* A policy's row that stands alone, as those of a sweep do, whose other rows may be another shard's: where it is better
 * than the reference it cannot become theirs. It has no regret then, and its note says why. */
void fl_best_known_alone(fl_row_result *row, fl_objective objective);

/* How far above the least possible the clairvoyant schedules are at most, over all rows: one line; nothing where no row
 * has a bound. */
void fl_best_known_print(const fl_row_result *row, size_t count, FILE *out);
