#include "models/fit_device.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- V(f) ---- */

#define FLOOR_MIN 3          /* clocks that the offset and the scale of g are fitted to at least */
#define FLOOR_TOLERANCE 0.01 /* of V: a point of the floor may lie so far off its line */
#define HUBER 1.345          /* standard deviations; 95 % efficient on normal noise (Huber 1964) */
#define TO_SIGMA 1.4826      /* from the median absolute deviation */
#define ROUNDS 500
#define SETTLED 1e-10
#define UNCERTAINTY_MAX 0.1 /* of V */
#define DIP_MAX 0.05        /* of V: RMS distance of V as measured from V made monotone */

typedef struct voltage_problem {
    const double *f, *p;
    size_t n, kernels;
    double *g, *next;     /* n: the shared curve, mean 0 and mean square 1 */
    double *c, *s, *mean; /* per kernel; mean 0: left out */
    double *w;            /* kernels x n: 0 = missing */
    double *residual;     /* those of used readings, relative, for their median */
    size_t used_kernels;
} voltage_problem;

static int ascending_double(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the values. */
static double median(double *value, size_t count) {
    qsort(value, count, sizeof *value, ascending_double);
    return count % 2 ? value[count / 2] : 0.5 * (value[count / 2 - 1] + value[count / 2]);
}

static int normalise(double *g, size_t n) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += g[i];
    for (size_t i = 0; i < n; i++) {
        g[i] -= sum / (double)n;
        squares += g[i] * g[i];
    }
    const double scale = sqrt(squares / (double)n);
    if (!(scale > 0) || !isfinite(scale))
        return 0;
    for (size_t i = 0; i < n; i++)
        g[i] /= scale;
    return 1;
}

/* Given g, each kernel's own line, which by the law never falls; given those, each clock's g. */
static void fit_kernels(voltage_problem *q) {
    for (size_t k = 0; k < q->kernels; k++) {
        const double *w = q->w + k * q->n, *p = q->p + k * q->n;
        double sw = 0, sg = 0, sp = 0, gg = 0, gp = 0;
        for (size_t i = 0; i < q->n; i++)
            if (w[i] > 0) {
                sw += w[i];
                sg += w[i] * q->g[i];
                sp += w[i] * p[i];
            }
        for (size_t i = 0; i < q->n; i++)
            if (w[i] > 0) {
                const double d = q->g[i] - sg / sw;
                gg += w[i] * d * d;
                gp += w[i] * d * (p[i] - sp / sw);
            }
        q->s[k] = gg > 0 ? fmax(0, gp / gg) : 0;
        q->c[k] = sw > 0 ? (sp - q->s[k] * sg) / sw : 0;
    }
}

static int fit_clocks(voltage_problem *q) {
    for (size_t i = 0; i < q->n; i++) {
        double ss = 0, sp = 0;
        for (size_t k = 0; k < q->kernels; k++) {
            const double w = q->w[k * q->n + i];
            if (w > 0) {
                ss += w * q->s[k] * q->s[k];
                sp += w * q->s[k] * (q->p[k * q->n + i] - q->c[k]);
            }
        }
        if (!(ss > 0))
            return 0;
        q->next[i] = sp / ss;
    }
    return normalise(q->next, q->n);
}

static double residual_at(const voltage_problem *q, size_t k, size_t i) {
    return (q->p[k * q->n + i] - q->c[k] - q->s[k] * q->g[i]) / q->mean[k];
}

/* New Huber weights; returns the robust standard deviation of the relative residuals. */
static double weigh(voltage_problem *q) {
    size_t used = 0;
    for (size_t k = 0; k < q->kernels; k++)
        for (size_t i = 0; i < q->n; i++)
            if (q->w[k * q->n + i] > 0)
                q->residual[used++] = fabs(residual_at(q, k, i));
    const double sigma = TO_SIGMA * median(q->residual, used);
    for (size_t k = 0; k < q->kernels; k++)
        for (size_t i = 0; i < q->n; i++)
            if (q->w[k * q->n + i] > 0) {
                const double r = fabs(residual_at(q, k, i)), bound = HUBER * sigma;
                q->w[k * q->n + i] = (r > bound && sigma > 0 ? bound / r : 1) / (q->mean[k] * q->mean[k]);
            }
    return sigma;
}

