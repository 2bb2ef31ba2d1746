/* The files of `fit workload`: every row with its prediction, and the completed sweep. */
#pragma once

#include "harness/fit/chip/capped.h"

/* Writes "SM 510 to 1530 MHz, memory 877 to 877 MHz", the calibrated range of the device with r's names for clocks,
 * into buf. Returns buf. */
const char *fl_fit_range_text(const fl_chip *chip, const fl_fit_rows *r, char *buf, size_t size);

/* result, capped: one per entity of r, without guesses where the entity was left out. Refused rows have no prediction.
 * Where there are capped rows, a column power_cap_w holds their limits. */
fl_status fl_fit_write_rows(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_result_of *result,
                            const fl_fit_capped_result *capped, const char *path, fl_diag *d);
/* A canonical sweep: measured values where the prediction used them, else predictions, with their standard deviations
 * in time_sd_pct and power_sd_pct (empty: measured). It contains no refused rows. Each setting occurs once, as the mean
 * of the used rows. FL_BAD_INPUT where two files have the same workload, because no reader could separate their
 * settings. extrapolated: how many settings lie outside the calibration; the head states it. */
fl_status fl_fit_write_sweep(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_result_of *result,
                             size_t extrapolated, const char *path, fl_diag *d);
