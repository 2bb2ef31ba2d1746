/* Idle power from a log, and one kernel's time against the clock. */
#include "models/fit/fit.h"

#include "models/laws/laws.h"
#include "models/math/math.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

/* ---- idle power ---- */

#define BUSY_PCT 5.0 /* a monitor's own queries show as one or two percent */

static int ascending_point(const void *a, const void *b) {
    const fl_idle_point *x = a, *y = b;
    if (x->sm_mhz < y->sm_mhz || x->sm_mhz > y->sm_mhz)
        return x->sm_mhz > y->sm_mhz ? 1 : -1;
    return (x->power_w > y->power_w) - (x->power_w < y->power_w);
}

static int same_clock(double a, double b) { return fabs(a - b) < 0.5; } /* clocks are whole MHz; NaN is no clock */

static int is_idle(const fl_idle_reading *r, size_t i) {
    return r[i].power_w > 0 && r[i].sm_mhz > 0 && isfinite(r[i].power_w + r[i].sm_mhz) && r[i].util_pct <= 0 &&
           r[i + 1].util_pct < BUSY_PCT &&
           (same_clock(r[i].sm_mhz, r[i - 1].sm_mhz) || same_clock(r[i].sm_mhz, r[i - 1].set_mhz));
}

fl_model_status fl_idle_points(const fl_idle_reading *reading, size_t count, fl_idle_point *point, size_t *points) {
    size_t used = 0, made = 0;
    for (size_t i = 1; i + 1 < count; i++)
        if (is_idle(reading, i))
            point[used++] = (fl_idle_point){reading[i].sm_mhz, reading[i].power_w, 1};
    if (used == 0)
        return FL_MODEL_NO_FIT;
    qsort(point, used, sizeof *point, ascending_point);
    for (size_t i = 0, end; i < used; i = end) { /* the powers of one clock lie side by side, sorted */
        for (end = i + 1; end < used && same_clock(point[end].sm_mhz, point[i].sm_mhz);)
            end++;
        const size_t n = end - i;
        const double middle = 0.5 * (point[i + (n - 1) / 2].power_w + point[i + n / 2].power_w);
        point[made++] = (fl_idle_point){point[i].sm_mhz, middle, n};
    }
    *points = made;
    return FL_MODEL_OK;
}

#define IDLE_TERMS 3

/* Least squares over the terms in `set` (bits), by Gauss-Jordan on their normal equations scaled to a unit diagonal.
 * 0 where they are not independent. */
static int solve_subset(double gram[IDLE_TERMS][IDLE_TERMS], const double *moment, unsigned set, double *x) {
    double a[IDLE_TERMS][IDLE_TERMS + 1], unit[IDLE_TERMS];
    size_t index[IDLE_TERMS], n = 0;
    for (size_t j = 0; j < IDLE_TERMS; j++) {
        x[j] = 0;
        if (set >> j & 1)
            index[n++] = j;
    }
    for (size_t i = 0; i < n; i++)
        unit[i] = sqrt(gram[index[i]][index[i]]);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++)
            a[i][j] = gram[index[i]][index[j]] / (unit[i] * unit[j]);
        a[i][n] = moment[index[i]] / unit[i];
    }
    for (size_t k = 0; k < n; k++) {
        if (!(a[k][k] > 1e-10)) /* positive definite, so that no pivoting is needed; 0 = dependent on those before */
            return 0;
        for (size_t j = n + 1; j-- > k;)
            a[k][j] /= a[k][k];
        for (size_t i = 0; i < n; i++)
            for (size_t j = n + 1; i != k && j-- > k;)
                a[i][j] -= a[i][k] * a[k][j];
    }
    for (size_t i = 0; i < n; i++)
        x[index[i]] = a[i][n] / unit[i];
    return 1;
}

static double power_at(const fl_idle_clock *idle, double sm_mhz, double volt) {
    return idle->fixed_w + idle->c_w * volt + idle->a0_w * volt * volt * sm_mhz / 1000;
}

