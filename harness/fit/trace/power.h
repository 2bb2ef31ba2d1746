/* The power of a program's kernels, from recordings that carry telemetry: two scales, for core activity and for memory
 * activity, that fit the recordings' mean power best. */
#pragma once

#include "harness/fit/trace/kernels.h"

typedef struct fl_trace_power {
    double alpha, beta; /* scales; 1 where no recording tells */
    size_t recordings;  /* recordings in the fit; 0 = the scales are assumed */
    double mape_pct;    /* mean error on these recordings */
    double unseen_pct;  /* mean error on each recording when it is left out; NAN with fewer than two */
} fl_trace_power;

/* file: count recordings; only those with kernels and power_w are used. sm_mhz: clocks for recordings that give none, 0
 * = not given. seen: fitted. The function uses the kernels of a recording's first device, and that device's power. */
fl_status fl_fit_trace_power(const fl_device *dev, const fl_seen *seen, double sharpness, const fl_imported *file,
                             const double *sm_mhz, size_t count, fl_trace_power *out, fl_diag *d);

/* The memory term of the law for core c and rest l at the reference clock, where the time is 1. */
double fl_fit_trace_memory(double c, double l, double sharpness);
