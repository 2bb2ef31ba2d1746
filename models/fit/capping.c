/* The model of hybrid power capping from measured powers. */
#include "models/fit/fit.h"

#include "models/math/math.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#define MHZ_PER_GHZ 1000.0
#define SCAN 400           /* starting values of C tried */
#define ITERATIONS_MAX 200 /* about ten are needed */
#define TOLERANCE 1e-12
#define LEAST_VOLT 0.9 /* of V(fmin): voltage does not fall as the clock rises, but readings scatter */

enum { A, B, C, FIRST_V }; /* unknowns: A, B, C, then V at every clock but the lowest */

typedef struct benchmarks {
    const double *mhz, *memory_w, *compute_w;
    size_t clocks;
} benchmarks;

double fl_capping_power(const fl_capping_chip *chip, double alpha, double beta, double mhz, double volt) {
    return alpha * chip->a_w * volt * volt * (mhz / MHZ_PER_GHZ) + beta * chip->b_w + chip->c_w * volt;
}

double fl_capping_time(double low_mhz, double low_s, double high_s, double mhz) {
    return fmax(low_s * low_mhz / mhz, high_s);
}

static double volt_of(const gsl_vector *x, size_t clock) { return clock ? gsl_vector_get(x, FIRST_V + clock - 1) : 1; }

/* Residuals: first the memory-bound benchmark at every clock, then the compute-bound one. */
static int residuals(const gsl_vector *x, void *user, gsl_vector *f) {
    const benchmarks *b = user;
    const fl_capping_chip chip = {
        .a_w = gsl_vector_get(x, A), .b_w = gsl_vector_get(x, B), .c_w = gsl_vector_get(x, C)};
    for (size_t i = 0; i < b->clocks; i++) {
        const double v = volt_of(x, i);
        gsl_vector_set(f, i, fl_capping_power(&chip, 0, 1, b->mhz[i], v) / b->memory_w[i] - 1);
        gsl_vector_set(f, b->clocks + i, fl_capping_power(&chip, 1, 0, b->mhz[i], v) / b->compute_w[i] - 1);
    }
    return GSL_SUCCESS;
}

static int slopes(const gsl_vector *x, void *user, gsl_matrix *j) {
    const benchmarks *b = user;
    const double a = gsl_vector_get(x, A), c = gsl_vector_get(x, C);
    gsl_matrix_set_zero(j);
    for (size_t i = 0; i < b->clocks; i++) {
        const double v = volt_of(x, i), ghz = b->mhz[i] / MHZ_PER_GHZ;
        const size_t k = b->clocks + i;
        gsl_matrix_set(j, i, B, 1 / b->memory_w[i]);
        gsl_matrix_set(j, i, C, v / b->memory_w[i]);
        gsl_matrix_set(j, k, A, v * v * ghz / b->compute_w[i]);
        gsl_matrix_set(j, k, C, v / b->compute_w[i]);
        if (i) {
            gsl_matrix_set(j, i, FIRST_V + i - 1, c / b->memory_w[i]);
            gsl_matrix_set(j, k, FIRST_V + i - 1, (2 * a * v * ghz + c) / b->compute_w[i]);
        }
    }
    return GSL_SUCCESS;
}

/* With C given, the memory-bound benchmark gives B and V, and the lowest clock of the other one A. */
static void start_from(const benchmarks *b, double c, gsl_vector *x) {
    gsl_vector_set(x, A, (b->compute_w[0] - c) / (b->mhz[0] / MHZ_PER_GHZ));
    gsl_vector_set(x, B, b->memory_w[0] - c);
    gsl_vector_set(x, C, c);
    for (size_t i = 1; i < b->clocks; i++)
        gsl_vector_set(x, FIRST_V + i - 1, fmax(0.05, 1 + (b->memory_w[i] - b->memory_w[0]) / c));
}

