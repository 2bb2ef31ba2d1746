#include "sim/gpu/gpu.h"

#include <math.h>
#include <stdlib.h>

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
