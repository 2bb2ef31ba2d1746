#include "sim/launches.h"
#include "sim/node.h"
#include "sim/node_inside.h"
#include "sim/prefix_build.h"
#include "sim/prefix.h"
#include "sim/scan.h"
#include "sim/serving_steps.h"
#include "sim/streams.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* When heat is looked at next. On an APU the CPU heats the same die: a look waits until what that drew is known, and
 * the node stands still for it (fl_node_host_next). */
static int64_t heat_next(const fl_node *n, uint32_t gpu, int64_t now) {
    const int64_t t = fl_heat_next(&n->heat[gpu]);
    return fl_node_one_die(n) && (now < t || n->cpu.now_ps < t) ? FL_TIME_NEVER : t;
}

/* The earliest instant at which something must be done to a GPU of the island; until at most. Sensors are read at
 * read_ps and not before. */
static int64_t next_boundary(fl_node *n, const fl_island *is, int64_t now, int64_t until, int64_t read_ps) {
    int64_t t = earlier(until, now + FL_BOUNDARY_MAX_PS);
    for (uint32_t i = 0; i < is->gpu_count; i++) {
        const uint32_t g = is->gpu[i];
        t = earlier(t, fl_actuator_next(&n->actuator[g]));
        t = earlier(t, n->limit[g].at_ps);
        t = earlier(t, fl_wall_next(&n->wall[g]));
        t = earlier(t, heat_next(n, g, now));
        t = earlier(t, fl_sense_next(n->sense[g], now, n->stops ? now : read_ps));
        if (!n->gpu[g].lost)
            t = earlier(t, n->lost_ps[g]);
    }
    return t < now ? now : t;
}

typedef struct fl_standing { /* one GPU at a boundary, for fl_wall_predict */
    fl_node *n;
    fl_course *c; /* NULL: nothing can run there */
    fl_gpu *g;
    bool lone;
    fl_diag *d;
    fl_status status;
} fl_standing;

static int64_t predict_mw(void *user, uint32_t sm) {
    fl_standing *at = user;
    const fl_clock_rates *rates = NULL;
    int64_t mw = 0;
    bool any = false;
    if (!at->c || at->status)
        return -1;
    at->status = fl_rates_at(at->n->rates, at->g->device, sm, at->g->mem, &rates, at->d);
    if (at->status)
        return -1;
    if (at->c->serving) {
        mw = fl_engines_predict_mw(at->c->serving, at->g, sm, rates);
        any = mw >= 0;
    }
    for (uint32_t i = 0; i < at->c->is->stream_count; i++) {
        const fl_lane *l = at->c->mine[i];
        if ((l->phase != FL_PHASE_RUN && !l->spinning) || l->gpu != at->g)
            continue;
        any = true;
        const int64_t dyn = rates->row[l->class_id].dyn_mw;
        mw += at->lone || l->spinning ? dyn : dyn * l->p.rate >> 16;
    }
    return any ? mw + rates->base.total_mw + at->g->leak_mw : -1;
}

static void lose_gpu(fl_node *n, fl_course *c, bool lone, uint32_t index) {
    fl_gpu *g = &n->gpu[index];
    g->lost = true;
    g->open = false;
    g->leak_mw = 0;
    if (c && c->serving)
        fl_engines_lose(c->serving, g);
    else if (c && !lone)
        fl_streams_lose(c, g);
    g->dyn_now_mw = 0;
}

/* Other rates are in force on a GPU since t: what runs there goes on at them. */
static void rescale(fl_course *c, bool lone, fl_gpu *g, const fl_clock_rates *before, int64_t t) {
    if (lone)
        fl_scan_rescale(g, c->mine[0], before);
    else if (c && c->serving)
        fl_engines_rescale(c->serving, g, t);
    else if (c && !g->lost)
        fl_streams_rescale(c, g, before, t);
}

