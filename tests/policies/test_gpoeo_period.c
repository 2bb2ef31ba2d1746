/* GPOEO's period detection on traces made by hand. */
#include "policies/gpoeo_trace.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#include <math.h>

static fl_gpoeo_work work;
static fl_readings trace;
static double x[FL_FFT_MAX];

static double tone(double i, double period) { return sin(6.283185307179586 * i / period); }

static void add(int i, double power_w, double gpu_pct, double mem_pct) {
    fl_gpu_sample s = {.valid = FL_READINGS_NEEDS};
    s.value[FL_GPU_POWER_W] = power_w;
    s.value[FL_GPU_UTIL_GPU_PCT] = gpu_pct;
    s.value[FL_GPU_UTIL_MEM_PCT] = mem_pct;
    fl_readings_add(&trace, &s, (int64_t)i * 100000000);
}

static double best_of(uint32_t n) {
    double first;
    return fl_gpoeo_best(&work, x, n, 0.1, &first);
}

/* The signs of U and V are those of the larger deviation. */
static void test_composite(void) {
    static const struct {
        double u, v, limit_w, of_u, of_v, of_p;
    } row[] = {{10, 10, 200, 1, 1, 1},
               {-10, 10, 200, -1, 1, 1},
               {10, -10, 200, 1, -1, 1},
               {-10, -10, 200, -1, -1, 1},
               {-10, 10, 0, -1, 1, 0}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        trace.count = 0;
        for (int i = 0; i < 60; i++)
            add(i, 100 + 40 * tone(i, 20), 50 + row[k].u * tone(i, 20), 30 + row[k].v * tone(i, 20));
        fl_gpoeo_composite(&trace, row[k].limit_w, x);
        double worst = 0;
        for (int i = 0; i < 60; i++) {
            const double p = 100 + 40 * tone(i, 20), u = 50 + row[k].u * tone(i, 20), v = 30 + row[k].v * tone(i, 20);
            worst = fmax(worst, fabs(x[i] - (row[k].of_p * 100 * p / 200 + row[k].of_u * u + row[k].of_v * v)));
        }
        FL_CHECK(worst < 1e-4, "row %zu: off by %g", k, worst);
    }
}

/* Where the utilisations agree in some samples and are opposed in others, the sum of squares about the mean decides, of
 * every sample. */
static void test_signs(void) {
    static const struct {
        double u[4], v[4];
        double of_u, of_v;
    } row[] = {{{18, 10, 10, 10}, {2, 10, 10, 10}, -1, 1}, /* 0 and 48 */
               {{8, 5, -5, 0}, {-8, 5, -5, 0}, 1, 1},      /* 50 and 48 */
               {{19, 15, 5, 10}, {19, 5, 15, 10}, 1, 1}};  /* 60.75 and 50 */
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        trace.count = 0;
        for (int i = 0; i < 4; i++)
            add(i, 0, row[k].u[i], row[k].v[i]);
        fl_gpoeo_composite(&trace, 0, x);
        for (int i = 0; i < 4; i++)
            FL_CHECK(fabs(x[i] - row[k].of_u * row[k].u[i] - row[k].of_v * row[k].v[i]) < 1e-9,
                     "row %zu, sample %d: %g", k, i, x[i]);
    }
}

/* Two adjacent periods, by groups of what lies in one of four bands in the first. */
static void test_unlike(void) {
    static const struct {
        const char *name;
        double x[8], expected;
    } row[] = {
        {"alike", {0, 0, 10, 10, 0, 0, 10, 10}, 0},
        {"one group differs", {0, 0, 10, 10, 2, 2, 10, 10}, 1 / 5.5},
        {"both, weighted with their shares", {0, 10, 10, 10, 4, 12, 12, 12}, 2.5 / 8.75},
        {"a group's own differences cancel", {0, 0, 10, 10, -1, 1, 10, 10}, 0},
        {"all of one level", {5, 5, 5, 5, 7, 7, 7, 7}, 2 / 6.0},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const double got = fl_gpoeo_unlike(row[i].x, 8, 4);
        FL_CHECK(fabs(got - row[i].expected) < 1e-12, "%s: %g, expected %g", row[i].name, got, row[i].expected);
    }
    FL_CHECK(isinf(fl_gpoeo_unlike(row[0].x, 8, 4.1)) && isinf(fl_gpoeo_unlike(row[0].x, 8, 0.5)), "no two periods");
    /* three periods: the mean of both pairs */
    static const double three[] = {0, 0, 10, 10, 0, 0, 10, 10, 2, 2, 10, 10};
    FL_CHECK(fabs(fl_gpoeo_unlike(three, 12, 4) - 0.5 / 5.5) < 1e-12, "of two pairs: %g",
             fl_gpoeo_unlike(three, 12, 4));
}

