/* What the files of traces/import share: cells and dates, readings of telemetry, rows of sweeps. */
#pragma once

#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/serving/serving.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool fl_cell_is(fl_cell c, const char *text);
bool fl_cell_begins(fl_cell c, const char *text);
bool fl_cells_have(const fl_cells *c, const char *text);

/* ns since 1970 of a civil date and time, read as UTC. */
int64_t fl_civil_ns(int year, int month, int day, int hour, int minute, int second, int64_t ns);

fl_status fl_sweep_read_mapped_times(const char *path, const fl_sweep_map *map, fl_sweep *s, fl_diag *d);

/* ---- readings of foreign telemetry: signals by name, rows of values, sorting by time ---- */

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

/* The rows of a sweep, added one by one with all checks, from any source: a sweep's own file, or a table of any origin
 * (import.h). */

typedef struct fl_sweep_rows fl_sweep_rows;

/* times: power and energy may be unknown. NULL when out of memory. */
fl_sweep_rows *fl_sweep_rows_open(bool times, fl_diag *d);
/* Takes the header first, then each row. */
fl_status fl_sweep_rows_take(fl_sweep_rows *l, const fl_csv_row *row, fl_diag *d);
/* Frees l. Where status is FL_OK and there was a row, *s becomes the sweep (its head stays unchanged). Otherwise *s is
 * zeroed, and the function returns status, or the error that there was no row. */
fl_status fl_sweep_rows_close(fl_sweep_rows *l, const char *path, fl_status status, fl_sweep *s, fl_diag *d);

/* Read the trace of Azure's LLM inference data set (2023: TIMESTAMP,ContextTokens,GeneratedTokens; the time is a UTC
 * date, and the first becomes 0). Rows without prompt or output tokens have no step to simulate: the reader leaves them
 * out, and *left_out (may be NULL) counts them. */
fl_status fl_requests_read_azure(const char *path, fl_requests *r, size_t *left_out, fl_diag *d);
