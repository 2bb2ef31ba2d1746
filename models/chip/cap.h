/* A board's power limit: whether it binds, and what a program does under it.
 *
 *   Under a limit L that binds, the board lowers the SM clock to g, where P(g) = crest L. The time is then T = T(g).
 *
 * P and T are the laws of the program (models/chip/chip.h). g is at most the clock that was asked for. Powers are in W. The
 * board holds the limit at each instant, but a program has phases that need less power, so its mean power stays below
 * the limit. The crest is mean power over limit. It is 0.75 to 0.98 on real programs, and nearly the same at all limits
 * of one program. One capped run measures it (a100-pcie-lock-x-cap: 0.967 to 0.976 for one program over limits of 150
 * to 225 W, 0.985 to 0.996 for another). The model does not follow phases: a program that alternates between phases
 * loses a little more time than T(g) says.
 *
 * A limit binds where power or time differ from their values under a higher limit, at the same requested clocks, by
 * more than the readings scatter. A power near its limit is no sign that the limit binds: a program may need 0.98 of
 * the limit without being held back. */
#pragma once

#include "models/chip/chip.h"
#include "models/math/status.h"

#include <stddef.h>

#define FL_CAP_CREST_LEAST 0.75 /* no program's mean power is below this share of a limit that binds */
#define FL_CAP_CREST_MOST 0.97  /* a mean power above it is close to the limit */

typedef enum fl_cap_verdict {
    FL_CAP_FREE,  /* does not bind */
    FL_CAP_BINDS, /* the clock was lower than asked for, at least at times */
    FL_CAP_UNTOLD /* one limit only, and power close to it: the time must decide (models/unsound/unsound.h) */
} fl_cap_verdict;

/* One workload at one pair of asked clocks under one limit. */
typedef struct fl_cap_cell {
    double limit_w, time_s, power_w; /* limit_w: INFINITY = no limit. power_w: NaN = not known */
    fl_cap_verdict verdict;          /* output */
} fl_cap_cell;

/* How well readings repeat, as shares (standard deviations). */
typedef struct fl_cap_scatter {
    double time, power;
} fl_cap_scatter;

/* Sets the verdicts of the cells of one workload at one pair of clocks. The cells are sorted by limit, highest first.
 */
void fl_cap_test(fl_cap_cell *cell, size_t count, const fl_cap_scatter *scatter);

/* Collects evidence of the scatter: |ln| ratios of time and of power between neighbouring limits that surely do not
 * bind (power below FL_CAP_CREST_LEAST of both). The cells are sorted by limit, highest first. time and power have room
 * for count values. Returns the number of values written. */
size_t fl_cap_repeats(const fl_cap_cell *cell, size_t count, double *time, double *power);
/* The scatter by these values: a robust estimate, never below 0.1 %. With fewer than 5 values it is FL_ROW_NOISE_TIME
 * and FL_ROW_NOISE_POWER. The function reorders the arrays. */
fl_cap_scatter fl_cap_scatter_of(double *time, double *power, size_t count);

/* The clock at which the power is `watts`, interpolated linearly in ln P over ln f. mhz ascends, count >= 1. RANGE:
 * watts is below the power at the lowest clock; *at is then the lowest clock. Where watts exceeds the power at the
 * highest clock, the limit does not hold the clock down: *at is the highest clock, and the status is OK. INVALID: a
 * power or clock that is not above 0. */
fl_model_status fl_cap_clock(const double *mhz, const double *power_w, size_t count, double watts, double *at);

/* Estimates the clock of a row of which only the power limit is known. The scale is relative: the workload's clock
 * under the highest limit counts as the chip's highest clock. The result is the clock at which the chip's power law,
 * without stall terms, gives the row's power, for a load with the chip's mean beta and the alpha that gives top_w at
 * the highest clock. The estimate serves to express time as a function of power; an error of V(f) bends this clock
 * axis, and the fitted time law bends with it. RANGE: the clock lies outside FL_CAP_LATENT_LOW to FL_CAP_LATENT_HIGH
 * times the highest clock. INVALID: no power law, or a power that is not above 0. */
fl_model_status fl_cap_latent(const fl_chip *chip, double mem_mhz, double top_w, double watts, double *mhz);
#define FL_CAP_LATENT_LOW 0.1
#define FL_CAP_LATENT_HIGH 1.2
