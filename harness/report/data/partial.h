/* Means that leave out some of their runs, and the clocks behind the best static choice. */
#pragma once

#include "harness/report/data/summary.h"

/* Whether the mean of a column covers fewer runs than that of the energy: a run above the bound has no regret. */
bool fl_partial(const fl_policy_summary *p, fl_report_column column);
/* Whether all means of a policy cover fewer runs: a static choice that holds all bounds may not exist in every scene.
 */
bool fl_partial_rows(const fl_summary *s, const fl_policy_summary *p);
/* Writes the notes below the table of policies: the meaning of the mark on such means, with the runs that each covers;
 * and the clock of the best static choice, workload by workload where they differ. Writes nothing where there is
 * neither. */
fl_status fl_partial_notes(FILE *f, const fl_summary *s, fl_diag *d);
