/* tightrope: work that is certain, and what is known at each clock. */
#include "policies/tightrope/inside.h"

#include <math.h>
#include <stdint.h>

/* ---- work that is certain ---- */

void fl_tightrope_certain_cut(fl_tightrope_certain *c, int64_t then_ns) {
    while (c->count && c->from_ns[c->count - 1] > then_ns)
        c->count--;
}

void fl_tightrope_certain_from(fl_tightrope_certain *c, int64_t from_ns, double worth) {
    fl_tightrope_certain_cut(c, from_ns - 1);
    if (c->count == FL_TIGHTROPE_SPANS) {
        c->worth[0] = fmin(c->worth[0], c->worth[1]);
        for (uint32_t i = 1; i + 1 < FL_TIGHTROPE_SPANS; i++)
            c->from_ns[i] = c->from_ns[i + 1], c->worth[i] = c->worth[i + 1];
        c->count--;
    }
    c->from_ns[c->count] = from_ns;
    c->worth[c->count++] = worth;
}

double fl_tightrope_certain_between(const fl_tightrope_certain *c, int64_t from_ns, int64_t to_ns) {
    double sum = 0;
    for (uint32_t i = c->count; i-- > 0 && to_ns > from_ns;) {
        if (to_ns <= c->from_ns[i])
            continue;
        const int64_t begin =
            i && c->from_ns[i] > from_ns ? c->from_ns[i] : from_ns; /* the first holds for all before */
        sum += (double)(to_ns - begin) * 1e-9 * c->worth[i];
        to_ns = begin;
    }
    return sum;
}

static double ratio(const fl_tightrope_chip *c, uint32_t clock) { return (double)c->mhz[c->count - 1] / c->mhz[clock]; }

/* ---- what is known at each clock --------------------------------------------------------------------------------
 * Both curves are a law and what strays from it. The law has its constants from the clocks that were tried; what strays
 * is a Gaussian process of log clock with an exponential covariance, so that a prediction follows its neighbours as far
 * as their noise allows, and says how far off it may be. Such a process is Markov's, so a filter that runs up the
 * ladder and one that runs down tell all (Rasmussen and Williams, "Gaussian processes", 2006, Appendix B). */

typedef struct stray { /* of one clock, relative */
    double mean, variance;
} stray;

typedef struct curves {
    double slowdown[FL_TIGHTROPE_CLOCKS], power[FL_TIGHTROPE_CLOCKS]; /* the laws, then with what strays */
    double doubt[FL_TIGHTROPE_CLOCKS];                                /* relative standard error of their product */
} curves;

/* From one clock to the next. */
static void move(const fl_tightrope_chip *c, uint32_t from, uint32_t to, stray *s) {
    const double alike = exp(-fabs(log((double)c->mhz[to] / c->mhz[from])) / c->smooth);
    s->mean *= alike;
    s->variance = alike * alike * s->variance + (1 - alike * alike) * c->roughness * c->roughness;
}

/* seen: of a clock that was not tried with infinite variance. */
static void see(const stray *seen, stray *s) {
    const double gain = s->variance / (s->variance + seen->variance);
    s->mean += gain * (seen->mean - s->mean);
    s->variance *= 1 - gain;
}

static void smooth(const fl_tightrope_chip *c, const stray *seen, stray *at) {
    const stray before = {0, c->roughness * c->roughness};
    stray now = before;
    for (uint32_t k = 0; k < c->count; k++) {
        move(c, k > 0 ? k - 1 : 0, k, &now);
        see(&seen[k], &now);
        at[k] = now;
    }
    now = before;
    for (uint32_t k = c->count; k-- > 0;) {
        move(c, k + 1 < c->count ? k + 1 : k, k, &now);
        const double weight = 1 / at[k].variance + 1 / now.variance - 1 / before.variance;
        at[k] = (stray){(at[k].mean / at[k].variance + now.mean / now.variance) / weight, 1 / weight};
        see(&seen[k], &now);
    }
}

/* s^p = 1 + q (x^p - 1), x = top / f: q by what was tried; the worst case until then. */
static void time_law(const fl_tightrope_chip *c, const fl_tightrope_seen *seen, double *slowdown) {
    const double p = c->sharpness;
    double weight = 1e-4, sum = 1e-4;
    for (uint32_t k = 0; k < c->count; k++) {
        if (!(seen[k].weight_s > 0))
            continue;
        const double x = pow(ratio(c, k), p) - 1, s = seen[k].slowdown;
        const double noise = p * hypot(seen[k].noise, c->roughness) * pow(s, p);
        weight += x * x / (noise * noise);
        sum += x * (pow(s, p) - 1) / (noise * noise);
    }
    const double q = fmin(1, fmax(0, sum / weight));
    for (uint32_t k = 0; k < c->count; k++)
        slowdown[k] = pow(1 + q * (pow(ratio(c, k), p) - 1), 1 / p);
}

/* V^2 f, 1 at the top clock. Where V is not known: a floor up to 0.65 of the top clock, and 1.35 times it at the top.
 */
