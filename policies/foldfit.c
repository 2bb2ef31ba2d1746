#include "policies/foldfit.h"

/* Utilisations are whole percents, so lines often cross exactly at a probe clock, or fit exactly: a rounding must not
 * decide then. Far below anything that a sensor can tell. */
static const double hair_mhz = 1e-6, hair_error = 1e-9;

static double at(fl_line line, double mhz) { return line.slope * mhz + line.offset; }

/* Least squares over the samples of probe clocks first..last. Clocks and utilisations are whole numbers as a rule, so
 * the products below are exact and a flat or equal slope comes out as exactly that. */
static fl_line fit_line(const fl_fold_data *d, uint32_t first, uint32_t last) {
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (uint32_t i = 0; i < 2 * d->probe_count; i++) {
        uint32_t p = fl_fold_probe_of(d->probe_count, i);
        if (p < first || p > last)
            continue;
        double x = d->probe_mhz[p], y = d->util_mem_pct[i];
        n += 1;
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    fl_line line;
    line.slope = (n * sxy - sx * sy) / (n * sxx - sx * sx);
    line.offset = (sy - line.slope * sx) / n;
    return line;
}

static double squares(const fl_fold_data *d, fl_line line, uint32_t first, uint32_t last) {
    double sum = 0;
    for (uint32_t i = 0; i < 2 * d->probe_count; i++) {
        uint32_t p = fl_fold_probe_of(d->probe_count, i);
        if (p < first || p > last)
            continue;
        double r = d->util_mem_pct[i] - at(line, d->probe_mhz[p]);
        sum += r * r;
    }
    return sum;
}

/* Two lines that meet at probe clock k: least squares of y = c + a1 u + a2 v with u = min(x - x_k, 0), v = max(x - x_k,
 * 0). The normal equations have no u-v term, so a1 and a2 follow from c. */
static void fit_fixed(const fl_fold_data *d, uint32_t k, fl_fold *f) {
    double n = 0, sy = 0, su = 0, suu = 0, suy = 0, sv = 0, svv = 0, svy = 0;
    double turn = d->probe_mhz[k];
    for (uint32_t i = 0; i < 2 * d->probe_count; i++) {
        double x = d->probe_mhz[fl_fold_probe_of(d->probe_count, i)] - turn, y = d->util_mem_pct[i];
        double u = x < 0 ? x : 0, v = x > 0 ? x : 0;
        n += 1;
        sy += y;
        su += u;
        suu += u * u;
        suy += u * y;
        sv += v;
        svv += v * v;
        svy += v * y;
    }
    double c = (sy - su * suy / suu - sv * svy / svv) / (n - su * su / suu - sv * sv / svv);
    f->kind = FL_FOLD_FIXED;
    f->turn_mhz = turn;
    f->low.slope = (suy - su * c) / suu;
    f->low.offset = c - f->low.slope * turn;
    f->high.slope = (svy - sv * c) / svv;
    f->high.offset = c - f->high.slope * turn;
}

/* The fold after probe clock k: clocks 0..k below, k+1..m-1 above. */
static fl_fold fit_fold(const fl_fold_data *d, uint32_t k) {
    uint32_t last = d->probe_count - 1;
    fl_fold f = {.kind = FL_FOLD_FREE, .low = fit_line(d, 0, k), .high = fit_line(d, k + 1, last)};
    f.turn_mhz = (f.high.offset - f.low.offset) / (f.low.slope - f.high.slope);
    /* Equal slopes give an infinity or NaN here, and so no crossing. */
    if (!(f.turn_mhz >= d->probe_mhz[k] - hair_mhz && f.turn_mhz <= d->probe_mhz[k + 1] + hair_mhz))
        fit_fixed(d, k, &f);
    f.error = squares(d, f.low, 0, k) + squares(d, f.high, k + 1, last);
    return f;
}

fl_fold fl_fold_fit(const fl_fold_data *d, double error_per_point) {
    uint32_t last = d->probe_count - 1;
    fl_fold best = {.kind = FL_FOLD_LINE, .low = fit_line(d, 0, last)};
    best.high = best.low;
    best.error = squares(d, best.low, 0, last);
    for (uint32_t k = 1; k + 2 <= last; k++) {
        fl_fold f = fit_fold(d, k);
        /* Performance rises less above the fold than below it (a1 > a2 of Eq. 1), or there is no fold. */
        if (f.low.slope > f.high.slope && f.error < best.error - hair_error)
            best = f;
    }
    if (best.error > error_per_point * 2 * d->probe_count)
        best.kind = FL_FOLD_NONE;
    return best;
}

static double performance(const fl_fold *f, const fl_fold_data *d, double mhz) {
    if (f->low.slope <= 0) /* nothing rises: the same everywhere */
        return at(f->low, d->probe_mhz[0]);
    if (f->kind == FL_FOLD_LINE || mhz <= f->turn_mhz)
        return at(f->low, mhz);
    return at(f->high, f->high.slope > 0 ? mhz : f->turn_mhz);
}

double fl_fold_efficient_mhz(const fl_fold *f, const fl_fold_data *d) {
    uint32_t best = 0, m = d->probe_count;
    double best_ratio = 0;
    for (uint32_t i = 0; i < m; i++) {
        double power_w = (d->power_w[i] + d->power_w[2 * m - 1 - i]) / 2;
        double ratio = performance(f, d, d->probe_mhz[i]) / power_w;
        if (i == 0 || ratio > best_ratio) {
            best = i;
            best_ratio = ratio;
        }
    }
    return d->probe_mhz[best];
}

double fl_fold_bound_mhz(const fl_fold *f, const fl_fold_data *d, double theta, double fmax_mhz) {
    if (f->low.slope <= 0)
        return d->probe_mhz[0];
    if (f->kind != FL_FOLD_LINE && f->high.slope > 0) {
        double mhz = (theta * at(f->high, fmax_mhz) - f->high.offset) / f->high.slope;
        if (mhz > f->turn_mhz)
            return mhz;
    }
    double target = theta * (f->kind == FL_FOLD_LINE ? at(f->low, fmax_mhz)
                             : f->high.slope > 0     ? at(f->high, fmax_mhz)
                                                     : at(f->low, f->turn_mhz));
    return (target - f->low.offset) / f->low.slope;
}
