/* Fits the power part of a chip. The outer fit is a least squares (GSL, Levenberg-Marquardt) over the numbers that all
 * workloads share. The inner fit finds the best alpha and beta >= 0 of each workload, which are linear. All errors are
 * relative and robust (pseudo-Huber). */
#include "models/chip/inside.h"

#include "models/chip/chip.h"
#include "models/math/math.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SCALE 0.01  /* of the robust loss */
#define WEAK 2e-3   /* pull of the shared numbers towards their start */
#define RISE 1e-2   /* pull of V at the top towards 1, see cost_rows */
#define SMOOTH 4e-3 /* pull of V's slope towards that of its neighbours */
#define PARAMS_MAX (FL_CHIP_KNOTS + 2 * FL_CHIP_MEMS + 4)

typedef struct problem {
    const fl_chip_row *row;
    const fl_chip_span *span;
    const double *time_ref;
    size_t spans, count, size; /* size: shared numbers */
    fl_chip *chip;
    double start[PARAMS_MAX];
    double *alpha, *beta; /* per span, W */
    double *work;         /* 4 per row of the longest span */
    double *residual;     /* per row */
    fl_chip_law law;
    int floors;     /* V has one for each memory clock */
    int volt_given; /* V is not fitted */
} problem;

static double logistic(double x) { return 1 / (1 + exp(-x)); }

static void set_chip(problem *q, const gsl_vector *x) {
    fl_chip *c = q->chip;
    size_t k = 0;
    if (!q->volt_given) {
        c->volt[0] = 1;
        for (uint32_t i = 1; i < c->knots; i++)
            c->volt[i] = c->volt[i - 1] + exp(fmin(2, gsl_vector_get(x, k++)));
    }
    for (uint32_t i = 0; i < c->mems; i++)
        c->b0_w[i] = exp(fmin(10, gsl_vector_get(x, k++)));
    c->c_w = exp(fmin(10, gsl_vector_get(x, k++)));
    c->a0_w = exp(fmin(10, gsl_vector_get(x, k++)));
    c->stall = c->stall_memory = 1;
    if (q->floors)
        for (uint32_t i = 0; i < c->mems; i++)
            c->volt_floor[i] = 1 + exp(fmin(2, gsl_vector_get(x, q->size - c->mems + i)));
    if (q->law == FL_CHIP_FULL) {
        c->stall = logistic(gsl_vector_get(x, k++));
        c->stall_memory = logistic(gsl_vector_get(x, k++));
    }
}

/* Relative residuals of a span at its best alpha and beta, NaN where the power is not known. */
static void residuals_of(problem *q, size_t k, double *r) {
    const fl_chip_span s = q->span[k];
    double *a = q->work, *b = a + s.count, *z = b + s.count;
    double x = 0, y = 0;
    for (size_t i = 0; i < s.count; i++) {
        const fl_chip_row *row = &q->row[s.first + i];
        double base = 0;
        fl_chip_columns(q->chip, row->sm_mhz, row->mem_mhz, q->time_ref[k] / row->time_s, &a[i], &b[i], &base);
        a[i] /= row->power_w;
        b[i] /= row->power_w;
        z[i] = 1 - base / row->power_w;
        r[i] = 0;
    }
    for (int round = 0; round < 3; round++) {
        double aa = 0, ab = 0, bb = 0, az = 0, bz = 0;
        for (size_t i = 0; i < s.count; i++) {
            if (isnan(z[i]))
                continue;
            const double u = r[i] / SCALE, w = 1 / sqrt(1 + u * u);
            aa += w * a[i] * a[i];
            ab += w * a[i] * b[i];
            bb += w * b[i] * b[i];
            az += w * a[i] * z[i];
            bz += w * b[i] * z[i];
        }
        fl_chip_solve_two(aa, ab, bb, az, bz, &x, &y);
        for (size_t i = 0; i < s.count; i++)
            r[i] = a[i] * x + b[i] * y - z[i];
    }
    q->alpha[k] = x;
    q->beta[k] = y;
}

