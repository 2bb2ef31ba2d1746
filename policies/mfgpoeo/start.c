#include "policies/mfgpoeo/start.h"

#include <math.h>

static int32_t clamped(double gear, uint32_t gears) { return (int32_t)fmax(0, fmin(gear, gears - 1.0)); }

int32_t fl_mfg_high_gear(uint32_t gears, double share) { return clamped(ceil(share * gears), gears); }

int32_t fl_mfg_nearest_gear(fl_ladder ladder, double mhz) {
    int32_t found = 0;
    for (uint32_t i = 1; i < ladder.count; i++)
        if (fabs(ladder.mhz[i] - mhz) < fabs(ladder.mhz[found] - mhz))
            found = (int32_t)i;
    return found;
}

int32_t fl_mfg_next_memory(uint32_t gears, int32_t gear) {
    const int32_t middle = (int32_t)gears / 2, next = gear == FL_MFG_DEFAULT ? middle : gear - 1;
    return next >= 1 && next >= middle - 1 && next + 1 < (int32_t)gears ? next : FL_MFG_DEFAULT;
}

int fl_mfg_is_low_memory(uint32_t gears, int32_t gear) { return gear != FL_MFG_DEFAULT && gear <= (int32_t)gears / 2; }

int fl_mfg_judge_memory(fl_mfg_memory *m, int32_t gear, double loss, double objective, double con_perf) {
    if (loss > con_perf)
        return 0;
    m->handed = loss;
    if (m->chosen != FL_MFG_DEFAULT && objective > m->objective)
        return 0;
    m->chosen = gear;
    m->objective = objective;
    return 1;
}

int32_t fl_mfg_start_gear(const fl_mfg_start *s) {
    if (!s->memory)
        return fl_mfg_high_gear(s->gears, 0.9);
    if (!s->low || !(s->util_gpu < 95))
        return fl_mfg_high_gear(s->gears, 0.95);
    const int edge = s->util_mem >= 20; /* memory clocks are tried up to here */
    const double share = s->handed < 0.6 ? (edge ? 0.85 : 0.65) : s->handed < 0.9 ? (edge ? 0.8 : 0.7) : 0.9;
    return clamped(round(share * s->gears), s->gears);
}

double fl_mfg_bound(double con_perf, double kernels_per_s) {
    return fmax(con_perf - (kernels_per_s < 2000 ? 0.001 : 0.003), 1e-6);
}
