/* A length is the product p = work x mul over 2^16, rounded to the nearest, a half upwards: (p - r) / 2^16, where r is
 * the lowest 16 bits of p as a signed number. So the sum of the lengths is (mul x the sum of the works - the sum of r)
 * / 2^16, and r asks only for the lowest 16 bits of either factor. */
#include "sim/oracle/inside.h"

#include "sim/base/base.h"
#include "sim/gpu/work.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- ops of a stretch, sorted by class ---- */

fl_status fl_op_block_open(fl_op_block *b, const fl_workload *w, fl_diag *d) {
    *b = (fl_op_block){.w = w};
    b->class_id = malloc(FL_OP_BLOCK_MAX * sizeof *b->class_id);
    b->first = malloc((FL_OP_BLOCK_MAX + 2) * sizeof *b->first);
    b->low = malloc(FL_OP_BLOCK_MAX * sizeof *b->low);
    b->work_ns = malloc(FL_OP_BLOCK_MAX * sizeof *b->work_ns);
    b->of = malloc(FL_OP_BLOCK_MAX * sizeof *b->of);
    b->place = calloc(w->class_count + 1, sizeof *b->place);
    if (b->class_id && b->first && b->low && b->work_ns && b->of && b->place)
        return FL_OK;
    fl_op_block_close(b);
    return fl_no_memory(d, "the oracle");
}

void fl_op_block_close(fl_op_block *b) {
    free(b->class_id);
    free(b->first);
    free(b->low);
    free(b->work_ns);
    free(b->of);
    free(b->place);
    free(b->big);
    *b = (fl_op_block){0};
}

static void sort_by_class(fl_op_block *b, const fl_stream *s, uint64_t first, size_t count) {
    size_t *at = b->first + 1; /* of class k: first counts, then the place of its next op, then its end */
    for (size_t k = 0, sum = 0; k < b->class_count; k++) {
        size_t ops = at[k];
        at[k] = sum;
        sum += ops;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t gap_ns, work_ns;
        uint32_t class_id;
        fl_workload_op(s, first + i, &gap_ns, &work_ns, &class_id);
        if (work_ns <= UINT32_MAX)
            b->low[at[b->of[i]]++] = (uint16_t)work_ns;
    }
    b->first[0] = 0;
}

fl_status fl_op_block_fill(fl_op_block *b, const fl_stream *s, uint64_t first, uint64_t end, fl_diag *d) {
    size_t count = (size_t)(end - first);
    for (size_t k = 0; k < b->class_count; k++)
        b->place[b->class_id[k]] = 0;
    b->class_count = b->big_count = 0;
    b->gap_ps = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t gap_ns, work_ns;
        uint32_t class_id;
        fl_workload_op(s, first + i, &gap_ns, &work_ns, &class_id);
        b->gap_ps += (fl_wide)gap_ns * FL_PS_PER_NS;
        if (!b->place[class_id]) {
            b->class_id[b->class_count] = class_id;
            b->place[class_id] = (uint32_t)++b->class_count;
            b->first[b->class_count] = 0;
            b->work_ns[b->class_count - 1] = 0;
        }
        b->of[i] = b->place[class_id] - 1;
        if (work_ns <= UINT32_MAX) {
            b->first[b->of[i] + 1]++;
            b->work_ns[b->of[i]] += (uint64_t)work_ns;
            continue;
        }
        if (fl_grow(&b->big, &b->big_room, b->big_count + 1, sizeof *b->big))
            return fl_no_memory(d, "the oracle");
        b->big[b->big_count++] = (fl_big){work_ns, gap_ns, class_id};
    }
    sort_by_class(b, s, first, count);
    return FL_OK;
}

fl_wide fl_op_block_length_ps(const fl_op_block *b, size_t k, uint32_t mul) {
    fl_wide all = (fl_wide)fl_lengths_ps(b->low + b->first[k], b->first[k + 1] - b->first[k], b->work_ns[k], mul);
    for (size_t i = 0; i < b->big_count; i++)
        if (b->big[i].class_id == b->class_id[k])
            all += fl_length_ps(b->big[i].work_ns, mul);
    return all;
}

/* ---- lengths of many kernels at one clock ---- */

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
