#include "models/fit/idle.h"

#include <math.h>
#include <stdlib.h>

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
