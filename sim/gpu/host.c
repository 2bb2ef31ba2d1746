/* The host CPU (states, boost, limits, energy) and the sensors of the node. */
#include "sim/gpu/inside.h"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- the host CPU ---- */

static fl_status make_rows(fl_cpu *c, const fl_host_load *loads, fl_diag *d) {
    const double bus = c->host->apu ? c->host->peak_bytes_per_s * c->host->bus_max : 0;
    const fl_host_load standard = fl_cpu_default_load(c->spec);
    for (uint32_t s = 0; s < c->state_count; s++) {
        fl_model_status m = fl_cpu_state_make(c->spec, s, &c->state[s]);
        for (uint32_t k = 0; m == FL_MODEL_OK && k < c->load_count; k++)
            m = fl_cpu_row_make(c->spec, k ? &loads[k - 1] : &standard, s, bus, &c->row[s * c->load_count + k]);
        if (m != FL_MODEL_OK)
            return fl_error(d, FL_MODEL_FAULT, "%s: CPU state %u: %s", c->host->name, s, fl_model_text(m));
    }
    return FL_OK;
}

/* The state that request, permission and limits leave. Boost is entered from the highest software state only. */
static uint32_t target(const fl_cpu *c) {
    uint32_t s = c->asked;
    if (c->boost && s + 1 == c->soft_count)
        s = c->state_count - 1;
    return s < c->ceiling ? s : c->ceiling;
}

static uint32_t default_state(const fl_cpu *c) {
    const int at = fl_ladder_index(c->spec->mhz, c->spec->count, c->spec->default_mhz);
    return at < 0 ? c->soft_count - 1 : (uint32_t)at;
}

static bool watches(const fl_cpu *c) {
    return c->spec->period_ns > 0 && (c->limit_mw > 0 || (c->host->apu && c->host->budget_w > 0));
}

fl_status fl_cpu_open(fl_cpu *c, const fl_host_spec *host, double ref_mhz, const fl_host_load *loads,
                      uint32_t load_count, fl_diag *d) {
    *c = (fl_cpu){.own = host->cpu, .host = host, .load_count = load_count, .boost = true};
    const fl_cpu_spec *spec = c->spec = &c->own;
    if (ref_mhz > 0)
        c->own.ref_mhz = ref_mhz;
    c->soft_count = spec->count;
    c->state_count = fl_cpu_state_count(spec);
    c->ceiling = c->state_count - 1;
    c->state = calloc(c->state_count, sizeof *c->state);
    c->row = calloc((size_t)c->state_count * load_count, sizeof *c->row);
    c->slot = calloc(c->state_count, sizeof *c->slot);
    bool ok = c->state && c->row && c->slot;
    for (uint32_t s = 0; ok && s < c->state_count; s++) {
        c->slot[s].time_ps = calloc(load_count, sizeof(int64_t));
        c->slot[s].work_ps = calloc(load_count, sizeof(int64_t));
        ok = c->slot[s].time_ps && c->slot[s].work_ps;
    }
    const fl_status status = ok ? make_rows(c, loads, d) : fl_no_memory(d, "the CPU");
    if (status) {
        fl_cpu_close(c);
        return status;
    }
    c->limit_mw = llround(spec->power_default_w * 1000);
    c->asked = default_state(c);
    c->now = target(c);
    c->look_ps = watches(c) ? spec->period_ns * FL_PS_PER_NS : FL_TIME_NEVER;
    c->mean_fj = (double)c->state[c->now].static_mw;
    c->mean_ps = 1;
    return FL_OK;
}

void fl_cpu_close(fl_cpu *c) {
    for (uint32_t s = 0; c->slot && s < c->state_count; s++) {
        free(c->slot[s].time_ps);
        free(c->slot[s].work_ps);
    }
    free(c->state);
    free(c->row);
    free(c->slot);
    *c = (fl_cpu){0};
}

const fl_cpu_row *fl_cpu_rows(const fl_cpu *c) { return c->row + (size_t)c->now * c->load_count; }

