/* The law in the form that fitting needs, the deviations of predictions, and the small linear algebra for both. */
#include "models/chip/inside.h"

#include "models/chip/chip.h"
#include "models/laws/laws.h"
#include "models/math/math.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows, deviations, priors ---- */

int fl_chip_row_is_sound(const fl_chip_row *r) {
    return r->sm_mhz > 0 && r->mem_mhz > 0 && r->time_s > 0 && isfinite(r->sm_mhz + r->mem_mhz + r->time_s) &&
           (isnan(r->power_w) || (r->power_w > 0 && isfinite(r->power_w)));
}

void fl_chip_shape(double sharpness, double memory, double rest, const double *f_ratio, const double *h, size_t n,
                   double *ln_time) {
    const double c = (1 - rest) * (1 - memory), m = (1 - rest) * memory;
    for (size_t i = 0; i < n; i++)
        ln_time[i] = log(fl_time_norm(c * f_ratio[i], m * h[i], sharpness) + rest);
}

double fl_chip_covariance(const fl_chip_error *e, const fl_chip_row *a, const fl_chip_row *b) {
    const double x = log(a->sm_mhz / b->sm_mhz) / e->length_sm, y = log(a->mem_mhz / b->mem_mhz) / e->length_mem;
    return e->smooth * e->smooth * exp(-0.5 * (x * x + y * y));
}

double fl_chip_distance(const fl_chip_row *known, size_t count, const fl_chip_row *at, fl_chip_place *place) {
    double near = INFINITY, mem_low = INFINITY, mem_high = 0;
    int side[2][2] = {
        {0}}; /* whether known rows stand on the four sides: SM clock as low, as high; memory clock as low, as high */
    for (size_t i = 0; i < count; i++) {
        const fl_chip_row *k = &known[i];
        near = fmin(near, hypot(log(at->sm_mhz / k->sm_mhz), log(at->mem_mhz / k->mem_mhz)));
        mem_low = fmin(mem_low, k->mem_mhz);
        mem_high = fmax(mem_high, k->mem_mhz);
        for (int s = 0; s < 4; s++)
            side[s / 2][s % 2] |= (s / 2 ? k->sm_mhz >= at->sm_mhz : k->sm_mhz <= at->sm_mhz) &&
                                  (s % 2 ? k->mem_mhz >= at->mem_mhz : k->mem_mhz <= at->mem_mhz);
    }
    const int other = at->mem_mhz < mem_low || at->mem_mhz > mem_high;
    const int among = side[0][0] && side[0][1] && side[1][0] && side[1][1];
    *place = count == 1 ? FL_CHIP_ALONE : other ? FL_CHIP_OTHER_MEMORY : among ? FL_CHIP_INSIDE : FL_CHIP_OUTSIDE;
    return near;
}

double fl_chip_sd_pct(const fl_chip_error *e, const fl_chip_row *known, size_t count, const fl_chip_row *at,
                      double variance) {
    fl_chip_place place = FL_CHIP_INSIDE;
    const double far = fl_chip_distance(known, count, at, &place), grown = e->growth[place] * far;
    return 100 * e->wide[place] * sqrt(fmax(0, variance) + grown * grown);
}

int fl_chip_cholesky(double *a, size_t n) {
    for (size_t j = 0; j < n; j++)
        for (size_t i = j; i < n; i++) {
            double s = a[i * n + j];
            for (size_t k = 0; k < j; k++)
                s -= a[i * n + k] * a[j * n + k];
            if (i == j) {
                if (!(s > 0))
                    return 0;
                a[j * n + j] = sqrt(s);
            } else {
                a[i * n + j] = s / a[j * n + j];
            }
        }
    return 1;
}

void fl_chip_lower_solve(const double *l, size_t n, double *x) {
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            x[i] -= l[i * n + k] * x[k];
        x[i] /= l[i * n + i];
    }
}

/* Widths of likeness. On three GPUs the errors changed little with ALIKE halved or doubled, PULL at 0.5 and 2, and
 * ALIKE_LOAD tripled; NEAR was not varied. */
