/* MF-GPOEO as released, what a window measures: kinds of kernels and gaps, the database they join, the loss that they
 * give, totals of the library's samples. By hand. */
#include "policies/mfgpoeo/inside.h"
#include "policies/policy.h"
#include "tests/support/suite.h"

#include <math.h>

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(1, fmax(fabs(a), fabs(b))); }

/* ---- kinds ---- */

static const fl_mfg_trace whole = {.begin_ns = 1, .end_ns = INT64_MAX, .cores = 10240};

static fl_mfg_data *new_data(void) {
    fl_mfg_data *d = calloc(1, sizeof *d);
    if (!d)
        exit(1);
    return d;
}

static void put_kind(fl_mfg_data *d, const fl_mfg_trace *trace, const fl_kernel_kind *kind, uint32_t stream,
                     int64_t start, int64_t end) {
    const fl_kernel_record record = {.start_ns = start, .end_ns = end, .stream = stream};
    fl_mfg_add(d, trace, kind, &record);
}

static void put(fl_mfg_data *d, uint32_t name, uint32_t stream, int64_t start, int64_t end) {
    const fl_kernel_kind kind = {"k", name, {1, 1, 1}, {32, 1, 1}};
    put_kind(d, &whole, &kind, stream, start, end);
}

static uint32_t kinds_in(const fl_mfg_kind *table, uint32_t size) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < size; i++)
        count += table[i].key != 0;
    return count;
}

static uint32_t kernel_kinds(const fl_mfg_data *d) { return kinds_in(d->kernel, FL_MFG_KERNELS); }
static uint32_t gap_kinds(const fl_mfg_data *d) { return kinds_in(d->gap, FL_MFG_GAPS); }

static double now_ns(const fl_mfg_kind *table, uint32_t size) {
    double sum = 0;
    for (uint32_t i = 0; i < size; i++)
        sum += table[i].now.ns;
    return sum;
}

static void test_grid(void) {
    static const struct {
        uint64_t grid, block, cores, rounded;
    } row[] = {
        {1, 256, 10240, 40},   {40, 256, 10240, 40}, {41, 256, 10240, 80},    {1, 96, 10240, 106},
        {107, 96, 10240, 213}, {5, 0, 10240, 10240}, {1601, 64, 10240, 1760}, {3, 512, 5120, 10},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        FL_CHECK(fl_mfg_grid(row[i].grid, row[i].block, row[i].cores) == row[i].rounded, "row %zu: %g", i,
                 (double)fl_mfg_grid(row[i].grid, row[i].block, row[i].cores));
}

/* Name, stream, rounded grid and product of the block make a kind; the shape of the block does not. */
static void test_kernel_kinds(void) {
    static const struct {
        fl_kernel_kind kind;
        uint32_t stream, kinds;
    } row[] = {
        {{"k", 1, {10, 1, 1}, {256, 1, 1}}, 0, 1}, {{"k", 1, {40, 1, 1}, {256, 1, 1}}, 0, 1},
        {{"k", 1, {5, 2, 1}, {32, 4, 2}}, 0, 1},   {{"k", 2, {10, 1, 1}, {256, 1, 1}}, 0, 2},
        {{"k", 1, {41, 1, 1}, {256, 1, 1}}, 0, 3}, {{"k", 1, {10, 1, 1}, {128, 1, 1}}, 0, 4},
        {{"k", 1, {10, 1, 1}, {256, 1, 1}}, 5, 5}, {{"k", 2, {39, 1, 1}, {256, 1, 1}}, 0, 5},
    };
    fl_mfg_data *d = new_data();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        put_kind(d, &whole, &row[i].kind, row[i].stream, 2000 + 100 * (int64_t)i, 2050 + 100 * (int64_t)i);
        FL_CHECK(kernel_kinds(d) == row[i].kinds, "row %zu: %u kinds", i, kernel_kinds(d));
    }
    FL_CHECK(d->kernels == 8 && near(now_ns(d->kernel, FL_MFG_KERNELS), 400), "%g kernels", d->kernels);
    free(d);
}

