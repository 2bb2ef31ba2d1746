/* Canonical telemetry, sweep and decisions files, and the log of the GEEPAFS daemon. Readers fill the struct or leave
 * it zeroed; writers go through a temporary file and a rename. */
#ifndef FL_TABLES_H
#define FL_TABLES_H

#include "traces/diag.h"
#include "traces/records.h"

fl_status fl_telemetry_read(const char *path, fl_telemetry *t, fl_diag *d);
fl_status fl_telemetry_write(const char *path, const fl_telemetry *t, fl_diag *d);

/* workload, sm_mhz or power_cap_w or both, time_s, and power_w or energy_j or both; optional: kernel,mem_mhz,power_cap_w,energy_cv,ratio,ratio_cv, and
 * of predicted rows the standard deviations time_sd_pct and power_sd_pct (empty or 0: measured), and
 * activities in percent, 0 to 100, as DCGM names them (records.h, fl_counter): dram_active_pct,sm_active_pct,
 * sm_occupancy_pct,fp32_pct,fp64_pct,fp16_pct,tensor_pct. The head is optional (plain files exist). time_s > 0; empty,
 * nan and N/A: not known. Of power_w and energy_j one may be that and is derived from the other and time_s. */
fl_status fl_sweep_read(const char *path, fl_sweep *s, fl_diag *d);
/* For those who need no power: both may be unknown (NaN), and their columns absent. */
fl_status fl_sweep_read_times(const char *path, fl_sweep *s, fl_diag *d);
fl_status fl_sweep_write(const char *path, const fl_sweep *s, fl_diag *d);

fl_status fl_decisions_read(const char *path, fl_decisions *r, fl_diag *d);
fl_status fl_decisions_write(const char *path, const fl_decisions *r, fl_diag *d);

/* The GEEPAFS daemon's log: five head lines, then rows of a time of day, five numbers per GPU (GPU %, memory %, mW, SM
 * MHz, set MHz or -1), the loop's own duration in us. Becomes decisions with signals util_gpu_pct, util_mem_pct,
 * power_w, sm_mhz (GPU) and loop_ns (host: the duration of the PREVIOUS row, unknown in the first); control sm_mhz.
 * Time comes from the durations, row k+1 at max(200 ms, duration of row k) after row k. A torn last row is left out and
 * its line reported. A daemon that Ctrl-C ended says so after the last row, in one line of text or two: they are passed
 * over, and nothing may follow them. */
fl_status fl_geepafs_read(const char *path, fl_decisions *r, fl_diag *d);

#endif
