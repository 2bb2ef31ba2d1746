/* MF-GPOEO, the controller: Eq. 13 with a K_P by schedule and as printed, with Algorithm 4 around it. Gears are indices
 * of the SM ladder; losses and bounds are fractions. */
#pragma once

#include <stdint.h>

enum { FL_MFP_PID_SCHEDULED, FL_MFP_PID_PRINTED };
enum { FL_MFP_BACK_AND, FL_MFP_BACK_OR };

typedef struct fl_mfp_pid_rules {
    double kp, ki, kd; /* Eq. 13 */
    int64_t form;      /* FL_MFP_PID_ */
    int64_t back;      /* FL_MFP_BACK_: Algorithm 4 line 3 */
    double swing;      /* a change of the error above this share of the bound is a large swing: only then Kd acts */
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