bool fl_cpu_set(fl_cpu *c, int64_t called_ps, double mhz, double boost, double limit_w) {
    fl_cpu_pending p = {.at_ps = called_ps + c->spec->settle_ns * FL_PS_PER_NS,
                        .state = -1,
                        .boost = -1,
                        .limit = !isnan(limit_w),
                        .limit_w = limit_w};
    if (c->pending == FL_CPU_PENDING_MAX)
        return false;
    if (mhz < 0)
        p.state = (int32_t)default_state(c);
    else if (!isnan(mhz))
        p.state = fl_ladder_index(c->spec->mhz, c->spec->count, mhz);
    if (!isnan(boost))
        p.boost = boost != 0; /* the default allows it */
    c->queue[c->pending++] = p;
    return true;
}

int64_t fl_cpu_next(const fl_cpu *c) {
    const int64_t settles = c->pending ? c->queue[0].at_ps : FL_TIME_NEVER;
    return settles < c->look_ps ? settles : c->look_ps;
}

void fl_cpu_collect(fl_cpu *c, fl_host_sums *sums) {
    fl_cpu_slot *slot = &c->slot[c->now];
    const fl_cpu_state *state = &c->state[c->now];
    const fl_cpu_row *row = fl_cpu_rows(c);
    int64_t computing = 0;
    for (uint32_t k = 0; k < c->load_count; k++) {
        const int64_t time = sums->time_ps[k], work = sums->work_ps[k];
        if (!(time | work))
            continue; /* nearly all loads at nearly all instants */
        slot->time_ps[k] += time;
        slot->work_ps[k] += work;
        computing += time;
        c->sums.cpu_fj += (fl_wide)time * row[k].mw;
        c->sums.uops += (fl_wide)work * row[k].uops;
        c->sums.bytes += (fl_wide)work * row[k].bytes;
        sums->time_ps[k] = sums->work_ps[k] = 0;
    }
    const int64_t wait = sums->active_ps - computing;
    sums->active_ps = 0;
    slot->wait_ps += wait;
    c->sums.cpu_fj += (fl_wide)wait * state->wait_mw;
    c->sums.uops += (fl_wide)wait * state->wait_uops;
    const int64_t busy = c->spec->sleeps ? computing : computing + wait;
    c->sums.busy_ps += busy;
    c->sums.cycles += (fl_wide)busy * state->cycles;
}

int64_t fl_cpu_mw(const fl_cpu *c) { return (int64_t)(c->mean_fj / (double)c->mean_ps + 0.5); }

void fl_cpu_charge_to(fl_cpu *c, int64_t t) {
    const int64_t dt = t - c->now_ps;
    c->slot[c->now].open_ps += dt;
    c->sums.cpu_fj += (fl_wide)dt * c->state[c->now].static_mw;
    c->sums.mhz_ps += (fl_wide)dt * c->state[c->now].mhz;
    if (dt > 0) {
        c->mean_fj = fl_real(c->sums.cpu_fj - c->charged_fj);
        c->mean_ps = dt;
        if (c->mean_fj > (double)c->peak_mw * (double)dt) /* else no division is needed: it cannot round above */
            c->peak_mw = fl_cpu_mw(c) > c->peak_mw ? fl_cpu_mw(c) : c->peak_mw;
    }
    c->charged_fj = c->sums.cpu_fj;
    c->now_ps = t;
}

static void take_settled(fl_cpu *c, int64_t t) {
    while (c->pending && c->queue[0].at_ps <= t) {
        const fl_cpu_pending p = c->queue[0];
        c->pending--;
        for (uint32_t i = 0; i < c->pending; i++)
            c->queue[i] = c->queue[i + 1];
        if (p.state >= 0)
            c->asked = (uint32_t)p.state;
        if (p.boost >= 0)
            c->boost = p.boost > 0;
        if (p.limit)
            c->limit_mw = llround((p.limit_w < 0 ? c->spec->power_default_w : p.limit_w) * 1000);
    }
}

/* One state down while a filtered power exceeds what it may be, one up while both are below. The budget of an APU takes
 * only boost states away; the package limit takes any (power-capping by RAPL). */
