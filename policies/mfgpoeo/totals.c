#include "policies/mfgpoeo/totals.h"

#include <math.h>

void fl_mfg_sample(fl_mfg_totals *t, const fl_gpu_sample *g) {
    static const int signal[FL_MFG_MEANS] = {[FL_MFG_POWER] = FL_GPU_POWER_W,
                                             [FL_MFG_SM] = FL_GPU_SM_MHZ,
                                             [FL_MFG_MEM] = FL_GPU_MEM_MHZ,
                                             [FL_MFG_UTIL_GPU] = FL_GPU_UTIL_GPU_PCT,
                                             [FL_MFG_UTIL_MEM] = FL_GPU_UTIL_MEM_PCT};
    for (int i = 0; i < FL_MFG_MEANS; i++)
        if (!fl_gpu_known(g, signal[i]) || !isfinite(g->value[signal[i]]))
            return;
    if (!(g->value[FL_GPU_UTIL_GPU_PCT] > 0))
        return;
    for (int i = 0; i < FL_MFG_MEANS; i++)
        t->sum[i] += i == FL_MFG_POWER ? floor(g->value[signal[i]]) : g->value[signal[i]];
    t->samples++;
}

void fl_mfg_totals_merge(fl_mfg_totals *old, const fl_mfg_totals *now, double d) {
    old->seconds = now->seconds + d * old->seconds;
    old->kernels = now->kernels + d * old->kernels;
    old->samples = now->samples + d * old->samples;
    for (int i = 0; i < FL_MFG_MEANS; i++)
        old->sum[i] = now->sum[i] + d * old->sum[i];
}

double fl_mfg_mean_of(const fl_mfg_totals *t, int which) { return t->samples > 0 ? t->sum[which] / t->samples : 0; }

double fl_mfg_apart(double a, double b) { return a + b == 0 ? 0 : fabs(a - b) / (a + b); }
