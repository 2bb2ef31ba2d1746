#include "policies/mfgpaper_meter.h"

#include <math.h>

static void take(fl_mfp_meter *m, int which, const fl_gpu_sample *g, int signal) {
    if (!fl_gpu_known(g, signal) || !isfinite(g->value[signal]))
        return;
    m->sum[which] += g->value[signal];
    m->count[which]++;
}

static void take_energy(fl_mfp_meter *m, const fl_gpu_sample *g, int64_t time_ns) {
    const double now_j = g->value[FL_GPU_ENERGY_J];
    if (!fl_gpu_known(g, FL_GPU_ENERGY_J) || !isfinite(now_j)) {
        m->counting = 0;
        return;
    }
    if (!fl_gpu_fresh(g, FL_GPU_ENERGY_J))
        return;
    const double stamp = g->value[FL_GPU_ENERGY_NS];
    const double now_ns = fl_gpu_known(g, FL_GPU_ENERGY_NS) && isfinite(stamp) ? stamp : (double)time_ns;
    if (m->counting && now_ns > m->last_ns && now_j >= m->last_j) {
        m->energy_j += now_j - m->last_j;
        m->energy_ns += now_ns - m->last_ns;
    }
    m->last_j = now_j;
    m->last_ns = now_ns;
    m->counting = 1;
}

void fl_mfp_meter_add(fl_mfp_meter *m, const fl_gpu_sample *g, int64_t time_ns) {
    take_energy(m, g, time_ns);
    take(m, FL_MFP_POWER, g, FL_GPU_POWER_W);
    take(m, FL_MFP_UTIL_GPU, g, FL_GPU_UTIL_GPU_PCT);
    take(m, FL_MFP_UTIL_MEM, g, FL_GPU_UTIL_MEM_PCT);
    take(m, FL_MFP_SM, g, FL_GPU_SM_MHZ);
    take(m, FL_MFP_MEM, g, FL_GPU_MEM_MHZ);
}

void fl_mfp_meter_pause(fl_mfp_meter *m) { m->counting = 0; }

double fl_mfp_meter_mean(const fl_mfp_meter *m, int which) {
    if (which == FL_MFP_POWER && m->energy_ns > 0)
        return m->energy_j / m->energy_ns * 1e9;
    return m->count[which] ? m->sum[which] / (double)m->count[which] : (double)NAN;
}
