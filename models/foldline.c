#include "models/foldline.h"

#include <math.h>

typedef struct line {
    double a, b, error;
} line;

/* Least squares of y = a x + b about the means, so that clocks in the thousands cost no precision. */
static line fit_line(const double *x, const double *y, size_t count) {
    double mx = 0, my = 0, sxx = 0, sxy = 0, error = 0;
    for (size_t i = 0; i < count; i++) {
        mx += x[i];
        my += y[i];
    }
    mx /= (double)count;
    my /= (double)count;
    for (size_t i = 0; i < count; i++) {
        sxx += (x[i] - mx) * (x[i] - mx);
        sxy += (x[i] - mx) * (y[i] - my);
    }
    const double a = sxx > 0 ? sxy / sxx : 0;
    for (size_t i = 0; i < count; i++) {
        const double r = y[i] - my - a * (x[i] - mx);
        error += r * r;
    }
    return (line){.a = a, .b = my - a * mx, .error = error};
}

static int rises(double from, double to) { return to > from; }

fl_model_status fl_foldline_fit(const double *mhz, const double *utilisation, size_t count, fl_foldline *out) {
    if (count < 2)
        return FL_MODEL_INVALID;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(mhz[i]) || !isfinite(utilisation[i]) || (i > 0 && mhz[i] < mhz[i - 1]))
            return FL_MODEL_INVALID;
    if (!rises(mhz[0], mhz[count - 1]))
        return FL_MODEL_NO_FIT;

    const line single = fit_line(mhz, utilisation, count);
    fl_foldline best = {
        .a1 = single.a, .b1 = single.b, .a2 = single.a, .b2 = single.b, .turn = INFINITY, .error = single.error};
    for (size_t k = 2; k + 2 <= count; k++) { /* k points below the fold */
        if (!rises(mhz[0], mhz[k - 1]) || !rises(mhz[k], mhz[count - 1]))
            continue;
        const line low = fit_line(mhz, utilisation, k), high = fit_line(mhz + k, utilisation + k, count - k);
        if (!(low.a > high.a) || !(high.a >= 0) || !(low.error + high.error < best.error))
            continue;
        const double turn = (high.b - low.b) / (low.a - high.a);
        if (turn < mhz[k - 1] || turn > mhz[k])
            continue;
        best = (fl_foldline){
            .a1 = low.a, .b1 = low.b, .a2 = high.a, .b2 = high.b, .turn = turn, .error = low.error + high.error};
    }
    *out = best;
    return FL_MODEL_OK;
}

double fl_foldline_at(const fl_foldline *l, double mhz) {
    return mhz <= l->turn ? l->a1 * mhz + l->b1 : l->a2 * mhz + l->b2;
}