static int cost_rows(const gsl_vector *x, void *user, gsl_vector *f) {
    problem *q = user;
    set_chip(q, x);
    double *r = q->residual; /* f may be a column of a matrix */
    for (size_t k = 0; k < q->spans; k++)
        residuals_of(q, k, r + q->span[k].first);
    for (size_t i = 0; i < q->count; i++) {
        const double e = r[i];
        gsl_vector_set(f, i, isnan(e) ? 0 : copysign(sqrt(fl_chip_loss(e, SCALE)), e) / SCALE);
    }
    size_t at = q->count;
    const fl_chip *c = q->chip;
    const size_t steps = q->volt_given ? 0 : c->knots - 1;
    for (size_t i = 0; i < q->size; i++) /* steps of V may vanish, so their logarithms are only weakly held */
        gsl_vector_set(f, at++, (i < steps ? 0.02 : 1) * WEAK / SCALE * (gsl_vector_get(x, i) - q->start[i]));
    /* At one memory clock, P = c + s g(f) leaves the offset of g = V^2 f open. Of all V that never fall, the one whose
     * floor is flat also rises least. Where the data do not decide, the fit therefore prefers the least rise. */
    gsl_vector_set(f, at++, RISE / SCALE * (c->volt[c->knots - 1] - 1));
    for (uint32_t i = 1; i + 1 < c->knots; i++) {
        const double low = (c->volt[i] - c->volt[i - 1]) / log(c->knot_mhz[i] / c->knot_mhz[i - 1]);
        const double high = (c->volt[i + 1] - c->volt[i]) / log(c->knot_mhz[i + 1] / c->knot_mhz[i]);
        gsl_vector_set(f, at++, SMOOTH / SCALE * (high - low));
    }
    return GSL_SUCCESS;
}

/* Knots at the measured SM clocks, thinned evenly where there are many; all memory clocks are kept. */
static fl_model_status place_knots(const fl_chip_row *row, size_t count, fl_chip *c) {
    double *list = malloc((count + 1) * sizeof *list);
    if (!list)
        return FL_MODEL_NO_MEMORY;
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        list[i] = row[i].sm_mhz;
    gsl_sort(list, 1, count);
    for (size_t i = 0; i < count; i++)
        if (n == 0 || list[i] > list[n - 1] * 1.004)
            list[n++] = list[i];
    const size_t room = FL_CHIP_KNOTS, knots = n < room ? n : room;
    for (size_t i = 0; i < knots; i++)
        c->knot_mhz[i] = list[knots > 1 ? i * (n - 1) / (knots - 1) : 0];
    c->knot_mhz[knots - 1] = c->sm_ref;
    c->knots = (uint32_t)knots;
    for (size_t i = 0; i < count; i++)
        list[i] = row[i].mem_mhz;
    gsl_sort(list, 1, count);
    for (size_t i = 0; i < count && c->mems < FL_CHIP_MEMS; i++)
        if (c->mems == 0 || list[i] > c->mem_mhz[c->mems - 1] * 1.004)
            c->mem_mhz[c->mems++] = list[i];
    free(list);
    return FL_MODEL_OK;
}

/* The start of the search. A third of the lowest power belongs to no workload, and V rises by a third over the range.
 * Idle memory accounts for what the kernel with the smallest gain draws more from one memory clock to the next; this
 * decides where the data leave open how much of B0(m) is every kernel's beta B. */
