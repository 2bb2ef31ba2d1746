/* Fits of single laws to measurements: idle power, the model of power capping, one kernel's time, frequency
 * sensitivity, a power sensor. (models/chip fits a whole chip.)
 *
 * Each fit is one pure function from measured points to constants. The caller owns every array; the functions keep
 * nothing. They return FL_MODEL_NO_FIT where the data do not determine the result, FL_MODEL_INVALID for impossible
 * values. */
#pragma once

#include "models/laws/device.h"
#include "models/math/math.h"

#include <stddef.h>
#include <stdint.h>

/* ---- idle power of a board from a log: C V and the clock tree, A0 V^2 f ---- */

/* One step of a log of one GPU. */
typedef struct fl_idle_reading {
    double util_pct, power_w, sm_mhz;
    double set_mhz; /* the clock that was set after the reading; NaN = none */
} fl_idle_reading;

typedef struct fl_idle_point {
    double sm_mhz, power_w; /* power: median of the readings */
    size_t readings;
} fl_idle_point;

/* Find idle power by clock, from a log of one GPU in order of time. Never mix GPUs: boards differ by several watts. A
 * reading counts where utilisation is 0, the clock is settled (it equals the clock of the reading before, or the clock
 * that was set after that one), and the next reading is not busy. The last condition holds because power is a mean over
 * a far shorter window than utilisation, so power shows a new kernel first. point: room for `count` entries; *points:
 * how many were written, ascending by clock. NO_FIT: no such reading. */
fl_model_status fl_idle_points(const fl_idle_reading *reading, size_t count, fl_idle_point *point, size_t *points);

typedef struct fl_idle_clock {
    double fixed_w; /* the part that depends neither on V nor on the clock: B0(m) */
    double c_w;     /* C: W per V */
    double a0_w;    /* A0: W per V^2 GHz */
    double rms_w, worst_w;
} fl_idle_clock;

/* Fits P = fixed + C V + A0 V^2 f (f in GHz) to the points by least squares, with V given for each point and all three
 * constants >= 0. Each clock has the same weight, however long the GPU idled at it. Where V is the same at all points,
 * the data cannot separate C from the fixed part, and C is 0. predicted_w: one value per point, or NULL. NO_FIT: fewer
 * than 3 points. */
fl_model_status fl_fit_idle_clock(const fl_idle_point *point, const double *volt, size_t count, fl_idle_clock *out,
                                  double *predicted_w);

/* ---- hybrid power capping's static method (power-capping 3.2.2 and 3.2.3), for a GPU or a CPU ----
 *
 * Its parameters, in the paper's two steps:
 *
 *   P(f) = alpha A V(f)^2 f + beta B + C V(f)             Eq. 2, V = 1 at the lowest clock
 *   T(f) = max(T(fmin) fmin / f, T(fmax))                 Eq. 3
 *
 * Step one runs once for a processor. It finds A, B, C and V(f) from the powers of a memory-bound (alpha 0, beta 1) and
 * a compute-bound (alpha 1, beta 0) benchmark at every clock. It solves both together, because the memory-bound
 * benchmark alone gives only B + C V(f), which many pairs of B and C fit. Step two runs once for an application. It
 * finds alpha and beta from the application's powers at the lowest and the highest clock.
 *
 * Clocks are MHz in the interface and GHz in A; powers are W. The caller owns every array; these functions keep
 * nothing. */

typedef struct fl_capping_chip { /* results of step one besides V(f) */
    double a_w;                  /* A: W per V^2 GHz */
    double b_w;                  /* B: W */
    double c_w;                  /* C: W per V */
    double rms_pct, worst_pct;   /* residuals of both benchmarks' powers against Eq. 2 */
    double c_sd_pct;             /* standard deviation of C from that scatter; NaN where no degree of freedom is left */
} fl_capping_chip;

/* mhz: `clocks` >= 2 values, strictly ascending. memory_w, compute_w: the benchmarks' powers at these clocks. volt:
 * room for `clocks` values, written on success. The fit is a least squares of relative errors. INVALID: a clock or
 * power is not above 0 and finite. NO_FIT: no positive A and C describe both benchmarks, or only with a V that falls
 * below 0.9. */
fl_model_status fl_fit_capping_chip(const double *mhz, size_t clocks, const double *memory_w, const double *compute_w,
                                    double *volt, fl_capping_chip *out);

typedef struct fl_capping_app { /* results of step two */
    double alpha, beta;         /* 0..1 */
    double error_pct;           /* the larger of the two relative errors: 0 unless alpha or beta was limited to 0..1 */
} fl_capping_app;

/* From the powers at the lowest and the highest clock, whose relative voltages are 1 and volt. Where the solution of
 * the equations violates 0 <= alpha, beta <= 1 (Eq. 2), the result is the nearest point of the border, in relative
 * power. */
fl_model_status fl_fit_capping_app(const fl_capping_chip *chip, double low_mhz, double low_w, double high_mhz,
                                   double high_volt, double high_w, fl_capping_app *out);

/* Eq. 2 and Eq. 3. */
double fl_capping_power(const fl_capping_chip *chip, double alpha, double beta, double mhz, double volt);
double fl_capping_time(double low_mhz, double low_s, double high_s, double mhz);

