/* What one may rely on who chooses by a fit: chance, risk and regret, worked by hand; the same of a workload's kernels
 * added up, and between the clocks that are stated. */
#include "harness/input/scene/scene.h"
#include "models/chip/chip.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/suite.h"

#include <math.h>

static void test_chance(void) {
    const fl_chip_guess top = {1, 100, NAN, NAN}, unsure_top = {1, 100, 1, 1};
    const fl_chip_guess sure = {1.05, 60, NAN, NAN}, unsure = {1.05, 60, 2, 2}, slow = {1.2, 50, NAN, NAN};
    CU_ASSERT(fl_decide_chance(&top, &top, 0) == 0 && fl_decide_chance(&unsure_top, &unsure_top, 0) == 0);
    CU_ASSERT(fl_decide_chance(&sure, &top, 0.05) == 0 && fl_decide_chance(&slow, &top, 0.05) == 1);
    CU_ASSERT(fl_decide_chance(&unsure, &top, INFINITY) == 0);
    CU_ASSERT_DOUBLE_EQUAL(fl_decide_chance(&unsure, &top, 0.05), 0.5, 1e-9);
    /* ln(1.10/1.05) = 0.04652: 2.326 deviations of 2 %, a chance of 1.001 %; with the top's 1 %: 2.0804, 1.8744 % */
    CU_ASSERT_DOUBLE_EQUAL(fl_decide_chance(&unsure, &top, 0.10), 0.01001, 1e-5);
    CU_ASSERT_DOUBLE_EQUAL(fl_decide_chance(&unsure, &unsure_top, 0.10), 0.01874, 1e-5);
}

