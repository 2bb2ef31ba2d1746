/* Sorts the ops of a trace by time, in place. It needs four more bytes per op, not a second trace. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

/* Sorts by start, end, device, process, stream and row. Only for ops that do not wait for each other, because row
 * numbers change. */
fl_status fl_ops_sort(fl_kernel_trace *t, fl_diag *d);
