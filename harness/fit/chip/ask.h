/* Settings without measurements that a user asks a fit to predict. */
#pragma once

#include "harness/chip/rows.h"

/* Adds to each entity a row, with time and power NaN, for each requested setting that the entity has no row of. list:
 * clocks in the form of --at ("sm=952,1140", "sm=952/mem=405,877"; without memory clocks at the entity's highest), or
 * "calibrated": every setting at which the chip was calibrated. Clocks have the names under which a user sets them
 * (fit_clocks.h). *added: how many rows. FL_BAD_INPUT: another text, or a chip without a calibration. */
fl_status fl_fit_ask(const char *list, const fl_chip *chip, fl_fit_rows *r, size_t *added, fl_diag *d);