static void measure_error(const fl_idle_point *point, const double *volt, size_t count, fl_idle_clock *r) {
    double squares = 0;
    r->worst_w = 0;
    for (size_t i = 0; i < count; i++) {
        const double e = power_at(r, point[i].sm_mhz, volt[i]) - point[i].power_w;
        squares += e * e;
        r->worst_w = fmax(r->worst_w, fabs(e));
    }
    r->rms_w = sqrt(squares / (double)count);
}

fl_model_status fl_fit_idle_clock(const fl_idle_point *point, const double *volt, size_t count, fl_idle_clock *out,
                                  double *predicted_w) {
    double gram[IDLE_TERMS][IDLE_TERMS] = {{0}}, moment[IDLE_TERMS] = {0};
    for (size_t i = 0; i < count; i++) {
        if (!(point[i].sm_mhz > 0) || !(point[i].power_w > 0) || !(volt[i] > 0) ||
            !isfinite(point[i].sm_mhz + point[i].power_w + volt[i]))
            return FL_MODEL_INVALID;
        const double row[IDLE_TERMS] = {1, volt[i], volt[i] * volt[i] * point[i].sm_mhz / 1000};
        for (size_t j = 0; j < IDLE_TERMS; j++) {
            for (size_t k = 0; k < IDLE_TERMS; k++)
                gram[j][k] += row[j] * row[k];
            moment[j] += row[j] * point[i].power_w;
        }
    }
    if (count < IDLE_TERMS)
        return FL_MODEL_NO_FIT;
    /* The best of the subsets whose solution is nowhere negative is the constrained optimum. Among equally good ones
     * the subset with bit 0, the fixed part, comes first. */
    fl_idle_clock best = {.rms_w = INFINITY};
    for (unsigned set = 1; set < 1u << IDLE_TERMS; set++) {
        double x[IDLE_TERMS];
        if (!solve_subset(gram, moment, set, x) || x[0] < 0 || x[1] < 0 || x[2] < 0)
            continue;
        fl_idle_clock r = {.fixed_w = x[0], .c_w = x[1], .a0_w = x[2]};
        measure_error(point, volt, count, &r);
        if (r.rms_w < best.rms_w - 1e-9)
            best = r;
    }
    if (!isfinite(best.rms_w))
        return FL_MODEL_NO_FIT;
    for (size_t i = 0; predicted_w && i < count; i++)
        predicted_w[i] = power_at(&best, point[i].sm_mhz, volt[i]);
    *out = best;
    return FL_MODEL_OK;
}

/* ---- one kernel's time ---- */

/* The memory share that makes the time at the reference 1. */
static double memory_of(double c, double l, double p) {
    const double rest = 1 - l;
    if (isinf(p))
        return rest;
    const double x = c < rest ? pow(rest, p) - pow(c, p) : 0;
    return x > 0 ? pow(x, 1 / p) : 0;
}

double fl_kernel_time(const fl_kernel_fit *k, double p, double ref_over_f) {
    return fl_time_norm(k->c * ref_over_f, k->m, p) + k->l;
}

/* One ratio of times: ((c k)^p + 1 - c^p)^(1/p) = r. */
static double closed(double r, double k, double p) {
    if (r <= 1)
        return 0;
    if (r >= k)
        return 1;
    return isinf(p) ? r / k : pow((pow(r, p) - 1) / (pow(k, p) - 1), 1 / p);
}

typedef struct problem {
    const fl_kernel_point *point;
    size_t count, without; /* without: index of the point that is left out; count = none */
    double p;
} problem;

/* The level that suits a shape best in relative error, and the sum of squares of the remaining error. */
static double level_of(const problem *q, const fl_kernel_fit *k, double *level) {
    double top = 0, bottom = 0, rest = 0;
    const double ref = q->point[q->count - 1].sm_mhz;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < q->count; i++) {
            if (i == q->without)
                continue;
            const double x = fl_kernel_time(k, q->p, ref / q->point[i].sm_mhz) / q->point[i].time,
                         w = q->point[i].weight;
            if (!pass) { /* minimises sum w (1 - level x)^2 */
                top += w * x;
                bottom += w * x * x;
            } else {
                rest += w * (1 - *level * x) * (1 - *level * x);
            }
            if (!pass)
                *level = bottom > 0 ? top / bottom : 0;
        }
    return rest;
}

