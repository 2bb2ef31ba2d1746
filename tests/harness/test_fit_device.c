#include "harness/input/platform/platform.h"
#include "models/chip/chip.h"
#include "models/fit/fit.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/fit_voltage.h"
#include "tests/support/suite.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define CLOCKS_MAX 64
#define KERNELS_MAX 1024
static const uint64_t seed = 20241;

/* ---- V(f), made up ---- */

typedef struct truth {
    const char *what;
    double from, step, floor, rise; /* MHz; V rises by so much per MHz above the floor */
    size_t clocks, kernels;
    double noise, flat, missing; /* relative; shares of kernels without slope, and of readings that are missing */
    double wild;                 /* share of readings that are off by 30 % */
    double tolerance;            /* of V */
} truth;

static double truth_volt(const truth *t, double f) { return 1 + t->rise * fmax(0, f - t->floor); }

static void make_powers(const truth *t, fl_random *random, double *f, double *p) {
    for (size_t i = 0; i < t->clocks; i++)
        f[i] = t->from + t->step * (double)i;
    for (size_t k = 0; k < t->kernels; k++) {
        const double c = 40 + 80 * fl_random_unit(random);
        const double s = fl_random_unit(random) < t->flat ? 0.0005 : 0.02 + 0.1 * fl_random_unit(random);
        for (size_t i = 0; i < t->clocks; i++) {
            const double v = truth_volt(t, f[i]);
            double *at = &p[k * t->clocks + i];
            *at = (c + s * v * v * f[i]) * (1 + t->noise * fl_random_normal(random));
            if (fl_random_unit(random) < t->wild)
                *at *= 1.3;
            if (fl_random_unit(random) < t->missing)
                *at = NAN;
        }
    }
}

static void test_voltage_recovered(void) {
    static const truth rows[] = {
        {"exact", 600, 40, 1000, 1e-3, 15, 3, 0, 0, 0, 0, 1e-6},
        {"one kernel, exact", 600, 40, 1000, 1e-3, 15, 1, 0, 0, 0, 0, 1e-6},
        {"noise", 600, 40, 1000, 1e-3, 15, 40, 0.005, 0, 0, 0, 0.01},
        {"kernels without slope", 600, 40, 1000, 1e-3, 15, 60, 0.005, 0.7, 0, 0, 0.015},
        {"missing readings", 600, 40, 1000, 1e-3, 15, 60, 0.005, 0.2, 0.3, 0, 0.015},
        {"wild readings", 600, 40, 1000, 1e-3, 15, 60, 0.005, 0.2, 0.1, 0.05, 0.02},
        {"a high floor", 757, 64, 1300, 6e-4, 13, 30, 0.005, 0, 0, 0, 0.01},
        {"all floor", 600, 40, 3000, 0, 15, 20, 0.005, 0, 0, 0, 0.01},
        {"four clocks", 600, 200, 1000, 1e-3, 4, 20, 0.002, 0, 0, 0, 0.01},
    };
    printf(" seed %llu ", (unsigned long long)seed);
    for (size_t r = 0; r < COUNT(rows); r++) {
        fl_random random = fl_random_seed(seed, r);
        double f[CLOCKS_MAX], p[CLOCKS_MAX * 64], v[CLOCKS_MAX], g[CLOCKS_MAX];
        voltage_fit fit = {0};
        make_powers(&rows[r], &random, f, p);
        const size_t n = rows[r].clocks;
        const fl_model_status s = fit_voltage(f, n, p, rows[r].kernels, v, g, &fit);
        FL_CHECK(s == FL_MODEL_OK, "%s: %s", rows[r].what, fl_model_text(s));
        if (s != FL_MODEL_OK)
            continue;
        for (size_t i = 0; i < n; i++) {
            FL_CHECK(fabs(v[i] - truth_volt(&rows[r], f[i])) < rows[r].tolerance, "%s: V %.4f at %g MHz, is %.4f",
                     rows[r].what, v[i], f[i], truth_volt(&rows[r], f[i]));
            FL_CHECK(i == 0 ? v[i] == 1 : v[i] >= v[i - 1], "%s: falls at %g MHz", rows[r].what, f[i]);
            FL_CHECK(fabs(sqrt(g[i] / f[i]) - v[i]) < 2 * rows[r].tolerance, "%s: g %g at %g MHz", rows[r].what, g[i],
                     f[i]);
        }
        const double top = fmin(rows[r].floor, f[n - 1]), step = rows[r].step;
        FL_CHECK(fit.floor_mhz > top - 1.01 * step && fit.floor_mhz <= top + 0.01 * step, "%s: floor up to %g MHz",
                 rows[r].what, fit.floor_mhz);
        FL_CHECK(rows[r].wild > 0 || fit.rms_pct < 130 * rows[r].noise + 1e-6, "%s: RMS %g %%", rows[r].what,
                 fit.rms_pct);
        FL_CHECK(rows[r].kernels == 1 ? isnan(fit.uncertainty_pct) : fit.uncertainty_pct < 100 * rows[r].tolerance,
                 "%s: uncertain by %g %%", rows[r].what, fit.uncertainty_pct);
        FL_CHECK(fl_voltage_floor_mhz(f, v, n, 1e-3) >= fit.floor_mhz, "%s: floor by tolerance", rows[r].what);
    }
}

