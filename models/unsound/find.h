/* Finds the rows of models/unsound/unsound.h. */
#pragma once

#include "models/chip/chip.h"
#include "models/math/status.h"
#include "models/unsound/unsound.h"

/* row: sorted by workload, memory clock, SM clock; all numbers valid (time > 0; power NaN = not known). The function
 * does not judge a workload of fewer than five rows: its rows are FL_SOUND. NO_MEMORY is the only failure. Call
 * fl_unsound_free after success. */
fl_model_status fl_unsound_find(const fl_chip_row *row, size_t count, fl_unsound *found);
