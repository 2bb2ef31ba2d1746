/* Reads signals, sets controls and restores them through NVML. */
#include "harness/live/vendor/nvml/inside.h"

#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { /* reasons that hold a clock down */
       FL_NVML_REASON_IDLE = 0x1,
       FL_NVML_REASON_SETTING = 0x2,
       FL_NVML_REASON_POWER_CAP = 0x4,
       FL_NVML_REASON_HW_SLOWDOWN = 0x8,
       FL_NVML_REASON_SYNC = 0x10,
       FL_NVML_REASON_SW_THERMAL = 0x20,
       FL_NVML_REASON_HW_THERMAL = 0x40,
       FL_NVML_REASON_POWER_BRAKE = 0x80,
       FL_NVML_REASON_DISPLAY = 0x100
};
enum { FL_NVML_FIELD_POWER_VIOLATION = 74, FL_NVML_FIELD_THERMAL_VIOLATION = 75, FL_NVML_FIELD_POWER_INSTANT = 186 };
enum { FL_NVML_POLICY_POWER = 0, FL_NVML_POLICY_THERMAL = 1 };
enum { FL_NVML_GPM_SM_UTIL = 2, FL_NVML_GPM_DRAM_UTIL = 10 };

#define FL_NVML_TEMPERATURE_VERSION 0x0100000Cu

/* ---- sets, priors and restores ---- */

/* off_w: tolerance of the value read back. */
static fl_status set_limit(fl_nvml_host *h, fl_nvml_gpu *g, unsigned mw, double off_w, fl_diag *d) {
    unsigned now = 0;
    int code = FL_NVML_CALL(h, set_limit, g->handle, mw);
    if (code)
        return fl_nvml_failed(h, g, "setting the power limit", code, d);
    if ((code = FL_NVML_CALL(h, limit, g->handle, &now))) {
        fl_nvml_failed(h, g, "reading the power limit back", code, d);
        if (d) /* never report "nothing changed": the value was set */
            d->status = FL_HARDWARE;
        return FL_HARDWARE;
    }
    if (fabs((double)now - mw) > off_w * 1e3)
        return fl_error(d, FL_HARDWARE, "GPU %u: power limit reads back as %u mW after %u mW was set", g->index, now,
                        mw);
    return FL_OK;
}

fl_status fl_nvml_set(void *self, uint32_t i, int control, double value, const fl_record *prior, fl_diag *d) {
    fl_nvml_host *h = self;
    fl_nvml_gpu *g = &h->gpu[i];
    const bool back = value == FL_DEFAULT;
    const unsigned whole = back ? 0 : (unsigned)lrint(control == FL_SET_POWER_LIMIT_W ? value * 1e3 : value);
    int code = 0;
    switch (control) {
    case FL_SET_SM_MHZ:
        code = back ? FL_NVML_CALL(h, reset_sm, g->handle) : FL_NVML_CALL(h, lock_sm, g->handle, whole, whole);
        return code ? fl_nvml_failed(h, g, back ? "unlocking the SM clock" : "locking the SM clock", code, d) : FL_OK;
    case FL_SET_MEM_MHZ:
        code = back ? FL_NVML_CALL(h, reset_mem, g->handle) : FL_NVML_CALL(h, lock_mem, g->handle, whole, whole);
        return code ? fl_nvml_failed(h, g, back ? "unlocking the memory clock" : "locking the memory clock", code, d)
                    : FL_OK;
    case FL_SET_POWER_LIMIT_W: {
        unsigned standard = 0;
        const fl_prior *was = fl_record_find(prior, FL_PRIOR_LIMIT_MW);
        if (!back)
            return set_limit(h, g, whole, FL_LIMIT_OFF_W, d);
        if (was && was->value >= 0)
            return set_limit(h, g, (unsigned)was->value, 0, d);
        code = FL_NVML_CALL(h, limit_default, g->handle, &standard);
        return code ? fl_nvml_failed(h, g, "reading the default power limit", code, d)
                    : set_limit(h, g, standard, 0, d);
    }
    default:
        code = h->set_records ? h->set_records(g->index, value) : FL_NVML_OK;
        return code ? fl_nvml_failed(h, g, "activity records", code, d) : FL_OK;
    }
}

