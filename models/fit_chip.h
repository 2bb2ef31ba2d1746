/* A chip from measured settings of several workloads, or from a platform's constants alone. */
#ifndef FL_FIT_CHIP_H
#define FL_FIT_CHIP_H

#include "models/chip.h"

/* Fits all of it. rows: in any order; each workload needs 2 rows or more, one with fewer is left out. NO_FIT: no
 * workload left. Where no power is known or none can be fitted the power part is left out (has_power 0). */
fl_model_status fl_chip_fit(const fl_chip_row *row, size_t count, fl_chip_law law, fl_chip *chip);

/* A chip of which only the platform's constants are known: law without the additions, wide priors. */
fl_model_status fl_chip_of_device(const fl_device *dev, fl_chip *chip);

#endif
