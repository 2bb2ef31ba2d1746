/* What the files of harness/fit/policy share. Other modules include the public header alone. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/input/scene/scene.h"
#include "models/fit/fit.h"
#include "models/math/math.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

/* The model of power-capping 3.2 that foldline fit policy capping makes of a sweep (see harness/fit/policy/inside.h).
 */

typedef struct fl_capping_points { /* one workload on one processor, ascending clocks */
    double *mhz, *time_s, *power_w;
    size_t count, room;
} fl_capping_points;

typedef struct fl_capping_processor { /* a processor */
    const char *part;
    double *mhz, *volt; /* count */
    size_t count;
    fl_capping_chip fit;
} fl_capping_processor;

typedef struct fl_capping_application {
    const char *name;
    fl_capping_points at[2]; /* GPU, CPU */
    fl_capping_app fit[2];
    double comm_s;
} fl_capping_application;

typedef struct fl_capping {
    const char *path;
    fl_sweep sweep;
    double static_w, comm_w;
    fl_capping_processor chip[2];
    fl_capping_application *app;
    size_t app_count;
} fl_capping;

extern const char *const fl_capping_part[2]; /* names of the processors' rows */

/* Fits c->sweep, which the caller has filled; messages name path. The caller frees *c, also after a failure. */
fl_status fl_capping_fit(fl_capping *c, fl_diag *d);
void fl_capping_free(fl_capping *c); /* frees the sweep too */

/* The largest errors of an application at the clocks between the two that gave its parameters, with sign: W of node
 * power, and percent of time. NAN where there are no such clocks. */
void fl_capping_errors(const fl_capping *c, const fl_capping_application *a, int processor, double *power_w,
                       double *time_pct);

/* The parameter table of the policies, as PREFIX.NAME.csv. */
fl_status fl_capping_write(const fl_capping *c, const fl_capping_application *a, const char *prefix, fl_diag *d);

/* The measurements that foldline fit policy capping needs, taken on the simulated node in the same way as
 * power-capping 3.2.2 takes them on a real one. */

/* Runs every scene at each SM clock (the system chooses the CPU clock) and at each CPU clock (the GPU at its highest).
 * Power is that of a meter without error: the simulated truth, in pieces of 1 ms that belong to one part alone. One of
 * the scenes must be the workload rest. Fills *out or leaves it zeroed. */
fl_status fl_capping_measure(const fl_scenes *scenes, fl_sweep *out, fl_diag *d);

/* What a distribution replay (sim/draws/draws.h) needs and a table of published energies does not contain: run times,
 * the core/uncore ratio, and the variation of both. They follow from the rows of the policies with which EnergyUCB is
 * compared, and from the two regrets that its paper prints. EnergyUCB's own row of energies is not used.
 *
 *   1. Run times are T(f) = T(top) ((c top/f)^p + 1 - c^p)^(1/p). A round robin that takes each clock for one step uses
 *      sum(E/T) / sum(1/T), whatever it observes. The share c of each workload is the one that gives its published row.
 *   2. The ratio is r (T(f)/T(top))^g. Epsilon-greedy's choices depend on g and not on r. The exponent g of a workload
 *      is the smallest, on a grid, whose likelihood of the published row is within one standard deviation of the
 * largest.
 *   3. The regret of a round robin is r times a known number. This gives r, one for all workloads.
 *   4. One deviation of energy and ratio remains, the same for all workloads. It is the one, on a grid, with which
 *      EnergyUCB's mean regret over forty runs is nearest to the published one. Steps 2 and 3 are repeated for each. */

enum { FL_DRAWS_CLOCKS_MAX = 64, FL_DRAWS_WORKLOADS_MAX = 64 };

typedef struct fl_draws_row { /* one workload */
    const char *name;         /* borrowed */
    double energy_j[FL_DRAWS_CLOCKS_MAX];
    double top_time_s;
    double round_robin_j, epsilon_greedy_j; /* published */
    double sharpness;                       /* p */
    double core_share;                      /* c; NAN: to be found */
    /* outputs */
    double time_s[FL_DRAWS_CLOCKS_MAX]; /* in steps of 10 ms, as a sweep gives them */
    double round_robin_fit_j, epsilon_greedy_fit_j, exponent;
    double best_mhz, slope; /* best_mhz above 0: in place of the exponent, see fl_draws_options */
} fl_draws_row;

typedef struct fl_draws_fit {
    int32_t mhz[FL_DRAWS_CLOCKS_MAX]; /* ascending */
    uint32_t clock_count, row_count;
    fl_draws_row row[FL_DRAWS_WORKLOADS_MAX];
    double step_ms;
    uint32_t regret_row; /* the row whose regrets are published, after this many steps, a multiple of FL_DRAWS_MARK */
    uint64_t regret_steps;
    double round_robin_regret, energyucb_regret; /* published */
    /* outputs */
    double ratio, cv, energyucb_regret_fit;
} fl_draws_fit;

/* Fills the outputs. FL_BAD_INPUT where a workload ends before the steps of the published regret. */
fl_status fl_draws_fit_run(fl_draws_fit *f, unsigned threads, fl_diag *d);

/* Reads a published table of energies, from which `fit policy draws` finds what a distribution replay needs. */

