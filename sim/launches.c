/* The recurrence of one stream with launches. Of op i, which the thread launches at L and the stream ends at E:
 *
 *     L[i] = max(L[i-1] + host[i], E[i - queue])        the host computes, and waits where the queue is full
 *     L[i] = max(L[i-1] + call[i], E[i - lag]) + host[i] ... where it synchronises in between
 *     E[i] = max(E[i-1], L[i]) + gap[i] + length[i]     the stream goes on once the op is launched
 *
 * Nothing in it looks ahead, so one pass in the order of the ops gives every instant up to a boundary. There the thread
 * may be far ahead of the stream: what it launches by then, while the stream stands in an op, is a pass over the host
 * alone. Whatever is rare goes through the steps of the way of events, one at a time: what meets a boundary, phases of
 * kernels, several synchronisations in a row, and the ends. */
#include "sim/launches.h"

#include "sim/streams.h"
#include "sim/streams_inside.h"

#include <stdlib.h>

#define RING_MAX 65536u /* ends of ops that a course remembers: half a megabyte */

fl_status fl_launches_open(fl_course *c, fl_diag *d) {
    const fl_launch_plan *p = c->is->launches;
    if (!p || c->shared_bus)
        return FL_OK;
    const uint64_t count = c->mine[0]->s->count;
    c->ends_queue = c->queue < count ? c->queue : count;
    uint64_t room = 1;
    while (room <= c->ends_queue + p->reach)
        room *= 2;
    if (room > RING_MAX)
        return FL_OK;
    c->ends_mask = room - 1;
    c->ends_ps = calloc(room, sizeof *c->ends_ps);
    return c->ends_ps ? FL_OK : fl_no_memory(d, "the node");
}

typedef struct fl_launching { /* one stretch between two boundaries */
    fl_course *c;
    fl_gpu *g;
    fl_lane *l;
    fl_host_thread *h;
    const fl_launch_plan *plan;
    int64_t until;
    int64_t free_ps; /* the end of the stream's op before the next, or an instant between that and now */
    int64_t host_ps; /* the last instant at which the thread did an item, likewise */
    bool clean;      /* its host time in progress began there, in this stretch: no clock has changed since */
} fl_launching;

static inline int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- one step of the stream, or of the host: any op, any item ---- */

/* The stream has something to do before the next launch. */
static inline bool lane_is_busy(const fl_lane *l) {
    return l->phase == FL_PHASE_GAP || l->phase == FL_PHASE_RUN || l->next < l->launched;
}

/* False where the stream stands in its op at the boundary. */
static bool step_lane(fl_launching *x) {
    fl_lane *l = x->l;
    if (l->phase == FL_PHASE_FRESH)
        return fl_streams_begin_op(x->c, l, later(x->free_ps, x->host_ps));
    const int64_t t = *l->p.event_ps;
    if (t > x->until)
        return false;
    fl_streams_pass_op(x->c, l, t);
    if (l->phase == FL_PHASE_FRESH || l->phase == FL_PHASE_DONE) {
        x->free_ps = t;
        x->c->ends_ps[(l->next - 1) & x->c->ends_mask] = t;
    }
    return true;
}

/* When op i of the stream ended, if it has. Where the ring has lost it, it ended before the thread's last item. */
static inline int64_t ended(const fl_launching *x, uint64_t i) {
    return i < x->l->next && x->l->next - i <= x->c->ends_mask ? x->c->ends_ps[i & x->c->ends_mask] : 0;
}

/* False where the thread computes beyond the boundary, or waits for what ends beyond it, or has ended. */
static bool step_host(fl_launching *x) {
    fl_host_thread *h = x->h;
    if (!h->computing && h->next == h->t->count)
        return false;
    int64_t t = x->host_ps;
    if (h->computing) {
        t = *h->p.event_ps;
        if (t > x->until)
            return false;
        end_host(x->c, &h->p, h->load, t);
        h->computing = false;
    }
    if (h->next < h->t->count) {
        const fl_item *item = &h->t->item[h->next];
        if (item->type == FL_ITEM_LAUNCH && x->l->launched >= x->c->queue)
            t = later(t, ended(x, x->l->launched - x->c->queue));
        for (uint32_t k = item->wait_first; k < item->wait_first + item->wait_count; k++)
            t = later(t, h->t->wait[k].done ? ended(x, h->t->wait[k].done - 1) : 0);
    }
    const bool moved = fl_streams_thread(x->c, h, t);
    x->host_ps = t;
    x->clean = h->computing;
    return moved;
}

/* ---- the pass ---- */

