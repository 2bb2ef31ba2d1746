/* What the files of harness/base/work share. Other modules include the public header alone. */
#pragma once

#include "harness/base/work/work.h"

#include <stddef.h>

/* The ends of the interval of `draws` means in any order. The function reorders them. */
void fl_bootstrap_ends(double *mean, size_t draws, fl_interval *out);

/* Quantile by linear interpolation between order statistics (Hyndman and Fan 1996, type 7) of ascending values. */
double fl_quantile(const double *sorted, size_t count, double q);

typedef struct fl_ranked {
    double value;
    size_t index;
} fl_ranked;

/* Ranks from 1, the largest value first. Equal values share the mean of their ranks; a NAN gets NAN. room: count.
 * Returns the values with their indices, from first to last, in room. */
const fl_ranked *fl_ranks(const double *value, size_t count, fl_ranked *room, double *rank);
