/* The sums of lengths behind the oracles: the form that the processor takes against the plain one and against one
 * kernel after the other, over seeded blocks of every size up to some vectors, borders of the integers among them. */
#include "policies/random.h"
#include "sim/gpu/work.h"
#include "sim/oracle/inside.h"
#include "tests/support/suite.h"

static void test_equal(void) {
    enum { MOST = 1 << 16 };
    uint32_t *work = malloc(MOST * sizeof *work);
    uint16_t *low = malloc(MOST * sizeof *low);
    CU_ASSERT_PTR_NOT_NULL_FATAL(work);
    CU_ASSERT_PTR_NOT_NULL_FATAL(low);
    fl_random r = fl_random_seed(1, 0);
    for (int trial = 0; trial < 3000; trial++) {
        const size_t count = trial < 70     ? (size_t)trial
                             : trial < 2990 ? (size_t)fl_random_below(&r, 100)
                                            : MOST - (size_t)fl_random_below(&r, 9);
        const uint32_t mul = trial % 5 ? (uint32_t)fl_random_next(&r) >> fl_random_below(&r, 20) : UINT32_MAX;
        uint64_t each = 0, all = 0;
        for (size_t i = 0; i < count; i++) {
            work[i] = fl_random_below(&r, 6) ? (uint32_t)fl_random_next(&r) >> fl_random_below(&r, 32) : UINT32_MAX;
            low[i] = (uint16_t)work[i];
            all += work[i];
            each += (uint64_t)fl_length_ps(work[i], mul);
        }
        const uint64_t plain = fl_lengths_plain(low, count, all, mul), taken = fl_lengths_ps(low, count, all, mul);
        FL_CHECK(plain == each && taken == each, "trial %d, %zu kernels times %u: %llu and %llu, expected %llu", trial,
                 count, mul, (unsigned long long)plain, (unsigned long long)taken, (unsigned long long)each);
    }
    free(work);
    free(low);
}

FL_SUITE("oracle_lengths", {"equal", test_equal})
