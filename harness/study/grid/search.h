/* Finding parameters without running the whole grid: successive halving over workloads and seeds. Candidates are the
 * policies of an experiment, the values of their parameters among them.
 *
 * A trial is one candidate on one workload under one seed. In the first round every candidate has one trial, on the
 * same pair of workload and seed; then the worse part is dropped and the others get more, until one is left or all
 * pairs are used. Pairs come in a seeded order that takes workloads in turn. A candidate is judged by the mean of its
 * objective over the default's.
 *
 * One that was seen to break a bound is behind every one that was not, in every round, those that were dropped
 * included: they come back where those before them break a bound on a later pair. Under a bound the winner is run on
 * all pairs. So it holds all bounds on all of them, unless no candidate does: then it is who breaks them on the least
 * share of its pairs. */
#pragma once

#include "harness/study/grid/search_pairs.h"

typedef struct fl_search_options {
    double keep;     /* share of the candidates that goes on, 0..1 */
    uint64_t seed;   /* of the order of the pairs */
    const bool *use; /* by scene: tuned on; NULL = all */
} fl_search_options;

typedef struct fl_search_result {
    size_t winner;        /* index of a spec */
    fl_search_sum sum;    /* over what it ran on while it was tuned */
    size_t trials, whole; /* run, and those of the whole grid: of candidates, those on workloads that they are for */
    size_t rounds;
} fl_search_result;

/* FL_BAD_INPUT where no scene is used or no spec is for any. */
fl_status fl_search_run(fl_trials *t, const fl_comparison_options *o, const fl_search_options *how,
                        fl_search_result *out, fl_diag *d);
