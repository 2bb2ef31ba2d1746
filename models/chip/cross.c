/* How much farther off predictions are than the chip's own scatter says. The numbers that a workload takes from its own
 * rows absorb the slow part of the law's error at these rows, so the residuals there do not show it; other settings do.
 * A chip fitted without a workload therefore predicts that workload from a few of its settings. The errors first tell
 * how the uncertainty grows with the distance from the nearest known setting (maximum likelihood). They then tell the
 * factor by which the whole uncertainty is too small: the quantile of |error| over the stated deviation, as in split
 * conformal prediction. */
#include "models/chip/inside.h"

#include "models/chip/chip.h"
#include "models/math/math.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- error bars ---- */

/* Measured on the sweeps that tests/accuracy.sh uses and one of an A100: two V100, a GTX 1080 Ti, a GTX Titan X and the
 * A100. A device was fitted to half of the workloads of a GPU and judged on the other half, in 10 splits from seed
 * 1001. typical and own_typical are geometric means over the GPUs, trust is the slope of ln real factor over ln own.
 * spec is a standard deviation above the mean, since nothing tells a good data sheet from a bad one. */
const fl_chip_bars fl_chip_bars_measured = {{{{1.461, 1.438, 0.911, 7.801},
                                              {1.078, 1.137, 0.919, 3.791},
                                              {0.753, 0.787, 0.458, 0.936},
                                              {1.272, 1.107, 0.000, 3.791}},
                                             {{1.068, 1.153, 0.606, 1.573},
                                              {0.977, 0.980, 0.591, 1.801},
                                              {0.774, 0.924, 0.000, 1.193},
                                              {0.707, 0.923, 0.629, 1.801}}}};

static double factor(const fl_chip *chip, const fl_chip_bar *b, double own) {
    if (chip->workloads == 0)
        return b->spec;
    return isnan(own) || !(own > 0) ? b->typical : b->typical * pow(own / b->own_typical, b->trust);
}

static void widen(const fl_chip *chip, const fl_chip_bar *of, fl_chip_error *e) {
    for (int p = 0; p < FL_CHIP_PLACES; p++)
        e->wide[p] = factor(chip, &of[p], e->own[p]);
}

void fl_chip_widen(fl_chip *chip, const fl_chip_bars *bars) {
    widen(chip, bars->of[FL_CHIP_TIME], &chip->time_error);
    widen(chip, bars->of[FL_CHIP_WATTS], &chip->power_error);
}

/* Fits the parts of a chip by one law. fit.c tries two laws, fit.c takes one. */

fl_model_status fl_chip_fit_laws(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip_law law,
                                 fl_chip *chip) {
    fl_chip c = {.sm_min = INFINITY,
                 .mem_min = INFINITY,
                 .law = law,
                 .time_law_pct = {NAN, NAN},
                 .power_law_pct = {NAN, NAN},
                 .workloads = (uint32_t)spans};
    double *time_ref = malloc((spans + 1) * sizeof *time_ref);
    size_t powered = 0;
    if (!time_ref)
        return FL_MODEL_NO_MEMORY;
    for (size_t k = 0; k < spans; k++)
        for (size_t i = span[k].first; i < span[k].first + span[k].count; i++) {
            c.sm_ref = fmax(c.sm_ref, row[i].sm_mhz);
            c.mem_ref = fmax(c.mem_ref, row[i].mem_mhz);
            c.sm_min = fmin(c.sm_min, row[i].sm_mhz);
            c.mem_min = fmin(c.mem_min, row[i].mem_mhz);
            powered += isnan(row[i].power_w) ? 0 : 1;
            c.rows++;
        }
    fl_model_status s = spans > 0 ? fl_chip_fit_time(row, span, spans, law, &c, time_ref) : FL_MODEL_NO_FIT;
    if (s == FL_MODEL_OK && powered > 0 && fl_chip_fit_power(row, span, spans, time_ref, law, &c) == FL_MODEL_NO_MEMORY)
        s = FL_MODEL_NO_MEMORY;
    if (s == FL_MODEL_OK)
        *chip = c;
    free(time_ref);
    return s;
}

