/* Clocks chosen by a fit, and what the hardware does at them: worked by hand. */
#include "harness/chip/chip.h"
#include "harness/fit/chip/inside.h"
#include "models/chip/chip.h"

#include <cjson/cJSON.h>
#include "tests/support/suite.h"

#include <math.h>

enum { CLOCKS = 4 };

/* 600, 800, 1000, 1200 MHz. Real: 1.3 s x 50 W = 65 J, 1.12 x 60 = 67.2, 1.04 x 75 = 78, 1 x 100 = 100. */
static fl_chip_row row[CLOCKS] = {{0, 600, 877, 1.3, 50, NULL},
                                  {0, 800, 877, 1.12, 60, NULL},
                                  {0, 1000, 877, 1.04, 75, NULL},
                                  {0, 1200, 877, 1, 100, NULL}};
static fl_fit_entity entity = {.first = 0, .count = CLOCKS};
static const fl_fit_rows rows = {.row = row, .count = CLOCKS, .entity = &entity, .entities = 1, .mem_known = true};

static void test_choices(void) {
    static const struct {
        const char *what;
        fl_chip_guess guess[CLOCKS];
        fl_fit_question q;
        size_t chosen, best;
        double excess, regret, chance;
    } table[] = {
        {"the truth itself",
         {{1.3, 50, NAN, NAN}, {1.12, 60, NAN, NAN}, {1.04, 75, NAN, NAN}, {1, 100, NAN, NAN}},
         {0.05, 1},
         2,
         2,
         -0.01,
         0,
         0},
        {"a wider bound",
         {{1.3, 50, NAN, NAN}, {1.12, 60, NAN, NAN}, {1.04, 75, NAN, NAN}, {1, 100, NAN, NAN}},
         {0.12, 1},
         1,
         1,
         0,
         0,
         0},
        {"a prediction that is too fast",
         {{1.3, 50, NAN, NAN}, {1.05, 60, 2, 2}, {1.04, 75, NAN, NAN}, {1, 100, NAN, NAN}},
         {0.05, 1},
         1,
         2,
         0.07,
         67.2 / 78 - 1,
         0.5},
        {"the same with caution",
         {{1.3, 50, NAN, NAN}, {1.05, 60, 2, 2}, {1.04, 75, NAN, NAN}, {1, 100, NAN, NAN}},
         {0.05, 0.05},
         2,
         2,
         -0.01,
         0,
         0},
        {"a risk that allows it",
         {{1.3, 50, NAN, NAN}, {1.05, 60, 2, 2}, {1.04, 75, NAN, NAN}, {1, 100, NAN, NAN}},
         {0.05, 0.51},
         1,
         2,
         0.07,
         67.2 / 78 - 1,
         0.5},
        {"a prediction that is too slow",
         {{1.3, 50, NAN, NAN}, {1.12, 60, NAN, NAN}, {1.06, 75, 2, 2}, {1, 100, NAN, NAN}},
         {0.05, 1},
         3,
         2,
         -0.05,
         100.0 / 78 - 1,
         0},
        {"one that was refused",
         {{1.3, 50, NAN, NAN}, {NAN, NAN, NAN, NAN}, {1.04, 75, NAN, NAN}, {1, 100, NAN, NAN}},
         {0.12, 1},
         2,
         1,
         -0.08,
         78 / 67.2 - 1,
         0},
        /* ln(1.05/1.02) = 0.029; sqrt(0.02^2 + 0.01^2) = 0.02236: 1.2964 deviations, a chance of 9.742 %. */
        {"both are predicted",
         {{1.3, 50, 2, 2}, {1.12, 60, 2, 2}, {1.02, 75, 2, 2}, {1, 100, 1, 1}},
         {0.05, 1},
         2,
         2,
         -0.01,
         0,
         0.09742},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        fl_fit_choice c = {0};
        FL_CHECK(fl_fit_decide(&rows, &entity, table[i].guess, &table[i].q, &c), "%s: no choice", table[i].what);
        FL_CHECK(c.chosen == table[i].chosen && c.best == table[i].best, "%s: row %zu, best %zu", table[i].what,
                 c.chosen, c.best);
        FL_CHECK(fabs(c.excess - table[i].excess) < 1e-9, "%s: excess %g", table[i].what, c.excess);
        FL_CHECK(fabs(c.regret - table[i].regret) < 1e-9, "%s: regret %g", table[i].what, c.regret);
        FL_CHECK(fabs(c.chance - table[i].chance) < 1e-4, "%s: chance %g", table[i].what, c.chance);
    }
}

/* What was looked at scatters: 1 % in time, 2 % in power. At a bound of 4 % the row at 1000 MHz meets it exactly: an
 * even chance, and a risk below that does not take it. Refused rows stay refused, predicted ones what was predicted. */