static void look(fl_cpu *c, int64_t t, fl_wide gpu_fj) {
    const double period = (double)(t - c->seen_ps), filter = (double)(c->spec->filter_ns * FL_PS_PER_NS);
    const double keep = filter > 0 ? exp(-period / filter) : 0;
    const fl_wide all_fj = c->sums.cpu_fj + gpu_fj;
    c->filtered_cpu_mw = keep * c->filtered_cpu_mw + (1 - keep) * fl_real(c->sums.cpu_fj - c->seen_cpu_fj) / period;
    c->filtered_all_mw = keep * c->filtered_all_mw + (1 - keep) * fl_real(all_fj - c->seen_all_fj) / period;
    c->seen_cpu_fj = c->sums.cpu_fj;
    c->seen_all_fj = all_fj;
    c->seen_ps = t;
    const double budget_mw = c->host->apu ? c->host->budget_w * 1000 : 0, limit_mw = (double)c->limit_mw;
    if (limit_mw > 0 && c->filtered_cpu_mw > limit_mw)
        c->ceiling -= c->ceiling > 0;
    else if (budget_mw > 0 && c->filtered_all_mw > budget_mw)
        c->ceiling -= c->ceiling >= c->soft_count;
    else if (c->ceiling + 1 < c->state_count)
        c->ceiling++;
    c->look_ps = t + c->spec->period_ns * FL_PS_PER_NS;
}

bool fl_cpu_at(fl_cpu *c, int64_t t, fl_wide gpu_fj) {
    const uint32_t before = c->now;
    take_settled(c, t);
    if (c->look_ps == FL_TIME_NEVER && watches(c)) {
        const int64_t period = c->spec->period_ns * FL_PS_PER_NS;
        c->look_ps = (t / period + 1) * period;
        c->seen_cpu_fj = c->sums.cpu_fj;
        c->seen_all_fj = c->sums.cpu_fj + gpu_fj;
        c->seen_ps = t; /* the first look after a limit is set sees less than a period */
    }
    if (c->look_ps <= t)
        look(c, t, gpu_fj);
    c->now = target(c);
    c->switches += c->now != before;
    return c->now != before;
}

fl_wide fl_cpu_residence_fj(const fl_cpu *c) {
    fl_wide fj = 0;
    for (uint32_t s = 0; s < c->state_count; s++) {
        const fl_cpu_slot *slot = &c->slot[s];
        fj += (fl_wide)slot->open_ps * c->state[s].static_mw + (fl_wide)slot->wait_ps * c->state[s].wait_mw;
        for (uint32_t k = 0; k < c->load_count; k++)
            fj += (fl_wide)slot->time_ps[k] * c->row[s * c->load_count + k].mw;
    }
    return fj;
}

/* ---- sensors of the node ---- */

#define SCALE_BITS 20 /* of the counters of fl_host_point */

typedef struct fl_host_reading { /* one refresh */
    fl_meter_stamp stamp;
    double mhz, util, uops, cycles, bytes, energy_j, power_w;
} fl_host_reading;

struct fl_host_sense {
    const fl_host_spec *host;
    uint64_t needs, seed;
    size_t count;
    fl_meter meter[FL_HOST_SENSOR_COUNT];
};

const uint64_t fl_host_sense_signals[FL_HOST_SENSOR_COUNT] = {
    [FL_HOST_SENSOR_CPU] = FL_BIT(FL_HOST_CPU_MHZ) | FL_BIT(FL_HOST_CPU_UTIL_PCT) | FL_BIT(FL_HOST_CPU_UOPS) |
                           FL_BIT(FL_HOST_CPU_CYCLES) | FL_BIT(FL_HOST_CPU_MEM_BYTES),
    [FL_HOST_SENSOR_CPU_ENERGY] = FL_BIT(FL_HOST_CPU_ENERGY_J),
    [FL_HOST_SENSOR_NODE_POWER] = FL_BIT(FL_HOST_NODE_POWER_W),
    [FL_HOST_SENSOR_NODE_ENERGY] = FL_BIT(FL_HOST_NODE_ENERGY_J),
};

