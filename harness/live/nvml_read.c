#include "harness/live/nvml_inside.h"

#define GPM_PERIOD_NS INT64_C(100000000) /* profiling samples must be further apart than that (NVML) */

typedef struct reading {
    fl_nvml_host *h;
    fl_nvml_gpu *g;
    uint64_t needs;
    int64_t t_ns;
    fl_gpu_sample *out;
    int gone; /* code, where the GPU is */
} reading;

static bool wants(const reading *r, int id) { return !r->gone && r->needs >> id & 1; }

static bool fine(reading *r, int code) {
    if (fl_nvml_gone(code))
        r->gone = code;
    return code == FL_NVML_OK;
}

/* How long a sensor needs at least (notes on each GPU's sensors: 100 ms power, 1/6 s utilisation). */
static int64_t refresh_ns(int id) {
    switch (id) {
    case FL_GPU_POWER_W:
    case FL_GPU_POWER_INSTANT_W:
    case FL_GPU_SM_ACTIVE_PCT:
    case FL_GPU_DRAM_ACTIVE_PCT:
        return 100000000;
    case FL_GPU_UTIL_GPU_PCT:
    case FL_GPU_UTIL_MEM_PCT:
        return 166666667;
    case FL_GPU_ENERGY_J:
    case FL_GPU_ENERGY_NS:
        return FL_SEEN_MOVES;
    default:
        return 0;
    }
}

static bool put(reading *r, int id, double value) {
    return fl_seen_put(&r->g->last[id], r->out, id, value, r->t_ns, refresh_ns(id));
}

