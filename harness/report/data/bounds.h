/* The bounds under which a result is reported: those under which it was made, as its record says, and those requested
 * now. */
#pragma once

#include "harness/report/data/report_data.h"

/* Fills r->promises, r->bound and each row's `broken`. With requested bounds (texts as of --bound, which override the
 * recorded ones on the same column) rows are judged again by their cells, including `violated`; without any, `violated`
 * stays as recorded. FL_BAD_INPUT where a requested bound concerns a column that no row has. */
fl_status fl_report_judge(fl_report_data *r, const fl_texts *asked, fl_diag *d);
