#include "models/fit/kernel.h"

#include "models/laws/time.h"

#include <math.h>

/* The memory share that makes the time at the reference 1. */
static double memory_of(double c, double l, double p) {
    const double rest = 1 - l;
    if (isinf(p))
        return rest;
    const double x = c < rest ? pow(rest, p) - pow(c, p) : 0;
    return x > 0 ? pow(x, 1 / p) : 0;
}

double fl_kernel_time(const fl_kernel_fit *k, double p, double ref_over_f) {
    return fl_time_norm(k->c * ref_over_f, k->m, p) + k->l;
}

/* One ratio of times: ((c k)^p + 1 - c^p)^(1/p) = r. */
static double closed(double r, double k, double p) {
    if (r <= 1)
        return 0;
    if (r >= k)
        return 1;
    return isinf(p) ? r / k : pow((pow(r, p) - 1) / (pow(k, p) - 1), 1 / p);
}

typedef struct problem {
    const fl_kernel_point *point;
    size_t count, without; /* without: index of the point that is left out; count = none */
    double p;
} problem;

/* The level that suits a shape best in relative error, and the sum of squares of the remaining error. */
static double level_of(const problem *q, const fl_kernel_fit *k, double *level) {
    double top = 0, bottom = 0, rest = 0;
    const double ref = q->point[q->count - 1].sm_mhz;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < q->count; i++) {
            if (i == q->without)
                continue;
            const double x = fl_kernel_time(k, q->p, ref / q->point[i].sm_mhz) / q->point[i].time,
                         w = q->point[i].weight;
            if (!pass) { /* minimises sum w (1 - level x)^2 */
                top += w * x;
                bottom += w * x * x;
            } else {
                rest += w * (1 - *level * x) * (1 - *level * x);
            }
            if (!pass)
                *level = bottom > 0 ? top / bottom : 0;
        }
    return rest;
}

static double cost(const problem *q, double c, double l, fl_kernel_fit *k) {
    double level = 0;
    const double core = c * (1 - l);
    *k = (fl_kernel_fit){.c = core, .m = memory_of(core, l, q->p), .l = l};
    return level_of(q, k, &level);
}

/* Searches a coarse grid, then ever finer ones around its best point: there are two bounded unknowns, and no start
 * value can be wrong. */
static void search(const problem *q, fl_kernel_fit *best) {
    enum { STEPS = 20, ROUNDS = 6 };
    double low[2] = {0, 0}, high[2] = {1, 0.95}, least = HUGE_VAL, at[2] = {0, 0};
    for (int round = 0; round < ROUNDS; round++) {
        const double step[2] = {(high[0] - low[0]) / STEPS, (high[1] - low[1]) / STEPS};
        for (int i = 0; i <= STEPS; i++)
            for (int j = 0; j <= STEPS; j++) {
                fl_kernel_fit k;
                const double c = low[0] + i * step[0], l = low[1] + j * step[1], x = cost(q, c, l, &k);
                if (x < least - 1e-15) {
                    least = x;
                    at[0] = c;
                    at[1] = l;
                    *best = k;
                }
            }
        for (int i = 0; i < 2; i++) {
            low[i] = fmax(0, at[i] - 2 * step[i]);
            high[i] = fmin(i ? 0.95 : 1, at[i] + 2 * step[i]);
        }
    }
}

static void fit(const problem *q, fl_kernel_fit *out) {
    size_t first = 0, second = q->count - 1, used = q->count - (q->without < q->count);
    if (used > 2) {
        search(q, out);
        return;
    }
    while (first == q->without)
        first++;
    while (second == q->without)
        second--;
    /* without the reference the remaining points still give c, at the highest of them; the law is the same */
    const double k = q->point[second].sm_mhz / q->point[first].sm_mhz,
                 c = closed(q->point[first].time / q->point[second].time, k, q->p);
    const double up = q->point[q->count - 1].sm_mhz / q->point[second].sm_mhz, m = memory_of(c, 0, q->p);
    const double whole = fl_time_norm(c / up, m, q->p);
    *out = (fl_kernel_fit){.c = c / up / whole, .m = m / whole};
}

fl_model_status fl_fit_kernel(const fl_kernel_point *point, size_t count, double p, fl_kernel_fit *out) {
    if (count < 2 || !(p >= 1))
        return FL_MODEL_INVALID;
    for (size_t i = 0; i < count; i++)
        if (!(point[i].sm_mhz > 0) || !(point[i].time > 0) || !(point[i].weight > 0) || isinf(point[i].time) ||
            (i && !(point[i].sm_mhz > point[i - 1].sm_mhz)))
            return FL_MODEL_INVALID;
    problem q = {point, count, count, p};
    fit(&q, out);
    const double ref = point[count - 1].sm_mhz;
    double level, error = 0, unseen = 0;
    level_of(&q, out, &level);
    for (size_t i = 0; i < count; i++)
        error += fabs(level * fl_kernel_time(out, p, ref / point[i].sm_mhz) / point[i].time - 1);
    out->mape_pct = 100 * error / (double)count;
    for (size_t i = 0; i < count && count > 2; i++) {
        fl_kernel_fit k;
        q.without = i;
        fit(&q, &k);
        level_of(&q, &k, &level);
        unseen += fabs(level * fl_kernel_time(&k, p, ref / point[i].sm_mhz) / point[i].time - 1);
    }
    out->unseen_pct = count > 2 ? 100 * unseen / (double)count : (double)NAN;
    return FL_MODEL_OK;
}
