/* The interference of kernels that share a device's bandwidth, out of a sweep of kernels run together. */
#ifndef FL_FIT_CONTENTION_H
#define FL_FIT_CONTENTION_H

#include "models/status.h"

#include <stddef.h>

/* One point is a mix that bandwidth holds back: asked[i] = D, the sum of the bandwidth that its kernels ask for with
 * the SMs they have, 1 = all there is; slowdown[i] = its time together over its time at full speed. Without
 * interference the slowdown is D; with it D (1 + gamma (D - 1)), the law of fl_shares_capacity. Least squares of
 * slowdown / D - 1 on D - 1, through the origin. Points with D <= 1 say nothing and are left out.
 *
 * *gamma: >= 0. *rms: of the relative error in time that is left; may be NULL. FL_MODEL_NO_FIT where no point has D >
 * 1, FL_MODEL_INVALID for a slowdown that is not above 0 or not finite. */
fl_model_status fl_fit_interference(const double *asked, const double *slowdown, size_t count, double *gamma,
                                    double *rms);

#endif
