/* MF-GPOEO: is the control stable (Algorithm 5), has the workload changed (Algorithm 6). */
#pragma once

#include <stdint.h>

enum { FL_MFP_TRACE_MAX = 16, FL_MFP_TRIED_MAX = 32, FL_MFP_FEATURES = 5 };

typedef struct fl_mfp_trace {     /* of the last measured configurations, the latest at count - 1 */
    double err[FL_MFP_TRACE_MAX]; /* (loss - bound) / bound */
    int32_t gear[FL_MFP_TRACE_MAX];
    uint32_t count;
} fl_mfp_trace;

/* Keeps the last `length` configurations. */
void fl_mfp_trace_add(fl_mfp_trace *t, uint32_t length, int32_t gear, double err);

/* Algorithm 5: the mean gear, rounded up; -1 where the control is not stable. range: largest difference of gears. */
int32_t fl_mfp_stable_gear(const fl_mfp_trace *t, uint32_t length, double th_ctrl, int32_t range);

typedef struct fl_mfp_tried { /* one measured gear under the chosen memory clock */
    double loss, bound, objective;
    double base_error, error; /* standard errors of the loss: of the database; of this measurement alone */
    int32_t gear;
} fl_mfp_tried;

/* The one of least objective among those whose loss stays `sigma` standard errors within its bound; where monotone,
 * once the losses have been made so: time does not fall with the clock (Sec. IV-C), so gears that say otherwise, and
 * several measurements of one gear, are averaged. The mean of several measurements is surer than each of them, but for
 * the database that they share. 0 where none is; else 1, and *best with what the averaging made of it. count <=
 * FL_MFP_TRIED_MAX. */
int fl_mfp_best_tried(const fl_mfp_tried *tried, uint32_t count, double sigma, int monotone, fl_mfp_tried *best);

/* Algorithm 6: mean of |a - b| / (a + b) over the features; those that are 0 in both, or NAN in either, are skipped.
 * NAN where none is left. */
double fl_mfp_distance(const double a[FL_MFP_FEATURES], const double b[FL_MFP_FEATURES]);
