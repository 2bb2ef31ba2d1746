#include "models/chip/fit_chip.h"
#include "models/chip/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
