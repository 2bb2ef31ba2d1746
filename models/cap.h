/* A board's power limit: whether it binds, and what a program does under it.
 *
 *   under a limit L that binds the board lowers the SM clock to g, where   P(g) = crest L,   and then   T = T(g)
 *
 * P and T are the laws of the program (models/chip.h), g is at most the clock that was asked for, powers in W. The
 * board holds the limit at each instant, programs have phases that need less, so their mean power stays below it: crest
 * is mean power over limit, 0.75 to 0.98 on real programs, nearly the same at all limits of one program. One capped run
 * tells it (a100-pcie-lock-x-cap: 0.967 to 0.976 for one program over limits of 150 to 225 W, 0.985 to 0.996 for
 * another). Phases are not followed: a program that alternates loses a little more time than T(g) says.
 *
 * A limit binds where power or time differ from what they are under a higher one, at the same asked clocks, by more
 * than the readings scatter. A power near its limit is no sign of that: a program may need 0.98 of it. */
#ifndef FL_CAP_H
#define FL_CAP_H

#include "models/chip.h"
#include "models/status.h"

#include <stddef.h>

#define FL_CAP_CREST_LEAST 0.75 /* no program's mean power is below this share of a limit that binds */
#define FL_CAP_CREST_MOST 0.97  /* a mean power above it is close to the limit */

typedef enum fl_cap_verdict {
    FL_CAP_FREE,  /* does not bind */
    FL_CAP_BINDS, /* the clock was lower than asked for, at least at times */
    FL_CAP_UNTOLD /* one limit only, and power close to it: the row's time must tell (models/unsound.h) */
} fl_cap_verdict;

/* One workload at one pair of asked clocks under one limit. */
typedef struct fl_cap_cell {
    double limit_w, time_s, power_w; /* limit INFINITY: none; power NaN: not known */
    fl_cap_verdict verdict;          /* an answer */
} fl_cap_cell;

/* How well readings repeat, as shares (standard deviations). */
typedef struct fl_cap_scatter {
    double time, power;
} fl_cap_scatter;

/* Sets the verdicts of the cells of one workload and pair of clocks. They are sorted by limit, the highest first. */
void fl_cap_test(fl_cap_cell *cell, size_t count, const fl_cap_scatter *scatter);

/* Adds what two neighbouring limits that surely do not bind (power below FL_CAP_CREST_LEAST of both) say of the
 * scatter: ln ratios of time and power. Sorted likewise; time, power: room for count values. How many were added. */
size_t fl_cap_repeats(const fl_cap_cell *cell, size_t count, double *time, double *power);
/* Of these: robust, never below 0.1 %; fewer than 5 of them: FL_ROW_NOISE_TIME and _POWER. They are changed. */
fl_cap_scatter fl_cap_scatter_of(double *time, double *power, size_t count);

/* The clock at which the power is `watts`: by lines through ln P over ln f. mhz ascending, count >= 1. RANGE: watts is
 * below the power at the lowest clock, which *at is then; above that at the highest clock, which is not held down, *at
 * is the highest clock. INVALID: a power or clock that is none. */
fl_model_status fl_cap_clock(const double *mhz, const double *power_w, size_t count, double watts, double *at);

/* The clock of a row of which only its limit is known, relative to that of its workload under the highest limit: there
 * it counts as the chip's highest. It is where the chip's power law, without stall terms, has the row's power, for a
 * load of the chip's mean beta and the alpha that meets top_w at the highest clock. What it is for is the time as a
 * function of the power, in which an error of V(f) bends the clock's axis, and the fitted time law with it. RANGE:
 * beyond FL_CAP_LATENT_LOW to FL_CAP_LATENT_HIGH times the highest clock. INVALID: no power law, or a power that is
 * none. */
fl_model_status fl_cap_latent(const fl_chip *chip, double mem_mhz, double top_w, double watts, double *mhz);
#define FL_CAP_LATENT_LOW 0.1
#define FL_CAP_LATENT_HIGH 1.2

#endif