static double cost(const problem *q, double c, double l, fl_kernel_fit *k) {
    double level = 0;
    const double core = c * (1 - l);
    *k = (fl_kernel_fit){.c = core, .m = memory_of(core, l, q->p), .l = l};
    return level_of(q, k, &level);
}

/* Searches a coarse grid, then ever finer ones around its best point: there are two bounded unknowns, and no start
 * value can be wrong. */
static void search(const problem *q, fl_kernel_fit *best) {
    enum { STEPS = 20, ROUNDS = 6 };
    double low[2] = {0, 0}, high[2] = {1, 0.95}, least = HUGE_VAL, at[2] = {0, 0};
    for (int round = 0; round < ROUNDS; round++) {
        const double step[2] = {(high[0] - low[0]) / STEPS, (high[1] - low[1]) / STEPS};
        for (int i = 0; i <= STEPS; i++)
            for (int j = 0; j <= STEPS; j++) {
                fl_kernel_fit k;
                const double c = low[0] + i * step[0], l = low[1] + j * step[1], x = cost(q, c, l, &k);
                if (x < least - 1e-15) {
                    least = x;
                    at[0] = c;
                    at[1] = l;
                    *best = k;
                }
            }
        for (int i = 0; i < 2; i++) {
            low[i] = fmax(0, at[i] - 2 * step[i]);
            high[i] = fmin(i ? 0.95 : 1, at[i] + 2 * step[i]);
        }
    }
}

static void fit(const problem *q, fl_kernel_fit *out) {
    size_t first = 0, second = q->count - 1, used = q->count - (q->without < q->count);
    if (used > 2) {
        search(q, out);
        return;
    }
    while (first == q->without)
        first++;
    while (second == q->without)
        second--;
    /* without the reference the remaining points still give c, at the highest of them; the law is the same */
    const double k = q->point[second].sm_mhz / q->point[first].sm_mhz,
                 c = closed(q->point[first].time / q->point[second].time, k, q->p);
    const double up = q->point[q->count - 1].sm_mhz / q->point[second].sm_mhz, m = memory_of(c, 0, q->p);
    const double whole = fl_time_norm(c / up, m, q->p);
    *out = (fl_kernel_fit){.c = c / up / whole, .m = m / whole};
}

fl_model_status fl_fit_kernel(const fl_kernel_point *point, size_t count, double p, fl_kernel_fit *out) {
    if (count < 2 || !(p >= 1))
        return FL_MODEL_INVALID;
    for (size_t i = 0; i < count; i++)
        if (!(point[i].sm_mhz > 0) || !(point[i].time > 0) || !(point[i].weight > 0) || isinf(point[i].time) ||
            (i && !(point[i].sm_mhz > point[i - 1].sm_mhz)))
            return FL_MODEL_INVALID;
    problem q = {point, count, count, p};
    fit(&q, out);
    const double ref = point[count - 1].sm_mhz;
    double level, error = 0, unseen = 0;
    level_of(&q, out, &level);
    for (size_t i = 0; i < count; i++)
        error += fabs(level * fl_kernel_time(out, p, ref / point[i].sm_mhz) / point[i].time - 1);
    out->mape_pct = 100 * error / (double)count;
    for (size_t i = 0; i < count && count > 2; i++) {
        fl_kernel_fit k;
        q.without = i;
        fit(&q, &k);
        level_of(&q, &k, &level);
        unseen += fabs(level * fl_kernel_time(&k, p, ref / point[i].sm_mhz) / point[i].time - 1);
    }
    out->unseen_pct = count > 2 ? 100 * unseen / (double)count : (double)NAN;
    return FL_MODEL_OK;
}
