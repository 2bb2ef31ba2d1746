/* What a sweep must not hold that is to be fitted or advised on. A reader takes any number, since it must give back
 * what was written; a fit would take kilohertz for a GPU of its own, and the mean of two workloads for one. */
#ifndef FL_SWEEP_CHECK_H
#define FL_SWEEP_CHECK_H

#include "traces/diag.h"
#include "traces/records.h"

/* FL_BAD_INPUT, with line and column, where a row has an SM clock, a memory clock or a power above what any GPU or node
 * of them has, and where the highest of a file is below what any has: the factor to the unit that it looks like is
 * named. path: of the file that *s is read from; it is read again for the column. */
fl_status fl_sweep_check_units(const char *path, const fl_sweep *s, fl_diag *d);

/* FL_BAD_INPUT, with its line, where a setting is there twice and one of the times is more than a tenth above the
 * other: repeated runs scatter less, so that it is not one workload's. */
fl_status fl_sweep_check_twice(const char *path, const fl_sweep *s, fl_diag *d);

#endif
