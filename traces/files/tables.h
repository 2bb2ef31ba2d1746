/* Canonical telemetry, sweep and decisions files, and the log of the GEEPAFS daemon. Readers fill the struct or leave
 * it zeroed; writers use a temporary file and a rename. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

fl_status fl_telemetry_read(const char *path, fl_telemetry *t, fl_diag *d);
fl_status fl_telemetry_write(const char *path, const fl_telemetry *t, fl_diag *d);

/* Sweep columns: workload, sm_mhz or power_cap_w or both, time_s, and power_w or energy_j or both. Optional:
 * kernel,mem_mhz,power_cap_w,energy_cv,ratio,ratio_cv; for predicted rows the standard deviations time_sd_pct and
 * power_sd_pct (empty or 0: measured); and activities in percent, 0 to 100, named as in DCGM (records.h, fl_counter):
 * dram_active_pct,sm_active_pct,sm_occupancy_pct,fp32_pct,fp64_pct,fp16_pct,tensor_pct. The head is optional, because
 * plain files exist. time_s > 0; empty, nan and N/A mean not known. One of power_w and energy_j may be unknown; it then
 * follows from the other and time_s. */
fl_status fl_sweep_read(const char *path, fl_sweep *s, fl_diag *d);
/* For callers that need no power: both may be unknown (NaN), and their columns may be absent. */
fl_status fl_sweep_read_times(const char *path, fl_sweep *s, fl_diag *d);
fl_status fl_sweep_write(const char *path, const fl_sweep *s, fl_diag *d);

fl_status fl_decisions_read(const char *path, fl_decisions *r, fl_diag *d);
fl_status fl_decisions_write(const char *path, const fl_decisions *r, fl_diag *d);

/* The GEEPAFS daemon's log: five head lines, then rows of a time of day, five numbers per GPU (GPU %, memory %, mW, SM
 * MHz, set MHz or -1), and the loop's own duration in us. It becomes decisions with the signals util_gpu_pct,
 * util_mem_pct, power_w, sm_mhz (GPU) and loop_ns (host: the duration of the PREVIOUS row, unknown in the first), and
 * the control sm_mhz. Times follow from the durations: row k+1 comes max(200 ms, duration of row k) after row k. The
 * reader skips a torn last row and reports its line. A daemon that Ctrl-C ended says so after the last row, in one or
 * two lines of text; the reader skips them, and nothing may follow. */
fl_status fl_geepafs_read(const char *path, fl_decisions *r, fl_diag *d);
