#include "harness/advise/advise.h"

#include <math.h>

#define SDS 2 /* deviations of the intervals, as everywhere where the program states deviations */

/* The setting in every case; false where one case does not know it. */
static bool find_all(const fl_advise_case *c, size_t cases, fl_setting_clocks at, fl_chip_guess *g) {
    for (size_t k = 0; k < cases; k++)
        if (!fl_stated_at(&c[k].stated, at, &g[k]))
            return false;
    return true;
}

static bool states(const fl_stated *s) {
    bool any = s->fitted;
    for (size_t i = 0; i < s->count; i++)
        any |= s->guess[i].time_sd_pct > 0 || s->guess[i].power_sd_pct > 0;
    return any;
}

static double ln_energy(const fl_chip_guess *g) { return log(g->time_s * g->power_w); }

/* Whether the setting may be chosen: in all cases, or (any) in one. */
static bool allowed(const fl_chip_guess *g, const fl_chip_guess *top, size_t cases, double bound, double risk,
                    bool any) {
    size_t n = 0;
    for (size_t k = 0; k < cases; k++)
        n += fl_decide_allows(&g[k], &top[k], bound, risk) != 0;
    return any ? n > 0 : n == cases;
}

/* The uncertainty of a setting's energy: the stated deviations, and the distance between the cases. */
static double doubt(const fl_chip_guess *g, const fl_chip_guess *top, size_t cases) {
    double mean = 0, square = 0, stated = 0;
    for (size_t k = 0; k < cases; k++) {
        const double x = ln_energy(&g[k]) - ln_energy(&top[k]);
        mean += x / (double)cases;
        square += x * x / (double)cases;
        stated += fl_decide_cost_sd(&g[k], 1) / (double)cases;
    }
    return sqrt(fmax(0, square - mean * mean) + stated * stated);
}

static void widen(fl_interval *to, double value, double low, double high, size_t k, size_t cases) {
    to->value = (k ? to->value : 0) + value / (double)cases;
    to->low = k ? fmin(to->low, low) : low;
    to->high = k ? fmax(to->high, high) : high;
}

static void describe(const fl_chip_guess *g, const fl_chip_guess *top, size_t cases, double bound, bool is_top,
                     fl_advice *out) {
    for (size_t k = 0; k < cases; k++) {
        const fl_chip_guess *t = is_top ? &g[k] : &top[k];
        const double energy = ln_energy(&g[k]) - ln_energy(t), time = log(g[k].time_s / t->time_s);
        const double energy_sd = is_top ? 0 : hypot(fl_decide_cost_sd(&g[k], 1), fl_decide_cost_sd(t, 1));
        /* the deviation of time alone, without that of power */
        const fl_chip_guess a = {1, 1, g[k].time_sd_pct, 0}, b = {1, 1, t->time_sd_pct, 0};
        const double time_sd = is_top ? 0 : hypot(fl_decide_cost_sd(&a, 1), fl_decide_cost_sd(&b, 1));
        widen(&out->saving, 100 * (1 - exp(energy)), 100 * (1 - exp(energy + SDS * energy_sd)),
              100 * (1 - exp(energy - SDS * energy_sd)), k, cases);
        widen(&out->slowdown, 100 * (exp(time) - 1), 100 * (exp(time - SDS * time_sd) - 1),
              100 * (exp(time + SDS * time_sd) - 1), k, cases);
        out->chance = fmax(k ? out->chance : 0, is_top ? 0 : fl_decide_chance(&g[k], t, bound));
    }
}

fl_status fl_advise(const fl_advise_case *c, size_t cases, fl_setting_clocks ref, double bound, double risk,
                    fl_advice *out, fl_diag *d) {
    fl_chip_guess top[FL_ADVISE_CASES], g[FL_ADVISE_CASES], best[FL_ADVISE_CASES];
    fl_advice a = {.at = ref, .measure = {NAN, NAN, 0}};
    double least = INFINITY, most = 0;
    if (!find_all(c, cases, ref, top))
        return fl_refuse(d, "no data for the reference clock, %g MHz (memory %g MHz)", ref.sm_mhz, ref.mem_mhz);
    for (size_t k = 0; k < cases; k++)
        best[k] = top[k];
    bool assumed = false; /* the times of a case are not predictions, so no chance follows */
    for (size_t k = 0; k < cases; k++) {
        a.stated |= states(&c[k].stated);
        assumed |= c[k].assume != NULL;
    }
    for (size_t i = 0; i < c[0].stated.count; i++) {
        const fl_setting_clocks at = c[0].stated.at[i];
        if (!find_all(c, cases, at, g))
            continue;
        const bool is_ref = fl_stated_same(at, ref);
        double mean = 0;
        for (size_t k = 0; k < cases; k++)
            mean += (ln_energy(&g[k]) - ln_energy(&top[k])) / (double)cases;
        if ((is_ref || allowed(g, top, cases, bound, risk, false)) && mean < least) {
            least = mean;
            a.at = at;
            for (size_t k = 0; k < cases; k++)
                best[k] = g[k];
        }
        const double here = doubt(g, top, cases);
        if (!(at.limit_w > 0) && (is_ref || allowed(g, top, cases, bound, 1, true)) && here > most) {
            most = here;
            a.measure = at;
        }
    }
    describe(best, top, cases, bound, fl_stated_same(a.at, ref), &a);
    if (!a.stated || assumed)
        a.chance = NAN;
    *out = a;
    return FL_OK;
}
