/* Utilisation in whole percent: how far off its mean may be, and what tightrope holds back for that. */
#include "policies/policy.h"
#include "policies/tightrope/inside.h"
#include "tests/support/suite.h"

#include <math.h>

#define MS INT64_C(1000000)

enum { OFFS = 9 };

static const int offs[OFFS] = {0, 1, -1, 2, -2, 0, 1, -1, 0}; /* noise */

/* So many readings of up to five numbers. The error is half a point where no noise is seen at any of them. */
static void test_error(void) {
    static const struct {
        const char *what;
        double pct[5];
        int times[5];
        double error, within;
    } rows[] = {{"steady", {95}, {40}, 0.5, 0},
                {"few readings of much noise", {94, 95, 96}, {3, 5, 3}, 0.5, 0},
                {"one more of them", {94, 95, 96}, {3, 6, 3}, 0.26, 0.01},
                {"between two numbers", {95, 96}, {20, 20}, 0.5, 0},
                {"two levels of a program", {94, 0}, {20, 20}, 0.5, 0},
                {"levels two points apart", {93, 95, 97}, {20, 20, 20}, 0.5, 0},
                {"one point apart: taken for noise", {93, 94, 95}, {20, 20, 20}, 1.0 / 3, 1e-9},
                {"noise of half a point", {94, 95, 96}, {157, 683, 157}, 0.16, 0.01},
                {"of a point", {93, 94, 95, 96, 97}, {61, 242, 383, 242, 61}, 0.06, 0.01},
                {"of a point, cut, beside a level", {94, 95, 96, 50}, {242, 383, 242, 867}, 0.3896, 0.001},
                {"cut off at 100", {98, 99, 100}, {20, 20, 20}, 0.5 * 2 / 3 + 1.5 / 3, 0.001},
                {"all at 100", {100}, {20}, 0.5, 0},
                {"a level below a gap", {97, 99, 100}, {20, 20, 20}, 0.5 + 1.0 / 3, 1e-6},
                {"beyond", {-3, 180}, {20, 20}, 0.5, 0}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        fl_tightrope_percent p = {0};
        for (int k = 0; k < 5; k++)
            for (int j = 0; j < rows[i].times[k]; j++)
                fl_tightrope_percent_add(&p, 1, rows[i].pct[k]);
        const double error = fl_tightrope_percent_top(&p);
        FL_CHECK(fabs(error - rows[i].error) <= rows[i].within + 1e-12, "%s: %g, expected %g", rows[i].what, error,
                 rows[i].error);
    }
}

/* Clocks are judged one by one: levels of three clocks that lie one point apart are no noise. Of lower clocks the mean
 * counts, and one that gave way to another is still part of it. */
static void test_clocks(void) {
    fl_tightrope_percent p = {0};
    CU_ASSERT(fl_tightrope_percent_top(&p) == 0.5 && fl_tightrope_percent_low(&p) == 0.5);
    for (int k = 0; k < 90; k++)
        fl_tightrope_percent_add(&p, 1 - k % 3 / 10.0, 35 - k % 3);
    CU_ASSERT(fl_tightrope_percent_top(&p) == 0.5 && fl_tightrope_percent_low(&p) == 0.5);
    fl_tightrope_percent noisy = {0};
    for (int k = 0; k < 900; k++)
        fl_tightrope_percent_add(&noisy, 0.5, 50 + offs[k % OFFS]);
    const double less = fl_tightrope_percent_low(&noisy);
    FL_CHECK(less > 0.1 && less < 0.12 && fl_tightrope_percent_top(&noisy) == 0.5, "with noise at one clock %g", less);
    for (int k = 0; k < 900; k++)
        fl_tightrope_percent_add(&noisy, 0.6, 50);
    FL_CHECK(fabs(fl_tightrope_percent_low(&noisy) - (less + 0.5) / 2) < 1e-12, "and none at another: %g",
             fl_tightrope_percent_low(&noisy));
    for (int clock = 0; clock < 20; clock++)
        for (int k = 0; k < 90; k++)
            fl_tightrope_percent_add(&noisy, 0.1 + clock / 100.0, 50 + offs[k % OFFS]);
    const double mean = (900 * 0.5 + (900 + 20 * 90) * less) / (900 + 900 + 20 * 90);
    FL_CHECK(fabs(fl_tightrope_percent_low(&noisy) - mean) < 1e-9, "of 22 clocks %g, expected %g",
             fl_tightrope_percent_low(&noisy), mean);
}

