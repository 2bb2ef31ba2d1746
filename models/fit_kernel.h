/* How one kernel's time depends on the SM clock, from its durations at two or more clocks: T(f) = T(ref) ((c ref/f)^p +
 * m^p)^(1/p) + l, with c, m, l >= 0 shares at the reference clock (power-capping Eq. 3; the p-norm as elsewhere).
 *
 * Two clocks know one number: then l = 0 and c follows in closed form, m from c. With three or more, c and l are fitted
 * by least squares of the relative error; m closes the time at the reference. */
#ifndef FL_FIT_KERNEL_H
#define FL_FIT_KERNEL_H

#include "models/status.h"

#include <stddef.h>

typedef struct fl_kernel_point {
    double sm_mhz, time; /* mean duration, any unit */
    double weight;       /* how many it is a mean of */
} fl_kernel_point;

typedef struct fl_kernel_fit {
    double c, m, l;    /* shares at the reference clock, c and m within the p-norm; their time there is 1 */
    double mape_pct;   /* over the points */
    double unseen_pct; /* mean error on each point when it is left out; NAN with fewer than three */
} fl_kernel_fit;

/* count >= 2 points at distinct clocks, ascending; the reference is the highest. p >= 1, may be INFINITY. Durations
 * outside what the law allows (shorter at a lower clock, or longer than in proportion) give its nearest case. INVALID:
 * times or clocks that are not above 0. */
fl_model_status fl_fit_kernel(const fl_kernel_point *point, size_t count, double p, fl_kernel_fit *out);

/* The law's time over that at the reference. */
double fl_kernel_time(const fl_kernel_fit *k, double p, double ref_over_f);

#endif
