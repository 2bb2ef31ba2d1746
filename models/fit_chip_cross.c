/* How much farther off predictions are than the chip's own scatter says. The numbers that a workload takes from its own
 * rows absorb the slow part of the law's error there, so residuals do not show it; settings that were not looked at do.
 * Each workload in turn is predicted from a few of its settings by what the others are like, and the errors say how the
 * doubt must grow with the distance from the nearest known setting. */
#include "models/fit_chip_parts.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORKLOADS_MIN 3
#define TESTED_MAX 24 /* workloads: more add time, hardly knowledge */
#define ROWS_MAX 256  /* of one workload */
#define WANTED 0.95   /* share of the errors within 2 standard deviations */

enum { CORNERS, FOUR, INNER, ENDS, DESIGNS };

typedef struct needs { /* growth that would have covered each error, 1 per unit of ln clock */
    double *time, *power;
    size_t times, powers;
} needs;

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Which of a workload's rows (sorted by memory, then SM clock) are looked at. */
static int is_known(int design, const fl_chip_row *row, size_t count, size_t i) {
    size_t first = i, last = i;
    while (first > 0 && row[first - 1].mem_mhz > row[i].mem_mhz - 0.5)
        first--;
    while (last + 1 < count && row[last + 1].mem_mhz < row[i].mem_mhz + 0.5)
        last++;
    const int lowest = first == 0, highest = last + 1 == count;
    const size_t n = last - first, at = i - first; /* n + 1 clocks */
    const int end = at == 0 || at == n;
    switch (design) {
    case CORNERS:
        return (lowest || highest) && end;
    case FOUR:
        return (lowest || highest) && (end || at == (n + 1) / 3 || at == (2 * n + 1) / 3);
    case INNER:
        return highest && n >= 4 && (at == (n + 1) / 4 || at == (3 * n + 3) / 4);
    default:
        return highest && end && !lowest;
    }
}

/* What the others say of a workload alone: the chip without share k. */
static void leave_out(const fl_chip *chip, uint32_t k, fl_chip *rest) {
    *rest = *chip;
    const uint32_t last = --rest->shares;
    rest->share[k] = rest->share[last];
    memcpy(rest->time_off[k], rest->time_off[last], sizeof rest->time_off[k]);
    memcpy(rest->power_off[k], rest->power_off[last], sizeof rest->power_off[k]);
    fl_chip_load_prior(rest);
}

double fl_chip_distance(const fl_chip_row *known, size_t count, const fl_chip_row *at, int *outside) {
    double near = INFINITY, low[2] = {INFINITY, INFINITY}, high[2] = {0, 0};
    for (size_t i = 0; i < count; i++) {
        near = fmin(near, hypot(log(at->sm_mhz / known[i].sm_mhz), log(at->mem_mhz / known[i].mem_mhz)));
        low[0] = fmin(low[0], known[i].sm_mhz);
        high[0] = fmax(high[0], known[i].sm_mhz);
        low[1] = fmin(low[1], known[i].mem_mhz);
        high[1] = fmax(high[1], known[i].mem_mhz);
    }
    *outside = at->sm_mhz < low[0] || at->sm_mhz > high[0] || at->mem_mhz < low[1] || at->mem_mhz > high[1];
    return near;
}

double fl_chip_growth(const fl_chip_error *e, const fl_chip_row *known, size_t count, const fl_chip_row *at) {
    int outside = 0;
    const double far = fl_chip_distance(known, count, at, &outside);
    return (outside ? e->outside : e->inside) * far;
}

static void add_need(double error, double sd_pct, double far, double *list, size_t *count) {
    const double sd = sd_pct / 100, more = error * error / 4 - sd * sd;
    if (!isnan(more) && far > 0)
        list[(*count)++] = sqrt(fmax(0, more)) / far;
}

