/* Fits of chips: `foldline fit device` and `fit workload`.
 *
 * The commands are rows of base/cli/commands.h; their parts are in inside.h. Other modules call one function:
 * fl_fit_board_platform makes a platform file of a board of which only data are known, so that a user can simulate or
 * emulate it at once. What the board's data lack is assumed from similar chips, and the file marks it as assumed.
 * FL_BAD_INPUT: an unknown board, or one that lacks a ladder or a limit. */
#pragma once

#include "traces/io/io.h"

/* Write the platform file that `fit device --facts BOARD` makes. base: the platform whose sensors, actuators and host
 * it takes. */
fl_status fl_fit_board_platform(const char *board, const char *base, const char *path, fl_diag *d);
