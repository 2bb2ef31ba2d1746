/* A fitted chip in a platform file: it stands under "calibration", beside the values that the simulator reads. */
#pragma once

#include "harness/base/json/json.h"
#include "models/chip/fit_chip.h"

/* NULL when out of memory. The caller owns the tree. */
cJSON *fl_chip_to_json(const fl_chip *chip, bool mem_known);
fl_status fl_chip_from_json(const fl_json *at, fl_chip *chip, bool *mem_known, fl_diag *d);
