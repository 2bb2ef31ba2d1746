/* How much performance a higher clock still gains, and the clock beyond which it hardly gains any: the frequency
 * sensitivity of SweetSpot (Eq. 6) and its choice of alpha = f_sweet / f_max. The input is a sweep of one workload over
 * SM clocks, measured or simulated. */
#pragma once

#include "models/math/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct fl_slope_point {
    double mhz, time_s, power_w; /* given by the caller: the whole workload at this clock */
    /* Filled by fl_slope_fill, relative to the highest clock of the sweep, where each is 1. */
    double performance; /* p_norm(f) = time(f_max) / time(f) */
    double power;
    double efficiency; /* performance per power */
    /* Eq. 6: s(f_i) = (p_norm(f_i+1) - p_norm(f_i)) / ((f_i+1 - f_i) / f_max): 1 where performance is proportional to
     * the clock. NAN at the highest clock, which has no next one. */
    double slope;
} fl_slope_point;

typedef struct fl_sweet_spot {
    bool found;   /* false: no clock qualifies; the result is then the highest one, alpha 1 */
    size_t index; /* index of the point */
    double alpha; /* its clock over the highest */
} fl_sweet_spot;

/* Points by strictly ascending clock, at least one. FL_MODEL_INVALID: clocks that do not ascend, or a value that is not
 * finite and above 0. */
fl_model_status fl_slope_fill(fl_slope_point *point, size_t count);

/* The lowest clock with performance >= 1 - delta and slope <= epsilon (SweetSpot, 3.4: delta 0.05, epsilon 0.3), among
 * points that fl_slope_fill has filled. FL_MODEL_INVALID: no points, a delta outside 0..1, or an epsilon that is NAN.
 */
fl_model_status fl_slope_choose(const fl_slope_point *point, size_t count, double delta, double epsilon,
                                fl_sweet_spot *out);

/* Median of values in any order; the function sorts them. Of an even number, the mean of the middle two. NAN for none.
 */
double fl_slope_median(double *value, size_t count);
