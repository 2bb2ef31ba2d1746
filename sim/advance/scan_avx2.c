/* fl_scan_plain, eight ops at a time in AVX2 registers of four. The sums are of integers, so their order does not
 * matter. A block that AVX2 cannot take whole is left to the plain loop: the last one before a boundary, and one with
 * an op of 2^31 ps (2.1 ms) or more, since AVX2 multiplies 32 bits at most. */
#include "sim/advance/inside.h"

#include "models/laws/laws.h"
#include "sim/gpu/gpu.h"
#include "sim/workload/workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if FL_SCAN_X86
#include <immintrin.h>
#include <stddef.h>

#define AVX2_TARGET __attribute__((target("avx2")))
#define AVX2_INLINE AVX2_TARGET static inline __attribute__((always_inline))

enum { QUARTET = 4, AVX2_BLOCK = 8 };

typedef struct quartet { /* four ops */
    __m256i work, gap;   /* ns, in the lower half of each lane; `work` may have anything in the upper ones */
    uint32_t id[QUARTET];
} quartet;

/* 16 bytes from each of four addresses: their first halves, and their second ones. */
AVX2_INLINE void avx2_transpose(const void *const at[QUARTET], __m256i *first, __m256i *second) {
    const __m256i even =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(at[0])), _mm_loadu_si128(at[2]), 1);
    const __m256i odd =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(at[1])), _mm_loadu_si128(at[3]), 1);
    *first = _mm256_unpacklo_epi64(even, odd);
    *second = _mm256_unpackhi_epi64(even, odd);
}

/* (value * mul + 2^15) >> 16, of values and factors below 2^32. */
AVX2_INLINE __m256i avx2_scaled(__m256i value, __m256i mul) {
    const __m256i half = _mm256_set1_epi64x(1 << 15);
    return _mm256_srli_epi64(_mm256_add_epi64(_mm256_mul_epu32(value, mul), half), 16);
}

AVX2_INLINE __m256i scan_avx2_part_of(__m256i row, int shift) { /* 16 bits of each row */
    return _mm256_and_si256(_mm256_srli_epi64(row, shift), _mm256_set1_epi64x(UINT16_MAX));
}

AVX2_INLINE int64_t scan_avx2_sum_of(__m256i x) {
    const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    return _mm_cvtsi128_si64(two) + _mm_extract_epi64(two, 1);
}

/* Without branches: which ops are escapes can hardly be foretold. False where an op needs more than 32 bits. */
AVX2_INLINE bool load_escapes(const fl_stream *s, uint64_t i, __m256i rec, __m256i escape, quartet *q) {
    const void *at[QUARTET];
    int64_t place[QUARTET] __attribute__((aligned(32)));
    __m256i work, gap;
    _mm256_store_si256((void *)place, _mm256_and_si256(escape, _mm256_srli_epi64(_mm256_slli_epi64(rec, 16), 16)));
#pragma GCC unroll 4
    for (int j = 0; j < QUARTET; j++) {
        const fl_big *big = &s->big[place[j]];
        const uint32_t here = s->rec[i + (uint64_t)j].class_id, there = big->class_id;
        q->id[j] = here == FL_REC_ESCAPE ? there : here;
        at[j] = big;
    }
    _Static_assert(offsetof(fl_big, work_ns) == 0 && offsetof(fl_big, gap_ns) == 8, "as transpose() reads them");
    avx2_transpose(at, &work, &gap);
    q->work = _mm256_blendv_epi8(q->work, work, escape);
    q->gap = _mm256_blendv_epi8(q->gap, gap, escape);
    const __m256i high = _mm256_and_si256(escape, _mm256_srli_epi64(_mm256_or_si256(work, gap), 32));
    return _mm256_testz_si256(high, high);
}

AVX2_INLINE bool load(const fl_stream *s, uint64_t i, const bool escapes, quartet *q) {
    const __m256i rec = _mm256_loadu_si256((const void *)&s->rec[i]);
    q->work = _mm256_and_si256(rec, _mm256_set1_epi64x(FL_WORK_MAX));
    q->gap = _mm256_and_si256(_mm256_srli_epi64(rec, FL_WORK_BITS), _mm256_set1_epi64x(FL_GAP_MAX));
    if (escapes) {
        const __m256i escape = _mm256_cmpeq_epi64(_mm256_srli_epi64(rec, 48), _mm256_set1_epi64x(FL_REC_ESCAPE));
        if (!_mm256_testz_si256(escape, escape))
            return load_escapes(s, i, rec, escape, q);
    }
#pragma GCC unroll 4
    for (int j = 0; j < QUARTET; j++)
        q->id[j] = s->rec[i + (uint64_t)j].class_id;
    return true;
}

typedef struct sums {
    __m256i dyn, memory, worked, busy, alu, sms, kernels;
} sums;