/* A dip above the floor is pooled with what comes before it, and never goes below 1. */
static void test_voltage_monotone(void) {
    static const double f[] = {500, 600, 700, 800, 900, 1000, 1100, 1200};
    static const double is[] = {1, 1, 1, 1, 0.95, 1.1, 1.06, 1.2}, want[] = {1, 1, 1, 1, 1, 1.08, 1.08, 1.2};
    double p[8], v[8], g[8];
    voltage_fit fit = {0};
    for (size_t i = 0; i < 8; i++)
        p[i] = 50 + 0.1 * is[i] * is[i] * f[i];
    FL_CHECK(fit_voltage(f, 8, p, 1, v, g, &fit) == FL_MODEL_OK && fit.floor_count == 4, "floor of %zu",
             fit.floor_count);
    for (size_t i = 0; i < 8; i++)
        FL_CHECK(fabs(v[i] - want[i]) < 1e-6 && fabs(sqrt(g[i] / f[i]) - is[i]) < 1e-6, "V %g, g %g at %g MHz", v[i],
                 g[i], f[i]);
}

static void test_voltage_refused(void) {
    const double f[] = {500, 600, 700, 800, 900}, back[] = {500, 600, 600, 800, 900};
    double p[] = {100, 110, 120, 130, 140, 50, 60, 70, 80, 90}, v[15] = {-7};
    voltage_fit fit = {.rms_pct = -7};
    FL_CHECK(fit_voltage(f, 5, p, 2, NULL, NULL, &fit) == FL_MODEL_OK && fit.floor_count == 5, "sound, bare");
    fit.rms_pct = -7;
    FL_CHECK(fit_voltage(f, 3, p, 2, v, NULL, &fit) == FL_MODEL_INVALID, "three clocks");
    FL_CHECK(fit_voltage(f, 5, p, 0, v, NULL, &fit) == FL_MODEL_INVALID, "no kernel");
    FL_CHECK(fit_voltage(back, 5, p, 2, v, NULL, &fit) == FL_MODEL_INVALID, "clocks not ascending");
    FL_CHECK(fit_voltage(f, 5, p, SIZE_MAX / 8, v, NULL, &fit) == FL_MODEL_INVALID, "more kernels than memory");
    static const double bad[] = {0, -1, INFINITY};
    for (size_t i = 0; i < COUNT(bad); i++) {
        p[3] = bad[i];
        FL_CHECK(fit_voltage(f, 5, p, 2, v, NULL, &fit) == FL_MODEL_INVALID, "a power of %g", bad[i]);
    }
    p[3] = p[8] = NAN;
    FL_CHECK(fit_voltage(f, 5, p, 2, v, NULL, &fit) == FL_MODEL_NO_FIT, "a clock without a reading");
    double falls[] = {140, 130, 120, 110, 100}, flat[] = {100, 100, 100, 100, 100};
    double scatter[] = {100, 130, 90, 125, 110, 60, 40, 70, 45, 52}, two[] = {100, 110, NAN, NAN, NAN};
    FL_CHECK(fit_voltage(f, 5, falls, 1, v, NULL, &fit) == FL_MODEL_NO_FIT, "power that falls");
    FL_CHECK(fit_voltage(f, 5, flat, 1, v, NULL, &fit) == FL_MODEL_NO_FIT, "power that no clock changes");
    FL_CHECK(fit_voltage(f, 5, scatter, 2, v, NULL, &fit) == FL_MODEL_NO_FIT, "noise");
    FL_CHECK(fit_voltage(f, 5, two, 1, v, NULL, &fit) == FL_MODEL_NO_FIT, "two readings");
    /* Slopes of a few percent of the power under noise of five. */
    const truth weak = {"weak", 600, 40, 1000, 1e-3, 15, 3, 0.05, 1, 0, 0, 0};
    for (size_t i = 0; i < 8; i++) {
        fl_random random = fl_random_seed(seed, 200 + i);
        double many[15], noisy[45];
        make_powers(&weak, &random, many, noisy);
        FL_CHECK(fit_voltage(many, 15, noisy, 3, v, NULL, &fit) == FL_MODEL_NO_FIT, "weak slopes, case %zu: V to %g %%",
                 i, fit.uncertainty_pct);
    }
    FL_CHECK(v[0] == -7 && fit.rms_pct == -7, "written without a fit");
    const double volt[] = {1, 1.01, 1.03, 1.2, 1.02};
    FL_CHECK(fl_voltage_floor_mhz(f, volt, 5, 0.02) == 600 && fl_voltage_floor_mhz(f, volt, 5, 0.05) == 700,
             "floor by tolerance");
    FL_CHECK(isnan(fl_voltage_floor_mhz(f, volt + 2, 3, 0.02)), "no floor");
}

