/* Frequency sensitivity against counters, by linear regression (DynaCo, SC '13, section 4.1 and Table 2). */
#pragma once

#include "models/math/status.h"

#include <stddef.h>

#define FL_SENSITIVITY_METRICS_MAX 8

/* The relative increase of time at the low clock over the relative decrease of the clock: 1 where time is proportional
 * to 1/f, 0 where the clock does not matter. It is the paper's ratio of differences, made independent of a kernel's
 * length. NAN for clocks or times that are not above 0, or for equal clocks. */
double fl_sensitivity(double low_mhz, double low_s, double high_mhz, double high_s);

typedef struct fl_sensitivity_fit {
    size_t count, metrics;
    double intercept, weight[FL_SENSITIVITY_METRICS_MAX]; /* sensitivity per unit of the metric */
    double error[FL_SENSITIVITY_METRICS_MAX];             /* standard error of the weight; NAN without spare points */
    double correlation[FL_SENSITIVITY_METRICS_MAX];       /* correlation with the metric alone; NAN where the metric is
                                                             constant */
    double multiple;                                      /* multiple correlation of the whole regression: sqrt(R^2) */
    double rms;                                           /* RMS of the residuals */
    double spread[FL_SENSITIVITY_METRICS_MAX];            /* standard deviation of the metric */
    /* Variance inflation of the weight by the other metrics, >= 1. INFINITY where the other metrics determine this one,
     * or where it is constant: the data then do not determine its weight. The weight of a constant metric is 0; metrics
     * that determine each other share what they explain together. */
    double inflation[FL_SENSITIVITY_METRICS_MAX];
    double condition; /* condition of the standardised metrics that vary: largest over smallest singular value */
    size_t rank;      /* number of directions of the metrics that the data distinguish */
} fl_sensitivity_fit;

/* metric: count x metrics, row by row; sensitivity: count values. Ordinary least squares with intercept on standardised
 * metrics, by singular values (GSL). Directions below 1e-6 of the largest count as indistinguishable and get no weight.
 * FL_MODEL_INVALID: values that are not finite, or too many metrics. FL_MODEL_NO_FIT: fewer points than metrics + 1, or
 * a sensitivity that is the same everywhere. */
fl_model_status fl_fit_sensitivity_linear(const double *metric, const double *sensitivity, size_t count, size_t metrics,
                                          fl_sensitivity_fit *fit);
