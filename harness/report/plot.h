/* Pictures of results, drawn by gnuplot from the result files and nothing else. */
#ifndef FL_PLOT_H
#define FL_PLOT_H

#include "traces/diag.h"

extern const char *const fl_plot_kinds[]; /* ends with NULL */

/* Runs gnuplot on KIND.gp (FL_PLACE_PLOTS of harness/base/place.h), on the input or, for kinds that need statistics, on
 * a table made of it (harness/report/plot_table.h). The ending of output says the format: .svg, .png or .pdf; it
 * appears whole or not at all. FL_BAD_INPUT: unknown kind (nearest offered), ending, missing input. FL_IO: gnuplot is
 * missing or refuses, with its first line. */
fl_status fl_plot(const char *kind, const char *input, const char *output, fl_diag *d);

#endif