/* The highest peak is the second harmonic; the period whose iterations are alike wins, if its peak is high enough. */
static void test_peaks(void) {
    static const struct { double share, period; } row[] = {{0.7, 40}, {0.62, 40}, {0.55, 20}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        for (int i = 0; i < 240; i++)
            x[i] = 50 + 10 * tone(i, 20) + 10 * row[k].share * tone(i, 40);
        const double got = best_of(240);
        FL_CHECK(fabs(got - row[k].period) <= 0.15 * row[k].period, "second peak of %g: period %g, expected %g",
                 row[k].share, got, row[k].period);
    }
    /* eight tones of like height: the slowest, the only period of the sum, is the eighth */
    for (int i = 0; i < 480; i++) {
        x[i] = 50 + 9 * tone(i, 60);
        for (int k = 2; k <= 8; k++)
            x[i] += (10 + 0.1 * k) * tone(i, 60.0 / k);
    }
    const double got = best_of(480);
    FL_CHECK(!(fabs(got - 60) < 3), "the eighth peak is looked at: %g", got);
}

static void test_padded(void) {
    static const struct { double period, first; } row[] = {{70, 200 / 3.0}, {42, 50}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        double first;
        for (int i = 0; i < 100; i++)
            x[i] = 50 + 10 * tone(i, row[k].period);
        fl_gpoeo_best(&work, x, 100, 0.1, &first);
        FL_CHECK(fabs(first - row[k].first) < 1e-9, "a period of %g of 100 samples: %g, expected %g", row[k].period,
                 first, row[k].first);
    }
}

/* A trace of more than half of what a transform takes is not padded. */
static void test_too_long_to_pad(void) {
    const uint32_t n = FL_FFT_MAX / 2 + 1;
    double first;
    for (uint32_t i = 0; i < n; i++)
        x[i] = 50 + 10 * tone(i, 0.7 * n);
    fl_gpoeo_best(&work, x, n, 0.001, &first);
    FL_CHECK(first == n, "%g samples, expected %u", first, n);
}

/* Below 0.4 s: the least multiple above that is near a multiple of all of them. */
static void test_short(void) {
    for (int i = 0; i < 300; i++)
        x[i] = 50 + 10 * tone(i, 2.5);
    double got = best_of(300);
    FL_CHECK(fabs(got - 5) < 1e-9, "one of 0.25 s: %g samples", got);
    for (int i = 0; i < 300; i++)
        x[i] = 50 + 10 * tone(i, 2.5) + 10 * tone(i, 3);
    got = best_of(300);
    FL_CHECK(fabs(got - 15) < 1e-9, "0.25 s and 0.3 s: %g samples", got);
    for (int i = 0; i < 300; i++)
        x[i] = 50 + 10 * tone(i, 4.2);
    got = best_of(300);
    FL_CHECK(fabs(got - 4.2) < 0.2, "0.42 s is long enough: %g samples", got);
}

/* Bins lie at 251 / k samples. */
static void test_refined(void) {
    static const double period[] = {60, 56, 68};
    for (size_t k = 0; k < sizeof period / sizeof *period; k++) {
        for (int i = 0; i < 251; i++)
            x[i] = fmod(i, period[k]) < 0.4 * period[k] ? 90 : 30;
        const double got = best_of(251);
        FL_CHECK(fabs(got - period[k]) <= 0.01 * period[k], "%g samples, expected %g", got, period[k]);
    }
}

/* A period of 15.5 s, whose nearest bin lies at 15 s: refinement stays within what a period may be. */
static void test_refined_within(void) {
    for (int i = 0; i < 450; i++)
        x[i] = fmod(i, 155) < 60 ? 90 : 30;
    const double got = best_of(450);
    FL_CHECK(got > 120 && got <= 150, "%g samples", got);
}

