/* A workload's parts as a distribution over the unit square (memory's part of core + memory, the rest's part of all):
 * weighted with how well they meet its known settings and with what the chip's other workloads are like. Predictions
 * are means over it, by cells that are made finer where the weight is. */
#include "models/fit_chip_parts.h"

#include <math.h>
#include <stdlib.h>

#define GRID 24 /* cells along each side of the square */

typedef struct cell {
    double memory, rest, half; /* middle and half width */
    double log_weight, offset;
} cell;

typedef struct posterior {
    const fl_chip *chip;
    const fl_chip_row *known;
    size_t n;
    double *f_ratio, *h, *ln; /* of the known */
    double *lower;            /* Cholesky factor of their covariance */
    double *unit, one;        /* L^-1 1 and its square */
    double *model;
    const double *likely; /* of each share, how well its power fits; NULL = all alike */
    const double *offs;   /* of fl_chip_offs_make for the known rows; NULL = none */
    double *off;          /* room: per known row */
} posterior;

/* How far a workload lies from the nearest of the chip's others: the more there are, the nearer. */
#define NARROW 0.06
#define NARROW_FEW 0.3 /* over the root of their number */
#define STRANGE 0.3    /* as many workloads of any kind at all stand beside those of the calibration */

static double prior_density(const posterior *p, double memory, double rest) {
    const fl_chip *chip = p->chip;
    double sum = 0, count = 0;
    const double near = fmax(NARROW, NARROW_FEW / sqrt(fmax(1, chip->shares)));
    for (uint32_t i = 0; i < chip->shares; i++) {
        const fl_chip_share *s = &chip->share[i];
        const double su = sqrt(s->memory_sd * s->memory_sd + near * near);
        const double sv = sqrt(s->rest_sd * s->rest_sd + near * near);
        const double x = (memory - s->memory) / su, y = (rest - s->rest) / sv, w = p->likely ? p->likely[i] : 1;
        sum += w * exp(-0.5 * (x * x + y * y)) / (2 * M_PI * su * sv);
        count += w;
    }
    return (sum + STRANGE) / (count + STRANGE);
}

static void weigh(const posterior *p, cell *c) {
    fl_chip_shape(p->chip->sharpness, c->memory, c->rest, p->f_ratio, p->h, p->n, p->model);
    double cross = 0, squares = 0;
    for (size_t i = 0; i < p->n; i++)
        p->model[i] = p->ln[i] - p->model[i];
    if (p->offs) {
        const fl_chip_share as = {.memory = c->memory, .rest = c->rest};
        fl_chip_offs_at(p->chip, 0, p->offs, p->n, &as, p->off);
        for (size_t i = 0; i < p->n; i++)
            p->model[i] -= p->off[i];
    }
    fl_chip_lower_solve(p->lower, p->n, p->model);
    for (size_t i = 0; i < p->n; i++) {
        cross += p->unit[i] * p->model[i];
        squares += p->model[i] * p->model[i];
    }
    c->offset = cross / p->one;
    c->log_weight =
        -0.5 * (squares - cross * cross / p->one) + log(prior_density(p, c->memory, c->rest)) + 2 * log(c->half);
}

static int heavier(const void *a, const void *b) {
    const double x = ((const cell *)a)->log_weight, y = ((const cell *)b)->log_weight;
    return x > y ? -1 : x < y;
}

#define KEEP 150 /* cells made finer on each level */
#define LEVELS 3
#define DEEP 12 /* ln weight below the heaviest cell beyond which one is left out */
#define ROOM (GRID * GRID + (size_t)KEEP * 8 * LEVELS)

/* Cells of the unit square by their posterior weight, finest where that is; how many. list: ROOM cells. The light ones
 * stay as they are: where little is known they are many and weigh more together than the heaviest. */
static size_t integrate(const posterior *p, cell *list) {
    size_t n = 0;
    for (size_t i = 0; i < GRID * GRID; i++) {
        list[n] = (cell){
            .memory = ((double)(i % GRID) + 0.5) / GRID, .rest = ((double)(i / GRID) + 0.5) / GRID, .half = 0.5 / GRID};
        weigh(p, &list[n++]);
    }
    for (int level = 0; level < LEVELS; level++) {
        qsort(list, n, sizeof *list, heavier);
        while (n > 1 && !(list[n - 1].log_weight > list[0].log_weight - DEEP))
            n--;
        const size_t kept = n < KEEP ? n : KEEP;
        for (size_t i = 0; i < kept; i++) { /* nine for one: the middle keeps its place */
            const cell whole = list[i];
            const double third = whole.half * 2 / 3;
            for (int d = 0; d < 9; d++) {
                cell part = {.memory = whole.memory + third * (d % 3 - 1),
                             .rest = whole.rest + third * (d / 3 - 1),
                             .half = whole.half / 3};
                weigh(p, &part);
                if (d == 4)
                    list[i] = part;
                else
                    list[n++] = part;
            }
        }
    }
    return n;
}

