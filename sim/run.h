/* One policy over one workload on one simulated node. */
#ifndef FL_RUN_H
#define FL_RUN_H

#include "sim/instance.h"
#include "sim/ledger.h"
#include "sim/fault.h"
#include "sim/readout.h"
#include "sim/service.h"

/* Called after each step with what the policy saw and what became of its command; anything but FL_OK ends the run. */
typedef fl_status (*fl_step_function)(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d);

/* Called at each point of a regular grid with the truth, for plots over time. */
typedef fl_status (*fl_truth_function)(void *user, const fl_node *node, int64_t t_ps, fl_diag *d);

/* Called at the same points with what every GPU's sensors show there; the policy's own readings are not changed. */
typedef fl_status (*fl_watch_function)(void *user, const fl_gpu_sample *gpu, uint32_t count, int64_t t_ps, fl_diag *d);

typedef struct fl_run_options {
    const fl_workload *w;
    fl_rates *rates;
    const fl_node_spec *spec;
    const fl_facts *facts;   /* of spec; its seed seeds the policy */
    const fl_policy *policy; /* NULL: nothing is set, the driver's default holds */
    /* The host reads and sets as a live host of that library does, and looks first whether it can. NULL: it sees what
     * the sensors show. The policy is to be that of fl_policy_where. */
    const fl_readout *reader;
    const fl_layer *layer;
    size_t layer_count;
    int64_t min_set_interval_ns;
    double first_sm_mhz, first_mem_mhz; /* without a policy: static clocks from time 0; 0 = the default */
    bool streams_only;                  /* see fl_node_options */
    bool records_free;                  /* kernel records take no time, whatever the device says */
    const fl_fault *fault;              /* fault_count: injected into what the policy sees and sets */
    size_t fault_count;
    fl_step_function on_step;
    fl_truth_function on_truth;
    fl_watch_function on_watch;
    uint64_t watch_needs; /* FL_BIT(FL_GPU_...) of the signals that on_watch reads */
    int64_t truth_ns;     /* spacing of on_truth and on_watch; 0 = never */
    void *user;
} fl_run_options;

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
    uint64_t kernels, switches, hash; /* hash: of energy and position at each step */
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
    int64_t policy_cost_ps;                         /* time the host spent reading and setting */
    int64_t *mark_ps;                               /* all streams' marks, one after the other */
    size_t mark_count;
    fl_residence *residence;
    size_t residence_count;
    double *class_energy_j, *class_time_s; /* class_count */
    uint32_t class_count;
    fl_service service; /* requests, iterations, barriers */
} fl_run_result;

fl_status fl_run(const fl_run_options *o, fl_run_result *r, fl_diag *d);
void fl_run_result_free(fl_run_result *r);

#endif
