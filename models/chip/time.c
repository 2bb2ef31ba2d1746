/* Fits the time part of a chip. The outer search is a simplex over sharpness and link. The inner search finds each
 * workload's parts in the unit square; the overall scale has a closed form. */
#include "models/chip/inside.h"

#include "models/chip/chip.h"
#include "models/math/math.h"

#include <gsl/gsl_multimin.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define COARSE 12      /* the same where a search follows */
#define SEARCHED 48    /* workloads in the outer search: more add time but little knowledge */
#define SCALE 0.005    /* scale of the robust loss: time repeats to about that */
#define DIM 4          /* ln p, ln f_link, ln s, ln q */
#define SHARP_MAX 60.0 /* a sharpness beyond this is the maximum, as far as any measurement shows */
#define SLOPE_MAX 6.0
#define LINK_GAIN 0.94 /* the link must lower the loss to this share of the loss without it */

typedef struct settings {
    double *f_ratio, *h, *ln; /* per row; ln: measured ln T */
    double *model;            /* room for one workload */
} settings;

typedef struct search {
    const fl_chip_row *row;
    const fl_chip_span *span;
    size_t spans, count;
    fl_chip *chip;
    settings at;
    double *curve; /* [cell][setting]: the shapes at the distinct settings */
    size_t *of;    /* per row: its distinct setting */
    double *df, *dh;
    size_t distinct;
    double *memory, *rest, *offset; /* per span: the best */
    int linked;
    size_t stride; /* of the workloads in the outer search */
    bool no_memory;
} search;

/* Loss of one workload for a given shape. The offset that minimises the robust loss comes from reweighting. */
static double loss_of(const double *model, const double *ln, size_t n, int rounds, double *offset) {
    double sum = 0, weight = 0, c = 0;
    for (size_t i = 0; i < n; i++)
        sum += ln[i] - model[i];
    c = sum / (double)n;
    for (int round = 1; round < rounds; round++) {
        sum = weight = 0;
        for (size_t i = 0; i < n; i++) {
            const double r = (ln[i] - model[i] - c) / SCALE, w = 1 / sqrt(1 + r * r);
            sum += w * (ln[i] - model[i]);
            weight += w;
        }
        c = sum / weight;
    }
    double loss = 0;
    for (size_t i = 0; i < n; i++)
        loss += fl_chip_loss(ln[i] - model[i] - c, SCALE);
    *offset = c;
    return loss;
}

/* A weak preference for small parts: a workload has no memory part and no rest unless the data show one. */
static double mild(double memory, double rest) { return 1e-7 * (memory * memory + 4 * rest); }

typedef struct point {
    double memory, rest;
} point;

/* Whether the search has visited this point. At the edges of the square, where many kernels lie, and after a step, it
 * has visited most neighbours before. */
static int is_among(const point *p, size_t count, double memory, double rest) {
    for (size_t i = 0; i < count; i++)
        if (fabs(p[i].memory - memory) < 1e-12 && fabs(p[i].rest - rest) < 1e-12)
            return 1;
    return 0;
}

