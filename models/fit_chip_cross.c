/* How much farther off predictions are than the chip's own scatter says. The numbers that a workload takes from its own
 * rows absorb the slow part of the law's error there, so residuals do not show it; settings that were not looked at do.
 * Each workload in turn is predicted from a few of its settings by what the others are like. The errors say first how
 * the doubt grows with the distance from the nearest known setting (maximum likelihood), then by how much the whole of
 * it falls short: the quantile of |error| over what is stated, as in split conformal prediction. */
#include "models/fit_chip_parts.h"
#include "models/fit_chip_predict.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORKLOADS_MIN 3
#define TESTED_MAX 24 /* workloads: more add time, hardly knowledge */
#define ROWS_MAX 256  /* of one workload */
#define WANTED 0.95   /* share of the errors within 2 standard deviations */
#define FREEDOM 4.0   /* of Student's distribution of the errors */
#define LEAST 0.002   /* growth: the grid is 0 and LEAST FINE^k up to LEAST FINE^STEPS = 3 */
#define FINE 1.13
#define STEPS 60

enum { CORNERS, FOUR, INNER, ENDS, DESIGNS };

typedef struct miss { /* an error, the standard deviation that was stated without any growth, and how far it is off */
    double error, sd, far;
} miss;

typedef struct misses {
    miss *list;
    size_t count;
} misses;

typedef misses piles[DESIGNS][2]; /* second: outside */

static int by_error(const void *a, const void *b) {
    const double x = ((const miss *)a)->error, y = ((const miss *)b)->error;
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

void fl_chip_leave_out(const fl_chip *chip, uint32_t k, fl_chip *rest) {
    *rest = *chip;
    const uint32_t last = --rest->shares;
    rest->share[k] = rest->share[last];
    memcpy(rest->time_off[k], rest->time_off[last], sizeof rest->time_off[k]);
    memcpy(rest->power_off[k], rest->power_off[last], sizeof rest->power_off[k]);
    fl_chip_load_prior(rest);
}

static void add_miss(double error, double sd_pct, double far, misses *to) {
    if (!isnan(error) && !isnan(sd_pct) && far > 0)
        to->list[to->count++] = (miss){error, sd_pct / 100, far};
}

static fl_model_status test_one(const fl_chip *rest, const fl_chip_row *row, size_t count, int design, piles time,
                                piles power) {
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
        add_miss(guess[i].time_s / asked[i].time_s - 1, guess[i].time_sd_pct, far, &time[design][outside]);
        add_miss(guess[i].power_w / asked[i].power_w - 1, guess[i].power_sd_pct, far, &power[design][outside]);
    }
    return FL_MODEL_OK;
}

/* Evenly, to no more than ROWS_MAX. */
static size_t thin_out(const fl_chip_row *row, size_t count, fl_chip_row *thin) {
    const size_t step = (count - 1) / ROWS_MAX + 1;
    size_t n = 0;
    for (size_t i = 0; i < count; i += step)
        thin[n++] = row[i];
    return n;
}

static double spread2(const miss *m, double growth) {
    return m->sd * m->sd + growth * growth * m->far * m->far + 1e-12;
}

/* The likeliest growth where errors are Student's: a few wild readings must not set it. */
static double likeliest_growth(const misses *m) {
    double best = 0, top = -(double)INFINITY;
    for (int k = 0; k <= STEPS && m->count > 0; k++) {
        const double growth = k ? LEAST * pow(FINE, k) : 0;
        double sum = 0;
        for (size_t i = 0; i < m->count; i++) {
            const double v = spread2(&m->list[i], growth), error = m->list[i].error;
            sum -= 0.5 * log(v) + 0.5 * (FREEDOM + 1) * log1p(error * error / v / FREEDOM);
        }
        if (sum > top) {
            top = sum;
            best = growth;
        }
    }
    return best;
}