static void first_guess(problem *q, double lowest_w) {
    double at[FL_CHIP_MEMS], least = INFINITY;
    size_t k = 0;
    const fl_chip *c = q->chip;
    for (uint32_t i = 1; i < c->knots && !q->volt_given; i++)
        q->start[k++] = log(0.35 / (double)c->knots);
    for (uint32_t i = 0; i < c->mems; i++) {
        at[i] = INFINITY;
        for (size_t j = 0; j < q->count; j++)
            if (fabs(q->row[j].mem_mhz - c->mem_mhz[i]) < 0.01 * c->mem_mhz[i])
                at[i] = fmin(at[i], q->row[j].power_w);
        least = fmin(least, at[i]);
    }
    for (uint32_t i = 0; i < c->mems; i++)
        q->start[k++] = log(0.2 * lowest_w + (isfinite(at[i]) ? at[i] - least : 0));
    q->start[k++] = log(0.1 * lowest_w);
    q->start[k++] = log(0.05 * lowest_w);
    if (q->law == FL_CHIP_FULL) {
        q->start[k++] = 0;
        q->start[k++] = 1;
    }
    for (uint32_t i = 0; q->floors && i < c->mems; i++)
        q->start[k++] = log(0.05);
    q->size = k;
}

/* Converts the standard deviations of the shared numbers, from the last Jacobian, into those of the chip's numbers. */
static fl_model_status set_spread(problem *q, const gsl_matrix *jacobian, double sigma) {
    fl_chip *c = q->chip;
    gsl_matrix *covariance = gsl_matrix_alloc(q->size, q->size);
    if (!covariance || fl_covariance(jacobian, covariance) != FL_MODEL_OK) {
        gsl_matrix_free(covariance);
        return FL_MODEL_NO_MEMORY;
    }
    double sd[PARAMS_MAX];
    for (size_t i = 0; i < q->size; i++)
        sd[i] = sigma * sqrt(fmax(0, gsl_matrix_get(covariance, i, i)));
    size_t k = q->volt_given ? 0 : c->knots - 1;
    /* V relative to its value at the lowest SM and the highest memory clock, which is c[0] = 1 or the floor there. V is
     * a sum of steps, so the covariances matter. */
    const double one = fl_chip_volt(c, c->sm_min, c->mem_ref);
    const size_t top_floor = q->size - 1;
    for (uint32_t i = 0; i < c->knots && !q->volt_given; i++) {
        double slope[PARAMS_MAX] = {0}, sum = 0;
        const int held = q->floors && c->volt_floor[c->mems - 1] > 1;
        for (uint32_t a = 1; a <= i; a++)
            slope[a - 1] = (c->volt[a] - c->volt[a - 1]) / one;
        if (held)
            slope[top_floor] = -c->volt[i] / one * (one - 1) / one;
        for (size_t a = 0; a < q->size; a++)
            for (size_t b = 0; b < q->size; b++)
                sum += slope[a] * slope[b] * gsl_matrix_get(covariance, a, b);
        c->volt_sd[i] = c->volt[i] > one ? sigma * sqrt(fmax(0, sum)) : 0;
    }
    for (uint32_t i = 0; i < c->mems; i++, k++)
        c->b0_sd[i] = c->b0_w[i] * sd[k];
    c->c_sd = c->c_w * sd[k++];
    c->a0_sd = c->a0_w * sd[k++];
    if (q->law == FL_CHIP_FULL) {
        c->stall_sd = c->stall * (1 - c->stall) * sd[k++];
        c->stall_memory_sd = c->stall_memory * (1 - c->stall_memory) * sd[k++];
    }
    gsl_matrix_free(covariance);
    return FL_MODEL_OK;
}

/* Rescales to V = 1 at the lowest SM and the highest memory clock; the powers do not change. */
static void scale_volt(problem *q) {
    fl_chip *c = q->chip;
    const double one = fl_chip_volt(c, c->sm_min, c->mem_ref);
    for (uint32_t i = 0; i < c->knots; i++)
        c->volt[i] /= one;
    for (uint32_t i = 0; i < c->mems; i++)
        c->volt_floor[i] /= one;
    c->c_w *= one;
    c->c_sd *= one;
    c->a0_w *= one * one;
    c->a0_sd *= one * one;
    for (size_t k = 0; k < q->spans; k++)
        q->alpha[k] *= one * one;
}

