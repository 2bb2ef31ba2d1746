/* Settings that nobody measured, asked of a fit. */
#ifndef FL_FIT_ASK_H
#define FL_FIT_ASK_H

#include "harness/chip/fit_rows.h"

/* Adds to each entity a row for each asked setting that it has no row of: time and power NaN. list: as --at names
 * clocks ("sm=952,1140", "sm=952/mem=405,877"; without memory clocks at the entity's highest), or "calibrated": every
 * setting that the chip was calibrated at. Clocks are named as one sets them (fit_clocks.h). *added: how many rows.
 * FL_BAD_INPUT for another text, or where the chip has no calibration. */
fl_status fl_fit_ask(const char *list, const fl_chip *chip, fl_fit_rows *r, size_t *added, fl_diag *d);

#endif
