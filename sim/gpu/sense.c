/* Sensors of a GPU: meters, and what software reads of them. */
#include "sim/gpu/inside.h"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- meters: refreshes, windows, delays ---- */

static int64_t refresh_at(const fl_meter *m, int64_t k) { return m->phase + k * m->period; }

static void *start_of(const fl_meter *m, int64_t k) {
    return m->start + ((size_t)k & (m->start_room - 1)) * m->point_size;
}

static fl_meter_stamp *shown_at(const fl_meter *m, size_t slot) { /* a reading begins with its stamp */
    return (void *)(m->shown + slot * m->reading_size);
}

/* The size of a ring is a power of two, because a mask costs less than a division. */
static size_t ring_room(size_t least) {
    size_t room = 2;
    while (room < least)
        room *= 2;
    return room;
}

fl_status fl_meter_open(fl_meter *m, int id, const fl_sensor_spec *spec, size_t point_size, size_t reading_size,
                        const char *name, fl_diag *d) {
    *m = (fl_meter){
        .id = id, .spec = spec, .taken = -1, .seen = -2, .ends_ps = FL_TIME_NEVER, .opens_ps = FL_TIME_NEVER};
    m->point_size = point_size;
    m->reading_size = reading_size;
    if (spec->period_ns < 0 || spec->phase_ns < 0 || spec->window_ns < 0 || spec->lag_ns < 0 || spec->delay_ns < 0)
        return fl_refuse(d, "%s: a sensor with a negative time", name);
    m->period = spec->period_ns * FL_PS_PER_NS;
    if (!m->period)
        return FL_OK;
    m->phase = spec->phase_ns * FL_PS_PER_NS;
    m->window = (spec->lag_ns ? spec->period_ns : spec->window_ns) * FL_PS_PER_NS;
    m->delay = spec->delay_ns * FL_PS_PER_NS;
    m->ends_ps = m->phase;
    m->opens_ps = m->phase - m->window;
    m->start_room = ring_room((size_t)(m->window / m->period) + 2);
    m->shown_room = ring_room((size_t)(m->delay / m->period) + 2);
    m->start = calloc(m->start_room, point_size);
    m->shown = calloc(m->shown_room, reading_size);
    if (!m->start || !m->shown) {
        fl_meter_close(m);
        return fl_no_memory(d, "the sensors");
    }
    for (size_t i = 0; i < m->shown_room; i++)
        shown_at(m, i)->index = -1;
    return FL_OK;
}

void fl_meter_close(fl_meter *m) {
    free(m->start);
    free(m->shown);
    m->start = m->shown = NULL;
    m->latest = NULL;
}

bool fl_meter_begins_before(fl_meter *m, int64_t *at_ps, void **point) {
    *at_ps = m->opens_ps;
    if (*at_ps >= 0)
        return false;
    *point = fl_meter_open_window(m);
    return true;
}

/* A reader at read_ps sees the last refresh before it. Earlier refreshes whose window has not begun yet need no
 * boundaries. */
static void skip_ahead(fl_meter *m, int64_t now, int64_t read_ps) {
    if (m->spec->lag_ns || read_ps - m->delay < m->ends_ps + m->period)
        return; /* the next one is the one */
    int64_t last = m->refresh + 1;
    if (read_ps - m->delay >= m->ends_ps + 2 * m->period) /* else it needs no division */
        last = (read_ps - m->delay - m->phase) / m->period;
    if (refresh_at(m, last) - m->window <= now)
        return;
    m->opening = m->refresh = last;
    m->ends_ps = refresh_at(m, last);
    m->opens_ps = m->ends_ps - m->window;
}

int64_t fl_meter_next(fl_meter *m, int64_t now_ps, int64_t read_ps) {
    if (!m->period)
        return FL_TIME_NEVER;
    skip_ahead(m, now_ps, read_ps);
    return m->opens_ps < m->ends_ps ? m->opens_ps : m->ends_ps;
}

void *fl_meter_open_window(fl_meter *m) {
    m->opens_ps += m->period;
    return start_of(m, m->opening++);
}

const void *fl_meter_window(const fl_meter *m) { return start_of(m, m->refresh); }

void *fl_meter_take(fl_meter *m) {
    fl_meter_stamp *reading = shown_at(m, (size_t)m->refresh & (m->shown_room - 1));
    m->taken = m->refresh++;
    m->ends_ps += m->period;
    m->latest = reading;
    return reading;
}

