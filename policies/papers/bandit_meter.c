/* What one pull of a bandit's arm cost, from a GPU's counters. */
#include "policies/papers/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stdint.h>

static int value(const fl_gpu_sample *g, int id, double *out) {
    *out = g->value[id];
    return fl_gpu_known(g, id) && isfinite(*out);
}

enum { UTILISED = FL_GPU_UTIL_GPU_PCT };

static const uint64_t needed = FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_COMPUTE_NS) | FL_BIT(FL_GPU_COPY_NS);
static const uint64_t needed_instead = FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(UTILISED);

static int has_engines(const fl_gpu_sample *g) {
    double v;
    return value(g, FL_GPU_COMPUTE_NS, &v) && value(g, FL_GPU_COPY_NS, &v);
}

/* The usual case, in one test: all four counters have refreshed, and they are numbers, as then their sum is. Where the
 * sum of numbers is none, counter by counter decides. */
static int all_fresh(const fl_gpu_sample *g) {
    const double *v = g->value;
    return (g->valid & g->fresh & (FL_BANDIT_SIGNALS | FL_BIT(UTILISED))) == FL_BANDIT_SIGNALS &&
           isfinite(v[FL_GPU_ENERGY_J] + v[FL_GPU_ENERGY_NS] + v[FL_GPU_COMPUTE_NS] + v[FL_GPU_COPY_NS]);
}

static int take(fl_bandit_base *b, const fl_gpu_sample *g, uint64_t missing, int id, double *base) {
    if (!(missing & FL_BIT(id)) || !isfinite(g->value[id]))
        return 0;
    *base = g->value[id];
    b->known |= FL_BIT(id);
    return 1;
}

/* Takes the counters that are still without a beginning and have just refreshed. */
static void begin(fl_bandit_base *b, const fl_gpu_sample *g, int64_t now_ns) {
    const uint64_t missing = g->valid & g->fresh & ~b->known;
    take(b, g, missing, FL_GPU_COMPUTE_NS, &b->compute_ns);
    take(b, g, missing, FL_GPU_COPY_NS, &b->copy_ns);
    if (!take(b, g, missing, FL_GPU_ENERGY_J, &b->energy_j))
        return;
    b->time_ns = now_ns;
    if (!value(g, FL_GPU_ENERGY_NS, &b->energy_ns))
        b->energy_ns = NAN;
}

/* Adds utilisations that have just refreshed. The window of the first refresh began before the latch: it only says
 * that the next one is of this pull. */
static void utilise(fl_bandit_base *b, const fl_gpu_sample *g) {
    double core, uncore;
    if (!fl_gpu_fresh(g, UTILISED) || !value(g, UTILISED, &core) || !value(g, FL_GPU_UTIL_MEM_PCT, &uncore))
        return;
    if (b->known & FL_BIT(FL_GPU_UTIL_MEM_PCT)) {
        b->gpu_pct += core;
        b->mem_pct += uncore;
        b->known |= FL_BIT(UTILISED);
    }
    b->known |= FL_BIT(FL_GPU_UTIL_MEM_PCT);
}

/* What a step rarely needs is kept out of the way of the usual case. */
__attribute__((noinline)) static void latch_each(fl_bandit_base *b, const fl_gpu_sample *g, int64_t now_ns) {
    b->known = 0;
    b->gpu_pct = b->mem_pct = 0;
    begin(b, g, now_ns);
    utilise(b, g);
}

void fl_bandit_latch(fl_bandit_base *base, const fl_sample *sample) {
    for (uint32_t i = 0; i < sample->gpu_count; i++) {
        const fl_gpu_sample *g = &sample->gpu[i];
        if (all_fresh(g))
            base[i] = (fl_bandit_base){.energy_j = g->value[FL_GPU_ENERGY_J],
                                       .energy_ns = g->value[FL_GPU_ENERGY_NS],
                                       .compute_ns = g->value[FL_GPU_COMPUTE_NS],
                                       .copy_ns = g->value[FL_GPU_COPY_NS],
                                       .time_ns = sample->time_ns,
                                       .known = needed};
        else
            latch_each(&base[i], g, sample->time_ns);
    }
}

typedef struct spent { /* by one GPU since its beginning */
    double energy_j, span_ns;
    double core, uncore; /* ns, or percent: of all GPUs the same */
} spent;

/* Energy is NAN where the GPU cannot be read, as after it fell off the bus, and 0 where counters are late. */
__attribute__((noinline)) static spent read_each(fl_bandit_base *b, const fl_gpu_sample *g, int64_t now_ns) {
    double energy, stamp, share;
    const int engines = has_engines(g);
    if (!value(g, FL_GPU_ENERGY_J, &energy) || !(engines || value(g, UTILISED, &share)))
        return (spent){.energy_j = NAN};
    if ((b->known & needed) != needed)
        begin(b, g, now_ns);
    if (!engines)
        utilise(b, g);
    const uint64_t all = engines ? needed : needed_instead;
    if ((b->known & all) != all)
        return (spent){0};
    const int stamped = value(g, FL_GPU_ENERGY_NS, &stamp) && isfinite(b->energy_ns);
    return (spent){.energy_j = energy - b->energy_j,
                   .span_ns = stamped ? stamp - b->energy_ns : (double)(now_ns - b->time_ns),
                   .core = engines ? g->value[FL_GPU_COMPUTE_NS] - b->compute_ns : b->gpu_pct,
                   .uncore = engines ? g->value[FL_GPU_COPY_NS] - b->copy_ns : b->mem_pct};
}

fl_bandit_draw fl_bandit_read(fl_bandit_base *base, const fl_sample *sample, double interval_ns) {
    fl_bandit_draw draw = {0};
    double core = 0, uncore = 0;
    for (uint32_t i = 0; i < sample->gpu_count; i++) {
        const fl_gpu_sample *g = &sample->gpu[i];
        const fl_bandit_base *b = &base[i];
        const int usual = all_fresh(g) && b->known == needed && isfinite(b->energy_ns);
        const spent x = usual ? (spent){.energy_j = g->value[FL_GPU_ENERGY_J] - b->energy_j,
                                        .span_ns = g->value[FL_GPU_ENERGY_NS] - b->energy_ns,
                                        .core = g->value[FL_GPU_COMPUTE_NS] - b->compute_ns,
                                        .uncore = g->value[FL_GPU_COPY_NS] - b->copy_ns}
                              : read_each(&base[i], g, sample->time_ns);
        if (isnan(x.energy_j))
            continue;
        if (!(x.energy_j > 0) || !(x.span_ns > 0)) {
            draw.late++;
            continue;
        }
        draw.energy_j += x.energy_j * (interval_ns / x.span_ns);
        core += x.core;
        uncore += x.uncore;
        draw.gpus++;
    }
    draw.ratio = draw.gpus && uncore > 0 ? core / uncore : (double)NAN;
    return draw;
}
