/* How far off a chip's predictions are for workloads that it was not fitted to, collected once more in this file: the
 * settings that count as known are listed by hand, and sums, growths and factors follow from their definitions. */
#include "models/chip/chip.h"
#include "models/chip/inside.h"
#include "models/math/math.h"
#include "tests/support/made_up_chip.h"
#include "tests/support/suite.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { DESIGNS = 6, MISSES = 512, NOTHING_BETWEEN = 6 };

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(1e-3, fabs(b)); }

static fl_chip chip;

static void make_chip(void) {
    chip = made_up_chip();
    chip.workloads = chip.shares = 3;
    fl_chip_error *const e = &chip.time_error;
    memcpy(e->growth, (const double[]){0.1, 0.2, 0.3, 0.4}, sizeof e->growth);
    memcpy(e->wide, (const double[]){2, 2, 2, 2}, sizeof e->wide);
    memcpy(e->own, (const double[]){1.5, NAN, 0, 0.8}, sizeof e->own);
    chip.power_error = *e;
    for (uint32_t k = 0; k < chip.shares; k++)
        chip.share[k] = (fl_chip_share){.memory = 0.2 + 0.2 * k,
                                        .rest = 0.3 - 0.1 * k / 2,
                                        .memory_sd = 0.05,
                                        .rest_sd = 0.04,
                                        .alpha = 0.9 - 0.15 * k,
                                        .beta = 0.2 + 0.15 * k};
}

/* A workload that the law describes up to a wave of some per cent. mem_mhz: ascending, 0 ends the list. */
static size_t measure(fl_chip_row *row, const double *mem_mhz, size_t clocks, const fl_chip_share *share, double wave) {
    const fl_chip_load load = fl_chip_load_of(share);
    size_t n = 0;
    for (; *mem_mhz > 0; mem_mhz++)
        for (size_t i = 0; i < clocks; i++, n++) {
            const double f = 500 + 800 * (double)i / (double)(clocks - 1);
            const double t = fl_chip_time(&chip, &load, f, *mem_mhz) * (1 + wave * sin(5 * f / 800 + *mem_mhz));
            const double w = fl_chip_power(&chip, &load, f, *mem_mhz, t) * (1 + wave * cos(7 * f / 800 + *mem_mhz));
            row[n] = (fl_chip_row){0, f, *mem_mhz, t, w};
        }
    return n;
}

/* ---- the misses of a workload ---- */

typedef struct miss {
    double error, sd, far, slope, time_sd, weight;
} miss;

typedef struct pile {
    miss of[MISSES];
    size_t count;
} pile;

static pile piles[FL_CHIP_KINDS][FL_CHIP_PLACES];

/* known: indices of rows, -1 ends the list; an empty list is a design that does not apply. */
static void collect(fl_chip rest, const fl_chip_row *row, size_t count, const int known[DESIGNS][12]) {
    for (int p = 0; p < FL_CHIP_PLACES; p++) {
        rest.time_error.growth[p] = rest.power_error.growth[p] = 0;
        rest.time_error.wide[p] = rest.power_error.wide[p] = 1;
    }
    for (size_t d = 0; d < DESIGNS; d++) {
        fl_chip_row is[16], asked[16];
        fl_chip_guess guess[16];
        double slope[16], each[FL_CHIP_KINDS][FL_CHIP_PLACES] = {{0}};
        size_t a = 0, b = 0, since[FL_CHIP_KINDS][FL_CHIP_PLACES];
        for (size_t i = 0; i < count; i++) {
            bool found = false;
            for (const int *k = known[d]; *k >= 0; k++)
                found |= (size_t)*k == i;
            if (found)
                is[a++] = row[i];
            else
                asked[b++] = row[i];
        }
        if (!a)
            continue;
        CU_ASSERT_FATAL(fl_chip_predict_slopes(&rest, is, a, asked, b, guess, NULL, slope) == FL_MODEL_OK);
        for (int k = 0; k < FL_CHIP_KINDS; k++)
            for (int p = 0; p < FL_CHIP_PLACES; p++)
                since[k][p] = piles[k][p].count;
        for (size_t i = 0; i < b; i++) {
            fl_chip_place place;
            const double far = fl_chip_distance(is, a, &asked[i], &place), time_sd = guess[i].time_sd_pct / 100,
                         both = guess[i].power_sd_pct / 100, drift = slope[i] * time_sd;
            const miss m[] = {{guess[i].time_s / asked[i].time_s - 1, time_sd, far, 0, 0, 0},
                              {guess[i].power_w / asked[i].power_w - 1, sqrt(fmax(0, both * both - drift * drift)), far,
                               slope[i], time_sd, 0}};
            for (int k = 0; k < FL_CHIP_KINDS; k++)
                if (!isnan(m[k].error)) {
                    pile *to = &piles[k][place];
                    to->of[to->count++] = m[k];
                    each[k][place]++;
                }
        }
        for (int k = 0; k < FL_CHIP_KINDS; k++)
            for (int p = 0; p < FL_CHIP_PLACES; p++)
                for (size_t i = since[k][p]; i < piles[k][p].count; i++)
                    piles[k][p].of[i].weight = 1 / each[k][p];
    }
}

