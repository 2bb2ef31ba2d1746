/* Fits a whole chip: the choice between the two laws by folds, then the final fit. */
#include "models/chip/inside.h"

#include "models/chip/chip.h"
#include "models/laws/device.h"
#include "models/math/math.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Finds the widths of the densities of activities (posterior.c): those that best predict the chip's own
 * workloads from one setting. */

/* Workloads closer than this are one kernel at several sizes, for example: they do not show how well a new workload is
 * predicted. */
#define TWIN 0.02
#define TESTED_MAX 24 /* workloads: more add time but little knowledge */
#define ROWS_MAX 32   /* of one workload */
#define WORKLOADS_MIN 6

static int is_twin(const fl_chip_share *a, const fl_chip_share *b) {
    for (int kind = 0; kind < FL_CHIP_ACTIVITIES; kind++)
        if (kind != FL_CHIP_OCCUPANCY && fabs(a->activity[kind] - b->activity[kind]) > TWIN)
            return 0;
    return 1;
}

/* Sum of the errors of time and power per row, for a workload that is known only at its highest setting. */
static fl_model_status error_from_top(const fl_chip *rest, const fl_chip_row *row, size_t count, double *sum) {
    fl_chip_row asked[ROWS_MAX];
    fl_chip_guess guess[ROWS_MAX];
    const size_t step = (count - 1) / ROWS_MAX + 1;
    size_t n = 0;
    double error = 0;
    for (size_t i = 0; i + 1 < count; i += step)
        asked[n++] = row[i];
    const fl_model_status s = n ? fl_chip_predict(rest, &row[count - 1], 1, asked, n, guess, NULL) : FL_MODEL_NO_FIT;
    for (size_t i = 0; s == FL_MODEL_OK && i < n; i++) {
        const double power = fabs(log(guess[i].power_w / asked[i].power_w));
        error += fabs(log(guess[i].time_s / asked[i].time_s)) + (isnan(power) ? 0 : power);
    }
    *sum += n ? error / (double)n : 0;
    return s == FL_MODEL_NO_MEMORY ? s : FL_MODEL_OK;
}

/* Mean error over workloads with these widths, and its standard error. */
static fl_model_status cross(const fl_chip_row *row, const fl_chip_span *span, size_t spans, const fl_chip *chip,
                             fl_chip *rest, double *error, double *doubt) {
    const size_t stride = spans / FL_CHIP_SHARES + 1, skip = (chip->shares - 1) / TESTED_MAX + 1;
    fl_model_status s = FL_MODEL_OK;
    double tested = 0, sum = 0, squares = 0;
    for (uint32_t k = 0; s == FL_MODEL_OK && k < chip->shares; k += (uint32_t)skip) {
        const fl_chip_span *of = &span[k * stride];
        if (!row[of->first + of->count - 1].activity)
            continue;
        fl_chip_leave_out(chip, k, rest);
        for (uint32_t i = rest->shares; i-- > 0;)
            if (is_twin(&rest->share[i], &chip->share[k]) && rest->shares > 1)
                fl_chip_leave_out(rest, i, rest);
        double own = 0;
        s = error_from_top(rest, row + of->first, of->count, &own);
        sum += own;
        squares += own * own;
        tested++;
    }
    *error = sum / fmax(1, tested);
    *doubt = sqrt(fmax(0, squares / fmax(1, tested) - *error * *error) / fmax(1, tested - 1));
    return s;
}

/* Finds the width of a trial chip that *at points to. It goes from the least to the most informative width and takes
 * the first that no other beats by more than its standard error. */
