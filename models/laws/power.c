#include "models/laws/power.h"

#include <math.h>

static fl_model_status to_mw(double watts, int32_t *mw) {
    if (isnan(watts) || watts < 0)
        return FL_MODEL_INVALID;
    if (watts * 1000 > FL_POWER_MAX_MW)
        return FL_MODEL_OVERFLOW;
    *mw = (int32_t)lround(watts * 1000);
    return FL_MODEL_OK;
}

static fl_model_status voltage_at(const fl_device *dev, double sm_mhz, double *volts) {
    if (!dev->voltage || !(sm_mhz > 0))
        return FL_MODEL_INVALID;
    fl_model_status s = fl_curve_at(dev->voltage, sm_mhz, 0, volts);
    *volts *= 1 + dev->v_excess;
    return s == FL_MODEL_OK && !(*volts > 0) ? FL_MODEL_INVALID : s;
}

/* B0 is given per memory clock, and is linear between two of them. */
static fl_model_status idle_memory_at(const fl_device *dev, double mem_mhz, double *watts) {
    if (dev->mem_count == 0 || !dev->b0_w || !(mem_mhz > 0))
        return FL_MODEL_INVALID;
    for (uint32_t i = 0; i < dev->mem_count; i++) {
        const double here = dev->mem_mhz[i];
        if (mem_mhz > here)
            continue;
        if (mem_mhz < here && i == 0)
            return FL_MODEL_RANGE;
        *watts = dev->b0_w[i];
        if (mem_mhz < here) {
            const double below = dev->mem_mhz[i - 1];
            *watts = dev->b0_w[i - 1] + (dev->b0_w[i] - dev->b0_w[i - 1]) * ((mem_mhz - below) / (here - below));
        }
        return FL_MODEL_OK;
    }
    return FL_MODEL_RANGE;
}

fl_model_status fl_power_dynamic(const fl_device *dev, double alpha, double beta, double sm_mhz, double mem_mhz,
                                 double *sm_w, double *memory_w) {
    double v = 0;
    if (!(alpha >= 0) || !(beta >= 0) || !(mem_mhz > 0) || !(dev->default_mem_mhz > 0))
        return FL_MODEL_INVALID;
    fl_model_status s = voltage_at(dev, sm_mhz, &v);
    if (s != FL_MODEL_OK)
        return s;
    *sm_w = alpha * dev->a_w * v * v * (sm_mhz / 1000);
    *memory_w = beta * dev->b_w * (mem_mhz / dev->default_mem_mhz);
    return FL_MODEL_OK;
}

fl_model_status fl_base_make(const fl_device *dev, double sm_mhz, double mem_mhz, fl_base *base) {
    double v = 0, idle_memory = 0;
    fl_base b = {0};
    fl_model_status s = voltage_at(dev, sm_mhz, &v);
    if (s == FL_MODEL_OK)
        s = idle_memory_at(dev, mem_mhz, &idle_memory);
    if (s == FL_MODEL_OK)
        s = to_mw(dev->c_w * v, &b.static_mw);
    if (s == FL_MODEL_OK)
        s = to_mw(idle_memory, &b.memory_mw);
    if (s == FL_MODEL_OK)
        s = to_mw(dev->a0_w * v * v * (sm_mhz / 1000), &b.tree_mw);
    if (s != FL_MODEL_OK)
        return s;
    const int64_t total = (int64_t)b.static_mw + b.memory_mw + b.tree_mw;
    if ((double)total > FL_POWER_MAX_MW)
        return FL_MODEL_OVERFLOW;
    b.total_mw = (int32_t)total;
    *base = b;
    return FL_MODEL_OK;
}
