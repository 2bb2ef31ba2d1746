/* Which rows a fit may use: those at the clock that they name. The findings are models/unsound.h's; here they meet the
 * rows of files, and are told. */
#ifndef FL_FIT_SOUND_H
#define FL_FIT_SOUND_H

#include "harness/base/json.h"
#include "harness/chip/fit_rows.h"

/* Takes the rows out that did not run at their clocks, and gives the rows of a clock that is wrong throughout the one
 * that it ran at. Rows that run slower than they should close to the only limit they were measured under were held down
 * by it. Rows are sorted before and after. */
fl_status fl_fit_drop_unsound(fl_fit_rows *r, fl_diag *d);
/* Reads files (fl_fit_rows_read) and does that: what a fit reads by, unless a calibration has to put clocks right in
 * between. */
fl_status fl_fit_rows_sound(const fl_texts *files, const fl_texts *only, fl_fit_rows *r, fl_diag *d);

void fl_fit_sound_notes(const fl_fit_rows *r);  /* prints the findings */
cJSON *fl_fit_sound_json(const fl_fit_rows *r); /* rows (file, line, workload, kernel, clocks, why) and clocks */

#endif
