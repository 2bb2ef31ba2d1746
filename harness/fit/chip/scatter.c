#include "harness/fit/chip/scatter.h"

#include <math.h>

#define NEIGHBOURS 6 /* three on each side */
#define LEAST 4      /* a quadratic needs three; one to spare */

/* Weights with which the quadratic through n points gives its value at x = 0; false where the points lie too close. */
static bool curve_weights(const double *x, size_t n, double *weight) {
    double far = 0, s[5] = {0}, w[NEIGHBOURS];
    for (size_t i = 0; i < n; i++)
        far = fmax(far, fabs(x[i]));
    for (size_t i = 0; i < n; i++) {
        const double u = fabs(x[i]) / (1.1 * far), cube = 1 - u * u * u;
        w[i] = cube * cube * cube; /* tricube */
        for (int k = 0; k < 5; k++)
            s[k] += w[i] * pow(x[i] / far, k);
    }
    /* First row of the inverse of the normal equations, by cofactors. */
    const double c0 = s[2] * s[4] - s[3] * s[3], c1 = s[2] * s[3] - s[1] * s[4], c2 = s[1] * s[3] - s[2] * s[2];
    const double det = s[0] * c0 + s[1] * c1 + s[2] * c2;
    if (!(det > 1e-9 * s[0] * s[2] * s[4]))
        return false;
    for (size_t i = 0; i < n; i++) {
        const double u = x[i] / far;
        weight[i] = w[i] * (c0 + c1 * u + c2 * u * u) / det;
    }
    return true;
}

/* Adds the scatter of row `at` of a curve of `count` rows with rising SM clock, neither its first nor its last. */
static void add_row(const fl_chip_row *row, size_t count, size_t at, fl_fit_scatter *sum, double *powered) {
    double x[NEIGHBOURS], weight[NEIGHBOURS], time = 0, power = 0, squares = 1;
    size_t low = at, high = at, n = 0, of[NEIGHBOURS];
    while (n < NEIGHBOURS &&
           (low > 0 || high + 1 < count)) { /* alternates between the sides as long as both have rows */
        if (low > 0 && (at - low <= high - at || high + 1 == count))
            of[n] = --low;
        else
            of[n] = ++high;
        x[n] = log(row[of[n]].sm_mhz / row[at].sm_mhz);
        n++;
    }
    if (n < LEAST || !curve_weights(x, n, weight))
        return;
    for (size_t i = 0; i < n; i++) {
        time += weight[i] * log(row[of[i]].time_s / row[at].time_s);
        power += weight[i] * log(row[of[i]].power_w / row[at].power_w);
        squares += weight[i] * weight[i];
    }
    const double back = 100 / sqrt(squares);
    sum->time += fabs(time) * back;
    sum->rows++;
    if (isnan(power))
        return;
    sum->power += fabs(power) * back;
    sum->energy += fabs(time + power) * back;
    ++*powered;
}

fl_fit_scatter fl_fit_scatter_of(const fl_fit_rows *r) {
    fl_fit_scatter sum = {0};
    double powered = 0;
    for (size_t e = 0; e < r->entities; e++) {
        const fl_chip_row *row = &r->row[r->entity[e].first];
        for (size_t i = 0, end; i < r->entity[e].count; i = end) {
            for (end = i + 1; end < r->entity[e].count && fabs(row[end].mem_mhz - row[i].mem_mhz) < 0.5;)
                end++;
            for (size_t k = 1; k + 1 < end - i; k++)
                add_row(row + i, end - i, k, &sum, &powered);
        }
    }
    sum.time = sum.rows ? sum.time / (double)sum.rows : (double)NAN;
    sum.power = powered > 0 ? sum.power / powered : (double)NAN;
    sum.energy = powered > 0 ? sum.energy / powered : (double)NAN;
    return sum;
}