/* The latest reading that is visible at t where the one taken last is still on its way; NULL where none is. Usually it
 * is the next one in turn. Otherwise refreshes have been skipped, and the function searches the ring. Not inlined: most
 * sensors have no delay, and their readers are faster without it. */
__attribute__((noinline)) static const fl_meter_stamp *earlier_at(const fl_meter *m, int64_t t) {
    const int64_t turn = (t - m->delay - m->phase) / m->period;
    const fl_meter_stamp *best = shown_at(m, (size_t)turn & (m->shown_room - 1));
    if (turn >= 0 && best->index == turn && best->at_ps + m->delay <= t)
        return best;
    best = NULL;
    for (size_t i = 0; i < m->shown_room; i++) {
        const fl_meter_stamp *r = shown_at(m, i);
        if (r->index >= 0 && r->at_ps + m->delay <= t && (!best || r->index > best->index))
            best = r;
    }
    return best;
}

const void *fl_meter_shown(fl_meter *m, int64_t t, bool remember, bool *fresh) {
    const fl_meter_stamp *best = m->latest;
    if (best && best->at_ps + m->delay > t)
        best = earlier_at(m, t);
    if (!best)
        return NULL;
    *fresh = best->index > m->seen;
    if (remember)
        m->seen = best->index;
    return best;
}

/* ---- signals of a GPU ---- */

typedef struct fl_reading { /* one refresh */
    fl_meter_stamp stamp;
    double power_w, energy_j, util_gpu, util_mem, sm_active, alu_busy, dram_bytes, busy_ns, copy_ns, sm_mhz, mem_mhz,
        temp_c, throttle, power_held_ns, heat_held_ns;
} fl_reading;

struct fl_sense {
    uint64_t needs, seed;
    int64_t idle_mw;
    bool busy_only; /* no window shows more than how long a kernel was resident */
    size_t count;
    fl_meter meter[FL_SENSOR_COUNT];
};

const uint64_t fl_sense_signals[FL_SENSOR_COUNT] = {
    [FL_SENSOR_POWER] = FL_BIT(FL_GPU_POWER_W),
    [FL_SENSOR_POWER_INSTANT] = FL_BIT(FL_GPU_POWER_INSTANT_W),
    [FL_SENSOR_ENERGY] = FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS),
    [FL_SENSOR_UTILISATION] = FL_BIT(FL_GPU_UTIL_GPU_PCT) | FL_BIT(FL_GPU_UTIL_MEM_PCT),
    [FL_SENSOR_PROFILE] = FL_BIT(FL_GPU_SM_ACTIVE_PCT) | FL_BIT(FL_GPU_DRAM_ACTIVE_PCT) | FL_BIT(FL_GPU_DRAM_BYTES) |
                          FL_BIT(FL_GPU_ALU_BUSY_PCT) | FL_BIT(FL_GPU_GPU_CLOCK_BUSY_PCT) | FL_BIT(FL_GPU_COMPUTE_NS) |
                          FL_BIT(FL_GPU_COPY_NS),
    [FL_SENSOR_CLOCK] = FL_BIT(FL_GPU_SM_MHZ) | FL_BIT(FL_GPU_MEM_MHZ) | FL_BIT(FL_GPU_THROTTLE) |
                        FL_BIT(FL_GPU_POWER_VIOLATION_NS) | FL_BIT(FL_GPU_THERMAL_VIOLATION_NS),
    [FL_SENSOR_TEMPERATURE] = FL_BIT(FL_GPU_TEMP_C),
};

fl_status fl_sense_open(fl_sense **out, const fl_gpu *g, uint64_t needs, uint64_t seed, fl_diag *d) {
    fl_sense *s = calloc(1, sizeof *s);
    if (!s)
        return fl_no_memory(d, "the sensors");
    s->needs = needs;
    s->seed = seed;
    s->idle_mw = fl_gpu_idle_mw(g);
    s->busy_only = !(needs & FL_BIT(FL_GPU_UTIL_MEM_PCT)) && !g->readings;
    for (int id = 0; id < FL_SENSOR_COUNT; id++) {
        const fl_sensor_spec *spec = &g->dev->sensor[id];
        if (!spec->present || !(needs & fl_sense_signals[id]))
            continue;
        fl_meter *m = &s->meter[s->count++];
        fl_status status = fl_meter_open(m, id, spec, sizeof(fl_sums), sizeof(fl_reading), g->dev->name, d);
        if (!status && (id == FL_SENSOR_UTILISATION || id == FL_SENSOR_PROFILE) && (!m->period || !m->window))
            status = fl_refuse(d, "%s: a utilisation sensor without period or window, expected both", g->dev->name);
        if (status) {
            fl_sense_close(s);
            return status;
        }
        s->busy_only &= id == FL_SENSOR_UTILISATION || !m->window;
        m->lagged = (double)s->idle_mw * 1e-3;
        int64_t before;
        void *point; /* windows that begin before time 0 begin there with sums that idling would have left */
        while (fl_meter_begins_before(m, &before, &point))
            *(fl_sums *)point = (fl_sums){.energy_fj = (fl_wide)before * s->idle_mw};
    }
    *out = s;
    return FL_OK;
}

