/* One simulated node, and a run of one policy over one workload on it.
 *
 * fl_run is what most callers want: it opens a node and an instance (sim/instance), advances the node from step to
 * step, lets the policy read sensors and set controls, and fills fl_run_result, which the caller frees with
 * fl_run_result_free. A host of its own (the emulated driver, sim/oracle) uses fl_node instead: fl_node_open,
 * fl_node_advance to an instant, fl_node_read, fl_node_set, fl_node_close. At a boundary (island.c) clock sets and
 * power limits settle, the power limit and heat look, and sensors take their sums.
 *
 * Workload, rates, node and facts are borrowed. Errors: FL_BAD_INPUT, FL_NO_MEMORY, what a callback returned, and
 * FL_MODEL_FAULT where the ledger does not close. Callbacks of fl_run_options see the true course. */
#pragma once

#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- what a host reads through a vendor's library ----
 *
 * One table for each library says which signals have a call, in which steps a value counts, and when it counts as
 * refreshed. The library's back end (harness/live/vendor), its emulator and a simulated host (fl_run) share the table,
 * so that they cannot differ. */

typedef struct fl_readout_rule { /* of one signal */
    const char *call;            /* the library's; NULL = it has none */
    double per_unit;             /* the library's units in one unit of the contract */
    int64_t refresh_ns;          /* as fl_seen_put */
} fl_readout_rule;

typedef struct fl_readout {
    const char *name;
    fl_readout_rule rule[FL_GPU_SIGNAL_COUNT];
} fl_readout;

/* NVML. The number of kernels comes from activity records. */
extern const fl_readout fl_readout_nvml;

/* Time between the first and the second look of a live host that missed a signal at the first
 * (harness/live/guard/guard.h). */
#define FL_READOUT_APART_NS INT64_C(120000000)

/* Return FL_BIT(FL_GPU_...) of the signals that the library has a call for. */
uint64_t fl_readout_offers(const fl_readout *r);

/* ---- the node ---- */

typedef struct fl_node fl_node;

fl_wide fl_node_energy_fj(const fl_node *n); /* GPUs, CPU and the rest of the node, so far */

typedef struct fl_node_options {
    const fl_workload *w;
    fl_rates *rates;
    const fl_node_spec *spec;
    uint64_t seed;
    uint64_t gpu_needs, host_needs;                             /* signals that will be read */
    uint64_t server_needs;                                      /* likewise, where the workload serves */
    bool batches;                                               /* the caller will take records of engines' steps */
    uint32_t (*route)(void *user, const fl_route_query *query); /* of split servers; NULL: the default */
    void *route_user;
    bool counted;                       /* a collector counts kernels all along, else only while records are on */
    const int64_t *lost_at_ns;          /* per GPU: when it falls off the bus, INT64_MAX = never; NULL = none does */
    fl_path path;                       /* for tests; FL_PATH_AUTO: as fl_path_force says */
    double first_sm_mhz, first_mem_mhz; /* clocks at time 0; 0 = the driver's default */
    double first_decode_mhz;            /* instead on the GPUs of decode servers; 0 = as the others */
} fl_node_options;

fl_status fl_node_open(fl_node **out, const fl_node_options *o, fl_diag *d);
void fl_node_close(fl_node *n);

/* Advance every GPU to `until` (ps), or to the instant at which all work is done, whichever is earlier. No sensor is
 * read in between. */
fl_status fl_node_advance(fl_node *n, int64_t until, fl_diag *d);
/* Let each later advance stop at the next instant at which any GPU passes an iteration marker; off: no longer. Sensors
 * then make all of their boundaries, since the instants of reading are not known before. */
void fl_node_stop_at_markers(fl_node *n, bool on);
/* Return whether the last advance stopped at a marker, which was passed at fl_node_now. */
bool fl_node_woken(const fl_node *n);
int64_t fl_node_now(const fl_node *n);
bool fl_node_done(const fl_node *n);

/* Read the sensors of a GPU as software sees them now. remember: freshness counts from here. */
void fl_node_read(fl_node *n, uint32_t gpu, bool remember, fl_gpu_sample *out);

