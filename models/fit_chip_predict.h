/* What a chip's law and its other workloads say of a workload of which only a few settings are known. */
#ifndef FL_FIT_CHIP_PREDICT_H
#define FL_FIT_CHIP_PREDICT_H

#include "models/chip.h"

/* What a workload of which `known` rows were measured (workload ids ignored) does at `asked` settings: mean over what
 * the known rows and the chip's other workloads leave possible, the smooth part of their errors carried over. load: its
 * parts, best single values; may be NULL. known >= 1. */
fl_model_status fl_chip_predict(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess, fl_chip_load *load);

#endif