static void read_power(reading *r) {
    unsigned mw = 0;
    unsigned long long mj = 0;
    if (wants(r, FL_GPU_POWER_W) && fine(r, FL_NVML_CALL(r->h, power, r->g->handle, &mw)))
        put(r, FL_GPU_POWER_W, mw * 1e-3);
    if (wants(r, FL_GPU_POWER_INSTANT_W)) {
        fl_nvml_field f = {.id = FL_NVML_FIELD_POWER_INSTANT};
        if (fine(r, FL_NVML_CALL(r->h, fields, r->g->handle, 1, &f)) && fine(r, f.code))
            put(r, FL_GPU_POWER_INSTANT_W, f.value.u * 1e-3);
    }
    if ((wants(r, FL_GPU_ENERGY_J) || wants(r, FL_GPU_ENERGY_NS)) &&
        fine(r, FL_NVML_CALL(r->h, energy, r->g->handle, &mj))) {
        put(r, FL_GPU_ENERGY_J, (double)mj * 1e-3);
        put(r, FL_GPU_ENERGY_NS, (double)r->g->last[FL_GPU_ENERGY_J].fresh_ns);
    }
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

static void read_state(reading *r) {
    fl_nvml_utilisation u;
    fl_nvml_violation v;
    unsigned long long reasons = 0;
    unsigned mhz = 0;
    double c = 0;
    if ((wants(r, FL_GPU_UTIL_GPU_PCT) || wants(r, FL_GPU_UTIL_MEM_PCT)) &&
        fine(r, FL_NVML_CALL(r->h, utilisation, r->g->handle, &u))) {
        put(r, FL_GPU_UTIL_GPU_PCT, u.gpu);
        put(r, FL_GPU_UTIL_MEM_PCT, u.memory);
    }
    if (wants(r, FL_GPU_SM_MHZ) && fine(r, FL_NVML_CALL(r->h, clock, r->g->handle, FL_NVML_CLOCK_SM, &mhz)))
        put(r, FL_GPU_SM_MHZ, mhz);
    if (wants(r, FL_GPU_MEM_MHZ) && fine(r, FL_NVML_CALL(r->h, clock, r->g->handle, FL_NVML_CLOCK_MEM, &mhz)))
        put(r, FL_GPU_MEM_MHZ, mhz);
    if (wants(r, FL_GPU_TEMP_C) && fine(r, celsius(r->h, r->g, &c)))
        put(r, FL_GPU_TEMP_C, c);
    if (wants(r, FL_GPU_THROTTLE) && fine(r, FL_NVML_CALL(r->h, reasons, r->g->handle, &reasons)))
        put(r, FL_GPU_THROTTLE, throttle_bits(reasons));
    if (wants(r, FL_GPU_POWER_VIOLATION_NS) &&
        fine(r, FL_NVML_CALL(r->h, violation, r->g->handle, FL_NVML_POLICY_POWER, &v)))
        put(r, FL_GPU_POWER_VIOLATION_NS, (double)v.violation_ns);
    if (wants(r, FL_GPU_THERMAL_VIOLATION_NS) &&
        fine(r, FL_NVML_CALL(r->h, violation, r->g->handle, FL_NVML_POLICY_THERMAL, &v)))
        put(r, FL_GPU_THERMAL_VIOLATION_NS, (double)v.violation_ns);
}

/* Profiling counters (Hopper and later): two samples over 100 ms apart make one reading, shown until the next. */
static void read_profile(reading *r) {
    fl_nvml_gpu *g = r->g;
    fl_nvml_host *h = r->h;
    if (g->gpm_off || !(wants(r, FL_GPU_SM_ACTIVE_PCT) || wants(r, FL_GPU_DRAM_ACTIVE_PCT)))
        return;
    if (!g->gpm[0]) {
        fl_nvml_support support = {.version = 1};
        g->gpm_off = FL_NVML_CALL(h, gpm_support, g->handle, &support) || !support.supported || !h->nvml.gpm_metrics ||
                     FL_NVML_CALL(h, gpm_alloc, &g->gpm[0]) || FL_NVML_CALL(h, gpm_alloc, &g->gpm[1]) ||
                     FL_NVML_CALL(h, gpm_get, g->handle, g->gpm[0]);
        g->gpm_ns = r->t_ns;
        return;
    }
    if (r->t_ns - g->gpm_ns > GPM_PERIOD_NS && fine(r, FL_NVML_CALL(h, gpm_get, g->handle, g->gpm[1]))) {
        fl_nvml_metrics m = {.version = 1, .count = 2, .first = g->gpm[0], .second = g->gpm[1]};
        m.metric[0].id = FL_NVML_GPM_SM_UTIL;
        m.metric[1].id = FL_NVML_GPM_DRAM_UTIL;
        g->gpm_known = fine(r, h->nvml.gpm_metrics(&m)) && !m.metric[0].code && !m.metric[1].code;
        if (g->gpm_known) {
            put(r, FL_GPU_SM_ACTIVE_PCT, m.metric[0].value);
            put(r, FL_GPU_DRAM_ACTIVE_PCT, m.metric[1].value);
        }
        g->gpm[0] = m.second;
        g->gpm[1] = m.first;
        g->gpm_ns = r->t_ns;
    } else if (g->gpm_known) {
        put(r, FL_GPU_SM_ACTIVE_PCT, g->last[FL_GPU_SM_ACTIVE_PCT].value);
        put(r, FL_GPU_DRAM_ACTIVE_PCT, g->last[FL_GPU_DRAM_ACTIVE_PCT].value);
    }
}

fl_status fl_nvml_read(void *self, uint32_t i, uint64_t needs, int64_t t_ns, fl_gpu_sample *sample, fl_diag *d) {
    fl_nvml_host *h = self;
    reading r = {.h = h, .g = &h->gpu[i], .needs = needs, .t_ns = t_ns, .out = sample};
    *sample = (fl_gpu_sample){0};
    read_power(&r);
    read_state(&r);
    read_profile(&r);
    sample->valid &= needs;
    sample->fresh &= needs;
    return r.gone ? fl_nvml_failed(h, r.g, "reading", r.gone, d) : FL_OK;
}
