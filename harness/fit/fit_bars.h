/* How wide error bars must be, as a file: `fit bars` writes it and `fit split --bars` reads it. */
#pragma once

#include "models/fit_chip_bars.h"
#include "traces/diag.h"

#include <cjson/cJSON.h>

extern const char *const fl_fit_bars_kind[FL_CHIP_KINDS], *const fl_fit_bars_place[FL_CHIP_PLACES];

/* The file holds the constants from all GPUs under "all". Under "without" it holds, by the GPU's name, those from all
 * GPUs but one. */
cJSON *fl_fit_bars_to_json(const fl_chip_bars *bars);
/* without: the GPU whose own data must not count; NULL = use all GPUs. */
fl_status fl_fit_bars_read(const char *path, const char *without, fl_chip_bars *bars, fl_diag *d);
