/* How the power limits of a sweep affected its rows, by models/chip/cap.h. */
#pragma once

#include "models/chip/cap.h"
#include "traces/io/diag.h"
#include "traces/io/records.h"

#include <stdbool.h>

/* One verdict per row of the sweep, among the rows of the same workload, kernel and clocks (an unknown clock counts as
 * one clock). *repeats: whether the row's setting also exists under a lower limit that does not bind. The caller frees
 * both. */
fl_status fl_fit_judge_limits(const fl_sweep *s, fl_cap_verdict **verdict, bool **repeats, fl_diag *d);