/* The thread stands at `at` behind an item, at whose end its host time up to the next one begins. */
static void host_stands(fl_launching *x, uint64_t launched, size_t next, int64_t at, int64_t computed) {
    fl_host_thread *h = x->h;
    if (next == h->next)
        return;
    if (x->c->host) {
        x->c->sums.time_ps[0] += computed;
        x->c->sums.work_ps[0] += computed;
    }
    x->l->launched = launched;
    x->host_ps = at;
    h->next = next;
    h->work_ns = h->t->item[next].host_ns;
    h->load = h->t->item[next].load;
    start_host(x->c, &h->p, h->load, h->work_ns, at);
}

/* Whether the plan's word for an op says what the thread has before it now: not where a boundary came between a
 * synchronisation and its launch. */
static inline bool plan_holds(const fl_launching *x, uint64_t op) {
    const uint32_t word = x->plan->before[op];
    return x->clean && word != FL_LAUNCH_OTHER &&
           (word < FL_LAUNCH_SYNC || x->h->t->item[x->h->next].type == FL_ITEM_SYNC);
}

static inline int64_t scaled_ps(uint32_t ns, uint32_t mul) {
    return (int64_t)(((uint64_t)ns * mul + (1u << 15)) >> 16);
}

/* An op of the pass that is more than a kernel of a plain record: an escape, a copy, a marker, a phase; or somebody
 * reads records. It ended at `end`. */
static void finish_other(fl_launching *x, uint32_t class_id, uint16_t resident, int64_t start, int64_t end) {
    fl_lane *l = x->l;
    if (!l->in_parts)
        l->began_ps = start;
    if (resident) {
        l->in_parts = resident == FL_RESIDENT_PART;
        if (x->g->records.on && !l->in_parts) {
            l->class_id = class_id;
            fl_lane_record(l, end);
        }
    } else if (x->g->w->class[class_id].iteration) {
        x->g->sums.iterations++;
        l->iteration_ps[l->iterations++] = end;
    }
}

/* Whole ops from the next one to `stop` while they end by the boundary, and while the plan knows their launches.
 * `host`: each is launched on the way; else all of them have been launched. `plain`: kernels of plain records, of which
 * nobody reads more than energy and time. Sums live in registers. */
static inline __attribute__((always_inline)) void pass(fl_launching *x, uint64_t stop, const bool host,
                                                       const bool plain) {
    fl_gpu *g = x->g;
    const fl_lane *l = x->l;
    const fl_rec *restrict rec = l->s->rec;
    const uint32_t *restrict before = x->plan->before;
    const fl_row *restrict row = g->rates->row;
    int64_t *restrict class_ps = g->slot[g->slot_now].class_ps;
    int64_t *restrict ends = x->c->ends_ps;
    const uint64_t mask = x->c->ends_mask, queue = x->c->ends_queue;
    const uint32_t host_mul = x->c->host ? x->c->host[0].mul : FL_MUL_ONE;
    const int64_t until = x->until;
    int64_t dyn = 0, memory = 0, busy = 0, alu = 0, sms = 0, copy = 0, gated = 0, computed = 0;
    int64_t t = x->free_ps, at = x->host_ps, gate_at = g->gate_at_ps;
    uint64_t i = l->next, kernels = 0, syncs = 0;
    if (!host)
        t = later(t, at);
    for (; i < stop; i++) {
        int64_t begin = t, worked = 0, waited = at;
        uint32_t ns = 0;
        if (host) {
            ns = before[i];
            if (__builtin_expect(ns >= FL_LAUNCH_SYNC, 0)) {
                if (ns == FL_LAUNCH_OTHER)
                    break;
                const fl_launch_sync *s = &x->plan->sync[ns - FL_LAUNCH_SYNC];
                worked = scaled_ps(s->before_ns, host_mul);
                waited = later(at + worked, ends[(i - s->lag) & mask]);
                const int64_t after = scaled_ps(s->after_ns, host_mul);
                worked += after;
                waited += after;
            } else {
                worked = scaled_ps(ns, host_mul);
                waited += worked;
            }
            waited = later(waited, ends[(i - queue) & mask]);
            begin = later(t, waited);
        }
        fl_rec r = rec[i];
        uint32_t class_id = r.class_id;
        int64_t start, length;
        if (!plain && __builtin_expect(class_id == FL_REC_ESCAPE, 0)) {
            const fl_big *b = &l->s->big[r.work_ns];
            class_id = b->class_id;
            start = begin + b->gap_ns * FL_PS_PER_NS;
            length = fl_length_ps(b->work_ns, row[class_id].mul);
        } else {
            start = begin + r.gap_ns * FL_PS_PER_NS;
            length = scaled_ps(r.work_ns, row[class_id].mul);
        }
        const fl_row *k = &row[class_id];
        if (__builtin_expect(start + length > until, 0))
            break;
        t = start + length;
        ends[i & mask] = t;
        if (host) {
            at = waited;
            computed += worked;
            syncs += ns >= FL_LAUNCH_SYNC;
        }
        dyn += length * k->dyn_mw;
        memory += length * k->memory;
        busy += plain || k->resident ? length : 0;
        class_ps[class_id] += length;
        if (!plain) {
            kernels += k->resident == FL_RESIDENT_KERNEL;
            alu += length * k->alu;
            sms += length * k->sms;
            copy += k->resident ? 0 : length;
            if (start > gate_at)
                gated += start - gate_at;
            gate_at = g->gate_ps ? t + g->gate_ps : FL_TIME_NEVER;
            if (k->resident != FL_RESIDENT_KERNEL || g->records.on || l->in_parts)
                finish_other(x, class_id, k->resident, start, t);
        }
    }
    const uint64_t passed = i - l->next;
    g->window.dyn_fj += dyn;
    g->window.memory += memory;
    g->sums.busy_ps += busy;
    g->sums.kernels += plain ? passed : kernels;
    if (!plain) {
        if (g->profiled) {
            g->window.alu += alu;
            g->window.sms += sms;
            g->sums.copy_ps += copy;
        }
        g->slot[g->slot_now].gated_ps += gated;
        g->sums.energy_fj -= (fl_wide)gated * fl_gpu_gated_mw(g);
        g->gate_at_ps = gate_at;
    }
    if (host)
        host_stands(x, i, x->h->next + passed + syncs, at, computed);
    if (passed)
        x->free_ps = t;
    x->l->next = i;
}

