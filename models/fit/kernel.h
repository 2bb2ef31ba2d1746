/* How one kernel's time depends on the SM clock, from its durations at two or more clocks: T(f) = T(ref) ((c ref/f)^p +
 * m^p)^(1/p) + l. c, m, l >= 0 are shares at the reference clock (power-capping Eq. 3; the p-norm as in models/laws/time.h).
 *
 * Two clocks determine one number: l is then 0, c follows in closed form, and m follows from c. With three or more
 * clocks, c and l come from a least squares of the relative error; m makes the time at the reference exact. */
#pragma once

#include "models/math/status.h"

#include <stddef.h>

typedef struct fl_kernel_point {
    double sm_mhz, time; /* mean duration, any unit */
    double weight;       /* number of durations behind the mean */
} fl_kernel_point;

typedef struct fl_kernel_fit {
    double c, m, l;    /* shares at the reference clock, where the time is 1; c and m are terms of the p-norm */
    double mape_pct;   /* over the points */
    double unseen_pct; /* mean error on each point when it is left out; NAN with fewer than three */
} fl_kernel_fit;

/* count >= 2 points at distinct clocks, ascending; the highest is the reference. p >= 1, may be INFINITY. Durations
 * outside the law (shorter at a lower clock, or longer than in proportion) give the nearest case that the law allows.
 * INVALID: times or clocks that are not above 0. */
fl_model_status fl_fit_kernel(const fl_kernel_point *point, size_t count, double p, fl_kernel_fit *out);

/* The law's time over its time at the reference. */
double fl_kernel_time(const fl_kernel_fit *k, double p, double ref_over_f);
