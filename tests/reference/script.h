/* A GPU of numbers alone, drawn from a seed: it answers each set with readings and activity records that a real one
 * would seldom give. It reaches in seconds what a simulated application reaches once in a thousand runs. */
#pragma once

#include "policies/policy.h"

#include <stdbool.h>

#include "policies/random.h"

#define REF_SCRIPT_STREAMS 3
#define REF_SCRIPT_KINDS 24
#define REF_SCRIPT_RECORDS 4096 /* of one step */

typedef struct ref_script {
    fl_random random;
    const fl_gpu_facts *gpu;
    fl_kernel_kind kind[REF_SCRIPT_KINDS];
    double mean_ns[REF_SCRIPT_KINDS], gap_ns[REF_SCRIPT_KINDS];
    uint32_t streams;

    /* what the clocks cost: loss = 5 % at gear_at_bound, in proportion; and at 5001 and 810 MHz */
    double gear_at_bound, memory_loss[2], noise, gap_noise;
    double plateau;                            /* this loss at whatever lower clock instead; 0: none */
    double util, mem_util, power_w, limit_mhz; /* limit_mhz: of the measured clock, as a power limit would */
    double util_noise,
        idle_share[REF_SCRIPT_STREAMS]; /* idle_share: gaps of a stream besides, by its kernels' lengths */
    double droop_mhz;                   /* the measured clock stands so far below the set one */
    int64_t late_ns;                    /* when the last of several streams turns to kinds of its own; 0: never */
    bool whole_numbers;                 /* utilisation without any variation */

    /* for some seconds at a time */
    int64_t regime_ends_ns;
    double slower, gap_longer, util_now, mem_util_now, power_now_w, limit_now_mhz;
    uint32_t first_kind[REF_SCRIPT_STREAMS], kinds; /* which kinds run */
    uint32_t wait_steps;                            /* no kernel for so many steps */
    bool busy_wait;                                 /* and the GPU says that it is busy */

    int64_t time_ns, stream_at_ns[REF_SCRIPT_STREAMS];
    fl_gpu_sample sample;
    fl_kernel_record record[REF_SCRIPT_RECORDS];
    size_t record_count;
} ref_script;

void ref_script_open(ref_script *s, uint64_t seed, const fl_gpu_facts *gpu);

/* The 100 ms that end at time_ns, under the clocks that were set (FL_DEFAULT: none): fills sample and records. */
void ref_script_advance(ref_script *s, int64_t time_ns, double sm_mhz, double mem_mhz);
