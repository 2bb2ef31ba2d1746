/* The recurrence of launches.c, eight kernels at a time in AVX-512 registers.
 *
 * With H[j] the host time before ops 0 to j of a block, and S[j] the gaps and lengths of ops before op j, both
 * recurrences are running maxima, which take three steps of a vector instead of eight of a scalar each:
 *
 *     L[j] = H[j] + max(at, room[0] - H[0], ..., room[j] - H[j])
 *     E[j] = S[j + 1] + max(t, L[0] - S[0], ..., L[j] - S[j])
 */
#include "sim/advance/launches_inside.h"

#if FL_SCAN_X86
#include "sim/advance/avx512.h"
#include "sim/advance/scan_inside.h"

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