/* Ops whose launches the plan knows, or that have been launched, up to the next mark. The last op, at which the stream
 * ends, is left to a step. */
static bool pass_ops(fl_launching *x) {
    fl_lane *l = x->l;
    const fl_stream *s = l->s;
    const bool host = l->next == l->launched;
    uint64_t stop = host ? s->count : l->launched;
    const uint64_t from = l->next, mark = l->marks < s->mark_count ? s->mark[l->marks] : s->count;
    stop = mark < stop ? mark : stop;
    stop = stop < s->count ? stop : s->count - 1;
    if (l->phase != FL_PHASE_FRESH || from >= stop || (host && !plan_holds(x, from)))
        return false;
    const bool plain = !s->big_count && !s->other && !x->g->profiled && !x->g->gate_ps && !x->g->records.on;
    if (host)
        plain ? pass(x, stop, true, true) : pass(x, stop, true, false);
    else
        plain ? pass(x, stop, false, true) : pass(x, stop, false, false);
    if (l->next > from && l->next == mark)
        l->mark_ps[l->marks++] = x->free_ps;
    return l->next > from;
}

/* The stream stands in an op until the boundary or beyond, and the host goes on alone: launches that the plan knows, as
 * long as they find room. */
static void pass_host(fl_launching *x) {
    const fl_lane *l = x->l;
    const uint32_t *restrict before = x->plan->before;
    const int64_t *restrict ends = x->c->ends_ps;
    const uint64_t mask = x->c->ends_mask, queue = x->c->ends_queue, from = l->launched;
    const uint32_t host_mul = x->c->host ? x->c->host[0].mul : FL_MUL_ONE;
    const uint64_t full = l->next + queue < l->s->count ? l->next + queue : l->s->count;
    int64_t at = x->host_ps, computed = 0;
    uint64_t i = from;
    if (i >= full || !plan_holds(x, i))
        return;
    for (; i < full && before[i] < FL_LAUNCH_SYNC; i++) {
        const int64_t worked = scaled_ps(before[i], host_mul);
        if (at + worked > x->until)
            break;
        at = later(at + worked, ends[(i - queue) & mask]);
        computed += worked;
    }
    host_stands(x, i, x->h->next + (i - from), at, computed);
}

int64_t fl_launches_advance(fl_course *c, int64_t until) {
    const int64_t now = c->gpu[0]->now_ps;
    fl_launching x = {.c = c,
                      .g = c->gpu[0],
                      .l = c->mine[0],
                      .h = &c->thread[0],
                      .plan = c->is->launches,
                      .until = until,
                      .free_ps = now,
                      .host_ps = now};
    fl_lane *l = x.l;
    do {
        while (pass_ops(&x))
            ;
    } while (lane_is_busy(l) ? step_lane(&x) : step_host(&x));
    do
        pass_host(&x);
    while (step_host(&x));
    const bool done = c->done == 2; /* the stream and its thread */
    const int64_t reached = done ? later(x.free_ps, x.host_ps) : until;
    if (l->phase == FL_PHASE_RUN) {
        const int64_t worked = fl_work_done(&l->p, reached);
        fl_gpu_charge(x.g, l->class_id, worked - l->p.charged_ps);
        l->p.charged_ps = worked;
    }
    return reached;
}
