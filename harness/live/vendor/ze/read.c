#include "harness/live/vendor/ze/ze.h"
#include "harness/live/vendor/ze/inside.h"

/* Energy is read whenever the host asks. Where the counter did not move, the last power remains valid. */
#define REFRESH_NS INT64_C(100000000)

typedef struct reading {
    fl_ze_host *h;
    fl_ze_gpu *g;
    uint64_t needs;
    int64_t t_ns;
    fl_gpu_sample *out;
    fl_ze_code gone;
} reading;

static bool wants(const reading *r, int id) { return !r->gone && r->needs >> id & 1; }

static bool fine(reading *r, fl_ze_code code) {
    if (fl_ze_gone(code))
        r->gone = code;
    return code == FL_ZE_OK;
}

static void put_signal(reading *r, int id, double value, int64_t refresh_ns) {
    fl_seen_put(&r->g->last[id], r->out, id, value, r->t_ns, refresh_ns);
}

/* Sysman has no power reading: power is the difference of the energy counter over the counter's own times, uJ / us = W.
 */
static void read_power(reading *r) {
    fl_ze_gpu *g = r->g;
    fl_ze_energy now, last = g->energy;
    if (!g->power || !(wants(r, FL_GPU_POWER_W) || wants(r, FL_GPU_ENERGY_J) || wants(r, FL_GPU_ENERGY_NS)))
        return;
    if (!fine(r, FL_ZE_CALL(&r->h->ze, energy, g->power, &now)))
        return;
    if (!g->energy_known)
        g->energy_origin_ns = r->t_ns - (int64_t)(now.us * 1000);
    put_signal(r, FL_GPU_ENERGY_J, (double)now.uj / 1e6, FL_SEEN_MOVES);
    put_signal(r, FL_GPU_ENERGY_NS, (double)(g->energy_origin_ns + (int64_t)(now.us * 1000)), FL_SEEN_MOVES);
    if (g->energy_known && now.us > last.us && now.uj >= last.uj)
        put_signal(r, FL_GPU_POWER_W, (double)(now.uj - last.uj) / (double)(now.us - last.us), 0);
    else if (g->energy_known && g->last[FL_GPU_POWER_W].known && now.us == last.us)
        put_signal(r, FL_GPU_POWER_W, g->last[FL_GPU_POWER_W].value, REFRESH_NS);
    g->energy = now;
    g->energy_known = true;
}

/* Means over the engines of a group: active time, and the time at which it was taken. */
static bool activity(reading *r, const fl_ze_parts *parts, double *active_us, double *at_us) {
    *active_us = *at_us = 0;
    for (uint32_t i = 0; i < parts->count; i++) {
        fl_ze_activity a;
        if (!fine(r, FL_ZE_CALL(&r->h->ze, activity, parts->part[i], &a)))
            return false;
        *active_us += (double)a.active_us / parts->count;
        *at_us += (double)a.us / parts->count;
    }
    return parts->count > 0;
}

static void read_engines(reading *r) {
    fl_ze_gpu *g = r->g;
    double active, at;
    if ((wants(r, FL_GPU_UTIL_GPU_PCT) || wants(r, FL_GPU_COMPUTE_NS)) && activity(r, &g->compute, &active, &at)) {
        put_signal(r, FL_GPU_COMPUTE_NS, active * 1e3, FL_SEEN_MOVES);
        if (g->busy_known && at > g->busy_at_us && active >= g->busy_us) {
            const double share = (active - g->busy_us) / (at - g->busy_at_us);
            put_signal(r, FL_GPU_UTIL_GPU_PCT, share < 1 ? 100 * share : 100, 0);
        } else if (g->busy_known && at == g->busy_at_us && g->last[FL_GPU_UTIL_GPU_PCT].known) {
            put_signal(r, FL_GPU_UTIL_GPU_PCT, g->last[FL_GPU_UTIL_GPU_PCT].value, REFRESH_NS);
        }
        g->busy_known = true;
        g->busy_us = active;
        g->busy_at_us = at;
    }
    if (wants(r, FL_GPU_COPY_NS) && activity(r, &g->copy, &active, &at))
        put_signal(r, FL_GPU_COPY_NS, active * 1e3, FL_SEEN_MOVES);
}

static double throttle_bits(uint32_t held) {
    const uint32_t power = FL_ZE_HELD_POWER | FL_ZE_HELD_BURST | FL_ZE_HELD_CURRENT | FL_ZE_HELD_SUPPLY;
    return (held & power ? FL_THROTTLE_POWER : 0) + (held & FL_ZE_HELD_HEAT ? FL_THROTTLE_THERMAL : 0) +
           (held & FL_ZE_HELD_HARDWARE ? FL_THROTTLE_OTHER : 0);
}

static void read_clocks(reading *r, const fl_ze_parts *parts, int id, int reasons_id) {
    double sum = 0;
    uint32_t known = 0, held = 0, asked = 0;
    if (!wants(r, id) && !(reasons_id >= 0 && wants(r, reasons_id)))
        return;
    for (uint32_t i = 0; i < parts->count; i++) {
        fl_ze_state s = {.stype = FL_ZE_S_FREQUENCY_STATE};
        if (!fine(r, FL_ZE_CALL(&r->h->ze, clock_state, parts->part[i], &s)))
            return;
        asked++;
        held |= s.held;
        sum += s.actual >= 0 ? s.actual : 0;
        known += s.actual >= 0;
    }
    if (known)
        put_signal(r, id, sum / known, 0);
    if (asked && reasons_id >= 0)
        put_signal(r, reasons_id, throttle_bits(held), 0);
}

static void read_memory(reading *r) {
    double bytes = 0;
    if (!wants(r, FL_GPU_DRAM_BYTES))
        return;
    for (uint32_t i = 0; i < r->g->memory.count; i++) {
        fl_ze_bandwidth b;
        if (!fine(r, FL_ZE_CALL(&r->h->ze, bandwidth, r->g->memory.part[i], &b)))
            return;
        bytes += (double)b.read + (double)b.write;
    }
    if (r->g->memory.count)
        put_signal(r, FL_GPU_DRAM_BYTES, bytes, FL_SEEN_MOVES);
}

fl_status fl_ze_read(void *self, uint32_t i, uint64_t needs, int64_t t_ns, fl_gpu_sample *sample, fl_diag *d) {
    fl_ze_host *h = self;
    reading r = {.h = h, .g = &h->gpu[i], .needs = needs & FL_ZE_READS, .t_ns = t_ns, .out = sample};
    double celsius = 0;
    *sample = (fl_gpu_sample){0};
    read_power(&r);
    read_engines(&r);
    read_clocks(&r, &r.g->sm, FL_GPU_SM_MHZ, FL_GPU_THROTTLE);
    read_clocks(&r, &r.g->mem, FL_GPU_MEM_MHZ, -1);
    read_memory(&r);
    if (wants(&r, FL_GPU_TEMP_C) && r.g->heat && fine(&r, FL_ZE_CALL(&h->ze, temperature, r.g->heat, &celsius)))
        put_signal(&r, FL_GPU_TEMP_C, celsius, 0);
    sample->valid &= r.needs;
    sample->fresh &= r.needs;
    return r.gone ? fl_ze_failed(r.g, "reading", r.gone, d) : FL_OK;
}