fl_status fl_host_sense_open(fl_host_sense **out, const fl_host_spec *host, bool cpu, uint64_t needs, uint64_t seed,
                             int64_t idle_node_mw, int64_t idle_cpu_mw, fl_diag *d) {
    fl_host_sense *s = calloc(1, sizeof *s);
    if (!s)
        return fl_no_memory(d, "the sensors");
    s->host = host;
    s->needs = needs;
    s->seed = seed;
    for (int id = 0; id < FL_HOST_SENSOR_COUNT; id++) {
        const bool of_cpu = id == FL_HOST_SENSOR_CPU || id == FL_HOST_SENSOR_CPU_ENERGY;
        if (!host->sensor[id].present || !(needs & fl_host_sense_signals[id]) || (of_cpu && !cpu))
            continue;
        fl_meter *m = &s->meter[s->count++];
        fl_status status =
            fl_meter_open(m, id, &host->sensor[id], sizeof(fl_host_point), sizeof(fl_host_reading), host->name, d);
        if (status) {
            fl_host_sense_close(s);
            return status;
        }
        m->lagged = (double)idle_node_mw * 1e-3;
        int64_t before;
        void *point;
        while (fl_meter_begins_before(m, &before, &point))
            *(fl_host_point *)point =
                (fl_host_point){.node_fj = (fl_wide)before * idle_node_mw, .cpu_fj = (fl_wide)before * idle_cpu_mw};
    }
    *out = s;
    return FL_OK;
}

void fl_host_sense_close(fl_host_sense *s) {
    if (!s)
        return;
    for (size_t i = 0; i < s->count; i++)
        fl_meter_close(&s->meter[i]);
    free(s);
}

int64_t fl_host_sense_next(fl_host_sense *s, int64_t now_ps, int64_t read_ps) {
    int64_t next = FL_TIME_NEVER;
    for (size_t i = 0; i < s->count; i++) {
        const int64_t at = fl_meter_next(&s->meter[i], now_ps, read_ps);
        next = at < next ? at : next;
    }
    return next;
}

static double counted(fl_wide scaled) { return (double)(int64_t)(scaled >> SCALE_BITS); }

static double energy(fl_wide fj, const fl_sensor_spec *spec) {
    return fl_sensor_wrap(fl_sensor_quantise(fl_joules(fj), spec->quantum), spec->wrap);
}

/* Noise of refresh k does not depend on which refreshes were skipped before it. */
static double noise(const fl_host_sense *s, const fl_meter *m, int64_t k) {
    fl_random r = fl_random_seed(s->seed ^ UINT64_C(0x686f7374), ((uint64_t)k << 8) ^ (uint64_t)m->id);
    return fl_random_normal(&r);
}

/* Of a window of the CPU's sensor; its other signals are counters. */
static const uint64_t cpu_means = FL_BIT(FL_HOST_CPU_MHZ) | FL_BIT(FL_HOST_CPU_UTIL_PCT);

/* In place, for the same reason as below. */
static void refresh(const fl_host_sense *s, fl_meter *m, int64_t k, int64_t t, const fl_host_point *from,
                    const fl_host_point *to, fl_host_reading *r) {
    r->stamp = (fl_meter_stamp){k, t};
    const double window = (double)m->window;
    const fl_sensor_spec *spec = m->spec;
    switch ((fl_host_sensor_id)m->id) {
    case FL_HOST_SENSOR_CPU:
        r->uops = counted(to->uops);
        r->cycles = counted(to->cycles);
        r->bytes = counted(to->bytes);
        if (!(s->needs & cpu_means))
            break;
        r->mhz = window > 0 ? fl_real(to->mhz_ps - from->mhz_ps) / window : (double)to->cpu_mhz;
        if (t < m->window)
            r->mhz = t > 0 ? (double)to->mhz_ps / (double)t : (double)to->cpu_mhz; /* before 0 there was no clock */
        r->util = window > 0 ? 100 * (double)(to->busy_ps - from->busy_ps) / window / s->host->cores : 0;
        r->util = fmin(100, r->util);
        break;
    case FL_HOST_SENSOR_CPU_ENERGY:
        r->energy_j = energy(to->cpu_fj, spec);
        break;
    case FL_HOST_SENSOR_NODE_POWER:
        r->power_w = window > 0 ? fl_real(to->node_fj - from->node_fj) / window * 1e-3 : (double)to->node_mw * 1e-3;
        if (spec->lag_ns && m->period)
            r->power_w = m->lagged = fl_sensor_lag(m->lagged, r->power_w, spec->period_ns, spec->lag_ns);
        if (spec->noise > 0)
            r->power_w += spec->noise * noise(s, m, k);
        r->power_w = fl_sensor_quantise(fmax(0, r->power_w), spec->quantum);
        break;
    case FL_HOST_SENSOR_NODE_ENERGY:
        r->energy_j = energy(to->node_fj, spec);
        break;
    case FL_HOST_SENSOR_COUNT:
        break;
    }
}

