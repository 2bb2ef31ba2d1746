/* How wide error bars must be, as a file: what `fit bars` writes and `fit split --bars` reads. */
#ifndef FL_FIT_BARS_H
#define FL_FIT_BARS_H

#include "models/fit_chip_bars.h"
#include "traces/diag.h"

#include <cjson/cJSON.h>

extern const char *const fl_fit_bars_kind[FL_CHIP_KINDS], *const fl_fit_bars_place[FL_CHIP_PLACES];

/* The file holds the constants by all GPUs under "all", and under "without" those by all GPUs but one, by its name. */
cJSON *fl_fit_bars_to_json(const fl_chip_bars *bars);
/* without: the GPU that must not speak for itself; NULL = by all. */
fl_status fl_fit_bars_read(const char *path, const char *without, fl_chip_bars *bars, fl_diag *d);

#endif
