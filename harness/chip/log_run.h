/* One run of a program in a log of telemetry: its time span, its clocks, its length and its power. */
#pragma once

#include "traces/diag.h"
#include "traces/records.h"

#include <stdbool.h>

typedef struct fl_log_run {
    double sm_mhz, mem_mhz; /* medians; mem_mhz NAN = not known */
    double time_s, power_w;
    bool steady; /* the clocks did not change */
    double busy; /* mean utilisation during the run, 0..1; 0 or NAN = not known */
} fl_log_run;

/* device: the GPU, -1 = the log's only one. Diagnostics name path. FL_BAD_INPUT: the GPU was never busy, or clock or
 * power are not known. */
fl_status fl_log_run_find(const char *path, const fl_telemetry *t, int64_t device, fl_log_run *out, fl_diag *d);
