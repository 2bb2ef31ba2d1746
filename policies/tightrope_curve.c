#include "policies/tightrope_curve.h"

#include <math.h>

static uint32_t memories(const fl_tightrope_chip *c) { return c->memories ? c->memories : 1; }
static uint32_t cores(const fl_tightrope_chip *c) { return c->count / memories(c); } /* clocks of the cores */
/* 0: the highest memory clock. */
static uint32_t level(const fl_tightrope_chip *c, uint32_t clock) { return memories(c) - 1 - clock / cores(c); }
static uint32_t begin_of(const fl_tightrope_chip *c, uint32_t level) { return (memories(c) - 1 - level) * cores(c); }
static double mhz(const fl_tightrope_chip *c, uint32_t clock) { return c->mhz[clock % cores(c)]; }
static double core_ratio(const fl_tightrope_chip *c, uint32_t clock) { return mhz(c, c->count - 1) / mhz(c, clock); }
static double memory_ratio(const fl_tightrope_chip *c, uint32_t clock) {
    return c->memories ? c->memory[level(c, clock)] : 1;
}
static double ratio(const fl_tightrope_chip *c, uint32_t clock) {
    return fmax(core_ratio(c, clock), memory_ratio(c, clock));
}

/* ---- what is known at each clock --------------------------------------------------------------------------------
 * Both curves are a law and what strays from it. The law has its constants from the clocks that were tried; what strays
 * is a Gaussian process of log clock (Matern 3/2), so that a prediction follows its neighbours as far as their noise
 * allows, and says how far off it may be (kriging; Rasmussen and Williams, "Gaussian processes", 2006, Eq. 2.23-24). */

enum { TRIED_MAX = 64 };

typedef struct tried_clocks { /* clocks that were tried, those with most time where there are more */
    uint32_t at[TRIED_MAX], count;
} tried_clocks;

typedef struct kriging {
    double factor[TRIED_MAX][TRIED_MAX]; /* lower Cholesky factor of the covariance of what was seen */
    double weight[TRIED_MAX];            /* covariance^-1 x what strays */
} kriging;

typedef struct curves {
    double log_mhz[FL_TIGHTROPE_CLOCKS];
    double slowdown[FL_TIGHTROPE_CLOCKS], power[FL_TIGHTROPE_CLOCKS]; /* the laws, then with what strays */
    double doubt[FL_TIGHTROPE_CLOCKS];                                /* relative standard error of their product */
} curves;

/* Those of one memory clock. */
static void gather(const fl_tightrope_chip *c, const fl_tightrope_seen *seen, uint32_t at_level, tried_clocks *t) {
    t->count = 0;
    for (uint32_t k = begin_of(c, at_level); k < begin_of(c, at_level) + cores(c); k++) {
        if (!(seen[k].weight_s > 0))
            continue;
        if (t->count < TRIED_MAX) {
            t->at[t->count++] = k;
            continue;
        }
        uint32_t least = 0;
        for (uint32_t i = 1; i < TRIED_MAX; i++)
            if (seen[t->at[i]].weight_s < seen[t->at[least]].weight_s)
                least = i;
        if (seen[t->at[least]].weight_s < seen[k].weight_s)
            t->at[least] = k;
    }
}

static double alike(const fl_tightrope_chip *c, double from, double to) {
    const double d = sqrt(3) * fabs(from - to) / c->smooth;
    return c->roughness * c->roughness * (1 + d) * exp(-d);
}