static fl_model_status test_one(const fl_chip *rest, const fl_chip_row *row, size_t count, int design,
                                needs n[DESIGNS][2]) {
    fl_chip_row known[ROWS_MAX], asked[ROWS_MAX];
    fl_chip_guess guess[ROWS_MAX];
    size_t a = 0, b = 0;
    for (size_t i = 0; i < count; i++)
        if (is_known(design, row, count, i))
            known[a++] = row[i];
        else
            asked[b++] = row[i];
    if (a < 2 || b == 0)
        return FL_MODEL_OK;
    const fl_model_status s = fl_chip_predict(rest, known, a, asked, b, guess, NULL);
    if (s != FL_MODEL_OK)
        return s == FL_MODEL_NO_MEMORY ? s : FL_MODEL_OK;
    for (size_t i = 0; i < b; i++) {
        int outside = 0;
        const double far = fl_chip_distance(known, a, &asked[i], &outside);
        needs *to = &n[design][outside];
        add_need(guess[i].time_s / asked[i].time_s - 1, guess[i].time_sd_pct, far, to->time, &to->times);
        add_need(guess[i].power_w / asked[i].power_w - 1, guess[i].power_sd_pct, far, to->power, &to->powers);
    }
    return FL_MODEL_OK;
}

/* The growth that covers WANTED of them. */
static double enough(double *list, size_t count) {
    if (count == 0)
        return 0;
    qsort(list, count, sizeof *list, ascending);
    return list[(size_t)ceil(WANTED * (double)count) - 1];
}

/* Errors of one workload go together, so there are as many independent ones as workloads (Student), and what they share
 * was fitted to all of them, that under test among them. */
static double few(double workloads) {
    return gsl_cdf_tdist_Pinv(0.5 + WANTED / 2, workloads - 1) / gsl_cdf_ugaussian_Pinv(0.5 + WANTED / 2) *
           sqrt(1 + 1 / workloads);
}

fl_model_status fl_chip_cross(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip *chip) {
    fl_chip_error *const t = &chip->time_error, *const p = &chip->power_error;
    t->inside = p->inside = 0.03;
    t->outside = p->outside = 0.1;
    if (chip->shares < WORKLOADS_MIN)
        return FL_MODEL_OK;
    const size_t stride = spans / FL_CHIP_SHARES + 1; /* of shares */
    const size_t skip = (chip->shares - 1) / TESTED_MAX + 1;
    const size_t room = (TESTED_MAX + 1) * (size_t)ROWS_MAX;
    double *memory = malloc(DESIGNS * 2 * 2 * room * sizeof *memory);
    fl_chip *rest = malloc(sizeof *rest);
    needs n[DESIGNS][2] = {{{0}}};
    fl_model_status s = memory && rest ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    for (size_t d = 0; d < DESIGNS && s == FL_MODEL_OK; d++)
        for (size_t o = 0; o < 2; o++) {
            n[d][o].time = memory + (d * 2 + o) * 2 * room;
            n[d][o].power = n[d][o].time + room;
        }
    t->inside = t->outside = p->inside = p->outside = 0;
    for (uint32_t k = 0; s == FL_MODEL_OK && k < chip->shares; k += (uint32_t)skip) {
        const fl_chip_span *of = &span[k * stride];
        if (of->count > ROWS_MAX)
            continue;
        leave_out(chip, k, rest);
        for (int d = 0; s == FL_MODEL_OK && d < DESIGNS; d++)
            s = test_one(rest, row + of->first, of->count, d, n);
    }
    for (size_t d = 0; d < DESIGNS && s == FL_MODEL_OK; d++) {
        t->inside = fmax(t->inside, enough(n[d][0].time, n[d][0].times));
        t->outside = fmax(t->outside, enough(n[d][1].time, n[d][1].times));
        p->inside = fmax(p->inside, enough(n[d][0].power, n[d][0].powers));
        p->outside = fmax(p->outside, enough(n[d][1].power, n[d][1].powers));
    }
    const double wider = few((double)chip->shares);
    t->inside *= wider;
    p->inside *= wider;
    t->outside = fmax(t->inside, wider * t->outside);
    p->outside = fmax(p->inside, wider * p->outside);
    free(memory);
    free(rest);
    return s;
}
