/* Two laws of one program: closed forms, what three rows tell, and which clock to measure next. */
#include "models/chip/chip.h"
#include "tests/support/suite.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static bool near(double a, double b, double share) { return fabs(a - b) <= share * fabs(b); }

static fl_chip_row row(double mhz, double time_s, double power_w) {
    return (fl_chip_row){.sm_mhz = mhz, .mem_mhz = 1, .time_s = time_s, .power_w = power_w};
}

/* At 0.8 of the top clock the voltage is 1 + 0.5 (2/3)^1.5 = 1.272166 of its floor and 1.5 at the top; so V^2 f is
 * 0.8 (1.272166 / 1.5)^2 = 0.575432934 of that at the top. */
static void test_by_hand(void) {
    static const struct {
        const char *what;
        double time_s, power_w; /* at 500 of 1000 MHz; 10 s and 200 W at 1000 */
        double at_800_s, at_800_w;
    } rows[] = {
        /* (T/T0)^4 - 1 = 15 = 2^4 - 1, so b = 1: time follows the clock. P: h(0.5) = 0.5 ((1 + 0.5/6^1.5)/1.5)^2 */
        {"follows the clock", 20, 200 * 0.237599731, 12.5, 200 * 0.575432934},
        {"does not depend on it", 10, 200, 10, 200},
        /* b = 0.5: 1 + 0.5 x 15 = 8.5; at 800 MHz 1 + 0.5 (0.8^-4 - 1) = 1.720703. d = 0.5. */
        {"half", 17.074764852, 100 * 1.237599731, 11.453190566, 100 * 1.575432934},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const fl_chip_row two[] = {row(1000, 10, 200), row(500, rows[i].time_s, rows[i].power_w)};
        fl_two_laws l;
        CU_ASSERT_EQUAL_FATAL(fl_two_laws_fit(&l, two, 2), FL_MODEL_OK);
        const fl_chip_guess g = fl_two_laws_at(&l, 800), low = fl_two_laws_at(&l, 500), top = fl_two_laws_at(&l, 1000);
        FL_CHECK(near(g.time_s, rows[i].at_800_s, 1e-6) && near(g.power_w, rows[i].at_800_w, 1e-5) &&
                     g.basis == FL_CHIP_OWN_LAWS,
                 "%s: %.9g s, %.9g W", rows[i].what, g.time_s, g.power_w);
        FL_CHECK(near(low.time_s, rows[i].time_s, 1e-12) && near(low.power_w, rows[i].power_w, 1e-12) &&
                     near(top.time_s, 10, 1e-12) && near(top.power_w, 200, 1e-12),
                 "%s: rows are met", rows[i].what);
    }
}

