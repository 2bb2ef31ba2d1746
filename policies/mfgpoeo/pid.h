/* MF-GPOEO as released, the controller: from the loss at a gear to the next gear. Gears are indices of the SM ladder,
 * losses and bound are fractions. */
#pragma once

#include <stdint.h>

typedef struct fl_mfg_gains {
    double kp, ki, kd;
} fl_mfg_gains;

typedef struct fl_mfg_pid { /* all zero: (re)started */
    double err, loss, gain; /* of the call before */
    double integral;
    int32_t gear[2];            /* measured in the call before, and in the one before that */
    uint32_t calls, compounded; /* compounded: a row that compounds has been taken */
} fl_mfg_pid;

typedef struct fl_mfg_measured {
    double loss, bound;
    double below_mhz; /* clock that was set less the mean clock; NAN: not known */
    int32_t gear;
    uint32_t gears; /* on the ladder */
} fl_mfg_measured;

/* The gear to measure next, 0..gears-1. */
int32_t fl_mfg_pid_next(fl_mfg_pid *s, const fl_mfg_gains *k, const fl_mfg_measured *m);