/* Set clocks of one GPU by a call that ends at called_ps >= now; see fl_actuator_set. */
void fl_node_set(fl_node *n, uint32_t gpu, int64_t called_ps, double sm_mhz, double mem_mhz);
/* Set the power limit of one board, W, by a call that ends at called_ps; FL_DEFAULT = the board's own. Returns false
 * where the board has no controller for it. sim/gpu/control.c enforces the limit. */
bool fl_node_set_limit(fl_node *n, uint32_t gpu, int64_t called_ps, double watts);
/* Return the power limit in force, W; NAN = none. */
double fl_node_limit_w(const fl_node *n, uint32_t gpu);

/* Switch activity records on or off at no cost to the program: for observers from outside and runs without that cost.
 */
void fl_node_records_free(fl_node *n, uint32_t gpu, bool on);
/* Switch only the cost of activity records on or off: for a collector that always records, under a host that charges
 * for the records that it shows. */
void fl_node_records_slow(fl_node *n, uint32_t gpu, bool slow);

/* Return the kernels finished on all GPUs since the last call, by end. Valid until the next advance. */
fl_status fl_node_take_records(fl_node *n, const fl_kernel_record **record, size_t *count, fl_diag *d);

/* Return what a server has waiting and running now: the truth, for plots over time. */
fl_batching_counts fl_node_batching(const fl_node *n, uint32_t server);

uint32_t fl_node_gpu_count(const fl_node *n);
const fl_gpu *fl_node_gpu(const fl_node *n, uint32_t gpu); /* truth, for scores */
uint64_t fl_node_switches(const fl_node *n); /* changes of a lock or the default, not by power limit or heat */

/* Return the instants (ps) at which a stream passed its iteration markers; *count: how many so far. */
const int64_t *fl_node_iterations(const fl_node *n, uint32_t stream, uint64_t *count);

/* ---- the ledger: the energy of a run in parts ----
 *
 * Each part is the sum of residence times multiplied by the rows' integer power. The parts sum exactly to the running
 * total of the node; otherwise the run is an error. */

#define FL_PARTS(X)                                                                                                    \
    X(STATIC, static, "C V while a context is open")                                                                   \
    X(LEAKAGE, leakage, "what heat adds")                                                                              \
    X(SM, sm, "alpha A V^2 f")                                                                                         \
    X(MEMORY, memory, "beta B m/m_ref, and B0(m) of idle memory")                                                      \
    X(CLOCK_TREE, clock_tree, "A0 V^2 f while a context is open")                                                      \
    X(UNSPLIT, unsplit, "above the base, from a measured table that does not say which part drew it")                  \
    X(CLOSED, closed, "boards without a context")                                                                      \
    X(CPU, cpu, "host CPU")                                                                                            \
    X(COMMUNICATION, communication, "copies between host and GPU")                                                     \
    X(NODE_STATIC, node_static, "the node without its GPUs")

#define FL_ROW_PART_ID(id, name, meaning) FL_PART_##id,
typedef enum fl_part { FL_PARTS(FL_ROW_PART_ID) FL_PART_COUNT } fl_part;
extern const char *const fl_part_names[FL_PART_COUNT];

typedef struct fl_ledger {
    fl_wide part_fj[FL_PART_COUNT];
    fl_wide gpu_fj;  /* sum of the parts of all GPUs */
    fl_wide host_fj; /* sum of the host's parts: CPU, communication, the rest of the node */
} fl_ledger;

/* Add one GPU's residence times multiplied by its parts to *l. FL_MODEL_FAULT where the result differs from the GPU's
 * running sum by even one fJ. */
fl_status fl_ledger_add_gpu(fl_ledger *l, const fl_gpu *g, fl_diag *d);

/* ---- results: requests with latencies, iterations with times, time lost at barriers; then the whole run ---- */

typedef struct fl_request {
    int64_t arrival_ps, start_ps, done_ps; /* start: the request has arrived and the one before is done */
} fl_request;

typedef struct fl_iteration { /* from one marker of a stream to its next, never across requests */
    uint32_t gpu;
    int32_t process, stream;
    int64_t start_ps, end_ps;
} fl_iteration;

