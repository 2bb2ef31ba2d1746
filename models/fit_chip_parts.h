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

/* chip->slope_w and its deviation; V and its deviation are set. */
fl_model_status fl_chip_least_slope(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip *chip);

/* time_error's and power_error's growth and width by cross-validation, assumed where the workloads are too few for
 * that; all else of the chip is set. */
fl_model_status fl_chip_cross(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip *chip);
/* What the others say of a workload alone: the chip without share k. */
void fl_chip_leave_out(const fl_chip *chip, uint32_t k, fl_chip *rest);
/* Distance in ln clock from the nearest known row; *outside: whether it lies beyond their clocks. */
double fl_chip_distance(const fl_chip_row *known, size_t count, const fl_chip_row *at, int *outside);
/* Standard deviation in percent of a prediction whose own variance (of the logarithm) is given. */
double fl_chip_sd_pct(const fl_chip_error *e, const fl_chip_row *known, size_t count, const fl_chip_row *at,
                      double variance);
/* What two workloads of a measured chip need for the others: 9 in 10 of the errors are within 2 deviations then. */
void fl_chip_assume_growth(fl_chip *chip);
void fl_chip_load_prior(fl_chip *chip); /* load_mean and load_cov of its shares */

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
/* guess holds the times, load the time at the reference clocks as the sum of its parts by the law. */
fl_model_status fl_chip_predict_power(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                      const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess,
                                      fl_chip_load *load);

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
