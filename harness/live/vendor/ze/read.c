/* Reads signals, sets controls and restores them through Level Zero. */
#include "harness/live/vendor/ze/inside.h"

#include "harness/live/vendor/vendor.h"
#include "harness/live/vendor/ze/ze.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* ---- sets, priors and restores ---- */

/* Keys of the record: a range can be read, so the earlier one is restored exactly. kHz; -1 = no limit was in effect. */
static const char KEY_MIN[] = "%s_min_khz:%u", KEY_MAX[] = "%s_max_khz:%u", KEY_ON[] = "sustained_enabled";

enum { LIMITS_MAX = 16 };

/* ---- clock ranges ---- */

static fl_status range_off(const fl_ze_gpu *g, const char *name, double set, double now, double step, fl_diag *d) {
    if (set < 0 || fabs(set - now) <= step) /* after -1 the factory's value reads back */
        return FL_OK;
    return fl_error(d, FL_HARDWARE, "GPU %u: %s clock reads back as %g MHz after %g MHz was set", g->index, name, now,
                    set);
}

/* To one domain; FL_IO only where nothing has changed at all. */
static fl_status set_range(const fl_ze_host *h, const fl_ze_gpu *g, fl_ze_part part, const char *name, double step,
                           fl_ze_range range, bool first, fl_diag *d) {
    char what[64];
    fl_ze_range now = {0};
    fl_ze_code code = FL_ZE_CALL(&h->ze, set_clock_range, part, &range);
    snprintf(what, sizeof what, "%s the %s clock", range.max < 0 ? "unlocking" : "locking", name);
    if (code) {
        fl_status s = fl_ze_failed(g, what, code, d);
        const bool changed = s == FL_IO && !first;
        if (changed && d)
            d->status = FL_HARDWARE;
        return changed ? FL_HARDWARE : s;
    }
    if ((code = FL_ZE_CALL(&h->ze, clock_range, part, &now)))
        return fl_error(d, FL_HARDWARE, "GPU %u: reading the %s clock's range back: %s", g->index, name,
                        fl_ze_reason(code));
    fl_status s = range_off(g, name, range.min, now.min, step, d);
    return s ? s : range_off(g, name, range.max, now.max, step, d);
}

static int64_t prior_of(const fl_record *r, const char *key) {
    const fl_prior *prior = fl_record_find(r, key);
    return prior ? prior->value : INT64_MIN;
}

static double mhz_of(int64_t khz) { return khz < 0 ? -1 : (double)khz / 1e3; }

static void keys_of(const char *name, uint32_t i, char *low, char *high, size_t size) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(low, size, KEY_MIN, name, i);
    snprintf(high, size, KEY_MAX, name, i);
#pragma GCC diagnostic pop
}

/* The earlier range, -1 for a domain that is not in the record. */
static fl_ze_range prior_range(const fl_record *r, const char *name, uint32_t i) {
    char low[32], high[32];
    keys_of(name, i, low, high, sizeof low);
    return (fl_ze_range){mhz_of(prior_of(r, low)), mhz_of(prior_of(r, high))};
}

static fl_status set_clock(const fl_ze_host *h, const fl_ze_gpu *g, bool sm, double mhz, const fl_record *prior,
                           fl_diag *d) {
    const fl_ze_parts *parts = sm ? &g->sm : &g->mem;
    const char *name = sm ? "sm" : "mem";
    fl_status first = parts->count ? FL_OK : fl_ze_failed(g, "setting a clock", FL_ZE_UNSUPPORTED, d);
    for (uint32_t i = 0; i < parts->count; i++) {
        const fl_ze_range range = mhz == FL_DEFAULT ? prior_range(prior, name, i) : (fl_ze_range){mhz, mhz};
        fl_status s =
            set_range(h, g, parts->part[i], name, sm ? g->sm_step : g->mem_step, range, i == 0, first ? NULL : d);
        first = first ? first : s;
        if (first == FL_IO)
            break;
    }
    return first;
}

/* ---- the sustained power limit ---- */

