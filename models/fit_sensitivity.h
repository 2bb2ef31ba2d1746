/* Frequency sensitivity against counters, by linear regression (DynaCo, SC '13, section 4.1 and Table 2). */
#ifndef FL_FIT_SENSITIVITY_H
#define FL_FIT_SENSITIVITY_H

#include "models/status.h"

#include <stddef.h>

#define FL_SENSITIVITY_METRICS_MAX 8

/* How much longer something takes at the low clock than at the high one, per how much lower that is: 1 where time goes
 * as 1/f, 0 where the clock does not matter. The paper's ratio of differences, made free of a kernel's length. NAN for
 * clocks or times that are not above 0, or equal clocks. */
double fl_sensitivity(double low_mhz, double low_s, double high_mhz, double high_s);

typedef struct fl_sensitivity_fit {
    size_t count, metrics;
    double intercept, weight[FL_SENSITIVITY_METRICS_MAX]; /* sensitivity per unit of the metric */
    double error[FL_SENSITIVITY_METRICS_MAX];             /* standard error of the weight; NAN without spare points */
    double correlation[FL_SENSITIVITY_METRICS_MAX];       /* of the metric alone; NAN where it is constant */
    double multiple;                                      /* of the whole regression: sqrt(R^2) */
    double rms;                                           /* of what is left */
    double spread[FL_SENSITIVITY_METRICS_MAX];            /* standard deviation of the metric */
    /* Of the weight's variance by the other metrics, >= 1. INFINITY where they determine the metric, or it is constant:
     * the data do not tell its weight; a constant one's is 0, others share what they explain together. */
    double inflation[FL_SENSITIVITY_METRICS_MAX];
    double condition; /* of the standardised metrics that vary: largest over smallest singular value */
    size_t rank;      /* how many directions of the metrics the data tell apart */
} fl_sensitivity_fit;

/* metric: count x metrics, row by row; sensitivity: count. Ordinary least squares with intercept on standardised
 * metrics, by singular values (GSL); directions below 1e-6 of the largest count as not told apart and get no weight.
 * FL_MODEL_INVALID for values that are not finite or too many metrics, FL_MODEL_NO_FIT for fewer points than metrics
 * + 1, or a sensitivity that is the same everywhere. */
fl_model_status fl_fit_sensitivity_linear(const double *metric, const double *sensitivity, size_t count, size_t metrics,
                                          fl_sensitivity_fit *fit);

#endif
