/* A workload's terms from its measured settings, on a device whose own constants are given: time terms by nonlinear
 * least squares on relative error, alpha and beta by linear least squares (GSL), all constrained to be >= 0. */
#ifndef FL_FIT_WORKLOAD_H
#define FL_FIT_WORKLOAD_H

#include "models/row.h"

typedef struct fl_fit_point {
    double sm_mhz, mem_mhz, time_s, power_w;
} fl_fit_point;

typedef struct fl_fit_result {
    fl_load load;                         /* ref clocks: those of the point `ref` */
    double time_mape_pct, power_mape_pct; /* over the points it was fitted to */
    double time_worst_pct, power_worst_pct;
} fl_fit_result;

/* count >= 2 points; ref: index of the reference point. The device's sharpness is used where > 0, else fitted. */
fl_model_status fl_fit_workload(const fl_device *dev, const fl_fit_point *point, size_t count, size_t ref,
                                fl_fit_result *out);

#endif
