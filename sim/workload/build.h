/* Workloads from what traces and tables hold. */
#pragma once

#include "sim/workload/sweep_ops.h"
#include "sim/workload/workload.h"
#include "traces/io/records.h"

typedef struct fl_build_options {
    uint32_t windows;      /* of work, for the worst-window slowdown; 0 = none */
    const fl_kinds *kinds; /* how kinds of kernels load the device; NULL = none known */
    const char *assume;    /* kernels without a row in kinds: "compute", "memory", "balanced"; NULL = refuse them */
} fl_build_options;

/* From a kernel trace. GPUs are the trace's devices in ascending order. Where the recorded kernels of a GPU overlap so
 * that they must have shared it, their work is what they did at the rates that sharing gave them, so that a replay at
 * the clocks of the recording takes the recorded time. */
fl_status fl_build_trace(fl_workload **out, const char *name, const fl_kernel_trace *t, const fl_node_spec *node,
                         const fl_build_options *o, fl_diag *d);

/* Names of the workloads of a sweep in order of appearance: indices into s->names; the caller frees *names. */
fl_status fl_sweep_workloads(const fl_sweep *s, uint32_t **names, size_t *count, fl_diag *d);

/* What a fit found of a workload (harness/chip/sweep_chip.h makes it). */
typedef struct fl_sweep_law {
    bool predicted;                /* the sweep's rows are predictions for the whole ladder; else they were measured */
    double sm_min_mhz, sm_max_mhz; /* where the device was calibrated */
    double time_pct, power_pct;    /* mean absolute errors to expect where nobody measured; NAN: all was */
    /* Per name of the sweep, a kernel's tc, tm, tl at its device's reference clocks ref_sm_mhz and ref_mem_mhz; all 0
     * where they are not known. */
    fl_load *load;
} fl_sweep_law;

/* From one workload of a sweep: its kernels run one after the other, cut into ops (sim/workload/sweep_ops.h).
 * Time and power come from the rows, by monotone interpolation between them. Of measured rows those at the platform's
 * default memory clock (or the only one) and at the highest power cap count; of predicted ones all. law NULL: nothing is known but the rows. */
fl_status fl_build_sweep(fl_workload **out, const char *file, const fl_sweep *s, uint32_t name, const fl_sweep_law *law,
                         const fl_sweep_replay *replay, const fl_node_spec *node, fl_diag *d);
