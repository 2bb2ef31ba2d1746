/* What a power sensor is, learnt from its log: when it refreshes, in which steps, how long it holds a value; and beside
 * an external meter, over which window it averages, with which lag, and its gain. A log alone cannot tell a window: any
 * course of power might have been below it. */
#ifndef FL_SENSOR_LEARN_H
#define FL_SENSOR_LEARN_H

#include "models/sensor_fit.h"

typedef struct fl_sensor_learnt {
    double period_s, phase_s; /* of the refreshes, as fl_sensor_refreshes() has them */
    double quantum;           /* the readings are multiples of it; 0: of none that was tried */
    double held_s;            /* the longest time that a value stood */
    double step_w;            /* between low and high readings */
    size_t readings;          /* that are known */
    /* Beside a meter; all zero without one. */
    int64_t window_ns, lag_ns;
    fl_sensor_match match;               /* with these */
    double rms_pct;                      /* of the step */
    int64_t low_ns, high_ns;             /* windows, or lags, within these fit as well: an RMS of at most 1.25 times */
    int64_t next_window_ns, next_lag_ns; /* the best outside */
    double next_rms_pct;
} fl_sensor_learnt;

/* From the log alone. NO_FIT: fewer than 8 changes, or changes that keep no period. */
fl_model_status fl_sensor_learn(const fl_sensor_log *log, fl_sensor_learnt *out);

/* And from a meter's course over the same time; out must be what fl_sensor_learn() made of the same log. shift_s is
 * about what must be added to the log's clock to get the meter's; it is refined, by the more the longer the window is.
 * Windows without lag are tried from none to what the course covers, and lags without window; the one with the least
 * RMS is it. NO_FIT: the course does not cover enough of the log, or shows no step. */
fl_model_status fl_sensor_learn_window(const fl_sensor_course *course, const fl_sensor_log *log, double shift_s,
                                       fl_sensor_learnt *out);

/* The shift between the two clocks, to about a refresh, at which readings and course correlate best, over all shifts
 * that leave at least half of the shorter one. r: that correlation. NO_FIT: no such shift, or one of the two is flat.
 */
fl_model_status fl_sensor_shift(const fl_sensor_course *course, const fl_sensor_log *log, double *shift_s, double *r);

#endif