/* off: what strays at each clock tried, relative; noise: its standard error. */
static void krige(const fl_tightrope_chip *c, const tried_clocks *t, const double *log_mhz, const double *off,
                  const double *noise, kriging *k) {
    for (uint32_t i = 0; i < t->count; i++) {
        double y = off[i];
        for (uint32_t j = 0; j <= i; j++) {
            double a = alike(c, log_mhz[t->at[i]], log_mhz[t->at[j]]);
            if (i == j)
                a += noise[i] * noise[i] + 1e-8;
            for (uint32_t m = 0; m < j; m++)
                a -= k->factor[i][m] * k->factor[j][m];
            k->factor[i][j] = i == j ? sqrt(fmax(a, 1e-12)) : a / k->factor[j][j];
        }
        for (uint32_t m = 0; m < i; m++)
            y -= k->factor[i][m] * k->weight[m];
        k->weight[i] = y / k->factor[i][i];
    }
    for (uint32_t i = t->count; i-- > 0;) {
        for (uint32_t m = i + 1; m < t->count; m++)
            k->weight[i] -= k->factor[m][i] * k->weight[m];
        k->weight[i] /= k->factor[i][i];
    }
}

/* What strays at one clock, and its variance. */
static double strays(const fl_tightrope_chip *c, const tried_clocks *t, const double *log_mhz, const kriging *k,
                     uint32_t clock, double *variance) {
    double like[TRIED_MAX], sum = 0;
    *variance = c->roughness * c->roughness;
    for (uint32_t i = 0; i < t->count; i++) {
        double v = alike(c, log_mhz[t->at[i]], log_mhz[clock]);
        sum += v * k->weight[i];
        for (uint32_t m = 0; m < i; m++)
            v -= k->factor[i][m] * like[m];
        like[i] = v / k->factor[i][i];
        *variance -= like[i] * like[i];
    }
    *variance = fmax(*variance, 0);
    return sum;
}

/* What a clock showed in few windows may be those windows' own. */
static double noise_of(const fl_tightrope_seen *s, double noise, double wander) {
    return hypot(noise, wander / sqrt(fmax(1, s->windows)));
}

/* s^p = 1 + q (x^p - 1), x = top / f: q by what was tried; the worst case until then. */
static void time_law(const fl_tightrope_chip *c, const fl_tightrope_seen *seen, const tried_clocks *t,
                     double *slowdown) {
    const double p = c->sharpness;
    double weight = 1e-4, sum = 1e-4;
    for (uint32_t i = 0; i < t->count; i++) {
        const double x = pow(ratio(c, t->at[i]), p) - 1, s = seen[t->at[i]].slowdown;
        const double noise =
            p * hypot(noise_of(&seen[t->at[i]], seen[t->at[i]].noise, c->time_wander), c->roughness) * pow(s, p);
        weight += x * x / (noise * noise);
        sum += x * (pow(s, p) - 1) / (noise * noise);
    }
    const double q = fmin(1, fmax(0, sum / weight));
    for (uint32_t k = begin_of(c, 0); k < c->count; k++)
        slowdown[k] = pow(1 + q * (pow(ratio(c, k), p) - 1), 1 / p);
}

/* V^2 f, 1 at the top clock. Where V is not known: a floor up to 0.65 of the top clock, and 1.35 times it at the top.
 */
static double swing(const fl_tightrope_chip *c, uint32_t clock) {
    const double share = 1 / core_ratio(c, clock);
    double v = 1 + 0.35 * fmax(0, (share - 0.65) / 0.35), v_top = 1.35;
    if (c->volt)
        v = c->volt[clock % cores(c)], v_top = c->volt[cores(c) - 1];
    return v * v / (v_top * v_top) * share;
}

/* P = a + b V^2 f by what was tried. Until two clocks were tried b is the assumed one. */
static void power_law(const fl_tightrope_chip *c, const fl_tightrope_seen *seen, const tried_clocks *t, double *power) {
    double weight = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const double x = swing(c, t->at[i]), y = seen[t->at[i]].power_w;
        const double noise = noise_of(&seen[t->at[i]], seen[t->at[i]].power_noise, c->power_wander);
        const double w = 1 / (noise * noise + c->roughness * c->roughness);
        weight += w, wx += w * x, wy += w * y, wxx += w * x * x, wxy += w * x * y;
    }
    const double mx = wx / weight, my = wy / weight;
    const double assumed = my * (1 - c->fixed_share) / (c->fixed_share + (1 - c->fixed_share) * mx);
    const double ridge = 1e-3 * weight;
    const double b = fmax(0.1 * assumed, (wxy - wx * my + ridge * assumed) / (wxx - wx * mx + ridge));
    for (uint32_t k = begin_of(c, 0); k < c->count; k++)
        power[k] = fmax(0.05 * my, my + b * (swing(c, k) - mx));
}

