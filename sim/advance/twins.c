/* Twins in AVX-512 registers of two loops: launches eight at a time (launches.c), and the walk over the ops behind a
 * row of prefix sums (prefix.c). The same bits as the plain loops. */
#include "sim/advance/inside.h"

#include "models/laws/laws.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/workload/workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The recurrence of launches.c, eight kernels at a time in AVX-512 registers.
 *
 * With H[j] the host time before ops 0 to j of a block, and S[j] the gaps and lengths of ops before op j, both
 * recurrences are running maxima, which take three steps of a vector instead of eight of a scalar each:
 *
 *     L[j] = H[j] + max(at, room[0] - H[0], ..., room[j] - H[j])
 *     E[j] = S[j + 1] + max(t, L[0] - S[0], ..., L[j] - S[j])
 */

#if FL_SCAN_X86
#include "sim/advance/inside.h"
#include "sim/advance/inside.h"

_Static_assert((int)BLOCK == (int)FL_LAUNCHES_BLOCK, "one block is one register");

/* Place j becomes the maximum of `least` and places 0 to j. */
INLINE __m512i running_max(__m512i v, int64_t least) {
    const __m512i first = _mm512_set1_epi64(least);
    v = _mm512_max_epi64(v, first);
    v = _mm512_max_epi64(v, _mm512_alignr_epi64(v, first, 7));
    v = _mm512_max_epi64(v, _mm512_alignr_epi64(v, first, 6));
    return _mm512_max_epi64(v, _mm512_alignr_epi64(v, first, 4));
}

INLINE int64_t last_of(__m512i v) {
    return _mm_cvtsi128_si64(_mm256_castsi256_si128(_mm512_castsi512_si256(_mm512_alignr_epi64(v, v, 7))));
}