typedef struct fl_service {
    fl_request *request; /* request_count, in the order of arrival */
    size_t request_count;
    fl_times latency;        /* done - arrival, queueing included */
    double load;             /* mean time of service x rate of arrival; NAN for fewer than two requests */
    size_t backlog_max;      /* most requests that had arrived and were not done, the one in service included */
    fl_iteration *iteration; /* iteration_count, stream by stream */
    size_t iteration_count;
    fl_times iteration_time;
    int64_t *barrier_ps; /* per GPU, barrier_count of them: time during which a stream waited only for another GPU;
                            none where no stream ever does */
    uint32_t barrier_count;
} fl_service;

/* Return whether requests arrive faster than they are served, so that latencies grow through the run. With fewer than
 * ten requests it returns false. */
static inline bool fl_service_overloaded(uint64_t requests, double load) {
    return requests >= FL_OVERLOAD_LEAST && load >= 1;
}

void fl_service_free(fl_service *s);

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
    /* From score_fj. peak_power_w adds the largest power of each part (GPUs; an APU's CPU and static power). With one
     * part (peak_parts) that power occurred; with several it is an upper bound. */
    double makespan_s, mean_power_w, peak_power_w;
    uint32_t peak_parts;
    uint64_t kernels, switches;
    uint64_t hash; /* of energy and position at each step, if fl_run_options.hashed; else a constant */
    fl_instance_counts counts;
    uint64_t ignored_sets; /* of controls that this simulated node does not have */
    uint64_t refused_sets; /* by an injected fault */
    uint64_t cpu_switches;
    int64_t wall_held_ps, heat_held_ps; /* GPU time below the requested clock, by power limit and by heat, all GPUs */
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
    double target_error_w;   /* mean distance of the GPUs' power from the target; NAN: no target (fl_run_options) */
    double target_above_pct; /* share of the time above it */
    fl_service service;      /* requests, iterations, barriers */
    fl_served_result served; /* where the workload serves (sim/serving/serving.h) */
} fl_run_result;

void fl_run_result_free(fl_run_result *r);

/* ---- a run: one policy over one workload ---- */

/* Called after each step with the policy's sample and what became of its command; anything but FL_OK ends the run. */
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
    /* Read and set like a live host of that library, which first checks whether it can. The policy must be that of
     * fl_policy_where. NULL: the host sees what the sensors show. */
    const fl_readout *reader;
    const fl_target *target; /* power that the GPUs are to draw, on the host's time; NULL = none */
    const char *label;       /* of the policy, see fl_instance_options; NULL = none */
    const fl_layer *layer;
    size_t layer_count;
    int64_t min_set_interval_ns;
    double first_sm_mhz, first_mem_mhz; /* without a policy: static clocks from time 0; 0 = the default */
    double first_decode_mhz;            /* instead on the GPUs of decode servers; 0 = as the others */
    fl_path path;                       /* see fl_node_options */
    bool hashed;                        /* compute the hash of the result, which takes a part of each step */
    bool classes;                       /* compute class_energy_j and class_time_s of the result */
    bool records_free;                  /* activity records take no time, whatever the device says */
    const fl_fault *fault;              /* fault_count: injected into what the policy sees and sets */
    size_t fault_count;
    fl_step_function on_step;
    fl_truth_function on_truth;
    fl_watch_function on_watch;
    uint64_t watch_needs; /* FL_BIT(FL_GPU_...) of the signals that on_watch reads */
    int64_t truth_ns;     /* spacing of on_truth and on_watch; 0 = never */
    void *user;
} fl_run_options;

/* A run is held against its target by the mean power of windows, from some time after its start on: before that, a
 * program loads its data and a controller has not settled. */
#define FL_TARGET_WINDOW_NS INT64_C(20000000)
#define FL_TARGET_AFTER_NS INT64_C(5000000000)

/* Return the target at an instant; NAN: there is none yet, or t is NULL. */
double fl_target_at(const fl_target *t, int64_t t_ns);

/* Limit the memory of all tables of prefix sums (sim/advance/advance.h) of the process; 1 GiB by default. Existing
 * tables stay. No result depends on it. */
void fl_run_tables_most(int64_t bytes);

/* Run a policy over a workload to its end. *r may be freed also after a failure. */
fl_status fl_run(const fl_run_options *o, fl_run_result *r, fl_diag *d);