static double best_of_span(search *q, size_t k) {
    const fl_chip_span s = q->span[k];
    const double *ln = q->at.ln + s.first;
    double best = INFINITY, memory = 0, rest = 0, offset = 0, c = 0;
    point before[9];
    size_t befores = 0;
    int polished = 0;
    for (size_t cell = 0; cell < COARSE * COARSE; cell++) {
        const double u = ((double)(cell % COARSE) + 0.5) / COARSE, v = ((double)(cell / COARSE) + 0.5) / COARSE;
        const double *curve = q->curve + cell * q->distinct;
        for (size_t i = 0; i < s.count; i++)
            q->at.model[i] = curve[q->of[s.first + i]];
        const double l = loss_of(q->at.model, ln, s.count, 2, &c) + mild(u, v);
        if (l < best) {
            best = l;
            memory = u;
            rest = v;
            offset = c;
        }
    }
    for (double step = 0.5 / COARSE; step > 3e-4; step /= 2)
        for (int moved = 1, rounds = 0; moved && rounds < 20; rounds++) {
            moved = 0;
            const double u0 = memory, v0 = rest;
            point tried[9];
            size_t tries = polished ? 1 : 0; /* the grid's own point had fewer rounds of reweighting */
            tried[0] = (point){u0, v0};
            for (int d = 0; d < 8; d++) {
                static const int dx[] = {1, -1, 0, 0, 1, 1, -1, -1}, dy[] = {0, 0, 1, -1, 1, -1, 1, -1};
                const double u = fmin(1, fmax(0, u0 + step * dx[d])), v = fmin(1, fmax(0, v0 + step * dy[d]));
                if (is_among(tried, tries, u, v) || is_among(before, befores, u, v))
                    continue;
                tried[tries++] = (point){u, v};
                fl_chip_shape(q->chip->sharpness, u, v, q->at.f_ratio + s.first, q->at.h + s.first, s.count,
                              q->at.model);
                const double l = loss_of(q->at.model, ln, s.count, 4, &c) + mild(u, v);
                if (l < best - 1e-12) {
                    best = l;
                    memory = u;
                    rest = v;
                    offset = c;
                    moved = polished = 1;
                }
            }
            memcpy(before, tried, sizeof before);
            befores = tries;
        }
    q->memory[k] = memory;
    q->rest[k] = rest;
    q->offset[k] = offset;
    return best;
}

static void set_clocks(search *q) {
    for (size_t i = 0; i < q->count; i++) {
        q->at.f_ratio[i] = q->chip->sm_ref / q->row[i].sm_mhz;
        q->at.h[i] = fl_chip_memory_ratio(q->chip, q->row[i].sm_mhz, q->row[i].mem_mhz);
        q->df[q->of[i]] = q->at.f_ratio[i];
        q->dh[q->of[i]] = q->at.h[i];
    }
    for (size_t cell = 0; cell < COARSE * COARSE; cell++)
        fl_chip_shape(q->chip->sharpness, ((double)(cell % COARSE) + 0.5) / COARSE,
                      ((double)(cell / COARSE) + 0.5) / COARSE, q->df, q->dh, q->distinct,
                      q->curve + cell * q->distinct);
}

static double clamp_ln(double x, double low, double high, double *excess) {
    const double c = fmin(log(high), fmax(log(low), x));
    *excess += fabs(x - c);
    return exp(c);
}

/* Total loss at a point of the outer search; sets the chip and the workloads' best parts. */
static double loss_at(const gsl_vector *x, void *user) {
    search *q = user;
    double excess = 0, loss = 0;
    q->chip->sharpness = clamp_ln(gsl_vector_get(x, 0), 1, SHARP_MAX, &excess);
    q->chip->link_mhz = 0;
    if (q->linked) {
        q->chip->link_mhz = clamp_ln(gsl_vector_get(x, 1), 0.3 * q->chip->sm_min, 1.2 * q->chip->sm_ref, &excess);
        q->chip->link_slope = clamp_ln(gsl_vector_get(x, 2), 0.5, SLOPE_MAX, &excess);
        q->chip->link_sharp = clamp_ln(gsl_vector_get(x, 3), 1, SHARP_MAX, &excess);
    }
    set_clocks(q);
    for (size_t k = 0; k < q->spans; k += q->stride)
        loss += best_of_span(q, k);
    return loss + excess * SCALE * SCALE * (double)q->count;
}

/* Nelder-Mead from x (its best point comes back in x). */
static double polish(search *q, gsl_vector *x, int iterations) {
    double best = loss_at(x, q);
    gsl_vector *step = gsl_vector_alloc(x->size);
    gsl_multimin_fminimizer *m = gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, x->size);
    if (step && m) {
        gsl_multimin_function f = {.f = loss_at, .n = x->size, .params = q};
        gsl_vector_set_all(step, 0.25);
        if (x->size > 1)
            gsl_vector_set(step, 1, 0.08);
        if (gsl_multimin_fminimizer_set(m, &f, x, step) == 0)
            for (int k = 0; k < iterations && gsl_multimin_fminimizer_size(m) > 2e-3; k++)
                if (gsl_multimin_fminimizer_iterate(m) != 0)
                    break;
        if (m->fval < best) {
            best = m->fval;
            gsl_vector_memcpy(x, m->x);
        }
    }
    q->no_memory |= !step || !m;
    if (m)
        gsl_multimin_fminimizer_free(m);
    gsl_vector_free(step);
    return best;
}

