/* One island of a node between boundaries, and what happens to its GPUs at them. */
#include "sim/node/inside.h"

#include "sim/advance/advance.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* When heat is looked at next. On an APU the CPU heats the same die: a look waits until what that drew is known, and
 * the node stands still for it (fl_node_host_next). */
static int64_t heat_next(const fl_node *n, uint32_t gpu, int64_t now) {
    const int64_t t = fl_heat_next(&n->heat[gpu]);
    return fl_node_one_die(n) && (now < t || n->cpu.now_ps < t) ? FL_TIME_NEVER : t;
}

/* The next boundary but for the sensors'. */
static int64_t due_next(const fl_node *n, const fl_island *is, int64_t now, int64_t until) {
    int64_t t = earlier(until, now + FL_BOUNDARY_MAX_PS);
    for (uint32_t i = 0; i < is->gpu_count; i++) {
        const uint32_t g = is->gpu[i];
        t = earlier(t, fl_actuator_next(&n->actuator[g]));
        t = earlier(t, n->limit[g].at_ps);
        t = earlier(t, fl_wall_next(&n->wall[g]));
        t = earlier(t, heat_next(n, g, now));
        if (!n->gpu[g].lost)
            t = earlier(t, n->lost_ps[g]);
    }
    return t < now ? now : t;
}

int64_t fl_node_boundary(fl_node *n, const fl_island *is, int64_t now, int64_t until, int64_t read_ps) {
    int64_t t = due_next(n, is, now, until);
    bool begins;
    for (uint32_t i = 0; i < is->gpu_count; i++)
        t = earlier(t, fl_sense_next(n->sense[is->gpu[i]], now, n->stops ? now : read_ps, &begins));
    return t < now ? now : t;
}

/* The next boundary of an island. Where windows of sensors only begin, none is needed if the source knows the sums of
 * then: half of the boundaries of a policy that reads a mean. */
static int64_t next_stop(fl_node *n, fl_course *c, int64_t until, int64_t read_ps) {
    const fl_gpu *g = c->gpu[0];
    if (!c->source->foresee || n->stops)
        return fl_node_boundary(n, c->is, g->now_ps, until, read_ps);
    const int64_t due = due_next(n, c->is, g->now_ps, until);
    const bool busy_only = fl_sense_busy_only(n->sense[g->index]);
    for (;;) {
        bool begins;
        fl_sums sums;
        const int64_t t = fl_sense_next(n->sense[g->index], g->now_ps, read_ps, &begins);
        if (t >= due || !begins || !c->source->foresee(c, g, t, busy_only, &sums))
            return t < g->now_ps ? g->now_ps : earlier(t, due);
        fl_sense_begin(n->sense[g->index], &sums, t);
    }
}

typedef struct fl_standing { /* one GPU at a boundary, for fl_wall_predict */
    fl_node *n;
    const fl_course *c; /* NULL: nothing can run there */
    fl_gpu *g;
    fl_diag *d;
    fl_status status;
} fl_standing;

static int64_t predict_mw(void *user, uint32_t sm) {
    fl_standing *at = user;
    const fl_clock_rates *rates = NULL;
    if (!at->c || at->status)
        return -1;
    at->status = fl_rates_at(at->n->rates, at->g->device, sm, at->g->mem, &rates, at->d);
    if (at->status)
        return -1;
    const int64_t mw = at->c->source->predict_mw(at->c, at->g, sm, rates);
    return mw < 0 ? -1 : mw + rates->base.total_mw + at->g->leak_mw;
}

static void lose_gpu(fl_course *c, fl_gpu *g) {
    g->lost = true;
    g->open = false;
    g->leak_mw = 0;
    if (c)
        c->source->lose(c, g);
    g->dyn_now_mw = 0;
}

/* What happens to one GPU at a boundary, completions past: settled clocks and limits, wall, heat, sensors. c is NULL
 * where nothing can run on it. */