/* Corners, four a line, inner ones at the highest memory clock, its ends, the highest setting alone, crossed. */
static const struct design {
    const char *what;
    double mem_mhz[4];
    size_t clocks;
    int known[DESIGNS][12];
} designs[] = {
    {"two memory clocks of five",
     {400, 800},
     5,
     {{0, 4, 5, 9, -1}, {0, 1, 3, 4, 5, 6, 8, 9, -1}, {6, 8, -1}, {5, 9, -1}, {9, -1}, {3, 6, -1}}},
    {"one memory clock of five", {800}, 5, {{0, 4, -1}, {0, 1, 3, 4, -1}, {1, 3, -1}, {-1}, {4, -1}, {-1}}},
    {"one memory clock of four: all four are known, which asks nothing",
     {800},
     4,
     {{0, 3, -1}, {-1}, {-1}, {-1}, {3, -1}, {-1}}},
    {"three memory clocks of three",
     {400, 600, 800},
     3,
     {{0, 2, 6, 8, -1}, {0, 1, 2, 6, 7, 8, -1}, {-1}, {6, 8, -1}, {8, -1}, {2, 6, -1}}},
    {"one memory clock of eight", {800}, 8, {{0, 7, -1}, {0, 2, 5, 7, -1}, {2, 6, -1}, {-1}, {7, -1}, {-1}}},
    {"two memory clocks of four: four a line are all",
     {400, 800},
     4,
     {{0, 3, 4, 7, -1}, {-1}, {-1}, {4, 7, -1}, {7, -1}, {3, 5, -1}}},
    {"two memory clocks of two: nothing between", {400, 800}, 2, {{-1}, {-1}, {-1}, {2, 3, -1}, {3, -1}, {-1}}},
};

static double drift_of(const miss *m, int place) {
    const double own = chip.time_error.own[place], wide = own > 0 ? own : 1;
    return fabs(m->slope) * wide * hypot(m->time_sd, chip.time_error.growth[place] * m->far);
}

static double strain_of(const miss *m, double growth, double drift) {
    return sqrt(fmax(0, m->error * m->error / 4 - drift * drift) /
                (m->sd * m->sd + growth * growth * m->far * m->far + 1e-12));
}

static void test_designs(void) {
    for (size_t c = 0; c < COUNT(designs); c++) {
        const struct design *of = &designs[c];
        fl_chip_row row[16];
        double sum[2][FL_CHIP_PLACES] = {{0}}, count[2][FL_CHIP_PLACES] = {{0}};
        make_chip();
        const fl_chip_share share = {.memory = 0.5, .rest = 0.1, .alpha = 0.7, .beta = 0.5};
        const size_t n = measure(row, of->mem_mhz, of->clocks, &share, 0.03);
        row[1].power_w = NAN;
        memset(piles, 0, sizeof piles);
        collect(chip, row, n, of->known);
        CU_ASSERT_FATAL(fl_chip_add_errors(&chip, row, n, sum, count) == FL_MODEL_OK);
        for (int k = 0; k < FL_CHIP_KINDS; k++)
            for (int p = 0; p < FL_CHIP_PLACES; p++) {
                const pile *all = &piles[k][p];
                double want = 0, weights = 0;
                for (size_t i = 0; i < all->count; i++) {
                    want += all->of[i].weight * fabs(all->of[i].error);
                    weights += all->of[i].weight;
                }
                FL_CHECK(near(sum[k][p], want) && near(count[k][p], weights),
                         "%s, kind %d, place %d: %g of %g, not %g of %g", of->what, k, p, sum[k][p], count[k][p], want,
                         weights);
            }
    }
}

