/* Power limits: which of them bind, and at which clock a program runs under one. */
#include "models/chip/chip.h"
#include "models/math/math.h"
#include "tests/support/suite.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- which limits bind ---- */

/* B binds, F does not, ? cannot be told; scatter 0.2 % in time, 0.5 % in power. */
static void test_binds(void) {
    static const struct {
        const char *what;
        fl_cap_cell cell[4];
        const char *want;
    } rows[] = {
        {"none binds", {{300, 10, 150, 0}, {250, 10.01, 150.3, 0}, {200, 9.99, 149.8, 0}}, "FFF"},
        {"close to its limit, and free", {{300, 10, 148, 0}, {200, 10.01, 148.2, 0}, {150, 10.0, 147.5, 0}}, "FFF"},
        {"at 95.5 % of its limit, and bound",
         {{300, 10, 180, 0}, {200, 10.01, 180.3, 0}, {150, 11.2, 143.2, 0}},
         "FFB"},
        {"memory-bound: only the power tells",
         {{300, 10, 169.9, 0}, {175, 10, 169.5, 0}, {150, 10.01, 145.2, 0}},
         "FFB"},
        {"all bind", {{300, 10, 290, 0}, {250, 10.8, 242, 0}, {200, 11.9, 195, 0}}, "BBB"},
        {"no limit at the top", {{INFINITY, 10, 290, 0}, {250, 10.8, 242, 0}}, "FB"},
        {"below a limit that binds all do", {{300, 10, 200, 0}, {200, 11, 190, 0}, {190, 11.01, 189.5, 0}}, "FBB"},
        {"and although it changes little", {{300, 10, 200, 0}, {192, 10, 190, 0}, {191, 10, 189.6, 0}}, "FBB"},
        {"no power known", {{300, 10, NAN, 0}, {200, 11, NAN, 0}}, "FF"},
        {"one limit, far", {{300, 10, 200, 0}}, "F"},
        /* 4 deviations of a difference, which are sqrt(2) times those of a reading: 1.1378 % of time, 2.868 % of power
         */
        {"1.12 % slower", {{300, 10, 180, 0}, {200, 10.112, 180, 0}}, "FF"},
        {"1.16 % slower", {{300, 10, 180, 0}, {200, 10.116, 180, 0}}, "FB"},
        {"2.8 % less power", {{300, 10, 180, 0}, {200, 10, 175.03, 0}}, "FF"},
        {"2.9 % less power", {{300, 10, 180, 0}, {200, 10, 174.85, 0}}, "FB"},
        {"3 deviations of time", {{300, 10, 180, 0}, {200, 10.0852, 180, 0}}, "FF"},
        {"3 of power", {{300, 10, 180, 0}, {200, 10, 176.22, 0}}, "FF"},
        {"3 of both: 4.2 together", {{300, 10, 180, 0}, {200, 10.0852, 176.22, 0}}, "FB"},
        {"faster, and more power", {{300, 10, 180, 0}, {200, 9, 190, 0}}, "FF"},
        /* what sets in step by step: more than 3 % slower than at the highest limit */
        {"2.9 % in three steps",
         {{300, 10, 140, 0}, {250, 10.1, 140, 0}, {200, 10.2, 140, 0}, {150, 10.29, 140, 0}},
         "FFFF"},
        {"3.1 % in three steps",
         {{300, 10, 140, 0}, {250, 10.1, 140, 0}, {200, 10.2, 140, 0}, {150, 10.31, 140, 0}},
         "FFFB"},
        /* a mean power of three quarters of a limit that binds, at least */
        {"at 74.9 % of its limit", {{400, 10, 180, 0}, {200, 11, 149.8, 0}}, "FF"},
        {"at 75 %", {{400, 10, 180, 0}, {200, 11, 150, 0}}, "FB"},
        {"the higher limit at 74.9 %", {{400, 10, 299.6, 0}, {200, 11, 190, 0}}, "FB"},
        {"and at 75 %", {{400, 10, 300, 0}, {200, 11, 190, 0}}, "BB"},
        {"the same limit twice", {{300, 10, 180, 0}, {200, 11, 190, 0}, {200, 11.5, 170, 0}}, "FBB"},
        {"and where it does not bind", {{300, 10, 180, 0}, {300, 11, 290, 0}}, "FF"},
        {"one limit, at 97 %", {{300, 10, 291, 0}}, "?"},
        {"one limit, at 96.9 %", {{300, 10, 290.7, 0}}, "F"},
        {"one limit, close", {{300, 10, 294, 0}}, "?"},
        {"one limit, none", {{INFINITY, 10, 294, 0}}, "F"},
    };
    const fl_cap_scatter scatter = {0.002, 0.005};
    for (size_t i = 0; i < COUNT(rows); i++) {
        fl_cap_cell cell[4];
        const size_t n = strlen(rows[i].want);
        memcpy(cell, rows[i].cell, sizeof cell);
        fl_cap_test(cell, n, &scatter);
        for (size_t k = 0; k < n; k++)
            FL_CHECK("FB?"[cell[k].verdict] == rows[i].want[k], "%s, cell %zu: %c, expected %c", rows[i].what, k,
                     "FB?"[cell[k].verdict], rows[i].want[k]);
    }
}