static double swing(const fl_tightrope_chip *c, uint32_t clock) {
    const double share = 1 / ratio(c, clock);
    double v = 1 + 0.35 * fmax(0, (share - 0.65) / 0.35), v_top = 1.35;
    if (c->volt)
        v = c->volt[clock], v_top = c->volt[c->count - 1];
    return v * v / (v_top * v_top) * share;
}

/* P = a + b V^2 f by what was tried. Until two clocks were tried b is the assumed one. */
static void power_law(const fl_tightrope_chip *c, const fl_tightrope_seen *seen, double *power) {
    double weight = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
    for (uint32_t k = 0; k < c->count; k++) {
        if (!(seen[k].weight_s > 0))
            continue;
        const double x = swing(c, k), y = seen[k].power_w;
        const double noise = seen[k].power_noise;
        const double w = 1 / (noise * noise + c->roughness * c->roughness);
        weight += w, wx += w * x, wy += w * y, wxx += w * x * x, wxy += w * x * y;
    }
    const double mx = wx / weight, my = wy / weight;
    const double assumed = my * (1 - c->fixed_share) / (c->fixed_share + (1 - c->fixed_share) * mx);
    const double ridge = 1e-3 * weight;
    const double b = fmax(0.1 * assumed, (wxy - wx * my + ridge * assumed) / (wxx - wx * mx + ridge));
    for (uint32_t k = 0; k < c->count; k++)
        power[k] = fmax(0.05 * my, my + b * (swing(c, k) - mx));
}

/* What was seen against what a law says. */
static stray off_by(double value, double law, double noise) { return (stray){value / law - 1, noise * noise + 1e-8}; }

static void predict(const fl_tightrope_chip *c, const fl_tightrope_seen *seen, uint32_t first, curves *v) {
    stray time_seen[FL_TIGHTROPE_CLOCKS], power_seen[FL_TIGHTROPE_CLOCKS];
    stray time[FL_TIGHTROPE_CLOCKS], power[FL_TIGHTROPE_CLOCKS];
    int only_top = 1;
    time_law(c, seen, v->slowdown);
    power_law(c, seen, v->power);
    for (uint32_t k = 0; k < c->count; k++) {
        const fl_tightrope_seen *s = &seen[k];
        time_seen[k] = power_seen[k] = (stray){0, INFINITY};
        if (!(s->weight_s > 0))
            continue;
        only_top &= k == c->count - 1;
        time_seen[k] = off_by(s->slowdown, v->slowdown[k], s->noise);
        power_seen[k] = off_by(s->power_w, v->power[k], s->power_noise);
    }
    smooth(c, time_seen, time);
    smooth(c, power_seen, power);
    for (uint32_t k = first; k < c->count; k++) {
        /* Until a lower clock was tried the slowdown may be all that the two facts leave. */
        const double unknown = only_top ? (ratio(c, k) - 1) / sqrt(3) : 0;
        v->slowdown[k] *= 1 + time[k].mean;
        v->slowdown[k] = fmax(1, fmin(v->slowdown[k], ratio(c, k) * (1 + c->tolerance)));
        v->power[k] *= 1 + power[k].mean;
        v->doubt[k] = sqrt(time[k].variance + power[k].variance + unknown * unknown);
    }
}

double fl_tightrope_burn(double bound, double most) { return fmax(0, 1 - (1 + bound) / most); }

int fl_tightrope_affordable(const fl_tightrope_wish *w, double window_s, double worst, double most) {
    const double blind_s = w->blind_s * fl_tightrope_burn(w->bound, most);
    return w->slack_s + fmin(0, (1 + w->bound) * window_s / worst - window_s) >= blind_s;
}

static double length(const fl_tightrope_wish *w, const fl_tightrope_seen *seen, uint32_t clock) {
    return seen[clock].weight_s > 0 ? w->window_s : w->first_window_s;
}

static int can_pay(const fl_tightrope_chip *c, const fl_tightrope_wish *w, const fl_tightrope_seen *seen,
                   const double *worst, uint32_t clock) {
    return fl_tightrope_affordable(w, length(w, seen, clock), worst[clock],
                                   ratio(c, clock) * (1 + c->tolerance) * (1 + w->cost));
}

/* The lowest clock that may be chosen: not far below what was tried, for there predictions are guesses. */
static uint32_t lowest(const fl_tightrope_chip *c, const fl_tightrope_seen *seen, double bound) {
    const uint32_t top = c->count - 1;
    uint32_t tried = 0, first = top;
    while (tried < top && !(seen[tried].weight_s > 0))
        tried++;
    const double reach = tried == top ? fmax(bound, 0.02) : c->reach;
    while (first > 0 && (c->mhz[first - 1] >= c->mhz[tried] / (1 + reach) || first - 1 + 1 >= tried))
        first--;
    return first;
}

typedef struct lower_hull {
    uint32_t at[FL_TIGHTROPE_CLOCKS]; /* clocks, ascending slowdown */
    uint32_t count;
} lower_hull;