static fl_status at_boundary(fl_node *n, fl_course *c, uint32_t index, int64_t t, fl_diag *d) {
    fl_gpu *g = &n->gpu[index];
    fl_gpu_charge_to(g, t);
    if (!g->lost && n->lost_ps[index] <= t)
        lose_gpu(c, g);
    uint32_t mem = g->mem;
    bool woken = false;
    n->switches += fl_actuator_take(&n->actuator[index], t, &g->lock_sm, &mem);
    if (n->limit[index].at_ps <= t) {
        fl_wall_limit(&n->wall[index], n->limit[index].watts);
        n->limit[index].at_ps = FL_TIME_NEVER;
        woken = true;
    }
    fl_standing at = {.n = n, .c = c, .g = g, .d = d};
    fl_wall_at(&n->wall[index], g, t, predict_mw, &at);
    if (at.status)
        return at.status;
    if (heat_next(n, index, t) <= t) {
        fl_heat_at(&n->heat[index], g, fl_node_one_die(n) ? n->cpu.sums.cpu_fj : 0, t);
        woken = true;
    }
    const uint32_t sm = fl_gpu_allowed_sm(g);
    if (sm != g->sm || mem != g->mem) {
        const fl_clock_rates *before = g->rates;
        fl_status s = fl_gpu_clock(g, sm, mem, d);
        if (s)
            return s;
        if (c)
            c->source->rescale(c, g, before, t);
        woken = true;
    }
    if (woken)
        fl_wall_wake(&n->wall[index], g, t);
    if (c && c->source->at_boundary)
        c->source->at_boundary(c, g);
    fl_sense_at(n->sense[index], g, t);
    return g->records.failed ? fl_no_memory(d, "the node") : FL_OK;
}

static bool any_lost(const fl_node *n, const fl_island *is) {
    bool lost = false;
    for (uint32_t i = 0; i < is->gpu_count; i++)
        lost |= n->gpu[is->gpu[i]].lost;
    return lost;
}

fl_status fl_node_idle_to(fl_node *n, uint32_t index, int64_t until, int64_t read_ps, fl_diag *d) {
    fl_gpu *g = &n->gpu[index];
    fl_island alone = {.gpu = &index, .gpu_count = 1};
    do {
        fl_status s = at_boundary(n, NULL, index, fl_node_boundary(n, &alone, g->now_ps, until, read_ps), d);
        if (s)
            return s;
    } while (g->now_ps < until);
    return FL_OK;
}

static void end_island(fl_node *n, uint32_t k, int64_t t) {
    const fl_island *is = &n->w->island[k];
    for (uint32_t i = 0; i < is->gpu_count; i++)
        fl_gpu_charge_to(&n->gpu[is->gpu[i]], t);
    for (uint32_t i = 0; i < is->gpu_count; i++) { /* the program has ended there: no context, the idle clock */
        n->gpu[is->gpu[i]].open = false;
        n->gpu[is->gpu[i]].dyn_now_mw = 0;
    }
    n->finished[k] = true;
    n->ended[k] = t;
}

fl_status fl_node_advance_island(fl_node *n, uint32_t k, int64_t until, int64_t read_ps, fl_diag *d) {
    const fl_island *is = &n->w->island[k];
    fl_course *c = &n->course[k];
    fl_gpu *first = &n->gpu[is->gpu[0]];
    /* Of several streams those that a loss keeps waiting may spin: what spins draws power as long as it waits. */
    while (!n->finished[k] && (!n->stalled[k] || !c->source->stands)) {
        int64_t target = next_stop(n, c, until, read_ps);
        int64_t t = target;
        bool done = false;
        fl_status s = c->source->advance(c, target, &t, &done, d);
        if (s)
            return s;
        if (done) { /* it stands at the instant of its last completion until the node's own end is known */
            end_island(n, k, t);
            return FL_OK;
        }
        for (uint32_t i = 0; !s && i < is->gpu_count; i++)
            s = at_boundary(n, c, is->gpu[i], t, d);
        if (s)
            return s;
        char why[128];
        const bool lost = any_lost(n, is), last = target == until && until == read_ps;
        if ((lost || last) && c->source->stuck(c, why, sizeof why)) {
            if (lost)
                n->stalled[k] = true;
            else if (why[0])
                return fl_refuse(d, "%s: %s", n->w->name, why);
        }
        if (t >= until || c->marked)
            return FL_OK;
    }
    return n->stalled[k] && first->now_ps <= until ? fl_node_idle_to(n, is->gpu[0], until, read_ps, d) : FL_OK;
}
