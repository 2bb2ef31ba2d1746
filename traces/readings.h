/* What readers of foreign telemetry share: signals by name, rows of values, order of time. */
#ifndef FL_READINGS_H
#define FL_READINGS_H

#include "traces/import.h"

typedef struct fl_readings {
    fl_imported *out;
    size_t signal_room, device_room, value_room;
    int64_t *last_ns; /* of device i - 1 */
    size_t last_room;
    size_t width; /* signals when the first row came */
    bool disorder;
} fl_readings;

/* Zero the struct, set out. The column of a signal, added where new: all before the first row. */
fl_status fl_readings_signal(fl_readings *r, const char *name, size_t *column, fl_diag *d);

/* Adds a row; *value: its signals, NAN each, valid until the next row. t_ns may be below 0 until _end. */
fl_status fl_readings_row(fl_readings *r, int64_t t_ns, int32_t device, double **value, fl_diag *d);

/* Puts the rows in order of time where a device's are not (noted), leaves out signals that were never known (noted),
 * and power of the first rows that is no reading yet. FL_BAD_INPUT (file path) where nothing remains. */
fl_status fl_readings_end(fl_readings *r, const char *path, fl_diag *d);
void fl_readings_free(fl_readings *r);

#endif
