/* What one pull of a bandit's arm cost, from a GPU's counters: EnergyUCB's E_t and UC_t / UU_t (Eq. 4). */
#ifndef FL_BANDIT_METER_H
#define FL_BANDIT_METER_H

#include "policies/policy.h"

typedef struct fl_bandit_base { /* counters of one GPU when the present arm came into force */
    double energy_j, energy_ns, compute_ns, copy_ns;
    int64_t time_ns;
    uint32_t known, spare; /* known: the GPU could be read then */
} fl_bandit_base;

typedef struct fl_bandit_draw {
    double energy_j; /* of all GPUs in one interval */
    double ratio;    /* core over uncore utilisation */
    uint32_t gpus;   /* that it was read from; 0 = nothing could be */
    uint32_t late;   /* GPUs whose energy counter has not moved since */
} fl_bandit_draw;

#define FL_BANDIT_SIGNALS                                                                                              \
    (FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS) | FL_BIT(FL_GPU_COMPUTE_NS) | FL_BIT(FL_GPU_COPY_NS))

/* Remembers where each GPU's counters stand; base: gpu_count. */
void fl_bandit_latch(fl_bandit_base *base, const fl_sample *sample);

/* What has run since, as of one interval. Energy is taken over the counter's own time where that is known: a counter
 * that refreshes every 100 ms does not cover the 10 ms it is read in. */
fl_bandit_draw fl_bandit_read(const fl_bandit_base *base, const fl_sample *sample, double interval_ns);

#endif
