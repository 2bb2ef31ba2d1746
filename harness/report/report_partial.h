/* Means that leave out some of their runs, and the clocks behind the best static choice. */
#ifndef FL_REPORT_PARTIAL_H
#define FL_REPORT_PARTIAL_H

#include "harness/report/report_summary.h"

/* Whether the mean of a column is over fewer runs than that of the energy: a run above the bound has no regret. */
bool fl_partial(const fl_policy_summary *p, fl_report_column column);
/* Below the table of policies: what the mark of such means says, with the runs that each is over; and the clock of the
 * best static choice, or from which to which it goes over the workloads. Nothing where there is neither. */
void fl_partial_notes(FILE *f, const fl_summary *s);

#endif
