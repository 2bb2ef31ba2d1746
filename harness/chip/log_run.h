/* One run of a program in a log of telemetry: when it was, at which clocks, how long, and what it drew. */
#ifndef FL_LOG_RUN_H
#define FL_LOG_RUN_H

#include "traces/diag.h"
#include "traces/records.h"

#include <stdbool.h>

typedef struct fl_log_run {
    double sm_mhz, mem_mhz; /* medians; mem_mhz NAN = not known */
    double time_s, power_w;
    bool steady; /* the clocks held */
    double busy; /* mean utilisation during the run, 0..1; 0 or NAN = not known */
} fl_log_run;

/* device: the GPU, -1 = the log's only one. path is named in diagnostics. FL_BAD_INPUT where the GPU was never busy,
 * and where clock or power are not known. */
fl_status fl_log_run_find(const char *path, const fl_telemetry *t, int64_t device, fl_log_run *out, fl_diag *d);

#endif