/* What the deviation must be multiplied with so that two of it cover WANTED of the errors. They are changed. */
static double covering_factor(misses *m, double growth) {
    if (m->count == 0)
        return 1;
    for (size_t i = 0; i < m->count; i++)
        m->list[i].error = fabs(m->list[i].error) / 2 / sqrt(spread2(&m->list[i], growth));
    qsort(m->list, m->count, sizeof *m->list, by_error);
    return m->list[(size_t)ceil(WANTED * (double)m->count) - 1].error;
}

/* Errors of one workload go together, so there are as many independent ones as workloads (Student), and what they share
 * was fitted to all of them, that under test among them. */
static double widening_of_few(double workloads) {
    return gsl_cdf_tdist_Pinv(0.5 + WANTED / 2, workloads - 1) / gsl_cdf_ugaussian_Pinv(0.5 + WANTED / 2) *
           sqrt(1 + 1 / workloads);
}

void fl_chip_assume_growth(fl_chip *chip) {
    fl_chip_error *const t = &chip->time_error, *const p = &chip->power_error;
    t->inside = 0.06;
    t->outside = 0.3;
    p->inside = 0.15;
    p->outside = 0.25;
    t->wide_inside = t->wide_outside = p->wide_inside = p->wide_outside = 1;
}

/* The largest of the designs' growths and factors: none of them is promised too much. */
static void set_growth(fl_chip_error *e, piles pile, double wider) {
    e->inside = e->outside = 0;
    e->wide_inside = e->wide_outside = 1;
    for (int d = 0; d < DESIGNS; d++) {
        e->inside = fmax(e->inside, likeliest_growth(&pile[d][0]));
        e->outside = fmax(e->outside, likeliest_growth(&pile[d][1]));
    }
    e->outside = fmax(e->inside, e->outside);
    for (int d = 0; d < DESIGNS; d++) {
        e->wide_inside = fmax(e->wide_inside, covering_factor(&pile[d][0], e->inside));
        e->wide_outside = fmax(e->wide_outside, covering_factor(&pile[d][1], e->outside));
    }
    e->wide_inside *= wider;
    e->wide_outside *= wider;
}

fl_model_status fl_chip_cross(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip *chip) {
    fl_chip_assume_growth(chip);
    if (chip->shares < WORKLOADS_MIN)
        return FL_MODEL_OK;
    const size_t stride = spans / FL_CHIP_SHARES + 1; /* of shares */
    const size_t skip = (chip->shares - 1) / TESTED_MAX + 1;
    const size_t room = (TESTED_MAX + 1) * (size_t)ROWS_MAX;
    piles time = {{{0}}}, power = {{{0}}};
    miss *memory = malloc(DESIGNS * 2 * 2 * room * sizeof *memory);
    fl_chip *rest = malloc(sizeof *rest);
    fl_model_status s = memory && rest ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    for (size_t i = 0; i < DESIGNS * 2 && s == FL_MODEL_OK; i++) {
        time[i / 2][i % 2].list = memory + 2 * i * room;
        power[i / 2][i % 2].list = memory + (2 * i + 1) * room;
    }
    chip->time_error.inside = chip->time_error.outside = 0; /* of the predictions that are tested */
    chip->power_error.inside = chip->power_error.outside = 0;
    for (uint32_t k = 0; s == FL_MODEL_OK && k < chip->shares; k += (uint32_t)skip) {
        fl_chip_row thin[ROWS_MAX];
        const fl_chip_span *of = &span[k * stride];
        const size_t count = thin_out(row + of->first, of->count, thin);
        fl_chip_leave_out(chip, k, rest);
        for (int d = 0; s == FL_MODEL_OK && d < DESIGNS; d++)
            s = test_one(rest, thin, count, d, time, power);
    }
    if (s == FL_MODEL_OK) {
        const double wider = widening_of_few((double)chip->shares);
        set_growth(&chip->time_error, time, wider);
        set_growth(&chip->power_error, power, wider);
    }
    free(memory);
    free(rest);
    return s;
}
