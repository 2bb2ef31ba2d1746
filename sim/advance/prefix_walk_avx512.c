/* fl_prefix_walk_one, eight ops at a time in AVX-512 registers. The sums are of integers modulo 2^64, so their order
 * does not matter. */
#include "sim/advance/prefix_walk_inside.h"
#include "sim/advance/scan_inside.h"

#if FL_SCAN_X86
#include "sim/advance/avx512.h"

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
