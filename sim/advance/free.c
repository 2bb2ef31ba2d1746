/* Streams of one GPU while nothing is scarce: each lane writes its next events down, and a winner tree merges them. The
 * same bits as streams.c, which continues where something is scarce. */
#include "sim/advance/inside.h"

#include "models/laws/laws.h"
#include "sim/advance/advance.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/workload/workload.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The start of an island, and the cases in which it never ends: a GPU that fell off the bus, or waits for what cannot
 * come. */

void fl_streams_begin(fl_course *c) {
    for (uint32_t i = 0; i < c->is->stream_count; i++)
        c->active += c->mine[i]->phase != FL_PHASE_DONE && !c->mine[i]->s->launched;
    for (uint32_t i = 0; i < c->is->thread_count; i++) {
        fl_host_thread *h = &c->thread[i];
        if (!h->t->count) {
            c->done++;
            continue;
        }
        c->active += !h->t->server;
        h->work_ns = h->t->item[0].host_ns;
        h->load = h->t->item[0].load;
        h->computing = true;
        start_host(c, &h->p, h->load, h->work_ns, 0);
    }
}

void fl_streams_lose(fl_course *c, fl_gpu *g) {
    for (uint32_t i = 0; i < c->is->stream_count; i++) {
        fl_lane *l = c->mine[i];
        if (l->gpu != g)
            continue;
        l->spinning = false;
        if (l->phase != FL_PHASE_RUN)
            continue;
        l->phase = FL_PHASE_LOST;
        *l->p.event_ps = FL_TIME_NEVER;
    }
    g->demand_sms = g->demand_memory = g->dyn_now_mw = 0;
    g->active = g->resident = 0;
}

const char *fl_streams_stuck(const fl_course *c, char *buf, size_t size) {
    for (uint32_t i = 0; i < c->is->stream_count + c->is->thread_count; i++)
        if (c->event_ps[i] != FL_TIME_NEVER)
            return NULL;
    for (uint32_t i = 0; i < c->is->stream_count; i++)
        if (c->mine[i]->phase != FL_PHASE_DONE) {
            snprintf(buf, size, "stream %d of GPU %u waits for ever before op %llu", c->mine[i]->s->id,
                     c->mine[i]->gpu->index, (unsigned long long)c->mine[i]->next);
            return buf;
        }
    for (uint32_t i = 0; i < c->is->thread_count; i++)
        if (c->thread[i].next < c->thread[i].t->count) {
            snprintf(buf, size, "host thread %d waits for ever", c->thread[i].t->id);
            return buf;
        }
    return NULL;
}

/* Several streams of one GPU while nothing is scarce. Every kernel then runs at its full rate, so the course of a
 * stream is known ahead without a look at the others. Each lane writes its next events down, a batch at a time, and a
 * winner tree merges them. The GPU's power and the total demand are two sums that every event changes; lanes are
 * charged batch by batch. Nothing here rounds. The last op of a stream is left to the general way (streams.c), which
 * defines the results. */

enum {
    OPS = 15, /* ops that a lane knows ahead: refilling is cheap in comparison, and eight lanes fit a level-1 cache */
    PLACE_BITS = 5,
    EVENTS = 1 << PLACE_BITS, /* of a batch: the end of a gap, an end and a start of each op, and what ends the batch */
    LANE_BITS = 8,
    KEY_BITS = PLACE_BITS + LANE_BITS,
    COUNT_BITS = 10 /* counts of kernels up to FL_SHARES_MAX */
};
#define INSTANT_MAX                                                                                                    \
    (INT64_C(1) << 50) /* later than any boundary; an instant and the place of its event fit 64 bits                   \
                        */
#define SCARCE UINT64_C(0x8000000080000000)

_Static_assert(2 * OPS + 2 <= EVENTS && FL_SHARES_MAX <= 1 << LANE_BITS && FL_SHARES_MAX < 1 << COUNT_BITS,
               "lanes and counts fit their bits");

/* Instants are relative to the start of the run of events. */
typedef struct event {
    uint64_t key; /* the event's instant, lane and place in the batch: the smallest key is the next event; 0 after the
                     last event of a full batch */
    uint64_t demand, load;      /* change of the GPU's sums */
    uint32_t finished, started; /* ops of the batch that have finished and started once the event has passed */
} event;