/* Chips of which each was fitted without a part of the workloads. Their errors on that part show how well a chip
 * predicts a workload that it has never seen. Residuals, or a prior without one workload, look better than the truth,
 * since the numbers that all workloads share were fitted to that workload too. */

/* Neighbours are often one benchmark at several sizes, so a fold leaves them out together. The first of each such block
 * is tested. */
static size_t block(size_t spans) { return (spans - 1) / FL_CHIP_TESTED + 1; }

fl_model_status fl_chip_folds_make(size_t spans, fl_chip_folds *f) {
    *f = (fl_chip_folds){.spans = spans};
    if (spans < FL_CHIP_FOLDS)
        return FL_MODEL_OK;
    f->chip[0] = malloc((size_t)2 * FL_CHIP_FOLDS * sizeof *f->chip[0]);
    f->chip[1] = f->chip[0] ? f->chip[0] + FL_CHIP_FOLDS : NULL;
    return f->chip[0] ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
}

void fl_chip_folds_free(fl_chip_folds *f) {
    free(f->chip[0]);
    *f = (fl_chip_folds){0};
}

fl_model_status fl_chip_folds_fit(const fl_chip_row *row, const fl_chip_span *span, fl_chip_law law, fl_chip_folds *f) {
    const size_t rows = span[f->spans - 1].first + span[f->spans - 1].count;
    fl_chip_row *in = malloc(rows * sizeof *in);
    fl_chip_span *of = malloc(f->spans * sizeof *of);
    fl_model_status s = in && of ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    for (size_t fold = 0; s == FL_MODEL_OK && !f->fitted[law] && fold < FL_CHIP_FOLDS; fold++) {
        size_t n = 0, kept = 0;
        for (size_t k = 0; k < f->spans; k++)
            if (fl_chip_fold_of(f, k) != fold) {
                memcpy(in + kept, row + span[k].first, span[k].count * sizeof *in);
                of[n++] = (fl_chip_span){kept, span[k].count};
                kept += span[k].count;
            }
        s = fl_chip_fit_laws(in, of, n, law, &f->chip[law][fold]);
    }
    f->fitted[law] = s == FL_MODEL_OK;
    free(in);
    free(of);
    return s;
}

size_t fl_chip_fold_of(const fl_chip_folds *f, size_t k) { return k / block(f->spans) % FL_CHIP_FOLDS; }

int fl_chip_fold_tests(const fl_chip_folds *f, size_t k) { return k % block(f->spans) == 0; }

/* ---- cross-validation ---- */

#define WORKLOADS_MIN 3
#define ROWS_MAX 256      /* of one workload */
#define WANTED 0.95       /* share of the errors within 2 standard deviations */
#define FACTOR_LEAST 0.25 /* fl_chip_covering */
#define FREEDOM 4.0       /* degrees of freedom of Student's distribution of the errors */
/* FACTOR_LEAST, GROWTH_SPREAD, the growths of fl_chip_assume_growth and the designs (CROSSED too) were set by hand. */
#define GROWTH_SPREAD 0.7 /* of ln growth, from chip to chip: a factor of two either way is common */
#define LEAST 0.002       /* growth: the grid is LEAST FINE^k up to LEAST FINE^STEPS = 3 */
#define FINE 1.13
#define STEPS 60

enum { CORNERS, FOUR, INNER, ENDS, TOP, CROSSED, DESIGNS };

typedef struct miss { /* an error, the standard deviation stated without any growth, and the distance from the nearest
                         known setting */
    double error, sd, far;
    double weight; /* the weights of one workload in one design sum to 1, because its errors are correlated */
    /* For power: its slope against time, the deviation of the time there, and the deviation of power that follows from
     * both. */
    double slope, time_sd, drift;
} miss;

typedef struct misses {
    miss *list;
    size_t count;
} misses;

typedef misses piles[FL_CHIP_KINDS][FL_CHIP_PLACES];

#define EACH (DESIGNS * ROWS_MAX) /* misses of one workload, of one kind */

