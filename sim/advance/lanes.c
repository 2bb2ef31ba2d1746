/* Streams that share a GPU, eight lanes at a time in AVX-512 registers. The same bits as streams.c, function by
 * function. */
#include "sim/advance/inside.h"

#include "models/laws/laws.h"
#include "sim/advance/advance.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/workload/workload.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __x86_64__
#include <immintrin.h>

static inline void fl_lanes_look_ahead(const fl_course *c, const fl_row *row, fl_place *p, uint64_t i) {
    if (i >= p->s->count)
        return;
    int64_t gap_ns, work_ns;
    fl_workload_op(p->s, i, &gap_ns, &work_ns, &p->then_class);
    p->then_gap = fl_length_ps(gap_ns, c->host ? c->host[host_load(c, p->then_class)].mul : FL_MUL_ONE);
    p->then_length = fl_length_ps(work_ns, row[p->then_class].mul);
}

/* Moves lanes into vector registers and back: plain C, outside the loop. */

/* The state of lane i of an island of one GPU, with the op after the one in progress. */
static void fl_lanes_read(const fl_course *c, uint32_t i, fl_place *p, fl_cells *x) {
    const fl_lane *l = c->mine[i];
    const fl_row *row = c->gpu[0]->rates->row;
    const bool runs = l->phase == FL_PHASE_RUN, gap = l->phase == FL_PHASE_GAP;
    *p = (fl_place){.s = l->s, .next = l->next, .class_id = l->class_id, .in_parts = l->in_parts, .running = runs};
    p->stop = l->marks < l->s->mark_count ? l->s->mark[l->marks] : l->s->count;
    p->began = l->began_ps;
    p->start = l->p.start_ps;
    p->length = l->length_ps;
    p->host_time = gap ? c->event_ps[i] - l->p.start_ps : 0;
    p->host_work = gap ? l->p.left_ps - l->p.charged_ps : 0;
    p->then_length = gap ? fl_length_ps(l->length_ps, row[l->class_id].mul) : 0;
    if (runs)
        fl_lanes_look_ahead(c, row, p, p->next + 1);
    x->event[i] = c->event_ps[i];
    x->left[i] = runs ? l->p.left_ps : 0;
    x->since[i] = runs ? l->p.since_ps : 0;
    x->charged[i] = runs ? l->p.charged_ps : 0;
    x->rate[i] = runs ? l->p.rate : FL_SHARE_ONE;
    x->sms[i] = runs ? l->sms : 0;
    x->memory[i] = runs ? l->memory : 0;
    x->dyn[i] = runs ? l->dyn_mw : 0;
}

/* Writes the state back where the general way expects it. */
static void fl_lanes_write(const fl_course *c, uint32_t i, const fl_place *p, const fl_cells *x) {
    fl_lane *l = c->mine[i];
    if (p->running) {
        l->p.left_ps = x->left[i];
        l->p.since_ps = x->since[i];
        l->p.charged_ps = x->charged[i];
        l->p.rate = (uint32_t)x->rate[i];
        c->event_ps[i] = x->event[i];
    }
    if (!p->moved)
        return;
    l->next = p->next;
    l->class_id = p->class_id;
    l->in_parts = p->in_parts;
    l->began_ps = p->began;
    l->length_ps = p->length;
    l->phase = p->running ? FL_PHASE_RUN : FL_PHASE_GAP;
    l->p.start_ps = p->start;
    if (p->running) {
        l->sms = (uint32_t)x->sms[i];
        l->memory = (uint32_t)x->memory[i];
        l->dyn_mw = (int32_t)x->dyn[i];
        return;
    }
    l->p = (fl_work){.left_ps = p->length,
                     .since_ps = p->start,
                     .start_ps = p->start,
                     .event_ps = l->p.event_ps,
                     .rate = FL_SHARE_ONE};
    c->event_ps[i] = x->event[i];
    int64_t gap_ns; /* its work in ns until the kernel starts */
    fl_workload_op(l->s, l->next, &gap_ns, &l->length_ps, &l->class_id);
}

