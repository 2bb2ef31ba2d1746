/* What a workload's activities say of it. At one clock, time and power alone cannot distinguish a kernel that computes
 * from one that waits for memory; the share of the time in which DRAM works can. The chip's workloads keep their
 * activities, and a workload with activities counts as similar to those with similar activities. The likeness is a
 * normal density in the space of activities, whose widths fit_chip_activity_width.c finds. */
#include "models/chip/activity.h"
#include "models/chip/parts.h"

#include <gsl/gsl_sort.h>
#include <stdlib.h>
#include <string.h>

#define UNLIKE 0.02 /* share of workloads that resemble others in all but this activity */
#define STRANGE 0.3 /* weight of typical workloads of the calibration, against 1 for those with similar activities */

/* The factor that turns an activity at a setting into the activity at the reference clocks. slower: T at the setting
 * over T at the reference. A workload moves the same bytes and issues the same instructions at any clock; SMs hold
 * warps as long as it runs. */
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
            gsl_sort(list, 1, count);
            chip->share[n].activity[kind] = count ? 0.5 * (list[(count - 1) / 2] + list[count / 2]) : (double)NAN;
        }
    free(list);
    return FL_MODEL_OK;
}

/* The width of an activity, INFINITY where the activity does not count. Occupancy, the number of warps that an SM
 * holds, says how a kernel was launched, not what it waits for. */
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

/* Density of the row's activities about those of a share at its setting, with a maximum of 1. *dram: by how much the
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
