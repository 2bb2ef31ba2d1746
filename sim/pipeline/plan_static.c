#include "sim/pipeline/plan_static.h"

#include <stdlib.h>

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