static void square(int n, double period, double noise) {
    fl_random r = fl_random_seed(13, (uint64_t)n);
    trace.count = 0;
    for (int i = 0; i < n; i++) {
        const double up = fmod(i, period) < 0.5 * period;
        add(i, 100 + 150 * up, 40 + 50 * up + noise * fl_random_normal(&r), 10 + 20 * up);
    }
}

static void test_stable(void) {
    static const struct {
        const char *name;
        int n;
        double period, noise;
        int stable;
    } row[] = {
        {"12 periods", 251, 20, 0, 1},     {"5.4 periods", 251, 46, 0, 1},       {"5.2 periods", 251, 48, 0, 0},
        {"a little noise", 251, 20, 5, 1}, {"longer, 6 periods", 300, 48, 0, 1},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        square(row[i].n, row[i].period, row[i].noise);
        const fl_gpoeo_period p = fl_gpoeo_find(&work, &trace, 350, 0.15);
        FL_CHECK(p.stable == row[i].stable && fabs(p.period_s - 0.1 * row[i].period) < 0.02 * row[i].period,
                 "%s: %g s, stable %d", row[i].name, p.period_s, p.stable);
    }
    /* noise alone: the parts do not agree, unless anything is agreement */
    fl_random r = fl_random_seed(14, 0);
    trace.count = 0;
    for (int i = 0; i < 251; i++)
        add(i, 200, 50 + 10 * fl_random_normal(&r), 10);
    const fl_gpoeo_period p = fl_gpoeo_find(&work, &trace, 350, 0.15), any = fl_gpoeo_find(&work, &trace, 350, 10);
    FL_CHECK(!p.stable && any.stable, "noise: stable %d, %d", p.stable, any.stable);
}

/* How far apart the periods of the parts may be: a program whose iterations grow longer by that share every second. */
static void test_spread(void) {
    static const double allowed[] = {0.10, 0.15, 0.30};
    static const struct {
        double growth;
        int stable[3]; /* strict, as it is, relaxed */
    } row[] = {{0.0125, {1, 1, 1}}, {0.0165, {0, 1, 1}}, {0.04, {0, 0, 1}}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        double phase = 0;
        trace.count = 0;
        for (int i = 0; i < 251; i++) {
            add(i, 200, fmod(phase, 1) < 0.5 ? 90 : 40, 10);
            phase += 1 / (20 * (1 + row[k].growth * i / 10));
        }
        for (int j = 0; j < 3; j++)
            FL_CHECK(fl_gpoeo_find(&work, &trace, 350, allowed[j]).stable == row[k].stable[j],
                     "%g longer each second: stable at %g: %d", row[k].growth, allowed[j], !row[k].stable[j]);
    }
}

/* A burst and then exact nothing, in which no period can be found: how many parts begin within the burst? Any three
 * values are taken here for alike. Parts begin max(T / 2, length / 10) apart. */
static void test_parts(void) {
    static const struct {
        const char *name;
        int period, burst;
        int is_square;
        int stable;
    } row[] = {{"a tenth of the trace apart: two parts", 5, 50, 0, 0},
               {"a tenth of the trace apart: three parts", 4, 80, 0, 1},
               /* the whole has one of 67.2 samples: the third part begins there, and not at 60 */
               {"half a period apart: two parts", 54, 64, 1, 0}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        trace.count = 0;
        for (int i = 0; i < 300; i++) {
            const double wave =
                row[k].is_square ? (i % row[k].period < 0.5 * row[k].period ? 30 : -30) : 40 * tone(i, row[k].period);
            add(i, 0, i < row[k].burst ? wave : 0, 0);
        }
        const fl_gpoeo_period p = fl_gpoeo_find(&work, &trace, 350, 100);
        FL_CHECK(p.stable == row[k].stable, "%s: stable %d, %g s", row[k].name, p.stable, p.period_s);
    }
}

