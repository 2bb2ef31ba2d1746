#include "harness/fit/chip/decide.h"

#include "harness/base/json/json_out.h"
#include "models/chip/decide.h"

#include <math.h>
#include <stdio.h>

static bool is_measured(const fl_chip_row *row) { return !isnan(row->time_s) && !isnan(row->power_w); }

/* Spearman's correlation: Pearson's correlation of the ranks, where equal values share theirs. Ranks come from
 * counting, since settings are few. */
static double rank_among(const double *x, size_t n, size_t stride, size_t i) {
    double below = 0, same = 0;
    for (size_t k = 0; k < n; k++) {
        below += x[k * stride] < x[i * stride] ? 1 : 0;
        same += x[k * stride] == x[i * stride] ? 1 : 0;
    }
    return below + (same - 1) / 2;
}

static double rank_correlation(const double *pair, size_t n) { /* predicted, real, predicted, real ... */
    double sxx = 0, syy = 0, sxy = 0;
    const double mean = ((double)n - 1) / 2;
    for (size_t i = 0; i < n; i++) {
        const double x = rank_among(pair, n, 2, i) - mean, y = rank_among(pair + 1, n, 2, i) - mean;
        sxx += x * x;
        syy += y * y;
        sxy += x * y;
    }
    return n >= 3 && sxx > 0 && syy > 0 ? sxy / sqrt(sxx * syy) : (double)NAN;
}

bool fl_fit_decide(const fl_fit_rows *r, const fl_fit_entity *e, const fl_chip_guess *guess, const fl_fit_question *q,
                   fl_fit_choice *out) {
    enum { SETTINGS_MAX = 512 };
    double pair[2 * SETTINGS_MAX];
    size_t n = 0;
    const fl_chip_row *row = &r->row[e->first];
    const size_t top = e->count - 1; /* rows are sorted by memory clock, then SM clock */
    if (!e->count || !is_measured(&row[top]) || isnan(guess[top].power_w))
        return false;
    fl_fit_choice c = {.chosen = top, .best = top, .rank = NAN};
    double least = guess[top].time_s * guess[top].power_w, least_real = row[top].time_s * row[top].power_w;
    for (size_t i = 0; i < e->count; i++) {
        if (!is_measured(&row[i]))
            continue;
        const double real = row[i].time_s * row[i].power_w, predicted = guess[i].time_s * guess[i].power_w;
        if (row[i].time_s <= (1 + q->bound + FL_DECIDE_TOLERANCE) * row[top].time_s && real < least_real) {
            least_real = real;
            c.best = i;
        }
        if (isnan(predicted)) /* refused: it may be the best, but the fit cannot choose it */
            continue;
        if (n < SETTINGS_MAX) {
            pair[2 * n] = predicted;
            pair[2 * n++ + 1] = real;
        }
        if (predicted < least && fl_decide_allows(&guess[i], &guess[top], q->bound, q->risk)) {
            least = predicted;
            c.chosen = i;
        }
    }
    c.chance = fl_decide_chance(&guess[c.chosen], &guess[top], q->bound);
    c.excess = row[c.chosen].time_s / row[top].time_s - 1 - q->bound;
    c.regret = row[c.chosen].time_s * row[c.chosen].power_w / least_real - 1;
    c.expected_regret = fl_decide_regret(guess, e->count, top, c.chosen, q->bound, 1);
    c.rank = rank_correlation(pair, n);
    *out = c;
    return true;
}

void fl_fit_decisions_add(fl_fit_decisions *t, const fl_fit_choice *c) {
    const bool broken = c->excess > FL_DECIDE_TOLERANCE;
    t->count++;
    t->exact += c->chosen == c->best ? 1 : 0;
    t->broken += broken ? 1 : 0;
    t->broken_half += c->excess > 0.005 ? 1 : 0;
    t->worst = broken ? fmax(t->worst, c->excess) : t->worst;
    t->regret += c->regret;
    t->regret_held += broken ? 0 : c->regret;
    t->expected_regret += c->expected_regret;
    t->chance += c->chance;
    if (!isnan(c->rank)) {
        t->rank += c->rank;
        t->ranks++;
    }
}

