/* The fit of one line or a fold of two, for assure and sweetspot. */
#include "policies/papers/inside.h"

#include <stdint.h>

typedef struct sums { /* over some samples, in the order in which they were taken */
    double n, x, y, xx, xy, yy;
} sums;

static double at(fl_line line, double mhz) { return line.slope * mhz + line.offset; }

/* Over the samples of probe clocks first..last. */
static sums add_up(const fl_fold_data *d, uint32_t first, uint32_t last) {
    sums s = {0};
    for (uint32_t i = 0; i < 2 * d->probe_count; i++) {
        uint32_t p = fl_fold_probe_of(d->probe_count, i);
        if (p < first || p > last)
            continue;
        double x = d->probe_mhz[p], y = d->util_mem_pct[i];
        s.n += 1;
        s.x += x;
        s.y += y;
        s.xx += x * x;
        s.xy += x * y;
        s.yy += y * y;
    }
    return s;
}

static fl_line least_squares(sums s) {
    double under = s.n * s.xx - s.x * s.x;
    return (fl_line){(s.n * s.xy - s.x * s.y) / under, (s.y * s.xx - s.x * s.xy) / under};
}

/* Residual sum of squares of a line, from the moments and never from the points: the two differ by a rounding, of which
 * a tie between line and fold is made. */
static double residual(sums s, fl_line line) {
    double a = line.slope, b = line.offset;
    return s.yy + a * a * s.xx + s.n * b * b - 2 * a * s.xy - 2 * b * s.y + 2 * a * b * s.x;
}

/* Goes on adding to sum. */
static double squares(const fl_fold_data *d, fl_line line, uint32_t first, uint32_t last, double sum) {
    for (uint32_t i = 0; i < 2 * d->probe_count; i++) {
        uint32_t p = fl_fold_probe_of(d->probe_count, i);
        if (p < first || p > last)
            continue;
        double r = d->util_mem_pct[i] - at(line, d->probe_mhz[p]);
        sum += r * r;
    }
    return sum;
}

static double crossing(fl_line low, fl_line high) {
    return low.slope == high.slope ? -1 : (low.offset - high.offset) / (high.slope - low.slope);
}

/* Two lines that meet at the last clock of the low one: a1, a2 and b1 by Cramer's rule on the normal equations, whose
 * right sides stand on the left, as the fourth column. A system without a solution has an error too large to win. */
static void fit_fixed(const fl_fold_data *d, sums low, sums high, fl_fold *f) {
    double x = d->probe_mhz[f->high_from - 1], k = high.n;
    double c11 = low.xx + k * x * x, c12 = x * high.x - k * x * x, c13 = low.x + x * k;
    double c21 = c12, c22 = high.xx - 2 * x * high.x + k * x * x, c23 = high.x - k * x;
    double c31 = c13, c32 = c23, c33 = low.n + high.n;
    double c14 = -(low.xy + high.y * x), c24 = -(high.xy - x * high.y), c34 = -(low.y + high.y);
    double h =
        c11 * c22 * c33 + c12 * c23 * c31 + c21 * c32 * c13 - c13 * c22 * c31 - c12 * c21 * c33 - c11 * c23 * c32;
    f->kind = FL_FOLD_FIXED;
    f->error = 12345678;
    if (h == 0)
        return;
    double a1 =
        -(c14 * c22 * c33 + c12 * c23 * c34 + c13 * c24 * c32 - c13 * c22 * c34 - c12 * c24 * c33 - c23 * c32 * c14) /
        h;
    double a2 =
        -(c11 * c24 * c33 + c21 * c34 * c13 + c14 * c23 * c31 - c13 * c31 * c24 - c11 * c23 * c34 - c33 * c14 * c21) /
        h;
    double b1 =
        -(c11 * c22 * c34 + c21 * c32 * c14 + c12 * c24 * c31 - c22 * c14 * c31 - c12 * c21 * c34 - c11 * c32 * c24) /
        h;
    f->low = (fl_line){a1, b1};
    f->high = (fl_line){a2, x * (a1 - a2) + b1};
    f->error = squares(d, f->low, 0, f->high_from - 1, 0); /* of the points, low ones first, in one sum */
    f->error = squares(d, f->high, f->high_from, d->probe_count - 1, f->error);
}

/* The fold before probe clock t: clocks 0..t-1 below, t..m-1 above. */
static fl_fold fit_fold(const fl_fold_data *d, uint32_t t) {
    sums low = add_up(d, 0, t - 1), high = add_up(d, t, d->probe_count - 1);
    fl_fold f = {.kind = FL_FOLD_FREE, .low = least_squares(low), .high = least_squares(high), .high_from = t};
    double c = crossing(f.low, f.high);
    if (d->probe_mhz[t - 1] <= c && c <= d->probe_mhz[t])
        f.error = residual(low, f.low) + residual(high, f.high);
    else
        fit_fixed(d, low, high, &f);
    /* From the lines for a fixed fold too, which may miss its probe clock by a rounding. */
    f.turn_mhz = crossing(f.low, f.high);
    return f;
}

fl_fold fl_fold_fit(const fl_fold_data *d, double error_per_point) {
    uint32_t m = d->probe_count;
    sums all = add_up(d, 0, m - 1);
    fl_fold best = {.kind = FL_FOLD_LINE, .low = least_squares(all), .high_from = m};
    best.high = best.low;
    best.error = residual(all, best.low);
    for (uint32_t t = 2; t + 2 <= m; t++) {
        fl_fold f = fit_fold(d, t);
        /* Performance rises less above the fold than below it (a1 > a2 of Eq. 1), or there is no fold. */
        if (!(f.low.slope <= f.high.slope) && f.error < best.error)
            best = f;
    }
    if (best.error > error_per_point * 2 * m)
        best.kind = FL_FOLD_NONE;
    return best;
}

/* Which line stands at a probe clock is a matter of the clock's place, not of where the lines cross: where they cross
 * exactly at a probe clock, their values there differ by a rounding. */
static double performance(const fl_fold *f, const fl_fold_data *d, uint32_t probe) {
    if (f->low.slope <= 0) /* nothing rises: the same everywhere */
        return at(f->low, d->probe_mhz[0]);
    if (probe < f->high_from)
        return at(f->low, d->probe_mhz[probe]);
    return f->high.slope <= 0 ? at(f->low, f->turn_mhz) : at(f->high, d->probe_mhz[probe]);
}

double fl_fold_efficient_mhz(const fl_fold *f, const fl_fold_data *d) {
    uint32_t best = 0, m = d->probe_count;
    double best_ratio = 0;
    for (uint32_t i = 0; i < m; i++) {
        double power_mw = d->power_mw[i] / 2 + d->power_mw[2 * m - 1 - i] / 2;
        double ratio = performance(f, d, i) / power_mw;
        if (i == 0 || ratio > best_ratio) {
            best = i;
            best_ratio = ratio;
        }
    }
    return d->probe_mhz[best];
}

double fl_fold_bound_mhz(const fl_fold *f, const fl_fold_data *d, double theta, double fmax_mhz) {
    fl_line low = f->low, high = f->high;
    if (low.slope <= 0)
        return d->probe_mhz[0];
    if (f->high_from == d->probe_count)
        return (theta * at(low, fmax_mhz) - low.offset) / low.slope;
    if (high.slope <= 0)
        return (theta * at(low, f->turn_mhz) - low.offset) / low.slope;
    double goal = theta * at(high, fmax_mhz), mhz = (goal - high.offset) / high.slope;
    return mhz <= f->turn_mhz ? (goal - low.offset) / low.slope : mhz;
}
