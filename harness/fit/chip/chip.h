/* MODULE harness/fit/chip */
#pragma once

#include "traces/io/io.h"

/* A platform of a board of which only facts are known, so that a user can simulate it at once. */

/* Writes the platform file that `fit device --facts BOARD` makes. base: the platform for sensors, actuators and the
 * host. */
fl_status fl_fit_board_platform(const char *board, const char *base, const char *path, fl_diag *d);