/* More readings than a float counts. */
static void test_long(void) {
    fl_tightrope_percent p = {0};
    p.level[0] = (fl_tightrope_level){.clock = 1, .count = 1u << 25, .seen = {[60] = 1u << 25}};
    for (int k = 0; k < 100; k++)
        fl_tightrope_percent_add(&p, 1, 60);
    CU_ASSERT(p.level[0].seen[60] == (1u << 25) + 100 && fl_tightrope_percent_top(&p) == 0.5);
}

static void read_for(fl_tightrope_work *w, int64_t *now, double pct, double noise, double seconds) {
    fl_gpu_sample gpu = {.valid = FL_BIT(FL_GPU_UTIL_MEM_PCT), .fresh = FL_BIT(FL_GPU_UTIL_MEM_PCT)};
    for (int k = 0; k < seconds * 250; k++) {
        *now += 4 * MS;
        gpu.value[FL_GPU_UTIL_MEM_PCT] = pct + noise * offs[k % OFFS];
        const fl_sample s = {.time_ns = *now, .gpu_count = 1, .gpu = &gpu};
        fl_tightrope_read(w, &s, 0, INT64_MAX);
    }
}

/* Credit for 4 s at 90 % at the top clock and 4 s at 72 % at the half. */
static double credit(double top_noise, double noise, int64_t alike) {
    fl_tightrope_work *w = calloc(1, sizeof *w);
    CU_ASSERT_FATAL(w != NULL);
    int64_t now = 0;
    fl_tightrope_work_begin(w, FL_TIGHTROPE_UTIL, 0, 0.03, 3, 0);
    w->alike = alike;
    fl_tightrope_window(w, now, 1, 0);
    read_for(w, &now, 90, top_noise, 4);
    fl_tightrope_close(w, now, 0);
    fl_tightrope_window(w, now, 0.5, 1);
    read_for(w, &now, 72, noise, 4);
    fl_tightrope_close(w, now, 0);
    const double s = fl_tightrope_credit(w);
    fl_tightrope_new_phase(w);
    CU_ASSERT(w->percent.level[0].count == 0 && w->percent.level[1].count == 0);
    free(w);
    return s;
}

/* Steady readings may be off by half a point: at the top clock for 3.2 s of work below it, and below it for 4 s. With
 * noise it is less, at the clock that has it. */
static void test_credit(void) {
    fl_tightrope_percent p = {0};
    for (int k = 0; k < 900; k++)
        fl_tightrope_percent_add(&p, 1, 50 + offs[k % OFFS]);
    const double less = 0.5 - fl_tightrope_percent_top(&p), steady = credit(0, 0, FL_TIGHTROPE_ALIKE_ALL);
    static const struct {
        const char *where;
        double top, low, seconds;
    } rows[] = {{"at both", 1, 1, 0.8 * 4 + 4}, {"at the top clock", 1, 0, 0.8 * 4}, {"below it", 0, 1, 4}};
    FL_CHECK(steady > 7.15 && steady < 7.2 - 0.5 / 90 * 7.2 + 1e-3, "%g s of 7.2", steady);
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        const double more = credit(rows[i].top, rows[i].low, FL_TIGHTROPE_ALIKE_ALL) - steady,
                     expected = less / 90 * rows[i].seconds;
        FL_CHECK(fabs(more - expected) < 0.15 * expected, "noise %s: %g s more, expected %g", rows[i].where, more,
                 expected);
    }
    FL_CHECK(credit(0, 0, FL_TIGHTROPE_ALIKE_COUNTERS) == 4 + 4 * 0.5 * 0.97, "by the second fact: %g s",
             credit(0, 0, FL_TIGHTROPE_ALIKE_COUNTERS));
}

/* Readings that the sensor had shown before, or that came before the clock, are none. */
static void test_which(void) {
    fl_tightrope_work *w = calloc(1, sizeof *w);
    CU_ASSERT_FATAL(w != NULL);
    int64_t now = 0;
    fl_tightrope_work_begin(w, FL_TIGHTROPE_UTIL, 0, 0.03, 3, 0);
    fl_tightrope_window(w, now, 1, 0);
    w->settled_ns = 8 * MS;
    read_for(w, &now, 60, 0, 0.02);
    CU_ASSERT(w->percent.level[0].count == 4 && w->percent.level[0].seen[60] == 4);
    const fl_gpu_sample old = {.valid = FL_BIT(FL_GPU_UTIL_MEM_PCT), .value = {[FL_GPU_UTIL_MEM_PCT] = 60}};
    const fl_sample s = {.time_ns = now + 4 * MS, .gpu_count = 1, .gpu = &old};
    fl_tightrope_read(w, &s, 0, INT64_MAX);
    CU_ASSERT(w->percent.level[0].count == 4);
    free(w);
}

FL_SUITE("tightrope_percent", {"error", test_error}, {"clocks", test_clocks}, {"long", test_long},
         {"credit", test_credit}, {"which readings", test_which})
