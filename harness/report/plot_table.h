/* What gnuplot cannot work out of a result file itself: tables of intervals, ranks, parameters and residency. */
#ifndef FL_PLOT_TABLE_H
#define FL_PLOT_TABLE_H

#include "traces/diag.h"

#include <stdbool.h>
#include <stdio.h>

/* True for the kinds that are drawn from a table: all but timelines. */
bool fl_plot_needs_table(const char *kind);

/* FL_BAD_INPUT with the line of the head where the input lacks a column that gnuplot reads from it by name, or has no
 * row below it. Inputs that a table is made of say so themselves. */
fl_status fl_plot_columns(const char *kind, const char *input, fl_diag *d);

/* Labels lose their commas and quotes on the way (';' and '), for gnuplot cuts a quoted text at its first comma.
 *
 * intervals, ranks: policy,mean,low,high,baseline, the best first. sensitivity:
 * panel,what,line,settings,x,mean,low,high; a panel for each family and parameter. residency: low,high,share. pareto,
 * regret, regret-curves: the input as it is; where pareto and regret find no means in it (of sweep or merge), the
 * columns that they are drawn from and the means of the baselines and the best policies. All over the first scope of
 * the result (harness/report/report_data.h). FL_BAD_INPUT where the input has nothing to draw. */
fl_status fl_plot_table(const char *kind, const char *input, FILE *out, fl_diag *d);

#endif