/* Several streams of one GPU, scarce or not, with eight lanes to a vector register (AVX-512). Its plain twin, which
 * defines the results, is the general way: streams.c, with the shares of models/laws/row.c. The cost there is that each
 * event changes every rate; here one instruction rescales eight lanes. The divisions use doubles, which are exact below
 * 2^36 ps of work (see fl_work_ends). Longer ops, and the last op of a stream, are left to the plain twin. */

#define LANES_TARGET __attribute__((target("avx512f,avx512dq,avx512vl,bmi2,popcnt")))
#define LANES_INLINE static inline __attribute__((always_inline)) LANES_TARGET

enum { WIDTH = 8, VECTORS_MAX = FL_SHARES_MAX / WIDTH };
#define LEFT_MAX ((INT64_C(1) << 36) - 1)

typedef struct lanes { /* 8 to a vector; of a lane that does not run an op, only the event counts */
    __m512i event[VECTORS_MAX], left[VECTORS_MAX], since[VECTORS_MAX], charged[VECTORS_MAX], rate[VECTORS_MAX];
    __m512i sms[VECTORS_MAX], memory[VECTORS_MAX], dyn[VECTORS_MAX];
    __mmask8 run[VECTORS_MAX];
} lanes;

typedef struct sums { /* of the GPU, in registers */
    int64_t sms, memory, dyn_now, peak;
    uint64_t kernels;
    uint32_t active, resident;
    bool scarce, touched;
} sums;

