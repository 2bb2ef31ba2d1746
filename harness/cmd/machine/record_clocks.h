/* Which clock a recorded kernel had: from the readings of the same run. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"
#include "traces/files/tables.h"

/* A kernel that ran below the top clock, as under a power limit, is to be replayed from the clock that it had, as far
 * as the readings tell it. Both count time alike. The times of *t are changed. Where a GPU has no readings of its
 * clock, no kernel gets one. What was done goes to say, line by line. */
fl_status fl_record_clocks(fl_kernel_trace *k, fl_telemetry *t, void (*say)(void *user, const char *line), void *user,
                           fl_diag *d);