/* The laws of a lower memory clock, from the curves of the highest: s^p = s_top^p + r, r by what was tried, as the
 * memory's part of the time adds to that of the cores; and the power is less by a share. */
static void memory_laws(const fl_tightrope_chip *c, const fl_tightrope_seen *seen, const tried_clocks *t, uint32_t from,
                        curves *v) {
    const double p = c->sharpness, above_w = v->power[c->count - 1];
    double weight = 0, more = 0, less = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const fl_tightrope_seen *s = &seen[t->at[i]];
        const uint32_t same = begin_of(c, 0) + t->at[i] % cores(c);
        weight += s->weight_s;
        more += s->weight_s * (pow(s->slowdown, p) - pow(v->slowdown[same], p));
        less += s->weight_s * s->power_w / v->power[same];
    }
    const double r = weight > 0 ? fmax(0, more / weight) : 0;
    const double share = weight > 0 ? less / weight : 1 - c->memory_w * (1 - 1 / memory_ratio(c, from)) / above_w;
    for (uint32_t k = from; k < from + cores(c); k++) {
        const uint32_t same = begin_of(c, 0) + k % cores(c);
        v->slowdown[k] = pow(pow(v->slowdown[same], p) + r, 1 / p);
        v->power[k] = fmax(0.05, share) * v->power[same];
    }
}

/* From the laws at clocks first to last, by what strays from them where they were tried. */
static void stray(const fl_tightrope_chip *c, const fl_tightrope_seen *seen, const tried_clocks *t, uint32_t first,
                  uint32_t last, curves *v) {
    kriging time, power;
    double time_off[TRIED_MAX] = {0}, power_off[TRIED_MAX] = {0}, time_noise[TRIED_MAX] = {0},
           power_noise[TRIED_MAX] = {0};
    for (uint32_t i = 0; i < t->count; i++) {
        const fl_tightrope_seen *s = &seen[t->at[i]];
        time_off[i] = s->slowdown / v->slowdown[t->at[i]] - 1;
        power_off[i] = s->power_w / v->power[t->at[i]] - 1;
        time_noise[i] = noise_of(s, s->noise, c->time_wander);
        power_noise[i] = noise_of(s, s->power_noise, c->power_wander);
    }
    krige(c, t, v->log_mhz, time_off, time_noise, &time);
    krige(c, t, v->log_mhz, power_off, power_noise, &power);
    const int only_top = t->count == 1 && t->at[0] == c->count - 1;
    for (uint32_t k = first; k <= last; k++) {
        double time_variance, power_variance;
        /* Until a lower clock was tried the slowdown may be all that the two facts leave. */
        const double unknown = only_top ? (ratio(c, k) - 1) / sqrt(3) : 0;
        v->slowdown[k] *= 1 + strays(c, t, v->log_mhz, &time, k, &time_variance);
        v->slowdown[k] = fmax(1, fmin(v->slowdown[k], ratio(c, k) * (1 + c->tolerance)));
        v->power[k] *= 1 + strays(c, t, v->log_mhz, &power, k, &power_variance);
        v->doubt[k] = sqrt(time_variance + power_variance + unknown * unknown);
    }
}