static void test_none(void) {
    trace.count = 0; /* 40 s, and in it 10 s of nearly the same height */
    for (int i = 0; i < 800; i++)
        add(i, 200, 50 + 10 * tone(i, 400) + 8 * tone(i, 100), 10);
    FL_CHECK(isnan(fl_gpoeo_find(&work, &trace, 350, 0.15).period_s), "40 s is a period");
    square(1000, 200, 0);
    FL_CHECK(!(fl_gpoeo_find(&work, &trace, 350, 0.15).period_s > 15), "20 s is a period: %g",
             fl_gpoeo_find(&work, &trace, 350, 0.15).period_s);
    trace.count = 0;
    for (int i = 0; i < 251; i++)
        add(i, 200, 50, 10);
    FL_CHECK(isnan(fl_gpoeo_find(&work, &trace, 350, 0.15).period_s), "a level is a period");
}

static void test_longer(void) {
    static const struct {
        double length_s, period_s;
        int stable;
        double missing_s;
    } row[] = {{25, 2, 1, 0},   {25, 2, 0, 2.5},     {25, 4.9, 0, 2.5}, {25, 6, 0, 6.8},
               {40, 10, 0, 13}, {79.4, 15, 0, 7.94}, {79.5, 15, 0, 0},  {25, NAN, 0, 0}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const double got = fl_gpoeo_missing_s(row[i].length_s,
                                              (fl_gpoeo_period){.period_s = row[i].period_s, .stable = row[i].stable});
        FL_CHECK(fabs(got - row[i].missing_s) < 1e-9, "row %zu: %g s, expected %g", i, got, row[i].missing_s);
    }
}

/* A trace goes on for as long as it lacks for a stable period, also where that is less than a second; then it is looked
 * at again. Six seconds of readings without a period, so that short ones are found in them and none is stable. */
static void test_goes_on(void) {
    enum { ROUNDS = 60 };
    static const uint64_t seed = 31;
    static fl_gpoeo_trace t;
    int shorter = 0, longer = 0, whole = 0;
    printf(" seed %llu ", (unsigned long long)seed);
    fl_random g = fl_random_seed(seed, 0);
    for (int round = 0; round < ROUNDS; round++) {
        const int count = 30 + (int)fl_random_below(&g, 100);
        fl_gpoeo_trace_begin(&t, 0, INT64_C(6000000000));
        for (int i = 0; i < count; i++) {
            fl_gpu_sample s = {.valid = FL_READINGS_NEEDS};
            s.value[FL_GPU_POWER_W] = 200 + 50 * fl_random_unit(&g) + (round % 3 ? 0 : 100 * tone(i, 10));
            s.value[FL_GPU_UTIL_GPU_PCT] = 50 + 20 * fl_random_unit(&g);
            s.value[FL_GPU_UTIL_MEM_PCT] = 30 + 20 * fl_random_unit(&g);
            fl_gpoeo_trace_read(&t, &s, (int64_t)i * 50000000);
        }
        const double missing =
            fl_gpoeo_missing_s(fl_readings_length_s(&t.readings), fl_gpoeo_find(&work, &t.readings, 350, 0.15));
        fl_gpoeo_period p;
        const int ends = fl_gpoeo_trace_period(&t, 350, 0.15, &p);
        FL_CHECK(ends == !(missing > 0) && llabs(t.end_ns - INT64_C(6000000000) - llround(missing * 1e9)) <= 1,
                 "seed %d, round %d: %g s are missing, it ends: %d, at %lld ns", (int)seed, round, missing, ends,
                 (long long)t.end_ns);
        whole += !(missing > 0);
        shorter += missing > 0 && missing < 1;
        longer += missing > 1;
    }
    FL_CHECK(shorter > 3 && longer > 3 && whole > 3, "%d lack less than a second, %d more, %d nothing", shorter, longer,
             whole);
}

FL_SUITE("gpoeo_period", {"what is transformed", test_composite}, {"signs", test_signs}, {"likeness", test_unlike},
         {"peaks", test_peaks}, {"padded", test_padded}, {"too long to pad", test_too_long_to_pad},
         {"short periods", test_short}, {"refined", test_refined}, {"refined within 15 s", test_refined_within},
         {"stable", test_stable}, {"spread", test_spread}, {"parts", test_parts}, {"no period", test_none},
         {"longer traces", test_longer}, {"a trace goes on", test_goes_on})
