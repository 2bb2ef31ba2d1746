/* The settings that a chip's calibration chooses (models/chip/probes.h), for `--at chosen:2`, and their names. */
#pragma once

#include "harness/chip/rows.h"

/* Where `at` asks for chosen settings, finds them from the workloads of the chip's calibration; else does nothing.
 * FL_BAD_INPUT where the chip cannot choose. */
fl_status fl_fit_choose(const fl_chip *chip, fl_fit_at *at, fl_diag *d);

/* Writes "885 + 1402 MHz", or with the memory clocks "861/810 + 861/3505 MHz", into buf. Returns buf. */
char *fl_fit_probes_text(const fl_probes *p, bool memory, char *buf, size_t size);
