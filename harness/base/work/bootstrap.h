/* Conclusions that a handful of noisy results supports: paired differences and ranks, with the intervals of
 * bootstrap_mean.h. */
#pragma once

#include "harness/base/work/bootstrap_mean.h"

typedef struct fl_paired {
    fl_interval difference;    /* a - b, paired by workload and, where both have the seed, by seed */
    size_t wins, ties, losses; /* workloads whose mean difference is above tie, within it, below -tie */
} fl_paired;

/* a and b: workloads x seeds. A run that only one of them has does not count. Where one of them has a single run of a
 * workload, all runs of the other are compared with it. fl_means_draw later sets the interval's ends. */
fl_status fl_means_add_paired(fl_means *m, const double *a, const double *b, size_t workloads, size_t seeds, double tie,
                              fl_paired *out, fl_diag *d);

typedef struct fl_ranked {
    double value;
    size_t index;
} fl_ranked;

/* Ranks from 1, the largest value first. Equal values share the mean of their ranks; a NAN gets NAN. room: 2 x count.
 * Returns the values with their indices, from first to last, in room. */
const fl_ranked *fl_ranks(const double *value, size_t count, fl_ranked *room, double *rank);

typedef struct fl_rank_result {
    fl_interval rank; /* mean over the workloads where all policies have a value */
    size_t firsts;    /* workloads where the policy ranks first, alone or tied */
} fl_rank_result;

/* value: policies x workloads x seeds, larger is better; out: one per policy. Each draw takes the same runs of all
 * policies. */
fl_status fl_bootstrap_ranks(const double *value, size_t policies, size_t workloads, size_t seeds,
                             const fl_bootstrap *b, fl_rank_result *out, fl_diag *d);