static void test_gap_kinds(void) {
    static const struct {
        uint32_t name, stream;
        int64_t start, end;
        uint32_t kinds;
        double ns; /* of all gaps */
    } row[] = {
        {1, 0, 1000, 1100, 0, 0},                        /* before a stream's first kernel: none */
        {2, 0, 1150, 1200, 1, 50},                       /* 1 -> 2 */
        {1, 0, 1230, 1300, 2, 80},                       /* 2 -> 1 */
        {2, 0, 1300, 1400, 2, 80},                       /* no time between: none */
        {1, 0, 1390, 1500, 2, 80},                       /* overlap: none */
        {2, 0, 1570, 1600, 2, 150},                      /* 1 -> 2 again */
        {1, 7, 1620, 1700, 2, 150},                      /* another stream's first */
        {2, 7, 1710, 1800, 3, 160},                      /* 1 -> 2, but of stream 7 */
        {3, 0, 9000001600, 9000001700, 4, 9000000160.0}, /* 2 -> 3: nine seconds are a gap like any */
        {3, 0, 9000001710, 9000001800, 5, 9000000170.0}, /* 3 -> 3 */
    };
    fl_mfg_data *d = new_data();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        put(d, row[i].name, row[i].stream, row[i].start, row[i].end);
        FL_CHECK(gap_kinds(d) == row[i].kinds && near(now_ns(d->gap, FL_MFG_GAPS), row[i].ns), "row %zu: %u kinds, %g",
                 i, gap_kinds(d), now_ns(d->gap, FL_MFG_GAPS));
    }
    fl_mfg_break(d); /* another trace: the next kernel is its first */
    put(d, 3, 0, 9000001900, 9000002000);
    FL_CHECK(near(now_ns(d->gap, FL_MFG_GAPS), 9000000170.0), "a gap before the first kernel of a trace");
    free(d);
}

/* Start or end 0, and what lies outside the window: dropped, and the next gap runs from the kernel before. */
static void test_dropped(void) {
    static const fl_mfg_trace window = {.begin_ns = 1000, .end_ns = 2000, .cores = 10240};
    static const struct {
        int64_t start, end;
        double kernels;
    } row[] = {{1000, 1100, 1}, {0, 1200, 1},    {1200, 0, 1},    {1200, -1, 1},   {1300, 1200, 1},
               {999, 1200, 1},  {1900, 2001, 1}, {1150, 1300, 2}, {1900, 2000, 3}, {1901, 1901, 4}};
    const fl_kernel_kind kind = {"k", 1, {1, 1, 1}, {32, 1, 1}};
    const fl_mfg_trace early = {.begin_ns = 0, .end_ns = 2000, .cores = 10240};
    fl_mfg_data *d = new_data();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        put_kind(d, row[i].start ? &window : &early, &kind, 0, row[i].start, row[i].end);
        FL_CHECK(d->kernels == row[i].kernels, "row %zu: %g kernels", i, d->kernels);
    }
    FL_CHECK(near(now_ns(d->gap, FL_MFG_GAPS), 50 + 600), "gaps of %g ns", now_ns(d->gap, FL_MFG_GAPS));
    free(d);
}

static const fl_mfg_kind *only_kernel(const fl_mfg_data *d) {
    for (uint32_t i = 0; i < FL_MFG_KERNELS; i++)
        if (d->kernel[i].key)
            return &d->kernel[i];
    exit(1);
}

