/* What a board draws while nothing runs on it, out of a log: C V and the clock tree, A0 V^2 f. */
#ifndef FL_FIT_IDLE_H
#define FL_FIT_IDLE_H

#include "models/status.h"

#include <stddef.h>

/* One step of a log of one GPU. */
typedef struct fl_idle_reading {
    double util_pct, power_w, sm_mhz;
    double set_mhz; /* the clock set after the reading; NaN = none */
} fl_idle_reading;

typedef struct fl_idle_point {
    double sm_mhz, power_w; /* power: median of the readings */
    size_t readings;
} fl_idle_point;

/* Idle power by clock out of a log of one GPU, in order of time (units differ by several watts: never mix them).
 * A reading counts where utilisation is 0, the clock is settled (it is that of the reading before, or the one that was
 * then set), and the next reading is not busy: power is the mean of a far shorter window than utilisation, so a kernel
 * that has just begun shows in power first. point: room for `count`; *points: how many, ascending by clock. NO_FIT: no
 * such reading. */
fl_model_status fl_idle_points(const fl_idle_reading *reading, size_t count, fl_idle_point *point, size_t *points);

typedef struct fl_idle_clock {
    double fixed_w; /* what neither V nor the clock changes: B0(m) */
    double c_w;     /* C: W per V */
    double a0_w;    /* A0: W per V^2 GHz */
    double rms_w, worst_w;
} fl_idle_clock;

/* P = fixed + C V + A0 V^2 f (f in GHz) through the points with V given for each, least squares, all three >= 0. Each
 * clock weighs the same, however long the GPU idled at it. Where V is the same at all points C cannot be told from the
 * fixed part: it is then 0. predicted_w: one per point, or NULL. NO_FIT: fewer than 3 points. */
fl_model_status fl_fit_idle_clock(const fl_idle_point *point, const double *volt, size_t count, fl_idle_clock *out,
                                  double *predicted_w);

#endif
