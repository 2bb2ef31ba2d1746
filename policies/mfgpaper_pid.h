/* MF-GPOEO, the controller: Eq. 13 with a K_P by schedule and as printed, with Algorithm 4 around it. Gears are indices
 * of the SM ladder; losses and bounds are fractions. */
#pragma once

#include <stdint.h>

enum { FL_MFP_PID_SCHEDULED, FL_MFP_PID_PRINTED };
enum { FL_MFP_BACK_AND, FL_MFP_BACK_OR };

typedef struct fl_mfp_pid_rules {
    double kp, ki, kd;                     /* Eq. 13 */
    int64_t form;                          /* FL_MFP_PID_ */
    int64_t back;                          /* FL_MFP_BACK_: Algorithm 4 line 3 */
    double factor_min, factor_max, kp_max; /* Kp is multiplied by a factor in this range, and is at most kp_max */
    double raise,
        raise_more; /* of the factor while the loss stays far below the bound or the curve is flat; and both */
    double far;     /* a loss below this share of the bound is far below it */
    double flat;    /* a change of loss below this share of the bound from one gear to another is flat */
    double near;    /* a loss up to this many times the bound is just past it: factor 1; beyond, factor_min */
    double swing;   /* a change of the error above this share of the bound is a large swing: only then Kd acts */
} fl_mfp_pid_rules;

typedef struct fl_mfp_pid {        /* all zero: before the first call */
    double err, integral;          /* err = bound - loss, of the measurement before; sum */
    double loss, bound, objective; /* of the measurement before */
    double factor;                 /* of Kp; 0 = not yet 1 */
    int32_t before;                /* gear of the measurement before */
    uint32_t count;                /* measurements so far */
} fl_mfp_pid;

/* The gear to try after `gear` was measured, in 0..top. */
int32_t fl_mfp_pid_next(const fl_mfp_pid_rules *r, fl_mfp_pid *s, double bound, double loss, double objective,
                        int32_t gear, int32_t top);
