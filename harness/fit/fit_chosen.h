/* Settings that a chip's calibration chooses (models/probes.h): of `--at chosen:2`, and told in words. */
#ifndef FL_FIT_CHOSEN_H
#define FL_FIT_CHOSEN_H

#include "harness/chip/fit_rows.h"

/* Where `at` asks for chosen settings, finds them by what the chip was calibrated with; else does nothing. FL_BAD_INPUT
 * where the chip cannot say. */
fl_status fl_fit_choose(const fl_chip *chip, fl_fit_at *at, fl_diag *d);

/* "885 + 1402 MHz", or with the memory clocks: "861/810 + 861/3505 MHz". Into buf; returns buf. */
char *fl_fit_probes_text(const fl_probes *p, bool memory, char *buf, size_t size);

#endif
