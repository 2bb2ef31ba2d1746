/* A length is the product p = work x mul over 2^16, rounded to the nearest, a half upwards: (p - r) / 2^16, where r is
 * the lowest 16 bits of p as a signed number. So the sum of the lengths is (mul x the sum of the works - the sum of r)
 * / 2^16, and r asks only for the lowest 16 bits of either factor. */
#include "sim/oracle/lengths.h"

#include "sim/base/wide.h"

static int64_t rounding_plain(const uint16_t *low, size_t count, uint16_t mul) {
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (int16_t)((uint32_t)low[i] * mul & 0xffff);
    return sum;
}

static uint64_t lengths(uint64_t work_ns, uint32_t mul, int64_t rounding) {
    return (uint64_t)(((fl_wide)work_ns * mul - rounding) >> 16);
}

uint64_t fl_lengths_plain(const uint16_t *low, size_t count, uint64_t work_ns, uint32_t mul) {
    return lengths(work_ns, mul, rounding_plain(low, count, (uint16_t)mul));
}

#ifdef __x86_64__
#include <immintrin.h>

/* Sixteen kernels at a time. Two neighbours are added into 32 bits, which 2^16 kernels do not fill: 2^12 times 2^16. */
__attribute__((target("avx2"))) static int64_t rounding_avx2(const uint16_t *low, size_t count, uint16_t mul) {
    const __m256i by = _mm256_set1_epi16((short)mul), one = _mm256_set1_epi16(1);
    const size_t whole = count - count % 16;
    __m256i sum = _mm256_setzero_si256();
    for (size_t i = 0; i < whole; i += 16) {
        const __m256i product = _mm256_mullo_epi16(_mm256_loadu_si256((const void *)(low + i)), by);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(product, one));
    }
    int32_t lane[8];
    int64_t all = rounding_plain(low + whole, count - whole, mul);
    _mm256_storeu_si256((void *)lane, sum);
    for (int i = 0; i < 8; i++)
        all += lane[i];
    return all;
}

uint64_t fl_lengths_ps(const uint16_t *low, size_t count, uint64_t work_ns, uint32_t mul) {
    return lengths(work_ns, mul,
                   __builtin_cpu_supports("avx2") ? rounding_avx2(low, count, (uint16_t)mul)
                                                  : rounding_plain(low, count, (uint16_t)mul));
}
#else
uint64_t fl_lengths_ps(const uint16_t *low, size_t count, uint64_t work_ns, uint32_t mul) {
    return fl_lengths_plain(low, count, work_ns, mul);
}
#endif