static void predict(const fl_tightrope_chip *c, const fl_tightrope_seen *seen, curves *v) {
    tried_clocks t;
    for (uint32_t k = 0; k < c->count; k++)
        v->log_mhz[k] = log(mhz(c, k));
    for (uint32_t l = 0; l < memories(c); l++) {
        const uint32_t from = begin_of(c, l);
        gather(c, seen, l, &t);
        if (l == 0) {
            time_law(c, seen, &t, v->slowdown);
            power_law(c, seen, &t, v->power);
        } else {
            memory_laws(c, seen, &t, from, v);
        }
        stray(c, seen, &t, from, from + cores(c) - 1, v);
    }
}

double fl_tightrope_burn(double bound, double most) { return fmax(0, 1 - (1 + bound) / most); }

int fl_tightrope_affordable(const fl_tightrope_wish *w, double window_s, double worst, double most) {
    const double blind_s = w->blind_s * fl_tightrope_burn(w->bound, most);
    return w->slack_s + fmin(0, (1 + w->bound) * window_s / worst - window_s) >= blind_s;
}

static double length(const fl_tightrope_wish *w, const fl_tightrope_seen *seen, uint32_t clock) {
    return seen[clock].weight_s > 0 && !seen[clock].guessed ? w->window_s : w->first_window_s;
}

static int can_pay(const fl_tightrope_chip *c, const fl_tightrope_wish *w, const fl_tightrope_seen *seen,
                   const double *worst, uint32_t clock) {
    return fl_tightrope_affordable(w, length(w, seen, clock), worst[clock],
                                   ratio(c, clock) * (1 + c->tolerance) * (1 + w->cost));
}

/* The lowest clock that may be chosen with the memory at one of its clocks: not far below what was tried, for there
 * predictions are guesses. Where that memory clock was not tried there is none: what comes after its last. */
static uint32_t lowest(const fl_tightrope_chip *c, const fl_tightrope_seen *seen, uint32_t at_level, double bound) {
    const uint32_t begin = begin_of(c, at_level), end = begin + cores(c), top = c->count - 1;
    uint32_t tried = begin;
    while (tried < end && !(seen[tried].weight_s > 0))
        tried++;
    if (tried == end && at_level > 0)
        return end;
    tried = tried < top ? tried : top;
    uint32_t first = tried;
    const double reach = tried == top ? fmax(bound, 0.02) : c->reach;
    while (first > begin && (first >= tried || mhz(c, first - 1) >= mhz(c, tried) / (1 + reach)))
        first--;
    return first;
}

typedef struct candidates { /* clocks that may be chosen, from the top down */
    uint32_t at[FL_TIGHTROPE_CLOCKS], count;
    uint32_t first; /* the lowest with the memory at its highest clock */
    uint32_t tried; /* memory clocks of which one was */
} candidates;

static void list_candidates(const fl_tightrope_chip *c, const fl_tightrope_seen *seen, double bound, candidates *m) {
    m->count = m->tried = m->first = 0;
    for (uint32_t l = 0; l < memories(c); l++) {
        const uint32_t first = lowest(c, seen, l, bound), end = begin_of(c, l) + cores(c);
        m->first = l ? m->first : first;
        m->tried += m->tried == l && first < end;
        for (uint32_t k = end; k-- > first;)
            m->at[m->count++] = k;
    }
}

typedef struct lower_hull {
    uint32_t at[FL_TIGHTROPE_CLOCKS]; /* clocks, ascending slowdown */
    uint32_t count;
} lower_hull;