/* Where nothing stalls, the data cannot separate A0 or B0(m) from a part of alpha A or beta B that every workload has.
 * By convention the least alpha and the least beta are 0. A0 must not exceed the least measured slope, which the plain
 * law, with one V for all memory clocks, may miss. The powers do not change. */
static void share_least(problem *q) {
    fl_chip *c = q->chip;
    double alpha = INFINITY, beta = INFINITY;
    for (size_t k = 0; k < q->spans; k++) {
        alpha = fmin(alpha, q->alpha[k]);
        beta = fmin(beta, q->beta[k]);
    }
    if (q->spans <= 3) /* the minimum of so few says nothing about other workloads */
        alpha = beta = 0;
    if (c->a0_w + alpha > c->slope_w) /* false where that is NaN */
        alpha = fmax(c->slope_w, 0) - c->a0_w;
    for (size_t k = 0; k < q->spans; k++) {
        q->alpha[k] -= alpha;
        q->beta[k] -= beta;
    }
    c->a0_w += alpha;
    for (uint32_t i = 0; i < c->mems; i++)
        c->b0_w[i] += beta * c->mem_mhz[i] / c->mem_ref;
}

/* A and B: the powers of the most active workloads; alpha and beta are shares of them. */
static void set_loads(problem *q) {
    fl_chip *c = q->chip;
    double *sorted = q->work; /* the caller's buffer */
    for (int part = 0; part < 2; part++) {
        const double *of = part ? q->beta : q->alpha;
        memcpy(sorted, of, q->spans * sizeof *sorted);
        gsl_sort(sorted, 1, q->spans);
        *(part ? &c->b_w : &c->a_w) = fmax(sorted[(q->spans * 19 + 19) / 20 - 1], 1e-3);
    }
    for (size_t k = 0; k < q->spans; k++) {
        q->alpha[k] /= c->a_w;
        q->beta[k] /= c->b_w;
    }
}

static fl_model_status fit_shared(problem *q) {
    const size_t smooth = q->chip->knots > 2 ? q->chip->knots - 2 : 0, rows = q->count + q->size + smooth + 1;
    gsl_multifit_nlinear_parameters options = gsl_multifit_nlinear_default_parameters();
    options.solver = gsl_multifit_nlinear_solver_cholesky;
    gsl_multifit_nlinear_workspace *w = gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &options, rows, q->size);
    gsl_vector *x = gsl_vector_alloc(q->size);
    fl_model_status s = w && x ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    if (s == FL_MODEL_OK) {
        gsl_multifit_nlinear_fdf f = {.f = cost_rows, .n = rows, .p = q->size, .params = q};
        int info = 0;
        for (size_t i = 0; i < q->size; i++)
            gsl_vector_set(x, i, q->start[i]);
        if (gsl_multifit_nlinear_init(x, &f, w) != GSL_SUCCESS)
            s = FL_MODEL_NO_FIT;
        if (s == FL_MODEL_OK)
            (void)gsl_multifit_nlinear_driver(80, 1e-5, 1e-8, 1e-8, NULL, NULL, &info, w);
        double chi2 = 0;
        if (s == FL_MODEL_OK) {
            gsl_vector *last = gsl_vector_alloc(rows);
            if (!last)
                s = FL_MODEL_NO_MEMORY;
            else
                cost_rows(w->x, q, last); /* leaves the chip at the solution */
            gsl_vector_free(last);
            (void)gsl_blas_ddot(w->f, w->f, &chi2);
            double left = -(double)q->size - 2 * (double)q->spans;
            for (size_t i = 0; i < q->count; i++)
                left += isnan(q->row[i].power_w) ? 0 : 1;
            q->chip->power_left = left;
            if (s == FL_MODEL_OK)
                s = set_spread(q, w->J, left > 0 ? sqrt(chi2 / left) : (double)INFINITY);
        }
        if (!isfinite(chi2))
            s = FL_MODEL_NO_FIT;
    }
    gsl_vector_free(x);
    if (w)
        gsl_multifit_nlinear_free(w);
    return s;
}

