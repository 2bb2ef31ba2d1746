/* The rows that a fit may use: those that ran at the clock they name. models/unsound/unsound.h makes the findings; this module
 * applies them to the rows of files and reports them. */
#pragma once

#include "harness/base/json/json.h"
#include "harness/chip/rows.h"

/* Removes the rows that did not run at their clocks. Where a clock is wrong throughout, its rows get the clock at which
 * they ran. A row that runs slower than it should, close to the only limit it was measured under, counts as held down
 * by that limit. Rows are sorted before and after. */
fl_status fl_fit_drop_unsound(fl_fit_rows *r, fl_diag *d);
/* Reads files (fl_fit_rows_read) and then does that. Every fit reads through this function, unless a calibration has to
 * correct clocks in between. */
fl_status fl_fit_rows_sound(const fl_texts *files, const fl_texts *only, fl_fit_rows *r, fl_diag *d);

void fl_fit_sound_notes(const fl_fit_rows *r);  /* prints the findings */
cJSON *fl_fit_sound_json(const fl_fit_rows *r); /* rows (file, line, workload, kernel, clocks, why) and clocks */