/* The 95th of a hundred, counted from below; a quarter at least. */
static void test_covering(void) {
    static const struct {
        size_t count;
        double want;
    } rows[] = {{1, 1}, {19, 19}, {20, 19}, {21, 20}, {100, 95}, {101, 96}};
    double list[128];
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t k = 0; k < rows[i].count; k++)
            list[k] = (double)(rows[i].count - k); /* the largest first */
        const fl_chip_strains s = {list, rows[i].count, COUNT(list)};
        FL_CHECK(fl_chip_covering(&s) == rows[i].want, "of %zu: %g", rows[i].count, fl_chip_covering(&s));
    }
    list[0] = 0.1;
    list[1] = 0.2;
    FL_CHECK(fl_chip_covering(&(fl_chip_strains){list, 2, 2}) == 0.25, "a quarter at least");
    FL_CHECK(isnan(fl_chip_covering(&(fl_chip_strains){list, 0, 2})), "none");
}

/* ---- a chip judges itself by its own workloads ---- */

/* The growth of the grid whose errors, by Student's distribution with 4 degrees of freedom, and whose distance from the
 * usual growth, in 0.7 of its logarithm, are the most likely. */
static double most_likely(const pile *of, int place, bool power, double usual) {
    double best = usual, top = -INFINITY;
    for (int k = 0; k <= 60 && of->count; k++) {
        const double growth = 0.002 * pow(1.13, k), x = log(growth / usual) / 0.7;
        double sum = -x * x / 2;
        for (size_t i = 0; i < of->count; i++) {
            const miss *m = &of->of[i];
            const double drift = power ? drift_of(m, place) : 0,
                         v = m->sd * m->sd + growth * growth * m->far * m->far + 1e-12 + drift * drift;
            sum -= m->weight * (log(v) / 2 + 2.5 * log1p(m->error * m->error / v / 4));
        }
        if (sum > top) {
            top = sum;
            best = growth;
        }
    }
    return best;
}

static void check_error(const fl_chip_error *e, bool power) {
    static const double usual[2][2] = {{0.06, 0.3}, {0.15, 0.25}};
    for (int p = 0; p < FL_CHIP_PLACES; p++) {
        const pile *of = &piles[power][p];
        const double growth = most_likely(of, p, power, usual[power][p > 0]);
        double list[MISSES];
        for (size_t i = 0; i < of->count; i++)
            list[i] = strain_of(&of->of[i], e->growth[p], power ? drift_of(&of->of[i], p) : 0);
        const double own = fl_chip_covering(&(fl_chip_strains){list, of->count, MISSES});
        FL_CHECK(near(e->growth[p], growth), "power %d, place %d: growth %g, not %g", power, p, e->growth[p], growth);
        FL_CHECK(isnan(own) ? isnan(e->own[p]) : near(e->own[p], own), "power %d, place %d: own %g, not %g", power, p,
                 e->own[p], own);
    }
}

static void test_shares(void) {
    static fl_chip_row row[64];
    static fl_chip whole, rest, wide;
    fl_chip_span span[4];
    const struct design *of = &designs[0];
    make_chip();
    whole = chip;
    for (uint32_t k = 0; k < chip.shares; k++)
        span[k] =
            (fl_chip_span){k * 10, measure(row + k * 10, of->mem_mhz, of->clocks, &chip.share[k], 0.02 + 0.02 * k)};
    memset(piles, 0, sizeof piles);
    for (uint32_t k = 0; k < whole.shares; k++) {
        fl_chip_leave_out(&whole, k, &rest);
        collect(rest, row + span[k].first, span[k].count, of->known);
    }
    CU_ASSERT_FATAL(fl_chip_cross(row, span, chip.shares, NULL, &chip) == FL_MODEL_OK);
    check_error(&chip.time_error, false);
    check_error(&chip.power_error, true);
    wide = chip;
    fl_chip_widen(&wide, &fl_chip_bars_measured);
    FL_CHECK(!memcmp(wide.time_error.wide, chip.time_error.wide, sizeof wide.time_error.wide) &&
                 !memcmp(wide.power_error.wide, chip.power_error.wide, sizeof wide.power_error.wide),
             "the bars are as wide as those of other chips teach");
    chip = whole; /* two workloads are too few to judge by */
    chip.shares = 2;
    CU_ASSERT_FATAL(fl_chip_cross(row, span, 2, NULL, &chip) == FL_MODEL_OK);
    for (int p = 0; p < FL_CHIP_PLACES; p++)
        FL_CHECK(chip.time_error.growth[p] == (p ? 0.3 : 0.06) && chip.power_error.growth[p] == (p ? 0.25 : 0.15) &&
                     isnan(chip.time_error.own[p]) && isnan(chip.power_error.own[p]),
                 "place %d: assumed", p);
}

