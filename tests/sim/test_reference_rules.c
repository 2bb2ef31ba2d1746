/* Rules of MF-GPOEO's second implementation (tests/reference/README.md), against cases worked by hand: what two
 * implementations agree on can still be wrong. */
#include "tests/reference/program.h"
#include "tests/support/suite.h"

#include <math.h>

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(1, fabs(b)); }

/* G = floor(ceil(grid B / cores) cores / B) with 10,240 cores. */
static void test_products(void) {
    static const struct {
        uint32_t grid[3], block[3];
        uint64_t rounded, block_product;
    } row[] = {
        {{100, 1, 1}, {128, 1, 1}, 160, 128}, /* 12,800 threads: 2 x 10,240 / 128 */
        {{9, 9, 1}, {32, 3, 1}, 106, 96},     /* 7,776: 10,240 / 96 = 106.67 */
        {{80, 1, 1}, {128, 1, 1}, 80, 128},   /* exactly once */
        {{81, 1, 1}, {128, 1, 1}, 160, 128},  /* one block more */
        {{1, 1, 1}, {1024, 1, 1}, 10, 1024},  /* 1,024 */
        {{20481, 1, 1}, {0, 0, 0}, 30720, 1}, /* block not recorded */
        {{5, 4, 3}, {16, 4, 2}, 80, 128},     /* 60 x 128 = 7,680 */
    };
    ref_products p = {0};
    for (size_t i = 0; i < FL_COUNT(row); i++) {
        fl_kernel_kind k = {.name = "a", .name_id = 1};
        memcpy(k.grid, row[i].grid, sizeof k.grid);
        memcpy(k.block, row[i].block, sizeof k.block);
        const uint32_t at = ref_product_of(&p, 7, &k, 10240);
        const ref_product *q = &p.at[at];
        FL_CHECK(q->grid == row[i].rounded && q->block == row[i].block_product, "row %zu: %llu x %llu", i,
                 (unsigned long long)q->grid, (unsigned long long)q->block);
    }
    ref_products_free(&p);
}

static ref_kind kernel(uint32_t stream, uint32_t product) {
    return (ref_kind){.stream = stream, .before = product, .after = product};
}

static ref_kind gap(uint32_t stream, uint32_t before, uint32_t after) {
    return (ref_kind){.stream = stream, .before = before, .after = after};
}

static void count(ref_kinds *kinds, ref_kind key, int times, double ns) {
    for (int i = 0; i < times; i++)
        ref_count(kinds, key, ns);
}

/* Three kernels of 10 ns merged by 0.5 into five of 20: m = round(2.5) = 3, so 6 kernels of 30 + 0.6 x 100 = 90 ns. */
static void test_merge(void) {
    ref_data old = {.duration_ns = 8, .samples = 4, .kernels = 6, .sum = {[REF_POWER] = 400}}, fresh = old;
    fresh.duration_ns = 2, fresh.samples = 2, fresh.sum[REF_POWER] = 300;
    count(&old.kernel, kernel(1, 0), 5, 20);
    count(&old.kernel, kernel(1, 1), 1, 7);
    count(&fresh.kernel, kernel(1, 0), 3, 10);
    count(&fresh.kernel, kernel(1, 2), 2, 9);
    ref_merge(&old, &fresh, 0.5, false);
    FL_CHECK(old.duration_ns == 6 && old.samples == 4 && old.kernels == 9 && ref_mean(&old, REF_POWER) == 125,
             "%g ns, %g samples, %g kernels, %g W", old.duration_ns, old.samples, old.kernels,
             ref_mean(&old, REF_POWER));
    const ref_kind *k = old.kernel.at;
    FL_CHECK(old.kernel.count == 3 && k[0].count == 6 && near(k[0].sum_ns, 90) && near(k[0].squares, 1500),
             "%zu kinds: %g of %g ns", old.kernel.count, k[0].count, k[0].sum_ns);
    FL_CHECK(k[1].count == 1 && k[1].sum_ns == 7 && k[2].count == 2 && k[2].sum_ns == 18, "only old %g, only new %g",
             k[1].sum_ns, k[2].sum_ns);
    ref_merge(&old, &fresh, 0.3, true); /* 0.3 x 2 / 6 = 0.1 */
    FL_CHECK(near(old.duration_ns, 2.6) && old.kernel.at[0].count == 4, "relative: %g ns, %g kernels", old.duration_ns,
             old.kernel.at[0].count);
    ref_merge(&old, &fresh, 0, false); /* at least 0.01 */
    FL_CHECK(near(old.duration_ns, 2.026) && old.kernel.at[0].count == 3, "least: %g ns, %g kernels", old.duration_ns,
             old.kernel.at[0].count);
    ref_data_free(&old);
    ref_data_free(&fresh);
}

