/* What the files of models/chip share: error bars, the fits of time and power, folds of cross-validation, and small
 * linear algebra. Each file uses only files below it: parts.c, then posterior.c, power_guess.c, power.c, time.c,
 * cross.c, fit.c; kin.c uses all. */
#pragma once

#include "models/chip/chip.h"
#include "models/math/math.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

double fl_chip_memory_ratio(const fl_chip *chip, double sm_mhz, double mem_mhz); /* h */

/* How wide a chip's error bars must be, according to the errors of other chips.
 *
 * A chip that is fitted to several workloads can test itself: a chip fitted without one workload predicts that workload
 * from a few settings. The strain of an error is its size over the stated deviation, and the factor is what the stated
 * deviations lack. Few workloads give a poor estimate of it. Measurements of several GPUs show what a chip's own factor
 * means for workloads that the chip never saw:
 *
 *   ln factor = ln typical + trust (ln own - ln own_typical)
 *
 * A chip that cannot test itself has the typical factor. A chip made from a platform's constants alone has `spec`. */

enum { FL_CHIP_TIME, FL_CHIP_WATTS, FL_CHIP_KINDS };

typedef struct fl_chip_bar {
    double typical, own_typical, trust;
    double spec;
} fl_chip_bar;

typedef struct fl_chip_bars {
    fl_chip_bar of[FL_CHIP_KINDS][FL_CHIP_PLACES];
} fl_chip_bars;

extern const fl_chip_bars fl_chip_bars_measured; /* geometric means over the GPUs that were measured */

/* Sets the factors of the chip's errors (`wide`) from its own factors (`own`). */
void fl_chip_widen(fl_chip *chip, const fl_chip_bars *bars);

/* Strains: |error| over two stated deviations, before any factor. The caller frees list. */
typedef struct fl_chip_strains {
    double *list;
    size_t count, room;
} fl_chip_strains;

/* The factor that makes two deviations cover the intended share of the strains. The function sorts them. NaN: there are
 * none. The factor is at least a quarter: where errors in time explain those of power, the rest of a few rows may be 0
 * by chance. */
double fl_chip_covering(const fl_chip_strains *of);

/* One workload's rows inside an array sorted by workload. */
typedef struct fl_chip_span {
    size_t first, count;
} fl_chip_span;

int fl_chip_row_is_sound(const fl_chip_row *r);

/* ln T at n settings of a workload whose parts at the reference clocks are (1-rest)(1-memory), (1-rest) memory and
 * rest. f_ratio is f_ref/f; h is fl_chip_memory_ratio. */
void fl_chip_shape(double sharpness, double memory, double rest, const double *f_ratio, const double *h, size_t n,
                   double *ln_time);

double fl_chip_covariance(const fl_chip_error *e, const fl_chip_row *a, const fl_chip_row *b); /* smooth part */

/* Pseudo-Huber: r^2 for |r| << scale, linear beyond. */
static inline double fl_chip_loss(double r, double scale) {
    return 2 * scale * scale * (sqrt(1 + r * r / (scale * scale)) - 1);
}

/* Finds the scatter, the smooth part and the lengths of residuals r (one per row; NaN = none) by maximum likelihood
 * over a grid. parts: how many numbers each workload's fit took from its own rows. These numbers make the residuals
 * smaller; the function corrects for that. */
fl_model_status fl_chip_fit_error(const fl_chip_row *row, const double *r, const fl_chip_span *span, size_t spans,
                                  double parts, fl_chip_error *e);

/* Fits the time part of the chip, whose clocks are already set. time_ref: per span, the time in s at the reference
 * clocks. */
fl_model_status fl_chip_fit_time(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip_law law,
                                 fl_chip *chip, double *time_ref);
fl_model_status fl_chip_fit_power(const fl_chip_row *row, const fl_chip_span *span, size_t spans,
                                  const double *time_ref, fl_chip_law law, fl_chip *chip);

/* How far the law is off for a workload like `as` (its memory, rest, alpha, beta), according to the chip's other
 * workloads: the mean of their residuals, weighted with likeness, and near 0 where no workload is alike. _make computes
 * their residuals at the rows' clocks (rows x shares); _at computes the mean for each row. */
void fl_chip_offs_make(const fl_chip *chip, int power, const fl_chip_row *row, size_t rows, double *offs);
void fl_chip_offs_at(const fl_chip *chip, int power, const double *offs, size_t rows, const fl_chip_share *as,
                     double *off);

/* Copies the chip without share k, so that only the other workloads describe workload k. rest may be chip itself. */
void fl_chip_leave_out(const fl_chip *chip, uint32_t k, fl_chip *rest);

/* Sets chip->slope_w and its deviation; V and its deviation must be set. */
fl_model_status fl_chip_least_slope(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip *chip);

/* Fits the parts of time and power by the given law, and the workloads' shares. It does not set the rest of the chip.
 */
fl_model_status fl_chip_fit_laws(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip_law law,
                                 fl_chip *chip);
/* Chips by FULL and by PLAIN, fitted without a quarter of the workloads, each quarter in turn. Nothing is random. */
#define FL_CHIP_FOLDS 4
#define FL_CHIP_TESTED 24 /* workloads at most: more add time but little knowledge */
typedef struct fl_chip_folds {
    size_t spans;
    fl_chip *chip[2]; /* one array per law, FL_CHIP_FOLDS chips each; NULL where there are fewer workloads than folds */
    int fitted[2];
} fl_chip_folds;
fl_model_status fl_chip_folds_make(size_t spans, fl_chip_folds *folds);
void fl_chip_folds_free(fl_chip_folds *folds);
/* Fits the folds of one law unless they are fitted already. NO_FIT: one of them cannot be fitted. */
fl_model_status fl_chip_folds_fit(const fl_chip_row *row, const fl_chip_span *span, fl_chip_law law,
                                  fl_chip_folds *folds);
