/* What a handful of noisy results supports: bootstrap intervals, paired differences, ranks.
 *
 * Values come as workloads x seeds, row by row; NAN = there is no such run. A run without randomness stands once, at
 * the first seed that has a value. The mean is the mean over workloads of the means over their seeds, so that no
 * workload counts more for having more runs.
 *
 * Intervals are 95 % percentile intervals of a two-level bootstrap (Davison and Hinkley, "Bootstrap Methods and their
 * Application", 1997, 3.8): workloads are drawn with replacement, then seeds within each drawn workload. One workload
 * alone is kept and only its seeds are drawn. With neither two workloads nor two seeds low and high are NAN. Seeded:
 * the same values give the same bytes. */
#ifndef FL_STATISTICS_H
#define FL_STATISTICS_H

#include "traces/diag.h"

typedef struct fl_bootstrap {
    uint64_t seed;
    size_t draws; /* at least 1 */
} fl_bootstrap;

#define FL_DRAWS_STANDARD 2000

typedef struct fl_interval {
    double mean, low, high; /* NAN where not defined */
    size_t workloads, runs; /* that had a value */
} fl_interval;

/* FL_NO_MEMORY only. */
fl_status fl_bootstrap_mean(const double *value, size_t workloads, size_t seeds, const fl_bootstrap *b,
                            fl_interval *out, fl_diag *d);

typedef struct fl_paired {
    fl_interval difference;    /* a - b, paired by workload and, where both have it, by seed */
    size_t wins, ties, losses; /* workloads whose mean difference is above tie, within it, below -tie */
} fl_paired;

/* a and b: workloads x seeds. What only one of them has is left out; where one of them has a single run of a workload,
 * all runs of the other are held against it. */
fl_status fl_bootstrap_paired(const double *a, const double *b, size_t workloads, size_t seeds, double tie,
                              const fl_bootstrap *o, fl_paired *out, fl_diag *d);

/* Ranks from 1 on, the largest first; equal values share the mean of their ranks; NAN has none (NAN).
 * order: room for count; afterwards the indices from first to last. */
void fl_ranks(const double *value, size_t count, size_t *order, double *rank);

typedef struct fl_rank_result {
    fl_interval rank; /* mean over the workloads where all policies have a value */
    size_t firsts;    /* workloads where it ranks first, alone or shared */
} fl_rank_result;

/* value: policies x workloads x seeds, larger is better; out: policies. All policies are redrawn together. */
fl_status fl_bootstrap_ranks(const double *value, size_t policies, size_t workloads, size_t seeds,
                             const fl_bootstrap *b, fl_rank_result *out, fl_diag *d);

/* Quantile by linear interpolation between order statistics (Hyndman and Fan 1996, type 7) of ascending values. */
double fl_quantile(const double *sorted, size_t count, double q);

#endif