/* n_old kernels of 100 ns stand in the database, n_new of 200 ns are measured. */
static void test_merge(void) {
    static const struct {
        uint32_t n_old, n_new;
        double d, n, ns;
    } row[] = {
        {0, 3, 0.5, 3, 600},                               /* only new: copied */
        {5, 0, 0.5, 5, 500},                               /* only old: unchanged */
        {4, 3, 0.5, 5, 600 + 200},                         /* both: m = 2 */
        {5, 3, 0.5, 6, 600 + 300},                         /* m = round(2.5) = 3, away from zero */
        {5, 3, 0.8, 7, 600 + 400},    {3, 1, 0.1, 1, 200}, /* m = round(0.3) = 0 */
        {10, 2, 1.5, 17, 400 + 1500},                      /* relative factors may pass 1 */
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_mfg_data *d = new_data();
        for (uint32_t k = 0; k < row[i].n_old; k++)
            put(d, 1, 0, 1000 * (k + 1), 1000 * (k + 1) + 100);
        fl_mfg_merge(d, 0.3);
        fl_mfg_clear(d);
        for (uint32_t k = 0; k < row[i].n_new; k++)
            put(d, 1, 0, 1000 * (k + 1), 1000 * (k + 1) + 200);
        fl_mfg_merge(d, row[i].d);
        const fl_mfg_sums *b = &only_kernel(d)->base;
        const double old = row[i].n - row[i].n_new, ns2 = row[i].n_new * 4e4 + old * 1e4;
        FL_CHECK(near(b->n, row[i].n) && near(b->ns, row[i].ns) && near(b->ns2, ns2), "row %zu: n %g, %g ns, %g", i,
                 b->n, b->ns, b->ns2);
        free(d);
    }
}

/* Kinds that no merge has kept make room; those of the database stay. What finds no room is counted. */
static void test_room(void) {
    fl_mfg_data *d = new_data();
    for (uint32_t i = 0; i < FL_MFG_KERNELS; i++)
        put(d, i + 1, 0, 1000 + 10 * (int64_t)i, 1005 + 10 * (int64_t)i);
    for (uint32_t i = 0; i < 2 * FL_MFG_KERNELS; i++)
        put(d, FL_MFG_KERNELS + i + 1, 0, 1000 + 10 * (int64_t)i, 1005 + 10 * (int64_t)i);
    FL_CHECK(d->over > 0 && d->over_ns > 0 && kernel_kinds(d) <= FL_MFG_KERNELS, "%g over", d->over);
    fl_mfg_clear(d);
    FL_CHECK(kernel_kinds(d) == 0 && d->kernels == 0 && d->over_ns == 0, "%u kinds", kernel_kinds(d));
    put(d, 1, 0, 1000, 1100);
    fl_mfg_merge(d, 1);
    put(d, 2, 0, 2000, 2100);
    fl_mfg_clear(d);
    FL_CHECK(kernel_kinds(d) == 1 && only_kernel(d)->base.n == 1, "%u kinds", kernel_kinds(d));
    const double over = (double)d->over;
    for (uint32_t i = 0; i < 2 * FL_MFG_STREAMS; i++)
        put(d, 1, i, 3000, 3100);
    FL_CHECK(near(d->over_ns, 100 * FL_MFG_STREAMS) && (double)d->over - over == FL_MFG_STREAMS,
             "%g ns of %g kernels of streams without room", d->over_ns, (double)d->over - over);
    free(d);
}

/* ---- the index ---- */

typedef struct load_row { /* kernels of one stream, each after a gap: name n, mean and gap in ns */
    uint32_t stream, name, count;
    int64_t ns, gap;
} load_row;

static void run_loads(fl_mfg_data *d, const load_row *row, size_t rows) {
    int64_t at[8] = {0};
    fl_mfg_clear(d);
    fl_mfg_break(d);
    for (size_t i = 0; i < rows; i++)
        for (uint32_t k = 0; k < row[i].count; k++) {
            int64_t *t = &at[row[i].stream];
            *t += *t ? row[i].gap : 1000;
            put(d, row[i].name, row[i].stream, *t, *t + row[i].ns);
            *t += row[i].ns;
        }
}

static fl_mfg_index index_of(const load_row *base, size_t bases, const load_row *now, size_t nows, double window_s) {
    fl_mfg_data *d = new_data();
    run_loads(d, base, bases);
    fl_mfg_merge(d, 1);
    run_loads(d, now, nows);
    const fl_mfg_index i = fl_mfg_compare(d, 10, 2.5, window_s);
    free(d);
    return i;
}

#define ROWS(rows) rows, sizeof(rows) / sizeof *(rows)

