/* Rows of a sweep that contradict each other: held to a comparison of each row with each. */
#include "harness/chip/chip.h"
#include "policies/random.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/suite.h"

#include <math.h>

enum { ROWS = 40 };

static bool same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

static bool one_setting(const fl_sweep_row *a, const fl_sweep_row *b) {
    return a->workload == b->workload && a->kernel == b->kernel && same(a->mem_mhz, b->mem_mhz) &&
           same(a->power_cap_w, b->power_cap_w);
}

/* The least time of a lower clock over that of a higher one, below FL_SWEEP_FASTER; 1: none. */
static double least_share(const fl_sweep *s, uint32_t workload) {
    double least = FL_SWEEP_FASTER;
    for (size_t i = 0; i < s->row_count; i++)
        for (size_t k = 0; k < s->row_count; k++) {
            const fl_sweep_row *a = &s->rows[i], *b = &s->rows[k];
            if (a->workload == workload && one_setting(a, b) && a->sm_mhz < b->sm_mhz && a->time_s / b->time_s < least)
                least = a->time_s / b->time_s;
        }
    return least < FL_SWEEP_FASTER ? least : 1;
}

/* The line of the first row that repeats an earlier setting with another time; 0: none. */
static int64_t first_twice(const fl_sweep *s) {
    for (size_t i = 0; i < s->row_count; i++)
        for (size_t k = 0; k < i; k++) {
            const fl_sweep_row *a = &s->rows[i], *b = &s->rows[k];
            if (one_setting(a, b) && same(a->sm_mhz, b->sm_mhz) &&
                fmax(a->time_s, b->time_s) > 1.1 * fmin(a->time_s, b->time_s))
                return a->line;
        }
    return 0;
}

static void test_any(void) {
    static char first[] = "a", second[] = "b", *names[] = {first, second};
    int odd = 0, twice = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        fl_random random = fl_random_seed(seed, 0);
        fl_sweep_row row[ROWS];
        fl_sweep s = {.names = names, .name_count = 2, .rows = row};
        fl_diag d = {0};
        s.row_count = fl_random_below(&random, ROWS + 1);
        const double scatter = seed % 4 ? 0.02 : 0.5;
        for (size_t i = 0; i < s.row_count; i++) {
            const double mhz = 1000 + 100 * (double)fl_random_below(&random, 8);
            row[i] = (fl_sweep_row){.line = (int64_t)i + 2,
                                    .workload = (uint32_t)fl_random_below(&random, 2),
                                    .sm_mhz = seed % 5 ? mhz : (double)NAN,
                                    .mem_mhz = fl_random_below(&random, 2) ? 800 : (double)NAN,
                                    .power_cap_w = fl_random_below(&random, 3) ? (double)NAN : 200,
                                    .time_s = 2000 / mhz * (1 + scatter * fl_random_unit(&random))};
        }
        for (uint32_t w = 0; w < 2; w++) {
            const fl_sweep_row *low, *high;
            CU_ASSERT_FATAL(!fl_sweep_odd(&s, w, &low, &high, &d));
            const double found = low ? low->time_s / high->time_s : 1, expected = least_share(&s, w);
            odd += low != NULL;
            FL_CHECK(fabs(found - expected) < 1e-12 &&
                         (!low || (one_setting(low, high) && low->workload == w && low->sm_mhz < high->sm_mhz)),
                     "seed %llu, workload %u: %g, expected %g", (unsigned long long)seed, w, found, expected);
        }
        const int64_t line = first_twice(&s);
        const fl_status status = fl_sweep_check_twice("s.csv", &s, &d);
        twice += line > 0;
        FL_CHECK(line ? status == FL_BAD_INPUT && d.line == line : !status, "seed %llu: line %lld, expected %lld",
                 (unsigned long long)seed, status ? (long long)d.line : 0, (long long)line);
    }
    FL_CHECK(odd > 100 && odd < 3900 && twice > 100 && twice < 1900, "%d odd, %d twice", odd, twice);
}

FL_SUITE("sweep_pairs", {"as each row with each", test_any})