static void test_allows(void) {
    const fl_chip_guess top = {1, 100, NAN, NAN}, unsure = {1.05, 60, 2, 2}, none = {NAN, NAN, NAN, NAN};
    static const struct {
        double bound, risk;
        int allowed;
    } row[] = {{0.10, 1, 1}, {0.10, 0.05, 1}, {0.10, 0.01, 0}, {0.05, 1, 1}, {0.05, 0.05, 0}, {0.04, 1, 0}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        FL_CHECK(fl_decide_allows(&unsure, &top, row[i].bound, row[i].risk) == row[i].allowed, "row %zu", i);
    CU_ASSERT_FALSE(fl_decide_allows(&none, &top, 0.10, 1));
    /* to the last bit within the bound, which holds; a little more does not */
    const fl_chip_guess at = {1 + 0.1 + FL_DECIDE_TOLERANCE, 60, NAN, NAN},
                        above = {1.1 + 3 * FL_DECIDE_TOLERANCE, 60, NAN, NAN};
    CU_ASSERT(fl_decide_allows(&at, &top, 0.10, 0));
    CU_ASSERT_FALSE(fl_decide_allows(&above, &top, 0.10, 1));
    /* of even chance: allowed where that much risk is, or more */
    const fl_chip_guess even = {1.05, 60, 2, 2};
    const double chance = fl_decide_chance(&even, &top, 0.06);
    CU_ASSERT(fl_decide_allows(&even, &top, 0.06, chance));
    CU_ASSERT_FALSE(fl_decide_allows(&even, &top, 0.06, chance * 0.999));
}

static void test_regret(void) {
    /* Energies 100, 63 (chosen), 63 unsure; one that is better and breaks the bound. */
    const fl_chip_guess g[] = {
        {1, 100, NAN, NAN}, {1.05, 60, NAN, NAN}, {1.05, 60, 0, 2}, {2, 25, NAN, NAN}, {NAN, NAN, NAN, NAN}};
    CU_ASSERT_DOUBLE_EQUAL(fl_decide_cost_sd(&(fl_chip_guess){1, 1, 3, 4}, 1), 0.05, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(fl_decide_cost_sd(&(fl_chip_guess){1, 1, 3, 8}, 2), 0.10, 1e-12);
    /* of two alike, one unsure by 2 %: half of the normal's mean above 0, 0.02/sqrt(2 pi) */
    CU_ASSERT_DOUBLE_EQUAL(fl_decide_regret(g, 5, 0, 1, 0.10, 1), 0.02 / sqrt(2 * M_PI), 1e-9);
    /* the unsure one holds a bound of 5 % to the last digit; ln(63/50) once the slow one may be chosen */
    CU_ASSERT_DOUBLE_EQUAL(fl_decide_regret(g, 5, 0, 1, 1.0, 1), log(63.0 / 50), 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(fl_decide_regret(g, 2, 0, 1, 0.10, 1), 0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(fl_decide_regret(g, 2, 0, 0, 0.10, 1), log(100.0 / 63), 1e-9);
}

/* Two kernels, of 1 and 3 s; the second is not stated at 1000 MHz. */
static void test_kernels(void) {
    char workload[] = "w", other[] = "v", one[] = "k", two[] = "l";
    char *names[] = {workload, other, one, two};
    fl_sweep_row row[] = {
        {0, 2, 800, 877, NAN, 1, 100, 100, .time_sd_pct = 4, .power_sd_pct = 2},
        {0, 3, 800, 877, NAN, 3, 50, 150, .time_sd_pct = 2, .power_sd_pct = 4},
        {0, 2, 1000, 877, NAN, 1, 100, 100, .time_sd_pct = NAN, .power_sd_pct = NAN},
        {0, 2, 1200, 877, NAN, 0.9, 120, 108, .time_sd_pct = NAN, .power_sd_pct = NAN},
        {0, 3, 1200, 877, NAN, 3, 60, 180, .time_sd_pct = NAN, .power_sd_pct = NAN},
        {1, 2, 1200, 877, NAN, 1, 1, 1, .time_sd_pct = NAN, .power_sd_pct = NAN},
    };
    const fl_sweep s = {.names = names, .name_count = 4, .rows = row, .row_count = 6};
    fl_stated stated;
    fl_chip_guess g;
    fl_diag d = {0};
    CU_ASSERT_FATAL(fl_stated_make(&s, 0, false, 0, INFINITY, 877, &stated, &d) == FL_OK);
    FL_CHECK(stated.count == 2 && stated.at[0].sm_mhz == 800 && stated.at[1].sm_mhz == 1200, "%zu settings",
             stated.count);
    CU_ASSERT(fl_stated_at(&stated, (fl_setting_clocks){800, 877, 0}, &g) && fabs(g.time_s - 4) < 1e-12 &&
              fabs(g.power_w - 62.5) < 1e-12);
    CU_ASSERT(fabs(g.time_sd_pct - 2.5) < 1e-12 && fabs(g.power_sd_pct - 3.2) < 1e-12);
    /* half way: a line, and the greater deviation */
    CU_ASSERT(fl_stated_at(&stated, (fl_setting_clocks){1000, 877, 0}, &g) && fabs(g.time_s - 3.95) < 1e-12 &&
              fabs(g.time_sd_pct - 2.5) < 1e-12);
    CU_ASSERT(!fl_stated_at(&stated, (fl_setting_clocks){700, 877, 0}, &g) &&
              !fl_stated_at(&stated, (fl_setting_clocks){1000, 810, 0}, &g));
    const fl_setting_clocks low = {800, 877, 0}, top = {1200, 877, 0}, outside = {700, 877, 0};
    CU_ASSERT_DOUBLE_EQUAL(fl_stated_chance(&stated, low, top, 4 / 3.9 - 1), 0.5, 1e-9);
    CU_ASSERT(fl_stated_chance(&stated, top, top, 0) == 0 && isnan(fl_stated_chance(&stated, outside, top, 0.1)));
    /* 288 J at the top, 250 J below: ln(288/250), surely within the bound */
    FL_CHECK(fl_stated_regret(&stated, top, top, 1, 1) >= log(288.0 / 250) &&
                 fl_stated_regret(&stated, low, top, 1, 1) < 0.01,
             "%g, %g", fl_stated_regret(&stated, top, top, 1, 1), fl_stated_regret(&stated, low, top, 1, 1));
    fl_stated_free(&stated);
    CU_ASSERT(fl_stated_make(&s, 0, false, 900, INFINITY, 877, &stated, &d) == FL_OK && stated.count == 1);
    fl_stated_free(&stated);
    CU_ASSERT(fl_stated_make(&s, 1, false, 0, INFINITY, 877, &stated, &d) == FL_OK && stated.count == 0);
    CU_ASSERT(fl_stated_make(&s, 1, true, 0, INFINITY, 877, &stated, &d) == FL_OK && stated.count == 1);
    fl_stated_free(&stated);
}

FL_SUITE("decide", {"chance", test_chance}, {"allows", test_allows}, {"regret", test_regret}, {"kernels", test_kernels})
