/* Settings under power limits, as they were measured. The laws leave rows out where a limit binds, but such a row is a
 * measurement of just what a user would run. */
#pragma once

#include "harness/chip/sweep_chip.h"

/* Takes the limit from rows that ran under the board's own (they name none then), and leaves out rows above it. Returns
 * that limit: the device's default or, where that is not known, the highest of the sweep. INFINITY: no row names one,
 * or rows do that ran under none. A workload of which only limits were set gets an SM clock of 0: it stays as it is. */
double fl_advise_settle_limits(fl_sweep *s, const fl_device *dev);

/* Into `to`, which has a workload's predicted rows: measured rows that the laws left out for a limit, and measured rows
 * under lower limits. Predicted rows at the same settings go, and those outside the clocks from sm_min to sm_max. */
fl_status fl_advise_add_limited(const fl_sweep_chip *c, const fl_sweep *measured, uint32_t workload, double sm_min,
                                double sm_max, fl_sweep *to, fl_diag *d);
/* Whether a row is used as it was measured: somebody measured it, and it did not run at another clock than it names. */
bool fl_advise_as_measured(const fl_sweep_chip *c, const fl_sweep_row *r);
