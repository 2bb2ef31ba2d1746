/* What a run that has ended is told by: totals, residences, marks, kinds, processes, the host's CPU. */
#pragma once

#include "sim/instance/instance.h"
#include "sim/node/ledger.h"
#include "sim/serving/served.h"
#include "sim/node/service.h"

typedef struct fl_residence { /* share of a GPU's time at an SM clock, for tables and plots */
    uint32_t gpu, sm_mhz, mem_mhz;
    int64_t ps;
} fl_residence;

typedef struct fl_process_end {
    uint32_t gpu;
    int32_t process;
    int64_t end_ps;
} fl_process_end;

typedef struct fl_cpu_residence {
    uint32_t mhz;
    int64_t ps;
} fl_cpu_residence;

typedef struct fl_run_result {
    int64_t makespan_ps;
    fl_ledger ledger;
    fl_wide energy_fj;                            /* node: GPUs and host */
    fl_wide score_fj;                             /* what scores use: the GPUs', on an APU the node's */
    double energy_j, gpu_energy_j, node_energy_j; /* energy_j: of score_fj */
    double cpu_energy_j;
    /* Of score_fj too. peak: of each part in it (GPUs; an APU's CPU and static power) the largest power, added: one
     * that occurred where there is one part (peak_parts), else at most so much. */
    double makespan_s, mean_power_w, peak_power_w;
    uint32_t peak_parts;
    uint64_t kernels, switches;
    uint64_t hash; /* of energy and position at each step, where it was asked for; else a constant */
    fl_instance_counts counts;
    uint64_t ignored_sets; /* of controls that this simulated node does not have */
    uint64_t refused_sets; /* by an injected fault */
    uint64_t cpu_switches;
    int64_t wall_held_ps, heat_held_ps; /* GPU time below what was asked for, for either reason, all GPUs */
    double hottest_c, end_c; /* of the hottest GPU: at any time, and at the end; NAN where heat is not modelled */
    fl_process_end *process; /* process_count: when each process of each GPU ended */
    size_t process_count;
    fl_cpu_residence *cpu; /* cpu_count: states visited */
    size_t cpu_count;
    double last_sm_mhz, last_mem_mhz, last_cpu_mhz; /* at the end: locks of GPU 0 (the driver's default where none), and
                                                       the CPU's clock; NAN where the CPU is not modelled */
    int64_t policy_cost_ps; /* time the host, or the busiest of several, spent reading and setting */
    int64_t *mark_ps;       /* all streams' marks, one after the other */
    size_t mark_count;
    fl_residence *residence;
    size_t residence_count;
    double *class_energy_j, *class_time_s; /* class_count, where asked for (see fl_run_options); else NULL */
    uint32_t class_count;
    fl_service service;      /* requests, iterations, barriers */
    fl_served_result served; /* where the workload serves (serving.h) */
} fl_run_result;

/* Fills *r from a node whose work has ended, but for what the loop and the policy's instance count. Its arrays belong
 * to *r, also on failure. classes: those too that take a pass over what was jumped over (prefix.h). FL_NO_MEMORY, or
 * FL_MODEL_FAULT where the ledger does not close. */
fl_status fl_run_collect(fl_node *node, const fl_workload *w, const fl_node_spec *spec, bool classes, fl_run_result *r,
                         fl_diag *d);
void fl_run_result_free(fl_run_result *r);
