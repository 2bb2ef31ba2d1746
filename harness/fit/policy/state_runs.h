/* Runs of kernels over all pairs of CPU and GPU states, as a file: the input for frequency sensitivity and for the
 * ideal static scheme (DynaCo, SC '13, sections 4.1 and 6).
 *
 * CSV "# foldline-state-runs 1"; columns kernel,cpu_mhz,sm_mhz,time_s,energy_j,weighted_alu_busy,global_mem_util,
 * clock_weighted_upc,alu_busy,gpu_clock_busy. The metrics are in percent except uops per cycle. They may be empty where
 * they are not known, and the last two columns may be absent. energy_j is that of the whole node; empty = not known. */
#pragma once

#include "traces/io/diag.h"

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
/* Appends a copy of run, including its kernel's name. */
fl_status fl_state_runs_add(fl_state_runs *r, const fl_state_run *run, fl_diag *d);

/* Kernels in order of appearance: the index of the first run of each. The caller frees *first. */
fl_status fl_state_runs_kernels(const fl_state_runs *r, size_t **first, size_t *count, fl_diag *d);
/* The run of the same kernel with the least energy x delay^2; of equal ones, the one with higher clocks. r->count where
 * its energy is not known. cpu_from: only CPU clocks from this one up; 0 = all. */
size_t fl_state_runs_best(const fl_state_runs *r, size_t first, double cpu_from);

/* Writes the ideal static scheme's table for the policy ideal-static: kernel,cpu_mhz,sm_mhz. FL_BAD_INPUT where a
 * kernel's energy is not known, or where it has no run at cpu_from MHz or above. */
fl_status fl_state_runs_write_best(const char *path, const fl_state_runs *r, double cpu_from, fl_diag *d);
