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
