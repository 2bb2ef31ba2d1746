/* Laws of one part of a training stage (a forward or a backward), over the SM clock. Clocks are shares of the top clock
 * and powers shares of the board's limit, so that one set of expectations serves any chip.
 *
 * Time: what does not follow the clock, and what does, up to the clock at which the board's power limit holds it:
 *     T(f) = T0 ((1 - share) + share f0 / min(f, wall)), the minimum rounded off
 * Power while it computes: P(f) = min(p law(f), most), law(f) = s + (1 - s) (f / f0) (v(f) / v(f0))^2, the V^2 f law
 * with a voltage that is flat up to a knee and then rises in a line. */
#pragma once

#include <stddef.h>

#define FL_STAGE_F0 0.75 /* clock of reference */

typedef struct fl_stage_time {
    double log_t0; /* of T0 in seconds */
    double share, wall;
    /* What measured clocks say beyond the law: smoothed residuals of the logarithm, at count clocks. */
    double *clock, *weight; /* owned */
    size_t count;
} fl_stage_time;

typedef struct fl_stage_power {
    double s, knee, rise; /* v(f) = 1 + rise max(f - knee, 0) */
} fl_stage_power;

double fl_stage_time_at(const fl_stage_time *t, double clock);   /* seconds, with what measured clocks say */
double fl_stage_law_at(const fl_stage_time *t, double clock);    /* seconds, the law alone */
double fl_stage_power_at(const fl_stage_power *p, double clock); /* 1 at FL_STAGE_F0 */

/* Smooths what is left of `log_s` (measured logarithms of seconds at `clock`, with their spreads sd) after the law, and
 * keeps it in *t. 0, or -1 where memory is short. */
int fl_stage_time_correct(fl_stage_time *t, const double *clock, const double *log_s, const double *sd, size_t count);
void fl_stage_time_free(fl_stage_time *t);
