/* From lengths to clocks of the ladder, and polishing of plans that are far above their bound. */
#include "sim/pipeline/inside.h"

#include "models/math/math.h"
#include "policies/random.h"
#include "sim/pipeline/pipeline.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- rounding ---- */

enum { PRICES = 8 }; /* from the highest down to none */
#define TINY_S 1e-12 /* sums of lengths are rounded */

/* What a second more saves when a part goes from place k of the front to the next. */
static double slope_of(const fl_plan_table *t, size_t k) {
    const uint32_t a = t->front[k], b = t->front[k + 1];
    return (t->over_j[a] - t->over_j[b]) / (t->time_s[b] - t->time_s[a]);
}

fl_status fl_plan_round_new(fl_plan_round *r, const fl_plan_program *g, fl_diag *d) {
    *r = (fl_plan_round){.g = g,
                         .length_s = calloc(g->path.count + 1, sizeof *r->length_s),
                         .end_s = calloc(g->path.count + 1, sizeof *r->end_s),
                         .latest_s = calloc(g->path.count + 1, sizeof *r->latest_s)};
    for (size_t i = 0; i < g->table_count; i++)
        for (size_t k = 0; k + 1 < g->table[i].front_count; k++)
            r->steepest = fmax(r->steepest, slope_of(&g->table[i], k));
    if (r->length_s && r->end_s && r->latest_s)
        return FL_OK;
    fl_plan_round_free(r);
    return fl_no_memory(d, "the planner");
}

void fl_plan_round_free(fl_plan_round *r) {
    free(r->length_s);
    free(r->end_s);
    free(r->latest_s);
    *r = (fl_plan_round){0};
}

/* The last place of the front that takes no more than `most_s`; the first where all do. */
static size_t slowest_within(const fl_plan_table *t, double most_s) {
    size_t low = 0, high = t->front_count;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        *(t->time_s[t->front[middle]] <= most_s ? &low : &high) = middle;
    }
    return low;
}

/* The last corner of the hull that takes no more than most_s. */
static double corner_within(const fl_convex *h, double most_s) {
    size_t v = 0;
    while (v + 1 < h->count && h->x[v + 1] <= most_s)
        v++;
    return h->x[v];
}

/* When the op that is n-th in order may start. */
static double start_of(const fl_critical *c, size_t n, const double *end_s) {
    double start = 0;
    for (size_t i = n ? c->until[n - 1] : 0; i < c->until[n]; i++)
        start = fmax(start, end_s[c->on[i]]);
    return start;
}

/* Step 1. latest_s: when each op ends under the lengths given. `at` holds places of the fronts until the end. */
static void within_ends(fl_plan_round *r, bool corners, uint32_t *at) {
    const fl_plan_program *g = r->g;
    for (size_t n = 0; n < g->path.count; n++) {
        const uint32_t op = g->path.order[n], part = g->part_of[op];
        const double start = start_of(&g->path, n, r->end_s);
        if (part != FL_NONE) {
            const fl_plan_table *t = &g->table[g->part[part].table];
            const double most_s = r->latest_s[op] - start + TINY_S;
            at[part] = (uint32_t)slowest_within(t, corners ? corner_within(&t->hull, most_s) : most_s);
            r->length_s[op] = t->time_s[t->front[at[part]]];
        }
        r->end_s[op] = start + r->length_s[op];
    }
}

/* When each op has to end so that all ends at `limit_s`. */
static void find_latest(fl_plan_round *r, double limit_s) {
    const fl_critical *c = &r->g->path;
    for (size_t i = 0; i < c->count; i++)
        r->latest_s[i] = limit_s;
    for (size_t n = c->count; n-- > 0;) {
        const uint32_t op = c->order[n];
        const double start = r->latest_s[op] - r->length_s[op];
        for (size_t i = n ? c->until[n - 1] : 0; i < c->until[n]; i++)
            r->latest_s[c->on[i]] = fmin(r->latest_s[c->on[i]], start);
    }
}

/* Step 2, at one price. Later parts keep their lengths, and what is late by no more than it may be delays none of them
 * beyond their own latest end. */
static void give(fl_plan_round *r, double price, double limit_s, uint32_t *at) {
    const fl_plan_program *g = r->g;
    find_latest(r, limit_s);
    for (size_t n = 0; n < g->path.count; n++) {
        const uint32_t op = g->path.order[n], part = g->part_of[op];
        const double start = start_of(&g->path, n, r->end_s);
        if (part != FL_NONE) {
            const fl_plan_table *t = &g->table[g->part[part].table];
            for (size_t k = at[part]; k + 1 < t->front_count && slope_of(t, k) >= price &&
                                      start + t->time_s[t->front[k + 1]] <= r->latest_s[op] + TINY_S;
                 k++)
                at[part] = (uint32_t)(k + 1);
            r->length_s[op] = t->time_s[t->front[at[part]]];
        }
        r->end_s[op] = start + r->length_s[op];
    }
}

