#include "policies/tightrope_kind.h"

#include "policies/tightrope_rate.h"

#include <math.h>

#define VISITS 4 /* to the top clock, from which on it is asked whether they differ */

void fl_tightrope_kind_top(fl_tightrope_kind *k, double d) {
    k->count++, k->sum_s += d, k->square_s += d * d, k->now++, k->now_s += d;
}

void fl_tightrope_kind_low(fl_tightrope_kind *k, double d, double certain_s) {
    k->done++, k->done_s += d, k->floor_s += certain_s;
}

/* Of one duration. */
static double variance(const fl_tightrope_kind *k) {
    const double m = fl_tightrope_kind_mean(k);
    return fmax(0, k->square_s / k->count - m * m) * k->count / (k->count - 1);
}

static int differs(const fl_tightrope_kind *k) {
    const double count = k->count - k->now, sum_s = k->sum_s - k->now_s; /* of the visits that ended */
    return k->visits >= 2 && k->visit_square_s - sum_s * sum_s / count >
                                 fl_tightrope_by_chance(k->visits) * (k->visits - 1) * variance(k);
}

void fl_tightrope_kind_visited(fl_tightrope_kind *k) {
    if (!(k->now > 0))
        return;
    const double mean = k->now_s / k->now;
    k->visits++, k->mean_s += mean, k->mean_square_s += mean * mean, k->visit_square_s += mean * k->now_s;
    k->now = k->now_s = 0;
    k->differs = k->visits >= VISITS && differs(k);
}

fl_tightrope_kind fl_tightrope_kind_known(const fl_tightrope_kind *k) {
    return (fl_tightrope_kind){.count = k->count,
                               .sum_s = k->sum_s,
                               .square_s = k->square_s,
                               .visits = k->visits,
                               .mean_s = k->mean_s,
                               .mean_square_s = k->mean_square_s,
                               .visit_square_s = k->visit_square_s,
                               .differs = k->differs};
}

/* The quantile of Student's t that is as rare as sigmas of the normal law (Wallace, "Bounds on normal approximations to
 * Student's and the chi-square distributions", 1959). */
double fl_tightrope_held_back(double sigmas, double count) {
    const double freedom = fmax(1, count - 1), z = sigmas * (8 * freedom + 3) / (8 * freedom + 1);
    return sqrt(freedom * expm1(fmin(z * z / freedom, 50)));
}

/* Durations that differ from visit to visit more than within one change with the program: what visits tell of the time
 * between them has the error of a mean of visits. */
static double visit_error(const fl_tightrope_kind *k, double sigmas) {
    if (k->visits < VISITS || !differs(k))
        return 0;
    const double m = k->mean_s / k->visits,
                 v = fmax(0, k->mean_square_s / k->visits - m * m) * k->visits / (k->visits - 1);
    return fmax(fl_tightrope_held_back(sigmas, k->visits) / sqrt(k->visits), FL_TIGHTROPE_WANDERS) * k->done * sqrt(v);
}

void fl_tightrope_kind_credit(const fl_tightrope_kind *k, double sigmas, fl_tightrope_sum *sum) {
    if (!(k->done > 0))
        return;
    if (k->count < 3) {
        sum->low_s += k->floor_s;
        return;
    }
    const double v = variance(k), mean = fmin(k->done_s, k->done * fl_tightrope_kind_mean(k));
    const double spread = k->done * k->done * v / k->count + k->done * v;
    const double error = fmax(fl_tightrope_held_back(sigmas, k->count) * sqrt(spread), visit_error(k, sigmas));
    if (error > mean - k->floor_s) {
        sum->low_s += fmax(k->floor_s, mean - error);
        return;
    }
    sum->low_s += mean;
    sum->square += error * error;
}
