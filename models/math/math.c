/* Convex hulls, covariances, curves, least squares, slopes, and texts of a status. */
#include "models/math/math.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_interp.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- convex hulls ---- */

typedef struct hull_point {
    double x, y;
    uint32_t choice;
} hull_point;

static int by_x(const void *a, const void *b) {
    const hull_point *p = a, *q = b;
    if (p->x != q->x)
        return p->x < q->x ? -1 : 1;
    if (p->y != q->y)
        return p->y < q->y ? -1 : 1;
    return p->choice < q->choice ? -1 : p->choice > q->choice;
}

/* b lies on or above the line from a to c. */
static int above(const hull_point *a, const hull_point *b, const hull_point *c) {
    return (a->y - b->y) * (c->x - b->x) <= (b->y - c->y) * (b->x - a->x);
}

static size_t keep(hull_point *p, size_t count) {
    size_t kept = 0;
    qsort(p, count, sizeof *p, by_x);
    for (size_t i = 0; i < count; i++) {
        if (kept && p[i].y >= p[kept - 1].y)
            continue; /* slower, and not cheaper */
        while (kept > 1 && above(&p[kept - 2], &p[kept - 1], &p[i]))
            kept--;
        p[kept++] = p[i];
    }
    return kept;
}

fl_model_status fl_convex_new(fl_convex *c, const double *x, const double *y, size_t count) {
    hull_point *p = calloc(count, sizeof *p);
    *c = (fl_convex){.x = calloc(count, sizeof *c->x),
                     .y = calloc(count, sizeof *c->y),
                     .slope = calloc(count, sizeof *c->slope),
                     .choice = calloc(count, sizeof *c->choice)};
    if (!p || !c->x || !c->y || !c->slope || !c->choice) {
        free(p);
        return FL_MODEL_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++)
        p[i] = (hull_point){x[i], y[i], (uint32_t)i};
    c->count = keep(p, count);
    for (size_t i = 0; i < c->count; i++) {
        c->x[i] = p[i].x;
        c->y[i] = p[i].y;
        c->choice[i] = p[i].choice;
        if (i + 1 < c->count)
            c->slope[i] = (p[i].y - p[i + 1].y) / (p[i + 1].x - p[i].x);
    }
    free(p);
    return FL_MODEL_OK;
}

void fl_convex_free(fl_convex *c) {
    free(c->x);
    free(c->y);
    free(c->slope);
    free(c->choice);
    *c = (fl_convex){0};
}

double fl_convex_at(const fl_convex *c, double x) {
    size_t low = 0, high = c->count - 1;
    if (x <= c->x[0])
        return c->y[0];
    if (x >= c->x[high])
        return c->y[high];
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        *(c->x[middle] <= x ? &low : &high) = middle;
    }
    return c->y[low] - c->slope[low] * (x - c->x[low]);
}

/* ---- covariance ---- */

typedef struct space {
    gsl_matrix *r;
    gsl_vector *tau, *norm;
    gsl_permutation *order;
} space;

/* J P = Q R, so the inverse is P R^-1 R^-T P^T: of the leading part of R that has an inverse. */
static void invert(const space *s, gsl_matrix *covariance) {
    const size_t n = covariance->size1;
    size_t rank = 0;
    while (rank < n && gsl_matrix_get(s->r, rank, rank) != 0)
        rank++;
    gsl_matrix_set_zero(covariance);
    if (!rank)
        return;
    gsl_matrix_view part = gsl_matrix_submatrix(s->r, 0, 0, rank, rank);
    gsl_linalg_tri_invert(CblasUpper, CblasNonUnit, &part.matrix);
    for (size_t i = 0; i < rank; i++)
        for (size_t k = 0; k <= i; k++) {
            double sum = 0;
            for (size_t at = i; at < rank; at++)
                sum += gsl_matrix_get(s->r, i, at) * gsl_matrix_get(s->r, k, at);
            const size_t row = gsl_permutation_get(s->order, i), column = gsl_permutation_get(s->order, k);
            gsl_matrix_set(covariance, row, column, sum);
            gsl_matrix_set(covariance, column, row, sum);
        }
}

