/* tightrope: what a window taught, and which clock comes next. */
#include "policies/tightrope/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the choice for one GPU ---- */

/* Constants of the curves, from measured sweeps of a V100 and an RTX 8000 (harness/manual/clocks.md): time follows a
 * law of sharpness 4, four tenths of a board's power do not follow V^2 f, and both stray from their laws by 2.5 %,
 * alike over 0.4 in log clock. A clock 15 % below what was tried is the furthest that such a law foretells. */
#define SHARPNESS 4
#define FIXED_SHARE 0.4
#define ROUGHNESS 0.025
#define SMOOTH 0.4
#define REACH 0.15
#define REACH_SHORT 0.4 /* the same where phases are short: looks must be few */

#define WINDOW_S 0.15 /* least time at a clock: the arrival of a clock takes a fifth of it on a V100 */
#define WINDOW_MAX_S 20
#define THIN_S 1        /* where records are on for a part of the time: each change of the clock costs some */
#define COUNTER_S 0.5   /* of a counter that drivers refresh each 0.1 s, at first; 1 s tells more, later */
#define HORIZON_S 5     /* over which slack is spent: far more than a window, far less than a run */
#define REMEMBERED_S 30 /* of windows at one clock, which their mean stands on */

uint32_t fl_tightrope_count(const fl_gpu_facts *f) {
    return f->sm.count < FL_TIGHTROPE_CLOCKS ? f->sm.count : FL_TIGHTROPE_CLOCKS;
}

uint32_t fl_tightrope_first(const fl_gpu_facts *f) { return f->sm.count - fl_tightrope_count(f); }

static fl_tightrope_chip chip_of(const fl_tightrope_params *p, const fl_tightrope_gpu *g, const fl_gpu_facts *f) {
    return (fl_tightrope_chip){.mhz = f->sm.mhz + fl_tightrope_first(f),
                               .volt = f->law.volt ? f->law.volt + fl_tightrope_first(f) : NULL,
                               .count = fl_tightrope_count(f),
                               .tolerance = p->tolerance,
                               .sharpness = SHARPNESS,
                               .fixed_share = FIXED_SHARE,
                               .roughness = ROUGHNESS,
                               .smooth = SMOOTH,
                               .reach = g->brief ? REACH_SHORT : REACH};
}

double fl_tightrope_length(const fl_tightrope_gpu *g) {
    const fl_tightrope_work *w = &g->work;
    double s = fmax(WINDOW_S, fmax(w->cycle_s, w->spread / (0.0075 * 0.0075)));
    if (w->signal == FL_TIGHTROPE_BYTES || w->signal == FL_TIGHTROPE_UTIL)
        s = fmax(s, fmax(COUNTER_S, fmin(1, w->elapsed_s / 16)));
    else
        s = fmax(fmax(s, 8 * w->unit_s), fmin(1, g->phase_s / 64)); /* long lines tell more, few changes cost less */
    if (w->thin.share > 0 && w->thin.share < 1)
        s = fmax(s, THIN_S);
    return fmin(s, WINDOW_MAX_S);
}

double fl_tightrope_cost(const fl_tightrope_gpu *g) {
    const double share = g->work.thin.share > 0 ? g->work.thin.share : 1;
    return fl_tightrope_by_records(g->work.signal) ? share * fl_tightrope_records_cost(&g->work) : 0;
}

/* A look at the top clock makes the reference better. It pays where the error that is held back costs more, over as
 * long again as the program has run, than the look: what the look leaves of the slack is spent later. */
static int top_pays(const fl_tightrope_params *p, const fl_tightrope_gpu *g, const fl_tightrope_choice *choice,
                    double bound) {
    const double error = p->sigmas * g->error;
    const double trade = choice->steepness * choice->energy; /* energy for a unit of slowdown */
    const double gain = trade * error * g->work.elapsed_s / (2 * fmax(g->work.rate_s, 1e-3));
    return gain > fmax(0.1 * (1 - choice->energy), 1 - choice->energy - trade * bound);
}

uint32_t fl_tightrope_decide(const fl_tightrope_params *p, fl_tightrope_gpu *g, const fl_gpu_facts *f, double slack_s,
                             double window_s, double first_window_s, int look, int steady) {
    const fl_tightrope_chip chip = chip_of(p, g, f);
    const double b = p->bound - FL_TIGHTROPE_MARGIN;
    const double quiet_s = fl_tightrope_blindfold(&g->work) ? 0 : g->work.quiet_s;
    const double blind_s = fl_tightrope_reaction(p, g) + quiet_s, cost = fl_tightrope_cost(g);
    /* Some is kept for what nobody sees, and for looks of the others. */
    const double kept_s = blind_s * fl_tightrope_burn(b, (1 + p->tolerance) * (1 + cost) / g->work.clock);
    const double spent_s = slack_s - kept_s - (steady ? 2 * b * window_s : 0);
    const double horizon = fmax(spent_s < 0 ? 0 : HORIZON_S, 2 * window_s);
    g->slack_s = slack_s;
    g->allowed = fmax(1, fmin(1 + 4 * b + 0.1, (1 + b) / (1 + cost) * (1 + spent_s / horizon)));
    const fl_tightrope_wish wish = {.allowed = g->allowed,
                                    .slack_s = slack_s,
                                    .bound = b,
                                    .blind_s = blind_s,
                                    .cost = cost,
                                    .window_s = window_s,
                                    .first_window_s = first_window_s,
                                    .elapsed_s = g->phase_s,
                                    .steady = steady,
                                    .look = look,
                                    .now = (int32_t)g->clock};
    fl_tightrope_choice choice = fl_tightrope_choose(&chip, g->seen, &wish);
    g->top_pays = !choice.looked && !fl_tightrope_blindfold(&g->work) && top_pays(p, g, &choice, b);
    return choice.clock;
}