typedef struct op {
    int64_t length, gap, start; /* length at these clocks, alone; gap before it; start after that gap */
    uint32_t class_id;
} op;

typedef struct batch { /* the next events of a lane */
    op op[OPS + 1];    /* op[0] is in progress where it begins */
    uint64_t first;    /* op[0] in its stream */
    int64_t charged;   /* of op[0] */
    bool untouched;    /* no event has passed yet, so the lane itself holds its state */
} batch;

struct fl_ahead {
    batch *batch;  /* by lane; behind the events */
    event event[]; /* EVENTS of each lane */
};

typedef struct run {
    fl_course *c;
    fl_gpu *g;
    const fl_row *row;
    batch *batch;
    event *event;
    int64_t base;     /* instant to which others are relative */
    int64_t limit;    /* events up to here may pass */
    uint32_t gap_mul; /* of every gap, unless `loads`: the host time then differs by class */
    bool loads;
    uint32_t size;                    /* leaves of the tree */
    uint64_t tree[2 * FL_SHARES_MAX]; /* node i holds the smaller of 2i and 2i + 1; leaves start at `size` */
} run;

fl_ahead *fl_ahead_new(uint32_t lanes) {
    fl_ahead *a = calloc(1, sizeof *a + lanes * (EVENTS * sizeof *a->event + sizeof *a->batch));
    if (a)
        a->batch = (batch *)(a->event + (size_t)lanes * EVENTS);
    return a;
}

/* ---- the sums: SMs and bandwidth asked for; power, kernels resident and ops running ---- */

static inline uint64_t demand_of(const fl_row *k) { return ((uint64_t)k->sms * 2) << 32 | (uint64_t)k->memory * 2; }

static inline uint64_t load_of(const fl_row *k) {
    return ((uint64_t)(int64_t)k->dyn_mw << 2 * COUNT_BITS) + ((uint64_t)(k->resident != 0) << COUNT_BITS) + 1;
}

static inline uint32_t running_in(uint64_t load) { return load & ((1u << COUNT_BITS) - 1); }
static inline uint32_t resident_in(uint64_t load) { return load >> COUNT_BITS & ((1u << COUNT_BITS) - 1); }
static inline int64_t power_in(uint64_t load) { return (int64_t)load >> 2 * COUNT_BITS; }

/* ---- events of a lane, written down ahead of time ---- */

static inline uint64_t key_of(int64_t at, uint32_t place) {
    return (uint64_t)(at < INSTANT_MAX ? at : INSTANT_MAX) << KEY_BITS | place;
}

static inline uint32_t place_in(uint64_t key) { return key & ((1u << KEY_BITS) - 1); }

/* Op i of a stream, which begins at t. */
static inline void read_op(const run *r, const fl_stream *s, uint64_t i, int64_t t, op *o) {
    const fl_rec rec = s->rec[i];
    o->class_id = rec.class_id;
    if (__builtin_expect(rec.class_id == FL_REC_ESCAPE || r->loads, 0)) {
        int64_t gap_ns, work_ns;
        fl_workload_op(s, i, &gap_ns, &work_ns, &o->class_id);
        o->gap = fl_length_ps(gap_ns, r->c->host ? r->c->host[host_load(r->c, o->class_id)].mul : FL_MUL_ONE);
        o->length = fl_length_ps(work_ns, r->row[o->class_id].mul);
    } else { /* as fl_length_ps, but in 64 bits */
        o->gap = (int64_t)(((uint64_t)rec.gap_ns * r->gap_mul + (1u << 15)) >> 16);
        o->length = (int64_t)(((uint64_t)rec.work_ns * r->row[rec.class_id].mul + (1u << 15)) >> 16);
    }
    o->start = t + o->gap;
}

