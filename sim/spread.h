/* Durations that vary: a lognormal of a given mean and coefficient of variation, so that none falls to 0. Synthetic
 * programs and the jitter of a replayed sweep draw by this one law. */
#pragma once

#include "policies/random.h"

typedef struct fl_spread { /* once for all its draws */
    double mean, cv, variance, deviation;
} fl_spread;

static inline fl_spread fl_spread_of(double mean, double cv) {
    const double variance = log(1 + cv * cv);
    return (fl_spread){mean, cv, variance, sqrt(variance)};
}

/* The next one. Of no variation it is the mean, and nothing is drawn. */
static inline double fl_spread_draw(const fl_spread *s, fl_random *r) {
    return s->cv <= 0 ? s->mean : s->mean * exp(s->deviation * fl_random_normal(r) - s->variance / 2);
}
