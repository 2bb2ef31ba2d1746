#include "models/fit_workload.h"
#include "models/gsl_quiet.h"
#include "models/time.h"

#include <gsl/gsl_multimin.h>
#include <math.h>
#include <stdlib.h>

/* What the data cannot tell apart is decided by small weights, at a time of one at the reference: on the squares of tc
 * and tm, so that a compute-bound workload gets no memory term that its times never show; and on tl itself, so that tl
 * is exactly zero unless the times ask for it (power-capping Eq. 3 has no third term, and a part that no clock changes
 * is memory time first). They stand for relative errors of 0.03 % and 0.14 %, below what a measurement resolves. */
#define TERM_WEIGHT 1e-7
#define REST_WEIGHT 2e-6

#define GRID 20 /* steps of each share of the starting grid */
#define STARTS 6
#define SHARPNESS_MAX 64.0

typedef struct problem {
    const fl_fit_point *point;
    size_t count, ref;
    double fixed_sharpness; /* 0: fitted too */
} problem;

typedef struct terms {
    double tc, tm, tl, p;
} terms;

static double model_at(const problem *q, const terms *t, size_t i) {
    const fl_fit_point *a = &q->point[i], *ref = &q->point[q->ref];
    return fl_time_at(t->tc, t->tm, t->tl, t->p, ref->sm_mhz / a->sm_mhz, ref->mem_mhz / a->mem_mhz);
}

/* The law is homogeneous in its terms, so the scale that fits best (least squares of model/measured - 1) is closed. */
static double best_scale(const problem *q, const terms *t) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < q->count; i++) {
        const double g = model_at(q, t, i) / q->point[i].time_s;
        sum += g;
        squares += g * g;
    }
    return squares > 0 ? sum / squares : 0;
}

/* Mean squared relative error plus the weights, for terms of any scale. */
static double cost_of(const problem *q, const terms *t) {
    const double scale = best_scale(q, t), unit = 1 / model_at(q, t, q->ref);
    double cost = 0;
    for (size_t i = 0; i < q->count; i++) {
        const double r = scale * model_at(q, t, i) / q->point[i].time_s - 1;
        cost += r * r;
    }
    return cost / (double)q->count + unit * unit * TERM_WEIGHT * (t->tc * t->tc + t->tm * t->tm) +
           unit * REST_WEIGHT * t->tl;
}

/* The simplex walks over (tm, tl, ln p) at tc + tm + tl = 1; what leaves the range is taken at its edge, and pays a
 * little for the distance so that the simplex comes back. */
static terms terms_of(const problem *q, const gsl_vector *x, double *excess) {
    double tm = gsl_vector_get(x, 0), tl = gsl_vector_get(x, 1);
    double e = fmax(0, -tm) + fmax(0, -tl) + fmax(0, tm + tl - 1);
    tm = fmax(0, tm);
    tl = fmax(0, tl);
    const double sum = tm + tl;
    if (sum > 1) {
        tm /= sum;
        tl /= sum;
    }
    terms t = {.tc = fmax(0, 1 - tm - tl), .tm = tm, .tl = tl, .p = q->fixed_sharpness};
    if (x->size > 2) {
        const double u = gsl_vector_get(x, 2), top = log(SHARPNESS_MAX);
        e += fmax(0, -u) + fmax(0, u - top);
        t.p = exp(fmin(top, fmax(0, u)));
    }
    *excess = e;
    return t;
}

static double cost_at(const gsl_vector *x, void *user) {
    double excess = 0;
    const terms t = terms_of(user, x, &excess);
    return cost_of(user, &t) + excess;
}

typedef struct start {
    double tm, tl, u, cost;
} start;

/* Keeps the cheapest starts, cheapest first. */
static void keep_best(start *best, size_t *count, start s) {
    size_t at = *count;
    while (at > 0 && best[at - 1].cost > s.cost)
        at--;
    if (at == STARTS)
        return;
    for (size_t i = *count < STARTS ? *count : STARTS - 1; i > at; i--)
        best[i] = best[i - 1];
    best[at] = s;
    *count += *count < STARTS;
}

static size_t scan_grid(problem *q, gsl_vector *x, start *best) {
    static const double tried_p[] = {2, 4, 9, 24};
    const size_t sharp = x->size > 2 ? sizeof tried_p / sizeof *tried_p : 1;
    size_t count = 0;
    for (size_t k = 0; k < sharp; k++)
        for (int i = 0; i <= GRID; i++)
            for (int j = 0; i + j <= GRID; j++) {
                start s = {.tm = (double)i / GRID, .tl = (double)j / GRID, .u = log(tried_p[k])};
                gsl_vector_set(x, 0, s.tm);
                gsl_vector_set(x, 1, s.tl);
                if (x->size > 2)
                    gsl_vector_set(x, 2, s.u);
                s.cost = cost_at(x, q);
                keep_best(best, &count, s);
            }
    return count;
}

/* Nelder-Mead from the cheapest points of the grid: the p-norm has a flat valley where one term hides behind the other,
 * so a gradient method from one start ends in it. */