/* Lower convex hull of (slowdown, energy), from the fastest on (Andrew's monotone chain). */
static void make_hull(const double *s, const double *e, const candidates *m, lower_hull *h) {
    uint32_t order[FL_TIGHTROPE_CLOCKS], n = 0;
    for (uint32_t i = 0; i < m->count; i++) { /* insertion: slowdowns rise with falling clocks nearly everywhere */
        const uint32_t k = m->at[i];
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
static void worst_cases(const fl_tightrope_chip *c, const fl_tightrope_seen *seen, const curves *v, double *worst) {
    double least = INFINITY; /* of worst x clock over the clocks tried above, with the memory at the same clock */
    for (uint32_t k = c->count; k-- > 0;) {
        const uint32_t same = begin_of(c, 0) + k % cores(c);
        least = (k + 1) % cores(c) ? least : INFINITY;
        worst[k] = fmin(ratio(c, k), least / mhz(c, k));
        if (k < same) /* a lower memory clock stretches what the highest leaves by its ratio at most */
            worst[k] = fmin(worst[k], worst[same] / (1 + c->tolerance) * memory_ratio(c, k));
        worst[k] *= 1 + c->tolerance;
        if (!(seen[k].weight_s > 0))
            continue;
        worst[k] = fmin(fmax(v->slowdown[k], seen[k].ceiling) * (1 + 2 * v->doubt[k]), worst[k]);
        least = fmin(least, worst[k] * mhz(c, k));
    }
    double most = INFINITY; /* of the clocks tried below: a higher one is never slower */
    for (uint32_t k = 0; k < begin_of(c, 0); k++) {
        most = k % cores(c) ? most : INFINITY;
        if (seen[k].weight_s > 0)
            most = fmin(most, worst[k]);
        worst[k] = fmin(worst[k], most);
    }
}

/* The clock of least objective that is allowed by itself. */
static uint32_t best_alone(const double *s, const double *e, const candidates *m, const fl_tightrope_wish *w) {
    uint32_t best = m->at[0];
    for (uint32_t i = 1; i < m->count; i++) {
        const uint32_t k = m->at[i];
        if (s[k] <= w->allowed && e[k] * pow(s[k], w->delay_power) < e[best] * pow(s[best], w->delay_power))
            best = k;
    }
    return best;
}

/* Energy at the clocks that the bound allows by the second fact alone: between two of them by turns. */
static double certain_energy(const fl_tightrope_chip *c, const double *e, uint32_t first, double bound) {
    const double allowed = (1 + bound) / (1 + c->tolerance);
    double above = 1, energy = e[c->count - 1];
    for (uint32_t k = c->count - 1; k-- > first && above < allowed;) {
        const double next = fmin(allowed, ratio(c, k)), share = (next - above) / (ratio(c, k) - above);
        energy += (e[k] - energy) * share;
        above = next;
    }
    return fmin(e[c->count - 1], energy);
}

/* Energy on the hull at a slowdown: between two clocks by turns. */
static double hull_energy(const lower_hull *h, const double *s, const double *e, double allowed) {
    uint32_t i = 0;
    while (i + 1 < h->count && s[h->at[i + 1]] <= allowed)
        i++;
    const uint32_t a = h->at[i];
    if (i + 1 == h->count || allowed <= s[a])
        return e[a];
    const uint32_t b = h->at[i + 1];
    return e[a] + (e[b] - e[a]) * (allowed - s[a]) / (s[b] - s[a]);
}

static int is_candidate(const candidates *m, int32_t clock) {
    for (uint32_t i = 0; i < m->count; i++)
        if ((int32_t)m->at[i] == clock)
            return 1;
    return 0;
}

/* Of what the bound allows in as long as the phase has lasted, a probe may cost that part at worst. */
#define PROBE_PART 0.1

/* The corner of the hull that the bound allows in the long run, with the memory at the lowest clock that was tried; 0:
 * there is none, so a lower one would hardly pay. */
static uint32_t probed_from(const fl_tightrope_chip *c, const fl_tightrope_wish *w, const double *s,
                            const candidates *m, const lower_hull *h) {
    uint32_t from = 0;
    for (uint32_t i = 1; i < h->count && s[h->at[i]] <= (1 + w->bound) / (1 + w->cost); i++)
        if (level(c, h->at[i]) + 1 == m->tried)
            from = h->at[i];
    return from;
}

/* The next memory clock, at the clock of the cores that is best with the one above it, where that was worth its probe.
 * It is far below that one, so the worst that it may do is dear: slack is saved for it, and it is short. */
static void probe(const fl_tightrope_chip *c, const fl_tightrope_wish *w, const double *worst, uint32_t from,
                  fl_tightrope_choice *choice) {
    const uint32_t next = from - cores(c);
    const double most = ratio(c, next) * (1 + c->tolerance) * (1 + w->cost);
    const double lost_s = fmax(0, w->probe_s - (1 + w->bound) * w->probe_s / worst[next]);
    if (lost_s > PROBE_PART * w->bound * w->elapsed_s)
        return;
    if (fl_tightrope_affordable(w, w->probe_s, worst[next], most))
        choice->clock = next, choice->looked = choice->probed = 1;
    else
        choice->wanted_s = lost_s + w->blind_s * fl_tightrope_burn(w->bound, most);
}

fl_tightrope_choice fl_tightrope_choose(const fl_tightrope_chip *c, const fl_tightrope_seen *seen,
                                        const fl_tightrope_wish *w) {
    const uint32_t top = c->count - 1;
    double e[FL_TIGHTROPE_CLOCKS], worst[FL_TIGHTROPE_CLOCKS];
    curves v;
    lower_hull h;
    candidates m;
    list_candidates(c, seen, w->bound, &m);
    predict(c, seen, &v);
    const double *s = v.slowdown;
    for (uint32_t k = 0; k <= top; k++)
        e[k] = s[k] * v.power[k] / v.power[top];
    worst_cases(c, seen, &v, worst);
    make_hull(s, e, &m, &h);
    /* Along the hull energy falls with slowdown; under a product with delay the best place is a corner, as the product
     * is concave between two, or where the allowance ends. */
    uint32_t best = 0;
    double least = INFINITY;
    for (uint32_t i = 0; i < h.count && (i == 0 || s[h.at[i]] <= w->allowed); i++) {
        const double value = e[h.at[i]] * pow(s[h.at[i]], w->delay_power);
        if (value < least)
            least = value, best = i;
    }
    const uint32_t fast = w->steady ? best_alone(s, e, &m, w) : h.at[best];
    const double measured = hull_energy(&h, s, e, (1 + w->bound) / (1 + w->cost)) * (1 + w->cost);
    fl_tightrope_choice choice = {
        .clock = fast, .energy = e[fast], .certain = certain_energy(c, e, m.first, w->bound), .measured = measured};
    double trade = 0; /* energy given for a unit of slowdown */
    if (!w->steady && best + 1 < h.count && s[h.at[best + 1]] > w->allowed && w->allowed >= s[fast]) {
        const uint32_t slow = h.at[best + 1];
        const double rate = (e[fast] - e[slow]) / (s[slow] - s[fast]);
        const double mixed = e[fast] - rate * (w->allowed - s[fast]);
        if (mixed * pow(w->allowed, w->delay_power) < least) {
            trade = rate;
            choice.energy = mixed;
            choice.steepness = rate / mixed;
            if (can_pay(c, w, seen, worst, slow)) /* two clocks take turns: the slower one while slack carries it */
                choice.clock = slow;
        }
    }
    const double price = e[choice.clock] + trade * s[choice.clock];
    if (!trade && is_candidate(&m, w->now) && s[w->now] <= w->allowed && w->delay_power == 0 &&
        e[w->now] < e[choice.clock] * 1.0005)
        choice.clock = (uint32_t)w->now;
    while (choice.clock < top && !can_pay(c, w, seen, worst, choice.clock))
        choice.clock += level(c, choice.clock) ? cores(c) : 1; /* the memory first: its steps are large */
    if (!w->look)
        return choice;
    const uint32_t from = w->probe_s > 0 && m.tried < memories(c) ? probed_from(c, w, s, &m, &h) : 0;
    if (from > 0)
        probe(c, w, worst, from, &choice);
    choice.power_w = v.power[choice.clock];
    double hope = 0;
    for (uint32_t i = m.count; i-- > 0 && !choice.probed;) {
        const uint32_t k = m.at[i];
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
