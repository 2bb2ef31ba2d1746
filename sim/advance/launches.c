/* The recurrence of one stream with launches. Op i is launched by the thread at L and ended by the stream at E:
 *
 *     L[i] = max(L[i-1] + host[i], E[i - queue])        the host computes, and waits where the queue is full
 *     L[i] = max(L[i-1] + call[i], E[i - lag]) + host[i] ... where it synchronises in between
 *     E[i] = max(E[i-1], L[i]) + gap[i] + length[i]     the stream continues once the op is launched
 *
 * Nothing in it looks ahead, so one pass in the order of the ops gives every instant up to a boundary. At a boundary
 * the thread may be far ahead of the stream. What it launches by then, while the stream is inside an op, is a pass over
 * the host alone. Rare cases go through the steps of the event-by-event way, one at a time: ops that meet a boundary,
 * phases of kernels, several synchronisations in a row, and the ends. */
#include "sim/advance/inside.h"

#include "models/laws/laws.h"
#include "sim/advance/advance.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline int64_t scaled_ps(uint32_t ns, uint32_t mul) {
    return (int64_t)(((uint64_t)ns * mul + (1u << 15)) >> 16);
}

/* Those for this CPU; NULL where it has none, or where the path excludes them. */
static inline const fl_launches_loops *fl_launches_vector(const fl_launching *x) {
#if FL_SCAN_X86
    if (fl_path_may(x->g->path, FL_PATH_VECTOR) && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return &fl_launches_avx512;
#endif
    (void)x;
    return NULL;
}

#define RING_MAX 65536u /* ends of ops that a course remembers, at most: half a megabyte */

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

/* ---- one step of the stream, or of the host: any op, any item ---- */

/* Whether the stream has something to do before the next launch. */
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

/* When op i of the stream ended, if it has ended. Where the ring no longer holds it, it ended before the thread's last
 * item. */
static inline int64_t ended(const fl_launching *x, uint64_t i) {
    return i < x->l->next && x->l->next - i <= x->c->ends_mask ? x->c->ends_ps[i & x->c->ends_mask] : 0;
}

/* What the plan says about the time before the next launch. */
static inline uint32_t next_word(const fl_launching *x) {
    const uint64_t op = x->l->launched;
    return op < x->l->s->count ? x->plan->before[op] : FL_LAUNCH_OTHER;
}

/* The synchronisation that the plan has before the next launch, if it is still to come; else NULL. */
static inline const fl_launch_sync *next_sync(const fl_launching *x, uint32_t word) {
    if (word < FL_LAUNCH_SYNC || word == FL_LAUNCH_OTHER)
        return NULL;
    const fl_launch_sync *s = &x->plan->sync[word - FL_LAUNCH_SYNC];
    return s->item == (uint32_t)x->h->next ? s : NULL;
}

/* Starts the host time after an item that the thread did at `at`; another item must follow. The item is read only where
 * the plan does not give its length: items are far from each other in memory, and reading one at each boundary would
 * cost more than everything else there. */
static void compute(fl_launching *x, int64_t at) {
    fl_host_thread *h = x->h;
    const uint32_t word = next_word(x);
    const fl_launch_sync *sync = next_sync(x, word);
    h->load = 0;
    if (word == FL_LAUNCH_OTHER) {
        h->work_ns = h->t->item[h->next].host_ns;
        h->load = h->t->item[h->next].load;
    } else if (word < FL_LAUNCH_SYNC) {
        h->work_ns = word;
    } else {
        h->work_ns = sync ? sync->before_ns : x->plan->sync[word - FL_LAUNCH_SYNC].after_ns;
    }
    h->computing = true;
    x->host_ps = at;
    start_host(x->c, &h->p, h->load, h->work_ns, at);
}

/* The item before which the thread stands at t, of any kind. */
static bool step_item(fl_launching *x, int64_t t) {
    fl_host_thread *h = x->h;
    if (h->next < h->t->count) {
        const fl_item *item = &h->t->item[h->next];
        if (item->type == FL_ITEM_LAUNCH && x->l->launched >= x->c->queue)
            t = later(t, ended(x, x->l->launched - x->c->queue));
        for (uint32_t k = item->wait_first; k < item->wait_first + item->wait_count; k++)
            t = later(t, h->t->wait[k].done ? ended(x, h->t->wait[k].done - 1) : 0);
    }
    const bool moved = fl_streams_thread(x->c, h, t);
    x->host_ps = t;
    return moved;
}

/* False where the thread computes beyond the boundary, or waits for what ends beyond it, or has ended. */
static bool step_host(fl_launching *x) {
    fl_host_thread *h = x->h;
    fl_lane *l = x->l;
    int64_t t = x->host_ps;
    if (h->computing) {
        t = *h->p.event_ps;
        if (t > x->until)
            return false;
        end_host(x->c, &h->p, h->load, t);
        h->computing = false;
    } else if (h->next == h->t->count) {
        return false;
    }
    const uint32_t word = next_word(x);
    if (word == FL_LAUNCH_OTHER)
        return step_item(x, t);
    const fl_launch_sync *sync = next_sync(x, word);
    const uint64_t op = l->launched, on = op - (sync ? sync->lag : x->c->queue); /* the op that must have ended */
    x->host_ps = t;
    h->waiting = on < op && on >= l->next; /* beyond op: there is no such op */
    if (h->waiting) {
        *h->p.event_ps = FL_TIME_NEVER;
        return false;
    }
    l->launched += !sync;
    h->next++;
    compute(x, on < op ? later(t, ended(x, on)) : t);
    return true;
}

/* ---- the pass ---- */

/* Whether a pass may continue from the thread's current host time: not between a synchronisation and its launch. */
static bool plan_holds(const fl_launching *x) {
    const uint32_t word = next_word(x);
    return x->h->computing && word != FL_LAUNCH_OTHER && (word < FL_LAUNCH_SYNC || next_sync(x, word));
}

/* Completes the host time in progress. Only its end matters, not where it began or at which clock. */
static int64_t in_progress_ps(const fl_launching *x) {
    const uint32_t word = next_word(x);
    const fl_launch_sync *sync = next_sync(x, word);
    return scaled_ps(sync ? sync->before_ns : word, fl_host_mul(x));
}

/* Records that the thread ended the host time in progress and did `items` items, the last of them at `at`, with this
 * much computing between them. */
static void host_stands(fl_launching *x, uint64_t launched, size_t items, int64_t at, int64_t computed) {
    if (!items)
        return;
    end_host(x->c, &x->h->p, x->h->load, *x->h->p.event_ps);
    if (x->c->host) {
        x->c->sums.time_ps[0] += computed;
        x->c->sums.work_ps[0] += computed;
    }
    x->l->launched = launched;
    x->h->next += items;
    compute(x, at);
}

/* Handles an op of the pass that is not simply a kernel of a plain record: an escape, a copy, a marker or a phase, or a
 * run whose readers need more than energy and time. */
static void account_other(fl_launching *x, uint32_t class_id, int64_t length, int64_t end) {
    fl_gpu *g = x->g;
    fl_lane *l = x->l;
    const uint16_t resident = g->rates->row[class_id].resident;
    fl_gpu_charge(g, class_id, length);
    fl_gpu_wake(g, end - length);
    fl_gpu_rest(g, end);
    if (!l->in_parts)
        l->began_ps = end - length;
    if (resident) {
        g->sums.busy_ps += length;
        l->in_parts = resident == FL_RESIDENT_PART;
        g->sums.kernels += !l->in_parts;
        if (g->records.on && !l->in_parts) {
            l->class_id = class_id;
            fl_lane_record(l, end);
        }
    } else if (g->w->class[class_id].iteration) {
        g->sums.iterations++;
        l->iteration_ps[l->iterations++] = end;
    }
}

/* Passes ops i to stop - 1, as far as they end by the boundary and the plan knows their launches; returns the first op
 * that remains. `plain`: kernels of plain records, of which no one reads more than energy and time. Sums live in
 * registers; the number of instructions in this loop limits the speed. */
static inline __attribute__((always_inline)) uint64_t sweep(fl_launching *x, fl_chain *chain, uint64_t i, uint64_t stop,
                                                            const fl_launched how, const bool plain) {
    fl_gpu *g = x->g;
    const fl_stream *s = x->l->s;
    const fl_rec *restrict rec = s->rec;
    const fl_row *restrict row = g->rates->row;
    const uint32_t *restrict before = x->plan->before;
    int64_t *restrict class_ps = g->slot[g->slot_now].class_ps;
    int64_t *restrict ends = x->c->ends_ps;
    const uint64_t mask = x->c->ends_mask, queue = x->c->ends_queue, from = i;
    const uint32_t mul = fl_host_mul(x);
    const int64_t until = x->until;
    int64_t t = chain->free_ps, at = chain->at_ps, dyn = 0, memory = 0, busy = 0;
    for (; i < stop; i++) {
        const fl_rec r = rec[i];
        const uint32_t word = how == FL_LAUNCHED_BEFORE ? 0 : before[i];
        int64_t ready = at, waited = 0;
        if (how != FL_LAUNCHED_BEFORE) {
            if (__builtin_expect(word >= FL_LAUNCH_SYNC, 0)) {
                if (word == FL_LAUNCH_OTHER)
                    break;
                const fl_launch_sync *sync = &x->plan->sync[word - FL_LAUNCH_SYNC];
                const int64_t called = at + scaled_ps(sync->before_ns, mul);
                ready = later(called, ends[(i - sync->lag) & mask]);
                waited = ready - called;
                ready += scaled_ps(sync->after_ns, mul);
            } else {
                ready += scaled_ps(word, mul);
            }
        }
        if (how == FL_LAUNCHED_IN_TURN) {
            const int64_t room = ends[(i - queue) & mask];
            waited -= ready;
            ready = later(ready, room);
            waited += ready;
        }
        uint32_t class_id = r.class_id;
        int64_t length, gap = r.gap_ns * FL_PS_PER_NS;
        if (!plain && __builtin_expect(class_id == FL_REC_ESCAPE, 0)) {
            const fl_big *big = &s->big[fl_rec_index(&r)];
            class_id = big->class_id;
            gap = big->gap_ns * FL_PS_PER_NS;
            length = fl_length_ps(big->work_ns, row[class_id].mul);
        } else {
            length = scaled_ps(r.work_ns, row[class_id].mul);
        }
        const int64_t end = (how == FL_LAUNCHED_BEFORE ? t : later(t, ready)) + gap + length;
        if (__builtin_expect(end > until, 0)) {
            chain->over = true;
            break;
        }
        ends[i & mask] = t = end;
        at = ready;
        if (how == FL_LAUNCHED_IN_TURN || __builtin_expect(word >= FL_LAUNCH_SYNC, 0)) {
            chain->waited_ps += waited;
            chain->syncs += word >= FL_LAUNCH_SYNC;
        }
        if (!plain) {
            account_other(x, class_id, length, end);
            continue;
        }
        dyn += length * row[class_id].dyn_mw;
        memory += length * row[class_id].memory;
        busy += length;
        class_ps[class_id] += length;
    }
    g->window.dyn_fj += dyn;
    g->window.memory += memory;
    g->sums.busy_ps += busy;
    g->sums.kernels += plain ? i - from : 0;
    chain->free_ps = t;
    chain->at_ps = at;
    return i;
}

/* The same for kernels of plain records, eight at a time where the processor can. Up to eight of the remaining ones go
 * one by one, and then the vector form is tried again. */
static uint64_t sweep_kernels(fl_launching *x, fl_chain *chain, uint64_t i, uint64_t stop, fl_launched how) {
    const fl_launches_loops *const blocks = fl_launches_vector(x);
    for (uint64_t end = i; i == end && i < stop;) {
        i = blocks ? blocks->ops(x, chain, i, stop, how) : i;
        end = blocks && stop - i > FL_LAUNCHES_BLOCK ? i + FL_LAUNCHES_BLOCK : stop;
        i = how == FL_LAUNCHED_BEFORE   ? sweep(x, chain, i, end, FL_LAUNCHED_BEFORE, true)
            : how == FL_LAUNCHED_FREELY ? sweep(x, chain, i, end, FL_LAUNCHED_FREELY, true)
                                        : sweep(x, chain, i, end, FL_LAUNCHED_IN_TURN, true);
    }
    return i;
}

/* If the op that would fill the queue at the last of n launches has ended by now, all n find room. */
static inline bool finds_room(const fl_launching *x, const fl_chain *chain, uint64_t i, uint64_t n) {
    const fl_course *c = x->c;
    return n <= c->ends_queue && c->ends_ps[(i + n - 1 - c->ends_queue) & c->ends_mask] <= chain->at_ps;
}

/* Passes whole ops from the next one to `stop` while they end by the boundary: the launched ones and, where `known`,
 * those that the thread launches on the way. */
static inline __attribute__((always_inline)) void pass(fl_launching *x, uint64_t stop, const bool known,
                                                       const bool plain) {
    fl_lane *l = x->l;
    const uint64_t launched = l->launched, from = l->next, followed = launched < stop ? launched : stop;
    const uint64_t most = (x->c->ends_queue + 1) / 2; /* at once */
    fl_chain chain = {.free_ps = later(x->free_ps, x->host_ps)};
    uint64_t i = from, end = followed;
    if (from < followed)
        i = plain ? sweep_kernels(x, &chain, from, followed, FL_LAUNCHED_BEFORE)
                  : sweep(x, &chain, from, followed, FL_LAUNCHED_BEFORE, false);
    const int64_t in_progress = known ? in_progress_ps(x) : 0, began = known ? *x->h->p.event_ps - in_progress : 0;
    chain.at_ps = began;
    while (i == end && i < stop) {
        const uint64_t n = stop - i < most ? stop - i : most;
        end = i + n;
        if (plain && finds_room(x, &chain, i, n))
            i = sweep_kernels(x, &chain, i, end, FL_LAUNCHED_FREELY);
        else
            i = plain ? sweep_kernels(x, &chain, i, end, FL_LAUNCHED_IN_TURN)
                      : sweep(x, &chain, i, end, FL_LAUNCHED_IN_TURN, false);
    }
    l->next = i;
    x->over = chain.over;
    if (i > from)
        x->free_ps = chain.free_ps;
    if (i > launched)
        host_stands(x, i, i - launched + chain.syncs, chain.at_ps, chain.at_ps - began - chain.waited_ps - in_progress);
}

/* Passes ops up to the next mark. The last op, at which the stream ends, remains for a single step. False where nothing
 * moved. */
static bool pass_ops(fl_launching *x) {
    fl_lane *l = x->l;
    const fl_stream *s = l->s;
    if (l->phase != FL_PHASE_FRESH || x->over)
        return false;
    const bool known = plan_holds(x);
    const uint64_t from = l->next, mark = l->marks < s->mark_count ? s->mark[l->marks] : s->count;
    uint64_t stop = known ? s->count : l->launched;
    stop = mark < stop ? mark : stop;
    stop = stop < s->count ? stop : s->count - 1;
    if (from >= stop)
        return false;
    if (!s->big_count && !s->other && !x->g->profiled && !x->g->gate_ps && !x->g->records.on)
        pass(x, stop, known, true);
    else
        pass(x, stop, known, false);
    if (l->next > from && l->next == mark)
        l->mark_ps[l->marks++] = x->free_ps;
    return l->next > from;
}

/* For a stream that is inside an op until the boundary or beyond: the host continues alone, through launches that the
 * plan knows, as long as the queue has room. */
static void pass_host(fl_launching *x) {
    const fl_lane *l = x->l;
    const uint32_t *restrict before = x->plan->before;
    const int64_t *restrict ends = x->c->ends_ps;
    const uint64_t mask = x->c->ends_mask, queue = x->c->ends_queue, from = l->launched;
    const uint64_t full = l->next + queue < l->s->count ? l->next + queue : l->s->count;
    if (from >= full || !plan_holds(x) || before[from] >= FL_LAUNCH_SYNC)
        return;
    const uint32_t mul = fl_host_mul(x);
    const int64_t in_progress = in_progress_ps(x), began = *x->h->p.event_ps - in_progress;
    const fl_launches_loops *const blocks = fl_launches_vector(x);
    fl_chain chain = {.at_ps = began};
    uint64_t i = blocks ? blocks->host(x, &chain, from, full) : from;
    int64_t at = chain.at_ps, waited = chain.waited_ps;
    for (; i < full && before[i] < FL_LAUNCH_SYNC; i++) {
        const int64_t called = at + scaled_ps(before[i], mul);
        if (called > x->until)
            break;
        at = later(called, ends[(i - queue) & mask]);
        waited += at - called;
    }
    host_stands(x, i, i - from, at, at - began - waited - in_progress);
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