static fl_model_status alternate(voltage_problem *q, double *sigma) {
    for (size_t i = 0; i < q->n; i++)
        q->g[i] = q->f[i];
    if (!normalise(q->g, q->n))
        return FL_MODEL_INVALID;
    for (int round = 0; round < ROUNDS; round++) {
        fit_kernels(q);
        if (!fit_clocks(q))
            return FL_MODEL_NO_FIT;
        double moved = 0;
        for (size_t i = 0; i < q->n; i++) {
            moved = fmax(moved, fabs(q->next[i] - q->g[i]));
            q->g[i] = q->next[i];
        }
        *sigma = weigh(q);
        if (moved < SETTLED)
            break;
    }
    fit_kernels(q);
    return FL_MODEL_OK;
}

/* f = offset + scale g over the lowest `count` clocks; the largest distance from it as a share of f. 0: no such line.
 */
static int line_of(const voltage_problem *q, size_t count, double *offset, double *scale, double *worst) {
    double sg = 0, sf = 0, ff = 0, gf = 0;
    for (size_t i = 0; i < count; i++) {
        sg += q->g[i] / (double)count;
        sf += q->f[i] / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        ff += (q->f[i] - sf) * (q->f[i] - sf);
        gf += (q->g[i] - sg) * (q->f[i] - sf);
    }
    if (!(gf > 0))
        return 0;
    *scale = ff / gf; /* g on f, the clocks being exact */
    *offset = sf - *scale * sg;
    *worst = 0;
    for (size_t i = 0; i < count; i++)
        *worst = fmax(*worst, fabs((*offset + *scale * q->g[i]) / q->f[i] - 1));
    return 1;
}

/* One standard deviation of g[i] from the scatter of the powers, in g's own unit. */
static double deviation_of(const voltage_problem *q, size_t i, double sigma) {
    double ss = 0;
    for (size_t k = 0; k < q->kernels; k++)
        if (q->w[k * q->n + i] > 0)
            ss += q->w[k * q->n + i] * q->s[k] * q->s[k];
    return sigma / sqrt(ss);
}

/* The longest run of lowest clocks on one line. A longer run may hold again where one clock alone is a bad one. */
static size_t find_floor(const voltage_problem *q) {
    size_t longest = FLOOR_MIN;
    for (size_t count = FLOOR_MIN + 1; count <= q->n; count++) {
        double offset = 0, scale = 0, worst = 0;
        if (line_of(q, count, &offset, &scale, &worst) && worst <= 2 * FLOOR_TOLERANCE) /* g goes as V^2 */
            longest = count;
    }
    return longest;
}

/* Non-decreasing by pooling adjacent violators (least squares), never below the floor's 1. */
static void make_monotone(double *v, size_t floor_count, size_t n, size_t *size) {
    size_t blocks = 0;
    for (size_t i = 0; i < floor_count; i++)
        v[i] = 1;
    double *level = v + floor_count; /* a block is never ahead of the point it is made of */
    for (size_t i = 0; i < n - floor_count; i++) {
        level[blocks] = level[i];
        size[blocks++] = 1;
        for (; blocks > 1 && level[blocks - 2] > level[blocks - 1]; blocks--) {
            const double a = (double)size[blocks - 2], b = (double)size[blocks - 1];
            level[blocks - 2] = (a * level[blocks - 2] + b * level[blocks - 1]) / (a + b);
            size[blocks - 2] += size[blocks - 1];
        }
    }
    for (size_t i = n - floor_count; blocks-- > 0;)
        for (size_t k = 0; k < size[blocks]; k++)
            level[--i] = fmax(1, level[blocks]);
}

