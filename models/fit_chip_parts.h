/* What the files fit_chip_*.c share; nothing for others. */
#ifndef FL_FIT_CHIP_PARTS_H
#define FL_FIT_CHIP_PARTS_H

#include "models/chip.h"

#include <math.h>

/* One workload's rows inside an array sorted by workload. */
typedef struct fl_chip_span {
    size_t first, count;
} fl_chip_span;

int fl_chip_row_is_sound(const fl_chip_row *r);

/* ln T at n settings of a workload whose parts at the reference clocks are (1-rest)(1-memory), (1-rest) memory and
 * rest. f_ratio: f_ref/f; h: fl_chip_memory_ratio. */
void fl_chip_shape(double sharpness, double memory, double rest, const double *f_ratio, const double *h, size_t n,
                   double *ln_time);

double fl_chip_covariance(const fl_chip_error *e, const fl_chip_row *a, const fl_chip_row *b); /* smooth part */

/* Pseudo-Huber: r^2 for |r| << scale, linear beyond. */
static inline double fl_chip_loss(double r, double scale) {
    return 2 * scale * scale * (sqrt(1 + r * r / (scale * scale)) - 1);
}

/* Finds scatter, smooth part and lengths of residuals r (one per row; NaN = none) by maximum likelihood over a grid.
 * parts: numbers that each workload's fit took from its own rows; residuals are the smaller for them, which is made up
 * for. */
fl_model_status fl_chip_fit_error(const fl_chip_row *row, const double *r, const fl_chip_span *span, size_t spans,
                                  double parts, fl_chip_error *e);

/* The time part of the chip; its clocks are set. time_ref: per span, s at the reference clocks. */
fl_model_status fl_chip_fit_time(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip_law law,
                                 fl_chip *chip, double *time_ref);
fl_model_status fl_chip_fit_power(const fl_chip_row *row, const fl_chip_span *span, size_t spans,
                                  const double *time_ref, fl_chip_law law, fl_chip *chip);

/* How far the law is off for a workload like `as` (its memory, rest, alpha, beta), by the chip's other workloads: mean
 * of their residuals, weighted with likeness; towards 0 where none is alike. _make: theirs at the rows' clocks (rows x
 * shares); _at: the mean for each row. */
void fl_chip_offs_make(const fl_chip *chip, int power, const fl_chip_row *row, size_t rows, double *offs);
void fl_chip_offs_at(const fl_chip *chip, int power, const double *offs, size_t rows, const fl_chip_share *as,
                     double *off);

/* Where the shares' activities lie at the reference clocks; time_ref: per span, s there. */
fl_model_status fl_chip_fill_activity(const fl_chip_row *row, const fl_chip_span *span, size_t spans,
                                      const double *time_ref, fl_chip *chip);
/* dram_width and unit_width, by cross-validation; all that a prediction needs but the errors is set. */
fl_model_status fl_chip_fit_activity(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip *chip);
/* Multiplies each share's weight with how alike its activities are to those of the known rows, and says by how much its
 * DRAM is more active; 0, and nothing done, where no activity counts. */
int fl_chip_weigh_activity(const fl_chip *chip, const fl_chip_row *known, size_t count, double *weight, double *dram);

/* What the others say of a workload alone: the chip without share k. rest may be chip itself. */
void fl_chip_leave_out(const fl_chip *chip, uint32_t k, fl_chip *rest);

/* chip->slope_w and its deviation; V and its deviation are set. */
fl_model_status fl_chip_least_slope(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip *chip);

/* The parts of time and power by the law named, and what the workloads are like; the rest of the chip is not set. */
fl_model_status fl_chip_fit_laws(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip_law law,
                                 fl_chip *chip);
/* Chips by FULL and PLAIN that were fitted without a quarter of the workloads, each quarter in turn. Nothing is drawn.
 */
#define FL_CHIP_FOLDS 4
#define FL_CHIP_TESTED 24 /* workloads: more add time, hardly knowledge */
typedef struct fl_chip_folds {
    size_t spans;
    fl_chip *chip[2]; /* by law, FL_CHIP_FOLDS each; NULL where there are fewer workloads than folds */
    int fitted[2];
} fl_chip_folds;
fl_model_status fl_chip_folds_make(size_t spans, fl_chip_folds *folds);
void fl_chip_folds_free(fl_chip_folds *folds);
/* Those of one law, unless they are there. NO_FIT: one of them cannot be fitted. */
fl_model_status fl_chip_folds_fit(const fl_chip_row *row, const fl_chip_span *span, fl_chip_law law,
                                  fl_chip_folds *folds);
