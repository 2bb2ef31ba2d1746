#include "policies/tightrope_percent.h"

#include <math.h>

#define FREE_LEAST 12 /* with fewer readings nothing is known of their noise */

void fl_tightrope_percent_add(fl_tightrope_percent *p, double pct) {
    p->count++;
    p->sum += pct;
    p->square += pct * pct;
}

void fl_tightrope_percent_end(fl_tightrope_percent *p) {
    if (p->count > 1) {
        p->apart += fmax(0, p->square - p->sum * p->sum / p->count);
        p->free += p->count - 1;
    }
    p->count = p->sum = p->square = 0;
}

/* Of a value with noise of deviation s, in steps, the mean of what it is rounded to is off by half a step at s = 0, and
 * by exp(-2 pi^2 s^2) of that at most where s is larger (Widrow and Kollar, "Quantization Noise", 2008, on dither). Of
 * the variance seen, up to a quarter may be a value between two steps that alternates, which tells nothing. */
double fl_tightrope_percent_error(const fl_tightrope_percent *p) {
    const double seen = p->free >= FREE_LEAST ? p->apart / p->free : 0;
    return 0.5 * exp(-2 * M_PI * M_PI * fmax(0, seen - 0.25));
}