static fl_model_status search_time(problem *q, terms *found) {
    const size_t dim = q->fixed_sharpness > 0 ? 2 : 3;
    gsl_vector *x = gsl_vector_alloc(dim), *step = gsl_vector_alloc(dim);
    gsl_multimin_fminimizer *m = gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, dim);
    fl_model_status s = x && step && m ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    if (s == FL_MODEL_OK) {
        gsl_multimin_function f = {.f = cost_at, .n = dim, .params = q};
        start best[STARTS];
        double lowest = INFINITY, excess = 0;
        const size_t count = scan_grid(q, x, best);
        for (size_t i = 0; i < count; i++) {
            gsl_vector_set(x, 0, best[i].tm);
            gsl_vector_set(x, 1, best[i].tl);
            if (dim > 2)
                gsl_vector_set(x, 2, best[i].u);
            if (best[i].cost < lowest) { /* a polish that fails must not lose the grid's own point */
                lowest = best[i].cost;
                *found = terms_of(q, x, &excess);
            }
            gsl_vector_set_all(step, 0.5 / GRID);
            if (gsl_multimin_fminimizer_set(m, &f, x, step) != 0)
                continue;
            for (int k = 0; k < 2000 && gsl_multimin_fminimizer_size(m) > 1e-9; k++)
                if (gsl_multimin_fminimizer_iterate(m) != 0)
                    break;
            if (m->fval < lowest) {
                lowest = m->fval;
                *found = terms_of(q, m->x, &excess);
            }
        }
        if (!isfinite(lowest))
            s = FL_MODEL_NO_FIT;
    }
    if (m)
        gsl_multimin_fminimizer_free(m);
    gsl_vector_free(x);
    gsl_vector_free(step);
    return s;
}

/* alpha and beta: two columns, least squares of the relative error, so the normal equations are two by two and the
 * constraint has only three faces to look at. Where the columns are parallel (one clock only) the face with the smaller
 * error serves. */
static void solve_power(const double *a, const double *b, const double *y, size_t count, double *alpha, double *beta) {
    double aa = 0, ab = 0, bb = 0, ay = 0, by = 0;
    for (size_t i = 0; i < count; i++) {
        aa += a[i] * a[i];
        ab += a[i] * b[i];
        bb += b[i] * b[i];
        ay += a[i] * y[i];
        by += b[i] * y[i];
    }
    const double only_a = aa > 0 ? fmax(0, ay / aa) : 0, only_b = bb > 0 ? fmax(0, by / bb) : 0;
    const double det = aa * bb - ab * ab;
    if (det > 1e-9 * aa * bb) {
        const double x = (ay * bb - by * ab) / det, z = (by * aa - ay * ab) / det;
        if (x >= 0 && z >= 0) {
            *alpha = x;
            *beta = z;
            return;
        }
    }
    const int a_is_better = only_a * ay >= only_b * by; /* what each takes off the sum of squares */
    *alpha = a_is_better ? only_a : 0;
    *beta = a_is_better ? 0 : only_b;
}

static fl_model_status fit_power(const fl_device *dev, const problem *q, fl_fit_result *out) {
    double *column = calloc(q->count * 3, sizeof *column);
    if (!column)
        return FL_MODEL_NO_MEMORY;
    double *a = column, *b = column + q->count, *y = column + 2 * q->count;
    fl_model_status s = FL_MODEL_OK;
    for (size_t i = 0; i < q->count && s == FL_MODEL_OK; i++) {
        const fl_fit_point *p = &q->point[i];
        fl_base base;
        s = fl_power_dynamic(dev, 1, 1, p->sm_mhz, p->mem_mhz, &a[i], &b[i]);
        if (s == FL_MODEL_OK)
            s = fl_base_make(dev, p->sm_mhz, p->mem_mhz, &base);
        if (s != FL_MODEL_OK)
            break;
        a[i] /= p->power_w;
        b[i] /= p->power_w;
        y[i] = 1 - base.total_mw / 1000.0 / p->power_w;
    }
    if (s == FL_MODEL_OK) {
        solve_power(a, b, y, q->count, &out->load.alpha, &out->load.beta);
        double sum = 0, worst = 0;
        for (size_t i = 0; i < q->count; i++) {
            const double e = fabs(out->load.alpha * a[i] + out->load.beta * b[i] - y[i]);
            sum += e;
            worst = fmax(worst, e);
        }
        out->power_mape_pct = 100 * sum / (double)q->count;
        out->power_worst_pct = 100 * worst;
    }
    free(column);
    return s;
}

fl_model_status fl_fit_workload(const fl_device *dev, const fl_fit_point *point, size_t count, size_t ref,
                                fl_fit_result *out) {
    if (count < 2 || ref >= count)
        return FL_MODEL_INVALID;
    for (size_t i = 0; i < count; i++) {
        const fl_fit_point *p = &point[i];
        if (!(p->sm_mhz > 0) || !(p->mem_mhz > 0) || !(p->time_s > 0) || !(p->power_w > 0) ||
            !isfinite(p->sm_mhz + p->mem_mhz + p->time_s + p->power_w))
            return FL_MODEL_INVALID;
    }
    if (dev->sharpness < 0 || (dev->sharpness > 0 && dev->sharpness < 1))
        return FL_MODEL_INVALID;
    fl_gsl_quiet();
    problem q = {.point = point, .count = count, .ref = ref, .fixed_sharpness = dev->sharpness};
    terms t = {0};
    fl_fit_result r = {0};
    fl_model_status s = search_time(&q, &t);
    if (s == FL_MODEL_OK)
        s = fit_power(dev, &q, &r);
    if (s != FL_MODEL_OK)
        return s;
    const double scale = best_scale(&q, &t); /* terms in seconds at the reference clocks */
    for (size_t i = 0; i < count; i++) {
        const double e = 100 * fabs(scale * model_at(&q, &t, i) / point[i].time_s - 1);
        r.time_mape_pct += e / (double)count;
        r.time_worst_pct = fmax(r.time_worst_pct, e);
    }
    r.load.tc = t.tc * scale;
    r.load.tm = t.tm * scale;
    r.load.tl = t.tl * scale;
    r.load.sharpness = t.p;
    r.load.sm_demand = 1;
    r.load.ref_sm_mhz = point[ref].sm_mhz;
    r.load.ref_mem_mhz = point[ref].mem_mhz;
    *out = r;
    return FL_MODEL_OK;
}