/* Stream 1: 10 kernels of 110 ns (100 in the database) and 20 of a kind that it does not know, 50 ns each; 9 gaps of 30
 * ns (20). B = 1000, K = 1100, E = 2100, Gb = 180, Gc = 270: P = 2370 / (2100 / 1.1 + 180) - 1.
 * Stream 2: 4 kernels of 300 ns (200), one gap: none that counts. P = exe = 0.5. Weights: (2100 / D)^2, (1200 / D)^2.
 */
static void test_index(void) {
    ref_data b = {.duration_ns = 4000}, c = b;
    count(&b.kernel, kernel(1, 0), 5, 100);
    count(&c.kernel, kernel(1, 0), 10, 110);
    count(&c.kernel, kernel(1, 1), 20, 50);
    count(&b.gap, gap(1, 0, 0), 4, 20);
    count(&c.gap, gap(1, 0, 0), 9, 30);
    count(&b.kernel, kernel(2, 2), 4, 200);
    count(&c.kernel, kernel(2, 2), 4, 300);
    count(&b.gap, gap(2, 2, 2), 3, 10);
    count(&c.gap, gap(2, 2, 2), 1, 40);
    const ref_index x = ref_compare(&c, &b);
    const double p = 2370 / (2100 / 1.1 + 180) - 1, w1 = 2100.0 * 2100, w2 = 1200.0 * 1200, w = w1 + w2;
    FL_CHECK(fabs(x.loss - (w1 * p + w2 * 0.5) / w) < 1e-6, "loss %.9f", x.loss);
    FL_CHECK(fabs(x.exe - (w1 * 0.1 + w2 * 0.5) / w) < 1e-6 && fabs(x.gap - 0.5) < 1e-6, "exe %.9f, gap %.9f", x.exe,
             x.gap);
    FL_CHECK(near(x.covered, 2300.0 / 3300) && near(x.matched, 2300.0 / 3300) && x.unmatched_streams == 0,
             "covered %g, matched %g, unmatched %g", x.covered, x.matched, x.unmatched_streams);

    count(&c.kernel, kernel(3, 3), 1, 1700); /* a stream that the database does not know */
    FL_CHECK(near(ref_compare(&c, &b).unmatched_streams, 0.34), "%g", ref_compare(&c, &b).unmatched_streams);
    ref_data empty = {.duration_ns = 4000};
    const ref_index none = ref_compare(&c, &empty);
    FL_CHECK(none.loss == 0.05 && none.exe == 0.05 && none.gap == 0.05 && none.covered == 0, "nothing known: %g",
             none.loss);
    ref_data_free(&b);
    ref_data_free(&c);
}

/* Lengths that differ by more than the radius are covered, but not matched: 300 of 1 ns and one of 1 ms. */
static void test_radius(void) {
    ref_data b = {.duration_ns = 4e6}, c = b;
    count(&b.kernel, kernel(1, 0), 301, 1000);
    count(&c.kernel, kernel(1, 0), 300, 1);
    count(&c.kernel, kernel(1, 0), 1, 1e6); /* CV = sqrt(300) = 17.3 or so */
    const ref_index x = ref_compare(&c, &b);
    FL_CHECK(x.covered == 1 && x.matched == 0 && x.unmatched_streams == 1 && x.loss == 0.05, "matched %g", x.matched);
    ref_data_free(&b);
    ref_data_free(&c);
}

