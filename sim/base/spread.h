/* Durations that vary: a lognormal of a given mean and coefficient of variation, so that none falls to 0. Synthetic
 * programs and the jitter of a replayed sweep draw by this one law. */
#pragma once

#include "sim/base/normals.h"

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

/* A number with the whole part of scale x the next one. The quick normal is off by less than 1e-14, and its exponential
 * by that times the deviation: where a millionth of a millionth cannot move the whole part, it is the same. Elsewhere,
 * and where no int64_t holds it, the number is made again from the same uniform ones as fl_spread_draw makes it. */
static inline double fl_spread_whole(const fl_spread *s, double scale, fl_normals *n) {
    if (s->cv <= 0)
        return scale * s->mean;
    const double quick = scale * (s->mean * exp(s->deviation * fl_normals_next(n) - s->variance / 2));
    if (quick < 1e15 && (int64_t)(quick * (1 - 1e-12)) == (int64_t)(quick * (1 + 1e-12)))
        return quick;
    fl_random again = fl_normals_last(n);
    return scale * fl_spread_draw(s, &again);
}