static fl_model_status conclude(const voltage_problem *q, double sigma, double *volt, double *dynamic_mhz,
                                fl_voltage_fit *out) {
    fl_voltage_fit r = {.floor_count = find_floor(q), .kernels = q->used_kernels};
    double offset = 0, scale = 0, worst = 0, squares = 0;
    size_t used = 0;
    if (!line_of(q, r.floor_count, &offset, &scale, &worst))
        return FL_MODEL_NO_FIT;
    r.floor_mhz = q->f[r.floor_count - 1];
    double floor_g = 0, floor_gg = 0;
    for (size_t i = 0; i < r.floor_count; i++) {
        const double e = (offset + scale * q->g[i]) / q->f[i] - 1;
        squares += e * e;
        floor_g += q->g[i] / (double)r.floor_count;
    }
    r.floor_rms_pct = 100 * sqrt(squares / (double)r.floor_count);
    for (size_t i = 0; i < r.floor_count; i++)
        floor_gg += (q->g[i] - floor_g) * (q->g[i] - floor_g);
    squares = 0;
    for (size_t k = 0; k < q->kernels; k++)
        for (size_t i = 0; i < q->n; i++)
            if (q->w[k * q->n + i] > 0) {
                const double e = residual_at(q, k, i);
                squares += e * e;
                used++;
            }
    r.rms_pct = 100 * sqrt(squares / (double)used);
    /* A point's own scatter, and what the scatter of the floor's line becomes at its clock. Each line and g itself took
     * degrees of freedom from the residuals that sigma was measured on. */
    const double parameters = (double)(2 * q->used_kernels + q->n - 2);
    sigma = (double)used > parameters ? sigma * sqrt((double)used / ((double)used - parameters)) : NAN;
    for (size_t i = 0; i < q->n; i++) {
        const double own = deviation_of(q, i, sigma), away = (q->g[i] - floor_g) * (q->g[i] - floor_g);
        const double line = own * own * (1 / (double)r.floor_count + away / floor_gg);
        const double pct = 100 * scale * sqrt(own * own + line) / (2 * q->f[i]);
        r.uncertainty_pct = pct <= r.uncertainty_pct ? r.uncertainty_pct : pct;
    }
    if (r.uncertainty_pct > 100 * UNCERTAINTY_MAX)
        return FL_MODEL_NO_FIT;
    double *v = calloc(q->n, sizeof *v);
    size_t *size = calloc(q->n, sizeof *size);
    fl_model_status s = v && size ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    if (s == FL_MODEL_OK) {
        for (size_t i = 0; i < q->n; i++)
            v[i] = sqrt(fmax(0, (offset + scale * q->g[i]) / q->f[i]));
        make_monotone(v, r.floor_count, q->n, size);
        squares = 0;
        for (size_t i = 0; i < q->n; i++) {
            const double e = sqrt(fmax(0, (offset + scale * q->g[i]) / q->f[i])) - v[i];
            squares += e * e / (double)q->n;
        }
        /* Where there is no signal, the shared curve is the noise of one kernel, which fits itself well; it is no
         * voltage, though, as it goes up and down. */
        if (sqrt(squares) > DIP_MAX)
            s = FL_MODEL_NO_FIT;
    }
    for (size_t i = 0; s == FL_MODEL_OK && i < q->n; i++) {
        if (volt)
            volt[i] = v[i];
        if (dynamic_mhz)
            dynamic_mhz[i] = offset + scale * q->g[i];
    }
    if (s == FL_MODEL_OK)
        *out = r;
    free(v);
    free(size);
    return s;
}

