/* Finding parameters without running the whole grid: successive halving over workloads and seeds. Candidates are the
 * policies of an experiment, the values of their parameters among them.
 *
 * A trial is one candidate on one workload under one seed. In the first round every candidate has one trial, on the
 * same pair of workload and seed; then the worse part is dropped and the others get more, until one is left or all
 * pairs are used. Pairs come in a seeded order that takes workloads in turn. A candidate is judged by the mean of its
 * objective over the default's, those that broke the bound in any trial behind all that did not. */
#ifndef FL_SEARCH_H
#define FL_SEARCH_H

#include "harness/study/trial.h"

typedef struct fl_search_options {
    double keep;     /* share of the candidates that goes on, 0..1 */
    uint64_t seed;   /* of the order of the pairs */
    const bool *use; /* by scene: tuned on; NULL = all */
} fl_search_options;

typedef struct fl_search_result {
    size_t winner;        /* index of a spec */
    double ratio;         /* its mean objective over the default's, on what it was tuned on */
    bool held;            /* the bound, in every trial */
    size_t trials, whole; /* run, and those of the whole grid: of candidates, those on workloads that they are for */
    size_t rounds;
} fl_search_result;

/* FL_BAD_INPUT where no scene is used or no spec is for any. */
fl_status fl_search_run(fl_trials *t, const fl_comparison_options *o, const fl_search_options *how,
                        fl_search_result *out, fl_diag *d);

/* The mean objective of a spec over the default's on the scenes used, all seeds; *held: the bound, in all of them. NAN
 * where the spec is for none of them; FL_BAD_INPUT where no scene is used. */
fl_status fl_search_score(fl_trials *t, const fl_comparison_options *o, size_t spec, const bool *use, double *ratio,
                          bool *held, fl_diag *d);

#endif
