#include "policies/tightrope/percent.h"

#include <math.h>

#define LEAST 12 /* with fewer readings at a clock nothing is known of their noise */

typedef fl_tightrope_level level;

/* Variance of the noise around one number, by how often both its neighbours come beside it: around its centre the
 * normal law has exp(-1 / (2 s^2)) as many at each, and rounding adds a twelfth to s^2; further out one side has fewer,
 * which makes the result smaller. One steady level has no neighbours, and one that alternates between two numbers has
 * one. */
static double variance(const level *l, int pct) {
    if (pct == 0 || pct == FL_TIGHTROPE_PERCENTS - 1)
        return 0;
    const double share =
        (double)(l->seen[pct - 1] < l->seen[pct + 1] ? l->seen[pct - 1] : l->seen[pct + 1]) / l->seen[pct];
    return share >= 1 ? INFINITY : share > 0 ? fmax(0, 1 / (-2 * log(share)) - 1.0 / 12) : 0;
}

/* What the readings at 100 cut off, of each on average: noise goes as far above as it does below, where the numbers
 * seen reach without a gap. */
static double cut_off(const level *l) {
    double sum = 0, count = 0;
    for (int i = FL_TIGHTROPE_PERCENTS - 2; i >= 0 && l->seen[i] > 0; i--)
        sum += (double)l->seen[i] * (FL_TIGHTROPE_PERCENTS - 1 - i), count += l->seen[i];
    return count > 0 ? sum / count : 0;
}

/* Of a value with normal noise of variance s^2, the mean of what it is rounded to is off by half a step where there is
 * no noise, and by exp(-2 pi^2 s^2) of that at most (Widrow and Kollar, "Quantization Noise", 2008, on dither). */
static double error_of(const level *l) {
    if (l->count < LEAST)
        return 0.5;
    double sum = l->seen[FL_TIGHTROPE_PERCENTS - 1] * cut_off(l);
    for (int i = 0; i < FL_TIGHTROPE_PERCENTS; i++)
        if (l->seen[i] > 0)
            sum += l->seen[i] * 0.5 * exp(-2 * M_PI * M_PI * variance(l, i));
    return sum / l->count;
}

/* Of the lower clocks the one with the fewest readings gives way where no place is free. */
static level *place(fl_tightrope_percent *p, double clock) {
    if (clock >= 1)
        return p->level;
    level *least = &p->level[1];
    for (int i = 1; i < FL_TIGHTROPE_LEVELS; i++) {
        if (p->level[i].clock == clock)
            return &p->level[i];
        least = p->level[i].count < least->count ? &p->level[i] : least;
    }
    p->count += least->count;
    p->error += least->count * error_of(least);
    *least = (level){.clock = clock};
    return least;
}

void fl_tightrope_percent_add(fl_tightrope_percent *p, double clock, double pct) {
    level *l = place(p, clock);
    l->seen[(int)lround(fmin(fmax(pct, 0), FL_TIGHTROPE_PERCENTS - 1))]++;
    l->count++;
}

double fl_tightrope_percent_top(const fl_tightrope_percent *p) { return error_of(p->level); }

double fl_tightrope_percent_low(const fl_tightrope_percent *p) {
    double count = p->count, error = p->error;
    for (int i = 1; i < FL_TIGHTROPE_LEVELS; i++)
        count += p->level[i].count, error += p->level[i].count * error_of(&p->level[i]);
    return count > 0 ? error / count : 0.5;
}
