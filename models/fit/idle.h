/* The power of a board while nothing runs on it, from a log: C V and the clock tree, A0 V^2 f. */
#pragma once

#include "models/math/status.h"

#include <stddef.h>

/* One step of a log of one GPU. */
typedef struct fl_idle_reading {
    double util_pct, power_w, sm_mhz;
    double set_mhz; /* the clock that was set after the reading; NaN = none */
} fl_idle_reading;

typedef struct fl_idle_point {
    double sm_mhz, power_w; /* power: median of the readings */
    size_t readings;
} fl_idle_point;

/* Idle power by clock, from a log of one GPU in order of time. Never mix GPUs: units differ by several watts. A reading
 * counts where utilisation is 0, the clock is settled (it equals the clock of the reading before, or the clock that was
 * set after that one), and the next reading is not busy. The last condition holds because power is a mean over a far
 * shorter window than utilisation, so power shows a new kernel first. point: room for `count` entries; *points: how
 * many were written, ascending by clock. NO_FIT: no such reading. */
fl_model_status fl_idle_points(const fl_idle_reading *reading, size_t count, fl_idle_point *point, size_t *points);

typedef struct fl_idle_clock {
    double fixed_w; /* the part that depends neither on V nor on the clock: B0(m) */
    double c_w;     /* C: W per V */
    double a0_w;    /* A0: W per V^2 GHz */
    double rms_w, worst_w;
} fl_idle_clock;

/* Fits P = fixed + C V + A0 V^2 f (f in GHz) to the points by least squares, with V given for each point and all three
 * constants >= 0. Each clock has the same weight, however long the GPU idled at it. Where V is the same at all points,
 * the data cannot separate C from the fixed part, and C is 0. predicted_w: one value per point, or NULL. NO_FIT: fewer
 * than 3 points. */
fl_model_status fl_fit_idle_clock(const fl_idle_point *point, const double *volt, size_t count, fl_idle_clock *out,
                                  double *predicted_w);