void fl_sense_close(fl_sense *s) {
    if (!s)
        return;
    for (size_t i = 0; i < s->count; i++)
        fl_meter_close(&s->meter[i]);
    free(s);
}

int64_t fl_sense_next(fl_sense *s, int64_t now_ps, int64_t read_ps, bool *begins) {
    int64_t next = FL_TIME_NEVER, end = FL_TIME_NEVER;
    for (size_t i = 0; i < s->count; i++) {
        const int64_t at = fl_meter_next(&s->meter[i], now_ps, read_ps), ends = s->meter[i].ends_ps;
        next = at < next ? at : next;
        end = ends < end ? ends : end;
    }
    *begins = next < end;
    return next;
}

/* Noise of refresh k does not depend on which refreshes were skipped before it. */
static double noise(const fl_sense *s, const fl_gpu *g, const fl_meter *m, int64_t k, int channel) {
    uint64_t component = ((uint64_t)k << 16) ^ ((uint64_t)g->index << 8) ^ ((uint64_t)m->id << 2) ^ (uint64_t)channel;
    fl_random r = fl_random_seed(s->seed, component);
    return fl_random_normal(&r);
}

static double percent(double share) {
    double v = floor(100.0 * share + 0.5);
    return v < 0 ? 0 : v > 100 ? 100 : v;
}

static double throttle(const fl_gpu *g) {
    if (!g->open)
        return FL_THROTTLE_IDLE;
    const bool wall = g->wall_sm < g->lock_sm, heat = g->heat_sm < g->lock_sm; /* the lower of the two holds it */
    return (wall && g->wall_sm <= g->heat_sm ? FL_THROTTLE_POWER : 0) +
           (heat && g->heat_sm <= g->wall_sm ? FL_THROTTLE_THERMAL : 0);
}

/* What holds the clock below the lock, and for how long it did. */
static const uint64_t held_signals =
    FL_BIT(FL_GPU_THROTTLE) | FL_BIT(FL_GPU_POWER_VIOLATION_NS) | FL_BIT(FL_GPU_THERMAL_VIOLATION_NS);

/* Measured readings: means over the window, deviations at the clocks in force. */
static void read_utilisation(const fl_sense *s, const fl_gpu *g, const fl_meter *m, int64_t k, const fl_sums *from,
                             fl_reading *r) {
    const fl_sums *to = &g->sums;
    const double window = (double)m->window;
    double gpu = (double)(to->busy_ps - from->busy_ps) / window, mem_sd = g->dev->util_mem_noise_pct;
    if (g->readings) {
        gpu = fl_real(to->sms - from->sms) / window / FL_ROW_ONE;
        if (g->rates->gpu_sd > 0 && to->sms != from->sms)
            gpu += g->rates->gpu_sd * 0.01 * noise(s, g, m, k, 2);
        mem_sd = isnan(g->rates->mem_sd) ? mem_sd : g->rates->mem_sd;
    }
    r->util_gpu = percent(gpu);
    if (!(s->needs & FL_BIT(FL_GPU_UTIL_MEM_PCT)))
        return; /* nobody sees it, and a normal costs a tenth of a step; the noise of other readings is its own */
    double share = fl_real(to->memory - from->memory) / window / FL_ROW_ONE;
    if (mem_sd > 0 && to->memory != from->memory)
        share += mem_sd * 0.01 * noise(s, g, m, k, 1);
    r->util_mem = percent(share);
}