fl_model_status fl_chip_fit_power(const fl_chip_row *row, const fl_chip_span *span, size_t spans,
                                  const double *time_ref, fl_chip_law law, fl_chip *chip) {
    fl_gsl_quiet();
    problem q = {.row = row, .span = span, .spans = spans, .time_ref = time_ref, .chip = chip, .law = law};
    double lowest = INFINITY;
    size_t longest = spans;
    for (size_t k = 0; k < spans; k++) {
        q.count = span[k].first + span[k].count > q.count ? span[k].first + span[k].count : q.count;
        longest = span[k].count > longest ? span[k].count : longest;
    }
    for (size_t i = 0; i < q.count; i++)
        lowest = fmin(lowest, row[i].power_w); /* fmin ignores NaN */
    fl_model_status s = isfinite(lowest) ? place_knots(row, q.count, chip) : FL_MODEL_NO_FIT;
    double *memory = s == FL_MODEL_OK ? calloc(2 * spans + 4 * longest + q.count + 8, sizeof *memory) : NULL;
    if (s == FL_MODEL_OK && !memory)
        s = FL_MODEL_NO_MEMORY;
    if (s == FL_MODEL_OK) {
        q.alpha = memory;
        q.beta = memory + spans;
        q.work = memory + 2 * spans;
        double *r = q.residual = q.work + 4 * longest;
        q.floors = chip->mems > 1;
        first_guess(&q, lowest);
        s = fit_shared(&q);
        if (s == FL_MODEL_OK && law == FL_CHIP_PLAIN && q.floors) {
            /* The simulator has one V(f), that at the highest memory clock; the fit repeats the other numbers with it.
             */
            scale_volt(&q);
            for (uint32_t i = 0; i < chip->knots; i++)
                chip->volt[i] = fl_chip_volt(chip, chip->knot_mhz[i], chip->mem_ref);
            memset(chip->volt_floor, 0, sizeof chip->volt_floor);
            q.floors = 0;
            q.volt_given = 1;
            first_guess(&q, lowest);
            s = fit_shared(&q);
        }
        for (size_t k = 0; s == FL_MODEL_OK && k < spans; k++)
            residuals_of(&q, k, r + span[k].first);
        if (s == FL_MODEL_OK) {
            scale_volt(&q);
            s = fl_chip_least_slope(row, span, spans, chip);
            if (law == FL_CHIP_PLAIN)
                share_least(&q);
            set_loads(&q);
        }
        if (s == FL_MODEL_OK)
            s = fl_chip_robust_pct(r, q.count, &chip->power_rms_pct, &chip->power_outliers);
        if (!(chip->power_left > 0))
            chip->power_rms_pct = NAN;
        if (s == FL_MODEL_OK) {
            const size_t stride = spans / FL_CHIP_SHARES + 1;
            for (size_t k = 0, n = 0; k < spans; k += stride, n++) {
                chip->share[n].alpha = q.alpha[k];
                chip->share[n].beta = q.beta[k];
                for (size_t i = span[k].first; i < span[k].first + span[k].count; i++) {
                    const uint32_t at = fl_chip_setting_of(chip, &row[i]);
                    if (at != UINT32_MAX)
                        chip->power_off[n][at] = -r[i]; /* r: law over measured - 1 */
                }
            }
            fl_chip_load_prior(chip, chip->load_mean, chip->load_cov);
            s = fl_chip_fit_error(row, r, span, spans, 2, &chip->power_error);
        }
    }
    chip->has_power = s == FL_MODEL_OK;
    free(memory);
    return s;
}
