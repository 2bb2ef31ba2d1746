/* The report of `fit device` on the terminal: each constant, how well it is known, and what the data do not determine.
 */
#pragma once

#include "harness/fit/chip/idle_log.h"
#include "harness/chip/rows.h"
#include "models/chip/fit_chip.h"

#define FL_FIT_UNKNOWN 0.5 /* a value whose standard deviation exceeds this share of it counts as not determined */

/* Whether the data determine A (which comes with V^2: a steeper V and a smaller A fit equally well) and B. Without a
 * spare degree of freedom they determine neither. */
bool fl_fit_knows_a(const fl_chip *chip);
bool fl_fit_knows_b(const fl_chip *chip);

/* "1.2", an error in percent, or "n/a" where there are as many fitted numbers as rows. buf: 32 bytes; the function
 * returns it. */
char *fl_fit_error_text(double pct, char *buf);

/* full: the law with its additions; plain: the simulator's law. files: the sweeps' names; out: the written file; idle:
 * clocks 0 = none. */
void fl_fit_device_print(const fl_chip *full, const fl_chip *plain, const fl_fit_rows *rows, const char *files,
                         const fl_idle_log *idle, const char *out);
