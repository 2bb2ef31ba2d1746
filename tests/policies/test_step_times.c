/* The times of an engine's steps at each clock: learned, and bounded where they were not. */
#include "policies/random.h"
#include "policies/server/inside.h"
#include "tests/support/suite.h"

#include <math.h>

static const double mhz[] = {600, 1000, 1500};

/* 5 ms, 10 us a prompt token, 40 us a sequence, 0.1 us a token of the cache; the clock changes all but the cache. */
static double law(const fl_step_load *l, double f) {
    return (5e-3 + 1e-5 * l->prompt_tokens + 4e-5 * l->sequences) * 1500 / f + 1e-7 * l->kv_tokens;
}

static fl_step_load some(fl_random *r) {
    return (fl_step_load){floor(2048 * fl_random_unit(r)), floor(64 * fl_random_unit(r)),
                          floor(1e5 * fl_random_unit(r))};
}

static double predicted(const fl_step_times *t, uint32_t clock, const fl_step_load *load, double tolerance) {
    double time_s[FL_STEP_CLOCKS];
    fl_step_times_all(t, load, tolerance, time_s);
    return time_s[clock];
}

static void test_line(void) {
    fl_step_times t;
    fl_random r = fl_random_seed(7, 0);
    fl_step_times_begin(&t, mhz, 3);
    for (int i = 0; i < 200; i++)
        for (uint32_t k = 0; k < 3; k++) {
            const fl_step_load l = some(&r);
            fl_step_times_learn(&t, k, &l, law(&l, mhz[k]), 1);
        }
    for (int i = 0; i < 100; i++)
        for (uint32_t k = 0; k < 3; k++) {
            const fl_step_load l = some(&r);
            const double is = predicted(&t, k, &l, 0.03), was = law(&l, mhz[k]);
            FL_CHECK(fabs(is / was - 1) < 1e-3, "at %g MHz: %g s, expected %g", mhz[k], is, was);
        }
}

static void learn(fl_step_times *t, uint32_t clock, const fl_step_load *l, double time_s, int times) {
    for (int i = 0; i < times; i++)
        fl_step_times_learn(t, clock, l, time_s, 1);
}

static void test_bounds(void) {
    const fl_step_load l = {0, 8, 1000}, prompt = {2048, 8, 1000};
    fl_step_times t;
    fl_step_times_begin(&t, mhz, 3);
    FL_CHECK(isnan(predicted(&t, 0, &l, 0)), "nothing is known, and it predicts");
    learn(&t, 2, &l, 0.01, 10);
    FL_CHECK(isnan(predicted(&t, 2, &l, 0)), "ten steps are not enough");
    learn(&t, 2, &l, 0.01, 20);
    const double expected[] = {0.01 * 1500 / 600 * 1.03, 0.01 * 1500 / 1000 * 1.03, 0.01};
    for (uint32_t k = 0; k < 3; k++)
        FL_CHECK(fabs(predicted(&t, k, &l, 0.03) / expected[k] - 1) < 1e-3, "clock %u: %g s, expected %g", k,
                 predicted(&t, k, &l, 0.03), expected[k]);
    FL_CHECK(isnan(predicted(&t, 2, &prompt, 0.03)), "no prompt was seen, and it predicts one");
    learn(&t, 0, &prompt, 0.05, 40);
    FL_CHECK(fabs(predicted(&t, 1, &prompt, 0.03) / 0.05 - 1) < 1e-3, "a step at a lower clock takes no less: %g s",
             predicted(&t, 1, &prompt, 0.03));
    learn(&t, 0, &l, NAN, 5);
    learn(&t, 0, &l, -1, 5);
    fl_step_times_learn(&t, 0, &l, 0.05, 0);
    FL_CHECK(t.line[0].steps == 40, "%g steps, expected 40: those that cannot be are left out", t.line[0].steps);
}

FL_SUITE("step_times", {"a line", test_line}, {"bounds", test_bounds})
