/* The idle clock tree of a board, from a log in which its GPU idles at several clocks with a context open. */
#pragma once

#include "models/chip/fit_chip.h"
#include "models/fit/idle.h"
#include "traces/io/diag.h"

typedef struct fl_idle_log {
    fl_idle_clock idle;
    double a0_sd; /* standard deviation of idle.a0_w, from the scatter about the law */
    double low_mhz, high_mhz;
    size_t clocks, readings;
    int device; /* the log's first GPU that idles at enough clocks; units differ, so their readings are never mixed */
} fl_idle_log;

/* Idle power by clock of the log's first GPU that idles at four clocks or more, ascending. The caller frees *point. */
fl_status fl_idle_log_points(const char *path, fl_idle_point **point, size_t *count, int *device, fl_diag *d);

/* V is the chip's, or its floor below the calibrated clocks. FL_BAD_INPUT where no GPU of the log idles at four clocks
 * or more. */
fl_status fl_idle_log_fit(const char *path, const fl_chip *chip, fl_idle_log *out, fl_diag *d);
