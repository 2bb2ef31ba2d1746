/* Utilisation in whole percent: how far off its mean may be, and what tightrope holds back for that. */
#include "policies/tightrope_signal.h"
#include "tests/support/suite.h"

#include <math.h>

#define S INT64_C(1000000000)
#define MS INT64_C(1000000)

/* Of two values that take turns, so many of each in a window; windows at the same or at another level. */
static void test_error(void) {
    static const struct {
        const char *what;
        double low, high, step; /* pct; step: from one window to the next */
        int windows, pairs;
        double variance; /* seen; < 0: nothing is */
    } rows[] = {{"steady", 95, 95, 0, 4, 10, 0},
                {"between two steps", 95, 96, 0, 4, 10, 0.25 * 20 / 19},
                {"few readings", 90, 100, 0, 1, 6, -1},
                {"one more of them", 90, 100, 0, 2, 7, 25 * 14.0 / 13},
                {"noise of a step", 94, 96, 0, 4, 10, 20.0 / 19},
                {"another level is no noise", 95, 95, 10, 4, 10, 0}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        fl_tightrope_percent p = {0};
        for (int k = 0; k < rows[i].windows; k++) {
            for (int j = 0; j < rows[i].pairs; j++) {
                fl_tightrope_percent_add(&p, rows[i].low + k * rows[i].step);
                fl_tightrope_percent_add(&p, rows[i].high + k * rows[i].step);
            }
            fl_tightrope_percent_end(&p);
            fl_tightrope_percent_end(&p); /* a window without readings tells nothing */
        }
        const double error = 0.5 * exp(-2 * M_PI * M_PI * fmax(0, rows[i].variance - 0.25));
        FL_CHECK(fabs(fl_tightrope_percent_error(&p) - error) <= 1e-9, "%s: %g, expected %g", rows[i].what,
                 fl_tightrope_percent_error(&p), error);
    }
}

static void read_for(fl_tightrope_work *w, int64_t *now, double pct, double noise, double seconds) {
    fl_gpu_sample gpu = {.valid = FL_BIT(FL_GPU_UTIL_MEM_PCT), .fresh = FL_BIT(FL_GPU_UTIL_MEM_PCT)};
    for (int k = 0; k < seconds * 250; k++) {
        *now += 4 * MS;
        gpu.value[FL_GPU_UTIL_MEM_PCT] = pct + (k % 2 ? noise : -noise);
        const fl_sample s = {.time_ns = *now, .gpu_count = 1, .gpu = &gpu};
        fl_tightrope_read(w, &s, 0, INT64_MAX);
    }
}

/* Credit for 4 s at 100 % at the top clock and 4 s at 80 % at the half. */
static double credit(double noise, int64_t alike) {
    fl_tightrope_work *w = calloc(1, sizeof *w);
    CU_ASSERT_FATAL(w != NULL);
    int64_t now = 0;
    fl_tightrope_work_begin(w, FL_TIGHTROPE_UTIL, 0, 0.03, 3, 0);
    w->alike = alike;
    fl_tightrope_window(w, now, 1, 0);
    read_for(w, &now, 100, noise, 4);
    fl_tightrope_close(w, now, 0);
    fl_tightrope_window(w, now, 0.5, 1);
    read_for(w, &now, 80, noise, 4);
    fl_tightrope_close(w, now, 0);
    const double s = fl_tightrope_credit(w);
    free(w);
    return s;
}

/* Steady readings may be off by half a percent at either clock: that much of the work below the top is held back. */
static void test_credit(void) {
    const double steady = credit(0, FL_TIGHTROPE_ALIKE_ALL), noisy = credit(2, FL_TIGHTROPE_ALIKE_ALL),
                 held = 0.5 * (1 / 100.0 + 1 / 90.0) * 0.8 * 4;
    FL_CHECK(noisy > 7.1 && noisy < 7.2, "with noise %g s of 7.2", noisy);
    FL_CHECK(fabs(noisy - steady - held) < 0.02 * held, "%g s held back, expected %g", noisy - steady, held);
    FL_CHECK(credit(0, FL_TIGHTROPE_ALIKE_COUNTERS) == 4 + 4 * 0.5 * 0.97, "by the second fact: %g s",
             credit(0, FL_TIGHTROPE_ALIKE_COUNTERS));
}

FL_SUITE("tightrope_percent", {"error", test_error}, {"credit", test_credit})