static void test_one_stream(void) {
    static const load_row base[] = {{0, 1, 10, 100, 50}, {0, 2, 10, 300, 20}};
    static const load_row now[] = {{0, 1, 4, 120, 60}, {0, 2, 8, 330, 20}};
    const fl_mfg_index i = index_of(ROWS(base), ROWS(now), 4000e-9);
    /* Matched gaps: 1->1 (3 times 60 against 50), 2->2 (7 times 20 against 20); 1->2 was seen once. */
    const double k = 4 * 120 + 8 * 330, b = 4 * 100 + 8 * 300, gc = 3 * 60 + 7 * 20, gb = 3 * 50 + 7 * 20;
    const double w = k / 4000 * (k / 4000), scale = w / (w + 1e-12);
    FL_CHECK(near(i.loss, ((k + gc) / (k * b / k + gb) - 1) * scale) && near(i.exe, (k / b - 1) * scale) &&
                 near(i.gap, (gc / gb - 1) * scale),
             "loss %.9g, exe %.9g, gap %.9g", i.loss, i.exe, i.gap);
    FL_CHECK(near(i.covered, 1) && near(i.matched, 1) && near(i.unmatched, 0), "covered %g, matched %g", i.covered,
             i.matched);
}

/* All kernel time counts, also of kinds that the database lacks: it is scaled as the rest. Its gaps do not. */
static void test_unknown_kind(void) {
    static const load_row base[] = {{0, 1, 10, 100, 50}};
    static const load_row now[] = {{0, 1, 5, 110, 55}, {0, 9, 5, 1000, 70}};
    const fl_mfg_index i = index_of(ROWS(base), ROWS(now), 6000e-9);
    const double e = 5 * 110 + 5 * 1000, gc = 4 * 55, gb = 4 * 50;
    const double expected = (e + gc) / (e * 500 / 550 + gb) - 1;
    FL_CHECK(near(i.loss, expected) || fabs(i.loss - expected) < 1e-9, "loss %.9g, expected %.9g", i.loss, expected);
    FL_CHECK(near(i.covered, 550 / e) && near(i.matched, 550 / e) && near(i.unmatched, 0), "covered %g", i.covered);
}

/* Each stream weighs as the square of its kernel time over the window. */
static void test_streams(void) {
    static const load_row base[] = {{0, 1, 10, 100, 50}, {1, 2, 10, 200, 50}, {2, 3, 10, 100, 50}};
    static const load_row now[] = {{0, 1, 10, 120, 50}, {1, 2, 10, 220, 50}, {2, 9, 10, 100, 50}};
    const fl_mfg_index i = index_of(ROWS(base), ROWS(now), 4000e-9);
    const double w0 = 0.3 * 0.3, w1 = 0.55 * 0.55;
    const double p0 = (1200 + 450) / (1000 + 450.0) - 1, p1 = (2200 + 450) / (2000 + 450.0) - 1;
    const double loss = (w0 * p0 + w1 * p1) / (w0 + w1 + 1e-12);
    const double exe = (w0 * 0.2 + w1 * 0.1) / (w0 + w1 + 1e-12);
    FL_CHECK(near(i.loss, loss) && near(i.exe, exe), "loss %.9g, expected %.9g, exe %.9g", i.loss, loss, i.exe);
    FL_CHECK(near(i.unmatched, 1000 / 4400.0) && near(i.covered, 3400 / 4400.0), "unmatched %g", i.unmatched);
}

/* A stream without a matched gap adds nothing to the gaps' index, and nothing of gaps to its loss. */
static void test_no_gaps(void) {
    static const load_row base[] = {{0, 1, 10, 100, 50}, {1, 2, 10, 200, 0}};
    static const load_row now[] = {{0, 1, 10, 100, 60}, {1, 2, 10, 220, 0}};
    const fl_mfg_index i = index_of(ROWS(base), ROWS(now), 4000e-9);
    const double w0 = 0.25 * 0.25, w1 = 0.55 * 0.55, p0 = (1000 + 540) / (1000 + 450.0) - 1;
    FL_CHECK(near(i.gap, 0.2 * w0 / (w0 + 1e-12)), "gap %.9g", i.gap);
    FL_CHECK(near(i.loss, (w0 * p0 + w1 * 0.1) / (w0 + w1 + 1e-12)), "loss %.9g", i.loss);
    const fl_mfg_index none = index_of(base + 1, 1, now + 1, 1, 4000e-9);
    FL_CHECK(none.gap == 0 && fabs(none.loss - 0.1) < 1e-9, "gap %g, loss %g", none.gap, none.loss);
}