size_t fl_chip_fold_of(const fl_chip_folds *folds, size_t k); /* index of the fold fitted without workload k */
int fl_chip_fold_tests(const fl_chip_folds *folds, size_t k); /* whether workload k is one of the tested ones */

/* Which law better predicts workloads that were left out, and the errors of FULL and PLAIN in percent. */
typedef struct fl_chip_laws {
    fl_chip_law law;
    double time_pct[2], power_pct[2];
} fl_chip_laws;
fl_model_status fl_chip_choose_law(const fl_chip_row *row, const fl_chip_span *span, fl_chip_folds *folds,
                                   fl_chip_laws *laws);
/* Adds the mean absolute errors of a workload that the chip was not fitted to, of time (0) and power (1), by place. The
 * function predicts the workload from the same choices of known settings that fl_chip_cross tries; count says how many.
 */
fl_model_status fl_chip_add_errors(const fl_chip *chip, const fl_chip_row *row, size_t rows,
                                   double sum[2][FL_CHIP_PLACES], double count[2][FL_CHIP_PLACES]);

/* Sets the growth and own factors of time_error and power_error by cross-validation, or to assumed values where the
 * workloads are too few. All else of the chip must be set. folds is NULL where the law was not fitted to the rows:
 * removing a workload from the chip's shares then removes it completely. */
fl_model_status fl_chip_cross(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip_folds *folds,
                              fl_chip *chip);
/* Distance in ln clock from the nearest known row; *place says where the setting lies. */
double fl_chip_distance(const fl_chip_row *known, size_t count, const fl_chip_row *at, fl_chip_place *place);
/* Standard deviation in percent of a prediction with the given variance of its logarithm. */
double fl_chip_sd_pct(const fl_chip_error *e, const fl_chip_row *known, size_t count, const fl_chip_row *at,
                      double variance);
/* Sets the growth that is assumed for a chip that cannot test its own workloads. */
void fl_chip_assume_growth(fl_chip *chip);
/* Prior of alpha and beta by the chip's shares: mean, variances and covariance. */
void fl_chip_load_prior(const fl_chip *chip, double mean[2], double cov[3]);

/* _place_settings stores the distinct settings of the rows in the chip, thinned evenly where there are too many.
 * _setting_of returns the index of a row's setting, or UINT32_MAX. */
fl_model_status fl_chip_place_settings(const fl_chip_row *row, size_t count, fl_chip *chip);
uint32_t fl_chip_setting_of(const fl_chip *chip, const fl_chip_row *row);

/* 1.4826 times the median of |r| in percent: a standard deviation that single outliers do not move. *beyond: how many
 * rows lie farther off than 6 of these and 3 %. */
fl_model_status fl_chip_robust_pct(const double *r, size_t count, double *pct, size_t *beyond);

/* The two parts of fl_chip_predict. The first predicts times. */
fl_model_status fl_chip_predict_time(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                     const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess,
                                     fl_chip_load *load);
/* Predicts powers. On entry guess holds the times, and load holds the time at the reference clocks as the sum of its
 * parts by the law. slope: the slope of ln power against ln time at each asked row, NULL = not wanted. Units that wait
 * draw less power, so an error in time causes one in power. The deviations of power include the deviation of time
 * multiplied by this slope. */
fl_model_status fl_chip_predict_power(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                      const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess,
                                      fl_chip_load *load, double *slope);
/* fl_chip_predict by the chip's laws alone, with these slopes; they are NaN where the chip has no power law. */
fl_model_status fl_chip_predict_slopes(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                       const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess,
                                       fl_chip_load *load, double *slope);

double fl_two_laws_height(double x); /* h(x): the power left at x of the top clock, of a program that follows V^2 f */
/* fl_chip_predict by laws of the workload's own (FL_CHIP_OWN). */
fl_model_status fl_two_laws_predict(const fl_chip_row *known, size_t known_count, const fl_chip_row *asked,
                                    size_t asked_count, fl_chip_guess *guess);

/* Sets chip->share: where each workload of the calibration lies in the unit square of memory and rest, by its own rows
 * alone. */
fl_model_status fl_chip_fill_prior(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip *chip);

/* The parts of a share, of a time of 1 at the reference clocks. */
fl_chip_load fl_chip_load_of(const fl_chip_share *s);

/* The factors of A alpha and of B beta, and the remaining power, at one setting. rate: T at the reference over T. */
void fl_chip_columns(const fl_chip *c, double sm_mhz, double mem_mhz, double rate, double *core, double *memory,
                     double *base);
/* Minimises |a x + b y - z| over x, y >= 0, from the normal equations. */
void fl_chip_solve_two(double aa, double ab, double bb, double az, double bz, double *x, double *y);

/* In-place Cholesky factor of a symmetric n x n matrix (lower triangle, row by row). Returns 0 where the matrix is not
 * positive definite. */
int fl_chip_cholesky(double *a, size_t n);
void fl_chip_lower_solve(const double *l, size_t n, double *x); /* L x = x */
