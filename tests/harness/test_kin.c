/* A GPU without measurements, from what chips like it are: what is known narrows what is not. */
#include "harness/input/platform/platform.h"
#include "models/chip/chip.h"
#include "models/fit/fit.h"
#include "models/laws/device.h"
#include "models/math/math.h"
#include "traces/io/io.h"
#include "tests/support/known_chips.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static bool near(double a, double b, double share) { return fabs(a / b - 1) <= share; }

/* A platform's constants as shares: V100 of 300 W, 1530 MHz, V 1 up to 900 MHz and 1.43 at the top. */
static void test_parts(void) {
    fl_platform p = {0};
    fl_diag d = {0};
    fl_kin k;
    CU_ASSERT_FATAL(fl_platform_open("v100-300w", 1, &p, &d) == FL_OK);
    const fl_device *dev = &p.node.device[0];
    CU_ASSERT_FATAL(fl_kin_of_device(dev, &k) == FL_MODEL_OK);
    const double square = 1.43 * 1.43 * 1.53 / 300;
    FL_CHECK(near(k.part[FL_KIN_A], dev->a_w * square, 1e-9) && near(k.part[FL_KIN_A0], dev->a0_w * square, 1e-9) &&
                 near(k.part[FL_KIN_B], dev->b_w / 300, 1e-9) && near(k.part[FL_KIN_B0], dev->b0_w[0] / 300, 1e-9) &&
                 near(k.part[FL_KIN_C], dev->c_w / 300, 1e-9) && near(k.part[FL_KIN_RISE], 0.43, 1e-9),
             "A %g A0 %g B %g B0 %g C %g rise %g", k.part[FL_KIN_A], k.part[FL_KIN_A0], k.part[FL_KIN_B],
             k.part[FL_KIN_B0], k.part[FL_KIN_C], k.part[FL_KIN_RISE]);
    FL_CHECK(near(k.part[FL_KIN_KNEE], 900.0 / 1530, 0.05) && k.part[FL_KIN_BEND] > 1 && k.part[FL_KIN_BEND] < 2,
             "knee %g bend %g", k.part[FL_KIN_KNEE], k.part[FL_KIN_BEND]);
    p.node.device[0].tdp_w = 0;
    CU_ASSERT(fl_kin_of_device(dev, &k) == FL_MODEL_INVALID);
    fl_platform_free(&p);
}

/* Of 1, 2 and 4: the middle is 2, a deviation is a factor of 2, and of three chips the next may lie farther: Student's
 * 0.975 quantile of two degrees over the normal one, times the root of 4/3. */
static void test_prior(void) {
    fl_kin kin[3];
    fl_kin_spread s;
    for (size_t i = 0; i < 3; i++)
        for (int k = 0; k < FL_KIN_COUNT; k++)
            kin[i].part[k] = pow(2, (double)i);
    CU_ASSERT_FATAL(fl_kin_prior(kin, 3, &s) == FL_MODEL_OK);
    for (int k = 0; k < FL_KIN_COUNT; k++)
        FL_CHECK(near(s.middle[k], 2, 1e-9) && near(s.factor[k], pow(2, 4.302653 / 1.959964 * sqrt(4.0 / 3)), 1e-4),
                 "%s: %g, factor %g", fl_kin_what[k], s.middle[k], s.factor[k]);
    CU_ASSERT(fl_kin_prior(kin, 2, &s) == FL_MODEL_NO_FIT);
}

static const int32_t maxq_sm[] = {135, 300, 450, 600, 750, 855, 952, 1050, 1140, 1245, 1335, 1440}, maxq_mem[] = {810};
static const fl_kin_facts maxq = {maxq_sm, maxq_mem, COUNT(maxq_sm), 1, 810, 163};

/* What is known narrows what is not. The idle V100 of 163 W, as published with GEEPAFS; a prior without V100s. */
static void test_idle(void) {
    static const fl_idle_point idle[] = {{135, 43, 1}, {855, 48, 1}, {1050, 51, 1}, {1245, 59, 1}, {1440, 65, 1}};
    static fl_chip blind, seen, again;
    fl_kin kin[KIN_MAX];
    fl_kin_spread prior, none, after;
    CU_ASSERT_FATAL(fl_kin_prior(kin, known_chips("v100*", kin), &prior) == FL_MODEL_OK);
    CU_ASSERT_FATAL(fl_kin_chip(&maxq, &prior, NULL, 0, NULL, 0, &blind, &none) == FL_MODEL_OK);
    CU_ASSERT_FATAL(fl_kin_chip(&maxq, &prior, idle, COUNT(idle), NULL, 0, &seen, &after) == FL_MODEL_OK);
    double worst = 0, blind_worst = 0, mean = 0;
    for (size_t i = 0; i < COUNT(idle); i++) {
        const fl_chip *chip[] = {&seen, &blind};
        for (size_t k = 0; k < 2; k++) {
            const double v = fl_chip_volt(chip[k], idle[i].sm_mhz, 810);
            const double watts =
                fl_chip_b0(chip[k], 810) + chip[k]->c_w * v + chip[k]->a0_w * v * v * idle[i].sm_mhz / 1000;
            double *of = k ? &blind_worst : &worst;
            *of = fmax(*of, fabs(watts / idle[i].power_w - 1));
            mean += k ? 0 : log(watts / idle[i].power_w) / COUNT(idle);
        }
    }
    FL_CHECK(worst < 0.05 && blind_worst > 0.1, "idle power within %.3f with the log, %.3f without", worst,
             blind_worst);
    FL_CHECK(fabs(mean) < 1e-9, "idle power in the mean off by %g", mean);
    static const int told[] = {FL_KIN_A0, FL_KIN_B0, FL_KIN_C};
    for (size_t i = 0; i < COUNT(told); i++)
        FL_CHECK(after.factor[told[i]] < none.factor[told[i]], "%s: factor %.3f with the log, %.3f without",
                 fl_kin_what[told[i]], after.factor[told[i]], none.factor[told[i]]);
    FL_CHECK(near(log(after.factor[FL_KIN_B]), log(none.factor[FL_KIN_B]), 0.2) &&
                 near(after.middle[FL_KIN_B], none.middle[FL_KIN_B], 0.2),
             "an idle GPU says nothing of B: factor %.3f, was %.3f; %.3f, was %.3f", after.factor[FL_KIN_B],
             none.factor[FL_KIN_B], after.middle[FL_KIN_B], none.middle[FL_KIN_B]);
    FL_CHECK(seen.power_error.smooth < blind.power_error.smooth, "deviation %.3f with the log, %.3f without",
             seen.power_error.smooth, blind.power_error.smooth);
    FL_CHECK(near(none.factor[FL_KIN_A], prior.factor[FL_KIN_A], 0.05) &&
                 near(none.middle[FL_KIN_A], prior.middle[FL_KIN_A], 0.05),
             "without anything known: the prior, %g x/ %g", none.middle[FL_KIN_A], none.factor[FL_KIN_A]);
    CU_ASSERT_FATAL(fl_kin_chip(&maxq, &prior, idle, COUNT(idle), NULL, 0, &again, NULL) == FL_MODEL_OK);
    FL_CHECK(!memcmp(&seen.power_off, &again.power_off, sizeof seen.power_off) && seen.a_w == again.a_w,
             "the same twice");
    FL_CHECK(seen.workloads == 0 && seen.shares > 0 && seen.settings > 0 && seen.has_power, "a chip without workloads");
}