#define ALIKE 0.15     /* of memory and rest */
#define ALIKE_LOAD 0.5 /* of alpha and beta */
#define NEAR 0.03      /* of ln clock */
#define PULL 1.0       /* weight of imagined workloads without residual, against those that are alike */
#define PULL_POWER 2.0

void fl_chip_offs_make(const fl_chip *chip, int power, const fl_chip_row *row, size_t rows, double *offs) {
    for (size_t r = 0; r < rows; r++) {
        double kappa[FL_CHIP_SETTINGS];
        for (uint32_t s = 0; s < chip->settings; s++) {
            const double x = log(row[r].sm_mhz / chip->setting_sm[s]) / NEAR;
            const double y = log(row[r].mem_mhz / chip->setting_mem[s]) / NEAR;
            kappa[s] = exp(-0.5 * (x * x + y * y));
        }
        for (uint32_t k = 0; k < chip->shares; k++) {
            const double *off = power ? chip->power_off[k] : chip->time_off[k];
            double sum = 0, weight = 0;
            for (uint32_t s = 0; s < chip->settings; s++)
                if (kappa[s] > 1e-3 && !isnan(off[s])) {
                    sum += kappa[s] * off[s];
                    weight += kappa[s];
                }
            /* Residuals of made-up workloads say nothing about this chip (chip.h). */
            offs[r * chip->shares + k] = weight > 0.3 && chip->workloads ? sum / weight : (double)NAN;
        }
    }
}

static double square(double x) { return x * x; }

void fl_chip_offs_at(const fl_chip *chip, int power, const double *offs, size_t rows, const fl_chip_share *as,
                     double *off) {
    double likeness[FL_CHIP_SHARES];
    if (!chip->workloads) { /* only made-up workloads, which have no residuals */
        memset(off, 0, rows * sizeof *off);
        return;
    }
    for (uint32_t k = 0; k < chip->shares; k++) {
        const fl_chip_share *o = &chip->share[k];
        double d = (square(as->memory - o->memory) + square(as->rest - o->rest)) / (ALIKE * ALIKE);
        if (power)
            d += (square(as->alpha - o->alpha) + square(as->beta - o->beta)) / (ALIKE_LOAD * ALIKE_LOAD);
        likeness[k] = d < 18 ? exp(-0.5 * d) : 0;
    }
    for (size_t r = 0; r < rows; r++) {
        double sum = 0, weight = 0;
        for (uint32_t k = 0; k < chip->shares; k++) {
            const double x = offs[r * chip->shares + k];
            if (likeness[k] > 0 && !isnan(x)) {
                sum += likeness[k] * x;
                weight += likeness[k];
            }
        }
        off[r] = sum / (weight + (power ? PULL_POWER : PULL));
    }
}

uint32_t fl_chip_setting_of(const fl_chip *chip, const fl_chip_row *row) {
    for (uint32_t s = 0; s < chip->settings; s++)
        if (fabs(chip->setting_sm[s] - row->sm_mhz) < 1e-6 && fabs(chip->setting_mem[s] - row->mem_mhz) < 1e-6)
            return s;
    return UINT32_MAX;
}

static int by_clocks(const void *a, const void *b) {
    const fl_chip_row *x = a, *y = b;
    if (x->mem_mhz < y->mem_mhz || x->mem_mhz > y->mem_mhz)
        return x->mem_mhz < y->mem_mhz ? -1 : 1;
    return (x->sm_mhz > y->sm_mhz) - (x->sm_mhz < y->sm_mhz);
}

fl_model_status fl_chip_place_settings(const fl_chip_row *row, size_t count, fl_chip *chip) {
    fl_chip_row *list = malloc((count + 1) * sizeof *list);
    size_t n = 0;
    if (!list)
        return FL_MODEL_NO_MEMORY;
    memcpy(list, row, count * sizeof *list);
    qsort(list, count, sizeof *list, by_clocks);
    for (size_t i = 0; i < count; i++)
        if (n == 0 || by_clocks(&list[n - 1], &list[i]) != 0)
            list[n++] = list[i];
    chip->settings = (uint32_t)(n < FL_CHIP_SETTINGS ? n : FL_CHIP_SETTINGS);
    for (uint32_t i = 0; i < chip->settings; i++) {
        const fl_chip_row *at = &list[chip->settings > 1 ? i * (n - 1) / (chip->settings - 1) : 0];
        chip->setting_sm[i] = at->sm_mhz;
        chip->setting_mem[i] = at->mem_mhz;
    }
    free(list);
    return FL_MODEL_OK;
}

