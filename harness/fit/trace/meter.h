/* The recording of an external power meter: the true course of a board's power. */
#pragma once

#include "models/fit/sensor_fit.h"
#include "traces/io/diag.h"

typedef struct fl_meter {
    double *time_s, *watts; /* count; seconds from the first sample, strictly rising */
    size_t count, time_room, watts_room;
} fl_meter;

/* Reads a telemetry file that foldline import reads (node_power_w, else power_w), or a CSV with one of the columns t_s,
 * t_ms, t_us or t_ns, and power_w. Lines that begin with '#' are ignored. FL_BAD_INPUT where times do not rise or fewer
 * than two samples are known. */
fl_status fl_meter_read(const char *path, fl_meter *m, fl_diag *d);
void fl_meter_free(fl_meter *m);
fl_sensor_course fl_meter_course(const fl_meter *m);