INLINE __m512i places(uint64_t from, uint64_t mask) {
    const __m512i each = _mm512_add_epi64(_mm512_set1_epi64((int64_t)from), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
    return _mm512_and_si512(each, _mm512_set1_epi64((int64_t)mask));
}

INLINE __m512i ring(const int64_t *ends, uint64_t from, uint64_t mask) {
    return (from & mask) + BLOCK <= mask + 1 ? _mm512_loadu_si512(&ends[from & mask])
                                             : _mm512_i64gather_epi64(places(from, mask), (const void *)ends, 8);
}

INLINE uint64_t sweep(fl_launching *x, fl_chain *chain, uint64_t i, uint64_t stop, const fl_launched how) {
    fl_gpu *g = x->g;
    const fl_rec *restrict rec = x->l->s->rec;
    const fl_row *restrict row = g->rates->row;
    const uint32_t *restrict before = x->plan->before;
    int64_t *restrict class_ps = g->slot[g->slot_now].class_ps;
    int64_t *ends = x->c->ends_ps;
    const uint64_t mask = x->c->ends_mask, queue = x->c->ends_queue, from = i;
    const __m512i host_mul = _mm512_set1_epi64(fl_host_mul(x)), zero = _mm512_setzero_si512();
    int64_t t = chain->free_ps, at = chain->at_ps, waited = 0;
    __m512i dyn = zero, memory = zero, busy = zero;
    for (; i + BLOCK <= stop; i += BLOCK) {
        fl_scan_ahead(rec, i);
        const void *of[BLOCK];
#pragma GCC unroll 8
        for (int j = 0; j < BLOCK; j++)
            of[j] = &row[rec[i + (uint64_t)j].class_id];
        __m512i mul_dyn, rest;
        transpose(of, &mul_dyn, &rest);
        const __m512i r = _mm512_loadu_si512(&rec[i]);
        const __m512i length = scaled(work_of(r), mul_dyn);
        const __m512i each = _mm512_add_epi64(length, _mm512_mul_epu32(gap_of(r), _mm512_set1_epi64(FL_PS_PER_NS)));
        const __m512i sum = running(each);
        __m512i end = _mm512_add_epi64(sum, _mm512_set1_epi64(t));
        int64_t next_at = at, computed = 0;
        if (how != FL_LAUNCHED_BEFORE) {
            const __m256i word = _mm256_loadu_si256((const void *)&before[i]);
            if (__builtin_expect(_mm256_movepi32_mask(word) != 0, 0))
                break; /* FL_LAUNCH_SYNC or FL_LAUNCH_OTHER */
            const __m512i host = running(scaled(_mm512_cvtepu32_epi64(word), host_mul));
            __m512i launch = _mm512_add_epi64(host, _mm512_set1_epi64(at));
            if (how == FL_LAUNCHED_IN_TURN)
                launch = _mm512_add_epi64(host, running_max(_mm512_sub_epi64(ring(ends, i - queue, mask), host), at));
            const __m512i earlier = _mm512_sub_epi64(sum, each);
            end = _mm512_add_epi64(sum, running_max(_mm512_sub_epi64(launch, earlier), t));
            next_at = last_of(launch);
            computed = last_of(host);
        }
        const int64_t last = last_of(end);
        if (__builtin_expect(last > x->until, 0))
            break;
        if ((i & mask) + BLOCK <= mask + 1)
            _mm512_storeu_si512(&ends[i & mask], end);
        else
            _mm512_i64scatter_epi64(ends, places(i, mask), end, 8);
        waited += next_at - at - computed;
        t = last;
        at = next_at;
        dyn = _mm512_add_epi64(dyn, _mm512_mullo_epi64(length, _mm512_srai_epi64(mul_dyn, 32)));
        memory = _mm512_add_epi64(memory, _mm512_mullo_epi64(length, part_of(rest, 0)));
        busy = _mm512_add_epi64(busy, length);
        int64_t ps[BLOCK] __attribute__((aligned(64)));
        _mm512_store_si512(ps, length);
#pragma GCC unroll 8
        for (int j = 0; j < BLOCK; j++)
            class_ps[rec[i + (uint64_t)j].class_id] += ps[j];
    }
    g->window.dyn_fj += _mm512_reduce_add_epi64(dyn);
    g->window.memory += _mm512_reduce_add_epi64(memory);
    g->sums.busy_ps += _mm512_reduce_add_epi64(busy);
    g->sums.kernels += i - from;
    chain->free_ps = t;
    chain->at_ps = at;
    chain->waited_ps += waited;
    return i;
}

TARGET static uint64_t ops(fl_launching *x, fl_chain *chain, uint64_t i, uint64_t stop, fl_launched how) {
    if (how == FL_LAUNCHED_BEFORE)
        return sweep(x, chain, i, stop, FL_LAUNCHED_BEFORE);
    if (how == FL_LAUNCHED_FREELY)
        return sweep(x, chain, i, stop, FL_LAUNCHED_FREELY);
    /* an op that waits for another one of its block needs an end that is not in the ring yet */
    return x->c->ends_queue < BLOCK ? i : sweep(x, chain, i, stop, FL_LAUNCHED_IN_TURN);
}

/* Only the last launch of a block matters to the next one. So all but one addition and one maximum of a block can be
 * done before the block before it is. */
TARGET static uint64_t host(const fl_launching *x, fl_chain *chain, uint64_t i, uint64_t stop) {
    const uint32_t *restrict before = x->plan->before;
    const int64_t *restrict ends = x->c->ends_ps;
    const uint64_t mask = x->c->ends_mask, queue = x->c->ends_queue;
    const __m512i mul = _mm512_set1_epi64(fl_host_mul(x));
    int64_t at = chain->at_ps, waited = 0;
    for (; i + BLOCK <= stop; i += BLOCK) {
        const __m256i word = _mm256_loadu_si256((const void *)&before[i]);
        if (_mm256_movepi32_mask(word))
            break; /* FL_LAUNCH_SYNC or FL_LAUNCH_OTHER */
        const __m512i worked = running(scaled(_mm512_cvtepu32_epi64(word), mul));
        const int64_t all = last_of(worked);
        const int64_t last =
            all + later(at, _mm512_reduce_max_epi64(_mm512_sub_epi64(ring(ends, i - queue, mask), worked)));
        if (last > x->until)
            break;
        waited += last - at - all;
        at = last;
    }
    chain->at_ps = at;
    chain->waited_ps += waited;
    return i;
}

const fl_launches_loops fl_launches_avx512 = {ops, host};
#endif

/* fl_prefix_walk_one, eight ops at a time in AVX-512 registers. The sums are of integers modulo 2^64, so their order
 * does not matter. */

#if FL_SCAN_X86
#include "sim/advance/inside.h"

#include <stddef.h>

/* Power of the SMs in the lower half of each lane, of memory in the upper one. */
INLINE __m512i parts_of(const fl_row_parts *parts, const uint32_t id[BLOCK]) {
    __m128i pair[BLOCK / 2];
    _Static_assert(offsetof(fl_row_parts, memory_mw) == 4, "both in one load");
#pragma GCC unroll 4
    for (int j = 0; j < BLOCK / 2; j++)
        pair[j] = _mm_unpacklo_epi64(_mm_loadl_epi64((const void *)&parts[id[2 * j]]),
                                     _mm_loadl_epi64((const void *)&parts[id[2 * j + 1]]));
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(pair[0]), pair[1], 1),
                  high = _mm256_inserti128_si256(_mm256_castsi128_si256(pair[2]), pair[3], 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* Of each of eight vectors the sum of its lanes, in one vector: what eight times sum_of() would take three times as
 * long for. */
INLINE __m512i sums_of(const __m512i each[BLOCK]) {
    __m512i two[4], four[2];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++)
        two[j] = _mm512_add_epi64(_mm512_unpacklo_epi64(each[2 * j], each[2 * j + 1]),
                                  _mm512_unpackhi_epi64(each[2 * j], each[2 * j + 1]));
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++)
        four[j] = _mm512_add_epi64(_mm512_shuffle_i64x2(two[2 * j], two[2 * j + 1], 0x88),
                                   _mm512_shuffle_i64x2(two[2 * j], two[2 * j + 1], 0xdd));
    return _mm512_add_epi64(_mm512_shuffle_i64x2(four[0], four[1], 0x88), _mm512_shuffle_i64x2(four[0], four[1], 0xdd));
}