/* One kind per row of `cv`: deviation over mean in the database and in the window, and whether it is compared. */
static void test_radius(void) {
    static const struct {
        bool gap;
        double n_base, cv_base, n_now, cv_now;
        bool compared;
    } row[] = {
        {false, 5, 10, 5, 10, true},   {false, 5, 10.001, 5, 1, false}, {false, 5, 1, 5, 10.001, false},
        {false, 1, 0, 1, 0, true},     {true, 2, 2.5, 2, 2.5, true},    {true, 2, 2.501, 2, 0, false},
        {true, 2, 0, 2, 2.501, false}, {true, 1, 0, 5, 0, false},       {true, 5, 0, 1, 0, false},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_mfg_data *d = new_data();
        const double square = 10000 * (1 + row[i].cv_base * row[i].cv_base),
                     now_square = 40000 * (1 + row[i].cv_now * row[i].cv_now);
        const fl_mfg_kind kind = {.key = 1,
                                  .base = {row[i].n_base, 100 * row[i].n_base, square * row[i].n_base},
                                  .now = {row[i].n_now, 200 * row[i].n_now, now_square * row[i].n_now}};
        d->kernel[0] = (fl_mfg_kind){.key = 1, .base = {10, 10000, 1e7}, .now = {10, 10000, 1e7}};
        *(row[i].gap ? &d->gap[0] : &d->kernel[0]) = kind;
        d->kernels = 1;
        const fl_mfg_index x = fl_mfg_compare(d, 10, 2.5, 1e-6);
        const double shown = row[i].gap ? x.gap : x.matched;
        FL_CHECK(row[i].compared == (shown > 0.9), "row %zu: gap %g, matched %g", i, x.gap, x.matched);
        FL_CHECK(row[i].gap || near(x.covered, 1), "row %zu: covered %g", i, x.covered);
        free(d);
    }
}

static void test_nothing_matched(void) {
    static const load_row base[] = {{0, 1, 10, 100, 50}}, other[] = {{0, 2, 10, 100, 50}};
    fl_mfg_index i = index_of(ROWS(base), ROWS(other), 4000e-9);
    FL_CHECK(i.loss == 0.05 && i.exe == 0.05 && i.gap == 0.05, "loss %g, %g, %g", i.loss, i.exe, i.gap);
    FL_CHECK(i.covered == 0 && i.matched == 0 && i.unmatched == 1, "covered %g", i.covered);
    i = index_of(base, 0, ROWS(other), 4000e-9);
    FL_CHECK(i.loss == 0.05 && i.covered == 0, "empty database: loss %g", i.loss);
    i = index_of(ROWS(base), other, 0, 4000e-9);
    FL_CHECK(i.loss == 0.05 && i.covered == 0.94, "empty window: loss %g, covered %g", i.loss, i.covered);
}

static void test_objective(void) {
    FL_CHECK(near(fl_mfg_objective(150, 300, 0.1, 1), 0.55), "energy");
    FL_CHECK(near(fl_mfg_objective(150, 300, 0.1, 2), 0.605), "EDP");
    FL_CHECK(near(fl_mfg_objective(150, 300, 0.1, 3), 0.6655), "ED2P");
    FL_CHECK(fl_mfg_objective(150, 0, 0.1, 1) == 0, "no power in the database");
}

/* ---- totals ---- */

static fl_gpu_sample sample_of(double power, double sm, double mem, double util, double util_mem) {
    fl_gpu_sample s = {.valid = UINT64_MAX};
    s.value[FL_GPU_POWER_W] = power;
    s.value[FL_GPU_SM_MHZ] = sm;
    s.value[FL_GPU_MEM_MHZ] = mem;
    s.value[FL_GPU_UTIL_GPU_PCT] = util;
    s.value[FL_GPU_UTIL_MEM_PCT] = util_mem;
    return s;
}

