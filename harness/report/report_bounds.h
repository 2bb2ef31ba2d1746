/* The bounds that a result is told under: those it was made under, as its record says, and those asked for now. */
#ifndef FL_REPORT_BOUNDS_H
#define FL_REPORT_BOUNDS_H

#include "harness/report/report_data.h"

/* Fills r->promises, r->bound and each row's `broken`. With bounds asked for (texts as of --bound, which go before the
 * recorded ones on the same column) rows are judged anew by their cells, `violated` included; without any it stays as
 * recorded. FL_BAD_INPUT where one asked for is about what no row has. */
fl_status fl_report_judge(fl_report_data *r, const fl_texts *asked, fl_diag *d);

#endif