fl_chip_load fl_chip_load_of(const fl_chip_share *s) {
    return (fl_chip_load){(1 - s->rest) * (1 - s->memory), (1 - s->rest) * s->memory, s->rest, s->alpha, s->beta};
}

/* How measurements scatter about the law: maximum likelihood of a Gaussian process with independent scatter, over a
 * grid of its few constants. The workloads' residuals are independent of each other. */

#define LEAST 1e-3     /* scatter: no meter repeats better */
#define FREE_LEAST 6.0 /* fewer degrees of freedom than this: the errors are assumed */
#define ROWS_MAX 40    /* per workload: more are thinned, because a Cholesky decomposition takes long */

typedef struct sample {
    const fl_chip_row *row;
    const double *r;
    size_t index[ROWS_MAX], count;
    double grow; /* correction for the numbers that were fitted to these rows */
} sample;

/* Log likelihood, with the overall scale profiled out: *scale2 is its best value. */
static double likelihood(const sample *s, size_t spans, const fl_chip_error *shape, double limit, double *scale2) {
    double squares = 0, half_log = 0, a[ROWS_MAX * ROWS_MAX], x[ROWS_MAX];
    size_t total = 0;
    for (size_t k = 0; k < spans; k++) {
        const size_t n = s[k].count;
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j <= i; j++)
                a[i * n + j] = fl_chip_covariance(shape, &s[k].row[s[k].index[i]], &s[k].row[s[k].index[j]]);
            a[i * n + i] += shape->scatter * shape->scatter;
            x[i] = s[k].grow *
                   fmax(-limit, fmin(limit, s[k].r[s[k].index[i]])); /* single outliers must not set the scale */
        }
        if (!fl_chip_cholesky(a, n))
            return -(double)INFINITY;
        fl_chip_lower_solve(a, n, x);
        for (size_t i = 0; i < n; i++) {
            squares += x[i] * x[i];
            half_log += log(a[i * n + i]);
        }
        total += n;
    }
    *scale2 = squares / (double)total;
    return -0.5 * (double)total * log(*scale2) - half_log;
}

