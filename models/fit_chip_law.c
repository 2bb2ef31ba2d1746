/* Which of the two laws a chip has. The full one has numbers more, which measurements of few workloads may not pay for:
 * both are fitted to three quarters of the workloads and predict the rest, in turn. Nothing is drawn. */
#include "models/fit_chip_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FOLDS 4
#define WORKLOADS_MIN 4
#define FLOOR_PCT 0.1    /* no measurement repeats better: errors below say nothing of the law */
#define WORKLOADS_MAX 24 /* scored, evenly among more: the rest add time, hardly knowledge */

typedef struct room {
    fl_chip_row *row; /* those of the spans that are fitted to, without gaps */
    fl_chip_span *span;
    fl_chip *chip;
} room;

/* Mean ln of the errors, in percent, of each tested workload that the chip was not fitted to; NAN = none. Between the
 * known settings, where the shape of the law decides: far beyond them what is not known of the workload does. The other
 * places count, alike, only where there is nothing between. */
typedef struct errors {
    double time[WORKLOADS_MAX], power[WORKLOADS_MAX];
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

/* Those of one law by one fold. Neighbours, which often are one benchmark at several sizes, are left out together; of
 * each such block the first is scored. */
static fl_model_status test_fold(const fl_chip_row *row, const fl_chip_span *span, size_t spans, size_t fold,
                                 fl_chip_law law, const room *in, errors *to) {
    const size_t step = (spans - 1) / WORKLOADS_MAX + 1;
    size_t n = 0, rows = 0;
    for (size_t k = 0; k < spans; k++)
        if (k / step % FOLDS != fold) {
            memcpy(in->row + rows, row + span[k].first, span[k].count * sizeof *row);
            in->span[n++] = (fl_chip_span){rows, span[k].count};
            rows += span[k].count;
        }
    fl_model_status s = fl_chip_fit_laws(in->row, in->span, n, law, in->chip);
    for (size_t k = fold * step; s == FL_MODEL_OK && k < spans; k += step * FOLDS) {
        double sum[2][FL_CHIP_PLACES] = {{0}}, count[2][FL_CHIP_PLACES] = {{0}};
        s = fl_chip_add_errors(in->chip, row + span[k].first, span[k].count, sum, count);
        to->time[k / step] = mean_ln(sum[0], count[0]);
        to->power[k / step] = mean_ln(sum[1], count[1]);
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

/* The full law nests the plain one, so the plain one is taken only where it is better by more than chance gives: one
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

fl_model_status fl_chip_choose_law(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip_laws *laws) {
    static const fl_chip_law law[2] = {FL_CHIP_FULL, FL_CHIP_PLAIN};
    *laws = (fl_chip_laws){FL_CHIP_FULL, {NAN, NAN}, {NAN, NAN}};
    if (spans < WORKLOADS_MIN)
        return FL_MODEL_OK;
    const size_t rows = span[spans - 1].first + span[spans - 1].count;
    const room in = {malloc(rows * sizeof *in.row), malloc(spans * sizeof *in.span), malloc(sizeof *in.chip)};
    fl_model_status s = in.row && in.span && in.chip ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    errors e[2];
    for (size_t i = 0; i < WORKLOADS_MAX; i++)
        e[0].time[i] = e[1].time[i] = e[0].power[i] = e[1].power[i] = NAN;
    for (int i = 0; s == FL_MODEL_OK && i < 2; i++)
        for (size_t fold = 0; s == FL_MODEL_OK && fold < FOLDS; fold++)
            s = test_fold(row, span, spans, fold, law[i], &in, &e[i]);
    if (s == FL_MODEL_OK)
        choose(e, WORKLOADS_MAX, laws);
    free(in.row);
    free(in.span);
    free(in.chip);
    return s == FL_MODEL_NO_MEMORY ? s : FL_MODEL_OK; /* a fold that cannot be fitted decides nothing */
}
