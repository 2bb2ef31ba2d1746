/* V(f) from powers of kernels over the SM clocks at one memory clock, and B0(m) from kernels that ignore the memory
 * clock: by other ways than models/chip/chip.h has, for measurements that show what the law says. The law is that of
 * models/laws/laws.h:
 *
 *   P = alpha A V^2 f + beta B m/m_ref + B0(m) + C V + A0 V^2 f        (power-capping Eq. 2, extended)
 *
 * Clocks are MHz, powers W, V is relative to its floor. Every array is the caller's; nothing is kept. Readings that are
 * NaN are missing ones and are skipped; one that is infinite, or a power <= 0, is INVALID. */
#pragma once

#include "models/math/math.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- V(f) ---- */

typedef struct voltage_fit {
    size_t floor_count;     /* so many of the lowest clocks lie on one line: V = 1. At least 3; where no more, the data
                               show no floor, and V is relative to the line that it touches at the bottom */
    double floor_mhz;       /* the highest of them */
    double floor_rms_pct;   /* of g against f on the floor, in percent of f */
    double rms_pct;         /* of power against c + s g, in percent of the kernel's mean power */
    double uncertainty_pct; /* of V at its worst clock, from that scatter: one standard deviation. NaN where the
                               readings are too few to show any (a single kernel) */
    size_t kernels;         /* with three readings or more; others say nothing */
} voltage_fit;

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
                                voltage_fit *out) {
    voltage_fit r = {.floor_count = find_floor(q), .kernels = q->used_kernels};
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

/* The shared g(f) = V(f)^2 f by which P_k(f) = c_k + s_k g(f): the law at one memory clock, with what C V adds left
 * to g (so V comes out a little high above the floor where the kernels' own slopes are small). Alternating least
 * squares of the relative error with Huber's weights, so neither kernels of tiny slope nor single bad readings matter.
 * The data leave g's offset and scale open: both come from the longest run of lowest clocks over which g is a line
 * (within 1 % of V), taken as the floor of the voltage: g = f on it (power-capping 3.2.2: the Titan X is linear in f up
 * to 975 MHz, then steepens).
 *
 * sm_mhz: `clocks` >= 4 strictly ascending; power_w: kernels x clocks, row by row, all at one memory clock. volt,
 * dynamic_mhz: one per clock, written on success: V, non-decreasing from exactly 1 on the floor, and g as measured,
 * before it was made monotone (so dynamic_mhz[i] / sm_mhz[i] - 1 on the floor shows the noise); either may be NULL.
 * NO_FIT: a clock without a reading, no kernel whose power rises with the clock, V known no better than
 * to 10 %, or a g that goes up and down as no voltage does. */
static fl_model_status fit_voltage(const double *sm_mhz, size_t clocks, const double *power_w, size_t kernels,
                                   double *volt, double *dynamic_mhz, voltage_fit *out) {
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

/* ---- B0(m) ---- */

/* One kernel at one SM clock and two memory clocks. */
typedef struct memory_pair {
    double low_time_s, low_w;   /* at the lower memory clock */
    double high_time_s, high_w; /* at the higher */
} memory_pair;

typedef struct idle_memory {
    double watts;    /* B0(high) - B0(low): median over the pairs used */
    double mean_w;   /* their mean, for comparison */
    double spread_w; /* their standard deviation, robust: 1.4826 times the median distance from the median */
    size_t used;     /* pairs */
} idle_memory;

/* A kernel whose time differs by less than `tolerance` (a share, 0.01 = 1 %) ignores the memory clock: it moves next to
 * no bytes, beta is about 0, and its power still differs by what idle memory draws. NO_FIT: fewer than 3 such pairs. */
static fl_model_status fit_idle_memory(const memory_pair *pair, size_t count, double tolerance, idle_memory *out) {
    if (!(tolerance > 0) || !isfinite(tolerance))
        return FL_MODEL_INVALID;
    double *rise = calloc(count + 1, sizeof *rise);
    if (!rise)
        return FL_MODEL_NO_MEMORY;
    idle_memory r = {0};
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