/* A run of one workload over the clocks tells how steeply power rises. */
static void test_run(void) {
    static fl_chip truth, blind, seen;
    fl_kin kin[KIN_MAX];
    fl_kin_spread prior, steep, none, after;
    fl_chip_row run[5];
    const fl_chip_load load = {0.8, 0.15, 0.05, 0.9, 0.1};
    CU_ASSERT_FATAL(fl_kin_prior(kin, known_chips(NULL, kin), &prior) == FL_MODEL_OK);
    steep = prior;
    steep.middle[FL_KIN_RISE] *= prior.factor[FL_KIN_RISE]; /* a deviation off what is usual */
    CU_ASSERT_FATAL(fl_kin_chip(&maxq, &steep, NULL, 0, NULL, 0, &truth, NULL) == FL_MODEL_OK);
    for (size_t i = 0; i < COUNT(run); i++) {
        const double f = maxq_sm[3 + 2 * i], time = fl_chip_time(&truth, &load, f, 810);
        run[i] = (fl_chip_row){
            .sm_mhz = f, .mem_mhz = 810, .time_s = 7 * time, .power_w = fl_chip_power(&truth, &load, f, 810, time)};
    }
    CU_ASSERT_FATAL(fl_kin_chip(&maxq, &prior, NULL, 0, NULL, 0, &blind, &none) == FL_MODEL_OK);
    CU_ASSERT_FATAL(fl_kin_chip(&maxq, &prior, NULL, 0, run, COUNT(run), &seen, &after) == FL_MODEL_OK);
    fl_kin_spread longer;
    for (size_t i = 0; i < COUNT(run); i++)
        run[i].time_s *= 100;
    CU_ASSERT_FATAL(fl_kin_chip(&maxq, &prior, NULL, 0, run, COUNT(run), &seen, &longer) == FL_MODEL_OK);
    FL_CHECK(near(longer.middle[FL_KIN_A], after.middle[FL_KIN_A], 1e-6) &&
                 near(longer.factor[FL_KIN_A], after.factor[FL_KIN_A], 1e-6),
             "a run a hundred times as long tells the same: %g, %g", longer.middle[FL_KIN_A], after.middle[FL_KIN_A]);
    const double is = fl_chip_volt(&truth, 1440, 810), told = fl_chip_volt(&seen, 1440, 810),
                 before = fl_chip_volt(&blind, 1440, 810);
    FL_CHECK(fabs(told - is) < 0.7 * fabs(before - is) &&
                 fabs(log((is - 1) / after.middle[FL_KIN_RISE])) < 2 * log(after.factor[FL_KIN_RISE]),
             "V at the top %.3f, was %.3f, is %.3f", told, before, is);
    FL_CHECK(after.factor[FL_KIN_RISE] < none.factor[FL_KIN_RISE], "factor %.3f, was %.3f", after.factor[FL_KIN_RISE],
             none.factor[FL_KIN_RISE]);
}

static void test_refusals(void) {
    static fl_chip chip;
    fl_kin_spread prior;
    fl_kin kin[KIN_MAX];
    CU_ASSERT_FATAL(fl_kin_prior(kin, known_chips(NULL, kin), &prior) == FL_MODEL_OK);
    fl_kin_facts wrong[] = {maxq, maxq, maxq, maxq, maxq};
    wrong[0].sm_count = 1;
    wrong[1].mem_count = 0;
    wrong[2].tdp_w = 0;
    wrong[3].default_mem_mhz = 811;
    wrong[4].tdp_w = INFINITY;
    for (size_t i = 0; i < COUNT(wrong); i++)
        FL_CHECK(fl_kin_chip(&wrong[i], &prior, NULL, 0, NULL, 0, &chip, NULL) == FL_MODEL_INVALID, "facts %zu", i);
}

FL_SUITE("kin", {"parts", test_parts}, {"prior", test_prior}, {"idle", test_idle}, {"run", test_run},
         {"refusals", test_refusals})
