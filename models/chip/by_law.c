/* Fits the parts of a chip by one law. fit_chip_law.c tries two laws, fit_chip.c takes one. */
#include "models/chip/parts.h"

#include <math.h>
#include <stdlib.h>

fl_model_status fl_chip_fit_laws(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip_law law,
                                 fl_chip *chip) {
    fl_chip c = {.sm_min = INFINITY,
                 .mem_min = INFINITY,
                 .dram_width = INFINITY,
                 .unit_width = INFINITY,
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
        s = fl_chip_fill_activity(row, span, spans, time_ref, &c);
    if (s == FL_MODEL_OK)
        *chip = c;
    free(time_ref);
    return s;
}