static void test_samples(void) {
    static const int signal[] = {FL_GPU_POWER_W, FL_GPU_SM_MHZ, FL_GPU_MEM_MHZ, FL_GPU_UTIL_GPU_PCT,
                                 FL_GPU_UTIL_MEM_PCT};
    fl_mfg_totals t = {.seconds = 0};
    fl_gpu_sample s = sample_of(250.9, 2000, 9501, 80, 20);
    fl_mfg_sample(&t, &s);
    FL_CHECK(t.samples == 1 && fl_mfg_mean_of(&t, FL_MFG_POWER) == 250, "%g W", fl_mfg_mean_of(&t, FL_MFG_POWER));
    s = sample_of(30, 210, 405, 0, 0); /* idle: of no mean */
    fl_mfg_sample(&t, &s);
    FL_CHECK(t.samples == 1, "an idle sample counts");
    fl_mfg_totals least = {.seconds = 0};
    s = sample_of(30, 210, 405, 0.5, 0);
    fl_mfg_sample(&least, &s);
    FL_CHECK(least.samples == 1, "a GPU that is hardly busy does not count");
    for (size_t i = 0; i < 5; i++) {
        s = sample_of(251.2, 1000, 5001, 40, 10);
        s.valid &= ~FL_BIT(signal[i]);
        fl_mfg_sample(&t, &s);
        FL_CHECK(t.samples == 1, "signal %zu is not known, and the sample counts", i);
    }
    s = sample_of(251.2, 1000, 5001, 40, 10);
    fl_mfg_sample(&t, &s);
    FL_CHECK(fl_mfg_mean_of(&t, FL_MFG_POWER) == 250.5 && fl_mfg_mean_of(&t, FL_MFG_SM) == 1500 &&
                 fl_mfg_mean_of(&t, FL_MFG_MEM) == 7251 && fl_mfg_mean_of(&t, FL_MFG_UTIL_GPU) == 60 &&
                 fl_mfg_mean_of(&t, FL_MFG_UTIL_MEM) == 15,
             "means %g %g %g %g %g", fl_mfg_mean_of(&t, 0), fl_mfg_mean_of(&t, 1), fl_mfg_mean_of(&t, 2),
             fl_mfg_mean_of(&t, 3), fl_mfg_mean_of(&t, 4));
    FL_CHECK(fl_mfg_mean_of(&(fl_mfg_totals){.seconds = 1}, FL_MFG_POWER) == 0, "a mean of nothing");
}

static void test_totals(void) {
    fl_mfg_totals old = {.seconds = 10, .kernels = 1000, .samples = 100, .sum = {1, 2, 3, 4, 5}};
    const fl_mfg_totals now = {.seconds = 4, .kernels = 500, .samples = 35, .sum = {10, 20, 30, 40, 50}};
    fl_mfg_totals_merge(&old, &now, 0.5);
    FL_CHECK(old.seconds == 9 && old.kernels == 1000 && old.samples == 85, "%g s, %g kernels, %g samples", old.seconds,
             old.kernels, old.samples);
    for (int i = 0; i < 5; i++)
        FL_CHECK(old.sum[i] == 10 * (i + 1) + 0.5 * (i + 1), "sum %d: %g", i, old.sum[i]);
}

FL_SUITE("mfgpoeo_kinds", {"grids", test_grid}, {"kinds of kernels", test_kernel_kinds},
         {"kinds of gaps", test_gap_kinds}, {"dropped records", test_dropped}, {"the database decays", test_merge},
         {"room for kinds", test_room}, {"one stream", test_one_stream},
         {"a kind that the database lacks", test_unknown_kind}, {"streams by their weight", test_streams},
         {"a stream without gaps", test_no_gaps}, {"radius", test_radius}, {"nothing to compare", test_nothing_matched},
         {"objective", test_objective}, {"samples", test_samples}, {"totals", test_totals})
