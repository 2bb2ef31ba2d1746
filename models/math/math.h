/* Mathematics that all models share: the status of a model function, curves through points, convex hulls, slopes,
 * least squares.
 *
 * All functions are pure: no I/O, no state, no text. They return fl_model_status and leave messages to the caller
 * (fl_model_text gives a static text). What a _new function makes, the caller frees with the _free beside it. Files
 * that call GSL call fl_gsl_quiet first. */
#pragma once

#include <gsl/gsl_matrix.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fl_model_status {
    FL_MODEL_OK = 0,
    FL_MODEL_RANGE,    /* outside the calibrated or measured range; models extrapolate only on request */
    FL_MODEL_INVALID,  /* an impossible argument: negative, NaN, not monotone */
    FL_MODEL_OVERFLOW, /* does not fit the engine's integers (a slowdown beyond 65x, a power beyond 2 MW) */
    FL_MODEL_NO_MEMORY,
    FL_MODEL_NO_FIT /* a fit did not converge, or the data do not determine it */
} fl_model_status;

/* Static text, for diagnostics. */
const char *fl_model_text(fl_model_status s);

/* ---- curves: a monotone curve through points, for measured tables and V(f) ----
 *
 * It is Steffen's monotone cubic (GSL), which never
 * overshoots; through two points it is a line, through one a constant. */

typedef struct fl_curve fl_curve;

/* Make a curve from copies of the points. x must ascend strictly, and all values must be finite. fl_curve_free accepts
 * NULL. */
fl_model_status fl_curve_new(fl_curve **out, const double *x, const double *y, size_t count);
void fl_curve_free(fl_curve *c);
fl_model_status fl_curve_clone(fl_curve **out, const fl_curve *c);

/* Compute the value at x. Outside [first x, last x]: FL_MODEL_RANGE, or the end value if clamp is set. Thread-safe: it
 * uses no shared accelerator. */
fl_model_status fl_curve_at(const fl_curve *c, double x, int clamp, double *y);
double fl_curve_first(const fl_curve *c); /* smallest x */
double fl_curve_last(const fl_curve *c);
bool fl_curve_has(const fl_curve *c, double x); /* a point within 0.5 of x: between points the curve is a guess */

/* ---- convex hulls: the points (x, y) that some price on x selects ----
 *
 * With x the time of a kernel and y its energy, only points on the lower left of the hull are ever best, at any price
 * on time. */

typedef struct fl_convex {
    double *x, *y; /* count: x ascends, y descends */
    double *slope; /* count: y given up for each further x, (y[i] - y[i + 1]) / (x[i + 1] - x[i]); descends, last 0 */
    uint32_t *choice; /* count: which of the points given it is; of equal ones the first */
    size_t count;
} fl_convex;

/* Make the hull of `count` points, at least one, all finite. The caller frees *c, also after a failure. */
fl_model_status fl_convex_new(fl_convex *c, const double *x, const double *y, size_t count);
void fl_convex_free(fl_convex *c);

/* Return the vertex that minimises y + price x (price >= 0), by a search from vertex `near`. Of equal vertices the one
 * with the smallest x wins. */
static inline size_t fl_convex_pick(const fl_convex *c, double price, size_t near) {
    while (near + 1 < c->count && c->slope[near] > price)
        near++;
    while (near > 0 && c->slope[near - 1] <= price)
        near--;
    return near;
}

/* Return y of the hull at x; beyond its ends, y of the end. */
double fl_convex_at(const fl_convex *c, double x);

/* ---- slopes: how much performance a higher clock still gains ----
 *
 * The frequency sensitivity of SweetSpot (Eq. 6) and its choice of alpha = f_sweet / f_max. The input is a sweep of one
 * workload over SM clocks, measured or simulated. */

typedef struct fl_slope_point {
    double mhz, time_s, power_w; /* given by the caller: the whole workload at this clock */
    /* Filled by fl_slope_fill, relative to the highest clock of the sweep, where each is 1. */
    double performance; /* p_norm(f) = time(f_max) / time(f) */
    double power;
    double efficiency; /* performance per power */
    /* Eq. 6: s(f_i) = (p_norm(f_i+1) - p_norm(f_i)) / ((f_i+1 - f_i) / f_max): 1 where performance is proportional to
     * the clock. NAN at the highest clock, which has no next one. */
    double slope;
} fl_slope_point;

typedef struct fl_sweet_spot {
    bool found;   /* false: no clock qualifies; the result is then the highest one, alpha 1 */
    size_t index; /* index of the point */
    double alpha; /* its clock over the highest */
} fl_sweet_spot;

/* Points by strictly ascending clock, at least one. FL_MODEL_INVALID: clocks that do not ascend, or a value that is not
 * finite and above 0. */
fl_model_status fl_slope_fill(fl_slope_point *point, size_t count);

/* Find the lowest clock with performance >= 1 - delta and slope <= epsilon (SweetSpot, 3.4: delta 0.05, epsilon 0.3),
 * among points that fl_slope_fill has filled. FL_MODEL_INVALID: no points, a delta outside 0..1, or an epsilon that is
 * NAN.
 */
fl_model_status fl_slope_choose(const fl_slope_point *point, size_t count, double delta, double epsilon,
                                fl_sweet_spot *out);

/* Return the median of values in any order, and sort them. An even number gives the mean of the middle two; none gives
 * NAN. */
double fl_slope_median(double *value, size_t count);

/* ---- least squares ---- */

/* Compute the covariance of a least-squares solution, safe where any allocation may fail: gsl_multifit_nlinear_covar
 * does not check its own allocations. The result is (J^T J)^-1 of a Jacobian with at least as many rows as columns, by
 * QR with column pivoting. covariance is columns x columns. Where columns depend on others, their rows and columns of
 * the result are 0. Returns FL_MODEL_NO_MEMORY or FL_MODEL_OK. */
fl_model_status fl_covariance(const gsl_matrix *jacobian, gsl_matrix *covariance);

/* Turn GSL's error handler off for the whole process, once; thread-safe. GSL's handler would abort(), and a library
 * must not. Every file that calls GSL calls this first and checks GSL's return codes. */
void fl_gsl_quiet(void);

/* Least squares with priors: it minimises the sum of squares of the values that `residuals` fills. A prior is a
 * residual like any other: (parameter - expected value) / its spread. The method is Levenberg-Marquardt (GSL) with
 * slopes by finite differences, so parameters should be of the order of one. */

typedef void (*fl_residuals)(void *user, const double *x, double *residual);

/* x: count parameters, the start on entry and the solution on return. residuals: how many, at least count. Returns
 * FL_MODEL_NO_MEMORY, or FL_MODEL_INVALID where the residuals are not finite. */
fl_model_status fl_least_squares(fl_residuals fill, void *user, double *x, size_t count, size_t residuals);