#define LIKE_POWER 0.35 /* of ln power */

/* Kernels bound by memory and programs bound by their host look alike in time while the SM clock hardly matters, but
 * not in power. likely: how near each share's power comes to that of the fastest known setting. */
static void weigh_powers(const fl_chip *chip, const fl_chip_row *known, size_t count, double *likely) {
    const fl_chip_row *fastest = &known[0];
    for (size_t i = 1; i < count; i++)
        if (known[i].sm_mhz * known[i].mem_mhz > fastest->sm_mhz * fastest->mem_mhz)
            fastest = &known[i];
    for (uint32_t k = 0; k < chip->shares; k++) {
        const fl_chip_share *s = &chip->share[k];
        likely[k] = 1;
        if (!chip->has_power || isnan(fastest->power_w))
            continue;
        const fl_chip_load load = {(1 - s->rest) * (1 - s->memory), (1 - s->rest) * s->memory, s->rest, s->alpha,
                                   s->beta};
        const double time = fl_chip_time(chip, &load, fastest->sm_mhz, fastest->mem_mhz);
        const double watts = fl_chip_power(chip, &load, fastest->sm_mhz, fastest->mem_mhz, time);
        const double x = log(fastest->power_w / watts) / LIKE_POWER;
        likely[k] = 0.05 + exp(-0.5 * x * x);
    }
}

fl_model_status fl_chip_predict_time(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                     const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess,
                                     fl_chip_load *load) {
    const size_t n = known_count, m = asked_count;
    double *memory =
        calloc(n * n + 5 * n + m * (n + 5) + (n + m) * ((size_t)chip->shares + 1) + chip->shares + 8, sizeof *memory);
    cell *list = malloc(ROOM * sizeof *list);
    if (!memory || !list) {
        free(memory);
        free(list);
        return FL_MODEL_NO_MEMORY;
    }
    double *at = memory;
    posterior p = {.chip = chip, .known = known, .n = n};
    p.lower = at, at += n * n;
    p.f_ratio = at, at += n;
    p.h = at, at += n;
    p.ln = at, at += n;
    p.unit = at, at += n;
    p.model = at, at += n;
    double *gain = at; /* m x n: K_asked,known K^-1 */
    double *f = gain + m * n, *h = f + m, *shape = h + m, *mean = shape + m, *square = mean + m;
    double *likely = square + m, *off = likely + chip->shares, *offs = off + n + m; /* of known rows, then asked ones */
    weigh_powers(chip, known, n, likely);
    fl_chip_offs_make(chip, 0, known, n, offs);
    fl_chip_offs_make(chip, 0, asked, m, offs + n * chip->shares);
    p.likely = likely;
    p.offs = offs;
    p.off = off;
    const fl_chip_error *e = &chip->time_error;
    for (size_t i = 0; i < n; i++) {
        p.f_ratio[i] = chip->sm_ref / known[i].sm_mhz;
        p.h[i] = fl_chip_memory_ratio(chip, known[i].sm_mhz, known[i].mem_mhz);
        p.ln[i] = log(known[i].time_s);
        p.unit[i] = 1;
        for (size_t j = 0; j <= i; j++)
            p.lower[i * n + j] = fl_chip_covariance(e, &known[i], &known[j]);
        p.lower[i * n + i] += e->scatter * e->scatter + 1e-10;
    }
    fl_model_status s = fl_chip_cholesky(p.lower, n) ? FL_MODEL_OK : FL_MODEL_NO_FIT;
    if (s == FL_MODEL_OK) {
        fl_chip_lower_solve(p.lower, n, p.unit);
        for (size_t i = 0; i < n; i++)
            p.one += p.unit[i] * p.unit[i];
        for (size_t j = 0; j < m; j++) {
            f[j] = chip->sm_ref / asked[j].sm_mhz;
            h[j] = fl_chip_memory_ratio(chip, asked[j].sm_mhz, asked[j].mem_mhz);
            for (size_t i = 0; i < n; i++)
                gain[j * n + i] = fl_chip_covariance(e, &asked[j], &known[i]);
            fl_chip_lower_solve(p.lower, n, gain + j * n);
        }
        const size_t cells = integrate(&p, list);
        double top = -(double)INFINITY, total = 0, u = 0, v = 0, c = 0;
        for (size_t k = 0; k < cells; k++)
            top = fmax(top, list[k].log_weight);
        for (size_t k = 0; k < cells; k++) {
            const double w = exp(list[k].log_weight - top);
            if (w < 1e-7)
                continue;
            total += w;
            u += w * list[k].memory;
            v += w * list[k].rest;
            c += w * list[k].offset;
            fl_chip_shape(chip->sharpness, list[k].memory, list[k].rest, p.f_ratio, p.h, n, p.model);
            const fl_chip_share as = {.memory = list[k].memory, .rest = list[k].rest};
            fl_chip_offs_at(chip, 0, offs, n + m, &as, off);
            for (size_t i = 0; i < n; i++)
                p.model[i] = p.ln[i] - p.model[i] - list[k].offset - off[i];
            fl_chip_lower_solve(p.lower, n, p.model);
            fl_chip_shape(chip->sharpness, list[k].memory, list[k].rest, f, h, m, shape);
            for (size_t j = 0; j < m; j++)
                shape[j] += off[n + j];
            for (size_t j = 0; j < m; j++) {
                double y = shape[j] + list[k].offset;
                for (size_t i = 0; i < n; i++)
                    y += gain[j * n + i] * p.model[i];
                mean[j] += w * y;
                square[j] += w * y * y;
            }
        }
        for (size_t j = 0; j < m; j++) {
            const double y = mean[j] / total;
            double variance = fmax(0, square[j] / total - y * y) + e->scatter * e->scatter + e->smooth * e->smooth;
            for (size_t i = 0; i < n; i++)
                variance -= gain[j * n + i] * gain[j * n + i];
            guess[j].time_s = exp(y);
            guess[j].time_sd_pct = fl_chip_sd_pct(e, known, n, &asked[j], variance);
        }
        const double scale = exp(c / total), rest = v / total, share = u / total;
        load->tc = scale * (1 - rest) * (1 - share);
        load->tm = scale * (1 - rest) * share;
        load->tl = scale * rest;
    }
    free(memory);
    free(list);
    return s;
}

