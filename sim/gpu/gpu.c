/* One GPU: its ledger and clocks in force, heat, records of kernels, and boards of one type that differ. */
#include "sim/gpu/inside.h"

#include "models/laws/device.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- heat: one RC stage per die ---- */

static void leak(const fl_heat *h, fl_gpu *g) {
    const double above = g->temp_c - h->spec->leak_ref_c;
    g->leak_mw = above > 0 ? llround(h->spec->leak_w_per_c * above * 1000) : 0;
    g->leak_peak_mw = g->leak_mw > g->leak_peak_mw ? g->leak_mw : g->leak_peak_mw;
}

void fl_heat_open(fl_heat *h, fl_gpu *g, int64_t cpu_mw) {
    const fl_thermal_spec *spec = &g->dev->thermal;
    *h = (fl_heat){.spec = spec, .next_ps = FL_TIME_NEVER};
    if (spec->period_ns <= 0)
        return;
    h->period_ps = h->next_ps = spec->period_ns * FL_PS_PER_NS;
    h->keep = exp(-(double)spec->period_ns * 1e-9 / spec->tau_s);
    g->temp_c = spec->ambient_c + spec->c_per_w * (double)(fl_gpu_idle_mw(g) + cpu_mw) * 1e-3;
    g->hottest_c = g->temp_c;
    leak(h, g);
}

void fl_heat_at(fl_heat *h, fl_gpu *g, fl_wide cpu_fj, int64_t t) {
    if (h->next_ps > t)
        return;
    const fl_wide die_fj = g->sums.energy_fj + cpu_fj;
    const double mean_w = fl_real(die_fj - h->seen_fj) / (double)h->period_ps * 1e-3;
    const double target = h->spec->ambient_c + h->spec->c_per_w * mean_w;
    const uint32_t top = g->dev->sm_count - 1;
    g->temp_c = target + h->keep * (g->temp_c - target);
    g->hottest_c = fmax(g->hottest_c, g->temp_c);
    leak(h, g);
    if (g->temp_c > h->spec->limit_c) {
        const uint32_t from = h->acts ? g->heat_sm : g->sm;
        g->heat_sm = from > 0 ? from - 1 : 0;
        h->acts = true;
    } else if (h->acts && g->temp_c < h->spec->release_c) {
        g->heat_sm += g->heat_sm < top;
        if (g->heat_sm >= g->lock_sm) {
            h->acts = false;
            g->heat_sm = top;
        }
    }
    h->seen_fj = die_fj;
    h->next_ps += h->period_ps;
}

/* ---- activity records ---- */

void fl_lane_record(const fl_lane *l, int64_t end_ps) {
    fl_record_buffer *b = &l->gpu->records;
    if (fl_grow(&b->record, &b->room, b->count + 1, sizeof *b->record)) {
        b->failed = true; /* the run reads this at its next boundary and stops */
        return;
    }
    b->record[b->count++] = (fl_kernel_record){.start_ns = l->began_ps / FL_PS_PER_NS,
                                               .end_ns = end_ps / FL_PS_PER_NS,
                                               .kind = l->class_id,
                                               .stream = (uint32_t)l->s->id,
                                               .gpu = l->gpu->index};
}

/* ---- boards of one type that differ ---- */

static void *copy_of(const void *from, size_t bytes) {
    void *to = malloc(bytes ? bytes : 1);
    return to ? memcpy(to, from, bytes) : NULL;
}

static double normal_cut(fl_random *r) {
    double x = fl_random_normal(r);
    while (fabs(x) > 3)
        x = fl_random_normal(r);
    return x;
}

/* A device that owns all of its arrays; false when out of memory, then *to owns what it has. */
static bool clone(const fl_device *from, fl_device *to) {
    *to = *from;
    to->sm_mhz = copy_of(from->sm_mhz, from->sm_count * sizeof *to->sm_mhz);
    to->mem_mhz = copy_of(from->mem_mhz, from->mem_count * sizeof *to->mem_mhz);
    to->b0_w = copy_of(from->b0_w, from->mem_count * sizeof *to->b0_w);
    to->voltage = NULL;
    return fl_curve_clone(&to->voltage, from->voltage) == FL_MODEL_OK && to->sm_mhz && to->mem_mhz && to->b0_w;
}

fl_status fl_node_vary(fl_node_spec *node, uint64_t seed, fl_diag *d) {
    fl_node_spec varied = {0};
    varied.device = calloc(node->gpu_count, sizeof *varied.device);
    varied.gpu = calloc(node->gpu_count, sizeof *varied.gpu);
    bool ok = varied.device && varied.gpu;
    for (uint32_t i = 0; ok && i < node->gpu_count; i++) {
        fl_device *dev = &varied.device[i];
        fl_random r = fl_random_seed(seed ^ UINT64_C(0x756e697473), i);
        ok = clone(&node->device[node->gpu[i]], dev);
        varied.device_count = i + 1;
        varied.gpu[i] = i;
        dev->v_excess = dev->v_sigma * normal_cut(&r);
        const double leak = fmax(0, 1 + dev->leak_sigma * normal_cut(&r));
        dev->c_w *= leak;
        dev->thermal.leak_w_per_c *= leak;
    }
    if (!ok) {
        fl_node_spec_free(&varied);
        return fl_no_memory(d, "the units");
    }
    fl_node_spec old = {.device = node->device, .device_count = node->device_count, .gpu = node->gpu};
    node->device = varied.device;
    node->device_count = varied.device_count;
    node->gpu = varied.gpu;
    fl_node_spec_free(&old);
    return FL_OK;
}