fl_model_status fl_chip_fit_error(const fl_chip_row *row, const double *r, const fl_chip_span *span, size_t spans,
                                  double parts, fl_chip_error *e) {
    static const double part[] = {0, 0.3, 0.5, 0.7, 0.85, 0.95}; /* smooth share of the variance */
    static const double length[] = {0.05, 0.1, 0.2, 0.4, 0.8};
    sample *s = calloc(spans + 1, sizeof *s);
    size_t total = 0;
    for (size_t k = 0; k < spans; k++)
        total += span[k].count;
    double *size = malloc((total + 1) * sizeof *size), top = -(double)INFINITY;
    if ((double)total - parts * (double)spans < FREE_LEAST) {
        *e = (fl_chip_error){.scatter = 0.005, .smooth = 0.01, .length_sm = 0.2, .length_mem = 0.4};
        free(s);
        free(size);
        return FL_MODEL_OK;
    }
    if (!s || !size) {
        free(s);
        free(size);
        return FL_MODEL_NO_MEMORY;
    }
    size_t used = 0, n = 0;
    for (size_t k = 0; k < spans; k++) {
        const size_t stride = span[k].count / ROWS_MAX + 1;
        const double n_rows = (double)span[k].count;
        s[used] = (sample){.row = row, .r = r, .grow = sqrt(n_rows / fmax(1, n_rows - parts))};
        for (size_t i = 0; i < span[k].count; i += stride)
            if (!isnan(r[span[k].first + i])) {
                s[used].index[s[used].count++] = span[k].first + i;
                size[n++] = fabs(r[span[k].first + i]);
            }
        used += s[used].count > 0;
    }
    fl_model_status status = n > 0 ? FL_MODEL_OK : FL_MODEL_NO_FIT;
    if (status == FL_MODEL_OK) {
        gsl_sort(size, 1, n);
        const double limit = fmax(5 * 1.4826 * size[n / 2], 1e-9);
        int many_mem = 0;
        for (size_t i = 1; i < total && !many_mem; i++)
            many_mem = fabs(row[i].mem_mhz - row[0].mem_mhz) > 0.5;
        for (size_t p = 0; p < sizeof part / sizeof *part; p++)
            for (size_t i = 0; i < (p ? sizeof length / sizeof *length : 1); i++)
                for (size_t j = 0; j < (p && many_mem ? sizeof length / sizeof *length : 1); j++) {
                    double scale2 = 0;
                    const fl_chip_error shape = {.scatter = sqrt(1 - part[p]),
                                                 .smooth = sqrt(part[p]),
                                                 .length_sm = length[i],
                                                 .length_mem = many_mem ? length[j] : 1};
                    const double l = likelihood(s, used, &shape, limit, &scale2);
                    if (l > top) {
                        const double scale = sqrt(scale2);
                        top = l;
                        *e = shape;
                        e->scatter *= scale;
                        e->smooth *= scale;
                    }
                }
        e->scatter = fmax(LEAST, e->scatter);
        if (!isfinite(top))
            status = FL_MODEL_NO_FIT;
    }
    free(s);
    free(size);
    return status;
}

fl_model_status fl_chip_robust_pct(const double *r, size_t count, double *pct, size_t *beyond) {
    double *size = malloc((count + 1) * sizeof *size);
    size_t n = 0;
    if (!size)
        return FL_MODEL_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        if (!isnan(r[i]))
            size[n++] = fabs(r[i]);
    gsl_sort(size, 1, n);
    *pct = n ? 100 * 1.4826 * size[n / 2] : NAN;
    *beyond = 0;
    for (size_t i = 0; i < n; i++)
        *beyond += 100 * size[i] > fmax(6 * *pct, 3);
    free(size);
    return FL_MODEL_OK;
}

/* The idle clock tree, from sweeps: how much power every workload gains with V^2 f. Kernels never do less work at a
 * higher SM clock, so each slope in V^2 f is A0 plus what the kernel's own activity adds. The least slope of all
 * therefore bounds A0 from above; only a GPU that idles with a context open (models/fit/fit.h) bounds it from below.
 * The slopes are taken at one memory clock, so that neither B0(m) nor its voltage enters, and at the floor of V, where
 * the chip has one, so that C does not. */

#define POINTS_MIN 4   /* SM clocks of a slope: two for the line, two to show its scatter */
#define POINTS_MAX 96  /* more are thinned, since all pairs are compared */
#define FLAT 1.01      /* V at its floor */
#define RANGE_MIN 1.15 /* highest over lowest clock */
#define TO_SIGMA 1.4826
#define SLOPE_LEAST 1e-3 /* relative scatter: no meter repeats better */

typedef struct line {
    double slope, scatter; /* W per V^2 GHz; relative standard deviation of a reading */
    double spread, power;  /* root of the sum of squares of V^2 f about its mean; mean power */
} line;

/* Theil-Sen: the median of the slopes of all pairs, which single outliers do not move. room: n (n - 1) / 2 or n. */
static line fit_line(const double *x, const double *watts, size_t n, double *room) {
    line l = {0};
    size_t pairs = 0;
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        mean += x[i] / (double)n;
        l.power += watts[i] / (double)n;
        for (size_t k = 0; k < i; k++)
            if (fabs(x[i] - x[k]) > 1e-6)
                room[pairs++] = (watts[i] - watts[k]) / (x[i] - x[k]);
    }
    l.slope = gsl_stats_median(room, 1, pairs);
    for (size_t i = 0; i < n; i++) {
        room[i] = watts[i] - l.slope * x[i];
        squares += (x[i] - mean) * (x[i] - mean);
    }
    const double level = gsl_stats_median(room, 1, n);
    for (size_t i = 0; i < n; i++)
        room[i] = fabs(watts[i] - level - l.slope * x[i]);
    l.scatter = TO_SIGMA * gsl_stats_median(room, 1, n) / l.power * sqrt((double)n / (double)(n - 2));
    l.spread = sqrt(squares);
    return l;
}

