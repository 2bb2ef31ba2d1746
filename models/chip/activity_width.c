/* Finds the widths of the densities of activities (fit_chip_activity.c): those that best predict the chip's own
 * workloads from one setting. */
#include "models/chip/parts.h"
#include "models/chip/predict.h"

#include <stdlib.h>

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
