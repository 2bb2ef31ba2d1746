/* Fits a chip to measured settings of several workloads, or derives one from a platform's constants alone. */
#pragma once

#include "models/chip/chip.h"

/* Fits the whole chip. Rows come in any order. Each workload needs at least 2 rows; the fit ignores a workload with
 * fewer. NO_FIT: no workload is left. Where no power is known, or none can be fitted, the chip has no power law
 * (has_power 0). */
fl_model_status fl_chip_fit(const fl_chip_row *row, size_t count, fl_chip_law law, fl_chip *chip);

/* A chip of which only the platform's constants are known: the law without the two additions, and wide priors. */
fl_model_status fl_chip_of_device(const fl_device *dev, fl_chip *chip);
