#include "sim/gpu/heat.h"

#include <math.h>

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
