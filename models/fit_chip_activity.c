/* What a workload's activities say of it. From one clock, time and power alone cannot tell a kernel that computes from
 * one that waits for memory; the share of the time in which DRAM works can. The chip's workloads keep theirs, and a
 * workload with activities is taken to be like those that are as active: a normal density in the space of activities,
 * whose widths are those that predict the chip's own workloads best from one setting. */
#include "models/fit_chip_parts.h"
#include "models/fit_chip_predict.h"

#include <stdlib.h>
#include <string.h>

#define UNLIKE 0.02   /* share of workloads that are like others in all but this activity */
#define STRANGE 0.3   /* as many, like the calibration's on the whole, stand beside those that are as active */
#define TWIN 0.02     /* the same kernel at another size, say: no witness for how a stranger is predicted */
#define TESTED_MAX 24 /* workloads: more add time, hardly knowledge */
#define ROWS_MAX 32   /* of one workload */
#define WORKLOADS_MIN 6

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* What an activity at a setting is multiplied with to be that at the reference clocks. slower: T there over T at the
 * reference. A workload moves the same bytes and issues the same instructions at any clock; SMs hold warps as long as
 * it runs. */
static double to_reference(const fl_chip *c, int kind, const fl_chip_row *row, double slower) {
    if (kind == FL_CHIP_DRAM)
        return slower * row->mem_mhz / c->mem_ref;
    return kind >= FL_CHIP_FP32 ? slower * row->sm_mhz / c->sm_ref : 1;
}

fl_model_status fl_chip_fill_activity(const fl_chip_row *row, const fl_chip_span *span, size_t spans,
                                      const double *time_ref, fl_chip *chip) {
    const size_t stride = spans / FL_CHIP_SHARES + 1;
    size_t longest = 1;
    for (size_t k = 0; k < spans; k++)
        longest = span[k].count > longest ? span[k].count : longest;
    double *list = malloc(longest * sizeof *list);
    if (!list)
        return FL_MODEL_NO_MEMORY;
    for (size_t k = 0, n = 0; k < spans; k += stride, n++)
        for (int kind = 0; kind < FL_CHIP_ACTIVITIES; kind++) {
            size_t count = 0;
            for (size_t i = span[k].first; i < span[k].first + span[k].count; i++)
                if (row[i].activity && !isnan(row[i].activity[kind]))
                    list[count++] =
                        row[i].activity[kind] * to_reference(chip, kind, &row[i], row[i].time_s / time_ref[k]);
            qsort(list, count, sizeof *list, ascending);
            chip->share[n].activity[kind] = count ? 0.5 * (list[(count - 1) / 2] + list[count / 2]) : (double)NAN;
        }
    free(list);
    return FL_MODEL_OK;
}

/* Which width an activity has; none where it does not count. How many warps an SM holds says how a kernel was launched,
 * not what it waits for. */
static double width_of(const fl_chip *chip, int kind) {
    if (kind == FL_CHIP_OCCUPANCY)
        return INFINITY;
    return kind == FL_CHIP_DRAM ? chip->dram_width : chip->unit_width;
}

/* The fastest of the known settings with an activity that counts; NULL: none. */
static const fl_chip_row *telling(const fl_chip *chip, const fl_chip_row *known, size_t count) {
    const fl_chip_row *best = NULL;
    for (size_t i = 0; i < count; i++) {
        int tells = 0;
        for (int kind = 0; known[i].activity && kind < FL_CHIP_ACTIVITIES; kind++)
            tells |= isfinite(width_of(chip, kind)) && !isnan(known[i].activity[kind]);
        if (tells && (!best || known[i].sm_mhz * known[i].mem_mhz > best->sm_mhz * best->mem_mhz))
            best = &known[i];
    }
    return best;
}

int fl_chip_uses_activity(const fl_chip *chip, const fl_chip_row *known, size_t known_count) {
    return telling(chip, known, known_count) != NULL;
}

/* Density of the row's activities about those of a share at its setting, the highest being 1. *dram: by how much the
 * share's DRAM is more active; 0 where that is not known. */
static double likeness(const fl_chip *chip, const fl_chip_share *s, const fl_chip_row *row, double *dram) {
    const fl_chip_load load = {(1 - s->rest) * (1 - s->memory), (1 - s->rest) * s->memory, s->rest, 0, 0};
    const double slower =
        fl_chip_time(chip, &load, row->sm_mhz, row->mem_mhz) / fl_chip_time(chip, &load, chip->sm_ref, chip->mem_ref);
    double like = 1;
    for (int kind = 0; kind < FL_CHIP_ACTIVITIES; kind++) {
        const double width = width_of(chip, kind), at = s->activity[kind] / to_reference(chip, kind, row, slower);
        const double x = (row->activity[kind] - at) / width;
        if (kind == FL_CHIP_DRAM)
            *dram = isnan(x) ? 0 : at - row->activity[kind];
        if (isfinite(width) && !isnan(x))
            like *= UNLIKE + (1 - UNLIKE) * exp(-0.5 * x * x);
    }
    return like;
}

int fl_chip_weigh_activity(const fl_chip *chip, const fl_chip_row *known, size_t count, double *weight, double *dram) {
    const fl_chip_row *row = telling(chip, known, count);
    double like[FL_CHIP_SHARES], most = 0;
    for (uint32_t k = 0; row && k < chip->shares; k++) {
        like[k] = likeness(chip, &chip->share[k], row, &dram[k]);
        most = fmax(most, like[k]);
    }
    for (uint32_t k = 0; row && k < chip->shares; k++)
        weight[k] *= STRANGE / chip->shares + like[k] / most;
    return row != NULL;
}

/* ---- the widths ---- */

static int is_twin(const fl_chip_share *a, const fl_chip_share *b) {
    for (int kind = 0; kind < FL_CHIP_ACTIVITIES; kind++)
        if (kind != FL_CHIP_OCCUPANCY && fabs(a->activity[kind] - b->activity[kind]) > TWIN)
            return 0;
    return 1;
}

/* Sum of the errors of time and power of a workload that is known at its highest setting alone, per row. */
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

/* Finds the width that *at points to, of a trial chip: of those from what says least to what says most, the first that
 * no other beats by more than its standard error. */
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
    fl_chip *trial = malloc(2 * sizeof *trial); /* and room for one without a workload */
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
