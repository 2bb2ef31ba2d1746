#include "sim/gpu/host_sense.h"

#include "policies/random.h"
#include "sim/gpu/meter.h"

#include <math.h>
#include <stdlib.h>

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
