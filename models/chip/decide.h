/* How far a choice of setting that rests on a fit may be trusted: the chance that the bound breaks in reality, and the
 * expected regret. Both follow from the standard deviations that the fit states for its own predictions.
 *
 * Logarithms of times and powers are taken as normal. Errors of two settings count as independent, and so do the errors
 * of time and power at one setting. Where errors are in fact correlated, this makes a choice look less sure than it is,
 * never surer. A setting without a deviation (NaN) counts as certain. The bound is a slowdown as a share: time at the
 * setting over time at the top, less one. */
#pragma once

#include "models/chip/chip.h"

#define FL_DECIDE_TOLERANCE 1e-12 /* a bound that is met to the last digit holds */

/* The chance of breaking the bound. It is 0 for at == top and for a bound of INFINITY. */
double fl_decide_chance(const fl_chip_guess *at, const fl_chip_guess *top, double bound);
/* Whether a setting may be chosen: the prediction holds the bound, and the chance of breaking it is at most risk (with
 * risk 1 the prediction alone decides). Settings without a prediction (NAN) may not be chosen. */
int fl_decide_allows(const fl_chip_guess *at, const fl_chip_guess *top, double bound, double risk);
/* Standard deviation of ln(power x time^delay): 1 = energy, 2 = EDP, 3 = ED2P. */
double fl_decide_cost_sd(const fl_chip_guess *at, double delay);
/* The expected regret at guess[chosen], as a share of power x time^delay. For each other setting it takes the expected
 * improvement times the chance that the setting holds the bound, and returns the largest. This is a lower limit of what
 * knowing all settings would save. */
double fl_decide_regret(const fl_chip_guess *guess, size_t count, size_t top, size_t chosen, double bound,
                        double delay);
