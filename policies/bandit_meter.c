#include "policies/bandit_meter.h"

#include <math.h>

static int value(const fl_gpu_sample *g, int id, double *out) {
    *out = g->value[id];
    return fl_gpu_known(g, id) && isfinite(*out);
}

void fl_bandit_latch(fl_bandit_base *base, const fl_sample *sample) {
    for (uint32_t i = 0; i < sample->gpu_count; i++) {
        const fl_gpu_sample *g = &sample->gpu[i];
        fl_bandit_base *b = &base[i];
        b->time_ns = sample->time_ns;
        b->known = value(g, FL_GPU_ENERGY_J, &b->energy_j) && value(g, FL_GPU_COMPUTE_NS, &b->compute_ns) &&
                   value(g, FL_GPU_COPY_NS, &b->copy_ns);
        if (!value(g, FL_GPU_ENERGY_NS, &b->energy_ns))
            b->energy_ns = NAN;
    }
}

fl_bandit_draw fl_bandit_read(const fl_bandit_base *base, const fl_sample *sample, double interval_ns) {
    fl_bandit_draw draw = {0};
    double core_ns = 0, uncore_ns = 0;
    for (uint32_t i = 0; i < sample->gpu_count; i++) {
        const fl_gpu_sample *g = &sample->gpu[i];
        const fl_bandit_base *b = &base[i];
        double energy, stamp, compute, copy, span = (double)(sample->time_ns - b->time_ns);
        if (!b->known || !value(g, FL_GPU_ENERGY_J, &energy) || !value(g, FL_GPU_COMPUTE_NS, &compute) ||
            !value(g, FL_GPU_COPY_NS, &copy))
            continue; /* a GPU that cannot be read, or fell off the bus, is left out */
        if (value(g, FL_GPU_ENERGY_NS, &stamp) && isfinite(b->energy_ns))
            span = stamp - b->energy_ns;
        if (!(energy > b->energy_j) || !(span > 0)) {
            draw.late++;
            continue;
        }
        draw.energy_j += (energy - b->energy_j) * (interval_ns / span);
        core_ns += compute - b->compute_ns;
        uncore_ns += copy - b->copy_ns;
        draw.gpus++;
    }
    draw.ratio = draw.gpus && uncore_ns > 0 ? core_ns / uncore_ns : (double)NAN;
    return draw;
}
