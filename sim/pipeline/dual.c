/* Prices on time (Frank and Wolfe), and plans of few clocks for comparison. */
#include "sim/pipeline/inside.h"

#include "models/laws/device.h"
#include "models/math/math.h"
#include "sim/pipeline/pipeline.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- prices on time ---- */

/* Rounds at most, and how often it is looked whether the bound is near enough: within this share of the energy. */
enum { ROUNDS = 600, LOOK = 50 };
#define NEAR 1e-4
/* Rounds that a flow of another price counts for: it is a good one, and the first steps must not throw it away. */
enum { INHERITED = 20 };

fl_status fl_plan_dual_new(fl_plan_dual *s, const fl_plan_program *g, fl_diag *d) {
    *s = (fl_plan_dual){.g = g,
                        .flow = calloc(g->part_count + 1, sizeof *s->flow),
                        .mean = calloc(g->part_count + 1, sizeof *s->mean),
                        .near = calloc(g->part_count + 1, sizeof *s->near),
                        .length_s = calloc(g->path.count + 1, sizeof *s->length_s),
                        .end_s = calloc(g->path.count + 1, sizeof *s->end_s),
                        .before = calloc(g->path.count + 1, sizeof *s->before)};
    if (s->flow && s->mean && s->near && s->length_s && s->end_s && s->before) {
        memcpy(s->length_s, g->fixed_s, g->path.count * sizeof *s->length_s);
        return FL_OK;
    }
    fl_plan_dual_free(s);
    return fl_no_memory(d, "the planner");
}

void fl_plan_dual_free(fl_plan_dual *s) {
    free(s->flow);
    free(s->mean);
    free(s->near);
    free(s->length_s);
    free(s->end_s);
    free(s->before);
    *s = (fl_plan_dual){0};
}

/* Seconds at a price where vertex v of the hull is best. At a hull's corner lengths jump, and rounds would go to and
 * fro between two; so they go over from one to the next in a line, half way at the price where both are as good. The
 * bound does not depend on it. */
static double answer(const fl_convex *h, double price, size_t v) {
    const size_t last = h->count - 1;
    if (!last)
        return h->x[0];
    /* Prices at which the length lies half way to the faster and to the slower neighbour; beyond the ends as far again.
     */
    const double fast = v ? h->slope[v - 1] : h->slope[0] + (h->slope[0] - h->slope[last > 1]) / 2 * (last > 1),
                 slow = v < last ? h->slope[v] : h->slope[last - 1] / 2;
    const double at_fast = v ? (h->x[v - 1] + h->x[v]) / 2 : h->x[0],
                 at_slow = v < last ? (h->x[v] + h->x[v + 1]) / 2 : h->x[last];
    if (price >= fast)
        return at_fast;
    return price <= slow ? at_slow : at_slow + (price - slow) / (fast - slow) * (at_fast - at_slow);
}

/* Every part's vertex and length at its price; what the bound says. */
static double answer_all(fl_plan_dual *s, double all) {
    const fl_plan_program *g = s->g;
    double value = all * s->fixed;
    for (size_t i = 0; i < g->part_count; i++) {
        const fl_convex *h = &g->table[g->part[i].table].hull;
        const double price = all * s->flow[i];
        const size_t v = s->near[i] = fl_convex_pick(h, price, s->near[i]);
        value += h->y[v] + price * h->x[v];
        s->length_s[g->part[i].op] = answer(h, price, v);
    }
    return value;
}

/* Moves the flow towards the longest path at the lengths that there are. */
static void follow(fl_plan_dual *s, double step) {
    const fl_plan_program *g = s->g;
    double fixed = 0;
    fl_critical_ends(&g->path, s->length_s, s->end_s, s->before);
    uint32_t at = 0;
    for (uint32_t rank = 0; rank < g->w->stream_count; rank++) {
        const uint32_t last = (uint32_t)(g->path.first[rank + 1] - 1);
        at = rank == 0 || s->end_s[last] > s->end_s[at] ? last : at;
    }
    for (size_t i = 0; i < g->part_count; i++)
        s->flow[i] *= 1 - step;
    for (; at != FL_NONE; at = s->before[at])
        if (g->part_of[at] != FL_NONE)
            s->flow[g->part_of[at]] += step;
        else
            fixed += g->fixed_s[at];
    s->fixed += step * (fixed - s->fixed);
}

/* Time and energy of the mixture of clocks that the mean lengths are. */
static void measure(fl_plan_dual *s, fl_plan_line *line) {
    const fl_plan_program *g = s->g;
    double over_j = 0;
    for (size_t i = 0; i < g->part_count; i++) {
        s->length_s[g->part[i].op] = s->mean[i];
        over_j += fl_convex_at(&g->table[g->part[i].table].hull, s->mean[i]);
    }
    line->time_s = fl_critical_ends(&g->path, s->length_s, s->end_s, NULL);
    line->energy_j = over_j + g->blocked_w * line->time_s;
}

