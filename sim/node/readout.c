#include "sim/node/readout.h"

#include <math.h>

/* Refresh: how long a sensor needs at least (notes on each GPU's sensors: 100 ms power, 1/6 s utilisation). */
#define POWER_NS 100000000
#define UTILISATION_NS 166666667

const fl_readout fl_readout_nvml = {
    "nvml",
    {[FL_GPU_POWER_W] = {"nvmlDeviceGetPowerUsage", 1000, POWER_NS},
     [FL_GPU_POWER_INSTANT_W] = {"nvmlDeviceGetFieldValues", 1000, POWER_NS},
     [FL_GPU_ENERGY_J] = {"nvmlDeviceGetTotalEnergyConsumption", 1000, FL_SEEN_MOVES},
     [FL_GPU_ENERGY_NS] = {"nvmlDeviceGetTotalEnergyConsumption", 1, FL_SEEN_MOVES}, /* when it was seen to move */
     [FL_GPU_UTIL_GPU_PCT] = {"nvmlDeviceGetUtilizationRates", 1, UTILISATION_NS},
     [FL_GPU_UTIL_MEM_PCT] = {"nvmlDeviceGetUtilizationRates", 1, UTILISATION_NS},
     [FL_GPU_SM_ACTIVE_PCT] = {"nvmlGpmMetricsGet", 1, POWER_NS}, /* Hopper and later */
     [FL_GPU_DRAM_ACTIVE_PCT] = {"nvmlGpmMetricsGet", 1, POWER_NS},
     [FL_GPU_SM_MHZ] = {"nvmlDeviceGetClockInfo", 1, 0},
     [FL_GPU_MEM_MHZ] = {"nvmlDeviceGetClockInfo", 1, 0},
     [FL_GPU_TEMP_C] = {"nvmlDeviceGetTemperatureV", 1, 0},
     [FL_GPU_THROTTLE] = {"nvmlDeviceGetCurrentClocksEventReasons", 1, 0},
     [FL_GPU_POWER_VIOLATION_NS] = {"nvmlDeviceGetFieldValues", 1, 0},
     [FL_GPU_THERMAL_VIOLATION_NS] = {"nvmlDeviceGetFieldValues", 1, 0}}};

uint64_t fl_readout_offers(const fl_readout *r) {
    uint64_t bits = 0;
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++)
        bits |= r->rule[id].call ? FL_BIT(id) : 0;
    return bits;
}

fl_policy fl_policy_where(const fl_policy *p, uint64_t offers) {
    fl_policy here = *p;
    here.gpu_uses &= offers;
    const uint64_t missing = p->gpu_needs & ~offers;
    if (missing && p->gpu_instead && !(p->gpu_instead & ~offers))
        here.gpu_needs = (p->gpu_needs & offers) | p->gpu_instead;
    return here;
}

double fl_readout_whole(const fl_readout *r, int id, double value) {
    return (double)llround(value * r->rule[id].per_unit) / r->rule[id].per_unit;
}

/* Profiling counters are windows that the host makes itself; no host that is simulated here does (sim/README.md). */
static bool windowed(int id) { return id == FL_GPU_SM_ACTIVE_PCT || id == FL_GPU_DRAM_ACTIVE_PCT; }

void fl_readout_show(const fl_readout *r, fl_readout_view *view, uint64_t needs, int64_t t_ns, const fl_gpu_sample *raw,
                     fl_gpu_sample *out) {
    const fl_gpu_sample from = *raw; /* out may be raw */
    *out = (fl_gpu_sample){0};
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++) {
        if (!(from.valid >> id & 1) || !r->rule[id].call || windowed(id) || id == FL_GPU_ENERGY_NS)
            continue;
        fl_seen_put(&view->last[id], out, id, fl_readout_whole(r, id, from.value[id]), t_ns, r->rule[id].refresh_ns);
        if (id == FL_GPU_ENERGY_J)
            fl_seen_put(&view->last[FL_GPU_ENERGY_NS], out, FL_GPU_ENERGY_NS, (double)view->last[id].fresh_ns, t_ns,
                        r->rule[FL_GPU_ENERGY_NS].refresh_ns);
    }
    if (from.valid >> FL_GPU_KERNELS & 1) { /* counted from records, at each reading */
        out->value[FL_GPU_KERNELS] = from.value[FL_GPU_KERNELS];
        out->valid |= FL_BIT(FL_GPU_KERNELS);
        out->fresh |= FL_BIT(FL_GPU_KERNELS);
    }
    out->valid &= needs;
    out->fresh &= needs;
}
