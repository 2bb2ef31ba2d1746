/* What a run shows beyond its scores, by name: clocks, shares of time, power above a limit, the policy's own probes.
 *
 * Names: energy_j ... every column of a result's CSV; and of a run that was watched
 *   sm_mhz_mean, mem_mhz_mean, cpu_mhz_mean     over time (GPUs: over all of them)
 *   sm_mhz_last, mem_mhz_last, cpu_mhz_last     at the end (GPU 0)
 *   sm_share@A, sm_share@A-B, mem_share@, cpu_share@   percent of time at clocks from A to B MHz
 *   cpu_energy_j, cpu_gpu_energy_j              CPU; CPU and GPUs, without the rest of the node
 *   node_power_w                                mean
 *   over_node@W, over_gpu@W                     percent of the power windows whose true mean is above W
 *   process_s@N                                 when process N ended
 *   reward_regret@N                             of a distribution replay: after N steps (thousands)
 *   probe:NAME                                  its last value that was not NaN; of a probe per GPU, that of GPU 0
 *   steps:NAME@A, steps:NAME@A-B                steps in which that probe showed a whole number from A to B, 0 to 63 */
#pragma once

#include "sim/node/run.h"

typedef struct fl_bin { /* of a histogram: how often it was met */
    uint32_t at;
    uint64_t count;
} fl_bin;

typedef struct fl_bins { /* those bins that were met, ascending */
    fl_bin *bin;
    size_t count;
} fl_bins;

/* Filled while a run goes on; plain zero before. Tables of all bins count during the run, and are given back at its end
 * for lists of those that were met: a comparison keeps a watch for each of thousands of rows. */
typedef struct fl_watch {
    const fl_policy *policy;
    double *probe;       /* last values; probe_count (fl_instance_probe_count) */
    uint64_t *probe_bin; /* steps by value, FL_WATCH_VALUES for each probe */
    size_t probe_count;
    uint32_t gpu_count;
    int64_t last_ps;
    fl_wide node_fj, gpu_fj;
    uint32_t *node_bin, *gpu_bin; /* windows by mean power, FL_WATCH_BINS of 1 W; the last holds all above */
    uint32_t windows;
    fl_bins probe_met, node_met, gpu_met; /* of the tables above, once the run has ended */
    double *regret_mark;                  /* regret_count: of a distribution replay, each FL_DRAWS_MARK steps */
    size_t regret_count;
} fl_watch;

enum { FL_WATCH_BINS = 16384, FL_WATCH_VALUES = 64 };

fl_status fl_watch_open(fl_watch *w, const fl_policy *policy, uint32_t gpu_count, fl_diag *d);
/* The run is over: makes the lists that fl_measure reads. FL_NO_MEMORY. */
fl_status fl_watch_end(fl_watch *w, fl_diag *d);
void fl_watch_free(fl_watch *w);
/* For fl_run_options: user is the fl_watch. */
fl_status fl_watch_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d);
fl_status fl_watch_truth(void *user, const fl_node *node, int64_t t_ps, fl_diag *d);

/* The value of a name that is no column; watch may be NULL. NAN where the run does not have it (no CPU modelled, no
 * such probe); FL_BAD_INPUT where there is no such name. */
fl_status fl_measure(const fl_run_result *run, const fl_watch *watch, const char *name, double *value, fl_diag *d);
