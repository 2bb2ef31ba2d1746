/* Learns a power sensor from its log: when it refreshes, its quantum, and how long it holds a value. With an external
 * meter beside it, also its averaging window, its lag and its gain. A log alone cannot reveal a window: many courses of
 * power could have produced it. */
#pragma once

#include "models/fit/sensor_fit.h"

typedef struct fl_sensor_learnt {
    double period_s, phase_s; /* of the refreshes, as fl_sensor_refreshes() defines them */
    double quantum;           /* the readings are multiples of it; 0: of no quantum that was tried */
    double held_s;            /* the longest time that a value stayed unchanged */
    double step_w;            /* difference of low and high readings */
    size_t readings;          /* number of readings that are not NaN */
    /* Results beside a meter; all zero without one. */
    int64_t window_ns, lag_ns;
    fl_sensor_match match;   /* the match with this window and lag */
    double rms_pct;          /* RMS in percent of the step */
    int64_t low_ns, high_ns; /* windows, or lags, in this range fit as well: an RMS of at most 1.25 times the best */
    int64_t next_window_ns, next_lag_ns; /* the best fit outside this range */
    double next_rms_pct;
} fl_sensor_learnt;

/* From the log alone. NO_FIT: fewer than 8 changes, or changes that keep no period. */
fl_model_status fl_sensor_learn(const fl_sensor_log *log, fl_sensor_learnt *out);

/* Adds what a meter's course over the same time reveals. out must be the result of fl_sensor_learn() on the same log.
 * shift_s is approximately what must be added to the log's clock to get the meter's; the function refines it, over a
 * wider range the longer the window. It tries windows without lag, from none up to what the course covers, and lags
 * without window, and takes the one with the least RMS. NO_FIT: the course does not cover enough of the log, or shows
 * no step. */
fl_model_status fl_sensor_learn_window(const fl_sensor_course *course, const fl_sensor_log *log, double shift_s,
                                       fl_sensor_learnt *out);

/* The shift between the two clocks, to about a refresh, at which readings and course correlate best, over all shifts
 * that leave at least half of the shorter one. r: that correlation. NO_FIT: no such shift, or one of the two is
 * constant. */
fl_model_status fl_sensor_shift(const fl_sensor_course *course, const fl_sensor_log *log, double *shift_s, double *r);