/* ---- one kernel's time against the SM clock, from its durations at two or more clocks ----
 *
 * T(f) = T(ref) ((c ref/f)^p +
 * m^p)^(1/p) + l. c, m, l >= 0 are shares at the reference clock (power-capping Eq. 3; the p-norm as in
 * models/laws/laws.h).
 *
 * Two clocks determine one number: l is then 0, c follows in closed form, and m follows from c. With three or more
 * clocks, c and l come from a least squares of the relative error; m makes the time at the reference exact. */

typedef struct fl_kernel_point {
    double sm_mhz, time; /* mean duration, any unit */
    double weight;       /* number of durations behind the mean */
} fl_kernel_point;

typedef struct fl_kernel_fit {
    double c, m, l;    /* shares at the reference clock, where the time is 1; c and m are terms of the p-norm */
    double mape_pct;   /* over the points */
    double unseen_pct; /* mean error on each point when it is left out; NAN with fewer than three */
} fl_kernel_fit;

/* count >= 2 points at distinct clocks, ascending; the highest is the reference. p >= 1, may be INFINITY. Durations
 * outside the law (shorter at a lower clock, or longer than in proportion) give the nearest case that the law allows.
 * INVALID: times or clocks that are not above 0. */
fl_model_status fl_fit_kernel(const fl_kernel_point *point, size_t count, double p, fl_kernel_fit *out);

/* The law's time over its time at the reference. */
double fl_kernel_time(const fl_kernel_fit *k, double p, double ref_over_f);

/* ---- the fold line of a kernel that bandwidth bounds, from the same points ----
 *
 * T(f) = T(ref) B(ref) / B(f), with B of fl_fold_line (models/laws/device.h; GEEPAFS Eq. 1 to 4). The result minimises
 * the squares of the relative errors of 1 / T, among all folds between the lowest and the highest clock and all slopes
 * low >= high >= 0. The points may also be readings of bandwidth or memory utilisation B: then time is 1 / B. */

typedef struct fl_fold_line_fit {
    fl_fold_line line;
    double mape_pct;   /* over the points */
    double unseen_pct; /* mean error on each point when it is left out; NAN with fewer than four */
} fl_fold_line_fit;

/* count >= 3 points at distinct clocks, ascending. INVALID: times or clocks that are not above 0. NO_FIT: no such line
 * is above 0 at all points. */
fl_model_status fl_fit_fold_line(const fl_kernel_point *point, size_t count, fl_fold_line_fit *out);

/* ---- a power sensor against the true course of power ----
 *
 * The functions find refresh period and phase in a log, replay an external meter's course through a fl_sensor_spec, and
 * match log and replay by one gain and one offset.
 *
 * Times are seconds on any clock (doubles, so count from the start of the recording, not from 1970); powers are W. The
 * caller owns every array; these functions keep nothing. They skip readings that are NaN ("[N/A]" in a log).
 *
 * There are two ways to say when the sensor refreshed. The simulator uses the grid phase + k x period. A real board
 * also refreshes late now and then, and may hold its average for ten periods when idle. fl_sensor_seen therefore takes
 * from the log only WHEN a new value appeared; the value itself always comes from the true course. */

/* The true course: watts[i] holds from time_s[i] until time_s[i + 1]; the last time ends the course. Times strictly
 * increase, all values are finite, count >= 2. */
typedef struct fl_sensor_course {
    const double *time_s, *watts;
    size_t count;
} fl_sensor_course;

/* The log: the value that a reader saw at each time. Times do not decrease; values may be NaN. */
typedef struct fl_sensor_log {
    const double *time_s, *watts;
    size_t count;
} fl_sensor_log;

typedef struct fl_sensor_match {
    double gain, offset; /* logged = gain x replayed + offset [W] */
    double rms;          /* of the residual [W] */
    double shift_s;      /* fl_sensor_align: meter time - log time */
    size_t used;         /* readings compared */
} fl_sensor_match;

/* ---- frequency sensitivity against counters, by linear regression (DynaCo, SC '13, section 4.1 and Table 2) ---- */

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

/* ---- a power sensor from its log: when it refreshes, its quantum, and how long it holds a value ----
 * With an external
 * meter beside it, also its averaging window, its lag and its gain. A log alone cannot reveal a window: many courses of
 * power could have produced it. */

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

/* ---- the control law of a board's power limit (fl_wall_spec), from logs with steps of the limit ---- */

typedef struct fl_limit_log {
    const double *time_s, *watts, *sm_mhz, *limit_w; /* count; time rises strictly; NAN: not known at that reading */
    size_t count;
} fl_limit_log;

typedef struct fl_limit_learnt {
    size_t downs, ups;   /* steps of the limit by 5 % or more that power followed */
    size_t moves, rises; /* moves of the clock in them that the numbers below come from */
    double period_s;     /* between moves down, or of the power readings where the two are alike */
    double aim;          /* median power under a limit that holds the clock, as a share of it */
    double exponent;     /* of the ratio of powers, by least squares over the moves down */
    double low, high;    /* the least and the greatest exponent of one move */
    double overshoot;    /* how far power falls below its later mean, as a share of the steps down */
    double filter_s;     /* time constant of the filter with which the law has that overshoot */
    double rise_s,
        rise_mhz;    /* median time between moves up after a step up, and the largest of them; NAN: no step up */
    bool rise_bound; /* without a largest move the law would have moved further */
} fl_limit_learnt;

/* FL_MODEL_NO_FIT: no step down that power followed, or none with two moves of the clock. */
fl_model_status fl_limit_learn(const fl_limit_log *log, size_t count, fl_limit_learnt *out);
