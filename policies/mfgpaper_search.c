#include "policies/mfgpaper_search.h"

#include <math.h>

int32_t fl_mfp_ladder_index(fl_ladder l, double mhz) {
    for (uint32_t i = 0; i < l.count; i++)
        if (l.mhz[i] == mhz)
            return (int32_t)i;
    return FL_MFP_DEFAULT;
}

/* Without a list: every memory clock clearly below the default, but for the lowest of three and more, at which a GPU
 * idles. On the ladder 405, 810, 5001, 9251, 9501 that leaves 5001 and 810. */
static int32_t next_of_ladder(const fl_mfp_params *p, const fl_gpu_facts *facts, int32_t mem) {
    const fl_ladder l = facts->mem;
    const double top = facts->default_mem_mhz > 0 ? facts->default_mem_mhz : fl_ladder_max(l);
    const int32_t lowest = l.count > 2;
    int32_t i = mem == FL_MFP_DEFAULT ? (int32_t)l.count - 1 : mem - 1;
    while (i >= lowest && l.mhz[i] > p->mem_near * top)
        i--;
    return i >= lowest ? i : FL_MFP_DEFAULT;
}

int32_t fl_mfp_next_memory(const fl_mfp_params *p, const fl_gpu_facts *facts, int32_t mem) {
    if (!p->mem_mhz.row_count)
        return next_of_ladder(p, facts, mem);
    int passed = mem == FL_MFP_DEFAULT;
    for (uint32_t i = 0; i < p->mem_mhz.row_count; i++) {
        const int32_t k = fl_mfp_ladder_index(facts->mem, p->mem_mhz.cell[i]);
        if (passed && k != FL_MFP_DEFAULT)
            return k;
        passed |= k != FL_MFP_DEFAULT && k == mem;
    }
    return FL_MFP_DEFAULT;
}

static int32_t gear_at(fl_ladder l, double share) {
    const double gear = rint(share * l.count), top = l.count - 1.0;
    return (int32_t)fmin(fmax(gear, 0), top);
}

int32_t fl_mfp_start_gear(const fl_mfp_params *p, const fl_gpu_facts *facts, double achieved_mhz, int low,
                          double bound_share) {
    const double within = fmin(fmax(bound_share, 0), 1);
    const double share = low ? p->low_start_min + (p->low_start_max - p->low_start_min) * within : p->start;
    const int32_t gear = gear_at(facts->sm, share);
    if (!(achieved_mhz > 0))
        return gear;
    const int32_t achieved = fl_mfp_ladder_index(facts->sm, fl_ladder_up(facts->sm, achieved_mhz));
    return achieved < gear ? achieved : gear;
}

double fl_mfp_bound(const fl_mfp_params *p, double kernels_per_s) {
    const double bound = p->con_perf - (kernels_per_s < p->busy_kernels ? p->tighten : p->tighten_busy);
    return fmax(bound, 1e-6);
}

double fl_mfp_objective(int64_t objective, double power_w, double index) {
    double value = power_w;
    for (int64_t i = FL_MFP_POWER_GOAL; i < objective; i++)
        value *= index;
    return value;
}