static void test_scatter(void) {
    fl_cap_cell cell[8];
    double time[8], power[8];
    for (int i = 0; i < 8; i++) /* powers alternate by 1 %, times by 0.2 % */
        cell[i] = (fl_cap_cell){400 - 20 * i, i % 2 ? 10.02 : 10, i % 2 ? 101 : 100, FL_CAP_FREE};
    const size_t n = fl_cap_repeats(cell, 8, time, power);
    const fl_cap_scatter s = fl_cap_scatter_of(time, power, n);
    FL_CHECK(n == 7, "%zu repeats", n);
    FL_CHECK(fabs(s.time - 1.4826 * 0.002 / M_SQRT2) < 1e-4 && fabs(s.power - 1.4826 * 0.01 / M_SQRT2) < 1e-4,
             "time %g, power %g", s.time, s.power);
    for (int i = 0; i < 8; i++)
        cell[i].power_w = 390 - 20 * i; /* all are close to their limits: none says how readings repeat */
    FL_CHECK(fl_cap_repeats(cell, 8, time, power) == 0, "limits that may bind");
    const fl_cap_scatter none = fl_cap_scatter_of(time, power, 4);
    FL_CHECK(none.time == 0.005 && none.power == 0.01, "four repeats are too few: %g, %g", none.time, none.power);
    /* 1.4826 times the median of differences, which are sqrt(2) times those of a reading; a tenth of a per cent at
     * least. The median of five is the third, in whatever order. */
    double five_time[] = {0.004, 0.001, 0.1, 0.003, 0.002}, five_power[] = {0.0005, 0.0001, 0.0002, 0.9, 0.0009};
    const fl_cap_scatter five = fl_cap_scatter_of(five_time, five_power, 5);
    FL_CHECK(fabs(five.time - 1.4826 * 0.003 / M_SQRT2) < 1e-15 && five.power == 1e-3, "of five: %g, %g", five.time,
             five.power);
    /* below a limit of none there is no repeat; at three quarters of the limit there is none either */
    fl_cap_cell few[] = {
        {INFINITY, 10, 100, 0}, {300, 10, 110, 0}, {200, 11, 121, 0}, {160, 11, 120, 0}, {150, 11, 90, 0}};
    FL_CHECK(fl_cap_repeats(few, 5, time, power) == 2 && fabs(time[0] - log(1.1)) < 1e-12 &&
                 fabs(power[0] - log(1.1)) < 1e-12 && time[1] == 0 && fabs(power[1] - log(120 / 90.0)) < 1e-12,
             "%g, %g, %g, %g", time[0], power[0], time[1], power[1]);
    FL_CHECK(fl_cap_repeats(few, 1, time, power) == 0 && fl_cap_repeats(few, 0, time, power) == 0, "nothing repeats");
}

static void test_clock(void) {
    const double mhz[] = {600, 900, 1200, 1500}, watts[] = {100, 130, 180, 260};
    const struct {
        double watts, want;
        fl_model_status status;
    } rows[] = {{300, 1500, FL_MODEL_OK},
                {260, 1500, FL_MODEL_OK},
                {180, 1200, FL_MODEL_OK},
                {100, 600, FL_MODEL_OK},
                {99, 600, FL_MODEL_RANGE},
                {sqrt(180 * 260.0), sqrt(1200 * 1500.0), FL_MODEL_OK},
                {pow(100, 0.75) * pow(130, 0.25), pow(600, 0.75) * pow(900, 0.25), FL_MODEL_OK},
                {pow(130, 0.1) * pow(180, 0.9), pow(900, 0.1) * pow(1200, 0.9), FL_MODEL_OK}};
    double at = 0;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const fl_model_status s = fl_cap_clock(mhz, watts, 4, rows[i].watts, &at);
        FL_CHECK(s == rows[i].status && fabs(at - rows[i].want) < 1e-9, "%g W: %s, %g MHz", rows[i].watts,
                 fl_model_text(s), at);
    }
    const double bad[] = {100, NAN, 180, 260};
    FL_CHECK(fl_cap_clock(mhz, bad, 4, 150, &at) == FL_MODEL_INVALID, "a power that is none");
    const double none[] = {0, 130, 180, 260}, off[] = {0, 900, 1200, 1500};
    FL_CHECK(fl_cap_clock(mhz, none, 4, 150, &at) == FL_MODEL_INVALID, "a clock that draws nothing");
    FL_CHECK(fl_cap_clock(off, watts, 4, 150, &at) == FL_MODEL_INVALID, "a clock that is none");
    FL_CHECK(fl_cap_clock(mhz, watts, 0, 150, &at) == FL_MODEL_INVALID, "no clocks");
    FL_CHECK(fl_cap_clock(mhz, watts, 4, 0, &at) == FL_MODEL_INVALID, "no power");
}

