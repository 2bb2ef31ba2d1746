#include "sim/oracle_lengths.h"

uint64_t fl_lengths_plain(const uint32_t *work_ns, size_t count, uint32_t mul) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += ((uint64_t)work_ns[i] * mul + (1u << 15)) >> 16;
    return sum;
}

#ifdef __x86_64__
#include <immintrin.h>

/* Eight kernels at a time: the even and the odd ones apart, since a product takes the room of two. Each is rounded as
 * in the plain form, and integers add up in any order. */
__attribute__((target("avx2"))) static uint64_t lengths_avx2(const uint32_t *work_ns, size_t count, uint32_t mul) {
    const __m256i by = _mm256_set1_epi64x((long long)mul), half = _mm256_set1_epi64x(1 << 15);
    const size_t whole = count - count % 8;
    __m256i even = _mm256_setzero_si256(), odd = even;
    for (size_t i = 0; i < whole; i += 8) {
        const __m256i work = _mm256_loadu_si256((const void *)(work_ns + i));
        const __m256i one = _mm256_mul_epu32(work, by), other = _mm256_mul_epu32(_mm256_srli_epi64(work, 32), by);
        even = _mm256_add_epi64(even, _mm256_srli_epi64(_mm256_add_epi64(one, half), 16));
        odd = _mm256_add_epi64(odd, _mm256_srli_epi64(_mm256_add_epi64(other, half), 16));
    }
    uint64_t lane[4];
    _mm256_storeu_si256((void *)lane, _mm256_add_epi64(even, odd));
    return lane[0] + lane[1] + lane[2] + lane[3] + fl_lengths_plain(work_ns + whole, count - whole, mul);
}

uint64_t fl_lengths_ps(const uint32_t *work_ns, size_t count, uint32_t mul) {
    return __builtin_cpu_supports("avx2") ? lengths_avx2(work_ns, count, mul) : fl_lengths_plain(work_ns, count, mul);
}
#else
uint64_t fl_lengths_ps(const uint32_t *work_ns, size_t count, uint32_t mul) {
    return fl_lengths_plain(work_ns, count, mul);
}
#endif
