/* What `fit workload` writes: every row with what was predicted of it, and the sweep as it is known now. */
#ifndef FL_FIT_WORKLOAD_FILES_H
#define FL_FIT_WORKLOAD_FILES_H

#include "harness/fit/fit_capped.h"

/* "SM 510 to 1530 MHz, memory 877 to 877 MHz": where the device was calibrated, by the names that r has for clocks.
 * Into buf; returns buf. */
const char *fl_fit_range_text(const fl_chip *chip, const fl_fit_rows *r, char *buf, size_t size);

/* result, capped: one per entity of r, without guesses where it was left out. Refused rows have no prediction. Where
 * there are capped rows a column power_cap_w tells their limits. */
fl_status fl_fit_write_rows(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_result_of *result,
                            const fl_fit_capped_result *capped, const char *path, fl_diag *d);
/* A canonical sweep: measured where it was looked at, else predicted, with its standard deviations in time_sd_pct and
 * power_sd_pct (empty: measured); refused rows are not in it. Each setting is there once, the mean of the rows that
 * were looked at. FL_BAD_INPUT where two files have the same workload: nobody could tell their settings apart.
 * extrapolated: how many lie outside the calibration, which its head tells. */
fl_status fl_fit_write_sweep(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_result_of *result,
                             size_t extrapolated, const char *path, fl_diag *d);

#endif