static void test_looked_at(void) {
    fl_chip_guess guess[CLOCKS] = {{NAN, NAN, NAN, NAN}, {1.12, 60, 3, 4}, {1.04, 75, NAN, NAN}, {1, 100, NAN, NAN}};
    static const fl_chip chip = {.time_error = {.scatter = 0.01}, .power_error = {.scatter = 0.02}};
    fl_fit_result_of result = {.guess = guess};
    fl_fit_choice c = {0};
    fl_fit_result_state(&chip, &entity, &result);
    CU_ASSERT(isnan(guess[0].time_s) && isnan(guess[0].time_sd_pct));
    CU_ASSERT(guess[1].time_sd_pct == 3 && guess[1].power_sd_pct == 4);
    CU_ASSERT(guess[2].time_s == 1.04 && guess[2].power_w == 75);
    CU_ASSERT_DOUBLE_EQUAL(guess[3].time_sd_pct, 1, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(guess[3].power_sd_pct, 2, 1e-12);
    FL_CHECK(fl_fit_decide(&rows, &entity, guess, &(fl_fit_question){0.04, 1}, &c) && c.chosen == 2, "row %zu",
             c.chosen);
    CU_ASSERT_DOUBLE_EQUAL(c.chance, 0.5, 1e-9);
    FL_CHECK(fl_fit_decide(&rows, &entity, guess, &(fl_fit_question){0.04, 0.4}, &c) && c.chosen == 3, "row %zu",
             c.chosen);
}

/* Ranks of predicted energies 62.4, 67.2, 78, 100 against 65, 67.2, 78, 100; one pair turned: 1 - 6 x 2 / (4 x 15). */
static void test_ranks(void) {
    static const fl_chip_guess same[CLOCKS] = {{1.3, 48, 2, 2}, {1.12, 60, 2, 2}, {1.04, 75, 2, 2}, {1, 100, 2, 2}},
                               turned[CLOCKS] = {{1.3, 53, 2, 2}, {1.12, 60, 2, 2}, {1.04, 75, 2, 2}, {1, 100, 2, 2}};
    const fl_fit_question q = {0.05, 1};
    fl_fit_choice c = {0};
    FL_CHECK(fl_fit_decide(&rows, &entity, same, &q, &c) && fabs(c.rank - 1) < 1e-12, "%g", c.rank);
    FL_CHECK(fl_fit_decide(&rows, &entity, turned, &q, &c) && fabs(c.rank - 0.8) < 1e-12, "%g", c.rank);
}

/* Of 20 choices at a risk of 5 %: none is sure, 1 - 0.95^20 for one, and so on. */
static void test_binomial(void) {
    static const struct {
        double broken, count, risk, p;
    } cases[] = {{0, 20, 0.05, 1},         {1, 20, 0.05, 0.641514},  {3, 20, 0.05, 0.0754837},
                 {4, 20, 0.05, 0.0159015}, {20, 20, 0.5, 9.5367e-7}, {2, 2, 0.3, 0.09}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const fl_fit_decisions t = {.count = cases[i].count, .broken = cases[i].broken};
        const double p = fl_fit_decisions_p(&t, cases[i].risk);
        FL_CHECK(fabs(p - cases[i].p) < 1e-4 * cases[i].p + 1e-12, "%g of %g: %g", cases[i].broken, cases[i].count, p);
    }
    CU_ASSERT(isnan(fl_fit_decisions_p(&(fl_fit_decisions){.count = 3}, 1)));
}

static void test_sums(void) {
    static const fl_fit_choice choices[] = {
        {.chosen = 1, .best = 1, .excess = -0.01, .chance = 0.1, .regret = 0.03, .rank = 1},
        {.chosen = 1, .best = 2, .excess = 0.004, .chance = 0.3, .regret = 0.1, .rank = NAN},
        {.chosen = 1, .best = 2, .excess = 0.02, .chance = 0.2, .regret = -0.04, .rank = 0.5}};
    fl_fit_decisions t = {0};
    for (size_t i = 0; i < 3; i++)
        fl_fit_decisions_add(&t, &choices[i]);
    cJSON *o = cJSON_CreateObject();
    const fl_fit_question q = {0.05, 0.5};
    fl_fit_decisions_json(&t, &q, o);
    static const struct {
        const char *key;
        double value;
    } expected[] = {{"choices", 3},
                    {"exact_pct", 100.0 / 3},
                    {"broken_pct", 200.0 / 3},
                    {"broken_half_pct", 100.0 / 3},
                    {"worst_excess_pct", 2},
                    {"expected_broken_pct", 20},
                    {"regret_pct", 3},
                    {"regret_held_pct", 3},
                    {"rank", 0.75},
                    {"bound", 0.05},
                    {"risk", 0.5}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const cJSON *x = cJSON_GetObjectItem(o, expected[i].key);
        FL_CHECK(x && fabs(x->valuedouble - expected[i].value) < 1e-9, "%s: %g", expected[i].key,
                 x ? x->valuedouble : 0);
    }
    cJSON_Delete(o);
}

/* Without a measured top or its power there is nothing to hold a choice against. */
static void test_nothing(void) {
    static const fl_chip_guess guess[CLOCKS] = {{1.3, 48, 2, 2}, {1.12, 60, 2, 2}, {1.04, 75, 2, 2}, {1, 100, 2, 2}};
    const fl_fit_question q = {0.05, 1};
    fl_fit_choice c;
    const fl_chip_row top = row[CLOCKS - 1];
    row[CLOCKS - 1].power_w = NAN;
    FL_CHECK(!fl_fit_decide(&rows, &entity, guess, &q, &c), "no power");
    row[CLOCKS - 1] = top;
    row[CLOCKS - 1].time_s = NAN;
    FL_CHECK(!fl_fit_decide(&rows, &entity, guess, &q, &c), "no time");
    row[CLOCKS - 1] = top;
    FL_CHECK(fl_fit_decide(&rows, &entity, guess, &q, &c), "the top again");
}

FL_SUITE("fit_decide", {"choices", test_choices}, {"looked at", test_looked_at}, {"ranks", test_ranks},
         {"binomial", test_binomial}, {"sums", test_sums}, {"nothing", test_nothing})