/* Of shares a, b and c without b: a, c. The prior is that of those two. */
static void test_leave_out(void) {
    static fl_chip of, rest;
    double mean[2], cov[3];
    make_chip();
    of = chip;
    of.shares = 3;
    of.settings = 2;
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t i = 0; i < 2; i++) {
            of.time_off[k][i] = 1 + k + 0.1 * i;
            of.power_off[k][i] = 5 + k + 0.1 * i;
        }
    fl_chip_leave_out(&of, 1, &rest);
    FL_CHECK(of.shares == 3 && rest.shares == 2 && rest.share[0].alpha == of.share[0].alpha &&
                 rest.share[1].alpha == of.share[2].alpha && rest.share[1].memory == of.share[2].memory,
             "the last takes its place");
    FL_CHECK(rest.time_off[1][0] == 3 && rest.time_off[1][1] == 3.1 && rest.power_off[1][0] == 7 &&
                 rest.power_off[1][1] == 7.1 && rest.time_off[0][1] == 1.1,
             "and so do its residuals: %g", rest.time_off[1][1]);
    fl_chip_load_prior(&rest, mean, cov);
    FL_CHECK(!memcmp(mean, rest.load_mean, sizeof mean) && !memcmp(cov, rest.load_cov, sizeof cov) &&
                 near(mean[0], (of.share[0].alpha + of.share[2].alpha) / 2),
             "the prior of the others: %g", rest.load_mean[0]);
    fl_chip_leave_out(&rest, 0, &rest);
    FL_CHECK(rest.shares == 1 && rest.share[0].alpha == of.share[2].alpha && rest.time_off[0][0] == 3, "in place");
}

/* ---- which law ---- */

/* Four folds of a few workloads: up to 24 each is a block and tested, of more the first of each block. */
static void test_folds(void) {
    static const struct {
        size_t spans, k, fold;
        bool tested;
    } rows[] = {{4, 0, 0, true},    {4, 3, 3, true},   {5, 4, 0, true},  {24, 23, 3, true},
                {25, 0, 0, true},   {25, 1, 0, false}, {25, 2, 1, true}, {25, 9, 0, false},
                {48, 47, 3, false}, {49, 3, 1, true},  {49, 2, 0, false}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const fl_chip_folds f = {.spans = rows[i].spans};
        FL_CHECK(fl_chip_fold_of(&f, rows[i].k) == rows[i].fold && fl_chip_fold_tests(&f, rows[i].k) == rows[i].tested,
                 "row %zu: fold %zu, tested %d", i, fl_chip_fold_of(&f, rows[i].k), fl_chip_fold_tests(&f, rows[i].k));
    }
}

/* Chips of two laws that stand as if they had been fitted without each quarter. Each predicts the workloads of that
 * quarter; `plain` and `full` say how sharp its law is, where the workloads have 4. Of settings between known ones the
 * mean error of each workload counts, plus 0.1 %; where
 * there are none, the other places count alike. */
