#include "sim/pipeline/plan_polish.h"

#include <stdlib.h>
#include <string.h>

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