static void best_guess(benchmarks *b, gsl_vector *x, gsl_vector *f) {
    const double most = fmin(b->memory_w[0], b->compute_w[0]);
    double best = INFINITY, best_c = most / 2;
    for (int k = 1; k < SCAN; k++) {
        double squares;
        start_from(b, most * k / SCAN, x);
        residuals(x, b, f);
        gsl_blas_ddot(f, f, &squares);
        if (squares < best) {
            best = squares;
            best_c = most * k / SCAN;
        }
    }
    start_from(b, best_c, x);
}

static void errors(const gsl_vector *f, fl_capping_chip *out) {
    double squares = 0;
    for (size_t i = 0; i < f->size; i++) {
        const double e = fabs(gsl_vector_get(f, i));
        squares += e * e;
        out->worst_pct = fmax(out->worst_pct, 100 * e);
    }
    out->rms_pct = 100 * sqrt(squares / (double)f->size);
}

static fl_model_status sd_of_c(const gsl_multifit_nlinear_workspace *w, gsl_matrix *cov, double *sd_pct) {
    const gsl_vector *f = gsl_multifit_nlinear_residual(w), *x = gsl_multifit_nlinear_position(w);
    double squares;
    *sd_pct = NAN;
    gsl_blas_ddot(f, f, &squares);
    if (f->size == x->size)
        return FL_MODEL_OK;
    const fl_model_status s = fl_covariance(gsl_multifit_nlinear_jac(w), cov);
    if (s == FL_MODEL_OK)
        *sd_pct = 100 * sqrt(squares / (double)(f->size - x->size) * gsl_matrix_get(cov, C, C)) / gsl_vector_get(x, C);
    return s;
}

static fl_model_status solve(benchmarks *b, gsl_vector *x, gsl_multifit_nlinear_workspace *w, gsl_matrix *cov,
                             double *volt, fl_capping_chip *out) {
    gsl_multifit_nlinear_fdf fdf = {.f = residuals, .df = slopes, .n = 2 * b->clocks, .p = b->clocks + 2, .params = b};
    int why = 0;
    best_guess(b, x, gsl_multifit_nlinear_residual(w));
    if (gsl_multifit_nlinear_init(x, &fdf, w) != GSL_SUCCESS)
        return FL_MODEL_NO_FIT;
    const int end = gsl_multifit_nlinear_driver(ITERATIONS_MAX, TOLERANCE, TOLERANCE, 0, NULL, NULL, &why, w);
    /* GSL reports "no progress" at the minimum, to the last bit; at the very start it reports it as out of iterations.
     */
    if (end != GSL_SUCCESS && end != GSL_ENOPROG && why != GSL_ENOPROG)
        return FL_MODEL_NO_FIT;
    const gsl_vector *at = gsl_multifit_nlinear_position(w);
    fl_capping_chip r = {.a_w = gsl_vector_get(at, A), .b_w = gsl_vector_get(at, B), .c_w = gsl_vector_get(at, C)};
    bool sound = r.a_w > 0 && r.c_w > 0 && r.b_w >= 0;
    for (size_t i = 0; i < b->clocks; i++)
        sound = sound && volt_of(at, i) > LEAST_VOLT && isfinite(volt_of(at, i));
    if (!sound)
        return FL_MODEL_NO_FIT;
    errors(gsl_multifit_nlinear_residual(w), &r);
    if (sd_of_c(w, cov, &r.c_sd_pct) != FL_MODEL_OK)
        return FL_MODEL_NO_MEMORY;
    for (size_t i = 0; i < b->clocks; i++)
        volt[i] = volt_of(at, i);
    *out = r;
    return FL_MODEL_OK;
}

static bool positive(double x) { return x > 0 && isfinite(x); }