/* One refresh at t: the window's means from the difference of two points. */
static void refresh(fl_sense *s, const fl_gpu *g, fl_meter *m, int64_t k, int64_t t, const fl_sums *from,
                    fl_reading *r) {
    const fl_sums *to = &g->sums;
    r->stamp = (fl_meter_stamp){k, t};
    double window = (double)m->window;
    const fl_sensor_spec *spec = m->spec;
    switch ((fl_sensor_id)m->id) {
    case FL_SENSOR_POWER:
    case FL_SENSOR_POWER_INSTANT:
        r->power_w =
            window > 0 ? fl_real(to->energy_fj - from->energy_fj) / window * 1e-3 : (double)fl_gpu_power_mw(g) * 1e-3;
        if (spec->lag_ns && m->period)
            r->power_w = m->lagged = fl_sensor_lag(m->lagged, r->power_w, spec->period_ns, spec->lag_ns);
        if (spec->noise > 0)
            r->power_w += spec->noise * noise(s, g, m, k, 0);
        r->power_w = fl_sensor_quantise(r->power_w < 0 ? 0 : r->power_w, spec->quantum);
        break;
    case FL_SENSOR_ENERGY:
        r->energy_j = fl_sensor_wrap(fl_sensor_quantise(fl_joules(to->energy_fj), spec->quantum), spec->wrap);
        break;
    case FL_SENSOR_UTILISATION:
        read_utilisation(s, g, m, k, from, r);
        break;
    case FL_SENSOR_PROFILE:
        r->util_gpu = 100.0 * (double)(to->busy_ps - from->busy_ps) / window;
        r->util_mem = 100.0 * fmin(1.0, fl_real(to->memory - from->memory) / window / FL_ROW_ONE);
        r->alu_busy = 100.0 * fmin(1.0, fl_real(to->alu - from->alu) / window / FL_ROW_ONE);
        r->sm_active = 100.0 * fmin(1.0, fl_real(to->sms - from->sms) / window / FL_ROW_ONE);
        r->dram_bytes = floor((double)to->bytes * 1e-12 / FL_ROW_ONE / g->dev->default_mem_mhz *
                              g->dev->peak_bytes_per_s * (g->dev->dram_share > 0 ? g->dev->dram_share : 1));
        r->busy_ns = (double)(to->busy_ps / FL_PS_PER_NS);
        r->copy_ns = (double)(to->copy_ps / FL_PS_PER_NS);
        break;
    case FL_SENSOR_CLOCK:
        r->sm_mhz = g->dev->sm_mhz[g->open ? g->sm : 0]; /* without a context: the idle clock */
        r->mem_mhz = g->dev->mem_mhz[g->mem];
        if (!(s->needs & held_signals))
            break; /* nobody reads them; a platform without refreshes would make them at each step */
        r->throttle = throttle(g);
        r->power_held_ns = (double)(g->wall_held_ps / FL_PS_PER_NS);
        r->heat_held_ns = (double)(g->heat_held_ps / FL_PS_PER_NS);
        break;
    case FL_SENSOR_TEMPERATURE:
        r->temp_c = fl_sensor_quantise(g->temp_c, spec->quantum);
        break;
    case FL_SENSOR_COUNT:
        break;
    }
}

static void begin_window(const fl_sense *s, fl_meter *m, const fl_sums *sums) {
    fl_sums *point = fl_meter_open_window(m);
    if (s->busy_only)
        point->busy_ps = sums->busy_ps;
    else
        *point = *sums;
}

void fl_sense_at(fl_sense *s, const fl_gpu *g, int64_t t) {
    for (size_t i = 0; i < s->count; i++) {
        fl_meter *m = &s->meter[i];
        if (fl_meter_opens(m, t))
            begin_window(s, m, &g->sums);
        if (fl_meter_ends(m, t)) {
            const fl_sums *from = fl_meter_window(m);
            fl_reading *reading = fl_meter_take(m);
            refresh(s, g, m, m->taken, t, from, reading);
        }
    }
}

bool fl_sense_busy_only(const fl_sense *s) { return s->busy_only; }

void fl_sense_begin(fl_sense *s, const fl_sums *sums, int64_t t) {
    for (size_t i = 0; i < s->count; i++)
        if (fl_meter_opens(&s->meter[i], t))
            begin_window(s, &s->meter[i], sums);
}

static void set_signal(fl_gpu_sample *out, int id, double value, bool fresh) {
    out->value[id] = value;
    out->valid |= FL_BIT(id);
    if (fresh)
        out->fresh |= FL_BIT(id);
}