typedef struct limit {
    int32_t mw;
    bool enabled;
} limit;

/* Uses all descriptors, where the loader has them: set takes what get returned. *at: the sustained one. */
static fl_ze_code get_all(const fl_ze_host *h, const fl_ze_gpu *g, fl_ze_limit *all, uint32_t *count, uint32_t *at) {
    *count = LIMITS_MAX;
    for (uint32_t i = 0; i < LIMITS_MAX; i++)
        all[i] = (fl_ze_limit){.stype = FL_ZE_S_LIMIT};
    fl_ze_code code = h->ze.set_limits_ext ? FL_ZE_CALL(&h->ze, limits_ext, g->power, count, all) : FL_ZE_UNSUPPORTED;
    if (*count > LIMITS_MAX) /* the number that exists, not the number that was returned */
        *count = LIMITS_MAX;
    for (*at = 0; !code && *at < *count; (*at)++)
        if (all[*at].level == FL_ZE_SUSTAINED && all[*at].unit == FL_ZE_UNIT_POWER && !all[*at].limit_locked)
            return FL_ZE_OK;
    return code ? code : FL_ZE_UNSUPPORTED;
}

static fl_ze_code get_limit(const fl_ze_host *h, const fl_ze_gpu *g, limit *out) {
    fl_ze_limit all[LIMITS_MAX];
    fl_ze_sustained old = {0};
    uint32_t count, at;
    if (!g->power)
        return FL_ZE_UNSUPPORTED;
    fl_ze_code code = get_all(h, g, all, &count, &at);
    if (!code)
        *out = (limit){all[at].limit, all[at].enabled};
    if (code == FL_ZE_UNSUPPORTED && !(code = FL_ZE_CALL(&h->ze, limits, g->power, &old, NULL, NULL)))
        *out = (limit){old.mw, old.enabled};
    return code;
}

static fl_ze_code put_limit(const fl_ze_host *h, const fl_ze_gpu *g, limit to) {
    fl_ze_limit all[LIMITS_MAX];
    fl_ze_sustained old = {0};
    uint32_t count, at;
    fl_ze_code code = get_all(h, g, all, &count, &at);
    if (!code) {
        all[at].limit = to.mw;
        all[at].enabled = all[at].enabled_locked ? all[at].enabled : to.enabled;
        return h->ze.set_limits_ext(g->power, &count, all);
    }
    if (code == FL_ZE_UNSUPPORTED && !(code = FL_ZE_CALL(&h->ze, limits, g->power, &old, NULL, NULL))) {
        old.mw = to.mw;
        old.enabled = to.enabled;
        code = FL_ZE_CALL(&h->ze, set_limits, g->power, &old, NULL, NULL);
    }
    return code;
}

/* off_w: so far off it may read back. */
static fl_status set_limit(const fl_ze_host *h, const fl_ze_gpu *g, limit to, double off_w, fl_diag *d) {
    limit now = {0};
    fl_ze_code code = g->power ? put_limit(h, g, to) : FL_ZE_UNSUPPORTED;
    if (code)
        return fl_ze_failed(g, "setting the power limit", code, d);
    if ((code = get_limit(h, g, &now)))
        return fl_error(d, FL_HARDWARE, "GPU %u: reading the power limit back: %s", g->index, fl_ze_reason(code));
    if (fabs((double)now.mw - to.mw) > off_w * 1e3 && to.enabled)
        return fl_error(d, FL_HARDWARE, "GPU %u: power limit reads back as %d mW after %d mW was set", g->index, now.mw,
                        to.mw);
    return FL_OK;
}

double fl_ze_limit_w(void *self, uint32_t i) {
    const fl_ze_host *h = self;
    limit now;
    return get_limit(h, &h->gpu[i], &now) ? (double)NAN : now.mw / 1e3;
}

/* ---- calls of the back end ---- */

static bool prior_limit(const fl_record *r, limit *to) {
    const int64_t mw = prior_of(r, FL_PRIOR_LIMIT_MW), on = prior_of(r, KEY_ON);
    *to = (limit){(int32_t)mw, on != 0};
    return mw >= 0 && mw <= INT32_MAX;
}

