/* Durations and runs of durations: mean, nearest ranks and the longest, against one list of them all. */
#include "policies/random.h"
#include "sim/base/base.h"
#include "tests/support/exact.h"
#include "tests/support/suite.h"

#include <math.h>

enum { RUNS = 12, LONGEST = 40 };

static int by_length(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool near(double a, double b) { return isnan(b) ? isnan(a) : fabs(a - b) <= 1e-12 * fabs(b); }

static void expect(const fl_times *got, const int64_t *sorted, size_t count, const char *what, int n) {
    static const int percent[] = {50, 90, 95, 99};
    const double is[] = {got->p50_s, got->p90_s, got->p95_s, got->p99_s};
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)sorted[i];
    for (int k = 0; k < 4; k++) {
        size_t least = 0; /* the least that at least so many per cent do not exceed */
        while (count && (least + 1) * 100 < count * (size_t)percent[k])
            least++;
        FL_CHECK(near(is[k], count ? (double)sorted[least] * 1e-12 : (double)NAN), "%s, case %d: %d %% of %zu: %.15g s",
                 what, n, percent[k], count, is[k]);
    }
    FL_CHECK(got->count == count && near(got->mean_s, count ? sum / (double)count * 1e-12 : (double)NAN) &&
                 near(got->max_s, count ? (double)sorted[count - 1] * 1e-12 : (double)NAN),
             "%s, case %d: %d of %zu, mean %.15g s, longest %.15g s", what, n, (int)got->count, count, got->mean_s,
             got->max_s);
}

static void test_random(void) {
    const uint64_t seed = 5;
    fl_random g = fl_random_seed(seed, 0);
    printf(" seed %d ", (int)seed);
    for (int n = 0; n < 400; n++) {
        const size_t runs = (size_t)fl_random_below(&g, RUNS);
        fl_time_run *run = exact(NULL, runs * sizeof *run + (runs == 0));
        int64_t all[RUNS * LONGEST];
        size_t count = 0;
        for (size_t i = 0; i < runs; i++) {
            run[i] = (fl_time_run){1 + (int64_t)fl_random_below(&g, n % 2 ? 8 : 1000000000000),
                                   1 + fl_random_below(&g, n % 3 ? LONGEST : 1)};
            for (uint64_t k = 0; k < run[i].count; k++)
                all[count++] = run[i].ps;
        }
        int64_t *list = exact(all, count * sizeof *list + (count == 0));
        const fl_times of_runs = fl_times_of_runs(run, runs), of_list = fl_times_of(list, count);
        qsort(all, count, sizeof *all, by_length);
        expect(&of_runs, all, count, "runs", n);
        expect(&of_list, all, count, "a list", n);
        free(run);
        free(list);
    }
}

FL_SUITE("times", {"random", test_random})