/* Which of a workload's rows (sorted by memory clock, then SM clock) count as known. */
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
    case ENDS:
        return highest && end && !lowest;
    case CROSSED: /* the best two that fit workload --which-clocks finds for a GPU with several memory clocks */
        return lowest != highest && n >= 2 && at == (lowest ? (3 * n + 3) / 4 : (n + 1) / 4);
    default:
        return i + 1 == count;
    }
}

void fl_chip_leave_out(const fl_chip *chip, uint32_t k, fl_chip *rest) {
    if (rest != chip)
        *rest = *chip;
    const uint32_t last = --rest->shares;
    rest->share[k] = rest->share[last];
    memcpy(rest->time_off[k], rest->time_off[last], sizeof rest->time_off[k]);
    memcpy(rest->power_off[k], rest->power_off[last], sizeof rest->power_off[k]);
    fl_chip_load_prior(rest, rest->load_mean, rest->load_cov);
}

static void be_plain(fl_chip_error *e) {
    for (int p = 0; p < FL_CHIP_PLACES; p++) {
        e->growth[p] = 0;
        e->wide[p] = 1;
    }
}

static void add_miss(miss m, misses *to) {
    if (!isnan(m.error) && !isnan(m.sd) && m.far > 0)
        to->list[to->count++] = m;
}

static void share_weight(misses *m, size_t since) {
    for (size_t i = since; i < m->count; i++)
        m->list[i].weight = 1 / (double)(m->count - since);
}

/* rest: the chip without growth and factors. */
static fl_model_status test_one(const fl_chip *rest, const fl_chip_row *row, size_t count, int design, piles to) {
    fl_chip_row known[ROWS_MAX], asked[ROWS_MAX];
    fl_chip_guess guess[ROWS_MAX];
    double slope[ROWS_MAX];
    size_t a = 0, b = 0, since[FL_CHIP_KINDS][FL_CHIP_PLACES];
    for (size_t i = 0; i < count; i++)
        if (is_known(design, row, count, i))
            known[a++] = row[i];
        else
            asked[b++] = row[i];
    if (a < (design == TOP ? 1 : 2) || b == 0)
        return FL_MODEL_OK;
    const fl_model_status s = fl_chip_predict_slopes(rest, known, a, asked, b, guess, NULL, slope);
    if (s != FL_MODEL_OK)
        return s == FL_MODEL_NO_MEMORY ? s : FL_MODEL_OK;
    for (int k = 0; k < FL_CHIP_KINDS * FL_CHIP_PLACES; k++)
        since[k / FL_CHIP_PLACES][k % FL_CHIP_PLACES] = to[k / FL_CHIP_PLACES][k % FL_CHIP_PLACES].count;
    for (size_t i = 0; i < b; i++) {
        fl_chip_place at = FL_CHIP_INSIDE;
        const double far = fl_chip_distance(known, a, &asked[i], &at);
        const double time_sd = guess[i].time_sd_pct / 100, of_time = slope[i] * time_sd;
        const double both = guess[i].power_sd_pct / 100, own = sqrt(fmax(0, both * both - of_time * of_time));
        add_miss((miss){.error = guess[i].time_s / asked[i].time_s - 1, .sd = time_sd, .far = far},
                 &to[FL_CHIP_TIME][at]);
        add_miss((miss){.error = guess[i].power_w / asked[i].power_w - 1,
                        .sd = own,
                        .far = far,
                        .slope = slope[i],
                        .time_sd = time_sd},
                 &to[FL_CHIP_WATTS][at]);
    }
    for (int k = 0; k < FL_CHIP_KINDS * FL_CHIP_PLACES; k++)
        share_weight(&to[k / FL_CHIP_PLACES][k % FL_CHIP_PLACES], since[k / FL_CHIP_PLACES][k % FL_CHIP_PLACES]);
    return FL_MODEL_OK;
}

/* Runs all designs. rest: any chip; the function ignores its growth and factors. */
static fl_model_status test_all(fl_chip *rest, const fl_chip_row *row, size_t count, piles to) {
    fl_chip_row thin[ROWS_MAX];
    const size_t step = (count - 1) / ROWS_MAX + 1;
    size_t n = 0;
    for (size_t i = 0; i < count; i += step)
        thin[n++] = row[i];
    be_plain(&rest->time_error);
    be_plain(&rest->power_error);
    fl_model_status s = FL_MODEL_OK;
    for (int d = 0; s == FL_MODEL_OK && d < DESIGNS; d++)
        s = test_one(rest, thin, n, d, to);
    return s;
}

