/* From laws to the engine's integers: rows of kernels, and shares of kernels that run together. */
#include "models/laws/laws.h"

#include "models/laws/device.h"
#include "models/math/math.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- shares of a GPU ---- */

/* The water level of max-min fairness: each kernel gets min(demand, level). Starting from an even split, each pass
 * gives what the satisfied kernels leave to the others. The level only rises, and it stops when no further demand is
 * met. Only sums and counts enter, so the order of the demands cannot matter. Usually two or three passes, with as many
 * divisions, suffice. */
static uint32_t fill_level(const uint32_t *demand, size_t count, uint32_t capacity) {
    uint32_t level = capacity / (uint32_t)count, met = 0;
    for (;;) {
        uint32_t met_sum = 0, met_count = 0;
        for (size_t i = 0; i < count; i++) {
            const uint32_t is_met = demand[i] <= level;
            met_count += is_met;
            met_sum += demand[i] & (0u - is_met);
        }
        if (met_count == met || met_count == count)
            return level;
        met = met_count;
        level = (capacity - met_sum) / ((uint32_t)count - met_count);
    }
}

static uint64_t sum_of(const uint32_t *v, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += v[i];
    return sum;
}

/* min(65536, floor(65536 part / whole)), 65536 for whole = 0; part, whole <= 65536. Doubles make it exact: the quotient
 * is at most 2^32 and, where it is not a whole number, at least 2^-16 from the next one. No branch depends on the
 * demands: the set of satisfied kernels changes from event to event, and mispredictions would cost more than the
 * divisions. */
static uint32_t ratio_of(uint32_t part, uint32_t whole) {
    const int64_t ratio = (int64_t)((double)part * FL_SHARE_ONE / ((double)whole + (whole == 0)));
    return ratio < FL_SHARE_ONE ? (uint32_t)ratio : FL_SHARE_ONE;
}

void fl_shares_fill(const uint32_t *demand, uint32_t *grant, size_t count, uint32_t capacity) {
    const uint32_t level = sum_of(demand, count) <= capacity ? UINT32_MAX : fill_level(demand, count, capacity);
    for (size_t i = 0; i < count; i++)
        grant[i] = demand[i] < level ? demand[i] : level;
}

uint32_t fl_shares_capacity(uint64_t asked, uint32_t capacity, uint32_t gamma) {
    if (!gamma || asked <= FL_SHARE_ONE)
        return capacity;
    const uint64_t loss = (uint64_t)gamma * (asked - FL_SHARE_ONE) >> 16; /* asked < 2^25, gamma < 2^32 */
    return (uint32_t)(((uint64_t)capacity << 16) / (FL_SHARE_ONE + loss));
}

/* Cuts rates to the bandwidth that is left: a kernel slowed by its SM share also asks for less bandwidth. */
static void cut_to_bandwidth(const uint32_t *memory, uint32_t *rate, size_t count, uint32_t capacity,
                             uint32_t interference) {
    uint32_t left[FL_SHARES_MAX];
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        left[i] = (uint32_t)(((uint64_t)memory[i] * rate[i] + FL_SHARE_ONE / 2) >> 16);
        sum += left[i];
    }
    if (sum <= capacity)
        return; /* the SM shares already limit it */
    capacity = fl_shares_capacity(sum, capacity, interference);
    const uint32_t level = fill_level(left, count, capacity);
    for (size_t i = 0; i < count; i++) {
        /* left > level, even after rounding, means that this ratio is below the one that the SMs allow. */
        const uint32_t cut = ratio_of(level, memory[i]);
        const uint32_t less = cut < rate[i] ? cut : rate[i];
        rate[i] = left[i] <= level ? rate[i] : less + (less == 0);
    }
}

void fl_shares_rates(const uint32_t *sms, const uint32_t *memory, uint32_t *rate, size_t count, uint32_t capacity,
                     uint32_t interference) {
    const uint32_t level = sum_of(sms, count) <= FL_SHARE_ONE ? UINT32_MAX : fill_level(sms, count, FL_SHARE_ONE);
    for (size_t i = 0; i < count; i++)
        rate[i] = sms[i] <= level ? FL_SHARE_ONE : ratio_of(level, sms[i]);
    if (sum_of(memory, count) > capacity)
        cut_to_bandwidth(memory, rate, count, capacity, interference);
}

/* ---- rows ---- */

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

/* Return the bandwidth at one clock over that at another. */
static double bandwidth_ratio(const fl_load *l, double mhz, double other_mhz) {
    return l->bandwidth.fold_mhz > 0 ? fl_fold_line_at(&l->bandwidth, mhz) / fl_fold_line_at(&l->bandwidth, other_mhz)
                                     : 1;
}

static void free_curves(fl_measured *m) {
    fl_curve_free(m->time_ratio);
    fl_curve_free(m->power_w);
    for (int i = 0; i < FL_READINGS; i++)
        fl_curve_free(m->util[i]);
}

void fl_measured_free(fl_measured *m) {
    free_curves(m);
    for (fl_measured *n = m->next, *after; n; n = after) {
        after = n->next;
        free_curves(n);
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

double fl_reading_at(const fl_load *load, fl_reading_kind kind, double sm_mhz, double mem_mhz) {
    const fl_measured *m = fl_measured_find(load->measured, load->ref_mem_mhz, mem_mhz);
    double value = NAN;
    return m && m->util[kind] && fl_curve_at(m->util[kind], sm_mhz, 1, &value) == FL_MODEL_OK ? value : (double)NAN;
}

/* The sum of a window over these shares is the mean of the board's reading. */
static void take_readings(const fl_load *load, double sm_mhz, double mem_mhz, fl_row *row) {
    const double gpu = fl_reading_at(load, FL_READING_GPU, sm_mhz, mem_mhz),
                 memory = fl_reading_at(load, FL_READING_MEM, sm_mhz, mem_mhz);
    row->sms = isnan(gpu) ? row->sms : to_share(gpu / 100);
    row->memory = isnan(memory) ? row->memory : to_share(memory / 100);
}

fl_model_status fl_row_make(const fl_device *dev, const fl_load *load, double sm_mhz, double mem_mhz, fl_row *row,
                            fl_row_parts *parts) {
    const double p = load->sharpness > 0 ? load->sharpness : dev->sharpness;
    if (!load_is_sound(load, p) || !(sm_mhz > 0) || !(mem_mhz > 0) ||
        !fl_fold_line_sound(&load->bandwidth, fmin(sm_mhz, load->ref_sm_mhz)))
        return FL_MODEL_INVALID;

    const double f_ratio = load->ref_sm_mhz / sm_mhz, m_ratio = load->ref_mem_mhz / mem_mhz;
    const double whole =
        fl_time_at(load->tc, load->tm, load->tl, p, 1, 1); /* normalises the sum of the terms to 1 at the reference */
    const double core = whole > 0 ? load->tc * f_ratio / whole : 0;
    const double bytes = whole > 0 ? load->tm * m_ratio / whole : 0; /* with the bandwidth at the reference clock */
    const double memory = bytes * bandwidth_ratio(load, load->ref_sm_mhz, sm_mhz);
    const double top_mhz = dev->sm_count ? dev->sm_mhz[dev->sm_count - 1] : load->ref_sm_mhz;

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
                    .memory = to_share(bytes * bandwidth_ratio(load, load->ref_sm_mhz, top_mhz) / ratio),
                    .sms = to_share(load->sm_demand),
                    .alu = to_share(core / ratio)};
    take_readings(load, sm_mhz, mem_mhz, row);
    if (parts)
        *parts = part;
    return FL_MODEL_OK;
}
