/* Reads signals, sets controls and restores them through ROCm SMI. */
#include "harness/live/vendor/rsmi/inside.h"

#include "harness/live/vendor/rsmi/rsmi.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* ---- sets, priors and restores ---- */

/* Keys of the record. The clocks that were allowed before under a manual level cannot be read (-1): restoring allows
 * all clocks. */
static const char LEVEL[] = "perf_level", SM_LOW[] = "sm_min_mhz", SM_HIGH[] = "sm_max_mhz", CAP[] = "power_cap_uw",
                  SM_SET[] = "sm_allowed", MEM_SET[] = "mem_allowed";

static const char *clock_name(int clock) { return clock == FL_RSMI_CLOCK_SM ? "SM" : "memory"; }

/* A call after the first of several may find that something has already changed. */
static fl_status later(fl_status s, fl_diag *d) {
    if (s == FL_IO && d)
        d->status = FL_HARDWARE;
    return s == FL_IO ? FL_HARDWARE : s;
}

static fl_status mismatch(const fl_rsmi_gpu *g, const char *what, double now, double set, fl_diag *d) {
    return fl_error(d, FL_HARDWARE, "GPU %u: %s reads back as %.10g after %.10g was set", g->index, what, now, set);
}

/* ---- levels and sets of allowed clocks ---- */

static fl_status set_level(const fl_rsmi_host *h, const fl_rsmi_gpu *g, int level, fl_diag *d) {
    int now = 0;
    fl_rsmi_code code = FL_RSMI_CALL(&h->rsmi, set_level, g->index, level);
    if (code)
        return fl_rsmi_failed(g, "setting the performance level", code, d);
    code = FL_RSMI_CALL(&h->rsmi, level, g->index, &now);
    if (code)
        return later(fl_rsmi_failed(g, "reading the performance level back", code, d), d);
    return now == level ? FL_OK : mismatch(g, "performance level", now, level, d);
}

/* mhz FL_DEFAULT: all of them. The library switches to the manual level by itself. */
static fl_status allow_clocks(const fl_rsmi_host *h, const fl_rsmi_gpu *g, int clock, double mhz, fl_diag *d) {
    fl_rsmi_clocks c = {0};
    uint32_t count, current;
    const uint64_t *hz;
    uint64_t mask = 0;
    char what[64];
    snprintf(what, sizeof what, "%s the %s clock", mhz == FL_DEFAULT ? "unlocking" : "locking", clock_name(clock));
    fl_rsmi_code code = FL_RSMI_CALL(&h->rsmi, clocks, g->index, clock, &c);
    if (!code && !fl_rsmi_clocks_of(&c, &count, &current, &hz))
        code = FL_RSMI_NOT_SUPPORTED;
    for (uint32_t i = 0; !code && i < count; i++)
        if (mhz == FL_DEFAULT || lrint(fl_rsmi_mhz(hz[i])) == lrint(mhz))
            mask |= UINT64_C(1) << i;
    if (!code && !mask) /* the running clock may show its real value, while the ladder was read earlier */
        return fl_error(d, FL_HARDWARE, "GPU %u: %s: %g MHz is no longer listed", g->index, what, mhz);
    if (!code)
        code = FL_RSMI_CALL(&h->rsmi, set_clocks, g->index, clock, mask);
    return code ? fl_rsmi_failed(g, what, code, d) : FL_OK;
}

/* ---- the range of the SM clock ---- */

static fl_status set_range(const fl_rsmi_host *h, const fl_rsmi_gpu *g, uint64_t low, uint64_t high, fl_diag *d) {
    fl_rsmi_overdrive now = {0};
    fl_rsmi_code code = FL_RSMI_CALL(&h->rsmi, set_range, g->index, low, high, FL_RSMI_CLOCK_SM);
    if (code)
        return fl_rsmi_failed(g, low == high ? "locking the SM clock" : "unlocking the SM clock", code, d);
    if ((code = FL_RSMI_CALL(&h->rsmi, overdrive, g->index, &now)))
        return later(fl_rsmi_failed(g, "reading the SM clock's range back", code, d), d);
    const double at[2] = {fl_rsmi_mhz(now.sm.low), fl_rsmi_mhz(now.sm.high)};
    if (fabs(at[0] - (double)low) > 1)
        return mismatch(g, "lowest SM clock", at[0], (double)low, d);
    return fabs(at[1] - (double)high) > 1 ? mismatch(g, "highest SM clock", at[1], (double)high, d) : FL_OK;
}