/* ---- measured sweeps ---- */

static bool data_file(char *path, size_t size, const char *name) {
    const char *folder = getenv("FOLDLINE_DATA");
    snprintf(path, size, "%s/%s", folder ? folder : "", name);
    FILE *f = folder ? fopen(path, "r") : NULL;
    if (!f) {
        printf("\n    skipped: %s (set FOLDLINE_DATA)", name);
        return false;
    }
    fclose(f);
    return true;
}

static size_t place(double *list, size_t *count, double value) { /* in a short ascending list */
    size_t i = 0;
    while (i < *count && list[i] < value)
        i++;
    if (i < *count && list[i] <= value)
        return i;
    CU_ASSERT_FATAL(*count < CLOCKS_MAX);
    memmove(list + i + 1, list + i, (*count - i) * sizeof *list);
    list[i] = value;
    ++*count;
    return i;
}

typedef struct grid { /* [kernel][SM clock], at the lowest and the highest memory clock */
    double sm[CLOCKS_MAX], mem[CLOCKS_MAX];
    size_t sm_count, mem_count, kernels;
    uint32_t id[KERNELS_MAX][2];
    double *low_s, *low_w, *high_s, *high_w;
} grid;

static bool read_grid(const char *path, grid *g) {
    fl_sweep s;
    fl_diag d = {0};
    *g = (grid){0};
    const fl_status status = fl_sweep_read(path, &s, NULL, &d);
    FL_CHECK(status == FL_OK, "%s", d.message);
    if (status != FL_OK)
        return false;
    for (size_t i = 0; i < s.row_count; i++) {
        const fl_sweep_row *r = &s.rows[i];
        size_t k = 0;
        while (k < g->kernels && (g->id[k][0] != r->workload || g->id[k][1] != r->kernel))
            k++;
        CU_ASSERT_FATAL(k < KERNELS_MAX);
        if (k == g->kernels) {
            g->id[k][0] = r->workload;
            g->id[g->kernels++][1] = r->kernel;
        }
        place(g->sm, &g->sm_count, r->sm_mhz);
        place(g->mem, &g->mem_count, r->mem_mhz);
    }
    const size_t cells = g->kernels * g->sm_count;
    g->low_s = malloc(4 * cells * sizeof *g->low_s);
    CU_ASSERT_FATAL(g->low_s != NULL);
    g->low_w = g->low_s + cells;
    g->high_s = g->low_w + cells;
    g->high_w = g->high_s + cells;
    for (size_t i = 0; i < 4 * cells; i++)
        g->low_s[i] = NAN;
    for (size_t i = 0; i < s.row_count; i++) {
        const fl_sweep_row *r = &s.rows[i];
        size_t k = 0;
        while (g->id[k][0] != r->workload || g->id[k][1] != r->kernel)
            k++;
        const size_t at = k * g->sm_count + place(g->sm, &g->sm_count, r->sm_mhz);
        const size_t m = place(g->mem, &g->mem_count, r->mem_mhz);
        if (m == 0) {
            g->low_s[at] = r->time_s;
            g->low_w[at] = r->power_w;
        }
        if (m == g->mem_count - 1) {
            g->high_s[at] = r->time_s;
            g->high_w[at] = r->power_w;
        }
    }
    fl_sweep_free(&s);
    return true;
}