fl_status fl_nvml_prior(void *self, uint32_t i, uint64_t drives, fl_record *r, fl_diag *d) {
    fl_nvml_host *h = self;
    fl_nvml_gpu *g = &h->gpu[i];
    fl_status s = FL_OK;
    snprintf(r->unit, sizeof r->unit, "%s", g->unit);
    if (drives & FL_BIT(FL_SET_SM_MHZ))
        s = fl_record_add(r, FL_PRIOR_SM_LOCK, -1, d);
    if (!s && drives & FL_BIT(FL_SET_MEM_MHZ))
        s = fl_record_add(r, FL_PRIOR_MEM_LOCK, -1, d);
    if (!s && drives & FL_BIT(FL_SET_POWER_LIMIT_W)) {
        unsigned mw = 0;
        int code = FL_NVML_CALL(h, limit, g->handle, &mw);
        s = code ? fl_nvml_failed(h, g, "reading the power limit", code, d)
                 : fl_record_add(r, FL_PRIOR_LIMIT_MW, mw, d);
    }
    return s;
}

/* A control that the board does not support cannot have been set either. */
static fl_status unlock(fl_nvml_host *h, fl_nvml_gpu *g, const char *what, int code, fl_diag *d) {
    bool fine = !code || code == FL_NVML_NOT_SUPPORTED || code == FL_NVML_FUNCTION_NOT_FOUND;
    return fine ? FL_OK : fl_nvml_failed(h, g, what, code, d);
}

fl_status fl_nvml_restore(void *self, uint32_t i, const fl_record *r, fl_diag *d) {
    fl_nvml_host *h = self;
    fl_nvml_gpu *g = &h->gpu[i];
    fl_status first = FL_OK;
    for (size_t k = 0; k < r->count; k++) {
        const char *key = r->prior[k].key;
        fl_status s = FL_OK;
        fl_diag *where = first ? NULL : d;
        if (!strcmp(key, FL_PRIOR_SM_LOCK))
            s = unlock(h, g, "unlocking the SM clock", FL_NVML_CALL(h, reset_sm, g->handle), where);
        else if (!strcmp(key, FL_PRIOR_MEM_LOCK))
            s = unlock(h, g, "unlocking the memory clock", FL_NVML_CALL(h, reset_mem, g->handle), where);
        else if (!strcmp(key, FL_PRIOR_LIMIT_MW))
            s = set_limit(h, g, (unsigned)r->prior[k].value, 0, where);
        first = first ? first : s;
    }
    return first;
}

/* ---- signals ---- */

#define GPM_WINDOW_NS INT64_C(100000000) /* profiling samples must be further apart than this (NVML) */

typedef struct reading {
    fl_nvml_host *h;
    fl_nvml_gpu *g;
    uint64_t needs;
    int64_t t_ns;
    fl_gpu_sample *out;
    int gone; /* the code of the failure, where the GPU is gone */
} reading;

static bool wants(const reading *r, int id) { return !r->gone && r->needs >> id & 1; }

static bool fine(reading *r, int code) {
    if (fl_nvml_gone(code))
        r->gone = code;
    return code == FL_NVML_OK;
}

