/* The readings of a simulated node's sensors during a run, as a telemetry trace: what a monitor on the node would have
 * written, including noise and delays. */
#pragma once

#include "sim/node/run.h"
#include "traces/io/records.h"

typedef struct fl_sensorlog {
    fl_telemetry t;
    size_t room_t, room_d, room_v;
} fl_sensorlog;

extern const uint64_t fl_sensorlog_needs; /* for fl_run_options.watch_needs */

fl_status fl_sensorlog_open(fl_sensorlog *l, fl_diag *d);
/* Adds one row per GPU; for use in an fl_watch_function. */
fl_status fl_sensorlog_add(fl_sensorlog *l, const fl_gpu_sample *gpu, uint32_t count, int64_t t_ps, fl_diag *d);
/* Writes into the head which program ran and how long it took ("program", as `foldline record` writes it). */
fl_status fl_sensorlog_write(fl_sensorlog *l, const char *path, const char *workload, const char *platform,
                             int64_t makespan_ps, fl_diag *d);
void fl_sensorlog_free(fl_sensorlog *l);
