/* The rows of a sweep, added one by one with all checks, from any source: a sweep's own file, or a table of any origin
 * (sweep_map.h). */
#pragma once

#include "traces/io/csv.h"

typedef struct fl_sweep_rows fl_sweep_rows;

/* times: power and energy may be unknown. NULL when out of memory. */
fl_sweep_rows *fl_sweep_rows_open(bool times, fl_diag *d);
/* Takes the header first, then each row. */
fl_status fl_sweep_rows_take(fl_sweep_rows *l, const fl_csv_row *row, fl_diag *d);
/* Frees l. Where status is FL_OK and there was a row, *s becomes the sweep (its head stays unchanged). Otherwise *s is
 * zeroed, and the function returns status, or the error that there was no row. */
fl_status fl_sweep_rows_close(fl_sweep_rows *l, const char *path, fl_status status, fl_sweep *s, fl_diag *d);
