#include "policies/tightrope_percent.h"

#include <math.h>

#define LEAST 12 /* with fewer readings nothing is known of their noise */

void fl_tightrope_percent_add(fl_tightrope_percent *p, double pct) {
    p->seen[(int)lround(fmin(fmax(pct, 0), FL_TIGHTROPE_PERCENTS - 1))]++;
    p->count++;
}

/* Variance of the noise around one number, by how often both its neighbours come beside it: the normal law has
 * exp(-1 / (2 s^2)) of them, and rounding adds a twelfth to s^2. Levels of the program have no neighbours, and one that
 * alternates between two numbers has one. */
static double variance(const fl_tightrope_percent *p, int pct) {
    if (pct == 0 || pct == FL_TIGHTROPE_PERCENTS - 1)
        return 0;
    const double share = fmin(p->seen[pct - 1], p->seen[pct + 1]) / p->seen[pct];
    return share >= 1 ? INFINITY : share > 0 ? fmax(0, 1 / (-2 * log(share)) - 1.0 / 12) : 0;
}

/* What the readings at 100 cut off, of each on average: noise goes as far above as it does below, where the numbers
 * seen reach without a gap. */
static double cut_off(const fl_tightrope_percent *p) {
    double sum = 0, count = 0;
    for (int i = FL_TIGHTROPE_PERCENTS - 2; i >= 0 && p->seen[i] > 0; i--)
        sum += (double)p->seen[i] * (FL_TIGHTROPE_PERCENTS - 1 - i), count += p->seen[i];
    return count > 0 ? sum / count : 0;
}

/* Of a value with normal noise of variance s^2, the mean of what it is rounded to is off by half a step where there is
 * no noise, and by exp(-2 pi^2 s^2) of that at most (Widrow and Kollar, "Quantization Noise", 2008, on dither). */
double fl_tightrope_percent_error(const fl_tightrope_percent *p) {
    if (p->count < LEAST)
        return 0.5;
    double sum = p->seen[FL_TIGHTROPE_PERCENTS - 1] * cut_off(p);
    for (int i = 0; i < FL_TIGHTROPE_PERCENTS; i++)
        if (p->seen[i] > 0)
            sum += p->seen[i] * 0.5 * exp(-2 * M_PI * M_PI * variance(p, i));
    return sum / p->count;
}
