/* What a run shows beyond its scores, by name: clocks, shares of time, power above a limit, the policy's own probes.
 *
 * Names: energy_j ... every column of a result's CSV; and of a run that was watched
 *   sm_mhz_mean, mem_mhz_mean, cpu_mhz_mean     over time (GPUs: over all of them)
 *   sm_mhz_last, mem_mhz_last, cpu_mhz_last     at the end (GPU 0)
 *   sm_share@A, sm_share@A-B, mem_share@, cpu_share@   percent of time at clocks from A to B MHz
 *   cpu_energy_j, cpu_gpu_energy_j              CPU; CPU and GPUs, without the rest of the node
 *   node_power_w                                mean
 *   over_node@W, over_gpu@W                     percent of the power windows whose true mean is above W
 *   reward_regret@N                             of a distribution replay: after N steps (thousands)
 *   probe:NAME                                  its last value that was not NaN; of a probe per GPU, that of GPU 0 */
#ifndef FL_MEASURE_H
#define FL_MEASURE_H

#include "sim/run.h"

typedef struct fl_watch { /* filled while a run goes on; plain zero before */
    const fl_policy *policy;
    double *probe; /* last values; probe_count (fl_instance_probe_count) */
    size_t probe_count;
    uint32_t gpu_count;
    int64_t last_ps;
    fl_wide node_fj, gpu_fj;
    uint32_t *node_bin, *gpu_bin; /* windows by mean power, `bins` of 1 W; the last of FL_WATCH_BINS holds all above */
    size_t bins;
    uint32_t windows;
    double *regret_mark; /* regret_count: of a distribution replay, each FL_DRAWS_MARK steps */
    size_t regret_count;
} fl_watch;

enum { FL_WATCH_BINS = 16384 };

fl_status fl_watch_open(fl_watch *w, const fl_policy *policy, uint32_t gpu_count, fl_diag *d);
/* The run is over: gives back the bins above the highest power. */
void fl_watch_trim(fl_watch *w);
void fl_watch_free(fl_watch *w);
/* For fl_run_options: user is the fl_watch. */
fl_status fl_watch_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d);
fl_status fl_watch_truth(void *user, const fl_node *node, int64_t t_ps, fl_diag *d);

/* The value of a name that is no column; watch may be NULL. NAN where the run does not have it (no CPU modelled, no
 * such probe); FL_BAD_INPUT where there is no such name. */
fl_status fl_measure(const fl_run_result *run, const fl_watch *watch, const char *name, double *value, fl_diag *d);

#endif
