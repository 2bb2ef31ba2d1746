/* The parameters of hybrid power capping's static method (power-capping 3.2.2 and 3.2.3), for a GPU or a CPU, in the
 * paper's two steps:
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
#pragma once

#include "models/math/status.h"

#include <stddef.h>

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
