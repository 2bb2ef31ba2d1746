/* What power the kernels of a program draw, from recordings that carry telemetry: two scales, of their core and of
 * their memory activity, that meet the recordings' mean power best. */
#ifndef FL_FIT_TRACE_POWER_H
#define FL_FIT_TRACE_POWER_H

#include "harness/fit/fit_trace_kernels.h"

typedef struct fl_trace_power {
    double alpha, beta; /* scales; 1 where no recording tells */
    size_t recordings;  /* they were fitted to; 0 = assumed */
    double mape_pct;    /* on these */
    double unseen_pct;  /* mean error on each recording when it is left out; NAN with fewer than two */
} fl_trace_power;

/* file: count recordings, of which those with kernels and power_w count; sm_mhz: clocks of those that do not say, 0 =
 * not given. seen: fitted. Kernels of a recording's first device, and that device's power. */
fl_status fl_fit_trace_power(const fl_device *dev, const fl_seen *seen, double sharpness, const fl_imported *file,
                             const double *sm_mhz, size_t count, fl_trace_power *out, fl_diag *d);

/* The memory term of the law that goes with core c and rest l at the reference clock, where all is 1. */
double fl_fit_trace_memory(double c, double l, double sharpness);

#endif