static fl_model_status find_width(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip *trial,
                                  double *at) {
    static const double width[] = {INFINITY, 0.4, 0.2, 0.1, 0.05};
    enum { WIDTHS = sizeof width / sizeof *width };
    double error[WIDTHS], enough = INFINITY, least = INFINITY;
    fl_model_status s = FL_MODEL_OK;
    for (size_t i = 0; s == FL_MODEL_OK && i < WIDTHS; i++) {
        double doubt = 0;
        *at = width[i];
        s = cross(row, span, spans, trial, trial + 1, &error[i], &doubt);
        if (s == FL_MODEL_OK && error[i] < least) {
            least = error[i];
            enough = least + doubt;
        }
    }
    size_t first = 0;
    while (s == FL_MODEL_OK && error[first] > enough)
        first++;
    *at = width[first];
    return s;
}

fl_model_status fl_chip_fit_activity(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip *chip) {
    size_t with = 0;
    for (uint32_t k = 0; k < chip->shares; k++) {
        int known = 0;
        for (int kind = 0; kind < FL_CHIP_ACTIVITIES; kind++)
            known |= !isnan(chip->share[k].activity[kind]);
        with += known ? 1 : 0;
    }
    chip->dram_width = chip->unit_width = INFINITY;
    if (with < WORKLOADS_MIN)
        return FL_MODEL_OK;
    fl_chip *trial = malloc(2 * sizeof *trial); /* the second is room for the chip without one workload */
    fl_model_status s = trial ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    if (s == FL_MODEL_OK) {
        *trial = *chip;
        s = find_width(row, span, spans, trial, &trial->dram_width);
    }
    if (s == FL_MODEL_OK)
        s = find_width(row, span, spans, trial, &trial->unit_width);
    if (s == FL_MODEL_OK) {
        chip->dram_width = trial->dram_width;
        chip->unit_width = trial->unit_width;
    }
    free(trial);
    return s;
}

/* Chooses between the two laws of a chip. The full law has more numbers to fit, and measurements of few workloads may
 * not justify them. Both laws are therefore fitted to three quarters of the workloads and predict the rest, each
 * quarter in turn. Nothing is random. */

#define LAW_WORKLOADS_MIN 4
#define FLOOR_PCT 0.1 /* no measurement repeats better: smaller errors say nothing about the law */

/* Mean ln of the errors, in percent, of each tested workload that the chip was not fitted to; NAN = none. Settings
 * between the known ones count, because the shape of the law decides there; far beyond them the unknown parts of the
 * workload decide. The other places count, all alike, only where no setting lies between. */
typedef struct errors {
    double time[FL_CHIP_TESTED], power[FL_CHIP_TESTED];
    size_t count;
} errors;

static double mean_ln(const double sum[FL_CHIP_PLACES], const double count[FL_CHIP_PLACES]) {
    double logs = 0, n = 0;
    const int last = count[FL_CHIP_INSIDE] > 0 ? FL_CHIP_INSIDE : FL_CHIP_PLACES - 1;
    for (int p = FL_CHIP_INSIDE; p <= last; p++)
        if (count[p] > 0) {
            logs += log(100 * sum[p] / count[p] + FLOOR_PCT);
            n++;
        }
    return n > 0 ? logs / n : (double)NAN;
}

static fl_model_status test_law(const fl_chip_row *row, const fl_chip_span *span, fl_chip_law law, fl_chip_folds *folds,
                                errors *to) {
    fl_model_status s = fl_chip_folds_fit(row, span, law, folds);
    to->count = 0;
    for (size_t k = 0; s == FL_MODEL_OK && k < folds->spans; k++) {
        double sum[2][FL_CHIP_PLACES] = {{0}}, count[2][FL_CHIP_PLACES] = {{0}};
        if (!fl_chip_fold_tests(folds, k))
            continue;
        s = fl_chip_add_errors(&folds->chip[law][fl_chip_fold_of(folds, k)], row + span[k].first, span[k].count, sum,
                               count);
        to->time[to->count] = mean_ln(sum[0], count[0]);
        to->power[to->count++] = mean_ln(sum[1], count[1]);
    }
    return s;
}

static double percent_of(const double *ln, size_t count) {
    double sum = 0, n = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(ln[i])) {
            sum += ln[i];
            n++;
        }
    return n > 0 ? exp(sum / n) : (double)NAN;
}