fl_model_status fl_chip_fill_prior(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip *chip) {
    const size_t stride = spans / FL_CHIP_SHARES + 1;
    cell *list = malloc(ROOM * sizeof *list);
    size_t largest = 1;
    for (size_t k = 0; k < spans; k++)
        largest = span[k].count > largest ? span[k].count : largest;
    double *memory = calloc(largest * (largest + 5), sizeof *memory);
    fl_model_status s = list && memory ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    fl_chip flat = *chip;
    flat.shares = 0;
    for (size_t k = 0; s == FL_MODEL_OK && k < spans; k += stride) {
        const fl_chip_span at = span[k];
        const size_t n = at.count;
        posterior p = {.chip = &flat, .known = row + at.first, .n = n, .lower = memory};
        double *next = memory + n * n;
        p.unit = next, next += n;
        p.model = next, next += n;
        p.f_ratio = next, next += n;
        p.h = next, next += n;
        p.ln = next;
        for (size_t i = 0; i < n; i++) {
            p.unit[i] = 1;
            p.f_ratio[i] = chip->sm_ref / p.known[i].sm_mhz;
            p.h[i] = fl_chip_memory_ratio(chip, p.known[i].sm_mhz, p.known[i].mem_mhz);
            p.ln[i] = log(p.known[i].time_s);
            for (size_t j = 0; j <= i; j++)
                p.lower[i * n + j] = fl_chip_covariance(&chip->time_error, &p.known[i], &p.known[j]);
            p.lower[i * n + i] += chip->time_error.scatter * chip->time_error.scatter + 1e-10;
        }
        if (!fl_chip_cholesky(p.lower, n))
            continue;
        fl_chip_lower_solve(p.lower, n, p.unit);
        for (size_t i = 0; i < n; i++)
            p.one += p.unit[i] * p.unit[i];
        const size_t cells = integrate(&p, list);
        double top = -(double)INFINITY, total = 0, u = 0, v = 0, uu = 0, vv = 0;
        for (size_t i = 0; i < cells; i++)
            top = fmax(top, list[i].log_weight);
        for (size_t i = 0; i < cells; i++) {
            const double w = exp(list[i].log_weight - top);
            total += w;
            u += w * list[i].memory;
            v += w * list[i].rest;
            uu += w * list[i].memory * list[i].memory;
            vv += w * list[i].rest * list[i].rest;
        }
        u /= total;
        v /= total;
        chip->share[chip->shares++] = (fl_chip_share){.memory = u,
                                                      .rest = v,
                                                      .memory_sd = sqrt(fmax(0, uu / total - u * u)),
                                                      .rest_sd = sqrt(fmax(0, vv / total - v * v))};
    }
    free(list);
    free(memory);
    return s;
}
