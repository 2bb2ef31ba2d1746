/* Synthetic workloads, seeded: the same options give the same kernels for ever. */
#pragma once

#include "sim/workload/workload.h"
#include "traces/io/records.h"

typedef struct fl_synth_options {
    uint64_t seed;
    uint64_t kernels;              /* in all, dealt evenly to the streams */
    uint32_t kinds, streams, gpus; /* streams: per GPU */
    double mean_us;                /* of a kernel */
    double gap_us;                 /* mean host time before each */
    double memory;                 /* share of kinds that are memory-bound, 0..1 */
    double sm_demand;              /* of each kind, 0..1; 0 = drawn between 0.2 and 1 */
    double burst;                  /* kernels of one kind in a row, mean: 1 = none */
    bool launches;                 /* record launch times on one host thread per GPU */
} fl_synth_options;

extern const fl_synth_options
    fl_synth_standard; /* 10,000 kernels of 32 kinds on one stream, 200 us, half memory-bound */

/* As files would hold it: a kernel trace at the given clocks, and its kinds. FL_BAD_INPUT with the name of the option
 * that is out of range; so too below. */
fl_status fl_synth_trace(const fl_synth_options *o, double sm_mhz, double mem_mhz, fl_kernel_trace *t, fl_kinds *k,
                         fl_diag *d);

/* The same kernels straight into a workload, without launches: for benchmarks of millions. */
fl_status fl_synth_workload(const fl_synth_options *o, const fl_node_spec *node, uint32_t windows, fl_workload **out,
                            fl_diag *d);

/* A mix of programs: one process per name of the kinds, kernel after kernel of about mean_us for `seconds` when alone,
 * recorded alone (head key "alone"), so that a replay makes them share. Without host time in between. */
fl_status fl_synth_mix(const fl_kinds *kinds, uint64_t seed, double seconds, double mean_us, double sm_mhz,
                       double mem_mhz, fl_kernel_trace *t, fl_diag *d);
