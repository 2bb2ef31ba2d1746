/* Trials of a search, many at a time: a spec on a pair of workload and seed each, and what they come to. */
#pragma once

#include "harness/study/trial/trial.h"

typedef struct fl_pair_job {
    size_t spec, pair, of;  /* pair: scene x seeds + seed; of: the caller's */
    double ratio, slowdown; /* what came out: objective over the default's; a share */
    bool runs, violated;    /* runs: the spec is for this workload */
} fl_pair_job;

typedef struct fl_search_sum { /* of one candidate over some pairs */
    double ratio, slowdown;    /* means: objective over the default's; a share. NAN where it ran on none */
    size_t runs, violated;     /* violated: those that broke a bound */
} fl_search_sum;

typedef fl_search_sum fl_pair_sum; /* sums in the place of means */

/* Fills what came out of each job, on o->threads threads. */
fl_status fl_pairs_run(fl_trials *t, const fl_comparison_options *o, fl_pair_job *job, size_t count, fl_diag *d);
void fl_pair_sum_add(fl_pair_sum *sum, const fl_pair_job *job);
fl_search_sum fl_pair_sum_mean(const fl_pair_sum *sum);

/* The pairs of the scenes used (by scene; NULL = all), in order; how many. pair: room for scenes x seeds. */
size_t fl_pairs_of(const fl_comparison_options *o, const bool *use, size_t *pair);

/* A spec on the scenes used, all seeds. FL_BAD_INPUT where no scene is used. */
fl_status fl_search_score(fl_trials *t, const fl_comparison_options *o, size_t spec, const bool *use,
                          fl_search_sum *out, fl_diag *d);
