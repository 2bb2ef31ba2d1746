/* The law in the form that fitting needs, the deviations of predictions, and the small linear algebra for both. */
#include "models/chip/parts.h"
#include "models/laws/time.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
            /* Residuals of made-up workloads say nothing about this chip (fit_kin.h). */
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