/* Lower convex hull of (slowdown, energy) over clocks first..top, from the fastest on (Andrew's monotone chain). */
static void make_hull(const double *s, const double *e, uint32_t first, uint32_t count, lower_hull *h) {
    uint32_t order[FL_TIGHTROPE_CLOCKS], n = 0;
    for (uint32_t k = count; k-- > first;) { /* insertion: slowdowns rise with falling clocks nearly everywhere */
        uint32_t at = n++;
        for (; at > 0 && (s[order[at - 1]] > s[k] || (s[order[at - 1]] == s[k] && e[order[at - 1]] > e[k])); at--)
            order[at] = order[at - 1];
        order[at] = k;
    }
    h->count = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t k = order[i];
        if (h->count && e[k] >= e[h->at[h->count - 1]])
            continue; /* slower and no better */
        while (h->count > 1) {
            const uint32_t a = h->at[h->count - 2], b = h->at[h->count - 1];
            if ((e[b] - e[a]) * (s[k] - s[a]) <= (e[k] - e[a]) * (s[b] - s[a]))
                break;
            h->count--;
        }
        h->at[h->count++] = k;
    }
}

/* A prediction alone proves nothing: a clock that was not tried is slower by the ratio of the clocks at most, than the
 * top clock and than any that was tried. */
static void worst_cases(const fl_tightrope_chip *c, const fl_tightrope_seen *seen, const curves *v, uint32_t first,
                        double *worst) {
    double least = INFINITY; /* of worst x clock over the clocks tried above */
    for (uint32_t k = c->count; k-- > first;) {
        worst[k] = fmin(ratio(c, k), least / c->mhz[k]) * (1 + c->tolerance);
        if (!(seen[k].weight_s > 0))
            continue;
        worst[k] = fmin(fmax(v->slowdown[k], seen[k].ceiling) * (1 + 2 * v->doubt[k]), worst[k]);
        least = fmin(least, worst[k] * c->mhz[k]);
    }
}

/* The clock of least energy that is allowed by itself. */
static uint32_t best_alone(const double *s, const double *e, uint32_t first, uint32_t count,
                           const fl_tightrope_wish *w) {
    uint32_t best = count - 1;
    for (uint32_t k = count - 1; k-- > first;)
        if (s[k] <= w->allowed && e[k] < e[best])
            best = k;
    return best;
}

fl_tightrope_choice fl_tightrope_choose(const fl_tightrope_chip *c, const fl_tightrope_seen *seen,
                                        const fl_tightrope_wish *w) {
    const uint32_t top = c->count - 1, first = lowest(c, seen, w->bound);
    double e[FL_TIGHTROPE_CLOCKS], worst[FL_TIGHTROPE_CLOCKS];
    curves v;
    lower_hull h;
    predict(c, seen, first, &v);
    const double *s = v.slowdown;
    for (uint32_t k = first; k <= top; k++)
        e[k] = s[k] * v.power[k] / v.power[top];
    worst_cases(c, seen, &v, first, worst);
    make_hull(s, e, first, c->count, &h);
    uint32_t best = 0; /* along the hull energy falls with slowdown */
    while (best + 1 < h.count && s[h.at[best + 1]] <= w->allowed)
        best++;
    const uint32_t fast = w->steady ? best_alone(s, e, first, c->count, w) : h.at[best];
    fl_tightrope_choice choice = {.clock = fast, .energy = e[fast]};
    double trade = 0; /* energy given for a unit of slowdown */
    if (!w->steady && best + 1 < h.count && w->allowed > s[fast]) {
        const uint32_t slow = h.at[best + 1];
        trade = (e[fast] - e[slow]) / (s[slow] - s[fast]);
        choice.energy = e[fast] - trade * (w->allowed - s[fast]);
        choice.steepness = trade / choice.energy;
        if (can_pay(c, w, seen, worst, slow)) /* two clocks take turns: the slower one while slack carries it */
            choice.clock = slow;
    }
    const double price = e[choice.clock] + trade * s[choice.clock];
    if (!trade && w->now >= (int32_t)first && s[w->now] <= w->allowed && e[w->now] < e[choice.clock] * 1.0005)
        choice.clock = (uint32_t)w->now;
    while (choice.clock < top && !can_pay(c, w, seen, worst, choice.clock))
        choice.clock++;
    if (!w->look)
        return choice;
    double hope = 0;
    for (uint32_t k = first; k <= top; k++) {
        if (!can_pay(c, w, seen, worst, k) || (w->steady && s[k] > w->allowed * (1 + v.doubt[k])))
            continue;
        /* What a look may win, over as long again as the program has run, against what it is expected to lose. */
        const double value = e[k] + trade * s[k], gain = price - value + e[k] * v.doubt[k];
        const double worth = 0.1 * gain * w->elapsed_s - (fmax(0, value - price) + 0.01 * price) * length(w, seen, k);
        if (gain > 2e-4 * price && worth > hope)
            hope = worth, choice.clock = k, choice.looked = 1;
    }
    return choice;
}