fl_model_status fl_fit_capping_chip(const double *mhz, size_t clocks, const double *memory_w, const double *compute_w,
                                    double *volt, fl_capping_chip *out) {
    if (clocks < 2)
        return FL_MODEL_NO_FIT;
    for (size_t i = 0; i < clocks; i++)
        if (!positive(mhz[i]) || !positive(memory_w[i]) || !positive(compute_w[i]) || (i && mhz[i] <= mhz[i - 1]))
            return FL_MODEL_INVALID;
    fl_gsl_quiet();
    benchmarks b = {mhz, memory_w, compute_w, clocks};
    const gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
    gsl_vector *x = gsl_vector_alloc(clocks + 2);
    gsl_matrix *cov = gsl_matrix_alloc(clocks + 2, clocks + 2);
    gsl_multifit_nlinear_workspace *w =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &how, 2 * clocks, clocks + 2);
    const fl_model_status s = x && cov && w ? solve(&b, x, w, cov, volt, out) : FL_MODEL_NO_MEMORY;
    gsl_multifit_nlinear_free(w);
    gsl_matrix_free(cov);
    gsl_vector_free(x);
    return s;
}

typedef struct run_point { /* one run: w = alpha a + beta b + c */
    double a, b, c, w;
} run_point;

static double error_at(const run_point *r, double alpha, double beta) {
    return (alpha * r->a + beta * r->b + r->c) / r->w - 1;
}

static double clamp(double x) { return fmin(fmax(x, 0), 1); }

/* The best point of one border: one of alpha and beta is given, the other follows by least squares of relative errors.
 */
static void best_on_border(const run_point r[2], bool alpha_given, double given, double *alpha, double *beta) {
    double up = 0, down = 0;
    for (int i = 0; i < 2; i++) {
        const double free = (alpha_given ? r[i].b : r[i].a) / r[i].w,
                     fixed = (alpha_given ? r[i].a : r[i].b) * given / r[i].w;
        up += free * (1 - r[i].c / r[i].w - fixed);
        down += free * free;
    }
    const double other = clamp(up / down); /* 0 of 0 / 0: power without it */
    *alpha = alpha_given ? given : other;
    *beta = alpha_given ? other : given;
}

fl_model_status fl_fit_capping_app(const fl_capping_chip *chip, double low_mhz, double low_w, double high_mhz,
                                   double high_volt, double high_w, fl_capping_app *out) {
    if (!positive(low_mhz) || !positive(low_w) || !positive(high_w) || !positive(high_volt) || !(high_mhz > low_mhz) ||
        !positive(chip->a_w) || !(chip->b_w >= 0) || !(chip->c_w >= 0))
        return FL_MODEL_INVALID;
    const run_point r[2] = {
        {chip->a_w * low_mhz / MHZ_PER_GHZ, chip->b_w, chip->c_w, low_w},
        {chip->a_w * high_volt * high_volt * high_mhz / MHZ_PER_GHZ, chip->b_w, chip->c_w * high_volt, high_w}};
    /* Both have the same B, so the difference comes from alpha alone. */
    double alpha = (r[1].w - r[1].c - (r[0].w - r[0].c)) / (r[1].a - r[0].a);
    double beta = chip->b_w > 0 ? (r[0].w - r[0].c - alpha * r[0].a) / chip->b_w : 0;
    if (!isfinite(alpha) || !isfinite(beta))
        return FL_MODEL_NO_FIT;
    if (!(alpha >= 0 && alpha <= 1 && beta >= 0 && beta <= 1)) {
        double best = INFINITY;
        for (int k = 0; k < 4; k++) {
            double at_alpha, at_beta;
            best_on_border(r, k < 2, k % 2, &at_alpha, &at_beta);
            const double squares =
                pow(error_at(&r[0], at_alpha, at_beta), 2) + pow(error_at(&r[1], at_alpha, at_beta), 2);
            if (squares < best) {
                best = squares;
                alpha = at_alpha;
                beta = at_beta;
            }
        }
    }
    *out = (fl_capping_app){.alpha = alpha,
                            .beta = beta,
                            .error_pct =
                                100 * fmax(fabs(error_at(&r[0], alpha, beta)), fabs(error_at(&r[1], alpha, beta)))};
    return FL_MODEL_OK;
}