bool fl_streams_lanes_here(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

/* ---- shares: as fill_level, ratio_of and cut_to_bandwidth of models/laws/row.c, which see ---- */

LANES_INLINE uint32_t fill_level(const __m512i *demand, const __mmask8 *run, uint32_t count, uint32_t capacity,
                                 const uint32_t vectors) {
    uint32_t level = capacity / count, met = 0;
    for (;;) {
        uint32_t met_sum = 0, met_count = 0;
        for (uint32_t v = 0; v < vectors; v++) {
            const __mmask8 m = _mm512_mask_cmple_epi64_mask(run[v], demand[v], _mm512_set1_epi64(level));
            met_count += (uint32_t)__builtin_popcount(m);
            met_sum += (uint32_t)_mm512_mask_reduce_add_epi64(m, demand[v]);
        }
        if (met_count == met || met_count == count)
            return level;
        met = met_count;
        level = (capacity - met_sum) / (count - met_count);
    }
}

LANES_INLINE __m512i ratio_of(uint32_t part, __m512i whole) {
    const __m512d q = _mm512_div_pd(_mm512_set1_pd((double)part * FL_SHARE_ONE), _mm512_cvtepi64_pd(whole));
    return _mm512_min_epi64(_mm512_cvttpd_epi64(q), _mm512_set1_epi64(FL_SHARE_ONE));
}

LANES_INLINE void cut_to_bandwidth(const fl_course *c, const lanes *a, uint32_t count, __m512i *rate,
                                   const uint32_t vectors) {
    __m512i left[VECTORS_MAX], all = _mm512_setzero_si512();
    for (uint32_t v = 0; v < vectors; v++) {
        const __m512i asked = _mm512_mul_epu32(a->memory[v], rate[v]);
        left[v] = _mm512_srli_epi64(_mm512_add_epi64(asked, _mm512_set1_epi64(FL_SHARE_ONE / 2)), 16);
        all = _mm512_mask_add_epi64(all, a->run[v], all, left[v]);
    }
    const uint64_t sum = (uint64_t)_mm512_reduce_add_epi64(all);
    if (sum <= c->capacity)
        return;
    const uint32_t level =
        fill_level(left, a->run, count, fl_shares_capacity(sum, c->capacity, c->interference), vectors);
    for (uint32_t v = 0; v < vectors; v++) {
        __m512i less = _mm512_min_epi64(ratio_of(level, a->memory[v]), rate[v]);
        less = _mm512_max_epi64(less, _mm512_set1_epi64(1));
        const __mmask8 cut = _mm512_mask_cmpgt_epi64_mask(a->run[v], left[v], _mm512_set1_epi64(level));
        rate[v] = _mm512_mask_mov_epi64(rate[v], cut, less);
    }
}

LANES_INLINE void share_out(const fl_course *c, const lanes *a, const sums *s, __m512i *rate, const uint32_t vectors) {
    const uint32_t count = s->active;
    const __m512i one = _mm512_set1_epi64(FL_SHARE_ONE);
    for (uint32_t v = 0; v < vectors; v++)
        rate[v] = one;
    if (!s->scarce || !count)
        return;
    if (s->sms > FL_SHARE_ONE) {
        const uint32_t level = fill_level(a->sms, a->run, count, FL_SHARE_ONE, vectors);
        for (uint32_t v = 0; v < vectors; v++) {
            const __mmask8 cut = _mm512_mask_cmpgt_epi64_mask(a->run[v], a->sms[v], _mm512_set1_epi64(level));
            rate[v] = _mm512_mask_mov_epi64(one, cut, ratio_of(level, a->sms[v]));
        }
    }
    if (s->memory > c->capacity)
        cut_to_bandwidth(c, a, count, rate, vectors);
}

/* set_rate and dyn_at_rate of streams.c for every lane that runs. */
LANES_INLINE void set_rates(lanes *a, sums *s, const __m512i *rate, int64_t t, const uint32_t vectors) {
    const __m512i now = _mm512_set1_epi64(t);
    __m512i dyn = _mm512_setzero_si512();
    for (uint32_t v = 0; v < vectors; v++) {
        const __mmask8 new = _mm512_mask_cmpneq_epi64_mask(a->run[v], rate[v], a->rate[v]);
        const __m512i dt = _mm512_sub_epi64(now, a->since[v]);
        const __m512i done = _mm512_min_epi64(_mm512_srli_epi64(_mm512_mullo_epi64(dt, a->rate[v]), 16), a->left[v]);
        const __m512i left = _mm512_mask_sub_epi64(a->left[v], new, a->left[v], done);
        const __m512i up =
            _mm512_add_epi64(_mm512_slli_epi64(left, 16), _mm512_sub_epi64(rate[v], _mm512_set1_epi64(1)));
        const __m512d q = _mm512_div_pd(_mm512_cvtepi64_pd(up), _mm512_cvtepi64_pd(rate[v]));
        a->left[v] = left;
        a->charged[v] = _mm512_mask_sub_epi64(a->charged[v], new, a->charged[v], done);
        a->since[v] = _mm512_mask_mov_epi64(a->since[v], new, now);
        a->rate[v] = _mm512_mask_mov_epi64(a->rate[v], new, rate[v]);
        a->event[v] = _mm512_mask_add_epi64(a->event[v], new, now, _mm512_cvttpd_epi64(q));
        const __m512i drawn = _mm512_srai_epi64(_mm512_mul_epi32(a->dyn[v], a->rate[v]), 16);
        dyn = _mm512_mask_add_epi64(dyn, a->run[v], dyn, drawn);
    }
    s->dyn_now = _mm512_reduce_add_epi64(dyn);
}

/* Call it before time passes: as set_shares of streams.c. False where an op is too long for doubles. */
LANES_INLINE bool set_shares(const fl_course *c, lanes *a, sums *s, int64_t t, const uint32_t vectors) {
    __mmask8 lengthy = 0;
    for (uint32_t v = 0; v < vectors; v++)
        lengthy |= _mm512_mask_cmpgt_epi64_mask(a->run[v], a->left[v], _mm512_set1_epi64(LEFT_MAX));
    if (__builtin_expect(lengthy, 0))
        return false;
    const bool was = s->scarce;
    s->scarce = s->sms > FL_SHARE_ONE || s->memory > c->capacity;
    s->touched = false;
    if (!s->scarce && !was)
        return true;
    __m512i rate[VECTORS_MAX];
    share_out(c, a, s, rate, vectors);
    set_rates(a, s, rate, t, vectors);
    return true;
}

/* ---- events ---- */

LANES_INLINE int64_t lane_of(__m512i v, __mmask8 bit) {
    return _mm_cvtsi128_si64(_mm512_castsi512_si128(_mm512_maskz_compress_epi64(bit, v)));
}

static void pass_mark(fl_lane *l, fl_place *p, int64_t t) {
    if (l->marks < l->s->mark_count && p->next == l->s->mark[l->marks])
        l->mark_ps[l->marks++] = t;
    p->stop = l->marks < l->s->mark_count ? l->s->mark[l->marks] : l->s->count;
}

/* As finish_kernel of streams.c, of an op that is not the last of its stream. */
LANES_INLINE void finish(fl_course *c, fl_lane *l, fl_place *p, lanes *a, sums *s, uint32_t v, __mmask8 bit,
                         int64_t t) {
    fl_gpu *g = c->gpu[0];
    const fl_row *k = &g->rates->row[p->class_id];
    const int64_t ps = lane_of(_mm512_sub_epi64(a->left[v], a->charged[v]), bit);
    fl_gpu_charge(g, p->class_id, ps);
    s->sms -= (int64_t)k->sms * 2;
    s->memory -= (int64_t)k->memory * 2;
    s->dyn_now -= ((int64_t)k->dyn_mw * lane_of(a->rate[v], bit)) >> 16;
    s->touched = true;
    a->run[v] = (__mmask8)(a->run[v] & ~bit);
    if (!--s->active)
        fl_gpu_rest(g, t);
    if (k->resident) {
        if (!--s->resident)
            g->sums.busy_ps += t - g->busy_since_ps;
        p->in_parts = k->resident == FL_RESIDENT_PART;
        s->kernels += !p->in_parts;
    } else if (c->w->class[p->class_id].iteration) {
        g->sums.iterations++;
        l->iteration_ps[l->iterations++] = t;
    }
    if (__builtin_expect(++p->next == p->stop, 0))
        pass_mark(l, p, t);
    p->class_id = p->then_class;
    p->running = false;
}

/* As start_kernel of streams.c. */
LANES_INLINE void start(fl_course *c, fl_place *p, lanes *a, sums *s, uint32_t v, __mmask8 bit, int64_t t) {
    fl_gpu *g = c->gpu[0];
    const fl_row *row = g->rates->row, *k = &row[p->class_id];
    p->running = p->moved = true;
    p->start = t;
    p->length = p->then_length;
    if (!p->in_parts)
        p->began = t;
    a->left[v] = _mm512_mask_set1_epi64(a->left[v], bit, p->length);
    a->since[v] = _mm512_mask_set1_epi64(a->since[v], bit, t);
    a->charged[v] = _mm512_mask_set1_epi64(a->charged[v], bit, 0);
    a->rate[v] = _mm512_mask_set1_epi64(a->rate[v], bit, FL_SHARE_ONE);
    a->event[v] = _mm512_mask_set1_epi64(a->event[v], bit, t + p->length);
    a->sms[v] = _mm512_mask_set1_epi64(a->sms[v], bit, (int64_t)k->sms * 2);
    a->memory[v] = _mm512_mask_set1_epi64(a->memory[v], bit, (int64_t)k->memory * 2);
    a->dyn[v] = _mm512_mask_set1_epi64(a->dyn[v], bit, k->dyn_mw);
    a->run[v] |= bit;
    s->sms += (int64_t)k->sms * 2;
    s->memory += (int64_t)k->memory * 2;
    s->dyn_now += k->dyn_mw;
    s->touched = true;
    if (!s->active++)
        fl_gpu_wake(g, t);
    if (k->resident && !s->resident++)
        g->busy_since_ps = t;
    fl_lanes_look_ahead(c, row, p, p->next + 1);
}

/* The next event of a lane, which is due at t. False where it belongs to the plain twin: the last op of a stream. */
LANES_INLINE bool pass_event(fl_course *c, fl_place *p, lanes *a, sums *s, uint32_t who, uint32_t v, int64_t t) {
    const __mmask8 bit = (__mmask8)(1u << who % WIDTH);
    if (p->running) {
        if (__builtin_expect(p->next + 1 == p->s->count, 0))
            return false;
        finish(c, c->mine[who], p, a, s, v, bit, t);
        if (p->then_gap) {
            p->moved = true;
            p->start = t;
            p->length = p->host_time = p->host_work = p->then_gap;
            a->event[v] = _mm512_mask_set1_epi64(a->event[v], bit, t + p->then_gap);
            return true;
        }
    } else if (c->host) {
        const uint32_t load = host_load(c, p->class_id);
        c->sums.time_ps[load] += p->host_time;
        c->sums.work_ps[load] += p->host_work;
    }
    start(c, p, a, s, v, bit, t);
    return true;
}

/* ---- there and back ---- */

LANES_INLINE void fill(lanes *a, const fl_cells *x, uint32_t vectors, const fl_place *p) {
    for (uint32_t v = 0; v < vectors; v++) {
        a->event[v] = _mm512_loadu_si512(&x->event[v * WIDTH]);
        a->left[v] = _mm512_loadu_si512(&x->left[v * WIDTH]);
        a->since[v] = _mm512_loadu_si512(&x->since[v * WIDTH]);
        a->charged[v] = _mm512_loadu_si512(&x->charged[v * WIDTH]);
        a->rate[v] = _mm512_loadu_si512(&x->rate[v * WIDTH]);
        a->sms[v] = _mm512_loadu_si512(&x->sms[v * WIDTH]);
        a->memory[v] = _mm512_loadu_si512(&x->memory[v * WIDTH]);
        a->dyn[v] = _mm512_loadu_si512(&x->dyn[v * WIDTH]);
        a->run[v] = 0;
        for (uint32_t i = 0; i < WIDTH; i++)
            a->run[v] |= (__mmask8)(p[v * WIDTH + i].running << i);
    }
}

LANES_INLINE void spill(const lanes *a, fl_cells *x, uint32_t vectors) {
    for (uint32_t v = 0; v < vectors; v++) {
        _mm512_storeu_si512(&x->event[v * WIDTH], a->event[v]);
        _mm512_storeu_si512(&x->left[v * WIDTH], a->left[v]);
        _mm512_storeu_si512(&x->since[v * WIDTH], a->since[v]);
        _mm512_storeu_si512(&x->charged[v * WIDTH], a->charged[v]);
        _mm512_storeu_si512(&x->rate[v * WIDTH], a->rate[v]);
        _mm512_storeu_si512(&x->sms[v * WIDTH], a->sms[v]);
        _mm512_storeu_si512(&x->memory[v * WIDTH], a->memory[v]);
        _mm512_storeu_si512(&x->dyn[v * WIDTH], a->dyn[v]);
    }
}

/* ---- the loop ---- */

LANES_INLINE int64_t earliest(const lanes *a, const uint32_t vectors) {
    __m512i least = a->event[0];
    for (uint32_t v = 1; v < vectors; v++)
        least = _mm512_min_epi64(least, a->event[v]);
    return _mm512_reduce_min_epi64(least);
}

/* All events of the instant t. False where one is for the plain twin. */
LANES_INLINE bool pass_instant(fl_course *c, fl_place *p, lanes *a, sums *s, int64_t t, uint64_t *passed,
                               const uint32_t vectors) {
    for (uint32_t v = 0; v < vectors; v++)
        for (__mmask8 due; (due = _mm512_cmpeq_epi64_mask(a->event[v], _mm512_set1_epi64(t))); ++*passed) {
            const uint32_t who = v * WIDTH + (uint32_t)__builtin_ctz(due);
            if (!pass_event(c, &p[who], a, s, who, v, t))
                return false;
        }
    return true;
}

LANES_INLINE int64_t run_lanes(fl_course *c, fl_place *p, fl_cells *x, sums *io, int64_t t, int64_t until,
                               uint64_t calm, uint64_t *passed, const uint32_t vectors) {
    const int64_t base = fl_gpu_base_mw(c->gpu[0]);
    lanes a;
    sums s = *io;
    uint64_t calm_now = 0, events = 0;
    fill(&a, x, vectors, p);
    for (;;) { /* what is due at the first instant may still be there */
        if (!pass_instant(c, p, &a, &s, t, &events, vectors))
            break;
        if (s.touched && !set_shares(c, &a, &s, t, vectors))
            break;
        calm_now = s.scarce ? 0 : calm_now + 1;
        const int64_t next = earliest(&a, vectors);
        if (next > until || calm_now > calm)
            break;
        const int64_t power = s.active ? base + s.dyn_now : s.peak;
        s.peak = power > s.peak ? power : s.peak;
        t = next;
    }
    spill(&a, x, vectors);
    *io = s;
    *passed = events;
    return t;
}

static __attribute__((noinline)) LANES_TARGET int64_t run_eight(fl_course *c, fl_place *p, fl_cells *x, sums *s,
                                                                int64_t t, int64_t until, uint64_t calm,
                                                                uint64_t *passed) {
    return run_lanes(c, p, x, s, t, until, calm, passed, 1);
}

static __attribute__((noinline)) LANES_TARGET int64_t run_many(fl_course *c, fl_place *p, fl_cells *x, sums *s,
                                                               int64_t t, int64_t until, uint64_t calm,
                                                               uint64_t *passed) {
    return run_lanes(c, p, x, s, t, until, calm, passed, (c->is->stream_count + WIDTH - 1) / WIDTH);
}

int64_t fl_streams_lanes(fl_course *c, int64_t t, int64_t until, uint64_t calm, uint64_t *passed) {
    fl_gpu *g = c->gpu[0];
    const uint32_t count = c->is->stream_count, room = (count + WIDTH - 1) / WIDTH * WIDTH;
    fl_place p[FL_SHARES_MAX];
    fl_cells x;
    for (uint32_t i = 0; i < count; i++)
        fl_lanes_read(c, i, &p[i], &x);
    for (uint32_t i = count; i < room; i++) { /* lanes that never have an event */
        p[i] = (fl_place){.running = false};
        x.event[i] = FL_TIME_NEVER;
        x.left[i] = x.since[i] = x.charged[i] = x.sms[i] = x.memory[i] = x.dyn[i] = 0;
        x.rate[i] = FL_SHARE_ONE;
    }
    sums s = {.sms = g->demand_sms,
              .memory = g->demand_memory,
              .dyn_now = g->dyn_now_mw,
              .peak = g->peak_mw,
              .active = g->active,
              .resident = g->resident,
              .scarce = g->scarce,
              .touched = g->touched};
    t = (count <= WIDTH ? run_eight : run_many)(c, p, &x, &s, t, until, calm, passed);
    for (uint32_t i = 0; i < count; i++)
        fl_lanes_write(c, i, &p[i], &x);
    g->sums.kernels += s.kernels;
    g->demand_sms = s.sms;
    g->demand_memory = s.memory;
    g->dyn_now_mw = s.dyn_now;
    g->peak_mw = s.peak;
    g->active = s.active;
    g->resident = s.resident;
    g->scarce = s.scarce;
    g->touched = s.touched;
    g->peak_due = true;
    return t;
}

#else

bool fl_streams_lanes_here(void) { return false; }

int64_t fl_streams_lanes(fl_course *c, int64_t t, int64_t until, uint64_t calm, uint64_t *passed) {
    (void)c, (void)until, (void)calm;
    *passed = 0;
    return t;
}

#endif