static void check_law(const char *what, size_t spans, const double *full, const double *plain, bool power,
                      size_t of_design, fl_chip_law want) {
    static fl_chip_row row[64];
    fl_chip_span span[6];
    fl_chip_folds folds;
    double ln[2][2][6] = {{{0}}};
    const struct design *of = &designs[of_design];
    make_chip();
    CU_ASSERT_FATAL(fl_chip_folds_make(spans, &folds) == FL_MODEL_OK);
    for (uint32_t k = 0; k < spans; k++) {
        const fl_chip_share share = {.memory = 0.3 + 0.08 * k, .rest = 0.1, .alpha = 0.5, .beta = 0.5};
        span[k] = (fl_chip_span){k * 4, measure(row + k * 4, of->mem_mhz, of->clocks, &share, 0.001)};
        for (size_t i = 0; i < 4 && !power; i++)
            row[k * 4 + i].power_w = NAN;
    }
    for (size_t law = 0; folds.chip[0] && law < 2; law++)
        for (size_t fold = 0; fold < FL_CHIP_FOLDS; fold++) {
            folds.chip[law][fold] = chip;
            folds.chip[law][fold].sharpness = law == FL_CHIP_PLAIN ? plain[fold] : full[fold];
            folds.fitted[law] = 1;
        }
    double differ[6], mean = 0, squares = 0;
    for (size_t k = 0; folds.chip[0] && k < spans; k++) {
        for (size_t law = 0; law < 2; law++) {
            double sum[2][FL_CHIP_PLACES] = {{0}}, count[2][FL_CHIP_PLACES] = {{0}};
            CU_ASSERT_FATAL(fl_chip_add_errors(&folds.chip[law][k % 4], row + span[k].first, 4, sum, count) ==
                            FL_MODEL_OK);
            for (int kind = 0; kind < 2; kind++) {
                double places = 0;
                for (int p = 0; p < FL_CHIP_PLACES; p++)
                    if (count[kind][p] > 0 && (!p || !(count[kind][0] > 0))) {
                        ln[law][kind][k] += log(100 * sum[kind][p] / count[kind][p] + 0.1);
                        places++;
                    }
                ln[law][kind][k] /= places;
            }
        }
        const double time = ln[FL_CHIP_FULL][0][k] - ln[FL_CHIP_PLAIN][0][k],
                     watts = ln[FL_CHIP_FULL][1][k] - ln[FL_CHIP_PLAIN][1][k];
        differ[k] = power ? (time + watts) / 2 : time;
        mean += differ[k] / (double)spans;
    }
    for (size_t k = 0; folds.chip[0] && k < spans; k++)
        squares += (differ[k] - mean) * (differ[k] - mean);
    const double doubt = sqrt(squares / (double)spans / (double)(spans - 1));
    fl_chip_laws laws;
    CU_ASSERT_FATAL(fl_chip_choose_law(row, span, &folds, &laws) == FL_MODEL_OK);
    FL_CHECK(laws.law == want && (!folds.chip[0] || (mean > doubt) == (want == FL_CHIP_PLAIN)),
             "%s: law %d, better by %g +- %g", what, (int)laws.law, mean, doubt);
    for (int law = 0; law < 2; law++)
        for (int kind = 0; kind < 2; kind++) {
            double sum = 0;
            for (size_t k = 0; k < spans; k++)
                sum += ln[law][kind][k] / (double)spans;
            const double pct = folds.chip[0] && !(kind && !power) ? exp(sum) : (double)NAN,
                         is = kind ? laws.power_pct[law] : laws.time_pct[law];
            FL_CHECK(isnan(pct) ? isnan(is) : near(is, pct), "%s: law %d, kind %d: %g %%, not %g", what, law, kind, is,
                     pct);
        }
    fl_chip_folds_free(&folds);
}

static void test_law(void) {
    static const double right[] = {4, 4, 4, 4}, wrong[] = {1.3, 1.3, 1.3, 1.3}, odd[] = {1.2, 4.4, 4.4, 4.4};
    check_law("the plain law is right", 4, wrong, right, true, 2, FL_CHIP_PLAIN);
    check_law("the full law is right", 4, right, wrong, true, 2, FL_CHIP_FULL);
    check_law("they are alike", 4, right, right, true, 2, FL_CHIP_FULL);
    check_law("better by one workload alone", 4, odd, right, true, 2, FL_CHIP_FULL);
    check_law("without power", 5, wrong, right, false, 2, FL_CHIP_PLAIN);
    check_law("nothing lies between", 4, wrong, right, true, NOTHING_BETWEEN, FL_CHIP_FULL);
    check_law("three workloads cannot be left out", 3, wrong, right, true, 2, FL_CHIP_FULL);
}

FL_SUITE("fit_chip_cross", {"designs", test_designs}, {"covering", test_covering}, {"shares", test_shares},
         {"leaving out", test_leave_out}, {"folds", test_folds}, {"which law", test_law})