fl_model_status fl_covariance(const gsl_matrix *jacobian, gsl_matrix *covariance) {
    const size_t n = jacobian->size2;
    int sign = 0;
    space s = {gsl_matrix_alloc(jacobian->size1, n), gsl_vector_alloc(n), gsl_vector_alloc(n),
               gsl_permutation_alloc(n)};
    const fl_model_status status = s.r && s.tau && s.norm && s.order ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    if (status == FL_MODEL_OK) {
        gsl_matrix_memcpy(s.r, jacobian);
        gsl_linalg_QRPT_decomp(s.r, s.tau, s.order, &sign, s.norm);
        invert(&s, covariance);
    }
    gsl_matrix_free(s.r);
    gsl_vector_free(s.tau);
    gsl_vector_free(s.norm);
    gsl_permutation_free(s.order);
    return status;
}

/* ---- GSL's error handler ---- */

static void turn_off(void) { (void)gsl_set_error_handler_off(); }

void fl_gsl_quiet(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, turn_off);
}

/* ---- curves ---- */

struct fl_curve {
    double *x, *y;
    size_t count;
    gsl_interp *steffen; /* NULL with fewer than three points */
};

fl_model_status fl_curve_new(fl_curve **out, const double *x, const double *y, size_t count) {
    *out = NULL;
    if (count == 0)
        return FL_MODEL_INVALID;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(x[i]) || !isfinite(y[i]) || (i > 0 && !(x[i] > x[i - 1])))
            return FL_MODEL_INVALID;
    fl_curve *c = calloc(1, sizeof *c);
    if (!c)
        return FL_MODEL_NO_MEMORY;
    c->count = count;
    c->x = calloc(count, sizeof *c->x);
    c->y = calloc(count, sizeof *c->y);
    if (!c->x || !c->y)
        goto no_memory;
    memcpy(c->x, x, count * sizeof *x);
    memcpy(c->y, y, count * sizeof *y);
    if (count >= 3) {
        fl_gsl_quiet();
        c->steffen = gsl_interp_alloc(gsl_interp_steffen, count);
        if (!c->steffen)
            goto no_memory;
        if (gsl_interp_init(c->steffen, c->x, c->y, count) != 0) {
            fl_curve_free(c);
            return FL_MODEL_INVALID;
        }
    }
    *out = c;
    return FL_MODEL_OK;

no_memory:
    fl_curve_free(c);
    return FL_MODEL_NO_MEMORY;
}

void fl_curve_free(fl_curve *c) {
    if (!c)
        return;
    if (c->steffen)
        gsl_interp_free(c->steffen);
    free(c->x);
    free(c->y);
    free(c);
}

fl_model_status fl_curve_clone(fl_curve **out, const fl_curve *c) { return fl_curve_new(out, c->x, c->y, c->count); }

double fl_curve_first(const fl_curve *c) { return c->x[0]; }
double fl_curve_last(const fl_curve *c) { return c->x[c->count - 1]; }

fl_model_status fl_curve_at(const fl_curve *c, double x, int clamp, double *y) {
    const double first = c->x[0], last = c->x[c->count - 1];
    if (isnan(x))
        return FL_MODEL_INVALID;
    if ((x < first || x > last) && !clamp)
        return FL_MODEL_RANGE;
    if (x <= first) {
        *y = c->y[0];
    } else if (x >= last) {
        *y = c->y[c->count - 1];
    } else if (c->count == 2) {
        *y = c->y[0] + (c->y[1] - c->y[0]) * ((x - first) / (last - first));
    } else if (gsl_interp_eval_e(c->steffen, c->x, c->y, x, NULL, y) != 0) {
        /* No accelerator: it would be state shared between threads, and a bisection of a few points costs little. */
        return FL_MODEL_INVALID;
    }
    return FL_MODEL_OK;
}

bool fl_curve_has(const fl_curve *c, double x) {
    for (size_t i = 0; i < c->count; i++)
        if (fabs(c->x[i] - x) < 0.5)
            return true;
    return false;
}

/* ---- least squares ---- */

enum { ITERATIONS_MAX = 100 };
#define TOLERANCE 1e-9

typedef struct problem {
    fl_residuals fill;
    void *user;
    double *x, *f; /* copies without strides */
} problem;