/* Writes down the events after op[0], which ends at `end`, from `place` on. Returns the key of the first. */
static uint64_t look_ahead(run *r, uint32_t who, uint32_t place, int64_t end) {
    batch *b = &r->batch[who];
    const fl_stream *s = r->c->mine[who]->s;
    const uint32_t from = who << PLACE_BITS;
    const int64_t limit = r->limit;
    event *const first = &r->event[from];
    uint64_t demand = demand_of(&r->row[b->op[0].class_id]), load = load_of(&r->row[b->op[0].class_id]);
    uint32_t i = 0;
    for (; i < OPS && end <= limit; i++) {
        if (b->first + i + 1 == s->count) {
            r->limit = end - 1;
            break;
        }
        op *x = &b->op[i + 1];
        read_op(r, s, b->first + i + 1, end, x);
        const fl_row *k = &r->row[x->class_id];
        uint64_t more_demand = 0 - demand, more_load = 0 - load;
        if (x->gap) {
            first[place] = (event){key_of(end, from + place), more_demand, more_load, i + 1, i + 1};
            place++;
            more_demand = more_load = 0;
        }
        demand = demand_of(k);
        load = load_of(k);
        first[place] = (event){key_of(x->start, from + place), more_demand + demand, more_load + load, i + 1, i + 2};
        place++;
        end = x->start + x->length;
    }
    first[place].key = i < OPS ? key_of(end, from + place) : 0; /* it never passes; or: look again */
    return first->key;
}

/* The first batch of a lane, from its present state. */
static uint64_t open_lane(run *r, uint32_t who) {
    batch *b = &r->batch[who];
    const fl_lane *l = r->c->mine[who];
    const fl_row *k = &r->row[l->class_id];
    const uint32_t place = who << PLACE_BITS;
    const int64_t next = r->c->event_ps[who] - r->base;
    b->first = l->next;
    b->untouched = true;
    b->charged = 0;
    b->op[0] = (op){.class_id = l->class_id, .start = next};
    if (l->phase == FL_PHASE_RUN) {
        b->charged = l->p.charged_ps;
        b->op[0].length = l->p.left_ps;
        b->op[0].start -= l->p.left_ps;
        return look_ahead(r, who, 0, next);
    }
    if (l->phase != FL_PHASE_GAP) /* it has ended */
        return r->event[place].key = key_of(INSTANT_MAX, place);
    r->event[place] = (event){key_of(next, place), demand_of(k), load_of(k), 0, 1};
    b->op[0].length = fl_length_ps(l->length_ps, k->mul);
    return look_ahead(r, who, 1, next + b->op[0].length);
}

/* ---- what has passed ---- */

/* The host computes in the gaps. Usually all of its time is of one load: a sum in a register, since one in memory would
 * make each op wait for the one before. */
static void settle_gaps(run *r, const batch *b, uint32_t started) {
    fl_host_sums *sums = &r->c->sums;
    if (r->loads) {
        for (uint32_t i = 1; i < started; i++) {
            const uint32_t load = host_load(r->c, b->op[i].class_id);
            sums->time_ps[load] += b->op[i].gap;
            sums->work_ps[load] += b->op[i].gap;
        }
        return;
    }
    int64_t gaps = 0;
    for (uint32_t i = 1; i < started; i++)
        gaps += b->op[i].gap;
    sums->time_ps[0] += gaps;
    sums->work_ps[0] += gaps;
}

/* The ops that have finished, and since when the kernel in progress runs. `other`: not all of them are kernels; `deep`:
 * somebody reads the profile. */
static inline __attribute__((always_inline)) void settle_ops(run *r, fl_lane *l, const batch *b, uint32_t finished,
                                                             uint32_t started, const bool other, const bool deep) {
    fl_gpu *g = r->g;
    int64_t *class_ps = g->slot[g->slot_now].class_ps;
    int64_t dyn = 0, memory = 0, alu = 0, sms = 0, copy = 0, charged = b->charged;
    uint64_t kernels = 0;
    for (uint32_t i = 0; i < finished; i++) {
        const op *o = &b->op[i];
        const fl_row *k = &r->row[o->class_id];
        const int64_t ps = o->length - charged;
        charged = 0;
        dyn += ps * k->dyn_mw;
        memory += ps * k->memory;
        if (deep) {
            alu += ps * k->alu;
            sms += ps * k->sms;
            copy += k->resident ? 0 : ps;
        }
        class_ps[o->class_id] += ps;
        kernels += !other || k->resident == FL_RESIDENT_KERNEL;
        if (!other || k->resident) {
            l->in_parts = other && k->resident == FL_RESIDENT_PART;
        } else if (g->w->class[o->class_id].iteration) {
            g->sums.iterations++;
            l->iteration_ps[l->iterations++] = r->base + o->start + o->length;
        }
        if (!l->in_parts && i + 1 < started)
            l->began_ps = r->base + o[1].start;
    }
    g->window.dyn_fj += dyn;
    g->window.memory += memory;
    g->window.alu += alu;
    g->window.sms += sms;
    g->sums.copy_ps += copy;
    g->sums.kernels += kernels;
}

