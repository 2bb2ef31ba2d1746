/* One run of a program in a log of telemetry: its time span, its clocks, its length and its power. */
#pragma once

#include "traces/io/diag.h"
#include "traces/import/import.h"
#include "traces/io/records.h"

#include <stdbool.h>

typedef struct fl_log_run {
    double sm_mhz, mem_mhz; /* medians; mem_mhz NAN = not known */
    double time_s, power_w;
    bool steady;    /* the clocks did not change */
    double busy;    /* mean utilisation during the run, 0..1; 0 or NAN = not known */
    double limit_w; /* the power limit; NAN = not known */
} fl_log_run;

/* How well the log shows where the run begins and ends. */
typedef struct fl_log_ends {
    bool whole;     /* the GPU idles before and after it, or the log's head states its length */
    double error_s; /* by how much time_s may be wrong, as the readings are so far apart */
} fl_log_ends;

/* Opens a file by its format, NULL = detected. If only readings of GPUs other than how->device are there, d says of
 * which. */
fl_status fl_log_open(const char *path, const char *format, const fl_import_options *how, fl_imported *in, fl_diag *d);

/* device: the GPU, -1 = the log's only one. Diagnostics name path. ends may be NULL. FL_BAD_INPUT: the GPU was never
 * busy, clock or power are not known, or the log pauses within the run, so that its length is not known. */
fl_status fl_log_run_find(const char *path, const fl_telemetry *t, int64_t device, fl_log_run *out, fl_log_ends *ends,
                          fl_diag *d);

/* FL_BAD_INPUT where two of the runs cannot be the same work: at one memory clock, the one at the lower SM clock is
 * much faster, or slower by much more than the clock is lower. A log that was cut shows so. *slow: a log whose run
 * is slower than the lower clock says of most boards; NULL = none. */
fl_status fl_log_runs_alike(const char *const *path, const fl_log_run *run, const fl_log_ends *ends, size_t count,
                            const char **slow, fl_diag *d);