static fl_model_status piles_make(size_t workloads, piles to) {
    miss *all = malloc(FL_CHIP_KINDS * FL_CHIP_PLACES * workloads * EACH * sizeof *all);
    for (size_t k = 0; all && k < (size_t)FL_CHIP_KINDS * FL_CHIP_PLACES; k++)
        to[k / FL_CHIP_PLACES][k % FL_CHIP_PLACES] = (misses){all + k * workloads * EACH, 0};
    return all ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
}

static double spread2(const miss *m, double growth) {
    return m->sd * m->sd + growth * growth * m->far * m->far + 1e-12;
}

/* The errors of power that follow from the errors in time of the chip's own workloads. */
static void set_drift(const fl_chip_error *time, fl_chip_place at, misses *power) {
    const double wide = time->own[at] > 0 ? time->own[at] : 1;
    for (size_t i = 0; i < power->count; i++) {
        miss *m = &power->list[i];
        m->drift = fabs(m->slope) * wide * hypot(m->time_sd, time->growth[at] * m->far);
    }
}

/* The most likely growth. Errors follow Student's distribution, so that a few outliers do not decide, and the growths
 * of other chips lie about `usual`. */
static double likeliest_growth(const misses *m, double usual) {
    double best = usual, top = -(double)INFINITY;
    for (int k = 0; k <= STEPS && m->count > 0; k++) {
        const double growth = LEAST * pow(FINE, k), x = log(growth / usual) / GROWTH_SPREAD;
        double sum = -0.5 * x * x;
        for (size_t i = 0; i < m->count; i++) {
            const double drift = m->list[i].drift, error = m->list[i].error;
            const double v = spread2(&m->list[i], growth) + drift * drift;
            sum -= m->list[i].weight * (0.5 * log(v) + 0.5 * (FREEDOM + 1) * log1p(error * error / v / FREEDOM));
        }
        if (sum > top) {
            top = sum;
            best = growth;
        }
    }
    return best;
}

static fl_model_status add_strains(const misses *m, double growth, fl_chip_strains *to) {
    if (to->count + m->count > to->room) {
        const size_t room = 2 * (to->count + m->count);
        double *grown = realloc(to->list, room * sizeof *grown);
        if (!grown)
            return FL_MODEL_NO_MEMORY;
        to->list = grown;
        to->room = room;
    }
    for (size_t i = 0; i < m->count; i++) {
        const double half = m->list[i].error / 2, drift = m->list[i].drift;
        to->list[to->count++] = sqrt(fmax(0, half * half - drift * drift) / spread2(&m->list[i], growth));
    }
    return FL_MODEL_OK;
}

double fl_chip_covering(const fl_chip_strains *of) {
    if (of->count == 0)
        return NAN;
    gsl_sort(of->list, 1, of->count);
    return fmax(FACTOR_LEAST, of->list[(size_t)ceil(WANTED * (double)of->count) - 1]);
}

void fl_chip_assume_growth(fl_chip *chip) {
    fl_chip_error *const t = &chip->time_error, *const p = &chip->power_error;
    for (int k = 0; k < FL_CHIP_PLACES; k++) {
        t->growth[k] = k == FL_CHIP_INSIDE ? 0.06 : 0.3;
        p->growth[k] = k == FL_CHIP_INSIDE ? 0.15 : 0.25;
        t->own[k] = p->own[k] = NAN;
    }
    fl_chip_widen(chip, &fl_chip_bars_measured);
}

static fl_model_status set_error(fl_chip_error *e, misses pile[FL_CHIP_PLACES]) {
    fl_chip_strains strains = {0};
    fl_model_status s = FL_MODEL_OK;
    for (int k = 0; s == FL_MODEL_OK && k < FL_CHIP_PLACES; k++) {
        e->growth[k] = likeliest_growth(&pile[k], e->growth[k]);
        strains.count = 0;
        s = add_strains(&pile[k], e->growth[k], &strains);
        e->own[k] = fl_chip_covering(&strains);
    }
    free(strains.list);
    return s;
}

