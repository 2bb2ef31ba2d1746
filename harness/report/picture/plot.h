/* Pictures of results, drawn by gnuplot from the result files and nothing else. */
#pragma once

#include "traces/io/diag.h"

extern const char *const fl_plot_kinds[]; /* ends with NULL */

/* Runs gnuplot on KIND.gp (FL_PLACE_PLOTS of harness/base/cli/place.h), on the input or, for kinds that need statistics, on
 * a table made from it (harness/report/plot_table.h). The ending of output gives the format: .svg, .png or .pdf; the
 * file appears completely or not at all. FL_BAD_INPUT: unknown kind (with the nearest one), unknown ending, missing
 * input. FL_IO: gnuplot is missing or refuses, with its first line. */
fl_status fl_plot(const char *kind, const char *input, const char *output, fl_diag *d);
/* The same on several inputs, which only gantt takes, up to FL_GANTT_PLANS_MAX: refused elsewhere. count is not 0. */
fl_status fl_plot_all(const char *kind, const char *const *inputs, size_t count, const char *output, fl_diag *d);