/* What happens to one GPU at a boundary, completions past: settled clocks and limits, wall, heat, sensors. */
static fl_status at_boundary(fl_node *n, fl_course *c, bool lone, uint32_t index, int64_t t, fl_diag *d) {
    fl_gpu *g = &n->gpu[index];
    fl_gpu_charge_to(g, t);
    if (!g->lost && n->lost_ps[index] <= t)
        lose_gpu(n, c, lone, index);
    uint32_t mem = g->mem;
    bool woken = false;
    n->switches += fl_actuator_take(&n->actuator[index], t, &g->lock_sm, &mem);
    if (n->limit[index].at_ps <= t) {
        fl_wall_limit(&n->wall[index], n->limit[index].watts);
        n->limit[index].at_ps = FL_TIME_NEVER;
        woken = true;
    }
    fl_standing at = {.n = n, .c = c, .g = g, .lone = lone, .d = d};
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
        rescale(c, lone, g, before, t);
        woken = true;
    }
    if (woken)
        fl_wall_wake(&n->wall[index], g, t);
    if (lone) {
        const fl_lane *l = c->mine[0];
        g->dyn_now_mw = l->phase == FL_PHASE_RUN && !g->lost ? g->rates->row[l->class_id].dyn_mw : 0;
    }
    fl_sense_at(n->sense[index], g, t);
    return g->records.failed ? fl_no_memory(d, "the node") : FL_OK;
}

/* A stretch of a lone stream. */
static int64_t advance_lone(fl_gpu *g, fl_lane *l, int64_t target, uint32_t gap_mul) {
    const uint64_t from = l->next;
    const int64_t t = fl_scan_advance(g, l, target, gap_mul);
    if (l->next - from > FL_PREFIX_WORTH && fl_prefix_applies(g, l, gap_mul))
        fl_prefix_scanned(g, l->s, l->next - from);
    return t;
}

static bool any_lost(const fl_node *n, const fl_island *is) {
    bool lost = false;
    for (uint32_t i = 0; i < is->gpu_count; i++)
        lost |= n->gpu[is->gpu[i]].lost;
    return lost;
}

/* A GPU on which nothing moves: idles to `until`, its sensors and actuators going on. Where it stands there already,
 * what is due at that instant still happens. */