/* The errors of each tested workload by a chip that was not fitted to it. */
static fl_model_status miss_folds(const fl_chip_row *row, const fl_chip_span *span, fl_chip_folds *folds,
                                  const fl_chip *chip, piles to) {
    fl_model_status s = fl_chip_folds_fit(row, span, chip->law, folds);
    for (size_t k = 0; s == FL_MODEL_OK && k < folds->spans; k++) {
        if (fl_chip_fold_tests(folds, k))
            s = test_all(&folds->chip[chip->law][fl_chip_fold_of(folds, k)], row + span[k].first, span[k].count, to);
    }
    return s;
}

/* The same for a law that was not fitted to the workloads, or for too few workloads to fit it to a part of them. */
static fl_model_status miss_shares(const fl_chip_row *row, const fl_chip_span *span, size_t spans, const fl_chip *chip,
                                   piles to) {
    const size_t stride = spans / FL_CHIP_SHARES + 1; /* of shares */
    const size_t skip = (chip->shares - 1) / FL_CHIP_TESTED + 1;
    fl_chip *rest = malloc(sizeof *rest);
    fl_model_status s = rest ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    for (uint32_t k = 0; s == FL_MODEL_OK && k < chip->shares; k += (uint32_t)skip) {
        const fl_chip_span *of = &span[k * stride];
        fl_chip_leave_out(chip, k, rest);
        s = test_all(rest, row + of->first, of->count, to);
    }
    free(rest);
    return s;
}

fl_model_status fl_chip_cross(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip_folds *folds,
                              fl_chip *chip) {
    fl_chip_assume_growth(chip);
    if (chip->shares < WORKLOADS_MIN)
        return FL_MODEL_OK;
    piles pile = {{{0}}};
    fl_model_status s = piles_make(FL_CHIP_TESTED + 1, pile);
    if (s == FL_MODEL_OK) {
        s = folds && folds->chip[0] ? miss_folds(row, span, folds, chip, pile) : FL_MODEL_NO_FIT;
        if (s == FL_MODEL_NO_FIT)
            s = miss_shares(row, span, spans, chip, pile);
    }
    if (s == FL_MODEL_OK)
        s = set_error(&chip->time_error, pile[FL_CHIP_TIME]);
    for (int p = 0; s == FL_MODEL_OK && p < FL_CHIP_PLACES; p++)
        set_drift(&chip->time_error, (fl_chip_place)p, &pile[FL_CHIP_WATTS][p]);
    if (s == FL_MODEL_OK)
        s = set_error(&chip->power_error, pile[FL_CHIP_WATTS]);
    if (s == FL_MODEL_OK)
        fl_chip_widen(chip, &fl_chip_bars_measured);
    free(pile[0][0].list);
    return s;
}

/* Makes the piles and runs all designs on a workload that the chip was not fitted to. */
static fl_model_status test_new(const fl_chip *chip, const fl_chip_row *row, size_t count, piles to) {
    fl_chip *rest = malloc(sizeof *rest);
    fl_model_status s = rest ? piles_make(1, to) : FL_MODEL_NO_MEMORY;
    if (s == FL_MODEL_OK) {
        *rest = *chip;
        s = test_all(rest, row, count, to);
    }
    free(rest);
    return s;
}

fl_model_status fl_chip_add_errors(const fl_chip *chip, const fl_chip_row *row, size_t rows,
                                   double sum[2][FL_CHIP_PLACES], double count[2][FL_CHIP_PLACES]) {
    piles pile = {{{0}}};
    fl_model_status s = test_new(chip, row, rows, pile);
    for (int k = 0; s == FL_MODEL_OK && k < FL_CHIP_KINDS; k++)
        for (int p = 0; p < FL_CHIP_PLACES; p++)
            for (size_t i = 0; i < pile[k][p].count; i++) {
                sum[k][p] += pile[k][p].list[i].weight * fabs(pile[k][p].list[i].error);
                count[k][p] += pile[k][p].list[i].weight;
            }
    free(pile[0][0].list);
    return s;
}
