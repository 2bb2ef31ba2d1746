/* A workload's parts as a posterior distribution over the unit square (memory: memory's part of core + memory; rest:
 * the rest's part of all). The weight of a point says how well it meets the workload's known settings and how much it
 * resembles the chip's other workloads. Predictions are means over the square, computed on cells that are finer where
 * the weight is. */
#include "models/chip/inside.h"

#include "models/chip/chip.h"
#include "models/math/math.h"

#include <math.h>
#include <stdint.h>
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
    const double *likely; /* of each share: how well its power fits; NULL = all equal */
    const double *offs;   /* from fl_chip_offs_make: the known rows, then the asked rows; NULL = none */
    double *off;          /* room: per row of offs */
} posterior;

/* Width of the density about each of the chip's workloads: the more workloads, the narrower. */
#define NARROW 0.06
#define NARROW_FEW 0.3        /* divided by the root of their number */
#define POSTERIOR_STRANGE 0.3 /* weight of workloads of any kind, against those of the calibration */

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
    return (sum + POSTERIOR_STRANGE) / (count + POSTERIOR_STRANGE);
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
#define DEEP 12 /* cells whose ln weight lies further than this below the heaviest are left out */
#define CELLS_MAX (GRID * GRID + (size_t)KEEP * 8 * LEVELS)

/* Divides the unit square into cells by their posterior weight, finest where the weight is. Returns how many. list:
 * CELLS_MAX cells. Light cells stay coarse, but they stay: where little is known they are many, and together they weigh
 * more than the heaviest. */
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
        for (size_t i = 0; i < kept; i++) { /* nine cells replace one: the middle one keeps its place */
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

/* Memory-bound kernels and host-bound programs look alike in time while the SM clock hardly matters, but not in power.
 * likely: how near each share's power comes to that of the fastest known setting. */
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
        const fl_chip_load load = fl_chip_load_of(s);
        const double time = fl_chip_time(chip, &load, fastest->sm_mhz, fastest->mem_mhz);
        const double watts = fl_chip_power(chip, &load, fastest->sm_mhz, fastest->mem_mhz, time);
        const double x = log(fastest->power_w / watts) / LIKE_POWER;
        likely[k] = 0.05 + exp(-0.5 * x * x);
    }
}

/* Room that take_known() needs for n known rows. */
#define KNOWN_ROOM(n) ((n) * (n) + 5 * (n))

/* Takes the known rows in: fills *p except likely, offs and off. room: KNOWN_ROOM, zeroed or not. */
static fl_model_status take_known(posterior *p, double *room) {
    const size_t n = p->n;
    const fl_chip_error *e = &p->chip->time_error;
    p->lower = room;
    p->f_ratio = p->lower + n * n;
    p->h = p->f_ratio + n;
    p->ln = p->h + n;
    p->unit = p->ln + n;
    p->model = p->unit + n;
    for (size_t i = 0; i < n; i++) {
        p->f_ratio[i] = p->chip->sm_ref / p->known[i].sm_mhz;
        p->h[i] = fl_chip_memory_ratio(p->chip, p->known[i].sm_mhz, p->known[i].mem_mhz);
        p->ln[i] = log(p->known[i].time_s);
        p->unit[i] = 1;
        for (size_t j = 0; j <= i; j++)
            p->lower[i * n + j] = fl_chip_covariance(e, &p->known[i], &p->known[j]);
        p->lower[i * n + i] += e->scatter * e->scatter + 1e-10;
    }
    if (!fl_chip_cholesky(p->lower, n))
        return FL_MODEL_NO_FIT;
    fl_chip_lower_solve(p->lower, n, p->unit);
    for (size_t i = 0; i < n; i++)
        p->one += p->unit[i] * p->unit[i];
    return FL_MODEL_OK;
}

static double heaviest(const cell *list, size_t cells) {
    double top = -(double)INFINITY;
    for (size_t i = 0; i < cells; i++)
        top = fmax(top, list[i].log_weight);
    return top;
}

/* The asked rows, and sums over the cells so far. */
typedef struct forecast {
    const fl_chip_row *asked;
    size_t m;
    double *gain;                         /* m x known: K_asked,known K^-1 */
    double *f_ratio, *h, *shape;          /* per asked row */
    double *mean, *square;                /* per asked row: sums of ln time and of its square */
    double total, memory, rest, ln_scale; /* sums of the weights, of the parts, of the level */
} forecast;

#define ASKED_ROOM(n, m) ((m) * ((n) + 5))

static void place_asked(const posterior *p, forecast *to, double *room) {
    const size_t n = p->n, m = to->m;
    to->gain = room;
    to->f_ratio = to->gain + m * n;
    to->h = to->f_ratio + m;
    to->shape = to->h + m;
    to->mean = to->shape + m;
    to->square = to->mean + m;
    for (size_t j = 0; j < m; j++) {
        const fl_chip_row *row = &to->asked[j];
        to->f_ratio[j] = p->chip->sm_ref / row->sm_mhz;
        to->h[j] = fl_chip_memory_ratio(p->chip, row->sm_mhz, row->mem_mhz);
        for (size_t i = 0; i < n; i++)
            to->gain[j * n + i] = fl_chip_covariance(&p->chip->time_error, row, &p->known[i]);
        fl_chip_lower_solve(p->lower, n, to->gain + j * n);
    }
}