/* Reads a number in the library's own width. */
static bool put_signal(reading *r, int id, double raw) {
    const fl_readout_rule *rule = &fl_readout_nvml.rule[id];
    return fl_seen_put(&r->g->last[id], r->out, id, raw / rule->per_unit, r->t_ns, rule->refresh_ns);
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

#define ENERGY (FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS))

/* The counter as it stands, which the GPU's pace may know without a reading. In a simulated session each look at the
 * clock lets time pass, and readings cost alike: it is read each time. */
static bool read_energy(reading *r, unsigned long long *mj) {
    fl_pace *p = &r->g->energy;
    if (r->h->set_records)
        return fine(r, FL_NVML_CALL(r->h, energy, r->g->handle, mj));
    p->spare = (r->h->spared & ENERGY) == ENERGY;
    if (!fl_pace_rests(p, r->t_ns)) {
        const int64_t before = now_ns();
        if (!fine(r, FL_NVML_CALL(r->h, energy, r->g->handle, mj))) {
            *p = (fl_pace){0};
            return false;
        }
        fl_pace_read(p, r->t_ns, (double)*mj, now_ns() - before);
    }
    *mj = (unsigned long long)p->value;
    return true;
}

static void read_counter(reading *r) {
    const fl_pace *p = &r->g->energy;
    unsigned long long mj = 0;
    if (!(wants(r, FL_GPU_ENERGY_J) || wants(r, FL_GPU_ENERGY_NS)) || !read_energy(r, &mj))
        return;
    put_signal(r, FL_GPU_ENERGY_J, (double)mj);
    if (r->h->set_records)
        put_signal(r, FL_GPU_ENERGY_NS, (double)r->g->last[FL_GPU_ENERGY_J].fresh_ns);
    else if (p->timed)
        put_signal(r, FL_GPU_ENERGY_NS, (double)p->moved_ns);
}

static void read_power(reading *r) {
    unsigned mw = 0;
    if (wants(r, FL_GPU_POWER_W) && fine(r, FL_NVML_CALL(r->h, power, r->g->handle, &mw)))
        put_signal(r, FL_GPU_POWER_W, mw);
    if (wants(r, FL_GPU_POWER_INSTANT_W)) {
        fl_nvml_field f = {.id = FL_NVML_FIELD_POWER_INSTANT};
        if (fine(r, FL_NVML_CALL(r->h, fields, r->g->handle, 1, &f)) && fine(r, f.code))
            put_signal(r, FL_GPU_POWER_INSTANT_W, f.value.u);
    }
    read_counter(r);
}

static double throttle_bits(unsigned long long reasons) {
    unsigned long long idle = FL_NVML_REASON_IDLE, power = FL_NVML_REASON_POWER_CAP | FL_NVML_REASON_POWER_BRAKE,
                       heat = FL_NVML_REASON_SW_THERMAL | FL_NVML_REASON_HW_THERMAL,
                       other = FL_NVML_REASON_HW_SLOWDOWN | FL_NVML_REASON_SYNC | FL_NVML_REASON_DISPLAY;
    return (reasons & power ? FL_THROTTLE_POWER : 0) + (reasons & heat ? FL_THROTTLE_THERMAL : 0) +
           (reasons & idle ? FL_THROTTLE_IDLE : 0) + (reasons & other ? FL_THROTTLE_OTHER : 0);
}

static int celsius(fl_nvml_host *h, fl_nvml_gpu *g, double *value) {
    fl_nvml_temperature now = {.version = FL_NVML_TEMPERATURE_VERSION};
    int code = FL_NVML_CALL(h, temperature_v, g->handle, &now);
    unsigned old = 0;
    *value = now.celsius;
    if (code == FL_NVML_OK || fl_nvml_gone(code))
        return code;
    code = FL_NVML_CALL(h, temperature, g->handle, 0, &old);
    *value = old;
    return code;
}

/* Reads the field that drivers 550 and later have, else the older call, which is deprecated. */
static void read_violation(reading *r, int id, unsigned field, int policy) {
    fl_nvml_field f = {.id = field};
    fl_nvml_violation v = {0};
    if (!wants(r, id))
        return;
    if (fine(r, FL_NVML_CALL(r->h, fields, r->g->handle, 1, &f)) && fine(r, f.code))
        put_signal(r, id, (double)f.value.ull);
    else if (!r->gone && fine(r, FL_NVML_CALL(r->h, violation, r->g->handle, policy, &v)))
        put_signal(r, id, (double)v.violation_ns);
}

static void read_state(reading *r) {
    fl_nvml_utilisation u;
    unsigned long long reasons = 0;
    unsigned mhz = 0;
    double c = 0;
    if ((wants(r, FL_GPU_UTIL_GPU_PCT) || wants(r, FL_GPU_UTIL_MEM_PCT)) &&
        fine(r, FL_NVML_CALL(r->h, utilisation, r->g->handle, &u))) {
        put_signal(r, FL_GPU_UTIL_GPU_PCT, u.gpu);
        put_signal(r, FL_GPU_UTIL_MEM_PCT, u.memory);
    }
    if (wants(r, FL_GPU_SM_MHZ) && fine(r, FL_NVML_CALL(r->h, clock, r->g->handle, FL_NVML_CLOCK_SM, &mhz)))
        put_signal(r, FL_GPU_SM_MHZ, mhz);
    if (wants(r, FL_GPU_MEM_MHZ) && fine(r, FL_NVML_CALL(r->h, clock, r->g->handle, FL_NVML_CLOCK_MEM, &mhz)))
        put_signal(r, FL_GPU_MEM_MHZ, mhz);
    if (wants(r, FL_GPU_TEMP_C) && fine(r, celsius(r->h, r->g, &c)))
        put_signal(r, FL_GPU_TEMP_C, c);
    if (wants(r, FL_GPU_THROTTLE) && fine(r, FL_NVML_CALL(r->h, reasons, r->g->handle, &reasons)))
        put_signal(r, FL_GPU_THROTTLE, throttle_bits(reasons));
    read_violation(r, FL_GPU_POWER_VIOLATION_NS, FL_NVML_FIELD_POWER_VIOLATION, FL_NVML_POLICY_POWER);
    read_violation(r, FL_GPU_THERMAL_VIOLATION_NS, FL_NVML_FIELD_THERMAL_VIOLATION, FL_NVML_POLICY_THERMAL);
}

static bool open_profile(reading *r) {
    fl_nvml_gpu *g = r->g;
    fl_nvml_host *h = r->h;
    fl_nvml_support support = {.version = 1};
    if (g->gpm[0] || g->gpm_off)
        return !g->gpm_off;
    g->gpm_off = FL_NVML_CALL(h, gpm_support, g->handle, &support) || !support.supported || !h->nvml.gpm_metrics;
    for (int k = 0; k < FL_NVML_GPM_KEPT && !g->gpm_off; k++)
        g->gpm_off = FL_NVML_CALL(h, gpm_alloc, &g->gpm[k]) != FL_NVML_OK;
    g->gpm_off = g->gpm_off || FL_NVML_CALL(h, gpm_get, g->handle, g->gpm[0]); /* as with MIG on */
    return !g->gpm_off;
}

static void compare_samples(reading *r, fl_nvml_sample first, fl_nvml_sample second) {
    fl_nvml_metrics m = {.version = 1, .count = 2, .first = first, .second = second};
    m.metric[0].id = FL_NVML_GPM_SM_UTIL;
    m.metric[1].id = FL_NVML_GPM_DRAM_UTIL;
    r->g->gpm_known = fine(r, r->h->nvml.gpm_metrics(&m)) && !m.metric[0].code && !m.metric[1].code;
    if (!r->g->gpm_known)
        return;
    put_signal(r, FL_GPU_SM_ACTIVE_PCT, m.metric[0].value);
    put_signal(r, FL_GPU_DRAM_ACTIVE_PCT, m.metric[1].value);
}

/* Profiling counters (Hopper and later): two samples more than 100 ms apart make one value, which is shown until the
 * next. Samples are taken more than half of that apart. One of the two before the last is then old enough, however
 * irregular the readings are, and each reading of a loop of 100 ms has a value of its own. */
static void read_profile(reading *r) {
    fl_nvml_gpu *g = r->g;
    if (!(wants(r, FL_GPU_SM_ACTIVE_PCT) || wants(r, FL_GPU_DRAM_ACTIVE_PCT)) || !open_profile(r))
        return;
    const uint64_t n = g->gpm_taken, at = n % FL_NVML_GPM_KEPT;
    if (n && r->t_ns - g->gpm_ns[(n - 1) % FL_NVML_GPM_KEPT] <= GPM_WINDOW_NS / 2) {
        if (g->gpm_known) {
            put_signal(r, FL_GPU_SM_ACTIVE_PCT, g->last[FL_GPU_SM_ACTIVE_PCT].value);
            put_signal(r, FL_GPU_DRAM_ACTIVE_PCT, g->last[FL_GPU_DRAM_ACTIVE_PCT].value);
        }
        return;
    }
    if (!fine(r, FL_NVML_CALL(r->h, gpm_get, g->handle, g->gpm[at]))) {
        g->gpm_known = false;
        g->gpm_taken = 0; /* samples before the gap make no window with the next */
        return;
    }
    g->gpm_ns[at] = r->t_ns;
    g->gpm_taken++;
    for (uint64_t back = 1; back < FL_NVML_GPM_KEPT && back <= n; back++) {
        const uint64_t before = (n - back) % FL_NVML_GPM_KEPT;
        if (r->t_ns - g->gpm_ns[before] > GPM_WINDOW_NS) {
            compare_samples(r, g->gpm[before], g->gpm[at]);
            return;
        }
    }
}

fl_status fl_nvml_read(void *self, uint32_t i, uint64_t needs, int64_t t_ns, fl_gpu_sample *sample, fl_diag *d) {
    fl_nvml_host *h = self;
    reading r = {
        .h = h, .g = &h->gpu[i], .needs = needs & fl_readout_offers(&fl_readout_nvml), .t_ns = t_ns, .out = sample};
    *sample = (fl_gpu_sample){0};
    read_power(&r);
    read_state(&r);
    read_profile(&r);
    sample->valid &= r.needs;
    sample->fresh &= r.needs;
    return r.gone ? fl_nvml_failed(h, r.g, "reading", r.gone, d) : FL_OK;
}