/* The full law contains the plain one, so the plain law is taken only where it is better by more than chance: by one
 * standard error of the differences, workload by workload, of time and power together. */
static void choose(const errors e[2], size_t count, fl_chip_laws *laws) {
    double sum = 0, squares = 0, n = 0;
    for (size_t i = 0; i < count; i++) {
        const double time = e[0].time[i] - e[1].time[i], power = e[0].power[i] - e[1].power[i];
        const double x = isnan(power) ? time : (time + power) / 2;
        if (isnan(x))
            continue;
        sum += x;
        squares += x * x;
        n++;
    }
    for (int i = 0; i < 2; i++) {
        laws->time_pct[i] = percent_of(e[i].time, count);
        laws->power_pct[i] = percent_of(e[i].power, count);
    }
    if (n < LAW_WORKLOADS_MIN)
        return;
    const double mean = sum / n, doubt = sqrt(fmax(0, squares / n - mean * mean) / (n - 1));
    if (mean > doubt)
        laws->law = FL_CHIP_PLAIN;
}

fl_model_status fl_chip_choose_law(const fl_chip_row *row, const fl_chip_span *span, fl_chip_folds *folds,
                                   fl_chip_laws *laws) {
    errors e[2];
    *laws = (fl_chip_laws){FL_CHIP_FULL, {NAN, NAN}, {NAN, NAN}};
    if (!folds->chip[0])
        return FL_MODEL_OK;
    fl_model_status s = test_law(row, span, FL_CHIP_FULL, folds, &e[FL_CHIP_FULL]);
    if (s == FL_MODEL_OK)
        s = test_law(row, span, FL_CHIP_PLAIN, folds, &e[FL_CHIP_PLAIN]);
    if (s == FL_MODEL_OK)
        choose(e, e[0].count, laws);
    return s == FL_MODEL_NO_MEMORY ? s : FL_MODEL_OK; /* a fold that cannot be fitted decides nothing */
}

/* ---- the whole fit ---- */

static int by_workload(const void *a, const void *b) {
    const fl_chip_row *x = a, *y = b;
    if (x->workload != y->workload)
        return x->workload < y->workload ? -1 : 1;
    if (fabs(x->mem_mhz - y->mem_mhz) > 0)
        return x->mem_mhz < y->mem_mhz ? -1 : 1;
    return (x->sm_mhz > y->sm_mhz) - (x->sm_mhz < y->sm_mhz);
}

/* Keeps the workloads of two rows or more, sorted. Sets *spans to their number and *kept to the number of their rows.
 */
static void find_spans(fl_chip_row *sorted, size_t count, fl_chip_span *span, size_t *spans, size_t *kept) {
    qsort(sorted, count, sizeof *sorted, by_workload);
    *spans = *kept = 0;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && sorted[end].workload == sorted[i].workload;)
            end++;
        if (end - i < 2)
            continue;
        span[(*spans)++] = (fl_chip_span){*kept, end - i};
        memmove(sorted + *kept, sorted + i, (end - i) * sizeof *sorted);
        *kept += end - i;
    }
}