INLINE __m512i lower_of(__m512i x) { return _mm512_srai_epi64(_mm512_slli_epi64(x, 32), 32); }

INLINE bool walk(fl_prefix_place *at, uint64_t stop, uint64_t t_ps, const fl_prefix_depth depth) {
    const fl_prefix *p = at->table;
    const fl_row *row = p->rates->row;
    const fl_row_parts *parts = p->rates->parts;
    const __m512i gap_factor = _mm512_set1_epi64(FL_MUL_ONE);
    const __m512i least = _mm512_set1_epi64((int64_t)((uint64_t)FL_REC_ESCAPE << 48));
    const __m512i zero = _mm512_setzero_si512();
    __m512i time = zero, busy = zero, dyn = zero, memory = zero, alu = zero, sms = zero, sm = zero, mem = zero;
    uint64_t i = at->op, t = at->sums.t_ps;
    bool met = false;
    while (i + BLOCK <= stop && !met) {
        const fl_rec *from = &p->s->rec[i];
        const __m512i rec = _mm512_loadu_si512(from);
        if (_mm512_cmpge_epu64_mask(rec, least))
            break;
        uint32_t id[BLOCK];
        const void *rows[BLOCK];
#pragma GCC unroll 8
        for (int j = 0; j < BLOCK; j++) {
            id[j] = from[j].class_id;
            rows[j] = &row[id[j]];
        }
        __m512i mul_dyn, rest;
        transpose(rows, &mul_dyn, &rest);
        __m512i length = scaled(work_of(rec), mul_dyn),
                each = _mm512_add_epi64(length, scaled(gap_of(rec), gap_factor));
        const uint64_t all = sum_of(each);
        unsigned ended = BLOCK;
        if (all > t_ps - t) {
            const __m512i ends = running(each), left = _mm512_set1_epi64((int64_t)(t_ps - t));
            const __mmask8 taken = _mm512_cmple_epu64_mask(ends, left);
            length = _mm512_maskz_mov_epi64(taken, length);
            each = _mm512_maskz_mov_epi64(taken, each);
            ended = (unsigned)__builtin_popcount(taken);
            met = true;
        }
        t += all; /* of no use once an op did not end */
        i += ended;
        time = _mm512_add_epi64(time, each);
        busy = _mm512_add_epi64(busy, length);
        if (depth == FL_PREFIX_BUSY)
            continue;
        const __m512i power = parts_of(parts, id);
        dyn = _mm512_add_epi64(dyn, _mm512_mullo_epi64(length, _mm512_srai_epi64(mul_dyn, 32)));
        memory = _mm512_add_epi64(memory, _mm512_mullo_epi64(length, part_of(rest, 0)));
        sm = _mm512_add_epi64(sm, _mm512_mullo_epi64(length, lower_of(power)));
        mem = _mm512_add_epi64(mem, _mm512_mullo_epi64(length, _mm512_srai_epi64(power, 32)));
        if (depth == FL_PREFIX_PROFILE) {
            sms = _mm512_add_epi64(sms, _mm512_mullo_epi64(length, part_of(rest, 16)));
            alu = _mm512_add_epi64(alu, _mm512_mullo_epi64(length, part_of(rest, 32)));
        }
    }
    _Static_assert(sizeof at->sums == sizeof zero, "the sums are one vector, in the order of their members");
    const __m512i all = sums_of((const __m512i[BLOCK]){time, busy, dyn, memory, alu, sms, sm, mem});
    at->op = i;
    _mm512_storeu_si512(&at->sums, _mm512_add_epi64(_mm512_loadu_si512(&at->sums), all));
    return met;
}

TARGET bool fl_prefix_walk_eight(fl_prefix_place *at, uint64_t stop, uint64_t t_ps, fl_prefix_depth depth) {
    if (depth == FL_PREFIX_BUSY)
        return walk(at, stop, t_ps, FL_PREFIX_BUSY);
    return depth == FL_PREFIX_ENERGY ? walk(at, stop, t_ps, FL_PREFIX_ENERGY) : walk(at, stop, t_ps, FL_PREFIX_PROFILE);
}
#endif
