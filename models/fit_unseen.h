/* How wrong a workload's fitted law is at settings that it was not fitted to. */
#ifndef FL_FIT_UNSEEN_H
#define FL_FIT_UNSEEN_H

#include "models/fit_workload.h"

typedef struct fl_fit_unseen_error {
    double time_pct, power_pct; /* mean absolute errors */
} fl_fit_unseen_error;

/* Cross-validation: fl_fit_workload to three quarters of the points, errors on the others, four times over. The errors
 * on points that were fitted are smaller, and nil where there are as many terms as points. NO_FIT, and NaN: fewer than
 * 3 points. */
fl_model_status fl_fit_unseen(const fl_device *dev, const fl_fit_point *point, size_t count, fl_fit_unseen_error *out);

#endif
