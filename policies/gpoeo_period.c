#include "policies/gpoeo_period.h"

#include <math.h>
#include <string.h>

enum { PEAKS = 6, LEVELS = 4, PARTS_MAX = 16, STABLE_PARTS = 3 };
static const double peak_share = 0.60, padded_from = 2.0 / 3, shortest_s = 0.4, near_multiple = 0.1;
static const double refine = 0.15, refine_step = 0.01, aperiodic_s = 30;

static double deviation(const double *x, uint32_t n) {
    double mean = 0, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        mean += x[i] / n;
    for (uint32_t i = 0; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean) / n;
    return sum;
}

static void combine(const fl_readings *r, double limit_w, int signs, double *x) {
    const double u = signs & 1 ? -1 : 1, v = signs & 2 ? -1 : 1;
    for (uint32_t i = 0; i < r->count; i++)
        x[i] = (limit_w > 0 ? 100 * (double)r->power_w[i] / limit_w : 0) + u * (double)r->gpu_pct[i] +
               v * (double)r->mem_pct[i];
}

void fl_gpoeo_composite(const fl_readings *r, double limit_w, double *x) {
    double most = -1;
    int best = 0;
    for (int signs = 0; signs < 4; signs++) {
        combine(r, limit_w, signs, x);
        const double d = deviation(x, r->count);
        if (d > most) {
            most = d;
            best = signs;
        }
    }
    combine(r, limit_w, best, x);
}

/* ---- candidates ---------------------------------------------------------------------------------------------------
 */

typedef struct candidates {
    double period[PEAKS + 1]; /* in samples, the highest peak first */
    uint32_t count;
} candidates;

/* The highest peaks of x, padded with zeros to `padded` samples. */
static void find_peaks(fl_gpoeo_work *w, const double *x, uint32_t n, uint32_t padded, candidates *c) {
    double mean = 0, height[PEAKS + 1], *y = w->y;
    for (uint32_t i = 0; i < n; i++)
        mean += x[i] / n;
    for (uint32_t i = 0; i < padded; i++)
        y[i] = i < n ? x[i] - mean : 0;
    fl_fft_magnitude(&w->fft, y, padded, y);
    c->count = 0;
    for (uint32_t k = 1; k + 1 <= padded / 2; k++) {
        if (!(y[k] > y[k - 1] && y[k] > y[k + 1]))
            continue;
        uint32_t at = c->count < PEAKS ? c->count++ : PEAKS;
        for (; at > 0 && height[at - 1] < y[k]; at--) {
            height[at] = height[at - 1];
            c->period[at] = c->period[at - 1];
        }
        height[at] = y[k];
        c->period[at] = (double)padded / k;
    }
    while (c->count && !(height[c->count - 1] > peak_share * height[0]) && c->count > 1)
        c->count--;
}

/* Periods too short to look at are replaced by one that nearly is a multiple of each. */
static void join_short(candidates *c, double spacing_s) {
    double brief[PEAKS], longest = 0;
    uint32_t count = 0, kept = 0;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->period[i] * spacing_s < shortest_s) {
            brief[count++] = c->period[i];
            longest = fmax(longest, c->period[i]);
        } else
            c->period[kept++] = c->period[i];
    c->count = kept;
    for (uint32_t m = 2; count && m * longest * spacing_s <= FL_GPOEO_LONGEST_S; m++) {
        uint32_t near = 0;
        for (uint32_t i = 0; i < count; i++) {
            const double ratio = m * longest / brief[i];
            near += fabs(ratio - rint(ratio)) < near_multiple;
        }
        if (near == count && m * longest * spacing_s >= shortest_s) {
            c->period[c->count++] = m * longest;
            return;
        }
    }
}

/* ---- likeness -----------------------------------------------------------------------------------------------------
 */

/* Of two adjacent periods of m samples. */
static double pair_unlike(const double *a, const double *b, uint32_t m) {
    double low = a[0], high = a[0], mean = 0, of_a[LEVELS] = {0}, of_b[LEVELS] = {0}, sum = 0;
    for (uint32_t i = 0; i < m; i++) {
        low = a[i] < low ? a[i] : low; /* no call of fmin, which takes longer; what is not a number ends below */
        high = a[i] > high ? a[i] : high;
        mean += (fabs(a[i]) + fabs(b[i])) / (2 * m);
    }
    if (!(mean > 0))
        return 0;
    for (uint32_t i = 0; i < m; i++) {
        const double level = high > low ? (a[i] - low) / (high - low) * LEVELS : 0;
        const int group = level < LEVELS - 1 ? (int)level : LEVELS - 1;
        of_a[group] += a[i];
        of_b[group] += b[i];
    }
    for (int group = 0; group < LEVELS; group++) /* share of the samples times difference of the means */
        sum += fabs(of_a[group] - of_b[group]) / m;
    return sum / mean;
}

