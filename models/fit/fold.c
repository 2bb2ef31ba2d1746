/* The fold line of a bandwidth-bound kernel, from its times at several clocks. */
#include "models/fit/fit.h"

#include "models/laws/device.h"
#include "models/math/math.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct problem {
    const fl_kernel_point *point;
    size_t count, without; /* without: index of the point that is left out; count = none */
} problem;

typedef struct line { /* rate = at + slope mhz, in 1 / time; every error is relative to the measured rate */
    double at, slope;
} line;

/* Fit the points first..last by least squares; `flat` holds the slope at 0. */
static bool line_of(const problem *q, size_t first, size_t last, bool flat, line *out) {
    double n = 0, x = 0, xx = 0, y = 0, xy = 0;
    size_t used = 0;
    for (size_t i = first; i <= last; i++) {
        if (i == q->without)
            continue;
        const double t = q->point[i].time, w = q->point[i].weight * t * t, f = q->point[i].sm_mhz;
        n += w;
        x += w * f;
        xx += w * f * f;
        y += w / t;
        xy += w * f / t;
        used++;
    }
    if (used == 0 || (used == 1 && !flat))
        return false;
    *out = flat ? (line){y / n, 0} : (line){(y * xx - x * xy) / (n * xx - x * x), (n * xy - x * y) / (n * xx - x * x)};
    return true;
}

/* Least squares of level, upper slope and extra lower slope at a given fold, none below 0: at + high (f - fold) + more
 * min(f - fold, 0). Every subset of the two slopes is solved; the best one without a negative slope is the optimum. */
static double at_fold(const problem *q, double fold, double *level, fl_fold_line *out) {
    double least = HUGE_VAL;
    for (unsigned set = 0; set < 4; set++) {
        double g[3][4] = {{0}};
        for (size_t i = 0; i < q->count; i++) {
            if (i == q->without)
                continue;
            const double t = q->point[i].time, w = q->point[i].weight * t * t, x = q->point[i].sm_mhz / fold - 1;
            const double term[4] = {1, set & 1 ? x : 0, set & 2 ? fmin(x, 0) : 0, 1 / t};
            for (int r = 0; r < 3; r++)
                for (int c = 0; c < 4; c++)
                    g[r][c] += w * term[r] * term[c];
        }
        double v[3] = {0};
        bool solved = true;
        for (int k = 0; k < 3 && solved; k++) { /* Gauss-Jordan; a term that is not in the set stays 0 */
            if (k && !(set >> (k - 1) & 1))
                continue;
            solved = g[k][k] > 1e-12 * g[0][0];
            for (int c = 3; solved && c >= k; c--)
                g[k][c] /= g[k][k];
            for (int r = 0; solved && r < 3; r++)
                for (int c = 3; r != k && c >= k; c--)
                    g[r][c] -= g[r][k] * g[k][c];
        }
        for (int k = 0; k < 3; k++)
            v[k] = k && !(set >> (k - 1) & 1) ? 0 : g[k][3];
        if (!solved || !(v[0] > 0) || v[1] < 0 || v[2] < 0)
            continue;
        const fl_fold_line b = {fold, (v[1] + v[2]) / v[0], v[1] / v[0]};
        double cost = 0;
        for (size_t i = 0; i < q->count; i++) {
            const double e = v[0] * fl_fold_line_at(&b, q->point[i].sm_mhz) * q->point[i].time - 1;
            cost += i == q->without ? 0 : q->point[i].weight * e * e;
        }
        if (cost < least - 1e-15) {
            least = cost;
            *level = v[0];
            *out = b;
        }
    }
    return least;
}

/* The best fold lies either at a measured clock or where two lines cross that are fitted to the points on either side
 * (GEEPAFS fits its fold so, too). Each such place is tried, with an upper line that rises and one that is flat. */
static double fit(const problem *q, double *level, fl_fold_line *out) {
    double least = HUGE_VAL;
    for (size_t i = 0; i < q->count; i++) {
        double place[3] = {q->point[i].sm_mhz};
        size_t places = 1;
        for (int flat = 0; flat < 2 && i + 1 < q->count; flat++) {
            line low, high;
            if (!line_of(q, 0, i, false, &low) || !line_of(q, i + 1, q->count - 1, flat, &high))
                continue;
            const double cross = (high.at - low.at) / (low.slope - high.slope);
            if (cross > q->point[i].sm_mhz && cross < q->point[i + 1].sm_mhz)
                place[places++] = cross;
        }
        for (size_t k = 0; k < places; k++) {
            double its_level = 0;
            fl_fold_line b;
            const double cost = at_fold(q, place[k], &its_level, &b);
            if (cost < least - 1e-15) {
                least = cost;
                *level = its_level;
                *out = b;
            }
        }
    }
    return least;
}

static double error_at(const problem *q, double level, const fl_fold_line *b, size_t i) {
    const double rate = level * fl_fold_line_at(b, q->point[i].sm_mhz);
    return rate > 0 ? fabs(1 / (rate * q->point[i].time) - 1) : 1;
}

fl_model_status fl_fit_fold_line(const fl_kernel_point *point, size_t count, fl_fold_line_fit *out) {
    if (count < 3)
        return FL_MODEL_INVALID;
    for (size_t i = 0; i < count; i++)
        if (!(point[i].sm_mhz > 0) || !(point[i].time > 0) || !(point[i].weight > 0) || isinf(point[i].time) ||
            (i && !(point[i].sm_mhz > point[i - 1].sm_mhz)))
            return FL_MODEL_INVALID;
    problem q = {point, count, count};
    double level = 0, error = 0, unseen = 0;
    if (isinf(fit(&q, &level, &out->line)))
        return FL_MODEL_NO_FIT;
    for (size_t i = 0; i < count; i++)
        error += error_at(&q, level, &out->line, i);
    out->mape_pct = 100 * error / (double)count;
    for (size_t i = 0; i < count && count > 3; i++) {
        fl_fold_line b;
        q.without = i;
        unseen += isinf(fit(&q, &level, &b)) ? 1 : error_at(&q, level, &b, i);
    }
    out->unseen_pct = count > 3 ? 100 * unseen / (double)count : (double)NAN;
    return FL_MODEL_OK;
}