/* ---- the GPU: residence, charges, clocks in force ---- */

static fl_status find_slot(fl_gpu *g, fl_diag *d) {
    for (uint32_t i = 0; i < g->slot_count; i++)
        if (g->slot[i].sm == g->sm && g->slot[i].mem == g->mem) {
            g->slot_now = i;
            return FL_OK;
        }
    int64_t *class_ps = calloc(g->w->class_count ? g->w->class_count : 1, sizeof *class_ps);
    if (!class_ps || fl_grow(&g->slot, &g->slot_room, g->slot_count + 1, sizeof *g->slot)) {
        free(class_ps);
        return fl_no_memory(d, "the ledger");
    }
    g->slot[g->slot_count] = (fl_slot){.sm = g->sm, .mem = g->mem, .rates = g->rates, .class_ps = class_ps};
    g->slot_now = g->slot_count++;
    return FL_OK;
}

uint32_t fl_gpu_allowed_sm(const fl_gpu *g) {
    const uint32_t held = g->wall_sm < g->heat_sm ? g->wall_sm : g->heat_sm;
    return g->lock_sm < held ? g->lock_sm : held;
}

fl_status fl_gpu_clock(fl_gpu *g, uint32_t sm, uint32_t mem, fl_diag *d) {
    const fl_clock_rates *rates;
    fl_status s = (g->records.slow ? fl_rates_recorded : fl_rates_at)(g->rates_of, g->device, sm, mem, &rates, d);
    if (s)
        return s;
    g->sm = sm;
    g->mem = mem;
    g->rates = rates;
    return find_slot(g, d);
}

fl_status fl_gpu_open(fl_gpu *g, const fl_workload *w, fl_rates *rates, const fl_node_spec *node, uint32_t index,
                      uint32_t sm, uint32_t mem, fl_diag *d) {
    uint32_t device = node->gpu[index];
    *g = (fl_gpu){
        .index = index, .device = device, .dev = &node->device[device], .w = w, .rates_of = rates, .open = true};
    g->lock_sm = sm;
    g->wall_sm = g->heat_sm = g->dev->sm_count - 1;
    g->temp_c = g->hottest_c = NAN;
    for (uint32_t i = 0; i < w->stream_count; i++)
        g->stream_count += w->stream[i].gpu == index;
    g->stream_count += fl_workload_serves(w, index); /* its steps come one after the other, as in a stream */
    g->closed_mw = (int64_t)(g->dev->no_context_w * 1000 + 0.5);
    g->gate_ps = g->dev->gate_ns * FL_PS_PER_NS;
    fl_gpu_rest(g, 0);
    return fl_gpu_clock(g, sm, mem, d);
}

void fl_gpu_close(fl_gpu *g) {
    for (uint32_t i = 0; i < g->slot_count; i++)
        free(g->slot[i].class_ps);
    free(g->slot);
    free(g->records.record);
    free(g->jump);
    *g = (fl_gpu){0};
}

void fl_gpu_charge_to(fl_gpu *g, int64_t t) {
    int64_t dt = t - g->now_ps;
    g->sums.energy_fj += g->window.dyn_fj;
    g->sums.memory += g->window.memory;
    g->sums.bytes += g->window.memory * g->dev->mem_mhz[g->mem];
    g->sums.alu += g->window.alu;
    g->sums.sms += g->window.sms;
    g->window = (fl_window){0, 0, 0, 0};
    if (g->open) {
        fl_gpu_gate_to(g, t);
        g->slot[g->slot_now].open_ps += dt;
        const fl_wide leak = (fl_wide)dt * g->leak_mw;
        g->leak_fj += leak;
        g->sums.energy_fj += (fl_wide)dt * g->rates->base.total_mw + leak;
        const uint32_t held = g->wall_sm < g->heat_sm ? g->wall_sm : g->heat_sm;
        if (held < g->lock_sm)
            *(g->wall_sm <= g->heat_sm ? &g->wall_held_ps : &g->heat_held_ps) += dt;
    } else {
        g->closed_ps += dt;
        g->sums.energy_fj += (fl_wide)dt * fl_gpu_idle_mw(g);
    }
    if (g->resident) {
        g->sums.busy_ps += t - g->busy_since_ps;
        g->busy_since_ps = t;
    }
    g->now_ps = t;
}