/* Titan X at its default memory clock: power is linear in f up to about 975 MHz, then steepens. */
static void test_titan_voltage(void) {
    static const char *const files[] = {"sweeps/gtx-titan-x-micro.csv", "sweeps/gtx-titan-x.csv"};
    for (size_t i = 0; i < COUNT(files); i++) {
        char path[1024];
        grid g;
        if (!data_file(path, sizeof path, files[i]) || !read_grid(path, &g))
            continue;
        double v[CLOCKS_MAX], dynamic[CLOCKS_MAX];
        voltage_fit fit = {0};
        const size_t n = g.sm_count;
        const fl_model_status s = fit_voltage(g.sm, n, g.high_w, g.kernels, v, dynamic, &fit);
        FL_CHECK(s == FL_MODEL_OK, "%s: %s", files[i], fl_model_text(s));
        if (s == FL_MODEL_OK) {
            const double floor = fl_voltage_floor_mhz(g.sm, v, n, 0.02);
            printf("\n    %s: %zu kernels at %g MHz memory: V = 1 up to %g MHz (within 2 %%: %g), g off its line by "
                   "%.2f %% RMS there; V %.3f at %g MHz, uncertain by %.2f %%; power RMS %.2f %%",
                   files[i], fit.kernels, g.mem[g.mem_count - 1], fit.floor_mhz, floor, fit.floor_rms_pct, v[n - 1],
                   g.sm[n - 1], fit.uncertainty_pct, fit.rms_pct);
            FL_CHECK(floor >= 937 && floor <= 1013, "%s: V floor up to %g MHz", files[i], floor);
            FL_CHECK(fit.floor_mhz >= 937 && fit.floor_mhz <= 1013, "%s: line up to %g MHz", files[i], fit.floor_mhz);
            FL_CHECK(v[n - 1] > 1.05, "%s: V %g at the top", files[i], v[n - 1]);
            FL_CHECK(fit.floor_rms_pct < 1, "%s: not linear below, %g %%", files[i], fit.floor_rms_pct);
            FL_CHECK(fit.rms_pct < 2, "%s: RMS %g %%", files[i], fit.rms_pct);
            for (size_t k = 0; k < n && g.sm[k] <= 937; k++) /* as measured, not only as made monotone */
                FL_CHECK(fabs(sqrt(dynamic[k] / g.sm[k]) - 1) < 0.02, "%s: V %g at %g MHz", files[i],
                         sqrt(dynamic[k] / g.sm[k]), g.sm[k]);
        }
        free(g.low_s);
    }
}

/* ---- B0(m) ---- */

static void test_idle_memory(void) {
    fl_random random = fl_random_seed(seed, 100);
    memory_pair pair[200];
    for (size_t i = 0; i < COUNT(pair); i++) { /* every third moves bytes, every twentieth is a bad reading */
        const double t = 1 + fl_random_unit(&random), w = 60 + 80 * fl_random_unit(&random);
        const bool moves = i % 3 == 0;
        pair[i] = (memory_pair){t * (moves ? 1.5 : 1 + 0.005 * (fl_random_unit(&random) - 0.5)), w, t,
                                w + 25 + (moves ? 30 : 0) + fl_random_normal(&random)};
        if (i % 20 == 1)
            pair[i].high_w += 200;
        if (i % 20 == 2)
            pair[i].low_w = NAN;
    }
    idle_memory r = {0};
    FL_CHECK(fit_idle_memory(pair, COUNT(pair), 0.01, &r) == FL_MODEL_OK, "fit");
    FL_CHECK(fabs(r.watts - 25) < 0.5 && r.spread_w > 0.5 && r.spread_w < 2, "%g W, spread %g W", r.watts, r.spread_w);
    size_t want = 0;
    for (size_t i = 0; i < COUNT(pair); i++)
        want += i % 3 != 0 && !isnan(pair[i].low_w);
    FL_CHECK(r.used == want && r.mean_w > r.watts + 5, "%zu of %zu used, mean %g W", r.used, want, r.mean_w);
    FL_CHECK(fit_idle_memory(pair, 2, 0.01, &r) == FL_MODEL_NO_FIT, "two pairs");
    FL_CHECK(fit_idle_memory(pair, 0, 0.01, &r) == FL_MODEL_NO_FIT, "no pair");
    FL_CHECK(fit_idle_memory(pair, 10, 0, &r) == FL_MODEL_INVALID, "no tolerance");
    pair[3].high_time_s = 0;
    FL_CHECK(fit_idle_memory(pair, 10, 0.01, &r) == FL_MODEL_INVALID, "no time");
}

