/* The ops of a trace into the order of time, in place: with four bytes more for each, not with a second trace. */
#ifndef FL_OPS_SORT_H
#define FL_OPS_SORT_H

#include "traces/diag.h"
#include "traces/records.h"

/* By start, end, device, process, stream and row. Only for ops that do not wait for each other: rows get other numbers.
 */
fl_status fl_ops_sort(fl_kernel_trace *t, fl_diag *d);

#endif