/* ---- the controller ---- */

static int32_t ladder[124];
static fl_gpu_facts facts;

static void open_program(ref_program *p, int gear, double bound) {
    for (int i = 0; i < 124; i++)
        ladder[i] = 210 + 15 * i;
    facts = (fl_gpu_facts){.sm = {ladder, 124}};
    *p = (ref_program){.gpu = &facts, .gears = 124, .memory_gears = 5, .memory = 4, .gear = gear, .bound = bound};
}

static int call(ref_program *p, double loss) {
    const int next = ref_controller(p, loss, ref_sm_mhz(p, p->gear));
    const int gear = p->gear;
    p->kept[p->kept_count++] = (ref_measured){(loss - p->bound) / p->bound, 1 - 0.001 * p->kept_count, gear, next};
    return next;
}

/* A GPU that loses nothing, C = 4.7 %: 118 (1 - 0.7 x 2.8 x 0.047) = 107.13; then compound 1.5, with I = 0.094:
 * 107 (1 - 4.2 x 0.047 - 0.002 x 0.094) = 85.86; then 1.5 x 4.2: 86 (1 - 6.3 x 0.047 - 0.002 x 0.141) = 60.51; then
 * 1.5 x 6.3 > 8: 61 (1 - 8 x 0.047 - 0.002 x 0.188) = 38.04. */
static void test_free_of_loss(void) {
    ref_program p;
    open_program(&p, 118, 0.047);
    const int expected[] = {107, 86, 61, 38};
    for (size_t i = 0; i < FL_COUNT(expected); i++) {
        const int next = call(&p, 0);
        FL_CHECK(next == expected[i], "call %zu: %d, expected %d", i + 1, next, expected[i]);
        p.gear = next;
    }
}

/* The second call of a controller at gear 100 after one at 110 with so much loss, C = 5 %. */
static void test_gains(void) {
    static const struct {
        double before, loss, delta;
        const char *why;
    } row[] = {
        {0.02, 0.030, 2.1 * 0.02 + 0.002 * 0.05, "0 < err < 0.04: 0.75 Kp"},
        {0.04, 0.005, 2.8 * 0.045 + 0.002 * 0.055 - 0.9 * 0.035, "err > 0.04: Kp; q damps"},
        {0.04, 0.052, -11.2 * 0.002, "over by < 0.003: 4 Kp; a change of sign"},
        {0.06, 0.052, -11.2 * 0.002 - 0.002 * 0.012, "the same without a change of sign"},
        {0.06, 0.055, -7 * 0.005 - 0.002 * 0.015, "over by < 0.006: 2.5 Kp"},
        {0.06, 0.070, -4.9 * 0.02 - 0.002 * 0.03, "over by < 0.025: 1.75 Kp"},
        {0.06, 0.080, -2.8 * 0.03 - 0.002 * 0.04, "over by more: Kp"},
        {0.02, 0.080, -2.8 * 0.03 + 0.9 * 0.06, "a jump over the bound is damped"},
        {-0.2, -0.160, 7 * 0.21 + 0.002 * 0.46, "|loss| > 3 C: 2.5 Kp"},
        {0.02, 0.0496, 0, "dead zone"},
    };
    for (size_t i = 0; i < FL_COUNT(row); i++) {
        ref_program p;
        open_program(&p, 110, 0.05);
        call(&p, row[i].before);
        p.gear = 100;
        double expected = round(100 * (1 - row[i].delta));
        expected = row[i].loss > 0.05 && expected <= 100 ? 101 : fmax(expected, 0);
        const int next = call(&p, row[i].loss);
        FL_CHECK(next == (int)expected, "%s: %d, expected %g", row[i].why, next, expected);
    }
}

/* ---- the stop rule ---- */