/* The distinct pairs of clocks, so that a shape is computed once for all workloads measured there. */
static void find_distinct(search *q) {
    for (size_t i = 0; i < q->count; i++) {
        size_t d = 0, k = 0;
        for (; k < i; k++)
            if (fabs(q->row[k].sm_mhz - q->row[i].sm_mhz) < 1e-9 && fabs(q->row[k].mem_mhz - q->row[i].mem_mhz) < 1e-9)
                break;
        d = k < i ? q->of[k] : q->distinct++;
        q->of[i] = d;
    }
}

/* How sharply the loss rises about its lowest point x tells how well p and f_link are known. */
static void set_spread(search *q, gsl_vector *x, double loss) {
    const double step = 0.15, left = (double)q->count - 3 * (double)q->spans - (double)x->size;
    double sd[2] = {NAN, NAN};
    q->chip->time_left = (double)q->count - (double)x->size;
    for (size_t k = 0; k < q->spans; k++) /* level, memory and rest, limited by the number of the workload's rows */
        q->chip->time_left -= fmin(3, (double)q->span[k].count);
    for (size_t d = 0; d < 2 && d < x->size; d++) {
        const double at = gsl_vector_get(x, d);
        gsl_vector_set(x, d, at + step);
        double sum = loss_at(x, q);
        gsl_vector_set(x, d, at - step);
        sum += loss_at(x, q);
        gsl_vector_set(x, d, at);
        const double bend = (sum - 2 * loss) / (step * step);
        sd[d] = bend > 0 && left > 0 ? sqrt(2 * loss / left / bend) : (double)INFINITY;
    }
    (void)loss_at(x, q);
    q->chip->sharpness_sd = q->chip->sharpness * sd[0];
    q->chip->link_sd = q->chip->link_mhz * sd[1];
}

static double fit_outer(search *q, fl_chip_law law) {
    static const double sharp[] = {3, 10}, link[] = {0, 0.25, 0.6}, slope[] = {1.1, 3};
    gsl_vector *x = gsl_vector_alloc(DIM), *best = gsl_vector_alloc(DIM), *one = gsl_vector_alloc(1);
    double plain = INFINITY, linked = INFINITY, found = INFINITY;
    if (!x || !best || !one) {
        gsl_vector_free(x);
        gsl_vector_free(best);
        gsl_vector_free(one);
        q->no_memory = true;
        return INFINITY;
    }
    gsl_vector_set(one, 0, log(8));
    q->linked = 0;
    q->stride = (q->spans - 1) / SEARCHED + 1;
    plain = polish(q, one, 60);
    double start[2][DIM], start_loss[2] = {INFINITY, INFINITY};
    const double range = log(q->chip->sm_ref / q->chip->sm_min);
    q->linked = law == FL_CHIP_FULL && range > 0.05;
    for (size_t i = 0; q->linked && i < 12; i++) {
        const double at[DIM] = {log(sharp[i % 2]), log(q->chip->sm_min) + range * link[i / 2 % 3], log(slope[i / 6]),
                                log(5)};
        for (size_t d = 0; d < DIM; d++)
            gsl_vector_set(x, d, at[d]);
        const double l = loss_at(x, q);
        const size_t worse = start_loss[0] > start_loss[1] ? 0 : 1;
        if (l < start_loss[worse]) {
            start_loss[worse] = l;
            memcpy(start[worse], at, sizeof at);
        }
    }
    for (size_t i = 0; q->linked && i < 2; i++) {
        for (size_t d = 0; d < DIM; d++)
            gsl_vector_set(x, d, start[i][d]);
        const double l = polish(q, x, 120);
        if (l < linked) {
            linked = l;
            gsl_vector_memcpy(best, x);
        }
    }
    /* The link's three numbers must gain more than chance gives them (Bayesian information criterion, with a margin).
     */
    const double n = (double)q->count / (double)q->stride, chance = exp(-(3 * log(n) + 10) / n);
    if (q->linked && linked < fmin(LINK_GAIN, chance) * plain) {
        q->stride = 1;
        found = loss_at(best, q);
        set_spread(q, best, found);
    } else {
        q->linked = 0;
        q->stride = 1;
        found = loss_at(one, q);
        set_spread(q, one, found);
    }
    gsl_vector_free(x);
    gsl_vector_free(best);
    gsl_vector_free(one);
    return found;
}