/* Kernels that ignore the memory clock still lose 37 W from 3505 to 810 MHz. */
static void test_titan_memory(void) {
    static const char name[] = "sweeps/gtx-titan-x-micro.csv";
    char path[1024];
    grid g;
    if (!data_file(path, sizeof path, name) || !read_grid(path, &g))
        return;
    const size_t cells = g.kernels * g.sm_count;
    memory_pair *pair = calloc(cells, sizeof *pair);
    CU_ASSERT_FATAL(pair != NULL);
    for (size_t i = 0; i < cells; i++)
        pair[i] = (memory_pair){g.low_s[i], g.low_w[i], g.high_s[i], g.high_w[i]};
    idle_memory r = {0};
    const fl_model_status s = fit_idle_memory(pair, cells, 0.01, &r);
    printf("\n    %s: B0(%g) - B0(%g) = %.2f W (mean %.2f, spread %.2f, %zu of %zu pairs)", name,
           g.mem[g.mem_count - 1], g.mem[0], r.watts, r.mean_w, r.spread_w, r.used, cells);
    FL_CHECK(s == FL_MODEL_OK && fabs(r.watts - 37) < 3, "%g W", r.watts);
    free(pair);
    free(g.low_s);
}

/* ---- idle power ---- */

static void test_idle_points(void) {
    static const fl_idle_reading reading[] = {
        {0, 90, 800, 900},   /* nothing tells whether the clock is settled */
        {0, 50, 900, NAN},   /* counts: the clock set before */
        {1, 51, 900, 1000},  /* not idle */
        {0, 60, 1000, NAN},  /* counts */
        {0, 62, 1000, NAN},  /* counts */
        {0, 64, 1000, 900},  /* counts */
        {0, 99, 950, NAN},   /* on its way: neither the clock before nor the one set */
        {0, 52, 900, NAN},   /* not settled by what is known: the one before was another clock and set none */
        {0, 54, 900, NAN},   /* counts */
        {0, 80, 900, NAN},   /* a kernel has begun */
        {70, 99, 900, NAN},  /* busy */
        {0, 53, 900, NAN},   /* counts */
        {0, NAN, 900, NAN},  /* not read */
        {NAN, 53, 900, NAN}, /* unknown */
        {0, 55, 900, NAN},   /* the last: what follows is not known */
    };
    fl_idle_point point[COUNT(reading)];
    size_t n = 0;
    FL_CHECK(fl_idle_points(reading, COUNT(reading), point, &n) == FL_MODEL_OK && n == 2, "%zu points", n);
    FL_CHECK(point[0].sm_mhz == 900 && point[0].readings == 3 && point[0].power_w == 53, "%g MHz: %g W of %zu",
             point[0].sm_mhz, point[0].power_w, point[0].readings);
    FL_CHECK(point[1].sm_mhz == 1000 && point[1].readings == 3 && point[1].power_w == 62, "%g MHz: %g W of %zu",
             point[1].sm_mhz, point[1].power_w, point[1].readings);
    FL_CHECK(fl_idle_points(reading, 2, point, &n) == FL_MODEL_NO_FIT, "nothing idle");
    FL_CHECK(fl_idle_points(reading, 0, point, &n) == FL_MODEL_NO_FIT, "no reading");
    FL_CHECK(fl_idle_points(reading + 1, 6, point, &n) == FL_MODEL_OK && n == 1 && point[0].power_w == 62, "median");
}

