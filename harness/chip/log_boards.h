/* Whether a log that names one GPU has the readings of several, stamped some milliseconds apart. */
#pragma once

#include "traces/io/records.h"

#include <stdbool.h>

/* Of the rows of one device, in order of time. A meter does not go back and forth between two levels within
 * milliseconds, reading after reading; two boards that are read in turn do. Boards with the same readings cannot be
 * told apart, nor need they be: their mean is right for each. */
bool fl_log_interleaves(const fl_telemetry *t, const size_t *row, size_t count);