/* Charges the ops of a batch that have finished, and the gaps of those that have started. */
static void settle(run *r, fl_lane *l, batch *b, uint32_t finished, uint32_t started) {
    fl_course *c = r->c;
    if (b->untouched && l->phase == FL_PHASE_GAP) {
        if (c->host)
            end_host(c, &l->p, c->w->class[l->class_id].host, r->base + b->op[0].start);
        if (!l->in_parts)
            l->began_ps = r->base + b->op[0].start;
    }
    if (c->host)
        settle_gaps(r, b, started);
    if (l->s->other || r->g->profiled)
        settle_ops(r, l, b, finished, started, true, r->g->profiled);
    else
        settle_ops(r, l, b, finished, started, false, false);
    for (; l->marks < l->s->mark_count && l->s->mark[l->marks] <= b->first + finished; l->marks++) {
        const op *o = &b->op[l->s->mark[l->marks] - b->first - 1];
        l->mark_ps[l->marks] = r->base + o->start + o->length;
    }
    b->untouched = false;
}

/* Call it when all events of a batch have passed, up to the start of its last op. Returns the key of the next event. */
static __attribute__((noinline)) uint64_t next_batch(run *r, uint32_t who) {
    batch *b = &r->batch[who];
    settle(r, r->c->mine[who], b, OPS, OPS + 1);
    b->first += OPS;
    for (uint32_t i = OPS; i <= 2 * OPS; i += 8) /* what its next batch reads: between two the others read theirs */
        __builtin_prefetch(&r->c->mine[who]->s->rec[b->first + i]);
    b->op[0] = b->op[OPS];
    b->charged = 0;
    return look_ahead(r, who, 0, b->op[0].start + b->op[0].length);
}

/* Writes a lane's state back where the general way expects it. `next`: its first event that has not passed. */
static void close_lane(run *r, uint32_t who, uint32_t next) {
    batch *b = &r->batch[who];
    fl_lane *l = r->c->mine[who];
    const bool moved = next > who << PLACE_BITS;
    if (b->untouched && !moved)
        return;
    const event *e = moved ? &r->event[next - 1] : &(event){.finished = 0, .started = 1};
    settle(r, l, b, e->finished, e->started);
    const op *o = &b->op[e->finished];
    const fl_row *k = &r->row[o->class_id];
    const bool runs = e->started > e->finished;
    l->next = b->first + e->finished;
    l->class_id = o->class_id;
    l->phase = runs ? FL_PHASE_RUN : FL_PHASE_GAP;
    l->p.left_ps = runs ? o->length : o->gap;
    l->p.start_ps = l->p.since_ps = r->base + (runs ? o->start : o->start - o->gap);
    l->p.charged_ps = 0;
    l->p.rate = FL_SHARE_ONE;
    *l->p.event_ps = l->p.since_ps + l->p.left_ps;
    if (runs) {
        l->length_ps = o->length;
        l->sms = (uint32_t)k->sms * 2;
        l->memory = (uint32_t)k->memory * 2;
        l->dyn_mw = k->dyn_mw;
    } else { /* its work in ns until the kernel starts */
        int64_t gap_ns;
        fl_workload_op(l->s, l->next, &gap_ns, &l->length_ps, &l->class_id);
    }
}

/* ---- merging ---- */

static void plant(run *r, uint32_t lanes) {
    r->size = 2;
    while (r->size < lanes)
        r->size *= 2;
    for (uint32_t i = 0; i < r->size; i++)
        r->tree[r->size + i] = i < lanes ? open_lane(r, i) : UINT64_MAX;
    for (uint32_t i = r->size - 1; i; i--)
        r->tree[i] = r->tree[2 * i] < r->tree[2 * i + 1] ? r->tree[2 * i] : r->tree[2 * i + 1];
}