static void test_idle_clock(void) {
    static const struct {
        const char *what;
        double fixed, c, a0;
        double volt[5];
        double want[3]; /* what the fit may say of them */
    } rows[] = {
        {"all three", 20, 15, 7, {1, 1, 1.06, 1.2, 1.33}, {20, 15, 7}},
        {"no clock tree", 20, 15, 0, {1, 1, 1.06, 1.2, 1.33}, {20, 15, 0}},
        {"no static part", 20, 0, 7, {1, 1, 1.06, 1.2, 1.33}, {20, 0, 7}},
        {"one voltage: C is in the fixed part", 20, 15, 7, {1, 1, 1, 1, 1}, {35, 0, 7}},
        {"nothing fixed", 0, 40, 7, {1, 1, 1.06, 1.2, 1.33}, {0, 40, 7}},
    };
    static const double mhz[] = {135, 855, 1050, 1245, 1440};
    for (size_t i = 0; i < COUNT(rows); i++) {
        fl_idle_point point[5];
        double predicted[5];
        for (size_t k = 0; k < 5; k++) {
            const double v = rows[i].volt[k];
            const double w = rows[i].fixed + rows[i].c * v + rows[i].a0 * v * v * mhz[k] / 1000;
            point[k] = (fl_idle_point){mhz[k], w, 1};
        }
        fl_idle_clock r = {0};
        FL_CHECK(fl_fit_idle_clock(point, rows[i].volt, 5, &r, predicted) == FL_MODEL_OK, "%s", rows[i].what);
        FL_CHECK(fabs(r.fixed_w - rows[i].want[0]) < 1e-5 && fabs(r.c_w - rows[i].want[1]) < 1e-5 &&
                     fabs(r.a0_w - rows[i].want[2]) < 1e-5 && r.worst_w < 1e-6,
                 "%s: %g, %g, %g, worst %g", rows[i].what, r.fixed_w, r.c_w, r.a0_w, r.worst_w);
        for (size_t k = 0; k < 5; k++)
            FL_CHECK(fabs(predicted[k] - point[k].power_w) < 1e-6, "%s: %g W", rows[i].what, predicted[k]);
        /* Power that falls with the clock: no term may go below zero for it. */
        for (size_t k = 0; k < 5; k++)
            point[k].power_w = 60 - 0.01 * mhz[k];
        FL_CHECK(fl_fit_idle_clock(point, rows[i].volt, 5, &r, NULL) == FL_MODEL_OK && r.fixed_w >= 0 && r.c_w >= 0 &&
                     r.a0_w >= 0 && r.rms_w > 1,
                 "%s, falling: %g, %g, %g", rows[i].what, r.fixed_w, r.c_w, r.a0_w);
        FL_CHECK(fl_fit_idle_clock(point, rows[i].volt, 2, &r, NULL) == FL_MODEL_NO_FIT, "two points");
        point[1].power_w = NAN;
        FL_CHECK(fl_fit_idle_clock(point, rows[i].volt, 5, &r, NULL) == FL_MODEL_INVALID, "no power");
    }
}

static bool platform_base(const fl_platform *p, double mhz, double *watts) {
    fl_base b = {0};
    const fl_device *dev = &p->node.device[0];
    const fl_model_status s = fl_base_make(dev, mhz, dev->default_mem_mhz, &b);
    FL_CHECK(s == FL_MODEL_OK, "%g MHz: %s", mhz, fl_model_text(s));
    *watts = b.total_mw / 1000.0;
    return s == FL_MODEL_OK;
}

/* What an idle V100 with an open context draws, published figures. The platform must say so, and the law must be able
 * to with its V(f). */