/* ---- the power cap ---- */

/* off_w: tolerance of the value read back. */
static fl_status set_cap(const fl_rsmi_host *h, const fl_rsmi_gpu *g, uint64_t uw, double off_w, fl_diag *d) {
    uint64_t now = 0;
    fl_rsmi_code code = FL_RSMI_CALL(&h->rsmi, set_cap, g->index, 0, uw);
    if (code)
        return fl_rsmi_failed(g, "setting the power limit", code, d);
    if ((code = FL_RSMI_CALL(&h->rsmi, cap, g->index, 0, &now)))
        return later(fl_rsmi_failed(g, "reading the power limit back", code, d), d);
    const bool same = now / 1000000 == uw / 1000000 || /* the driver stores whole watts */
                      fabs((double)now - (double)uw) <= off_w * 1e6;
    return same ? FL_OK : mismatch(g, "power limit in uW", (double)now, (double)uw, d);
}

/* ---- calls of the back end ---- */

static fl_status set_clock(fl_rsmi_host *h, fl_rsmi_gpu *g, bool sm, double mhz, const fl_record *prior, fl_diag *d) {
    const fl_prior *low = fl_record_find(prior, SM_LOW), *high = fl_record_find(prior, SM_HIGH),
                   *level = fl_record_find(prior, LEVEL);
    const bool back = mhz == FL_DEFAULT;
    if (sm && g->ranged && !back)
        return set_range(h, g, (uint64_t)lrint(mhz), (uint64_t)lrint(mhz), d);
    if (sm && g->ranged)
        return set_range(h, g, (uint64_t)(low ? low->value : g->sm[0]),
                         (uint64_t)(high ? high->value : g->sm[g->sm_count - 1]), d);
    fl_status s = allow_clocks(h, g, sm ? FL_RSMI_CLOCK_SM : FL_RSMI_CLOCK_MEM, mhz, d);
    if (s)
        return s;
    g->held[!sm] = !back;
    if (back && level && !g->held[sm]) /* nothing is held any more */
        return later(set_level(h, g, (int)level->value, d), d);
    return FL_OK;
}

fl_status fl_rsmi_set(void *self, uint32_t i, int control, double value, const fl_record *prior, fl_diag *d) {
    fl_rsmi_host *h = self;
    fl_rsmi_gpu *g = &h->gpu[i];
    uint64_t uw = (uint64_t)llrint(fmax(value, 0) * 1e6);
    switch (control) {
    case FL_SET_SM_MHZ:
    case FL_SET_MEM_MHZ:
        return set_clock(h, g, control == FL_SET_SM_MHZ, value, prior, d);
    case FL_SET_POWER_LIMIT_W:
        if (value == FL_DEFAULT && fl_record_find(prior, CAP)) {
            uw = (uint64_t)fl_record_find(prior, CAP)->value;
        } else if (value == FL_DEFAULT) {
            const fl_rsmi_code code = FL_RSMI_CALL(&h->rsmi, cap_default, g->index, &uw);
            if (code)
                return fl_rsmi_failed(g, "reading the default power limit", code, d);
        }
        return set_cap(h, g, uw, value == FL_DEFAULT ? 0 : FL_LIMIT_OFF_W, d);
    default:
        return FL_OK; /* the collector handles activity records */
    }
}

