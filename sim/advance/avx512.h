/* Eight ops in AVX-512 registers: what the loops over them share. Internal to sim/. */
#pragma once

#include "sim/workload/workload.h"

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512dq,avx512vl,bmi2,popcnt")))
#define INLINE TARGET static inline __attribute__((always_inline))

enum { BLOCK = 8 };

/* Work and gap of eight records, in ns. */
INLINE __m512i work_of(__m512i rec) { return _mm512_and_si512(rec, _mm512_set1_epi64(FL_WORK_MAX)); }
INLINE __m512i gap_of(__m512i rec) {
    return _mm512_and_si512(_mm512_srli_epi64(rec, FL_WORK_BITS), _mm512_set1_epi64(FL_GAP_MAX));
}

/* 16 bytes from each of eight addresses: their first halves, and their second ones. */
INLINE void transpose(const void *const at[BLOCK], __m512i *first, __m512i *second) {
    __m512i half[2]; /* those of the even ones, and of the odd ones */
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
        const __m256i low =
            _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(at[j])), _mm_loadu_si128(at[j + 2]), 1);
        const __m256i high =
            _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(at[j + 4])), _mm_loadu_si128(at[j + 6]), 1);
        half[j] = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
    *first = _mm512_unpacklo_epi64(half[0], half[1]);
    *second = _mm512_unpackhi_epi64(half[0], half[1]);
}

/* (value * mul + 2^15) >> 16, of values and factors below 2^32. */
INLINE __m512i scaled(__m512i value, __m512i mul) {
    const __m512i half = _mm512_set1_epi64(1 << 15);
    return _mm512_srli_epi64(_mm512_add_epi64(_mm512_mul_epu32(value, mul), half), 16);
}

INLINE uint64_t sum_of(__m512i x) { /* modulo 2^64, which _mm512_reduce_add_epi64 does not promise */
    x = _mm512_add_epi64(x, _mm512_shuffle_i64x2(x, x, 0x4e));
    x = _mm512_add_epi64(x, _mm512_shuffle_i64x2(x, x, 0xb1));
    x = _mm512_add_epi64(x, _mm512_shuffle_epi32(x, _MM_PERM_BADC));
    return (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(x));
}

INLINE __m512i running(__m512i each) { /* the sum of each lane and those before it */
    const __m512i zero = _mm512_setzero_si512();
    each = _mm512_add_epi64(each, _mm512_alignr_epi64(each, zero, 7));
    each = _mm512_add_epi64(each, _mm512_alignr_epi64(each, zero, 6));
    return _mm512_add_epi64(each, _mm512_alignr_epi64(each, zero, 4));
}

INLINE __m512i part_of(__m512i row, unsigned shift) { /* 16 bits of each row */
    return _mm512_and_si512(_mm512_srli_epi64(row, shift), _mm512_set1_epi64(0xffff));
}
