#include "sim/gpu/actuator.h"

#include <math.h>
#include <string.h>

static uint32_t index_of(const int32_t *mhz, uint32_t count, double value) {
    int i = fl_ladder_index(mhz, count, value);
    return i < 0 ? count - 1 : (uint32_t)i;
}

void fl_actuator_open(fl_actuator *a, const fl_device *dev) {
    a->dev = dev;
    a->count = 0;
    a->sm_default = index_of(dev->sm_mhz, dev->sm_count, dev->default_sm_mhz);
    a->mem_default = index_of(dev->mem_mhz, dev->mem_count, dev->default_mem_mhz);
}

void fl_actuator_set(fl_actuator *a, int64_t called_ps, double sm_mhz, double mem_mhz) {
    fl_pending p = {.at_ps = called_ps + a->dev->actuator.settle_ns * FL_PS_PER_NS, .sm = -1, .mem = -1};
    if (!isnan(sm_mhz))
        p.sm = (int32_t)(sm_mhz < 0 ? a->sm_default : index_of(a->dev->sm_mhz, a->dev->sm_count, sm_mhz));
    if (!isnan(mem_mhz))
        p.mem = (int32_t)(mem_mhz < 0 ? a->mem_default : index_of(a->dev->mem_mhz, a->dev->mem_count, mem_mhz));
    if (a->count < FL_PENDING_MAX) {
        a->queue[a->count++] = p;
        return;
    }
    fl_pending *last = &a->queue[FL_PENDING_MAX - 1];
    if (p.sm < 0)
        p.sm = last->sm;
    if (p.mem < 0)
        p.mem = last->mem;
    *last = p;
}

bool fl_actuator_take(fl_actuator *a, int64_t t, uint32_t *sm, uint32_t *mem) {
    uint32_t taken = 0, was_sm = *sm, was_mem = *mem;
    if (!a->count)
        return false;
    while (taken < a->count && a->queue[taken].at_ps <= t) {
        if (a->queue[taken].sm >= 0)
            *sm = (uint32_t)a->queue[taken].sm;
        if (a->queue[taken].mem >= 0)
            *mem = (uint32_t)a->queue[taken].mem;
        taken++;
    }
    a->count -= taken;
    memmove(a->queue, a->queue + taken, a->count * sizeof *a->queue);
    return *sm != was_sm || *mem != was_mem;
}