AVX2_INLINE void add_products(sums *sum, __m256i length, __m256i mul_dyn, __m256i rest, const bool other,
                              const bool deep) {
    sum->dyn = _mm256_add_epi64(sum->dyn, _mm256_mul_epi32(length, _mm256_srli_epi64(mul_dyn, 32)));
    sum->memory = _mm256_add_epi64(sum->memory, _mm256_mul_epu32(length, scan_avx2_part_of(rest, 0)));
    sum->worked = _mm256_add_epi64(sum->worked, length);
    if (deep) {
        sum->sms = _mm256_add_epi64(sum->sms, _mm256_mul_epu32(length, scan_avx2_part_of(rest, 16)));
        sum->alu = _mm256_add_epi64(sum->alu, _mm256_mul_epu32(length, scan_avx2_part_of(rest, 32)));
    }
    if (other) {
        const __m256i resident = _mm256_srli_epi64(rest, 48);
        const __m256i no = _mm256_cmpeq_epi64(resident, _mm256_set1_epi64x(FL_RESIDENT_NO));
        const __m256i kernel = _mm256_cmpeq_epi64(resident, _mm256_set1_epi64x(FL_RESIDENT_KERNEL));
        sum->busy = _mm256_add_epi64(sum->busy, _mm256_andnot_si256(no, length));
        sum->kernels = _mm256_sub_epi64(sum->kernels, kernel); /* true is -1 */
    }
}

/* Whole blocks; stops before one that it cannot take. */
AVX2_INLINE int64_t blocks(fl_gpu *restrict g, fl_lane *restrict l, int64_t t, int64_t until, uint64_t stop,
                           uint32_t gap_mul, const bool escapes, const bool other, const bool deep) {
    const fl_row *restrict row = g->rates->row;
    int64_t *restrict class_ps = g->slot[g->slot_now].class_ps;
    const __m256i gap_factor = _mm256_set1_epi64x(gap_mul), zero = _mm256_setzero_si256();
    sums x = {zero, zero, zero, zero, zero, zero, zero};
    uint64_t i = l->next;
    for (; i + AVX2_BLOCK <= stop; i += AVX2_BLOCK) {
        fl_scan_ahead(l->s->rec, i);
        quartet q[2];
        __m256i mul_dyn[2], rest[2], length[2], each = zero;
        if (!load(l->s, i, escapes, &q[0]) || !load(l->s, i + QUARTET, escapes, &q[1]))
            break;
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
            const uint32_t *id = q[k].id;
            avx2_transpose((const void *[]){&row[id[0]], &row[id[1]], &row[id[2]], &row[id[3]]}, &mul_dyn[k], &rest[k]);
            length[k] = avx2_scaled(q[k].work, mul_dyn[k]);
            each = _mm256_add_epi64(each, _mm256_add_epi64(length[k], avx2_scaled(q[k].gap, gap_factor)));
        }
        const __m256i long_ones = _mm256_srli_epi64(_mm256_or_si256(length[0], length[1]), 31);
        const int64_t all = scan_avx2_sum_of(each);
        if (__builtin_expect(all > until - t || !_mm256_testz_si256(long_ones, long_ones), 0))
            break;
        t += all;
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
            int64_t ps[QUARTET] __attribute__((aligned(32)));
            add_products(&x, length[k], mul_dyn[k], rest[k], other, deep);
            _mm256_store_si256((void *)ps, length[k]);
#pragma GCC unroll 4
            for (int j = 0; j < QUARTET; j++)
                class_ps[q[k].id[j]] += ps[j];
        }
    }
    const fl_scan_sums sum = {.dyn_fj = scan_avx2_sum_of(x.dyn),
                              .memory = scan_avx2_sum_of(x.memory),
                              .worked = scan_avx2_sum_of(x.worked),
                              .busy = scan_avx2_sum_of(other ? x.busy : x.worked),
                              .alu = scan_avx2_sum_of(x.alu),
                              .sms = scan_avx2_sum_of(x.sms),
                              .kernels = other ? (uint64_t)scan_avx2_sum_of(x.kernels) : i - l->next};
    fl_scan_add(g, l, i, &sum);
    return t;
}

AVX2_TARGET static int64_t any_blocks(fl_gpu *g, fl_lane *l, int64_t t, int64_t until, uint64_t stop,
                                      uint32_t gap_mul) {
    if (l->s->other)
        return blocks(g, l, t, until, stop, gap_mul, true, true, true);
    if (l->s->big_count)
        return blocks(g, l, t, until, stop, gap_mul, true, false, true);
    return g->profiled ? blocks(g, l, t, until, stop, gap_mul, false, false, true)
                       : blocks(g, l, t, until, stop, gap_mul, false, false, false);
}

int64_t fl_scan_avx2(fl_gpu *g, fl_lane *l, int64_t t, int64_t until, uint64_t stop, uint32_t gap_mul) {
    for (;;) {
        t = any_blocks(g, l, t, until, stop, gap_mul);
        const uint64_t after = stop - l->next < AVX2_BLOCK ? stop : l->next + AVX2_BLOCK;
        t = fl_scan_plain(g, l, t, until, after, gap_mul);
        if (l->next < after || after == stop)
            return t;
    }
}
#endif
