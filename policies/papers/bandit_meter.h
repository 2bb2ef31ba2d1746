/* What one pull of a bandit's arm cost, from a GPU's counters: EnergyUCB's E_t and UC_t / UU_t (Eq. 4). */
#pragma once

#include "policies/policy.h"

typedef struct fl_bandit_base { /* one GPU's counters at their first refresh since the latch */
    double energy_j, energy_ns, compute_ns, copy_ns;
    double gpu_pct, mem_pct; /* where there is no such counter: sums of the utilisations that refreshed since then */
    int64_t time_ns; /* of the look that found the energy */
    uint64_t known;  /* FL_BIT(FL_GPU_...) of those that have refreshed since */
} fl_bandit_base;

typedef struct fl_bandit_draw {
    double energy_j; /* of all GPUs in one interval */
    double ratio;    /* core over uncore utilisation */
    uint32_t gpus;   /* that it was read from; 0 = nothing could be */
    uint32_t late;   /* GPUs that can be read, and whose counters do not tell yet what has run since */
} fl_bandit_draw;

#define FL_BANDIT_SIGNALS                                                                                              \
    (FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS) | FL_BIT(FL_GPU_COMPUTE_NS) | FL_BIT(FL_GPU_COPY_NS))
/* Where engines have no counters: the share of time with a kernel resident stands in for the core's use, that with the
 * memory controller active for the uncore's. */
#define FL_BANDIT_INSTEAD (FL_BIT(FL_GPU_UTIL_GPU_PCT) | FL_BIT(FL_GPU_UTIL_MEM_PCT))

/* Begins a measurement; base: gpu_count. Each counter counts from its first refresh from here on: what it shows until
 * then was counted before, at another clock. */
void fl_bandit_latch(fl_bandit_base *base, const fl_sample *sample);

/* What has run since, as of one interval. To be called at each look, for it is what finds the first refreshes. Energy
 * is taken over the counter's own time where that is known: a counter that refreshes every 100 ms does not cover the
 * 10 ms it is read in. */
fl_bandit_draw fl_bandit_read(fl_bandit_base *base, const fl_sample *sample, double interval_ns);