/* D = ln(0.8/0.5), far from both rows: hypot(0.003, 0.15 D (1/0.8 - 1) T0/T), four times the second below the rows. */
static void test_deviation(void) {
    const fl_chip_row two[] = {row(1000, 10, 200), row(500, 20, 60)};
    fl_two_laws l;
    CU_ASSERT_EQUAL_FATAL(fl_two_laws_fit(&l, two, 2), FL_MODEL_OK);
    CU_ASSERT_DOUBLE_EQUAL(fl_two_laws_at(&l, 800).time_sd_pct, 100 * hypot(0.003, 0.15 * log(1.6) * 0.25 * 0.8), 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(fl_two_laws_at(&l, 400).time_sd_pct, 100 * hypot(0.003, 4 * 0.15 * log(1.25) * 1.5 * 0.4),
                           1e-9);
    CU_ASSERT_DOUBLE_EQUAL(fl_two_laws_at(&l, 500).time_sd_pct, 0, 1e-12);
}

/* Rows of a law with another sharpness and rise shift both, and rows in any order, repeated, tell the same. */
static void test_three_rows(void) {
    static const double sharp[] = {1, 2, 4, 8};
    for (size_t i = 0; i < COUNT(sharp); i++) {
        fl_chip_row many[4];
        const double mhz[] = {500, 700, 1000, 700};
        for (size_t k = 0; k < 4; k++) {
            const double slow = pow(1 + 0.5 * (pow(1000 / mhz[k], sharp[i]) - 1), 1 / sharp[i]);
            many[k] = row(mhz[k], 10 * slow, 200 * mhz[k] / 1000);
        }
        fl_two_laws l, again;
        CU_ASSERT_EQUAL_FATAL(fl_two_laws_fit(&l, many, 3), FL_MODEL_OK);
        CU_ASSERT_EQUAL_FATAL(fl_two_laws_fit(&again, many, 4), FL_MODEL_OK);
        const double truth = 10 * pow(1 + 0.5 * (pow(1000 / 850.0, sharp[i]) - 1), 1 / sharp[i]);
        FL_CHECK(near(fl_two_laws_at(&l, 850).time_s, truth, 0.008), "p = %g: %g s, really %g", sharp[i],
                 fl_two_laws_at(&l, 850).time_s, truth);
        FL_CHECK((l.sharpness < 4) == (sharp[i] < 4) || sharp[i] == 4, "p = %g: %g", sharp[i], l.sharpness);
        FL_CHECK(near(again.sharpness, l.sharpness, 1e-9) && again.count == l.count, "repeated rows count as one");
    }
}

static void test_refused(void) {
    fl_two_laws l;
    const fl_chip_row one[] = {row(1000, 10, 200), row(1000, 11, 210)};
    CU_ASSERT_EQUAL(fl_two_laws_fit(&l, one, 2), FL_MODEL_NO_FIT);
    CU_ASSERT_EQUAL(fl_two_laws_fit(&l, one, 0), FL_MODEL_NO_FIT);
    const fl_chip_row bad[][2] = {{row(1000, 10, 200), row(500, 0, 100)},
                                  {row(1000, 10, 200), row(500, 20, NAN)},
                                  {row(1000, INFINITY, 200), row(500, 20, 100)}};
    for (size_t i = 0; i < COUNT(bad); i++)
        CU_ASSERT_EQUAL(fl_two_laws_fit(&l, bad[i], 2), FL_MODEL_INVALID);
}

/* The whole course for programs by the law itself: top, 0.7 of it, then what the laws choose, until that was measured.
 */
static void test_in_turn(void) {
    enum { STEPS = 41 };
    double ladder[STEPS];
    for (int i = 0; i < STEPS; i++)
        ladder[i] = 600 + 10 * i;
    static const struct {
        double follows, draws, bound;
        double expected[5]; /* in turn; 0 = the end */
    } rows[] = {
        {1, 1, 0.05, {1000, 700, 960}}, /* (1.05)^-1 = 0.952 of the top clock: 960 of the ladder */
        {0, 1, 0.05, {1000, 700, 600}}, /* nothing is lost: as far down as there is */
        {0, 0, 0.05, {1000, 700}},      /* nothing is saved either: the top stays */
        {1, 1, 1, {1000, 700, 600}},    /* at a bound of 100 % the lowest */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fl_chip_row known[8];
        size_t n = 0;
        for (size_t k = 0; k < 5; k++) {
            const double next = fl_two_laws_next(known, n, ladder, STEPS, rows[i].bound), want = rows[i].expected[k];
            FL_CHECK(want > 0 ? next == want : isnan(next), "row %zu, measurement %zu: %g, expected %g", i, k, next,
                     want);
            if (isnan(next))
                break;
            const double x = next / 1000, up = fmax(0, (x - 0.4) / 0.6), v = (1 + 0.5 * pow(up, 1.5)) / 1.5;
            const double h = x * v * v;
            known[n++] =
                row(next, 10 * pow(1 + rows[i].follows * (pow(x, -4) - 1), 0.25), 200 * (1 - rows[i].draws * (1 - h)));
        }
    }
}

/* A program waits for memory down to 0.8 of the top clock of 1207 MHz, and for the cores below. Its chip has that law
 * exactly. Rows at 757 MHz and the top cannot tell where the corner is, so the time in between is the chip's: laws of
 * the rows alone are 4 % too slow there. */
static void test_rows_far_apart(void) {
    enum { SHARP = 20 };
    const fl_chip chip = {.sm_ref = 1207,
                          .sm_min = 502,
                          .mem_ref = 1,
                          .mem_min = 1,
                          .sharpness = SHARP,
                          .workloads = 3,
                          .time_error = {.scatter = 1e-4, .length_sm = 1, .length_mem = 1, .wide = {1, 1, 1, 1}}};
    const double mhz[] = {502, 757, 1207, 966};
    fl_chip_row rows[4];
    for (size_t i = 0; i < 4; i++)
        rows[i] = row(mhz[i], 10 * pow(pow(0.8 * 1207 / mhz[i], SHARP) + 1, 1.0 / SHARP), NAN);
    fl_chip_guess by_chip, own;
    CU_ASSERT_FATAL(fl_chip_predict(&chip, rows, 3, &rows[3], 1, &by_chip, NULL) == FL_MODEL_OK);
    fl_chip alone;
    CU_ASSERT_FATAL(fl_chip_of_rows(rows, 3, &alone) == FL_MODEL_OK);
    CU_ASSERT_FATAL(fl_chip_predict(&alone, rows, 3, &rows[3], 1, &own, NULL) == FL_MODEL_OK);
    FL_CHECK(near(by_chip.time_s, rows[3].time_s, 0.01) && by_chip.basis == FL_CHIP_TWO_ROWS, "%g s, really %g",
             by_chip.time_s, rows[3].time_s);
    FL_CHECK(own.time_s > 1.02 * rows[3].time_s, "laws of the rows alone: %g s, really %g", own.time_s, rows[3].time_s);
}

/* A chance is worth what choices on measured boards showed, and without such that of a normal. */
static void test_chance(void) {
    const fl_chip_guess top = {1, 100, 0, 0, FL_CHIP_STATED, 0};
    static const struct {
        fl_chip_basis basis;
        double k, bound, chance;
    } rows[] = {{FL_CHIP_OWN_LAWS, 1.2, 0.05, 0.01},   {FL_CHIP_OWN_LAWS, 0.7, 0.05, 0.02},
                {FL_CHIP_OWN_LAWS, 0.2, 0.05, 0.05},   {FL_CHIP_OWN_LAWS, 1.9, 0.1, 0.01},
                {FL_CHIP_OWN_LAWS, 0.8, 0.1, 0.02},    {FL_CHIP_OWN_LAWS, 0, 0.1, 0.05},
                {FL_CHIP_OWN_LAWS, 0.45, 0.05, 0.032}, /* half the way between the quantiles of 2 and 5 % */
                {FL_CHIP_BESIDE, 0.6, 0.05, 0.01},     {FL_CHIP_BESIDE, 0.2, 0.05, 0.05},
                {FL_CHIP_BESIDE, 0, 0.1, 0.01},        {FL_CHIP_TWO_ROWS, 1.9, 0.05, 0.01},
                {FL_CHIP_TWO_ROWS, 0.35, 0.05, 0.05},  {FL_CHIP_TWO_ROWS, 0.5, 0.1, 0.05},
                {FL_CHIP_STATED, 1.645, 0.1, 0.05}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const fl_chip_guess at = {(1 + rows[i].bound) * exp(-0.01 * rows[i].k), 80, 1, 3, rows[i].basis, 0};
        FL_CHECK(near(fl_decide_chance(&at, &top, rows[i].bound), rows[i].chance, 0.01),
                 "row %zu: basis %d, k %g, bound %g: %g, expected %g", i, (int)rows[i].basis, rows[i].k, rows[i].bound,
                 fl_decide_chance(&at, &top, rows[i].bound), rows[i].chance);
    }
    /* The noise of repeated runs counts as a normal: alone, and beside the 0.01 that a law at k = 0.7 is worth 2.054
     * of. */
    const fl_chip_guess noisy = {1.05 * exp(-0.0329), 80, 2, 3, FL_CHIP_OWN_LAWS, 2};
    CU_ASSERT_DOUBLE_EQUAL(fl_decide_chance(&noisy, &top, 0.05), 0.05, 0.002);
    const fl_chip_guess even = {1.05, 80, 2, 3, FL_CHIP_OWN_LAWS, 2}; /* at the bound it breaks in every other run */
    CU_ASSERT_DOUBLE_EQUAL(fl_decide_chance(&even, &top, 0.05), 0.5, 1e-9);
    const fl_chip_guess both = {1.05 * exp(-0.007), 80, hypot(1, 0.5), 3, FL_CHIP_OWN_LAWS, 0.5};
    const double z = 0.007 / hypot(0.007 / 2.054, 0.005);
    CU_ASSERT_DOUBLE_EQUAL(fl_decide_chance(&both, &top, 0.05), 0.5 * erfc(z / sqrt(2)), 1e-4);
    for (int basis = 0; basis < FL_CHIP_BASES; basis++) /* further from the bound the chance is never greater */
        for (int i = -40; i < 60; i++) {
            const fl_chip_guess near_bound = {1.07 * exp(-0.001 * i), 80, 1, 3, (fl_chip_basis)basis, 0};
            const fl_chip_guess further = {1.07 * exp(-0.001 * (i + 1)), 80, 1, 3, (fl_chip_basis)basis, 0};
            FL_CHECK(fl_decide_chance(&further, &top, 0.07) <= fl_decide_chance(&near_bound, &top, 0.07) + 1e-12,
                     "basis %d, k %g", basis, 0.1 * i);
        }
}

FL_SUITE("two_laws", {"by hand", test_by_hand}, {"deviation", test_deviation}, {"three rows", test_three_rows},
         {"refused", test_refused}, {"in turn", test_in_turn}, {"rows far apart", test_rows_far_apart},
         {"chance", test_chance})