static fl_status record_clocks(const fl_rsmi_host *h, const fl_rsmi_gpu *g, uint64_t drives, fl_record *r, fl_diag *d) {
    const bool sm = drives & FL_BIT(FL_SET_SM_MHZ), mem = drives & FL_BIT(FL_SET_MEM_MHZ);
    fl_rsmi_overdrive o = {0};
    int level = 0;
    fl_rsmi_code code = FL_RSMI_CALL(&h->rsmi, level, g->index, &level);
    if (!code && sm && g->ranged)
        code = FL_RSMI_CALL(&h->rsmi, overdrive, g->index, &o);
    if (code)
        return fl_rsmi_failed(g, "reading what holds its clocks", code, d);
    fl_status s = fl_record_add(r, LEVEL, level, d);
    if (!s && sm && g->ranged)
        s = fl_record_add(r, SM_LOW, lrint(fl_rsmi_mhz(o.sm.low)), d);
    if (!s && sm)
        s = g->ranged ? fl_record_add(r, SM_HIGH, lrint(fl_rsmi_mhz(o.sm.high)), d) : fl_record_add(r, SM_SET, -1, d);
    if (!s && mem)
        s = fl_record_add(r, MEM_SET, -1, d);
    return s;
}

fl_status fl_rsmi_prior(void *self, uint32_t i, uint64_t drives, fl_record *r, fl_diag *d) {
    const fl_rsmi_host *h = self;
    const fl_rsmi_gpu *g = &h->gpu[i];
    fl_status s = FL_OK;
    snprintf(r->unit, sizeof r->unit, "%s", g->unit);
    if (drives & (FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_MEM_MHZ)))
        s = record_clocks(h, g, drives, r, d);
    if (!s && drives & FL_BIT(FL_SET_POWER_LIMIT_W)) {
        uint64_t uw = 0;
        const fl_rsmi_code code = FL_RSMI_CALL(&h->rsmi, cap, g->index, 0, &uw);
        s = code ? fl_rsmi_failed(g, "reading the power limit", code, d) : fl_record_add(r, CAP, (int64_t)uw, d);
    }
    return s;
}

/* The level comes last, because a range or a set switches it to manual. Sets are opened whatever the level was: a level
 * other than manual may only hide them. */
fl_status fl_rsmi_restore(void *self, uint32_t i, const fl_record *r, fl_diag *d) {
    const fl_rsmi_host *h = self;
    const fl_rsmi_gpu *g = &h->gpu[i];
    const fl_prior *level = fl_record_find(r, LEVEL), *low = fl_record_find(r, SM_LOW),
                   *high = fl_record_find(r, SM_HIGH), *cap = fl_record_find(r, CAP);
    fl_status step[5] = {FL_OK}, first = FL_OK;
    fl_diag why[5] = {{0}};
    if (low && high)
        step[0] = set_range(h, g, (uint64_t)low->value, (uint64_t)high->value, &why[0]);
    if (fl_record_find(r, SM_SET))
        step[1] = allow_clocks(h, g, FL_RSMI_CLOCK_SM, FL_DEFAULT, &why[1]);
    if (fl_record_find(r, MEM_SET))
        step[2] = allow_clocks(h, g, FL_RSMI_CLOCK_MEM, FL_DEFAULT, &why[2]);
    if (level)
        step[3] = set_level(h, g, (int)level->value, &why[3]);
    if (cap)
        step[4] = set_cap(h, g, (uint64_t)cap->value, 0, &why[4]);
    for (int k = 0; k < 5; k++)
        if (step[k] && !first) {
            first = step[k];
            if (d)
                *d = why[k];
        }
    return first;
}

/* ---- signals ---- */

#define POWER_REFRESH_NS INT64_C(1000000)  /* refresh of the firmware's own average (assumed) */
#define BUSY_REFRESH_NS INT64_C(100000000) /* refresh of its activity monitor (assumed) */

typedef struct reading {
    fl_rsmi_host *h;
    fl_rsmi_gpu *g;
    uint64_t needs;
    int64_t t_ns;
    fl_gpu_sample *out;
    uint32_t asked, answered;
    fl_rsmi_code last; /* the last failure */
} reading;

static bool wants(const reading *r, int id) { return r->needs >> id & 1; }

static bool fine(reading *r, fl_rsmi_code code) {
    r->asked++;
    r->answered += code == FL_RSMI_OK;
    r->last = code ? code : r->last;
    return code == FL_RSMI_OK;
}

static void put_signal(reading *r, int id, double value, int64_t refresh_ns) {
    fl_seen_put(&r->g->last[id], r->out, id, value, r->t_ns, refresh_ns);
}

