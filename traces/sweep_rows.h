/* Rows of a sweep, taken one by one with all checks, wherever they come from: a sweep's own file, or somebody's table
 * (sweep_map.h). */
#ifndef FL_SWEEP_ROWS_H
#define FL_SWEEP_ROWS_H

#include "traces/csv.h"

typedef struct fl_sweep_rows fl_sweep_rows;

/* times: power and energy need not be known. NULL without memory. */
fl_sweep_rows *fl_sweep_rows_open(bool times, fl_diag *d);
/* The header first, then each row. */
fl_status fl_sweep_rows_take(fl_sweep_rows *l, const fl_csv_row *row, fl_diag *d);
/* Frees l. Where status is FL_OK and there was a row, *s is the sweep (its head is left as it is); else *s is zeroed,
 * and status, or that there was none, comes back. */
fl_status fl_sweep_rows_close(fl_sweep_rows *l, const char *path, fl_status status, fl_sweep *s, fl_diag *d);

#endif