/* Collects V^2 f and power of a span's rows at the highest memory clock. Returns how many. */
static size_t take_points(const fl_chip *c, const fl_chip_row *row, fl_chip_span s, double flat_mhz, double *x,
                          double *watts) {
    const size_t stride = s.count / POINTS_MAX + 1;
    double low = INFINITY, high = 0;
    size_t n = 0;
    for (size_t i = s.first; i < s.first + s.count && n < POINTS_MAX; i += stride) {
        const fl_chip_row *r = &row[i];
        if (r->mem_mhz < 0.99 * c->mem_ref || r->sm_mhz > flat_mhz || isnan(r->power_w))
            continue;
        const double v = fl_chip_volt(c, r->sm_mhz, r->mem_mhz);
        x[n] = v * v * r->sm_mhz / 1000;
        watts[n++] = r->power_w;
        low = fmin(low, r->sm_mhz);
        high = fmax(high, r->sm_mhz);
    }
    return n >= POINTS_MIN && high > RANGE_MIN * low ? n : 0;
}

/* The highest SM clock at which V has not risen, or the highest of all where the floor is too short for a line. */
static double flat_range(const fl_chip *c) {
    double flat = 0;
    size_t points = 0;
    for (uint32_t i = 0; i < c->knots; i++)
        if (fl_chip_volt(c, c->knot_mhz[i], c->mem_ref) <= FLAT * fl_chip_volt(c, c->sm_min, c->mem_ref)) {
            flat = c->knot_mhz[i];
            points++;
        }
    return points >= POINTS_MIN && flat > RANGE_MIN * c->sm_min ? flat + 0.5 : INFINITY;
}

fl_model_status fl_chip_least_slope(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip *chip) {
    const double flat = flat_range(chip);
    double *room = malloc((POINTS_MAX * POINTS_MAX + 2 * POINTS_MAX + spans) * sizeof *room);
    line *of = calloc(spans + 1, sizeof *of);
    size_t lines = 0;
    chip->slope_w = chip->slope_sd = NAN;
    if (!room || !of) {
        free(room);
        free(of);
        return FL_MODEL_NO_MEMORY;
    }
    double *x = room + POINTS_MAX * POINTS_MAX, *watts = x + POINTS_MAX, *scatter = watts + POINTS_MAX;
    for (size_t k = 0; k < spans; k++) {
        const size_t n = take_points(chip, row, span[k], flat, x, watts);
        if (n > 0) {
            of[lines] = fit_line(x, watts, n, room);
            scatter[lines] = of[lines].scatter;
            lines++;
        }
    }
    const double common = lines ? gsl_stats_median(scatter, 1, lines) : 0; /* a few points may lie on a line by luck */
    const uint32_t top = chip->knots - 1;
    const double v = fl_chip_volt(chip, chip->sm_ref, chip->mem_ref), ghz = chip->sm_ref / 1000;
    const double rise = v * v * ghz - chip->sm_min / 1000;
    double least = INFINITY;
    for (size_t k = 0; k < lines; k++) {
        const double own = fmax(fmax(common, SLOPE_LEAST), of[k].scatter) * of[k].power / of[k].spread;
        const double volt = isfinite(flat) ? 0 : of[k].slope * 2 * v * ghz * chip->volt_sd[top] / rise;
        const double sd = sqrt(own * own + volt * volt);
        if (of[k].slope + 2 * sd < least) { /* choose a slope that is certainly low, not one that scatter made low */
            least = of[k].slope + 2 * sd;
            chip->slope_w = fmax(0, of[k].slope);
            chip->slope_sd = sd;
        }
    }
    free(room);
    free(of);
    return FL_MODEL_OK;
}