/* Which kernels and clocks say anything; the first weights. */
static fl_model_status take_powers(voltage_problem *q) {
    for (size_t k = 0; k < q->kernels; k++) {
        size_t valid = 0;
        double sum = 0;
        for (size_t i = 0; i < q->n; i++) {
            const double p = q->p[k * q->n + i];
            if (isnan(p))
                continue;
            if (!(p > 0) || isinf(p))
                return FL_MODEL_INVALID;
            sum += p;
            valid++;
        }
        if (valid < 3)
            continue;
        q->mean[k] = sum / (double)valid;
        q->used_kernels++;
        for (size_t i = 0; i < q->n; i++)
            q->w[k * q->n + i] = isnan(q->p[k * q->n + i]) ? 0 : 1 / (q->mean[k] * q->mean[k]);
    }
    return q->used_kernels ? FL_MODEL_OK : FL_MODEL_NO_FIT;
}

static int is_ladder(const double *f, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(f[i] > 0) || !isfinite(f[i]) || (i && !(f[i] > f[i - 1])))
            return 0;
    return 1;
}

fl_model_status fl_fit_voltage(const double *sm_mhz, size_t clocks, const double *power_w, size_t kernels, double *volt,
                               double *dynamic_mhz, fl_voltage_fit *out) {
    if (clocks <= FLOOR_MIN || kernels == 0 || kernels > SIZE_MAX / 4 / sizeof(double) / (clocks + 2) ||
        !is_ladder(sm_mhz, clocks))
        return FL_MODEL_INVALID;
    const size_t cells = clocks * kernels;
    double *room = calloc(2 * clocks + 3 * kernels + 2 * cells, sizeof *room);
    if (!room)
        return FL_MODEL_NO_MEMORY;
    voltage_problem q = {.f = sm_mhz, .p = power_w, .n = clocks, .kernels = kernels};
    q.g = room;
    q.next = q.g + clocks;
    q.c = q.next + clocks;
    q.s = q.c + kernels;
    q.mean = q.s + kernels;
    q.w = q.mean + kernels;
    q.residual = q.w + cells;
    double sigma = 0;
    fl_model_status s = take_powers(&q);
    if (s == FL_MODEL_OK)
        s = alternate(&q, &sigma);
    if (s == FL_MODEL_OK)
        s = conclude(&q, sigma, volt, dynamic_mhz, out);
    free(room);
    return s;
}

double fl_voltage_floor_mhz(const double *sm_mhz, const double *volt, size_t clocks, double tolerance) {
    double mhz = NAN;
    for (size_t i = 0; i < clocks && volt[i] <= 1 + tolerance; i++)
        mhz = sm_mhz[i];
    return mhz;
}

/* ---- B0(m) ---- */

fl_model_status fl_fit_idle_memory(const fl_memory_pair *pair, size_t count, double tolerance, fl_idle_memory *out) {
    if (!(tolerance > 0) || !isfinite(tolerance))
        return FL_MODEL_INVALID;
    double *rise = calloc(count + 1, sizeof *rise);
    if (!rise)
        return FL_MODEL_NO_MEMORY;
    fl_idle_memory r = {0};
    fl_model_status s = FL_MODEL_OK;
    for (size_t i = 0; i < count && s == FL_MODEL_OK; i++) {
        const double v[] = {pair[i].low_time_s, pair[i].low_w, pair[i].high_time_s, pair[i].high_w};
        const int missing = isnan(v[0]) || isnan(v[1]) || isnan(v[2]) || isnan(v[3]);
        for (size_t k = 0; k < 4; k++)
            if (!missing && (!(v[k] > 0) || isinf(v[k])))
                s = FL_MODEL_INVALID;
        if (s != FL_MODEL_OK || missing || !(fabs(v[0] / v[2] - 1) < tolerance))
            continue;
        r.mean_w += v[3] - v[1];
        rise[r.used++] = v[3] - v[1];
    }
    if (s == FL_MODEL_OK && r.used < 3)
        s = FL_MODEL_NO_FIT;
    if (s == FL_MODEL_OK) {
        r.mean_w /= (double)r.used;
        r.watts = median(rise, r.used);
        for (size_t i = 0; i < r.used; i++)
            rise[i] = fabs(rise[i] - r.watts);
        r.spread_w = TO_SIGMA * median(rise, r.used);
        *out = r;
    }
    free(rise);
    return s;
}