/* Fills the published values of *f, which is zeroed, from a file like traces/samples/energyucb-published.json. The
 * names of workloads are borrowed from *tree, which the caller deletes, also on failure. FL_BAD_INPUT with file and
 * key. */
fl_status fl_draws_read(const char *path, cJSON **tree, fl_draws_fit *f, fl_diag *d);

/* Runs of kernels over all pairs of CPU and GPU states, as a file: the input for frequency sensitivity and for the
 * ideal static scheme (DynaCo, SC '13, sections 4.1 and 6).
 *
 * CSV "# foldline-state-runs 1"; columns kernel,cpu_mhz,sm_mhz,time_s,energy_j,weighted_alu_busy,global_mem_util,
 * clock_weighted_upc,alu_busy,gpu_clock_busy. The metrics are in percent except uops per cycle. They may be empty where
 * they are not known, and the last two columns may be absent. energy_j is that of the whole node; empty = not known. */

/* The first FL_METRICS enter the regression. ALUBusy and GPUClockBusy, whose quotient is the first, are reported
 * separately. */
enum {
    FL_METRIC_ALU,
    FL_METRIC_MEMORY,
    FL_METRIC_UPC,
    FL_METRICS,
    FL_METRIC_ALU_BUSY = FL_METRICS,
    FL_METRIC_CLOCK_BUSY,
    FL_METRICS_ALL
};
extern const char *const fl_metric_names[FL_METRICS_ALL]; /* names of the columns */

typedef struct fl_state_run {
    char *kernel;           /* owned */
    double cpu_mhz, sm_mhz; /* a CPU clock above the states that software may set: boost allowed */
    double time_s, energy_j;
    double metric[FL_METRICS_ALL]; /* NAN = not known */
} fl_state_run;

typedef struct fl_state_runs {
    fl_state_run *run;
    size_t count, room;
} fl_state_runs;

/* Fills *r or leaves it zeroed. Refuses a pair of states that occurs twice for a kernel. */
fl_status fl_state_runs_read(const char *path, fl_state_runs *r, fl_diag *d);
/* Writes the file; source goes into its head. */
fl_status fl_state_runs_write(const char *path, const fl_state_runs *r, const char *source, fl_diag *d);
void fl_state_runs_free(fl_state_runs *r);

/* Kernels in order of appearance: the index of the first run of each. The caller frees *first. */
size_t *fl_state_runs_kernels(const fl_state_runs *r, size_t *count);
/* The run of the same kernel with the least energy x delay^2; of equal ones, the one with higher clocks. r->count where
 * its energy is not known. cpu_from: only CPU clocks from this one up; 0 = all. */
size_t fl_state_runs_best(const fl_state_runs *r, size_t first, double cpu_from);

/* Writes the ideal static scheme's table for the policy ideal-static: kernel,cpu_mhz,sm_mhz. FL_BAD_INPUT where a
 * kernel's energy is not known, or where it has no run at cpu_from MHz or above. */
fl_status fl_state_runs_write_best(const char *path, const fl_state_runs *r, double cpu_from, fl_diag *d);

/* Offline profiling of the kernels of a programs file on a simulated node: each kernel alone, over all pairs of CPU and
 * GPU states (DynaCo, SC '13, sections 4.1 and 6). */

typedef struct fl_profile_options {
    const char *programs; /* file, see traces/files/files.h; its head names the kinds */
    const char *platform;
    fl_node_choice node;
    double seconds; /* approximate time for which each kernel is repeated at the clocks of the file */
    uint64_t seed;
    unsigned threads; /* 0 = all; does not affect the result */
} fl_profile_options;

/* Profiles every kernel of every program (the rows it has in its first program, one after the other, with their gaps),
 * at each CPU state that software may set, without boost and with boost, and at each SM clock of GPU 0. Fills *r or
 * leaves it zeroed. FL_BAD_INPUT for a platform without a host CPU. */
fl_status fl_profile_states(const fl_profile_options *o, fl_state_runs *r, fl_diag *d);

/* Sweeps over SM clocks for foldline fit policy sweetspot, from a measured table or simulated at every clock. */

typedef struct fl_spot { /* one workload */
    char *name;
    fl_slope_point *point; /* clock, time and power of the GPUs are set; clocks ascend */
    size_t count, room;
    fl_sweet_spot choice;
} fl_spot;

typedef struct fl_spots {
    fl_spot *item;
    size_t count, room;
} fl_spots;

/* Adds the workloads of a sweep file as they were measured; `only`: names of workloads, none = all. Uses the rows of
 * one memory clock (mem_mhz; 0 = each workload's highest) at the highest power limit there; an absent limit counts as
 * the highest. A workload of several kernels is the sequence of these, at the clocks where all were measured; repeated
 * rows are averaged. */
fl_status fl_spots_measured(const char *path, const fl_texts *only, double mem_mhz, fl_spots *all, fl_diag *d);

/* Adds one workload for each scene, run at every SM clock. mem_mhz: 0 = the default memory clock. threads: see
 * fl_pool_run. */
fl_status fl_spots_simulated(const fl_scenes *scenes, double mem_mhz, unsigned threads, fl_spots *all, fl_diag *d);

void fl_spots_free(fl_spots *all);