double fl_gpoeo_unlike(const double *x, uint32_t n, double period) {
    if (!(period >= 1) || !(2 * period <= n))
        return INFINITY;
    const uint32_t m = (uint32_t)period;
    double sum = 0, pairs = 0;
    for (; (pairs + 2) * period <= n; pairs++) /* rounding moves an end by less than a sample: it stays within n */
        sum += pair_unlike(x + (size_t)rint(pairs * period), x + (size_t)rint((pairs + 1) * period), m);
    return sum / pairs;
}

double fl_gpoeo_best(fl_gpoeo_work *w, const double *x, uint32_t n, double spacing_s, double *first) {
    candidates c = {.count = 0};
    *first = NAN;
    if (n < 4)
        return NAN;
    find_peaks(w, x, n, n, &c);
    if (c.count && c.period[0] > padded_from * n && 2 * n <= FL_FFT_MAX)
        find_peaks(w, x, n, 2 * n, &c);
    if (!c.count)
        return NAN;
    *first = c.period[0];
    join_short(&c, spacing_s);
    double best = NAN, least = INFINITY;
    for (uint32_t i = 0; i < c.count; i++) {
        const double unlike = fl_gpoeo_unlike(x, n, c.period[i]);
        if (c.period[i] * spacing_s <= FL_GPOEO_LONGEST_S && unlike < least) {
            least = unlike;
            best = c.period[i];
        }
    }
    const double middle = best;
    for (int k = (int)rint(-refine / refine_step); k <= (int)rint(refine / refine_step); k++) {
        const double near = middle * (1 + k * refine_step), unlike = fl_gpoeo_unlike(x, n, near);
        if (near * spacing_s <= FL_GPOEO_LONGEST_S && unlike < least) {
            least = unlike;
            best = near;
        }
    }
    return best;
}

/* ---- the whole ----------------------------------------------------------------------------------------------------
 */

fl_gpoeo_period fl_gpoeo_find(fl_gpoeo_work *w, const fl_readings *r, double limit_w, double spread) {
    const double spacing = fl_readings_spacing_s(r);
    fl_gpoeo_period p = {.period_s = NAN};
    double value[PARTS_MAX], first, low = INFINITY, high = -INFINITY, mean = 0;
    uint32_t count = 0;
    if (r->count < 4 || !(spacing > 0))
        return p;
    fl_gpoeo_composite(r, limit_w, w->x);
    uint32_t level = 1;
    while (level < r->count && w->x[level] == w->x[0])
        level++;
    if (level == r->count) /* what is left of it without its mean is rounding */
        return p;
    const double whole = fl_gpoeo_best(w, w->x, r->count, spacing, &first);
    if (isnan(whole) || first * spacing > aperiodic_s)
        return p;
    p.period_s = whole * spacing;
    const double step = fmax(whole / 2, r->count / 10.0);
    for (double at = 0; at <= r->count / 2.0 + 1e-9 && count < PARTS_MAX; at += step) {
        const uint32_t from = (uint32_t)at;
        const double part = from ? fl_gpoeo_best(w, w->x + from, r->count - from, spacing, &first) : whole;
        if (isnan(part))
            continue;
        value[count++] = part;
        low = fmin(low, part);
        high = fmax(high, part);
    }
    for (uint32_t i = 0; i < count; i++)
        mean += value[i] / count;
    p.stable = count >= STABLE_PARTS && high - low < spread * mean && r->count >= FL_GPOEO_PERIODS * mean;
    if (p.stable)
        p.period_s = mean * spacing;
    return p;
}

double fl_gpoeo_missing_s(double length_s, fl_gpoeo_period p) {
    if (p.stable || isnan(p.period_s) || length_s >= FL_GPOEO_PERIODS * FL_GPOEO_LONGEST_S)
        return 0;
    return fmax(fmax(p.period_s / 2, length_s / 10), FL_GPOEO_PERIODS * p.period_s - length_s);
}
