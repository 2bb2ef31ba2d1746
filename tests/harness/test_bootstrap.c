#include "harness/base/work/inside.h"
#include "harness/base/work/work.h"
#include "policies/random.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <math.h>

#define NA NAN

static const fl_bootstrap standard = {.draws = FL_DRAWS_STANDARD};

static bool near(double a, double b, double tolerance) { return isnan(b) ? isnan(a) : fabs(a - b) <= tolerance; }

static void test_quantile(void) {
    static const double v[] = {1, 2, 4, 8};
    static const struct {
        double q, is;
        size_t n;
    } row[] = {{0, 1, 4}, {1, 8, 4}, {0.5, 3, 4}, {1.0 / 3, 2, 4}, {0.9, 6.8, 4}, {0.5, 1, 1}, {0.5, NA, 0}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        FL_CHECK(near(fl_quantile(v, row[i].n, row[i].q), row[i].is, 1e-12), "row %zu: %g", i,
                 fl_quantile(v, row[i].n, row[i].q));
}

static void test_mean(void) {
    /* Where the answer is known: two workloads without noise give their mean and, a quarter of the draws each at both
     * ends, the two values as the interval; constant values no width; one value no interval. */
    static const struct {
        const char *what;
        double value[6];
        size_t workloads, seeds;
        double mean, low, high;
        size_t had, runs;
    } row[] = {
        {"nothing", {NA, NA}, 2, 1, NA, NA, NA, 0, 0},
        {"one run", {3, NA}, 2, 1, 3, NA, NA, 1, 1},
        {"two workloads", {1, 5}, 2, 1, 3, 1, 5, 2, 2},
        {"two seeds of one", {1, 5}, 1, 2, 3, 1, 5, 1, 2},
        {"constant", {2, 2, 2, 2}, 2, 2, 2, 2, 2, 2, 4},
        {"a single run among many", {1, NA, NA, 4, 5, 6}, 2, 3, 3, 1, 5.5, 2, 4},
        {"unequal numbers of seeds", {0, 0, 0, 4, NA, NA}, 2, 3, 2, 0, 4, 2, 4},
        {"a hole", {1, NA, NA, NA, 5, NA}, 3, 2, 3, 1, 5, 2, 2},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_interval x;
        CU_ASSERT_EQUAL(fl_bootstrap_mean(row[i].value, row[i].workloads, row[i].seeds, &standard, &x, NULL), FL_OK);
        FL_CHECK(near(x.mean, row[i].mean, 1e-12) && near(x.low, row[i].low, 1e-4) && near(x.high, row[i].high, 1e-4),
                 "%s: %g [%g, %g]", row[i].what, x.mean, x.low, x.high);
        FL_CHECK(x.workloads == row[i].had && x.runs == row[i].runs, "%s: %zu workloads, %zu runs", row[i].what,
                 x.workloads, x.runs);
    }
}

/* Of many values the interval is near the normal one, 1.96 standard deviations (of the resampling: over n) each way. */
static void test_width(void) {
    double value[400];
    const size_t n = sizeof value / sizeof *value;
    const double sd = sqrt(((double)n * (double)n - 1) / 12) / sqrt((double)n), expected = 1.959964 * sd;
    for (size_t i = 0; i < n; i++)
        value[i] = (double)i;
    for (int by_seed = 0; by_seed < 2; by_seed++) {
        fl_interval x, again, other;
        fl_bootstrap b = {.seed = 7, .draws = 8000};
        fl_bootstrap_mean(value, by_seed ? 1 : n, by_seed ? n : 1, &b, &x, NULL);
        fl_bootstrap_mean(value, by_seed ? 1 : n, by_seed ? n : 1, &b, &again, NULL);
        FL_CHECK(near(x.mean - x.low, expected, 0.05 * expected) && near(x.high - x.mean, expected, 0.05 * expected),
                 "%g [%g, %g], expected +-%g", x.mean, x.low, x.high, expected);
        FL_CHECK(!memcmp(&x, &again, sizeof x), "the same seed gave another interval");
        b.seed = 8;
        fl_bootstrap_mean(value, by_seed ? 1 : n, by_seed ? n : 1, &b, &other, NULL);
        FL_CHECK(x.low != other.low, "another seed gave the same interval");
    }
}

/* Of true intervals of 95 %, about 95 of 100 hold the truth; percentile intervals of 30 workloads a little fewer. */
static void test_coverage(void) {
    uint64_t x = 1;
    size_t held = 0;
    enum { TRIALS = 1000, N = 30 };
    for (size_t t = 0; t < TRIALS; t++) {
        double value[N];
        fl_interval is;
        for (size_t i = 0; i < N; i++) {
            double sum = 0; /* of twelve uniform ones: normal enough */
            for (int k = 0; k < 12; k++) {
                x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                sum += (double)(x >> 11) * 0x1p-53;
            }
            value[i] = sum - 6;
        }
        const fl_bootstrap b = {.seed = t, .draws = 400};
        fl_bootstrap_mean(value, N, 1, &b, &is, NULL);
        held += is.low <= 0 && is.high >= 0;
    }
    FL_CHECK(held > 0.91 * TRIALS && held < 0.97 * TRIALS, "%zu of %d intervals hold the truth", held, TRIALS);
}

static fl_status paired_of(const double *a, const double *b, size_t workloads, size_t seeds, double tie,
                           const fl_bootstrap *o, fl_paired *out, fl_diag *d) {
    fl_means m = {.b = *o};
    fl_status s = fl_means_add_paired(&m, a, b, workloads, seeds, tie, out, d);
    if (!s)
        s = fl_means_draw(&m, d);
    fl_means_free(&m);
    return s;
}

static void test_paired(void) {
    static const struct {
        const char *what;
        double a[6], b[6];
        size_t workloads, seeds;
        double tie, difference, low, high;
        size_t wins, ties, losses, runs;
    } row[] = {
        /* values far apart, differences the same everywhere: pairing is what makes the interval narrow */
        {"paired", {11, 101, 1001}, {10, 100, 1000}, 3, 1, 0, 1, 1, 1, 3, 0, 0, 3},
        {"one each", {2, 1, 5}, {1, 2, 5}, 3, 1, 0, 0, -1, 1, 1, 1, 1, 3},
        {"within the tie", {2, 1, 5}, {1.9, 1.1, 4}, 3, 1, 0.5, 1.0 / 3, -0.1, 1, 1, 2, 0, 3},
        {"by seed", {1, 2, 30, 40}, {0, 1, 29, 39}, 2, 2, 0, 1, 1, 1, 2, 0, 0, 4},
        {"many against one run", {1, 3, 5, 7}, {2, NA, 6, NA}, 2, 2, 0, 0, -1, 1, 0, 2, 0, 4},
        {"one run against many", {2, NA, NA, 6}, {1, 3, 5, 7}, 2, 2, 0, 0, -1, 1, 0, 2, 0, 4},
        {"one run against one", {3, NA, NA, 4}, {1, NA, NA, 1}, 2, 2, 0, 2.5, 2, 3, 2, 0, 0, 2},
        {"only one of them has it", {1, 2, NA}, {0, NA, 3}, 3, 1, 0, 1, NA, NA, 1, 0, 0, 1},
        {"seeds that do not meet", {1, 2, NA, NA}, {NA, NA, 1, 2}, 1, 4, 0, NA, NA, NA, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_paired p;
        CU_ASSERT_EQUAL(paired_of(row[i].a, row[i].b, row[i].workloads, row[i].seeds, row[i].tie, &standard, &p, NULL),
                        FL_OK);
        FL_CHECK(near(p.difference.mean, row[i].difference, 1e-12) && near(p.difference.low, row[i].low, 1e-9) &&
                     near(p.difference.high, row[i].high, 1e-9),
                 "%s: %g [%g, %g]", row[i].what, p.difference.mean, p.difference.low, p.difference.high);
        FL_CHECK(p.wins == row[i].wins && p.ties == row[i].ties && p.losses == row[i].losses, "%s: %zu/%zu/%zu",
                 row[i].what, p.wins, p.ties, p.losses);
        FL_CHECK(p.difference.runs == row[i].runs, "%s: %zu runs", row[i].what, p.difference.runs);
    }
}

static void test_ranks(void) {
    static const struct {
        double value[5], rank[5];
        size_t count, first;
    } row[] = {{{3, 1, 2}, {1, 3, 2}, 3, 0},
               {{1, 1, 1}, {2, 2, 2}, 3, 0},
               {{5, 7, 5, 9}, {3.5, 2, 3.5, 1}, 4, 3},
               {{NA, 2, NA, 1}, {NA, 1, NA, 2}, 4, 1},
               {{-1}, {1}, 1, 0},
               {{0, -0.0, 1}, {2.5, 2.5, 1}, 3, 2}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        double rank[5];
        fl_ranked room[10];
        const fl_ranked *order = fl_ranks(row[i].value, row[i].count, room, rank);
        for (size_t k = 0; k < row[i].count; k++)
            FL_CHECK(near(rank[k], row[i].rank[k], 0), "row %zu: rank %g of value %zu", i, rank[k], k);
        FL_CHECK(row[i].value[order[0].index] == row[i].value[row[i].first], "row %zu: %zu first", i, order[0].index);
    }
}

static void test_mean_ranks(void) {
    /* three policies x four workloads; the last workload lacks a run of the third and does not count */
    static const double value[] = {9, 8, 7, 6, /* */ 5, 8, 8, 7, /* */ 1, 1, 9, NA};
    static const struct {
        double rank, low, high;
        size_t firsts;
    } is[] = {{(1 + 1.5 + 3) / 3, 1, 3, 2}, {(2 + 1.5 + 2) / 3, 1.5, 2, 1}, {(3 + 3 + 1) / 3.0, 1, 3, 1}};
    fl_rank_result out[3], again[3];
    fl_bootstrap b = {.seed = 1, .draws = 5000};
    CU_ASSERT_EQUAL(fl_bootstrap_ranks(value, 3, 4, 1, &b, out, NULL), FL_OK);
    for (size_t p = 0; p < 3; p++)
        FL_CHECK(near(out[p].rank.mean, is[p].rank, 1e-12) && near(out[p].rank.low, is[p].low, 1e-12) &&
                     near(out[p].rank.high, is[p].high, 1e-12) && out[p].firsts == is[p].firsts &&
                     out[p].rank.workloads == 3,
                 "policy %zu: %g [%g, %g], %zu firsts of %zu", p, out[p].rank.mean, out[p].rank.low, out[p].rank.high,
                 out[p].firsts, out[p].rank.workloads);
    fl_bootstrap_ranks(value, 3, 4, 1, &b, again, NULL);
    FL_CHECK(!memcmp(out, again, sizeof out), "the same seed gave other ranks");

    /* one workload: only seeds are drawn. The first is always better; the others change places. */
    static const double seeds[] = {9, 9.5, 9, /* */ 1, 3, 2, /* */ 2, NA, NA};
    CU_ASSERT_EQUAL(fl_bootstrap_ranks(seeds, 3, 1, 3, &standard, out, NULL), FL_OK);
    FL_CHECK(out[0].rank.low == 1 && out[0].rank.high == 1, "[%g, %g]", out[0].rank.low, out[0].rank.high);
    FL_CHECK(out[1].rank.mean == 2.5 && out[1].rank.low == 2 && out[1].rank.high == 3, "%g [%g, %g]", out[1].rank.mean,
             out[1].rank.low, out[1].rank.high);
    CU_ASSERT_EQUAL(fl_bootstrap_ranks(seeds, 1, 1, 1, &standard, out, NULL), FL_OK);
    FL_CHECK(out[0].rank.mean == 1 && isnan(out[0].rank.low), "one run: %g [%g", out[0].rank.mean, out[0].rank.low);
}

/* ---- many means at once, against the definition of one ---- */

static double redrawn(const double *value, size_t workloads, size_t seeds, fl_random *r) {
    size_t with[64], n = 0;
    double sum = 0;
    for (size_t w = 0; w < workloads; w++)
        for (size_t k = 0; k < seeds; k++)
            if (!isnan(value[w * seeds + k])) {
                with[n++] = w;
                break;
            }
    for (size_t i = 0; i < n; i++) {
        const double *row = value + with[n > 1 ? fl_random_below(r, n) : 0] * seeds;
        double run[64], of_seeds = 0;
        size_t runs = 0;
        for (size_t k = 0; k < seeds; k++)
            if (!isnan(row[k]))
                run[runs++] = row[k];
        for (size_t k = 0; k < runs; k++)
            of_seeds += run[runs > 1 ? fl_random_below(r, runs) : 0];
        sum += of_seeds / (double)runs;
    }
    return sum / (double)n;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Bit by bit: means of many shapes in one batch, more than are added up side by side, draws that need several blocks.
 */
static void test_batch(void) {
    enum { MEANS = 300, MOST = 64 };
    static const size_t draws[] = {1, 2, 39, 40, 41, 2000};
    static double value[MEANS][MOST];
    for (size_t n = 0; n < sizeof draws / sizeof *draws; n++) {
        const fl_bootstrap b = {.seed = 11 + n, .draws = draws[n]};
        fl_random r = fl_random_seed(5, n);
        fl_means m = {.b = b};
        fl_interval got[MEANS];
        size_t workloads[MEANS], seeds[MEANS];
        for (size_t i = 0; i < MEANS; i++) {
            workloads[i] = 1 + fl_random_below(&r, 8);
            seeds[i] = 1 + fl_random_below(&r, fl_random_below(&r, 2) ? 8 : 1);
            const uint64_t holes = fl_random_below(&r, 3) ? UINT64_MAX : 4, values = 1 + fl_random_below(&r, 20);
            for (size_t k = 0; k < workloads[i] * seeds[i]; k++)
                value[i][k] = fl_random_below(&r, holes) ? (double)fl_random_below(&r, values) / 7 - 1 : (double)NAN;
            CU_ASSERT_EQUAL(fl_means_add(&m, value[i], workloads[i], seeds[i], &got[i], NULL), FL_OK);
        }
        CU_ASSERT_EQUAL(fl_means_draw(&m, NULL), FL_OK);
        for (size_t i = 0; i < MEANS; i++) {
            static double mean[2000];
            fl_random own = fl_random_seed(b.seed, 0);
            for (size_t k = 0; got[i].runs && k < b.draws; k++)
                mean[k] = redrawn(value[i], workloads[i], seeds[i], &own);
            qsort(mean, b.draws, sizeof *mean, ascending);
            const bool drawn = got[i].runs > 1;
            const double low = drawn ? fl_quantile(mean, b.draws, (1 - 0.95) / 2) : (double)NAN,
                         high = drawn ? fl_quantile(mean, b.draws, 1 - (1 - 0.95) / 2) : (double)NAN;
            FL_CHECK(near(got[i].low, low, 0) && near(got[i].high, high, 0),
                     "%zu draws, mean %zu of %zu x %zu: [%.17g, %.17g], expected [%.17g, %.17g]", b.draws, i,
                     workloads[i], seeds[i], got[i].low, got[i].high, low, high);
        }
        fl_means_free(&m);
    }
}

/* So many draws that their picks are made block by block, again for every eight means. */
static void test_blocks(void) {
    enum { MEANS = 18, DRAWS = 200000, RUNS = 12 };
    const fl_bootstrap b = {.seed = 3, .draws = DRAWS};
    fl_means m = {.b = b};
    fl_interval got[MEANS];
    double value[MEANS][RUNS], *mean = malloc(DRAWS * sizeof *mean);
    CU_ASSERT_PTR_NOT_NULL_FATAL(mean);
    for (size_t i = 0; i < MEANS; i++) {
        for (size_t k = 0; k < RUNS; k++)
            value[i][k] = sqrt((double)(1 + i + 37 * k));
        CU_ASSERT_EQUAL(fl_means_add(&m, value[i], RUNS, 1, &got[i], NULL), FL_OK);
    }
    CU_ASSERT_EQUAL(fl_means_draw(&m, NULL), FL_OK);
    for (size_t i = 0; i < MEANS; i++) {
        fl_random own = fl_random_seed(b.seed, 0);
        for (size_t k = 0; k < DRAWS; k++)
            mean[k] = redrawn(value[i], RUNS, 1, &own);
        qsort(mean, DRAWS, sizeof *mean, ascending);
        FL_CHECK(got[i].low == fl_quantile(mean, DRAWS, (1 - 0.95) / 2) &&
                     got[i].high == fl_quantile(mean, DRAWS, 1 - (1 - 0.95) / 2),
                 "mean %zu: [%.17g, %.17g]", i, got[i].low, got[i].high);
    }
    free(mean);
    fl_means_free(&m);
}

FL_SUITE("stats", {"quantiles", test_quantile}, {"means with intervals", test_mean}, {"width", test_width},
         {"coverage", test_coverage}, {"paired differences", test_paired}, {"ranks", test_ranks},
         {"mean ranks with intervals", test_mean_ranks}, {"many at once", test_batch}, {"in blocks", test_blocks})
