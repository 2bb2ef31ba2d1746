/* fl_scan_plain, eight ops at a time in AVX-512 registers. The sums are of integers, so their order does not matter. */
#include "sim/advance/inside.h"

#include "models/laws/laws.h"
#include "sim/gpu/gpu.h"
#include "sim/workload/workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if FL_SCAN_X86
#include "sim/advance/inside.h"

#include <stddef.h>

typedef struct block { /* eight ops */
    __m512i work, gap; /* ns, below 2^32 */
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
    _mm512_store_si512(place, _mm512_maskz_srli_epi64(escape, _mm512_slli_epi64(rec, 16), 16));
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
    b->work = work_of(rec);
    b->gap = gap_of(rec);
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

INLINE int64_t added(__m512i x) {
    const __m256i four = _mm256_add_epi64(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
    return _mm_cvtsi128_si64(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two)));
}
typedef struct sums {
    __m512i dyn, memory, busy, worked, alu, sms;
    uint64_t kernels;
} sums;

/* Adds the ops of a block that were taken; the others have length 0. */
INLINE void add(sums *sum, int64_t *restrict class_ps, const block *b, __m512i length, __m512i mul_dyn, __m512i rest,
                __mmask8 taken, const bool other, const bool deep) {
    sum->dyn = _mm512_add_epi64(sum->dyn, _mm512_mullo_epi64(length, _mm512_srai_epi64(mul_dyn, 32)));
    sum->memory = _mm512_add_epi64(sum->memory, _mm512_mullo_epi64(length, part_of(rest, 0)));
    sum->worked = _mm512_add_epi64(sum->worked, length);
    if (deep) {
        sum->sms = _mm512_add_epi64(sum->sms, _mm512_mullo_epi64(length, part_of(rest, 16)));
        sum->alu = _mm512_add_epi64(sum->alu, _mm512_mullo_epi64(length, part_of(rest, 32)));
    }
    if (other) {
        const __m512i resident = _mm512_srli_epi64(rest, 48);
        const __mmask8 kernel = _mm512_cmpeq_epi64_mask(resident, _mm512_set1_epi64(FL_RESIDENT_KERNEL));
        sum->busy = _mm512_mask_add_epi64(sum->busy, _mm512_test_epi64_mask(resident, resident), sum->busy, length);
        sum->kernels += (unsigned)__builtin_popcount(kernel & taken);
    }
    int64_t ps[BLOCK] __attribute__((aligned(64)));
    _mm512_store_si512(ps, length);
#pragma GCC unroll 8
    for (int j = 0; j < BLOCK; j++)
        class_ps[b->id[j]] += ps[j];
}

INLINE int64_t sweep(fl_gpu *restrict g, fl_lane *restrict l, int64_t t, int64_t until, uint64_t stop, uint32_t gap_mul,
                     const bool escapes, const bool other, const bool deep) {
    const fl_row *restrict row = g->rates->row;
    int64_t *restrict class_ps = g->slot[g->slot_now].class_ps;
    const __m512i gap_factor = _mm512_set1_epi64(gap_mul);
    const __m512i zero = _mm512_setzero_si512();
    sums v = {zero, zero, zero, zero, zero, zero, 0};
    int64_t left = until - t;
    uint64_t i = l->next;
    bool met = false;
    while (i + BLOCK <= stop) {
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
        const __m512i length = scaled(b.work, mul_dyn);
        const __m512i each = _mm512_add_epi64(length, scaled(b.gap, gap_factor));
        const int64_t all = added(each);
        if (__builtin_expect(all > left, 0)) {
            const __mmask8 taken = ending_by(each, left);
            left -= _mm512_mask_reduce_add_epi64(taken, each);
            add(&v, class_ps, &b, _mm512_maskz_mov_epi64(taken, length), mul_dyn, rest, taken, other, deep);
            i += (unsigned)__builtin_popcount(taken);
            met = true;
            break;
        }
        left -= all;
        add(&v, class_ps, &b, length, mul_dyn, rest, 0xff, other, deep);
        i += BLOCK;
    }
    fl_scan_sums sum = {.dyn_fj = (int64_t)sum_of(v.dyn),
                        .memory = (int64_t)sum_of(v.memory),
                        .worked = (int64_t)sum_of(v.worked),
                        .alu = deep ? (int64_t)sum_of(v.alu) : 0,
                        .sms = deep ? (int64_t)sum_of(v.sms) : 0};
    sum.busy = other ? (int64_t)sum_of(v.busy) : sum.worked;
    sum.kernels = other ? v.kernels : i - l->next;
    fl_scan_add(g, l, i, &sum);
    t = until - left;
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

/* ---- the vector loop that this CPU has ---- */

fl_scan_ops *fl_scan_vector(void) {
#if FL_SCAN_X86
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt"))
        return fl_scan_avx512;
    if (__builtin_cpu_supports("avx2"))
        return fl_scan_avx2;
#endif
    return NULL;
}
