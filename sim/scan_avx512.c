/* fl_scan_plain, eight ops at a time in AVX-512 registers. The sums are of integers, so their order does not matter. */
#include "sim/scan_inside.h"

#if FL_SCAN_X86
#include "sim/avx512.h"

#include <stddef.h>

typedef struct block { /* eight ops */
    __m512i work, gap; /* ns, in the lower half of each lane; `work` may have anything in the upper ones */
    uint32_t id[BLOCK];
} block;

/* Ops that end by `left`, of those that take so long one after the other. */
INLINE __mmask8 ending_by(__m512i each, int64_t left) {
    return _mm512_cmple_epi64_mask(running(each), _mm512_set1_epi64(left));
}

/* It has no branches, because escapes are unpredictable. False where an op needs more than 32 bits. */
INLINE bool load_escapes(const fl_stream *s, uint64_t i, __m512i rec, __mmask8 escape, block *b) {
    const __m512i lower = _mm512_set1_epi64(UINT32_MAX);
    const void *at[BLOCK];
    int64_t place[BLOCK] __attribute__((aligned(64)));
    __m512i work, gap;
    _mm512_store_si512(place, _mm512_maskz_and_epi64(escape, rec, lower));
#pragma GCC unroll 8
    for (int j = 0; j < BLOCK; j++) {
        const fl_big *big = &s->big[place[j]];
        const uint32_t here = s->rec[i + (uint64_t)j].class_id, there = big->class_id;
        b->id[j] = here == FL_REC_ESCAPE ? there : here;
        at[j] = big;
    }
    _Static_assert(offsetof(fl_big, work_ns) == 0 && offsetof(fl_big, gap_ns) == 8, "as transpose() reads them");
    transpose(at, &work, &gap);
    b->work = _mm512_mask_mov_epi64(b->work, escape, work);
    b->gap = _mm512_mask_mov_epi64(b->gap, escape, gap);
    return !_mm512_mask_cmpgt_epu64_mask(escape, _mm512_or_si512(work, gap), lower);
}

INLINE bool load(const fl_stream *s, uint64_t i, const bool escapes, block *b) {
    const __m512i rec = _mm512_loadu_si512(&s->rec[i]);
    b->work = rec;
    b->gap = _mm512_and_si512(_mm512_srli_epi64(rec, 32), _mm512_set1_epi64(UINT16_MAX));
    if (escapes) {
        const __m512i least = _mm512_set1_epi64((int64_t)((uint64_t)FL_REC_ESCAPE << 48));
        const __mmask8 escape = _mm512_cmpge_epu64_mask(rec, least);
        if (escape)
            return load_escapes(s, i, rec, escape, b);
    }
#pragma GCC unroll 8
    for (int j = 0; j < BLOCK; j++)
        b->id[j] = s->rec[i + (uint64_t)j].class_id;
    return true;
}

INLINE int64_t sweep(fl_gpu *restrict g, fl_lane *restrict l, int64_t t, int64_t until, uint64_t stop, uint32_t gap_mul,
                     const bool escapes, const bool other, const bool deep) {
    const fl_row *restrict row = g->rates->row;
    int64_t *restrict class_ps = g->slot[g->slot_now].class_ps;
    const __m512i gap_factor = _mm512_set1_epi64(gap_mul);
    __m512i dyn = _mm512_setzero_si512(), memory = dyn, busy = dyn, worked = dyn, alu = dyn, sms = dyn;
    uint64_t i = l->next, kernels = 0;
    bool met = false;
    while (i + BLOCK <= stop && !met) {
        block b;
        fl_scan_ahead(l->s->rec, i);
        if (!load(l->s, i, escapes, &b))
            break;
        const void *at[BLOCK];
#pragma GCC unroll 8
        for (int j = 0; j < BLOCK; j++)
            at[j] = &row[b.id[j]];
        __m512i mul_dyn, rest;
        transpose(at, &mul_dyn, &rest);
        __m512i length = scaled(b.work, mul_dyn);
        __m512i each = _mm512_add_epi64(length, scaled(b.gap, gap_factor));
        int64_t all = _mm512_reduce_add_epi64(each);
        __mmask8 taken = 0xff;
        if (__builtin_expect(all > until - t, 0)) {
            taken = ending_by(each, until - t);
            length = _mm512_maskz_mov_epi64(taken, length);
            all = _mm512_mask_reduce_add_epi64(taken, each);
            met = true;
        }
        t += all;
        dyn = _mm512_add_epi64(dyn, _mm512_mullo_epi64(length, _mm512_srai_epi64(mul_dyn, 32)));
        memory = _mm512_add_epi64(memory, _mm512_mullo_epi64(length, part_of(rest, 0)));
        worked = _mm512_add_epi64(worked, length);
        if (deep) {
            sms = _mm512_add_epi64(sms, _mm512_mullo_epi64(length, part_of(rest, 16)));
            alu = _mm512_add_epi64(alu, _mm512_mullo_epi64(length, part_of(rest, 32)));
        }
        if (other) {
            const __m512i resident = _mm512_srli_epi64(rest, 48);
            const __mmask8 kernel = _mm512_cmpeq_epi64_mask(resident, _mm512_set1_epi64(FL_RESIDENT_KERNEL));
            busy = _mm512_mask_add_epi64(busy, _mm512_test_epi64_mask(resident, resident), busy, length);
            kernels += (unsigned)__builtin_popcount(kernel & taken);
        }
        int64_t ps[BLOCK] __attribute__((aligned(64)));
        _mm512_store_si512(ps, length);
#pragma GCC unroll 8
        for (int j = 0; j < BLOCK; j++)
            class_ps[b.id[j]] += ps[j];
        i += (unsigned)__builtin_popcount(taken);
    }
    fl_scan_sums sum = {.dyn_fj = _mm512_reduce_add_epi64(dyn),
                        .memory = _mm512_reduce_add_epi64(memory),
                        .worked = _mm512_reduce_add_epi64(worked),
                        .alu = deep ? _mm512_reduce_add_epi64(alu) : 0,
                        .sms = deep ? _mm512_reduce_add_epi64(sms) : 0};
    sum.busy = other ? _mm512_reduce_add_epi64(busy) : sum.worked;
    sum.kernels = other ? kernels : i - l->next;
    fl_scan_add(g, l, i, &sum);
    return met ? t : fl_scan_plain(g, l, t, until, stop, gap_mul);
}

TARGET int64_t fl_scan_avx512(fl_gpu *g, fl_lane *l, int64_t t, int64_t until, uint64_t stop, uint32_t gap_mul) {
    if (l->s->other)
        return sweep(g, l, t, until, stop, gap_mul, true, true, true);
    if (l->s->big_count)
        return sweep(g, l, t, until, stop, gap_mul, true, false, true);
    return g->profiled ? sweep(g, l, t, until, stop, gap_mul, false, false, true)
                       : sweep(g, l, t, until, stop, gap_mul, false, false, false);
}
#endif