bool fl_host_sense_due(const fl_host_sense *s, int64_t t) {
    for (size_t i = 0; i < s->count; i++)
        if (fl_meter_opens(&s->meter[i], t) || fl_meter_ends(&s->meter[i], t))
            return true;
    return false;
}

bool fl_host_sense_instant(const fl_host_sense *s) {
    for (size_t i = 0; i < s->count; i++)
        if (!s->meter[i].period)
            return true;
    return false;
}

/* Only what means are made of. A copy of the whole would read in wide pieces what was just written in narrow ones. */
static void begin_window(fl_meter *m, const fl_host_point *p) {
    fl_host_point *point = fl_meter_open_window(m);
    point->node_fj = p->node_fj;
    point->busy_ps = p->busy_ps;
    point->mhz_ps = p->mhz_ps;
}

void fl_host_sense_at(fl_host_sense *s, const fl_host_point *p, int64_t t) {
    for (size_t i = 0; i < s->count; i++) {
        fl_meter *m = &s->meter[i];
        if (fl_meter_opens(m, t))
            begin_window(m, p);
        if (fl_meter_ends(m, t)) {
            const fl_host_point *from = fl_meter_window(m);
            fl_host_reading *reading = fl_meter_take(m);
            refresh(s, m, m->taken, t, from, p, reading);
        }
    }
}

static void set_signal(fl_host_sample *out, int id, double value, bool fresh) {
    out->value[id] = value;
    out->valid |= FL_BIT(id);
    if (fresh)
        out->fresh |= FL_BIT(id);
}

static void show_reading(const fl_meter *m, const fl_host_reading *r, bool fresh, uint64_t needs, fl_host_sample *out) {
    switch ((fl_host_sensor_id)m->id) {
    case FL_HOST_SENSOR_CPU:
        set_signal(out, FL_HOST_CPU_UOPS, r->uops, fresh);
        set_signal(out, FL_HOST_CPU_CYCLES, r->cycles, fresh);
        set_signal(out, FL_HOST_CPU_MEM_BYTES, r->bytes, fresh);
        if (!(needs & cpu_means))
            break;
        set_signal(out, FL_HOST_CPU_MHZ, r->mhz, fresh);
        if (m->window)
            set_signal(out, FL_HOST_CPU_UTIL_PCT, r->util, fresh);
        break;
    case FL_HOST_SENSOR_CPU_ENERGY:
        set_signal(out, FL_HOST_CPU_ENERGY_J, r->energy_j, fresh);
        break;
    case FL_HOST_SENSOR_NODE_POWER:
        set_signal(out, FL_HOST_NODE_POWER_W, r->power_w, fresh);
        break;
    case FL_HOST_SENSOR_NODE_ENERGY:
        set_signal(out, FL_HOST_NODE_ENERGY_J, r->energy_j, fresh);
        break;
    case FL_HOST_SENSOR_COUNT:
        break;
    }
}

void fl_host_sense_read(fl_host_sense *s, const fl_host_point *now, int64_t t, bool remember, fl_host_sample *out) {
    *out = (fl_host_sample){0};
    for (size_t i = 0; i < s->count; i++) {
        fl_meter *m = &s->meter[i];
        if (!m->period) {
            fl_host_reading r;
            refresh(s, m, t, t, now, now, &r);
            show_reading(m, &r, true, s->needs, out);
            continue;
        }
        bool fresh;
        const fl_host_reading *best = fl_meter_shown(m, t, remember, &fresh);
        if (best)
            show_reading(m, best, fresh, s->needs, out);
    }
    out->valid &= s->needs;
    out->fresh &= s->needs;
}
