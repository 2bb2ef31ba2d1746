/* Chooses between the two laws of a chip. The full law has more numbers to fit, and measurements of few workloads may
 * not justify them. Both laws are therefore fitted to three quarters of the workloads and predict the rest, each
 * quarter in turn. Nothing is random. */
#include "models/chip/parts.h"

#include <math.h>

#define WORKLOADS_MIN 4
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
    if (n < WORKLOADS_MIN)
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
