/* Means of a handful of noisy results, with intervals. Many means share their draws.
 *
 * Values come as workloads x seeds, row by row; NAN = no such run. A run without randomness stands once, at the first
 * seed that has a value. The mean is the mean over workloads of the means over their seeds, so that no workload has
 * more weight because it has more runs.
 *
 * Intervals are 95 % percentile intervals of a two-level bootstrap (Davison and Hinkley, "Bootstrap Methods and their
 * Application", 1997, 3.8): it draws workloads with replacement, then seeds within each drawn workload. A single
 * workload stays, and only its seeds are drawn. With neither two workloads nor two seeds, low and high are NAN. The
 * draws are seeded: the same values give the same bytes.
 *
 * The runs of a draw depend on the seed and on how many runs each workload has, not on the values. Means over the same
 * pattern of runs therefore use the same draws: fl_means makes those once and adds up eight means side by side. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/intern.h"

typedef struct fl_bootstrap {
    uint64_t seed;
    size_t draws; /* at least 1 */
} fl_bootstrap;

#define FL_DRAWS_STANDARD 2000

typedef struct fl_interval {
    double mean, low, high; /* NAN where not defined */
    size_t workloads, runs; /* number of workloads and of runs that had a value */
} fl_interval;

typedef struct fl_means_pattern fl_means_pattern;

typedef struct fl_means { /* begin with {.b = ...}, end with fl_means_free */
    fl_bootstrap b;
    uint64_t stream; /* stream of the random numbers: 0, or another one for draws that must differ */
    bool sums;       /* a draw is the sum over its workloads, not the mean: the values are already shares of a mean */
    fl_means_pattern *pattern;
    size_t count, room, held; /* number of patterns and room for them; number of values that wait */
    fl_intern by_runs;
} fl_means;

/* Sets all of *out except low and high, which fl_means_draw sets later: *out must stay at its address until then. The
 * caller may free value at once. */
fl_status fl_means_add(fl_means *m, const double *value, size_t workloads, size_t seeds, fl_interval *out, fl_diag *d);
/* Draws for all means that were added since the last call. */
fl_status fl_means_draw(fl_means *m, fl_diag *d);
void fl_means_free(fl_means *m);

/* One mean. Its only error is FL_NO_MEMORY, as for all functions here. */
fl_status fl_bootstrap_mean(const double *value, size_t workloads, size_t seeds, const fl_bootstrap *b,
                            fl_interval *out, fl_diag *d);

/* The ends of the interval of `draws` means in any order. The function reorders them. */
void fl_bootstrap_ends(double *mean, size_t draws, fl_interval *out);

/* Quantile by linear interpolation between order statistics (Hyndman and Fan 1996, type 7) of ascending values. */
double fl_quantile(const double *sorted, size_t count, double q);