void fl_plan_dual_solve(fl_plan_dual *s, double price, fl_plan_line *line) {
    const fl_plan_program *g = s->g;
    const double all = g->blocked_w + price;
    double weights = 0;
    *line = (fl_plan_line){.price = price, .bound = -INFINITY};
    if (!s->begun) { /* the longest path where all are as fast as they can be */
        for (size_t i = 0; i < g->part_count; i++)
            s->length_s[g->part[i].op] = g->table[g->part[i].table].hull.x[0];
        follow(s, 1);
    }
    for (int k = 1; k <= ROUNDS; k++) {
        line->bound = fmax(line->bound, answer_all(s, all));
        weights += k;
        for (size_t i = 0; i < g->part_count; i++)
            s->mean[i] += (s->length_s[g->part[i].op] - s->mean[i]) * k / weights;
        follow(s, 2.0 / (k + 1 + (s->begun ? INHERITED : 0)));
        if (k % LOOK)
            continue;
        measure(s, line);
        if (line->energy_j + price * line->time_s - line->bound < NEAR * line->energy_j)
            break;
    }
    s->begun = true;
}

/* ---- plans of few clocks ---- */

enum { TURNS = 40 }; /* of all ranks at most */

static uint32_t place_in(const fl_plan_table *t, int32_t mhz) {
    uint32_t k = 0;
    while (k + 1 < t->count && t->mhz[k + 1] <= mhz)
        k++;
    return k;
}

void fl_plan_at_clocks(const fl_plan_program *g, const int32_t *mhz, uint32_t *at) {
    for (size_t i = 0; i < g->part_count; i++)
        at[i] = place_in(&g->table[g->part[i].table], mhz[g->part[i].table / (2 * g->p->chunks)]);
}

void fl_plan_at_clock(const fl_plan_program *g, int32_t mhz, uint32_t *at) {
    for (size_t i = 0; i < g->part_count; i++)
        at[i] = place_in(&g->table[g->part[i].table], mhz);
}

fl_status fl_plan_all_same(const fl_plan_program *g, fl_plan_same **same, size_t *count, fl_diag *d) {
    const fl_device *dev = &g->node->device[g->node->gpu[0]];
    uint32_t *at = calloc(g->part_count + 1, sizeof *at);
    double *length_s = calloc(g->path.count + 1, sizeof *length_s), *end_s = calloc(g->path.count + 1, sizeof *end_s);
    *same = calloc((size_t)dev->sm_count + 1, sizeof **same);
    const fl_status s = at && length_s && end_s && *same ? FL_OK : fl_no_memory(d, "the planner");
    *count = s ? 0 : dev->sm_count;
    for (size_t k = 0; k < *count; k++) {
        fl_plan_at_clock(g, dev->sm_mhz[k], at);
        const double time_s = fl_plan_time(g, at, length_s, end_s);
        (*same)[k] = (fl_plan_same){dev->sm_mhz[k], time_s, fl_plan_energy(g, at, time_s)};
    }
    free(at);
    free(length_s);
    free(end_s);
    return s;
}

typedef struct descent {
    const fl_plan_program *g;
    double price;
    uint32_t *at;
    double *length_s, *end_s;
} descent;

static double cost_of(const descent *s, const int32_t *mhz) {
    fl_plan_at_clocks(s->g, mhz, s->at);
    const double time_s = fl_plan_time(s->g, s->at, s->length_s, s->end_s);
    return fl_plan_energy(s->g, s->at, time_s) + s->price * time_s;
}

static uint32_t place_on(const fl_device *dev, int32_t mhz) {
    uint32_t k = 0;
    while (k + 1 < dev->sm_count && dev->sm_mhz[k] < mhz)
        k++;
    return k;
}

/* The rank goes to the best of the clocks around its own; true where it did. */
static bool turn(const descent *s, int32_t *mhz, uint32_t rank, double *least) {
    static const int step[] = {-4, -2, -1, 1, 2, 4};
    const fl_device *dev = &s->g->node->device[s->g->node->gpu[rank]];
    const int64_t from = place_on(dev, mhz[rank]);
    int32_t best = mhz[rank];
    for (size_t k = 0; k < sizeof step / sizeof *step; k++) {
        if (from + step[k] < 0 || from + step[k] >= dev->sm_count)
            continue;
        const int32_t before = mhz[rank];
        mhz[rank] = dev->sm_mhz[from + step[k]];
        const double cost = cost_of(s, mhz);
        if (cost < *least) {
            *least = cost;
            best = mhz[rank];
        }
        mhz[rank] = before;
    }
    const bool moved = best != mhz[rank];
    mhz[rank] = best;
    return moved;
}

fl_status fl_plan_rank_clocks(const fl_plan_program *g, double price, int32_t *mhz, uint32_t *at, double *time_s,
                              double *energy_j, fl_diag *d) {
    descent s = {.g = g,
                 .price = price,
                 .at = at,
                 .length_s = calloc(g->path.count + 1, sizeof *s.length_s),
                 .end_s = calloc(g->path.count + 1, sizeof *s.end_s)};
    const fl_status status = s.length_s && s.end_s ? FL_OK : fl_no_memory(d, "the planner");
    if (!status) {
        double least = cost_of(&s, mhz);
        bool moved = true;
        for (int k = 0; moved && k < TURNS; k++) {
            moved = false;
            for (uint32_t rank = 0; rank < g->p->ranks; rank++)
                moved |= turn(&s, mhz, rank, &least);
        }
        fl_plan_at_clocks(g, mhz, at);
        *time_s = fl_plan_time(g, at, s.length_s, s.end_s);
        *energy_j = fl_plan_energy(g, at, *time_s);
    }
    free(s.length_s);
    free(s.end_s);
    return status;
}
