/* Runs of kernels over all pairs of CPU and GPU states, as a file: what frequency sensitivity and the ideal static
 * scheme (DynaCo, SC '13, sections 4.1 and 6) are made of.
 *
 * CSV "# foldline-state-runs 1"; columns kernel,cpu_mhz,sm_mhz,time_s,energy_j,weighted_alu_busy,global_mem_util,
 * clock_weighted_upc,alu_busy,gpu_clock_busy; the metrics, in percent but for uops per cycle, may be empty where they
 * are not known, the last two columns may lack. energy_j is that of the whole node; empty where it is not known. */
#ifndef FL_STATE_RUNS_H
#define FL_STATE_RUNS_H

#include "traces/diag.h"

/* The first FL_METRICS enter the regression; ALUBusy and GPUClockBusy, whose quotient is the first, are told alone. */
enum {
    FL_METRIC_ALU,
    FL_METRIC_MEMORY,
    FL_METRIC_UPC,
    FL_METRICS,
    FL_METRIC_ALU_BUSY = FL_METRICS,
    FL_METRIC_CLOCK_BUSY,
    FL_METRICS_ALL
};
extern const char *const fl_metric_names[FL_METRICS_ALL]; /* as the columns */

typedef struct fl_state_run {
    char *kernel;           /* owned */
    double cpu_mhz, sm_mhz; /* a CPU clock above the software's states: boost allowed */
    double time_s, energy_j;
    double metric[FL_METRICS_ALL]; /* NAN = not known */
} fl_state_run;

typedef struct fl_state_runs {
    fl_state_run *run;
    size_t count, room;
} fl_state_runs;

/* Fills *r or leaves it zeroed. Refuses a pair of states that a kernel has twice. */
fl_status fl_state_runs_read(const char *path, fl_state_runs *r, fl_diag *d);
/* source: goes into the head. */
fl_status fl_state_runs_write(const char *path, const fl_state_runs *r, const char *source, fl_diag *d);
void fl_state_runs_free(fl_state_runs *r);
/* Copies run and its kernel's name. */
fl_status fl_state_runs_add(fl_state_runs *r, const fl_state_run *run, fl_diag *d);

/* Kernels in order of appearance: the index of the first run of each. The caller frees *first. */
fl_status fl_state_runs_kernels(const fl_state_runs *r, size_t **first, size_t *count, fl_diag *d);
/* The run of the same kernel with the least energy x delay^2; of equals, the one with higher clocks. r->count where its
 * energy is not known. cpu_from: only CPU clocks from here on; 0 = all. */
size_t fl_state_runs_best(const fl_state_runs *r, size_t first, double cpu_from);

/* The ideal static scheme's table, as the policy ideal-static takes it: kernel,cpu_mhz,sm_mhz. FL_BAD_INPUT where a
 * kernel's energy is not known, or it has no run at cpu_from MHz or above. */
fl_status fl_state_runs_write_best(const char *path, const fl_state_runs *r, double cpu_from, fl_diag *d);

#endif
