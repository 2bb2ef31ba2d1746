/* Pictures of results, drawn by gnuplot from the result files and nothing else. */
#ifndef FL_PLOT_H
#define FL_PLOT_H

#include "traces/diag.h"

extern const char *const fl_plot_kinds[]; /* ends with NULL */

fl_status fl_plot(const char *kind, const char *input, const char *output, fl_diag *d);

#endif