/* The predictions at the asked rows if this cell describes the workload, added with the cell's weight. */
static void add_cell(const posterior *p, const cell *c, double weight, forecast *to) {
    const size_t n = p->n, m = to->m;
    to->total += weight;
    to->memory += weight * c->memory;
    to->rest += weight * c->rest;
    to->ln_scale += weight * c->offset;
    fl_chip_shape(p->chip->sharpness, c->memory, c->rest, p->f_ratio, p->h, n, p->model);
    const fl_chip_share as = {.memory = c->memory, .rest = c->rest};
    fl_chip_offs_at(p->chip, 0, p->offs, n + m, &as, p->off);
    for (size_t i = 0; i < n; i++)
        p->model[i] = p->ln[i] - p->model[i] - c->offset - p->off[i];
    fl_chip_lower_solve(p->lower, n, p->model);
    fl_chip_shape(p->chip->sharpness, c->memory, c->rest, to->f_ratio, to->h, m, to->shape);
    for (size_t j = 0; j < m; j++)
        to->shape[j] += p->off[n + j];
    for (size_t j = 0; j < m; j++) {
        double y = to->shape[j] + c->offset;
        for (size_t i = 0; i < n; i++)
            y += to->gain[j * n + i] * p->model[i];
        to->mean[j] += weight * y;
        to->square[j] += weight * y * y;
    }
}

static void tell_times(const posterior *p, const forecast *of, fl_chip_guess *guess, fl_chip_load *load) {
    const fl_chip_error *e = &p->chip->time_error;
    for (size_t j = 0; j < of->m; j++) {
        const double y = of->mean[j] / of->total;
        double variance = fmax(0, of->square[j] / of->total - y * y) + e->scatter * e->scatter + e->smooth * e->smooth;
        for (size_t i = 0; i < p->n; i++)
            variance -= of->gain[j * p->n + i] * of->gain[j * p->n + i];
        guess[j].time_s = exp(y);
        guess[j].time_sd_pct = fl_chip_sd_pct(e, p->known, p->n, &of->asked[j], variance);
    }
    const double scale = exp(of->ln_scale / of->total), rest = of->rest / of->total, share = of->memory / of->total;
    load->tc = scale * (1 - rest) * (1 - share);
    load->tm = scale * (1 - rest) * share;
    load->tl = scale * rest;
}

fl_model_status fl_chip_predict_time(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                     const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess,
                                     fl_chip_load *load) {
    const size_t n = known_count, m = asked_count, shares = chip->shares;
    double *memory = calloc(KNOWN_ROOM(n) + ASKED_ROOM(n, m) + (n + m) * (shares + 1) + shares + 8, sizeof *memory);
    cell *list = malloc(CELLS_MAX * sizeof *list);
    fl_model_status s = memory && list ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    if (s == FL_MODEL_OK) {
        double *const asked_room = memory + KNOWN_ROOM(n), *const likely = asked_room + ASKED_ROOM(n, m);
        double *const off = likely + shares, *const offs = off + n + m; /* of known rows, then asked ones */
        weigh_powers(chip, known, n, likely);
        fl_chip_offs_make(chip, 0, known, n, offs);
        fl_chip_offs_make(chip, 0, asked, m, offs + n * shares);
        posterior p = {.chip = chip, .known = known, .n = n, .likely = likely, .offs = offs, .off = off};
        s = take_known(&p, memory);
        if (s == FL_MODEL_OK) {
            forecast sums = {.asked = asked, .m = m};
            place_asked(&p, &sums, asked_room);
            const size_t cells = integrate(&p, list);
            const double top = heaviest(list, cells);
            for (size_t k = 0; k < cells; k++) {
                const double weight = exp(list[k].log_weight - top);
                if (!(weight < 1e-7))
                    add_cell(&p, &list[k], weight, &sums);
            }
            tell_times(&p, &sums, guess, load);
        }
    }
    free(memory);
    free(list);
    return s;
}

/* Where one workload stands: mean and standard deviation over the cells. */
static fl_chip_share place_share(const cell *list, size_t cells) {
    const double top = heaviest(list, cells);
    double total = 0, u = 0, v = 0, uu = 0, vv = 0;
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
    return (fl_chip_share){.memory = u,
                           .rest = v,
                           .memory_sd = sqrt(fmax(0, uu / total - u * u)),
                           .rest_sd = sqrt(fmax(0, vv / total - v * v))};
}

fl_model_status fl_chip_fill_prior(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip *chip) {
    const size_t stride = spans / FL_CHIP_SHARES + 1;
    cell *list = malloc(CELLS_MAX * sizeof *list);
    size_t largest = 1;
    for (size_t k = 0; k < spans; k++)
        largest = span[k].count > largest ? span[k].count : largest;
    double *memory = calloc(KNOWN_ROOM(largest), sizeof *memory);
    fl_model_status s = list && memory ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    fl_chip flat = *chip;
    flat.shares = 0;
    for (size_t k = 0; s == FL_MODEL_OK && k < spans; k += stride) {
        posterior p = {.chip = &flat, .known = row + span[k].first, .n = span[k].count};
        if (take_known(&p, memory) == FL_MODEL_OK)
            chip->share[chip->shares++] = place_share(list, integrate(&p, list));
    }
    free(list);
    free(memory);
    return s;
}
