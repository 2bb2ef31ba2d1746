/* The figures of a report, each a <figure> with caption, legend and a text for those who do not see it. A figure
 * without data is left out; *drawn says so where it matters. */
#ifndef FL_REPORT_FIGURES_H
#define FL_REPORT_FIGURES_H

#include "harness/report/report_summary.h"

/* Energy saved against slowdown, means with their intervals, and the Pareto front. */
void fl_figure_pareto(FILE *f, const fl_summary *s, const fl_looks *looks);
/* What the policies are ranked by, and their mean ranks, as rows with intervals. */
void fl_figure_merit(FILE *f, const fl_summary *s, const fl_looks *looks);
void fl_figure_ranks(FILE *f, const fl_summary *s, const fl_looks *looks);

/* For each family whose labels differ in a number: saving and slowdown over that parameter. Returns how many. */
size_t fl_figures_sensitivity(FILE *f, const fl_summary *s);

/* From RESULTS.regret.csv: cumulative regret over steps, one figure for each workload and variant. */
fl_status fl_figures_regret(FILE *f, const fl_report_data *r, const fl_looks *looks, size_t *drawn, fl_diag *d);

/* From a telemetry file: clock and power over time, and the shares of time at each clock. */
fl_status fl_figures_timeline(FILE *f, const char *path, fl_diag *d);

/* "energy saved", "EDP saved" or "ED2P saved". */
const char *fl_merit_name(const fl_report_data *r);

/* "<figure>" with the box that scrolls; then the caption, formatted, and "</figure>". */
void fl_figure_begin(FILE *f);
void fl_figure_caption(FILE *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