static int stop(int n, int memory, int count, const ref_measured *m) {
    ref_program p;
    open_program(&p, 0, 0.05);
    p.calls = n;
    p.memory = memory;
    p.kept_count = count;
    memcpy(p.kept, m, (size_t)count * sizeof *m);
    return ref_stop_rule(&p);
}

static void test_stop(void) {
    static const struct {
        const char *why;
        int n, memory, count, expected;
        ref_measured m[6]; /* rho, objective, gear, next: oldest first */
    } row[] = {
        {"near each other: (110 x 2.5 + 110 x 2.5 + 104 x 5) / 10",
         3,
         4,
         3,
         107,
         {{-0.16, 0.9, 110, 110}, {-0.16, 0.9, 110, 104}, {-0.04, 0.9, 104, 98}}},
        {"mean |rho| 0.21 > 0.2", 3, 4, 3, -1, {{-0.3, 0.9, 110, 110}, {-0.29, 0.9, 110, 104}, {-0.04, 0.9, 104, 98}}},
        {"mean rho > 0", 3, 4, 3, -1, {{0.1, 0.9, 110, 111}, {0.1, 0.9, 111, 104}, {-0.04, 0.9, 104, 98}}},
        {"latest rho > 0.05", 3, 4, 3, -1, {{-0.1, 0.9, 110, 111}, {-0.1, 0.9, 111, 104}, {0.06, 0.9, 104, 109}}},
        {"range of m > 8", 3, 4, 3, -1, {{-0.1, 0.9, 113, 111}, {-0.1, 0.9, 111, 104}, {-0.1, 0.9, 104, 98}}},
        {"next within 3 and rho < 0: the best, which is the cheapest",
         3,
         4,
         3,
         104,
         {{-0.1, 0.95, 113, 111}, {-0.1, 0.93, 111, 104}, {-0.1, 0.9, 104, 102}}},
        {"cheaper, but slower and lower: not taken",
         3,
         4,
         3,
         104,
         {{-0.3, 0.85, 100, 111}, {-0.1, 0.93, 111, 104}, {-0.1, 0.9, 104, 102}}},
        {"cheaper, lower, but nearer to the bound: taken",
         3,
         4,
         3,
         100,
         {{-0.05, 0.85, 100, 111}, {-0.1, 0.93, 111, 104}, {-0.1, 0.9, 104, 102}}},
        {"n = 5, all break the bound: the highest gear",
         5,
         4,
         5,
         108,
         {{0.3, 0.9, 100, 102},
          {0.3, 0.9, 102, 104},
          {0.3, 0.9, 108, 106},
          {0.2, 0.9, 106, 107},
          {0.2, 0.9, 107, 120}}},
        {"last 3 proposals below 74.4: their mean",
         3,
         2,
         3,
         57,
         {{-0.9, 0.9, 81, 74}, {-0.9, 0.9, 74, 58}, {-0.9, 0.9, 58, 38}}},
        {"low memory: two of three, (106 x 1.67 + 101 x 3.33) / 5",
         3,
         2,
         3,
         103,
         {{0.4, 0.9, 90, 101}, {-0.36, 0.9, 106, 104}, {-0.09, 0.9, 101, 97}}},
        {"a quarter of the weight above the bound: (100 x 4.47 + 104 x 1.25) / 5.72",
         4,
         4,
         3,
         101,
         {{-0.9, 0.9, 60, 100}, {-0.05, 0.9, 100, 104}, {0.04, 0.9, 104, 110}}},
    };
    for (size_t i = 0; i < FL_COUNT(row); i++) {
        const int gear = stop(row[i].n, row[i].memory, row[i].count, row[i].m);
        FL_CHECK(gear == row[i].expected, "%s: %d, expected %d", row[i].why, gear, row[i].expected);
    }
}

FL_SUITE("reference_rules", {"kinds of kernels", test_products}, {"merge", test_merge}, {"index", test_index},
         {"radius of comparison", test_radius}, {"a GPU that loses nothing", test_free_of_loss},
         {"table of gains", test_gains}, {"stop rule", test_stop})