static fl_status idle_to(fl_node *n, uint32_t index, int64_t until, int64_t read_ps, fl_diag *d) {
    fl_gpu *g = &n->gpu[index];
    fl_island alone = {.gpu = &index, .gpu_count = 1};
    do {
        fl_status s = at_boundary(n, NULL, false, index, next_boundary(n, &alone, g->now_ps, until, read_ps), d);
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

/* A stretch of an island; *done: it has no work left. */
static int64_t advance_course(fl_node *n, uint32_t k, int64_t target, bool *done) {
    const fl_island *is = &n->w->island[k];
    fl_course *c = &n->course[k];
    fl_gpu *first = c->gpu[0];
    if (c->serving) {
        const int64_t t = fl_engines_advance(c->serving, first->now_ps, target);
        *done = fl_engines_done(c->serving);
        return t;
    }
    const bool lone = fl_node_is_lone(n, k);
    const uint32_t gap_mul = c->host ? c->host[0].mul : FL_MUL_ONE;
    const fl_path path = lone ? FL_PATH_PLAIN : fl_node_launches(n, k) ? FL_PATH_LAUNCHES : FL_PATH_EVENTS;
    const int64_t t = path == FL_PATH_PLAIN      ? advance_lone(first, c->mine[0], target, gap_mul)
                      : path == FL_PATH_LAUNCHES ? fl_launches_advance(c, target)
                                                 : fl_streams_advance(c, target);
    first->taken[path]++;
    *done = lone ? c->mine[0]->phase == FL_PHASE_DONE : c->done == is->stream_count + is->thread_count;
    return t;
}

static bool stuck(const fl_course *c, char *why, size_t size) {
    return c->serving ? fl_engines_stuck(c->serving) : fl_streams_stuck(c, why, size) != NULL;
}

static fl_status advance_island(fl_node *n, uint32_t k, int64_t until, int64_t read_ps, fl_diag *d) {
    const fl_island *is = &n->w->island[k];
    fl_course *c = &n->course[k];
    bool lone = fl_node_is_lone(n, k);
    fl_gpu *first = &n->gpu[is->gpu[0]];
    /* Of several streams those that a loss keeps waiting may spin: what spins draws power as long as it waits. */
    while (!n->finished[k] && (!n->stalled[k] || !lone)) {
        int64_t target = next_boundary(n, is, first->now_ps, until, read_ps);
        bool done;
        const int64_t t = advance_course(n, k, target, &done);
        if (c->serving && c->serving->status)
            return fl_engines_refused(c->serving, n->w->name, d);
        if (done) { /* it stands at the instant of its last completion until the node's own end is known */
            end_island(n, k, t);
            return FL_OK;
        }
        for (uint32_t i = 0; i < is->gpu_count; i++) {
            fl_status s = at_boundary(n, c, lone, is->gpu[i], t, d);
            if (s)
                return s;
        }
        char why[128];
        if (any_lost(n, is) && (lone || stuck(c, why, sizeof why)))
            n->stalled[k] = true;
        else if (!lone && target == until && until == read_ps && !c->serving && stuck(c, why, sizeof why))
            return fl_refuse(d, "%s: %s", n->w->name, why);
        if (t >= until || c->marked)
            return FL_OK;
    }
    return n->stalled[k] && first->now_ps <= until ? idle_to(n, is->gpu[0], until, read_ps, d) : FL_OK;
}

/* ---- markers ---- */

static bool may_pass_marker(const fl_node *n, uint32_t k) {
    return n->course[k].stops && !n->finished[k] && !n->stalled[k];
}

/* Nothing happens on the island before this instant, seen from where it stands. */
static int64_t quiet_until(fl_node *n, uint32_t k, int64_t until, int64_t read_ps) {
    const fl_island *is = &n->w->island[k];
    return earlier(fl_streams_next(&n->course[k]), next_boundary(n, is, n->gpu[is->gpu[0]].now_ps, until, read_ps));
}

/* One island alone may go as far as it gets. Several go on together from one instant at which something happens to the
 * next, so that none of them is beyond the one at which another passes a marker. *until becomes that instant. */
static fl_status advance_to_marker(fl_node *n, int64_t *until, int64_t read_ps, fl_diag *d) {
    uint32_t islands = 0, one = 0;
    for (uint32_t k = 0; k < n->w->island_count; k++)
        if (may_pass_marker(n, k))
            islands++, one = k;
    if (islands == 1) {
        fl_status s = advance_island(n, one, *until, read_ps, d);
        n->woken = n->course[one].marked;
        if (n->woken)
            *until = n->finished[one] ? n->ended[one] : n->course[one].gpu[0]->now_ps;
        return s;
    }
    for (int64_t step = n->now; islands;) {
        islands = 0;
        int64_t next = *until;
        for (uint32_t k = 0; k < n->w->island_count; k++) {
            if (!may_pass_marker(n, k))
                continue;
            fl_status s = advance_island(n, k, step, read_ps, d);
            if (s)
                return s;
            n->woken |= n->course[k].marked;
            if (!may_pass_marker(n, k))
                continue;
            islands++;
            next = earlier(next, quiet_until(n, k, *until, read_ps));
        }
        if (n->woken)
            *until = step;
        if (n->woken || step == *until)
            break;
        step = next;
    }
    return FL_OK;
}

void fl_node_stop_at_markers(fl_node *n, bool on) {
    if (on == n->stops)
        return;
    n->stops = on;
    for (uint32_t k = 0; k < n->w->island_count; k++) {
        fl_course *c = &n->course[k];
        bool markers = false;
        for (uint32_t i = 0; i < c->is->stream_count; i++)
            markers |= c->mine[i]->s->iterations > 0;
        c->stops = on && markers;
        c->by_events |= c->stops;
    }
}

bool fl_node_woken(const fl_node *n) { return n->woken; }

/* Every GPU to `until`, or all to the end of the last work where that comes first. */
static fl_status advance_all(fl_node *n, int64_t until, int64_t read_ps, fl_diag *d) {
    n->woken = false;
    fl_status marked = n->stops ? advance_to_marker(n, &until, read_ps, d) : FL_OK;
    if (marked)
        return marked;
    bool all = true;
    int64_t last = n->now;
    for (uint32_t k = 0; k < n->w->island_count; k++) {
        fl_status s = advance_island(n, k, until, read_ps, d);
        if (s)
            return s;
        all &= n->finished[k];
        if (n->finished[k] && n->ended[k] > last)
            last = n->ended[k];
    }
    int64_t t = all ? last : until;
    for (uint32_t i = 0; i < n->gpu_count; i++) {
        const bool runs = n->gpu[i].open || n->gpu[i].now_ps == t; /* it stands at t already */
        fl_status s = runs && n->gpu[i].open ? FL_OK : idle_to(n, i, t, read_ps, d);
        if (s)
            return s;
    }
    n->now = t;
    return FL_OK;
}

/* Whether a lost GPU keeps the work from ever ending, and somebody has had the chance to see that it is gone. */
static fl_status check_lost(const fl_node *n, fl_diag *d) {
    bool waits = true;
    uint32_t lost = n->gpu_count;
    for (uint32_t k = 0; k < n->w->island_count; k++)
        waits &= n->finished[k] || n->stalled[k];
    for (uint32_t i = n->gpu_count; i-- > 0;)
        if (n->gpu[i].lost && n->now > n->lost_ps[i])
            lost = i;
    if (!waits || fl_node_done(n) || lost == n->gpu_count)
        return FL_OK;
    uint64_t kernels = 0;
    for (uint32_t i = 0; i < n->gpu_count; i++)
        kernels += n->gpu[i].sums.kernels;
    return fl_error(d, FL_HARDWARE,
                    "%s: GPU %u fell off the bus at %.9g s; its work can never end (%llu kernels done on all GPUs)",
                    n->w->name, lost, (double)n->lost_ps[lost] * 1e-12, (unsigned long long)kernels);
}

fl_status fl_node_advance(fl_node *n, int64_t until, fl_diag *d) {
    if (until > FL_TIME_END)
        return fl_refuse(d, "%s: the run goes beyond 26 days of simulated time", n->w->name);
    fl_status s = check_lost(n, d);
    do {
        int64_t t = n->meets ? earlier(until, fl_node_host_next(n, n->stops ? n->now : until)) : until;
        if (!s)
            s = advance_all(n, t, until, d);
        if (s)
            return s;
        if (n->meets)
            fl_node_host_at(n);
    } while (n->now < until && !n->woken && !fl_node_done(n));
    return FL_OK;
}

int64_t fl_node_now(const fl_node *n) { return n->now; }

bool fl_node_done(const fl_node *n) {
    for (uint32_t k = 0; k < n->w->island_count; k++)
        if (!n->finished[k])
            return false;
    return true;
}

void fl_node_read(fl_node *n, uint32_t gpu, bool remember, fl_gpu_sample *out) {
    fl_sense_read(n->sense[gpu], &n->gpu[gpu], n->now, remember, out);
}

void fl_node_set(fl_node *n, uint32_t gpu, int64_t called_ps, double sm_mhz, double mem_mhz) {
    fl_actuator_set(&n->actuator[gpu], called_ps, sm_mhz, mem_mhz);
}

bool fl_node_set_limit(fl_node *n, uint32_t gpu, int64_t called_ps, double watts) {
    if (!n->wall[gpu].period_ps)
        return false;
    n->limit[gpu] = (fl_limit_pending){called_ps + n->actuator[gpu].dev->actuator.settle_ns * FL_PS_PER_NS, watts};
    return true;
}

double fl_node_limit_w(const fl_node *n, uint32_t gpu) {
    const fl_wall *w = &n->wall[gpu];
    return w->period_ps && w->limit_mw > 0 ? (double)w->limit_mw * 1e-3 : (double)NAN;
}

bool fl_node_set_cpu(fl_node *n, int64_t called_ps, double mhz, double boost, double limit_w) {
    return n->hosted && fl_cpu_set(&n->cpu, called_ps, mhz, boost, limit_w);
}

static bool holds(const fl_island *is, uint32_t gpu) {
    for (uint32_t i = 0; i < is->gpu_count; i++)
        if (is->gpu[i] == gpu)
            return true;
    return false;
}

/* A count is of the kernels that ended while somebody counted. */
static void count_records(fl_gpu *g, bool on) {
    if (on && !g->records.on)
        g->uncounted += g->sums.kernels - g->stopped;
    else if (!on && g->records.on)
        g->stopped = g->sums.kernels;
    g->records.on = on;
}

void fl_node_records_free(fl_node *n, uint32_t gpu, bool on) { count_records(&n->gpu[gpu], on); }

/* Every GPU stands at n->now here, charged up to it. */
void fl_node_records(fl_node *n, uint32_t gpu, bool on) {
    fl_gpu *g = &n->gpu[gpu];
    const fl_clock_rates *before = g->rates;
    count_records(g, on);
    g->records.slow = on;
    g->records.failed |= fl_gpu_clock(g, g->sm, g->mem, NULL) != FL_OK;
    for (uint32_t k = 0; g->rates != before && k < n->w->island_count; k++)
        if (holds(&n->w->island[k], gpu) && !n->finished[k] && !n->stalled[k])
            rescale(&n->course[k], fl_node_is_lone(n, k), g, before, n->now);
}

static int by_end(const void *a, const void *b) {
    const fl_kernel_record *x = a, *y = b;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    if (x->gpu != y->gpu)
        return x->gpu < y->gpu ? -1 : 1;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->kind < y->kind ? -1 : x->kind > y->kind;
}

fl_status fl_node_take_records(fl_node *n, const fl_kernel_record **record, size_t *count, fl_diag *d) {
    n->record_count = 0;
    bool many = false;
    for (uint32_t i = 0; i < n->gpu_count; i++) {
        fl_record_buffer *b = &n->gpu[i].records;
        if (!b->count)
            continue;
        if (fl_grow(&n->record, &n->record_room, n->record_count + b->count, sizeof *n->record))
            return fl_no_memory(d, "the node");
        many |= n->record_count > 0 || n->w->stream_count > 1;
        memcpy(n->record + n->record_count, b->record, b->count * sizeof *b->record);
        n->record_count += b->count;
        b->count = 0;
    }
    if (many)
        qsort(n->record, n->record_count, sizeof *n->record, by_end);
    *record = n->record;
    *count = n->record_count;
    return FL_OK;
}

uint32_t fl_node_gpu_count(const fl_node *n) { return n->gpu_count; }
const fl_gpu *fl_node_gpu(const fl_node *n, uint32_t gpu) { return &n->gpu[gpu]; }
uint64_t fl_node_switches(const fl_node *n) { return n->switches; }
const int64_t *fl_node_marks(const fl_node *n, uint32_t stream) { return n->lane[stream].mark_ps; }

const int64_t *fl_node_requests(const fl_node *n) { return n->request_ps; }

const int64_t *fl_node_iterations(const fl_node *n, uint32_t stream, uint64_t *count) {
    *count = n->lane[stream].iterations;
    return n->lane[stream].iteration_ps;
}

void fl_node_settle(fl_node *n) {
    for (uint32_t i = 0; i < n->gpu_count; i++)
        fl_prefix_settle(&n->gpu[i]);
}

uint64_t fl_node_hash(const fl_node *n) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < n->gpu_count; i++) {
        h = (h ^ (uint64_t)n->gpu[i].sums.energy_fj) * UINT64_C(0x100000001b3);
        h = (h ^ (uint64_t)n->gpu[i].sums.busy_ps) * UINT64_C(0x100000001b3);
        h = (h ^ (uint64_t)n->gpu[i].sums.kernels) * UINT64_C(0x100000001b3);
    }
    for (uint32_t i = 0; i < n->w->stream_count; i++)
        h = (h ^ n->lane[i].next) * UINT64_C(0x100000001b3);
    return n->serving ? fl_engines_hash(n->serving, h) : h;
}