static void average(double *mean, double value, double weight, double more) {
    *mean = weight > 0 ? (*mean * weight + value * more) / (weight + more) : value;
}

void fl_tightrope_learn(fl_tightrope_gpu *g, const fl_tightrope_seen_window *m, double ceiling) {
    fl_tightrope_seen *s = &g->seen[g->clock];
    const double weight = fmin(s->weight_s, REMEMBERED_S);
    if (isnan(m->slowdown) || (isnan(m->power_w) && !(s->weight_s > 0)))
        return;
    average(&s->slowdown, fmax(1, m->slowdown), weight, m->length_s);
    if (ceiling < s->ceiling * (1 - 2 * m->noise))
        s->ceiling = fmax(1, ceiling);
    else
        average(&s->ceiling, fmax(1, ceiling), weight, m->length_s);
    s->noise = hypot(s->noise * weight, m->noise * m->length_s) / (weight + m->length_s);
    if (!isnan(m->power_w)) {
        average(&s->power_w, m->power_w, weight, m->length_s);
        s->power_noise = hypot(s->power_noise * weight, m->power_noise * m->length_s) / (weight + m->length_s);
    }
    s->weight_s = weight + m->length_s;
}

/* tightrope: the guard of the slack, which holds it between the ends of windows. */

typedef fl_tightrope_gpu gpu_state;
typedef fl_tightrope_step node;

#define SAFE_S 1e6 /* nothing is looked for longer ahead */

/* Until when the present clocks are safe whatever the program does: a program that turns to other work in the midst of
 * a window is slowed by all that the clocks can slow it, and what was measured before says nothing of it. What is
 * certain of the slack must pay for that until the next reading, and then for the way back to the top. */
static int64_t safe_until(const node *n) {
    const double b = n->p->bound - FL_TIGHTROPE_MARGIN;
    double least = INFINITY, react_s = 0, loss = 0; /* of slack, that a second may cost */
    int top = 1;
    for (uint32_t i = 0; i < n->count; i++) {
        gpu_state *g = &n->gpu[i];
        top &= fl_tightrope_at_top(n, i);
        react_s = fmax(react_s, fl_tightrope_reaction(n->p, g));
        const double most = (1 + n->p->tolerance) * (1 + fl_tightrope_cost(g)) / g->work.share;
        loss = fmax(loss, fl_tightrope_burn(b, most));
        if (fl_tightrope_idle(n, i))
            continue;
        const double length_s = (double)(n->now - g->work.window_ns) * 1e-9;
        least = fmin(least, (1 + b) * fl_tightrope_credit_now(&g->work) - g->work.elapsed_s - length_s -
                                fl_tightrope_records_kept(&g->work));
    }
    const double left_s = top || !(loss > 0) ? SAFE_S : fmin(SAFE_S, least / loss - react_s);
    return n->now + (int64_t)(fmax(0, left_s) * 1e9);
}

/* Readings may have shown more work since safe_ns was told, so it is asked again in time. */
int fl_tightrope_guard(node *n) {
    if (n->state->safe_ns - n->now <= (int64_t)(n->p->poll_ms * 1e6))
        n->state->safe_ns = safe_until(n);
    return n->state->safe_ns <= n->now;
}

/* ---- the node ---- */

/* The slowdown that the clocks of the others make by what is known; INFINITY where one of them was not tried. */
static double others(const fl_tightrope_member *m, uint32_t count, uint32_t i) {
    double most = 1;
    for (uint32_t k = 0; k < count; k++)
        if (k != i && !m[k].top)
            most = isnan(m[k].own) ? INFINITY : fmax(most, m[k].own);
    return most;
}

/* What is left of s where the part in which the GPU was idle was waiting for the busiest. */
static double without_waiting(const fl_tightrope_member *m, uint32_t count, uint32_t i) {
    double busiest = m[i].busy;
    for (uint32_t k = 0; k < count; k++)
        busiest = fmax(busiest, m[k].busy); /* of a NAN and a number it is the number */
    return isnan(m[i].busy) || !(busiest > 0) ? m[i].seen : fmax(1, m[i].seen * m[i].busy / busiest);
}

static int is_busiest(const fl_tightrope_member *m, uint32_t count, uint32_t i) {
    for (uint32_t k = 0; k < count; k++)
        if (!m[k].top && m[k].busy > m[i].busy)
            return 0;
    return 1;
}

double fl_tightrope_own(const fl_tightrope_member *m, uint32_t count, uint32_t i) {
    const double most = others(m, count, i), near = 1.005 + 2 * m[i].noise;
    if (m[i].top)
        return 1;
    if (isnan(m[i].seen) || !(most > 1))
        return m[i].seen;
    if (m[i].seen <= most * near)
        return isnan(m[i].own) ? without_waiting(m, count, i) : fmin(m[i].own, without_waiting(m, count, i));
    if (isnan(m[i].own) || m[i].seen <= m[i].own * near || is_busiest(m, count, i))
        return m[i].seen;
    return m[i].own;
}

int fl_tightrope_unexplained(const fl_tightrope_member *m, uint32_t count, uint32_t i, double drift) {
    const double d = fmax(drift, 4 * m[i].noise), own = m[i].top ? 1 : m[i].own;
    if (isnan(m[i].seen) || isnan(own))
        return 0;
    return m[i].seen < own * (1 - d) || m[i].seen > fmax(own, others(m, count, i)) * (1 + d);
}