static void test_published_idle(void) {
    static const fl_idle_point point[] = {{135, 43, 1}, {855, 48, 1}, {1050, 51, 1}, {1245, 59, 1}, {1440, 65, 1}};
    fl_platform p;
    fl_diag d = {0};
    const fl_status status = fl_platform_open("v100-163w", 0, &p, &d);
    FL_CHECK(status == FL_OK, "%s", d.message);
    if (status != FL_OK)
        return;
    double volt[COUNT(point)], watts = 0;
    for (size_t i = 0; i < COUNT(point); i++) {
        FL_CHECK(platform_base(&p, point[i].sm_mhz, &watts) && fabs(watts - point[i].power_w) < 1.5, "%g MHz: %g W",
                 point[i].sm_mhz, watts);
        FL_CHECK(fl_curve_at(p.node.device[0].voltage, point[i].sm_mhz, 0, &volt[i]) == FL_MODEL_OK, "V");
    }
    fl_idle_clock r = {0};
    FL_CHECK(fl_fit_idle_clock(point, volt, COUNT(point), &r, NULL) == FL_MODEL_OK && r.worst_w < 1.5,
             "fixed %g W, C %g W, A0 %g W, worst %g W", r.fixed_w, r.c_w, r.a0_w, r.worst_w);
    fl_platform_free(&p);
}

/* The same from the readings themselves: those of each GPU on which something ran, as the others had no context. */
static void test_recorded_idle(void) {
    static const char name[] = "logs/geepafs-v100-maxq-p90.log";
    char path[1024];
    if (!data_file(path, sizeof path, name))
        return;
    fl_decisions log;
    fl_platform p;
    fl_diag d = {0};
    const fl_status read = fl_geepafs_read(path, &log, &d), opened = fl_platform_open("v100-163w", 0, &p, &d);
    FL_CHECK(read == FL_OK && opened == FL_OK, "%s", d.message);
    if (read != FL_OK || opened != FL_OK)
        return;
    fl_idle_reading *reading = calloc(log.step_count, sizeof *reading);
    fl_idle_point *point = calloc(log.step_count, sizeof *point);
    double *volt = calloc(log.step_count, sizeof *volt);
    CU_ASSERT_FATAL(reading && point && volt);
    size_t units = 0;
    for (uint32_t g = 1; g <= log.gpu_count; g++) {
        size_t busy = 0, n = 0;
        for (size_t i = 0; i < log.step_count; i++) {
            const size_t at = i * (log.gpu_count + 1) + g;
            const double *v = log.value + at * log.signal_count, set = log.set[at * log.control_count];
            reading[i] = (fl_idle_reading){v[0], v[2], v[3], set > 0 ? set : NAN};
            busy += v[0] > 50;
        }
        if (busy == 0 || fl_idle_points(reading, log.step_count, point, &n) != FL_MODEL_OK)
            continue;
        units++;
        printf("\n    GPU %u:", g - 1);
        bool known = true;
        for (size_t i = 0; i < n; i++) {
            double watts = 0;
            known = known && fl_curve_at(p.node.device[0].voltage, point[i].sm_mhz, 0, &volt[i]) == FL_MODEL_OK &&
                    platform_base(&p, point[i].sm_mhz, &watts);
            printf(" %g MHz %.2f W (%zu; model %.2f)", point[i].sm_mhz, point[i].power_w, point[i].readings, watts);
            FL_CHECK(fabs(watts - point[i].power_w) < 1.5, "GPU %u at %g MHz: %g W, measured %g W", g - 1,
                     point[i].sm_mhz, watts, point[i].power_w);
        }
        fl_idle_clock r = {0};
        const fl_model_status s = known ? fl_fit_idle_clock(point, volt, n, &r, NULL) : FL_MODEL_RANGE;
        printf("; fit: fixed %.2f W, C %.2f W, A0 %.2f W, RMS %.2f W, worst %.2f W", r.fixed_w, r.c_w, r.a0_w, r.rms_w,
               r.worst_w);
        FL_CHECK(s == FL_MODEL_OK && r.worst_w < 1.5, "GPU %u: %s, worst %g W", g - 1, fl_model_text(s), r.worst_w);
    }
    FL_CHECK(units > 0, "no GPU ran anything");
    free(reading);
    free(point);
    free(volt);
    fl_platform_free(&p);
    fl_decisions_free(&log);
}

FL_SUITE("fit_device", {"voltage recovered", test_voltage_recovered}, {"voltage monotone", test_voltage_monotone},
         {"voltage refused", test_voltage_refused}, {"Titan X voltage", test_titan_voltage},
         {"idle memory", test_idle_memory}, {"Titan X idle memory", test_titan_memory},
         {"idle points", test_idle_points}, {"idle clock", test_idle_clock},
         {"published idle V100", test_published_idle}, {"recorded idle V100", test_recorded_idle})
