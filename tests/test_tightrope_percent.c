/* Utilisation in whole percent: how far off its mean may be, and what tightrope holds back for that. */
#include "policies/tightrope_signal.h"
#include "tests/support/suite.h"

#include <math.h>

#define S INT64_C(1000000000)
#define MS INT64_C(1000000)

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
                fl_tightrope_percent_add(&p, rows[i].pct[k]);
        const double error = fl_tightrope_percent_error(&p);
        FL_CHECK(fabs(error - rows[i].error) <= rows[i].within + 1e-12, "%s: %g, expected %g", rows[i].what, error,
                 rows[i].error);
    }
}

enum { OFFS = 9 };

static const int offs[OFFS] = {0, 1, -1, 2, -2, 0, 1, -1, 0};

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
static double credit(double noise, int64_t alike) {
    fl_tightrope_work *w = calloc(1, sizeof *w);
    CU_ASSERT_FATAL(w != NULL);
    int64_t now = 0;
    fl_tightrope_work_begin(w, FL_TIGHTROPE_UTIL, 0, 0.03, 3, 0);
    w->alike = alike;
    fl_tightrope_window(w, now, 1, 0);
    read_for(w, &now, 90, noise, 4);
    fl_tightrope_close(w, now, 0);
    fl_tightrope_window(w, now, 0.5, 1);
    read_for(w, &now, 72, noise, 4);
    fl_tightrope_close(w, now, 0);
    const double s = fl_tightrope_credit(w);
    fl_tightrope_new_phase(w);
    CU_ASSERT(w->percent.count == 0 && w->percent.seen[90] == 0);
    free(w);
    return s;
}

/* Steady readings may be off by half a point: at the top clock for 3.2 s of work below it, and below it for 4 s. With
 * noise it is less. */
static void test_credit(void) {
    fl_tightrope_percent noise = {0};
    for (int k = 0; k < 900; k++)
        fl_tightrope_percent_add(&noise, 50 + offs[k % OFFS]);
    const double steady = credit(0, FL_TIGHTROPE_ALIKE_ALL), noisy = credit(1, FL_TIGHTROPE_ALIKE_ALL),
                 less = fl_tightrope_percent_error(&noise), held = (0.5 - less) / 90 * (0.8 * 4 + 4);
    CU_ASSERT(less > 0.1 && less < 0.12);
    FL_CHECK(steady > 7.15 && steady < 7.2 - 0.5 / 90 * 7.2 + 1e-3, "%g s of 7.2", steady);
    FL_CHECK(fabs(noisy - steady - held) < 0.1 * held, "%g s more with noise, expected %g", noisy - steady, held);
    FL_CHECK(credit(0, FL_TIGHTROPE_ALIKE_COUNTERS) == 4 + 4 * 0.5 * 0.97, "by the second fact: %g s",
             credit(0, FL_TIGHTROPE_ALIKE_COUNTERS));
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
    CU_ASSERT(w->percent.count == 4 && w->percent.seen[60] == 4);
    const fl_gpu_sample old = {.valid = FL_BIT(FL_GPU_UTIL_MEM_PCT), .value = {[FL_GPU_UTIL_MEM_PCT] = 60}};
    const fl_sample s = {.time_ns = now + 4 * MS, .gpu_count = 1, .gpu = &old};
    fl_tightrope_read(w, &s, 0, INT64_MAX);
    CU_ASSERT(w->percent.count == 4);
    free(w);
}

FL_SUITE("tightrope_percent", {"error", test_error}, {"credit", test_credit}, {"which readings", test_which})