/* A program of d = 0.8 and b = 0.6 whose board holds its limits exactly: P = L below 200 W, T by the clock that has
 * this power. Two runs and three give the others; rows whose limit the board does not hold are counted. */
static void test_law(void) {
    fl_cap_cell all[9], three[3];
    for (size_t i = 0; i < 9; i++) {
        const double limit = 250 - 12.5 * (double)i, power = fmin(200, limit);
        double low = 0.1, high = 1;
        for (int k = 0; k < 60; k++) { /* h(x) = x ((1 + 0.5 up) / 1.5)^2 */
            const double x = 0.5 * (low + high), v = (1 + 0.5 * pow(fmax(0, (x - 0.4) / 0.6), 1.5)) / 1.5;
            *(1 - 0.8 * (1 - x * v * v) < power / 200 ? &low : &high) = x;
        }
        all[i] = (fl_cap_cell){limit, 10 * pow(1 + 0.6 * (pow(high, -4) - 1), 0.25), power, FL_CAP_FREE};
    }
    CU_ASSERT(fl_cap_held(all, 9) == 9);
    for (size_t rows = 2; rows <= 3; rows++) {
        three[0] = all[0];
        three[1] = rows == 3 ? all[6] : all[8];
        three[2] = all[8];
        fl_cap_law l;
        CU_ASSERT_FATAL(fl_cap_law_fit(&l, three, rows) == FL_MODEL_OK);
        for (size_t i = 0; i < 9; i++) {
            const fl_chip_guess g = fl_cap_law_at(&l, all[i].limit_w);
            FL_CHECK(fabs(g.power_w / all[i].power_w - 1) < 1e-6 && fabs(g.time_s / all[i].time_s - 1) < 0.012,
                     "%zu rows, %g W: %g s, expected %g, %g W, expected %g", rows, all[i].limit_w, g.time_s,
                     all[i].time_s, g.power_w, all[i].power_w);
        }
        CU_ASSERT(fabs(fl_cap_law_clock(&l, 200) - 1) < 1e-9 && fl_cap_law_clock(&l, 150) < fl_cap_law_clock(&l, 175));
    }
}

/* The crest falls with depth: 1 - (1 - 0.95) (L / L_run)^1.5. */
static void test_crest(void) {
    const fl_cap_cell two[] = {{300, 10, 200, FL_CAP_FREE}, {160, 12, 152, FL_CAP_FREE}};
    fl_cap_law l;
    CU_ASSERT_FATAL(fl_cap_law_fit(&l, two, 2) == FL_MODEL_OK);
    CU_ASSERT_DOUBLE_EQUAL(fl_cap_law_at(&l, 160).power_w, 152, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(fl_cap_law_at(&l, 160).time_s, 12, 1e-3);
    CU_ASSERT_DOUBLE_EQUAL(fl_cap_law_at(&l, 120).power_w, 120 * (1 - 0.05 * pow(0.75, 1.5)), 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(fl_cap_law_at(&l, 300).power_w, 200, 1e-9);
    CU_ASSERT(fl_cap_law_fit(&l, two, 1) == FL_MODEL_NO_FIT && fl_cap_law_fit(&l, two, 0) == FL_MODEL_NO_FIT);
    const fl_cap_cell wrong[] = {{160, 12, 152, FL_CAP_FREE}, {300, 10, 200, FL_CAP_FREE}};
    CU_ASSERT(fl_cap_law_fit(&l, wrong, 2) == FL_MODEL_INVALID);
    const fl_cap_cell over[] = {{300, 10, 200, 0}, {160, 12, 158, 0}, {120, 13, 130, 0}, {100, 15, 99, 0}};
    const fl_cap_cell frozen[] = {{300, 10, 200, 0}, {160, 12, 158, 0}, {150, 12.1, 157, 0}};
    const fl_cap_cell again[] = {{300, 10, 200, 0}, {160, 12, 158, 0}, {158, 12.1, 157, 0}};
    CU_ASSERT(fl_cap_held(over, 4) == 2 && fl_cap_held(frozen, 3) == 2 && fl_cap_held(again, 3) == 3);
}

FL_SUITE("cap", {"binds", test_binds}, {"scatter", test_scatter}, {"clock", test_clock}, {"law", test_law},
         {"crest", test_crest})
