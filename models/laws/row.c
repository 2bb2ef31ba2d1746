#include "models/laws/row.h"
#include "models/laws/time.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static fl_model_status to_mw(double watts, int32_t *mw) {
    if (isnan(watts))
        return FL_MODEL_INVALID;
    if (fabs(watts) * 1000 > FL_POWER_MAX_MW)
        return FL_MODEL_OVERFLOW;
    *mw = (int32_t)lround(watts * 1000);
    return FL_MODEL_OK;
}

/* A share as 1/32768, saturating at one. */
static uint16_t to_share(double share) { return (uint16_t)lround(fmin(1, fmax(0, share)) * FL_ROW_ONE); }

static bool load_is_sound(const fl_load *l, double p) {
    const bool terms = l->tc >= 0 && l->tm >= 0 && l->tl >= 0 && isfinite(l->tc + l->tm + l->tl) &&
                       (l->tc + l->tm + l->tl > 0 || l->measured);
    return terms && p >= 1 && l->alpha >= 0 && l->beta >= 0 && l->sm_demand >= 0 && l->sm_demand <= 1 &&
           l->ref_sm_mhz > 0 && l->ref_mem_mhz > 0;
}

void fl_measured_free(fl_measured *m) {
    fl_curve_free(m->time_ratio);
    fl_curve_free(m->power_w);
    for (fl_measured *n = m->next, *after; n; n = after) {
        after = n->next;
        fl_curve_free(n->time_ratio);
        fl_curve_free(n->power_w);
        free(n);
    }
    *m = (fl_measured){0};
}

const fl_measured *fl_measured_find(const fl_measured *m, double ref_mem_mhz, double mem_mhz) {
    while (m && fabs(mem_mhz - (m->mem_mhz > 0 ? m->mem_mhz : ref_mem_mhz)) > 0.5)
        m = m->next;
    return m;
}

/* A table gives nothing for a memory clock that it does not have. */
static fl_model_status measured_at(const fl_load *l, double sm_mhz, double mem_mhz, double *ratio, double *watts) {
    double here = 0, at_ref = 0;
    const fl_measured *m = fl_measured_find(l->measured, l->ref_mem_mhz, mem_mhz);
    if (!l->measured->time_ratio || !l->measured->power_w)
        return FL_MODEL_INVALID;
    if (!m)
        return FL_MODEL_RANGE;
    fl_model_status s = fl_curve_at(m->time_ratio, sm_mhz, 0, &here);
    if (s == FL_MODEL_OK)
        s = fl_curve_at(l->measured->time_ratio, l->ref_sm_mhz, 0, &at_ref);
    if (s == FL_MODEL_OK)
        s = fl_curve_at(m->power_w, sm_mhz, 0, watts);
    if (s != FL_MODEL_OK)
        return s;
    if (!(here > 0) || !(at_ref > 0) || !(*watts >= 0))
        return FL_MODEL_INVALID;
    *ratio = here / at_ref;
    return FL_MODEL_OK;
}

fl_model_status fl_row_make(const fl_device *dev, const fl_load *load, double sm_mhz, double mem_mhz, fl_row *row,
                            fl_row_parts *parts) {
    const double p = load->sharpness > 0 ? load->sharpness : dev->sharpness;
    if (!load_is_sound(load, p) || !(sm_mhz > 0) || !(mem_mhz > 0))
        return FL_MODEL_INVALID;

    const double f_ratio = load->ref_sm_mhz / sm_mhz, m_ratio = load->ref_mem_mhz / mem_mhz;
    const double whole =
        fl_time_at(load->tc, load->tm, load->tl, p, 1, 1); /* normalises the sum of the terms to 1 at the reference */
    const double core = whole > 0 ? load->tc * f_ratio / whole : 0;
    const double memory = whole > 0 ? load->tm * m_ratio / whole : 0;

    double ratio = 0;
    fl_row_parts part = {0};
    fl_model_status s = FL_MODEL_OK;
    if (load->measured) {
        fl_base base;
        double watts = 0;
        int32_t board_mw = 0;
        s = measured_at(load, sm_mhz, mem_mhz, &ratio, &watts);
        if (s == FL_MODEL_OK)
            s = fl_base_make(dev, sm_mhz, mem_mhz, &base);
        if (s == FL_MODEL_OK)
            s = to_mw(watts, &board_mw);
        if (s == FL_MODEL_OK)
            part.unsplit_mw = board_mw - base.total_mw; /* both in 0..2e9, so the difference fits; it may be negative */
    } else {
        double sm_w = 0, memory_w = 0;
        ratio = fl_time_norm(core, memory, p) + load->tl / whole;
        s = fl_power_dynamic(dev, load->alpha, load->beta, sm_mhz, mem_mhz, &sm_w, &memory_w);
        if (s == FL_MODEL_OK && (sm_w + memory_w) * 1000 > FL_POWER_MAX_MW)
            s = FL_MODEL_OVERFLOW;
        if (s == FL_MODEL_OK)
            s = to_mw(sm_w, &part.sm_mw);
        if (s == FL_MODEL_OK)
            s = to_mw(memory_w, &part.memory_mw);
    }
    if (s != FL_MODEL_OK)
        return s;

    const double mul = round(ratio * FL_MUL_ONE);
    if (!(mul >= 1) || mul > (double)UINT32_MAX)
        return FL_MODEL_OVERFLOW;
    *row = (fl_row){.mul = (uint32_t)mul,
                    .dyn_mw = part.sm_mw + part.memory_mw + part.unsplit_mw,
                    .memory = to_share(memory / ratio),
                    .sms = to_share(load->sm_demand),
                    .alu = to_share(core / ratio)};
    if (parts)
        *parts = part;
    return FL_MODEL_OK;
}