fl_model_status fl_chip_fit_time(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip_law law,
                                 fl_chip *chip, double *time_ref) {
    fl_gsl_quiet();
    search q = {.row = row, .span = span, .spans = spans, .chip = chip};
    for (size_t k = 0; k < spans; k++)
        q.count = span[k].first + span[k].count > q.count ? span[k].first + span[k].count : q.count;
    q.of = calloc(q.count + 1, sizeof *q.of);
    double *memory = calloc(7 * q.count + 3 * spans + 8, sizeof *memory);
    fl_model_status s = q.of && memory ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    if (s == FL_MODEL_OK) {
        find_distinct(&q);
        q.at.f_ratio = memory;
        q.at.h = memory + q.count;
        q.at.ln = memory + 2 * q.count;
        q.at.model = memory + 3 * q.count;
        q.df = memory + 4 * q.count;
        q.dh = memory + 5 * q.count;
        double *r = memory + 6 * q.count;
        q.memory = memory + 7 * q.count;
        q.rest = q.memory + spans;
        q.offset = q.rest + spans;
        q.curve = calloc((size_t)COARSE * COARSE * (q.distinct + 1), sizeof *q.curve);
        for (size_t i = 0; i < q.count; i++)
            q.at.ln[i] = log(row[i].time_s);
        s = q.curve ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
        if (s == FL_MODEL_OK && !isfinite(fit_outer(&q, law)))
            s = FL_MODEL_NO_FIT;
        if (q.no_memory) /* a search cut short is no fit at all */
            s = FL_MODEL_NO_MEMORY;
        for (size_t k = 0; s == FL_MODEL_OK && k < spans; k++) {
            fl_chip_shape(chip->sharpness, q.memory[k], q.rest[k], q.at.f_ratio + span[k].first, q.at.h + span[k].first,
                          span[k].count, q.at.model);
            for (size_t i = 0; i < span[k].count; i++)
                r[span[k].first + i] = q.at.ln[span[k].first + i] - q.at.model[i] - q.offset[k];
            double one = 0, unit = 1;
            fl_chip_shape(chip->sharpness, q.memory[k], q.rest[k], &unit, &unit, 1, &one);
            time_ref[k] = exp(q.offset[k] + one);
        }
        if (s == FL_MODEL_OK)
            s = fl_chip_robust_pct(r, q.count, &chip->time_rms_pct, &chip->time_outliers);
        if (!(chip->time_left > 0))
            chip->time_rms_pct = NAN;
        if (s == FL_MODEL_OK)
            s = fl_chip_fit_error(row, r, span, spans, 3, &chip->time_error);
        if (s == FL_MODEL_OK)
            s = fl_chip_fill_prior(row, span, spans, chip);
        if (s == FL_MODEL_OK)
            s = fl_chip_place_settings(row, q.count, chip);
        const size_t stride = spans / FL_CHIP_SHARES + 1;
        for (size_t k = 0, n = 0; s == FL_MODEL_OK && k < spans; k += stride, n++) {
            for (uint32_t i = 0; i < chip->settings; i++)
                chip->time_off[n][i] = chip->power_off[n][i] = NAN;
            for (size_t i = span[k].first; i < span[k].first + span[k].count; i++) {
                const uint32_t at = fl_chip_setting_of(chip, &row[i]);
                if (at != UINT32_MAX)
                    chip->time_off[n][at] = r[i];
            }
        }
    }
    free(q.curve);
    free(memory);
    free(q.of);
    return s;
}