static void show_reading(const fl_meter *m, const fl_reading *r, bool fresh, uint64_t needs, fl_gpu_sample *out) {
    switch ((fl_sensor_id)m->id) {
    case FL_SENSOR_POWER:
        set_signal(out, FL_GPU_POWER_W, r->power_w, fresh);
        break;
    case FL_SENSOR_POWER_INSTANT:
        set_signal(out, FL_GPU_POWER_INSTANT_W, r->power_w, fresh);
        break;
    case FL_SENSOR_ENERGY:
        set_signal(out, FL_GPU_ENERGY_J, r->energy_j, fresh);
        set_signal(out, FL_GPU_ENERGY_NS, (double)(r->stamp.at_ps / FL_PS_PER_NS), fresh);
        break;
    case FL_SENSOR_UTILISATION:
        set_signal(out, FL_GPU_UTIL_GPU_PCT, r->util_gpu, fresh);
        set_signal(out, FL_GPU_UTIL_MEM_PCT, r->util_mem, fresh);
        break;
    case FL_SENSOR_PROFILE:
        set_signal(out, FL_GPU_GPU_CLOCK_BUSY_PCT, r->util_gpu, fresh);
        set_signal(out, FL_GPU_DRAM_ACTIVE_PCT, r->util_mem, fresh);
        set_signal(out, FL_GPU_ALU_BUSY_PCT, r->alu_busy, fresh);
        set_signal(out, FL_GPU_SM_ACTIVE_PCT, r->sm_active, fresh);
        set_signal(out, FL_GPU_DRAM_BYTES, r->dram_bytes, fresh);
        set_signal(out, FL_GPU_COMPUTE_NS, r->busy_ns, fresh);
        set_signal(out, FL_GPU_COPY_NS, r->copy_ns, fresh);
        break;
    case FL_SENSOR_CLOCK:
        set_signal(out, FL_GPU_SM_MHZ, r->sm_mhz, fresh);
        set_signal(out, FL_GPU_MEM_MHZ, r->mem_mhz, fresh);
        if (!(needs & held_signals))
            break;
        set_signal(out, FL_GPU_THROTTLE, r->throttle, fresh);
        set_signal(out, FL_GPU_POWER_VIOLATION_NS, r->power_held_ns, fresh);
        set_signal(out, FL_GPU_THERMAL_VIOLATION_NS, r->heat_held_ns, fresh);
        break;
    case FL_SENSOR_TEMPERATURE:
        if (!isnan(r->temp_c))
            set_signal(out, FL_GPU_TEMP_C, r->temp_c, fresh);
        break;
    case FL_SENSOR_COUNT:
        break;
    }
}

/* A board had power before time 0, and its sensor shows that until the first refresh is visible. */
static void show_idle(const fl_sense *s, fl_meter *m, bool remember, fl_gpu_sample *out) {
    const fl_reading before = {.stamp = {-1, 0},
                               .power_w = fl_sensor_quantise((double)s->idle_mw * 1e-3, m->spec->quantum)};
    show_reading(m, &before, m->seen < -1, s->needs, out);
    if (remember)
        m->seen = -1;
}

void fl_sense_read(fl_sense *s, const fl_gpu *g, int64_t t, bool remember, fl_gpu_sample *out) {
    *out = (fl_gpu_sample){0};
    if (g->lost)
        return;
    for (size_t i = 0; i < s->count; i++) {
        fl_meter *m = &s->meter[i];
        if (!m->period) { /* as it is at this instant */
            fl_reading r;
            refresh(s, g, m, t, t, &g->sums, &r); /* noise by the instant */
            show_reading(m, &r, true, s->needs, out);
            continue;
        }
        bool fresh;
        const fl_reading *best = fl_meter_shown(m, t, remember, &fresh);
        if (best)
            show_reading(m, best, fresh, s->needs, out);
        else if (m->id == FL_SENSOR_POWER || m->id == FL_SENSOR_POWER_INSTANT)
            show_idle(s, m, remember, out);
        /* other quantities are unknown before the first refresh, and unknown is not zero */
    }
    if (g->counted || g->records.on)
        set_signal(out, FL_GPU_KERNELS, (double)(g->sums.kernels - (g->counted ? 0 : g->uncounted)), true);
    if (g->marked)
        set_signal(out, FL_GPU_ITERATIONS, (double)g->sums.iterations, true);
    out->valid &= s->needs;
    out->fresh &= s->needs;
}
