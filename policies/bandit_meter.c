#include "policies/bandit_meter.h"

#include <math.h>

static int value(const fl_gpu_sample *g, int id, double *out) {
    *out = g->value[id];
    return fl_gpu_known(g, id) && isfinite(*out);
}

static const uint64_t needed = FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_COMPUTE_NS) | FL_BIT(FL_GPU_COPY_NS);

/* Takes the counters that are still without a beginning and have just refreshed. */
static void begin(fl_bandit_base *b, const fl_gpu_sample *g, int64_t now_ns) {
    double *const base[] = {&b->energy_j, &b->compute_ns, &b->copy_ns};
    static const int id[] = {FL_GPU_ENERGY_J, FL_GPU_COMPUTE_NS, FL_GPU_COPY_NS};
    for (int k = 0; k < 3; k++) {
        if ((b->known & FL_BIT(id[k])) || !fl_gpu_fresh(g, id[k]) || !value(g, id[k], base[k]))
            continue;
        b->known |= FL_BIT(id[k]);
        if (id[k] != FL_GPU_ENERGY_J)
            continue;
        b->time_ns = now_ns;
        if (!value(g, FL_GPU_ENERGY_NS, &b->energy_ns))
            b->energy_ns = NAN;
    }
}

void fl_bandit_latch(fl_bandit_base *base, const fl_sample *sample) {
    for (uint32_t i = 0; i < sample->gpu_count; i++) {
        base[i].known = 0;
        begin(&base[i], &sample->gpu[i], sample->time_ns);
    }
}

fl_bandit_draw fl_bandit_read(fl_bandit_base *base, const fl_sample *sample, double interval_ns) {
    fl_bandit_draw draw = {0};
    double core_ns = 0, uncore_ns = 0;
    for (uint32_t i = 0; i < sample->gpu_count; i++) {
        const fl_gpu_sample *g = &sample->gpu[i];
        fl_bandit_base *b = &base[i];
        double energy, stamp, compute, copy;
        if (!value(g, FL_GPU_ENERGY_J, &energy) || !value(g, FL_GPU_COMPUTE_NS, &compute) ||
            !value(g, FL_GPU_COPY_NS, &copy))
            continue; /* a GPU that cannot be read, or fell off the bus, is left out */
        begin(b, g, sample->time_ns);
        if (b->known != needed) {
            draw.late++;
            continue;
        }
        double span = (double)(sample->time_ns - b->time_ns);
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
