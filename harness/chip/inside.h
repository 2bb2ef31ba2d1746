/* What the files of harness/chip share. Other modules include the public header alone. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/chip/chip.h"
#include "traces/io/io.h"

/* Reads sweeps as fl_fit_rows_read, including rows that a model predicted, for callers that use the sweep as that
 * model.
 */
fl_status fl_fit_rows_read_predicted(const fl_texts *files, const fl_texts *only, fl_fit_rows *r, fl_diag *d);

/* Return the SM clock that a file's name states ("NAME@1050.csv", "name_1050MHz.log"); NAN: none. */
double fl_log_named_mhz(const char *path);
