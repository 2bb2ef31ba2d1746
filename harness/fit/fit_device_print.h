/* What `fit device` tells on the terminal: each constant, how well it is known, and what the data cannot tell. */
#ifndef FL_FIT_DEVICE_PRINT_H
#define FL_FIT_DEVICE_PRINT_H

#include "harness/fit/fit_idle_log.h"
#include "harness/chip/fit_rows.h"
#include "models/fit_chip.h"

#define FL_FIT_UNKNOWN 0.5 /* a standard deviation above this share of a value: the data cannot tell it */

/* Whether its data tell A (which goes with V^2: a steeper V and a smaller A fit alike) and B: without a degree of
 * freedom left they tell neither. */
bool fl_fit_knows_a(const fl_chip *chip);
bool fl_fit_knows_b(const fl_chip *chip);

/* "1.2" or "n/a": an error in percent, of as many rows as numbers to fit. buf: 32 bytes; returns it. */
char *fl_fit_error_text(double pct, char *buf);

/* full: the law with its additions; plain: the simulator's. files: the sweeps' names; out: the file written; idle:
 * clocks 0 = none. */
void fl_fit_device_print(const fl_chip *full, const fl_chip *plain, const fl_fit_rows *rows, const char *files,
                         const fl_idle_log *idle, const char *out);

#endif