static void read_power(reading *r) {
    const fl_rsmi *lib = &r->h->rsmi;
    fl_rsmi_gpu *g = r->g;
    uint64_t uw = 0, count = 0, ns = 0;
    float uj_each = 0;
    int type = 0;
    if (wants(r, FL_GPU_POWER_W) && ((lib->power && fine(r, lib->power(g->index, &uw, &type))) ||
                                     fine(r, FL_RSMI_CALL(lib, power_average, g->index, 0, &uw))))
        put_signal(r, FL_GPU_POWER_W, (double)uw / 1e6, POWER_REFRESH_NS);
    if (!(wants(r, FL_GPU_ENERGY_J) || wants(r, FL_GPU_ENERGY_NS)) ||
        !fine(r, FL_RSMI_CALL(lib, energy, g->index, &count, &uj_each, &ns)))
        return;
    if (!g->energy_known) {
        g->energy_known = true;
        g->energy_ns = ns;
        g->energy_origin_ns = r->t_ns;
    }
    put_signal(r, FL_GPU_ENERGY_J, (double)count * (double)uj_each / 1e6, FL_SEEN_MOVES);
    put_signal(r, FL_GPU_ENERGY_NS, (double)(g->energy_origin_ns + (int64_t)(ns - g->energy_ns)), FL_SEEN_MOVES);
}

static void read_clock(reading *r, int clock, int id) {
    fl_rsmi_clocks c = {0};
    uint32_t count, current;
    const uint64_t *hz;
    if (wants(r, id) && fine(r, FL_RSMI_CALL(&r->h->rsmi, clocks, r->g->index, clock, &c)) &&
        fl_rsmi_clocks_of(&c, &count, &current, &hz) && current < count)
        put_signal(r, id, fl_rsmi_mhz(hz[current]), 0);
}

static void read_state(reading *r) {
    const fl_rsmi *lib = &r->h->rsmi;
    uint32_t percent = 0;
    int64_t millidegrees = 0;
    if (wants(r, FL_GPU_UTIL_GPU_PCT) && fine(r, FL_RSMI_CALL(lib, busy, r->g->index, &percent)))
        put_signal(r, FL_GPU_UTIL_GPU_PCT, percent, BUSY_REFRESH_NS);
    if (wants(r, FL_GPU_UTIL_MEM_PCT) && fine(r, FL_RSMI_CALL(lib, mem_busy, r->g->index, &percent)))
        put_signal(r, FL_GPU_UTIL_MEM_PCT, percent, BUSY_REFRESH_NS);
    if (wants(r, FL_GPU_TEMP_C) && /* boards for servers have no edge sensor */
        (fine(r, FL_RSMI_CALL(lib, heat, r->g->index, FL_RSMI_HEAT_EDGE, FL_RSMI_HEAT_NOW, &millidegrees)) ||
         fine(r, FL_RSMI_CALL(lib, heat, r->g->index, FL_RSMI_HEAT_JUNCTION, FL_RSMI_HEAT_NOW, &millidegrees))))
        put_signal(r, FL_GPU_TEMP_C, (double)millidegrees / 1e3, 0);
}

/* The library has no code for a lost GPU: all of its files are gone or unreadable. */
fl_status fl_rsmi_read(void *self, uint32_t i, uint64_t needs, int64_t t_ns, fl_gpu_sample *sample, fl_diag *d) {
    fl_rsmi_host *h = self;
    reading r = {.h = h, .g = &h->gpu[i], .needs = needs & FL_RSMI_READS, .t_ns = t_ns, .out = sample};
    *sample = (fl_gpu_sample){0};
    read_power(&r);
    read_state(&r);
    read_clock(&r, FL_RSMI_CLOCK_SM, FL_GPU_SM_MHZ);
    read_clock(&r, FL_RSMI_CLOCK_MEM, FL_GPU_MEM_MHZ);
    sample->valid &= r.needs;
    sample->fresh &= r.needs;
    if (r.asked && !r.answered && (r.g->answered || r.last == FL_RSMI_INIT))
        return fl_error(d, FL_HARDWARE, "GPU %u: GPU is lost: nothing can be read any more: %s", r.g->index,
                        fl_rsmi_reason(r.last));
    r.g->answered = r.g->answered || r.answered;
    return FL_OK;
}
