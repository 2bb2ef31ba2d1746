/* What one may rely on who chooses a setting by a fit: the chance that the real bound breaks there, and the regret to
 * expect. Both follow from the deviations that the fit states of its own predictions.
 *
 * Logarithms of times and powers are normal. Errors of two settings are taken to be independent, as are those of time
 * and power at one: that makes a choice look less sure than it is where errors go together, never surer. A setting
 * without a deviation (NaN) counts as sure. The bound is on the slowdown, as a share: time at the setting over time at
 * the top, less one. */
#ifndef FL_DECIDE_H
#define FL_DECIDE_H

#include "models/chip.h"

#define FL_DECIDE_TOLERANCE 1e-12 /* a bound that is met to the last digit holds */

/* Of breaking the bound. at == top: 0. INFINITY as a bound: 0. */
double fl_decide_chance(const fl_chip_guess *at, const fl_chip_guess *top, double bound);
/* Whether a setting may be chosen: it is predicted to hold the bound, and with a chance of breaking it of at most risk
 * (1: the prediction alone decides). Settings without a prediction (NAN) may not. */
int fl_decide_allows(const fl_chip_guess *at, const fl_chip_guess *top, double bound, double risk);
/* Standard deviation of ln(power x time^delay): 1 = energy, 2 = EDP, 3 = ED2P. */
double fl_decide_cost_sd(const fl_chip_guess *at, double delay);
/* Regret to expect at guess[chosen], as a share of power x time^delay: what the one other setting that is most worth
 * measuring is expected to be better by, times the chance that it holds the bound. A lower limit of what knowing all
 * settings would save. */
double fl_decide_regret(const fl_chip_guess *guess, size_t count, size_t top, size_t chosen, double bound,
                        double delay);

#endif
