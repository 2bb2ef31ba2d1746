/* Shared by the readers of foreign telemetry: signals by name, rows of values, sorting by time. */
#pragma once

#include "traces/import/import.h"

typedef struct fl_readings {
    fl_imported *out;
    size_t signal_room, device_room, value_room;
    int64_t *last_ns; /* entry i is the last time of device i - 1 */
    size_t last_room;
    size_t width; /* number of signals when the first row came */
    bool disorder;
} fl_readings;

/* Zero the struct and set out. Returns the column of a signal and adds it if it is new: add all signals before the
 * first row. */
fl_status fl_readings_signal(fl_readings *r, const char *name, size_t *column, fl_diag *d);

/* Adds a row. *value points to its signals, NAN each, and is valid until the next row. t_ns may be below 0 until _end.
 */
fl_status fl_readings_row(fl_readings *r, int64_t t_ns, int32_t device, double **value, fl_diag *d);

/* Sorts the rows by time where a device's are not in order (noted). Removes signals that were never known (noted), and
 * the power of the first rows where it is not yet a reading. FL_BAD_INPUT (file path) where nothing remains. */
fl_status fl_readings_end(fl_readings *r, const char *path, fl_diag *d);
void fl_readings_free(fl_readings *r);