/* Step 2 at all prices. `at` holds places of the fronts before and places in the tables afterwards. */
static void give_all(fl_plan_round *r, double limit_s, uint32_t *at) {
    const fl_plan_program *g = r->g;
    double price = r->steepest;
    for (int k = 0; k < PRICES; k++, price = k + 1 < PRICES ? price / 2 : 0)
        give(r, price, limit_s, at);
    for (size_t i = 0; i < g->part_count; i++)
        at[i] = g->table[g->part[i].table].front[at[i]];
}

double fl_plan_round_fill(fl_plan_round *r, double limit_s, uint32_t *at) {
    const fl_plan_program *g = r->g;
    for (size_t i = 0; i < g->part_count; i++) {
        const fl_plan_table *t = &g->table[g->part[i].table];
        at[i] = (uint32_t)slowest_within(t, t->time_s[at[i]]);
        r->length_s[g->part[i].op] = t->time_s[t->front[at[i]]];
    }
    for (size_t i = 0; i < g->path.count; i++)
        if (g->part_of[i] == FL_NONE)
            r->length_s[i] = g->fixed_s[i];
    const double most_s = fmax(limit_s, fl_critical_ends(&g->path, r->length_s, r->end_s, NULL));
    give_all(r, most_s, at);
    return fl_plan_time(g, at, r->length_s, r->end_s);
}

double fl_plan_round_off(fl_plan_round *r, const double *mean_s, double limit_s, bool corners, uint32_t *at) {
    const fl_plan_program *g = r->g;
    memcpy(r->length_s, g->fixed_s, g->path.count * sizeof *r->length_s);
    for (size_t i = 0; i < g->part_count; i++)
        r->length_s[g->part[i].op] = mean_s[i];
    const double most_s = fmax(limit_s, fl_critical_ends(&g->path, r->length_s, r->latest_s, NULL));
    within_ends(r, corners, at);
    give_all(r, most_s, at);
    return fl_plan_time(g, at, r->length_s, r->end_s);
}

/* ---- polishing ---- */

/* Ops that are looked at for one plan, which bounds the time; how often a trial looks at each (two passes at each of
 * eight prices, and two more); parts that a trial makes faster at most; how far apart they run at most, in parts of
 * each rank. */
enum { VISITS = 6000000, PASSES = 18, FASTER = 6, APART = 2 };
#define TINY 1e-12 /* of a time */

fl_status fl_plan_polish_new(fl_plan_polish *p, const fl_plan_program *g, fl_diag *d) {
    size_t n = 0;
    *p = (fl_plan_polish){.g = g,
                          .random = fl_random_seed(1, 0),
                          .near = calloc(g->part_count + 1, sizeof *p->near),
                          .trial = calloc(g->part_count + 1, sizeof *p->trial)};
    if (!p->near || !p->trial) {
        fl_plan_polish_free(p);
        return fl_no_memory(d, "the planner");
    }
    for (size_t k = 0; k < g->path.count; k++)
        if (g->part_of[g->path.order[k]] != FL_NONE)
            p->near[n++] = g->part_of[g->path.order[k]];
    return FL_OK;
}

void fl_plan_polish_free(fl_plan_polish *p) {
    free(p->near);
    free(p->trial);
    *p = (fl_plan_polish){0};
}

/* From one to all of the faster places of its front; small steps are more frequent. */
static void make_faster(const fl_plan_table *t, fl_random *random, uint32_t *at) {
    size_t place = 0;
    while (place + 1 < t->front_count && t->time_s[t->front[place]] < t->time_s[*at])
        place++;
    if (!place)
        return;
    const double u = fl_random_unit(random);
    const size_t steps = 1 + (size_t)(u * u * (double)place);
    *at = t->front[place - (steps < place ? steps : place)];
}

static void disturb(fl_plan_polish *p) {
    const fl_plan_program *g = p->g;
    fl_random *random = &p->random;
    const size_t reach = (size_t)APART * g->w->stream_count, first = fl_random_below(random, g->part_count);
    const size_t low = first > reach ? first - reach : 0,
                 high = first + reach < g->part_count ? first + reach : g->part_count - 1;
    const size_t count = 1 + fl_random_below(random, FASTER);
    for (size_t k = 0; k < count; k++) {
        const uint32_t part = p->near[k ? low + fl_random_below(random, high - low + 1) : first];
        make_faster(&g->table[g->part[part].table], random, &p->trial[part]);
    }
}

void fl_plan_polish_plan(fl_plan_polish *p, fl_plan_round *r, double limit_s, uint32_t *at, double *time_s,
                         double *energy_j) {
    const fl_plan_program *g = p->g;
    const size_t trials = VISITS / (PASSES * (g->path.count + 1)), size = g->part_count * sizeof *at;
    for (size_t k = 0; g->part_count && k < trials; k++) {
        memcpy(p->trial, at, size);
        disturb(p);
        const double took_s = fl_plan_round_fill(r, limit_s, p->trial), joules = fl_plan_energy(g, p->trial, took_s);
        if (took_s > limit_s * (1 + TINY) || joules >= *energy_j)
            continue;
        memcpy(at, p->trial, size);
        *time_s = took_s;
        *energy_j = joules;
    }
}
