/* Predicts a workload of which only a few settings are known, from a chip's law and from its other workloads. */
#pragma once

#include "models/chip/chip.h"

/* Predicts a workload at `asked` settings from its `known` measured rows (workload ids are ignored; at least one row).
 * The prediction is the mean over everything that the known rows and the chip's other workloads leave possible, and it
 * carries over the smooth part of the known rows' errors. load: the most likely single values of its parts; may be
 * NULL. */
fl_model_status fl_chip_predict(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess, fl_chip_load *load);
