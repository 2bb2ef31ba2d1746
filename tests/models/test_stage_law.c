/* Laws of a training stage and the least squares that fit them: values by hand. */
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "tests/support/suite.h"

#include <math.h>

static void test_time(void) {
    /* Far below its wall T = 2 ((1 - 0.6) + 0.6 0.75 / f): at 0.75 that is 2, at 0.5 it is 2.6. */
    const fl_stage_time t = {.log_t0 = log(2), .share = 0.6, .wall = 5};
    FL_CHECK(fabs(fl_stage_law_at(&t, 0.75) - 2) < 1e-9, "%g", fl_stage_law_at(&t, 0.75));
    FL_CHECK(fabs(fl_stage_law_at(&t, 0.5) - 2.6) < 1e-9, "%g", fl_stage_law_at(&t, 0.5));
    /* Far above it the time is that of the wall. */
    const fl_stage_time held = {.log_t0 = log(2), .share = 0.6, .wall = 0.5};
    FL_CHECK(fabs(fl_stage_law_at(&held, 1.5) - 2.6) < 1e-4, "%g", fl_stage_law_at(&held, 1.5));
    /* At the wall itself the minimum is rounded off: 2^(-1/12) of it. */
    FL_CHECK(fabs(fl_stage_law_at(&held, 0.5) - 2 * (0.4 + 0.6 * 1.5 * pow(2, 1.0 / 12))) < 1e-9, "%g",
             fl_stage_law_at(&held, 0.5));
}

static void test_power(void) {
    const fl_stage_power p = {.s = 0.3, .knee = 0.6, .rise = 1};
    FL_CHECK(fabs(fl_stage_power_at(&p, FL_STAGE_F0) - 1) < 1e-12, "1 at the clock of reference");
    /* At half the clock the voltage is 1 and at 0.75 it is 1.15. */
    const double half = 0.3 + 0.7 * (0.5 / 0.75) / (1.15 * 1.15),
                 full = 0.3 + 0.7 * (1 / 0.75) * 1.4 * 1.4 / (1.15 * 1.15);
    FL_CHECK(fabs(fl_stage_power_at(&p, 0.5) - half) < 1e-12, "%g", fl_stage_power_at(&p, 0.5));
    FL_CHECK(fabs(fl_stage_power_at(&p, 1) - full) < 1e-12, "%g", fl_stage_power_at(&p, 1));
}

/* What is measured well is met; between two such clocks the correction lies between theirs; far from them there is
 * none. */
static void test_correction(void) {
    fl_stage_time t = {.log_t0 = 0, .share = 0.5, .wall = 5};
    const double clock[] = {0.7, 0.8}, sd[] = {1e-6, 1e-6};
    const double log_s[] = {log(fl_stage_law_at(&t, 0.7)) + 0.004, log(fl_stage_law_at(&t, 0.8)) + 0.004};
    FL_CHECK(!fl_stage_time_correct(&t, clock, log_s, sd, 2), "there is memory");
    for (int i = 0; i < 2; i++)
        FL_CHECK(fabs(log(fl_stage_time_at(&t, clock[i])) - log_s[i]) < 1e-6, "clock %g", clock[i]);
    const double middle = log(fl_stage_time_at(&t, 0.75) / fl_stage_law_at(&t, 0.75));
    FL_CHECK(middle > 0.0005 && middle < 0.004, "%g", middle);
    FL_CHECK(fabs(fl_stage_time_at(&t, 0.2) / fl_stage_law_at(&t, 0.2) - 1) < 1e-9, "none far away");
    fl_stage_time_free(&t);
    FL_CHECK(!t.count && !t.clock && !t.weight, "freed");
}

/* y = a x through 2 at 1 and 4.4 at 2, of spread 1, and a prior a = 1 of spread 0.5: the sum of squares
 * (a - 2)^2 + (2 a - 4.4)^2 + 4 (a - 1)^2 is least at a = (2 + 8.8 + 4) / 9. */
static void line(void *user, const double *x, double *residual) {
    (void)user;
    residual[0] = x[0] - 2;
    residual[1] = 2 * x[0] - 4.4;
    residual[2] = (x[0] - 1) / 0.5;
}

static void nowhere(void *user, const double *x, double *residual) {
    (void)user;
    residual[0] = residual[1] = residual[2] = NAN * x[0];
}

static void test_least(void) {
    double x = 0;
    FL_CHECK(fl_least_squares(line, NULL, &x, 1, 3) == FL_MODEL_OK, "it converges");
    FL_CHECK(fabs(x - 14.8 / 9) < 1e-6, "%.9g", x);
    x = 1;
    FL_CHECK(fl_least_squares(nowhere, NULL, &x, 1, 3) == FL_MODEL_INVALID, "no numbers are no fit");
    FL_CHECK(x == 1, "and change nothing");
}

FL_SUITE("stage_law", {"time", test_time}, {"power", test_power}, {"correction", test_correction},
         {"least squares", test_least})