static inline uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* The leaf of a lane has a new key; returns the smallest key of all. */
static inline __attribute__((always_inline)) uint64_t replay(run *r, const uint32_t size, uint32_t who, uint64_t key) {
    uint32_t i = size + who;
    r->tree[i] = key;
    if (size == 8) { /* the next event waits for this: two comparisons after one another, not three */
        const uint64_t pair = r->tree[i / 2 ^ 1], half = r->tree[i / 4 ^ 1], rest = smaller(pair, half);
        key = smaller(r->tree[i ^ 1], key);
        r->tree[i / 2] = key;
        r->tree[i / 4] = smaller(pair, key);
        return smaller(rest, key);
    }
    for (uint32_t nodes = size; nodes > 1; nodes /= 2, i /= 2) {
        key = smaller(r->tree[i ^ 1], key);
        r->tree[i / 2] = key;
    }
    return key;
}

/* Passes events up to the limit. It stops earlier where something is scarce when time would pass, and where an idle GPU
 * may be power-gated. Returns how many it passed. */
static inline __attribute__((always_inline)) uint64_t merge_by(run *r, const uint32_t size, uint64_t *demand_now,
                                                               uint64_t *load_now, int64_t *t_now) {
    fl_gpu *g = r->g;
    const uint64_t room =
        (UINT64_C(0x7fffffff) - FL_SHARE_ONE) << 32 | (UINT64_C(0x7fffffff) - r->c->capacity); /* beyond: SCARCE */
    const bool gates = g->gate_ps != 0;
    uint64_t demand = *demand_now, load = *load_now, key = r->tree[1], passed = 0;
    int64_t t = 0, busy = 0, peak = INT64_MIN;
    for (;; passed++) {
        const int64_t next = (int64_t)(key >> KEY_BITS);
        if (next > r->limit)
            break;
        if (next > t) {
            if (__builtin_expect(((demand + room) & SCARCE) || (gates && !running_in(load)), 0))
                break;
            busy += resident_in(load) ? next - t : 0;
            const int64_t power = running_in(load) ? power_in(load) : INT64_MIN;
            peak = power > peak ? power : peak;
            t = next;
        }
        const uint32_t who = place_in(key) >> PLACE_BITS;
        const event *e = &r->event[place_in(key)];
        demand += e->demand;
        load += e->load;
        key = e[1].key;
        if (__builtin_expect(!key, 0))
            key = next_batch(r, who);
        key = replay(r, size, who, key);
    }
    g->sums.busy_ps += busy;
    if (peak != INT64_MIN && fl_gpu_base_mw(g) + peak > g->peak_mw)
        g->peak_mw = fl_gpu_base_mw(g) + peak;
    *demand_now = demand;
    *load_now = load;
    *t_now = t;
    return passed;
}

/* A path through the tree of eight streams, of which there are often so many, needs no loop. */
static uint64_t merge(run *r, uint64_t *demand_now, uint64_t *load_now, int64_t *t_now) {
    return r->size == 8 ? merge_by(r, 8, demand_now, load_now, t_now)
                        : merge_by(r, r->size, demand_now, load_now, t_now);
}

int64_t fl_streams_free(fl_course *c, int64_t t, int64_t until, uint64_t *passed) {
    fl_gpu *g = c->gpu[0];
    run r;
    r.c = c;
    r.g = g;
    r.row = g->rates->row;
    r.base = t;
    r.limit = until - t;
    r.loads = c->host && c->w->host_load_count;
    r.gap_mul = c->host ? c->host[0].mul : FL_MUL_ONE;
    r.batch = c->ahead->batch;
    r.event = c->ahead->event;
    plant(&r, c->is->stream_count);
    uint64_t demand = (uint64_t)g->demand_sms << 32 | (uint64_t)g->demand_memory;
    uint64_t load = ((uint64_t)g->dyn_now_mw << 2 * COUNT_BITS) + ((uint64_t)g->resident << COUNT_BITS) + g->active;
    if (g->resident)
        g->sums.busy_ps += t - g->busy_since_ps;
    g->busy_since_ps = t;
    int64_t reached = 0;
    *passed = merge(&r, &demand, &load, &reached);
    for (uint32_t i = 0; i < c->is->stream_count; i++)
        close_lane(&r, i, place_in(r.tree[r.size + i]));
    t += reached;
    g->busy_since_ps = t;
    g->demand_sms = (int64_t)(demand >> 32);
    g->demand_memory = (int64_t)(demand & UINT32_MAX);
    g->dyn_now_mw = power_in(load);
    g->active = running_in(load);
    g->resident = resident_in(load);
    g->touched |= *passed > 0;
    if (!g->active)
        fl_gpu_rest(g, t);
    return t;
}