size_t fl_chip_fold_of(const fl_chip_folds *folds, size_t k); /* the one without workload k */
int fl_chip_fold_tests(const fl_chip_folds *folds, size_t k); /* whether k is among those that are tested */

/* Which law predicts workloads left out better, and the errors of FULL and PLAIN in percent. */
typedef struct fl_chip_laws {
    fl_chip_law law;
    double time_pct[2], power_pct[2];
} fl_chip_laws;
fl_model_status fl_chip_choose_law(const fl_chip_row *row, const fl_chip_span *span, fl_chip_folds *folds,
                                   fl_chip_laws *laws);
/* Adds the mean absolute errors of a workload that the chip was not fitted to, of time (0) and power (1) by place,
 * known in the ways that fl_chip_cross tries; count: how many ways. */
fl_model_status fl_chip_add_errors(const fl_chip *chip, const fl_chip_row *row, size_t rows,
                                   double sum[2][FL_CHIP_PLACES], double count[2][FL_CHIP_PLACES]);

/* time_error's and power_error's growth and own factors by cross-validation, assumed where the workloads are too few
 * for that; all else of the chip is set. folds: NULL where the law was not fitted to the rows, so that leaving a
 * workload out of the chip's shares leaves it out of all. */
fl_model_status fl_chip_cross(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip_folds *folds,
                              fl_chip *chip);
/* Distance in ln clock from the nearest known row; *place: where it lies. */
double fl_chip_distance(const fl_chip_row *known, size_t count, const fl_chip_row *at, fl_chip_place *place);
/* Standard deviation in percent of a prediction whose own variance (of the logarithm) is given. */
double fl_chip_sd_pct(const fl_chip_error *e, const fl_chip_row *known, size_t count, const fl_chip_row *at,
                      double variance);
/* What a chip that cannot ask its own workloads has. */
void fl_chip_assume_growth(fl_chip *chip);
/* Prior of alpha and beta by the chip's shares: mean; variances and covariance. weight: of each share, NULL = all
 * alike. dram: by how much each one's DRAM is more active than the workload's, NULL = not known; alpha and beta are
 * lines in it. */
void fl_chip_load_prior(const fl_chip *chip, const double *weight, const double *dram, double mean[2], double cov[3]);

/* Distinct settings of the rows, thinned evenly where too many; index of a row's, or UINT32_MAX. */
fl_model_status fl_chip_place_settings(const fl_chip_row *row, size_t count, fl_chip *chip);
uint32_t fl_chip_setting_of(const fl_chip *chip, const fl_chip_row *row);

/* 1.4826 times the median of |r| in percent: a standard deviation that single wild rows do not move. *beyond: rows
 * farther off than 6 of these and 3 %. */
fl_model_status fl_chip_robust_pct(const double *r, size_t count, double *pct, size_t *beyond);

/* The parts of the prediction. ln_time: of known (may be measured), then asked rows. */
fl_model_status fl_chip_predict_time(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                     const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess,
                                     fl_chip_load *load);
/* guess holds the times, load the time at the reference clocks as the sum of its parts by the law. slope: of ln power
 * against ln time at each asked row, NULL = not wanted: units that wait draw less, so an error in time is one in power.
 * The deviations of power hold those of time times that. */
fl_model_status fl_chip_predict_power(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                      const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess,
                                      fl_chip_load *load, double *slope);
/* fl_chip_predict with the slopes; NaN where there is no power. */
fl_model_status fl_chip_predict_slopes(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                       const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess,
                                       fl_chip_load *load, double *slope);

/* Where the workloads of the calibration stand in the unit square, by their own rows alone: chip->share. */
fl_model_status fl_chip_fill_prior(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip *chip);

/* What multiplies A alpha and B beta, and the rest of the power, at one setting. rate: T at the reference over T. */
void fl_chip_columns(const fl_chip *c, double sm_mhz, double mem_mhz, double rate, double *core, double *memory,
                     double *base);
/* min |a x + b y - z|, x, y >= 0, from the normal equations. */
void fl_chip_solve_two(double aa, double ab, double bb, double az, double bz, double *x, double *y);

/* Cholesky in place of a symmetric positive definite n x n matrix (lower triangle, row by row); 0 where it is not. */
int fl_chip_cholesky(double *a, size_t n);
void fl_chip_lower_solve(const double *l, size_t n, double *x); /* L x = x */

#endif