double fl_fit_decisions_p(const fl_fit_decisions *t, double risk) {
    double below = 0;
    if (!(risk > 0) || !(risk < 1))
        return NAN;
    for (double k = 0; k < t->broken; k++) /* the probability of fewer than that many */
        below += exp(lgamma(t->count + 1) - lgamma(k + 1) - lgamma(t->count - k + 1) + k * log(risk) +
                     (t->count - k) * log1p(-risk));
    return fmax(0, 1 - below);
}

void fl_fit_decisions_json(const fl_fit_decisions *t, const fl_fit_question *q, cJSON *to) {
    const double n = t->count > 0 ? t->count : (double)NAN;
    fl_json_add_real(to, "bound", q->bound);
    fl_json_add_real(to, "risk", q->risk);
    fl_json_add_real(to, "choices", t->count);
    fl_json_add_real(to, "exact_pct", 100 * t->exact / n);
    fl_json_add_real(to, "broken_pct", 100 * t->broken / n);
    fl_json_add_real(to, "broken_half_pct", 100 * t->broken_half / n);
    fl_json_add_real(to, "expected_broken_pct", 100 * t->chance / n);
    fl_json_add_real(to, "worst_excess_pct", 100 * t->worst);
    fl_json_add_real(to, "regret_pct", 100 * t->regret / n);
    fl_json_add_real(to, "regret_held_pct",
                     t->count > t->broken ? 100 * t->regret_held / (t->count - t->broken) : (double)NAN);
    fl_json_add_real(to, "expected_regret_pct", 100 * t->expected_regret / n);
    fl_json_add_real(to, "binomial_p", fl_fit_decisions_p(t, q->risk));
    fl_json_add_real(to, "rank", t->ranks > 0 ? t->rank / t->ranks : (double)NAN);
}

void fl_fit_decisions_print(const fl_fit_decisions *t, const fl_fit_question *q) {
    printf("\nclocks chosen for least energy at most %g %% slower than the top", 100 * q->bound);
    if (q->risk < 1)
        printf(", where the chance to be slower is at most %g %%", 100 * q->risk);
    if (!(t->count > 0)) {
        printf(": none, no workload has a measured top and power\n");
        return;
    }
    printf("\n"
           "%g choices: %.1f %% are the best ones; %.1f %% break the bound (%.1f %% by more than half a point; the "
           "worst by %.2f points; the fit expects %.1f %%)\n",
           t->count, 100 * t->exact / t->count, 100 * t->broken / t->count, 100 * t->broken_half / t->count,
           100 * t->worst, 100 * t->chance / t->count);
    if (q->risk < 1)
        printf("a risk of %g %% is %s: at that risk, so many or more would break the bound with a chance of %.2g "
               "(binomial)\n",
               100 * q->risk, fl_fit_decisions_p(t, q->risk) < 0.05 ? "refuted" : "not refuted",
               fl_fit_decisions_p(t, q->risk));
    printf("energy of the choices %+.2f %% from the best choices (the fit expects %+.2f or more); rank correlation of "
           "the static clocks' energies %.3f\n",
           100 * t->regret / t->count, 100 * t->expected_regret / t->count,
           t->ranks > 0 ? t->rank / t->ranks : (double)NAN);
    const double held = t->count - t->broken;
    if (t->broken > 0 && held > 0)
        printf("the best choices hold the bound; one that breaks it may need less: %+.2f %% for the %g that hold it, "
               "%+.2f "
               "%% for the %g others\n",
               100 * t->regret_held / held, held, 100 * (t->regret - t->regret_held) / t->broken, t->broken);
}
