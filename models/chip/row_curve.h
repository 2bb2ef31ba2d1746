/* A workload's time or power as a smooth function of its clocks, from the workload's own rows alone. It tells how far
 * each row lies from the curve through the other rows. ln y is a Gaussian process over x = ln f and z = ln m:
 *
 *   K(a, b) = level^2 + slope^2 (x_a x_b + z_a z_b) + amplitude^2 exp(-(dx / length)^2 / 2 - (dz / length)^2 / 2)
 *             + noise^2 [a = b]
 *
 * The process knows no law of a chip, so it can judge the rows that laws are fitted to. With A = K^-1, row i lies [A
 * y]_i / A_ii off the curve of the others, with the variance 1 / A_ii (leave-one-out; Rasmussen and Williams 2006, Eq.
 * 5.12). */
#pragma once

#include "models/chip/chip.h"
#include "models/math/status.h"

#define FL_ROW_NOISE_TIME 0.005 /* shares: how well times and powers repeat; models/fit_chip*.c assume the same */
#define FL_ROW_NOISE_POWER 0.01

typedef struct fl_row_curve {
    size_t n;
    double *x, *z, *y;  /* ln clocks and ln of the value, each about its mean */
    double *inverse;    /* n x n */
    double *weight;     /* inverse y */
    char *known, *used; /* n entries each: whether the row has a value, and whether the curve uses it */
    double x_mean, z_mean, y_mean, noise;
} fl_row_curve;

/* Opens the curve of the powers if power is set, else that of the times. NO_FIT: fewer than 3 rows have a value. */
fl_model_status fl_row_curve_open(const fl_chip_row *row, size_t n, int power, fl_row_curve *curve);
void fl_row_curve_close(fl_row_curve *curve);

/* How far row i lies from the curve of all other rows in use, in ln y, and the standard deviation of that distance. NAN
 * where the row has no value. */
void fl_row_curve_off(const fl_row_curve *curve, size_t i, double *off, double *sd);
void fl_row_curve_drop(fl_row_curve *curve, size_t i);             /* takes the row out of the curve */
fl_model_status fl_row_curve_admit(fl_row_curve *curve, size_t i); /* puts it back */
double fl_row_curve_at(const fl_row_curve *curve, size_t without, double sm_mhz, double mem_mhz);
double fl_row_curve_slope(const fl_row_curve *curve, size_t without, double sm_mhz,
                          double mem_mhz); /* d ln y / d ln f */
