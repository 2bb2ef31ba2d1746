/* What the files of traces/import share: cells and dates, readings of telemetry, rows of sweeps. */
#pragma once

#include "traces/files/files.h"
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

fl_status fl_sweep_read_mapped_times(const char *path, const fl_sweep_map *map, fl_sweep *s, fl_left_out *left,
                                     fl_diag *d);

/* ---- readings of foreign telemetry: signals by name, rows of values, and what of them is not known ---- */

typedef struct fl_readings { /* made by fl_readings_begin; stays at its address until fl_readings_free */
    fl_imported *out;
    fl_left_out left;
    fl_telemetry_rows rows;
    size_t signal_room;
} fl_readings;

void fl_readings_begin(fl_readings *r, fl_imported *out);

/* Returns the column of a signal and adds it if it is new: add all signals before the first row. */
fl_status fl_readings_signal(fl_readings *r, const char *name, size_t *column, fl_diag *d);

/* Adds the row that fl_telemetry_row gave; leaves it out where no cell has a value. */
fl_status fl_readings_take(fl_readings *r, const fl_csv_row *row, int64_t t_ns, int32_t device, fl_diag *d);

/* Ends the rows (fl_telemetry_end). Notes what was left out. Removes signals that were never known (noted), and the
 * power of the first rows where it is not yet a reading. FL_BAD_INPUT (file path) where nothing remains. */
fl_status fl_readings_end(fl_readings *r, const char *path, fl_diag *d);
void fl_readings_free(fl_readings *r);

/* Ends the telemetry of any reader, whose rows are in out: notes what was left out, pauses, and accounts of energy that
 * differ; sets has_telemetry. FL_BAD_INPUT (file path): the readings of one device are of several boards. */
fl_status fl_import_telemetry(fl_imported *out, const fl_left_out *left, const char *path, fl_diag *d);

/* Bits of the signal throttle: FL_THROTTLE_* of policies/policy.h. */
enum { FL_HELD_POWER = 1, FL_HELD_HEAT = 2, FL_HELD_IDLE = 4, FL_HELD_OTHER = 8 };

/* Return these bits for a mask of NVML's clock event reasons. */
unsigned fl_held_by(unsigned long long reasons);

/* The rows of a sweep, added one by one with all checks, from any source: a sweep's own file, or a table of any origin
 * (import.h). */

typedef struct fl_sweep_rows fl_sweep_rows;

/* times: power and energy may be unknown. left: as for fl_sweep_read; it stays where it is until _close. NULL when out
 * of memory. */
fl_sweep_rows *fl_sweep_rows_open(bool times, fl_left_out *left, fl_diag *d);
/* Takes the header first, then each row. */
fl_status fl_sweep_rows_take(fl_sweep_rows *l, const fl_csv_row *row, fl_diag *d);
/* Frees l. Where status is FL_OK and there was a row, *s becomes the sweep (its head stays unchanged). Otherwise *s is
 * zeroed, and the function returns status, or the error that there was no row. */
fl_status fl_sweep_rows_close(fl_sweep_rows *l, const char *path, fl_status status, fl_sweep *s, fl_diag *d);

/* Read the trace of Azure's LLM inference data set (2023: TIMESTAMP,ContextTokens,GeneratedTokens; the time is a UTC
 * date, and the first becomes 0). Rows without prompt or output tokens have no step to simulate, and so no value. left:
 * as for fl_requests_read. */
fl_status fl_requests_read_azure(const char *path, fl_requests *r, fl_left_out *left, fl_diag *d);