fl_status fl_ze_set(void *self, uint32_t i, int control, double value, const fl_record *prior, fl_diag *d) {
    const fl_ze_host *h = self;
    const fl_ze_gpu *g = &h->gpu[i];
    limit to = {(int32_t)lrint(value * 1e3), true};
    switch (control) {
    case FL_SET_SM_MHZ:
    case FL_SET_MEM_MHZ:
        return set_clock(h, g, control == FL_SET_SM_MHZ, value, prior, d);
    case FL_SET_POWER_LIMIT_W:
        if (value == FL_DEFAULT && !prior_limit(prior, &to)) {
            if (g->limits.standard_mw <= 0)
                return fl_ze_failed(g, "reading the default power limit", FL_ZE_UNSUPPORTED, d);
            to = (limit){g->limits.standard_mw, true};
        }
        return set_limit(h, g, to, value == FL_DEFAULT ? 0 : FL_LIMIT_OFF_W, d);
    default:
        return FL_OK; /* activity records: the collector's */
    }
}

static fl_status record_clock(const fl_ze_host *h, const fl_ze_gpu *g, bool sm, fl_record *r, fl_diag *d) {
    const fl_ze_parts *parts = sm ? &g->sm : &g->mem;
    fl_status s = FL_OK;
    for (uint32_t i = 0; !s && i < parts->count; i++) {
        char low[32], high[32];
        fl_ze_range range = {-1, -1};
        const fl_ze_code code = FL_ZE_CALL(&h->ze, clock_range, parts->part[i], &range);
        if (code)
            return fl_ze_failed(g, "reading a clock's range", code, d);
        keys_of(sm ? "sm" : "mem", i, low, high, sizeof low);
        s = fl_record_add(r, low, range.min < 0 ? -1 : llrint(range.min * 1e3), d);
        if (!s)
            s = fl_record_add(r, high, range.max < 0 ? -1 : llrint(range.max * 1e3), d);
    }
    return s;
}

fl_status fl_ze_prior(void *self, uint32_t i, uint64_t drives, fl_record *r, fl_diag *d) {
    const fl_ze_host *h = self;
    const fl_ze_gpu *g = &h->gpu[i];
    fl_status s = FL_OK;
    snprintf(r->unit, sizeof r->unit, "%s", g->unit);
    if (drives & FL_BIT(FL_SET_SM_MHZ))
        s = record_clock(h, g, true, r, d);
    if (!s && drives & FL_BIT(FL_SET_MEM_MHZ))
        s = record_clock(h, g, false, r, d);
    if (!s && drives & FL_BIT(FL_SET_POWER_LIMIT_W)) {
        limit now = {0};
        const fl_ze_code code = get_limit(h, g, &now);
        s = code ? fl_ze_failed(g, "reading the power limit", code, d) : fl_record_add(r, FL_PRIOR_LIMIT_MW, now.mw, d);
        if (!s)
            s = fl_record_add(r, KEY_ON, now.enabled, d);
    }
    return s;
}

static bool recorded(const fl_record *r, const char *name) {
    char low[32], high[32];
    keys_of(name, 0, low, high, sizeof low);
    return prior_of(r, low) != INT64_MIN;
}

/* A control that the board does not support cannot have been set either. */
fl_status fl_ze_restore(void *self, uint32_t i, const fl_record *r, fl_diag *d) {
    const fl_ze_host *h = self;
    const fl_ze_gpu *g = &h->gpu[i];
    limit to;
    fl_status first = FL_OK;
    if (recorded(r, "sm"))
        first = set_clock(h, g, true, FL_DEFAULT, r, d);
    if (recorded(r, "mem")) {
        fl_status s = set_clock(h, g, false, FL_DEFAULT, r, first ? NULL : d);
        first = first ? first : s;
    }
    if (prior_limit(r, &to)) {
        fl_status s = set_limit(h, g, to, 0, first ? NULL : d);
        first = first ? first : s;
    }
    return first;
}

/* ---- signals ---- */

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
