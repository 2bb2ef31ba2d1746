#include "models/chip/decide.h"

#include <math.h>

static double share(double pct) { return pct > 0 ? pct / 100 : 0; } /* NAN: the value was measured */

/* Standard deviation of the predicted logarithm of the slowdown. */
static double spread(const fl_chip_guess *at, const fl_chip_guess *top) {
    return at == top ? 0 : hypot(share(at->time_sd_pct), share(top->time_sd_pct));
}

double fl_decide_chance(const fl_chip_guess *at, const fl_chip_guess *top, double bound) {
    const double room = log1p(bound) - log(at->time_s / top->time_s), sd = spread(at, top);
    if (!(sd > 0))
        return room < -FL_DECIDE_TOLERANCE;
    return 0.5 * erfc(room / sd / sqrt(2));
}

int fl_decide_allows(const fl_chip_guess *at, const fl_chip_guess *top, double bound, double risk) {
    return at->time_s <= (1 + bound + FL_DECIDE_TOLERANCE) * top->time_s && !isnan(at->power_w) &&
           fl_decide_chance(at, top, bound) <= risk;
}

double fl_decide_cost_sd(const fl_chip_guess *at, double delay) {
    return hypot(share(at->power_sd_pct), delay * share(at->time_sd_pct));
}

static double ln_cost(const fl_chip_guess *at, double delay) { return log(at->power_w) + delay * log(at->time_s); }

/* E[max(0, X)] of a normal X. */
static double mean_above(double mean, double sd) {
    if (!(sd > 0))
        return fmax(0, mean);
    const double z = mean / sd;
    return mean * 0.5 * erfc(-z / sqrt(2)) + sd * exp(-0.5 * z * z) / sqrt(2 * M_PI);
}

double fl_decide_regret(const fl_chip_guess *guess, size_t count, size_t top, size_t chosen, double bound,
                        double delay) {
    const fl_chip_guess *c = &guess[chosen];
    const double mine = ln_cost(c, delay), sd = fl_decide_cost_sd(c, delay);
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        if (i == chosen || isnan(guess[i].power_w) || isnan(guess[i].time_s))
            continue;
        const double better =
            mean_above(mine - ln_cost(&guess[i], delay), hypot(sd, fl_decide_cost_sd(&guess[i], delay)));
        most = fmax(most, better * (1 - fl_decide_chance(&guess[i], &guess[top], bound)));
    }
    return most;
}
