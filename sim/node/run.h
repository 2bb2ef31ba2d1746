/* One policy over one workload on one simulated node. */
#pragma once

#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    const char *label; /* of the policy, see fl_instance_options; NULL = none */
    const fl_layer *layer;
    size_t layer_count;
    int64_t min_set_interval_ns;
    double first_sm_mhz, first_mem_mhz; /* without a policy: static clocks from time 0; 0 = the default */
    fl_path path;                       /* see fl_node_options */
    bool hashed;                        /* hash of the result is asked for: it takes a part of each step */
    bool classes;                       /* class_energy_j and class_time_s of the result are asked for */
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

/* Tables of sums that runs of one workload share (sim/advance/advance.h) take at most so many bytes in the process: 1
 * GiB until this is called. Those that are there stay. No result depends on it. */
void fl_run_tables_most(int64_t bytes);

fl_status fl_run(const fl_run_options *o, fl_run_result *r, fl_diag *d);
