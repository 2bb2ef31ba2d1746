/* Checks that a sweep must pass before a fit or advice uses it. A reader accepts any number, since it must give back
 * what was written. A fit would take kilohertz for a GPU of its own, and the mean of two workloads for one. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

#include <stdbool.h>

/* FL_BAD_INPUT, with line and column, where a row has an SM clock, a memory clock or a power above that of any GPU or
 * node, or where the highest value of a file is below that of any. The message names the factor to the likely unit.
 * path: the file that *s was read from; the function reads it again to find the column. */
fl_status fl_sweep_check_units(const char *path, const fl_sweep *s, fl_diag *d);

/* Two rows of the workload at one memory clock and limit of which the one at the lower SM clock took less than
 * FL_SWEEP_FASTER of the other's time: no clock explains that (harness/chip/log_run.c says from what). Of several pairs
 * the one with the least share; *low NULL: none. */
#define FL_SWEEP_FASTER 0.8
fl_status fl_sweep_odd(const fl_sweep *s, uint32_t workload, const fl_sweep_row **low, const fl_sweep_row **high,
                       fl_diag *d);

/* FL_BAD_INPUT, with its line, where a setting occurs twice and one time is more than a tenth above the other. Repeated
 * runs scatter less, so such rows are not from one workload. The first such row of the file is told. */
fl_status fl_sweep_check_twice(const char *path, const fl_sweep *s, fl_diag *d);