static int residuals(const gsl_vector *x, void *user, gsl_vector *f) {
    const problem *p = user;
    for (size_t i = 0; i < x->size; i++)
        p->x[i] = gsl_vector_get(x, i);
    p->fill(p->user, p->x, p->f);
    for (size_t i = 0; i < f->size; i++) {
        if (!isfinite(p->f[i]))
            return GSL_EDOM;
        gsl_vector_set(f, i, p->f[i]);
    }
    return GSL_SUCCESS;
}

fl_model_status fl_least_squares(fl_residuals fill, void *user, double *x, size_t count, size_t n) {
    const gsl_multifit_nlinear_parameters parameters = gsl_multifit_nlinear_default_parameters();
    fl_gsl_quiet();
    gsl_multifit_nlinear_workspace *w = gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &parameters, n, count);
    gsl_vector *copy = gsl_vector_alloc(count), *values = gsl_vector_alloc(n);
    fl_model_status s = w && copy && values ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    if (s == FL_MODEL_OK) {
        problem p = {fill, user, copy->data, values->data};
        gsl_multifit_nlinear_fdf fdf = {.f = residuals, .n = n, .p = count, .params = &p};
        const gsl_vector_view start = gsl_vector_view_array(x, count);
        int why;
        const int begun = gsl_multifit_nlinear_init(&start.vector, &fdf, w);
        const int end =
            begun ? begun : gsl_multifit_nlinear_driver(ITERATIONS_MAX, TOLERANCE, TOLERANCE, 0, NULL, NULL, &why, w);
        /* no progress: it has reached the best point that finite differences can find */
        if (end && end != GSL_EMAXITER && end != GSL_ENOPROG)
            s = FL_MODEL_INVALID;
        const gsl_vector *at = gsl_multifit_nlinear_position(w);
        for (size_t i = 0; s == FL_MODEL_OK && i < count; i++)
            x[i] = gsl_vector_get(at, i);
    }
    gsl_vector_free(copy);
    gsl_vector_free(values);
    gsl_multifit_nlinear_free(w);
    return s;
}

/* ---- slopes ---- */

static bool positive(double x) { return x > 0 && isfinite(x); }

fl_model_status fl_slope_fill(fl_slope_point *point, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!positive(point[i].mhz) || !positive(point[i].time_s) || !positive(point[i].power_w) ||
            (i && !(point[i].mhz > point[i - 1].mhz)))
            return FL_MODEL_INVALID;
    if (!count)
        return FL_MODEL_INVALID;
    const fl_slope_point top = point[count - 1];
    for (size_t i = 0; i < count; i++) {
        fl_slope_point *p = &point[i];
        p->performance = top.time_s / p->time_s;
        p->power = p->power_w / top.power_w;
        p->efficiency = p->performance / p->power;
    }
    for (size_t i = 0; i + 1 < count; i++)
        point[i].slope =
            (point[i + 1].performance - point[i].performance) * top.mhz / (point[i + 1].mhz - point[i].mhz);
    point[count - 1].slope = NAN;
    return FL_MODEL_OK;
}

fl_model_status fl_slope_choose(const fl_slope_point *point, size_t count, double delta, double epsilon,
                                fl_sweet_spot *out) {
    if (!count || !(delta >= 0 && delta <= 1) || isnan(epsilon))
        return FL_MODEL_INVALID;
    *out = (fl_sweet_spot){.index = count - 1, .alpha = 1};
    for (size_t i = 0; i < count && !out->found; i++)
        if (point[i].performance >= 1 - delta && point[i].slope <= epsilon) /* false for a slope of NAN */
            *out = (fl_sweet_spot){.found = true, .index = i, .alpha = point[i].mhz / point[count - 1].mhz};
    return FL_MODEL_OK;
}

double fl_slope_median(double *value, size_t count) { return count ? gsl_stats_median(value, 1, count) : (double)NAN; }

/* ---- status ---- */

const char *fl_model_text(fl_model_status s) {
    switch (s) {
    case FL_MODEL_OK:
        return "no error";
    case FL_MODEL_RANGE:
        return "outside the calibrated or measured range";
    case FL_MODEL_INVALID:
        return "an argument that no device has (negative, not a number or not monotone)";
    case FL_MODEL_OVERFLOW:
        return "too large for the simulator's integers (a slowdown beyond 65 or a power beyond 2 MW)";
    case FL_MODEL_NO_MEMORY:
        return "out of memory";
    case FL_MODEL_NO_FIT:
        return "the data do not determine a fit";
    }
    return "unknown model status";
}
