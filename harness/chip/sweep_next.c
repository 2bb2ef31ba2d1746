/* Finds the most useful next measurement of a workload of a sweep. */
#include "harness/chip/clocks.h"
#include "harness/chip/sweep_chip.h"

#include <math.h>
#include <string.h>

static bool among(const fl_chip_row *list, size_t count, double sm_mhz, double mem_mhz) {
    for (size_t i = 0; i < count; i++)
        if (fabs(list[i].sm_mhz - sm_mhz) < 0.5 && fabs(list[i].mem_mhz - mem_mhz) < 0.5)
            return true;
    return false;
}

static const fl_fit_entity *entity_of(const fl_sweep_chip *c, const char *workload) {
    for (size_t i = 0; i < c->rows.entities; i++)
        if (c->rows.entity[i].count && !strcmp(c->rows.entity[i].workload, workload))
            return &c->rows.entity[i];
    return NULL;
}

bool fl_sweep_chip_alike(const fl_sweep_chip *c, const char *one, const char *other) {
    const fl_fit_entity *a = entity_of(c, one), *b = entity_of(c, other);
    if (!a || !b || a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) /* both are sorted */
        if (!among(&c->rows.row[b->first + i], 1, c->rows.row[a->first + i].sm_mhz, c->rows.row[a->first + i].mem_mhz))
            return false;
    return true;
}

fl_status fl_sweep_chip_next(const fl_sweep_chip *c, const char *workload, fl_chip_next *out, fl_diag *d) {
    const fl_fit_entity *e =
        entity_of(c, workload); /* its kernels have the same settings, so the first represents all */
    fl_chip_row known[FL_PROBES_KNOWN];
    size_t count = 0, left = 0;
    *out = (fl_chip_next){.sm_mhz = NAN, .mem_mhz = NAN};
    if (!e)
        return FL_OK;
    const fl_chip_row *row = &c->rows.row[e->first];
    for (uint32_t i = 0; i < c->chip->settings; i++)
        left += among(row, e->count, c->chip->setting_sm[i], c->chip->setting_mem[i]) ? 0 : 1;
    out->known = c->chip->settings > 0 && left == 0;
    for (size_t i = 0; i < e->count && count <= FL_PROBES_KNOWN; i++)
        if (!fl_fit_is_beyond(c->chip, &row[i]) && !among(row, i, row[i].sm_mhz, row[i].mem_mhz)) {
            if (count < FL_PROBES_KNOWN)
                known[count] = row[i];
            count++;
        }
    if (out->known || count > FL_PROBES_KNOWN)
        return FL_OK;
    fl_probes now, next;
    size_t added = 0;
    const fl_model_status m = fl_probes_next(c->chip, known, count, &now, &next, &added);
    if (m == FL_MODEL_NO_MEMORY)
        return fl_no_memory(d, "the probes");
    if (m != FL_MODEL_OK)
        return FL_OK;
    fl_fit_name_probes(&c->rows, &next);
    *out = (fl_chip_next){true, next.at[added].sm_mhz, next.at[added].mem_mhz, now.energy_pct, next.energy_pct};
    return FL_OK;
}