fl_model_status fl_chip_fit(const fl_chip_row *row, size_t count, fl_chip_law law, fl_chip *chip) {
    for (size_t i = 0; i < count; i++)
        if (!fl_chip_row_is_sound(&row[i]))
            return FL_MODEL_INVALID;
    fl_chip_row *sorted = malloc((count + 1) * sizeof *sorted);
    fl_chip_span *span = malloc((count + 1) * sizeof *span);
    fl_chip *c = malloc(sizeof *c);
    fl_chip_folds folds = {0};
    fl_model_status s = sorted && span && c ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    if (s == FL_MODEL_OK) {
        size_t spans = 0, kept = 0;
        fl_chip_laws laws = {law, {NAN, NAN}, {NAN, NAN}};
        memcpy(sorted, row, count * sizeof *row);
        find_spans(sorted, count, span, &spans, &kept);
        s = fl_chip_folds_make(spans, &folds);
        if (s == FL_MODEL_OK && law == FL_CHIP_BEST)
            s = fl_chip_choose_law(sorted, span, &folds, &laws);
        if (s == FL_MODEL_OK)
            s = fl_chip_fit_laws(sorted, span, spans, laws.law, c);
        memcpy(c->time_law_pct, laws.time_pct, sizeof laws.time_pct);
        memcpy(c->power_law_pct, laws.power_pct, sizeof laws.power_pct);
        if (s == FL_MODEL_OK)
            s = fl_chip_fit_activity(sorted, span, spans, c);
        if (s == FL_MODEL_OK)
            s = fl_chip_cross(sorted, span, spans, &folds, c);
    }
    if (s == FL_MODEL_OK)
        *chip = *c;
    fl_chip_folds_free(&folds);
    free(sorted);
    free(span);
    free(c);
    return s;
}

fl_model_status fl_chip_of_device(const fl_device *dev, fl_chip *chip) {
    if (dev->sm_count == 0 || dev->mem_count == 0 || !dev->voltage || !dev->b0_w || !(dev->sharpness >= 1))
        return FL_MODEL_INVALID;
    fl_chip c = {.sm_ref = dev->sm_mhz[dev->sm_count - 1],
                 .sm_min = dev->sm_mhz[0],
                 .mem_ref = dev->default_mem_mhz,
                 .mem_min = dev->mem_mhz[0],
                 .sharpness = fmin(dev->sharpness, 60),
                 .a_w = dev->a_w,
                 .a0_w = dev->a0_w,
                 .b_w = dev->b_w,
                 .c_w = dev->c_w,
                 .stall = 1,
                 .stall_memory = 1,
                 .load_mean = {0.5, 0.5},
                 .load_cov = {0.25, 0, 0.25},
                 .has_power = dev->a_w > 0 && dev->b_w > 0,
                 .time_error = {.scatter = 0.005, .smooth = 0.01, .length_sm = 0.2, .length_mem = 0.4},
                 .power_error = {.scatter = 0.01, .smooth = 0.03, .length_sm = 0.2, .length_mem = 0.4},
                 .sharpness_sd = NAN,
                 .link_sd = NAN,
                 .c_sd = NAN,
                 .a0_sd = NAN,
                 .slope_w = NAN,
                 .slope_sd = NAN,
                 .stall_sd = NAN,
                 .stall_memory_sd = NAN,
                 .time_rms_pct = NAN,
                 .power_rms_pct = NAN,
                 .dram_width = INFINITY,
                 .unit_width = INFINITY,
                 .law = FL_CHIP_PLAIN,
                 .time_law_pct = {NAN, NAN},
                 .power_law_pct = {NAN, NAN}};
    c.knots = dev->sm_count < FL_CHIP_KNOTS ? dev->sm_count : FL_CHIP_KNOTS;
    for (uint32_t i = 0; i < c.knots; i++) {
        c.knot_mhz[i] = dev->sm_mhz[c.knots > 1 ? (uint64_t)i * (dev->sm_count - 1) / (c.knots - 1) : 0];
        c.volt_sd[i] = NAN;
        if (fl_curve_at(dev->voltage, c.knot_mhz[i], 1, &c.volt[i]) != FL_MODEL_OK)
            return FL_MODEL_INVALID;
    }
    c.mems = dev->mem_count < FL_CHIP_MEMS ? dev->mem_count : FL_CHIP_MEMS;
    for (uint32_t i = 0; i < c.mems; i++) {
        c.mem_mhz[i] = dev->mem_mhz[i];
        c.b0_w[i] = dev->b0_w[i];
        c.b0_sd[i] = NAN;
    }
    fl_chip_assume_growth(&c);
    *chip = c;
    return FL_MODEL_OK;
}
