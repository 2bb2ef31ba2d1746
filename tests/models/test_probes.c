/* Which settings tell most about a workload: what is chosen is what does best, and the ends only where they do. */
#include "models/chip/chip.h"
#include "models/chip/inside.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define WORKLOADS 10
#define CLOCKS 7

static const uint64_t seed = 61;

typedef struct truth {
    const char *what;
    double mem[2];   /* the second 0: one memory clock */
    double ends_off; /* standard deviation of what both ends are off, as where a board throttles or a clock is odd */
} truth;

static const truth chips[] = {
    {"one memory clock", {900, 0}, 0},
    {"two memory clocks", {800, 3500}, 0},
    {"ends that do not do as they say", {900, 0}, 0.08},
};

/* A chip of made-up workloads, from none to all of their time bound by memory. */
static size_t make_rows(const truth *t, size_t workloads, size_t clocks, fl_chip_row *row) {
    fl_random random = fl_random_seed(seed, 1);
    const double mem_ref = fmax(t->mem[0], t->mem[1]);
    size_t n = 0;
    for (uint32_t k = 0; k < workloads; k++) {
        const double memory = (double)k / (double)(workloads - 1), rest = 0.3 * fl_random_unit(&random);
        const double alpha = 0.2 + 0.8 * fl_random_unit(&random), beta = memory * fl_random_unit(&random);
        for (size_t j = 0; j < 2 && t->mem[j] > 0; j++)
            for (size_t i = 0; i < clocks; i++) {
                const double f = round(600 + 900 * (double)i / (double)(clocks - 1)), v = 1 + fmax(0, f - 900) / 2000;
                const double core = (1 - rest) * (1 - memory) * 1500 / f,
                             bytes = (1 - rest) * memory * mem_ref / t->mem[j];
                const double off = i == 0 || i + 1 == clocks ? t->ends_off : 0.003;
                const double time = pow(pow(core, 6) + pow(bytes, 6), 1.0 / 6) + rest;
                const double power = 80 * alpha * v * v * f / 1000 + 40 * beta * t->mem[j] / mem_ref + 30 + 20 * v;
                row[n++] = (fl_chip_row){.workload = k,
                                         .sm_mhz = f,
                                         .mem_mhz = t->mem[j],
                                         .time_s = 10 * time * (1 + off * fl_random_normal(&random)),
                                         .power_w = power * (1 + off * fl_random_normal(&random))};
            }
    }
    return n;
}

/* Fit a made-up chip. Keep it for the cases that ask for the same. */
static void make(const truth *t, size_t workloads, size_t clocks, fl_chip *chip) {
    static struct {
        bool made;
        fl_chip chip;
    } kept[COUNT(chips)];
    const size_t i = (size_t)(t - chips);
    const bool common = workloads == WORKLOADS && clocks == CLOCKS;
    if (!common || !kept[i].made) {
        fl_chip_row row[WORKLOADS * CLOCKS * 2];
        CU_ASSERT_FATAL(fl_chip_fit(row, make_rows(t, workloads, clocks, row), FL_CHIP_FULL, chip) == FL_MODEL_OK);
        if (!common)
            return;
        kept[i].chip = *chip;
        kept[i].made = true;
    }
    *chip = kept[i].chip;
}

/* What the errors of a set are: each workload's own rows, as they were measured, predicted from those of the set by the
 * chip without it. */
static double score_by_rows(const fl_chip *chip, const fl_chip_row *row, size_t n, const fl_probes *set) {
    static fl_chip rest;
    double sum = 0, count = 0;
    for (uint32_t k = 0; k < WORKLOADS; k++) {
        fl_chip_row known[4], asked[2 * CLOCKS];
        fl_chip_guess guess[2 * CLOCKS];
        size_t a = 0, b = 0;
        for (size_t i = 0; i < n; i++) {
            if (row[i].workload != k)
                continue;
            size_t in = 0;
            for (size_t j = 0; j < set->count; j++)
                in += fabs(set->at[j].sm_mhz - row[i].sm_mhz) < 0.5 && fabs(set->at[j].mem_mhz - row[i].mem_mhz) < 0.5;
            *(in ? &known[a++] : &asked[b++]) = row[i];
        }
        fl_chip_leave_out(chip, k, &rest);
        CU_ASSERT_FATAL(fl_chip_predict(&rest, known, a, asked, b, guess, NULL) == FL_MODEL_OK);
        for (size_t i = 0; i < b; i++) {
            const double time = guess[i].time_s / asked[i].time_s, power = guess[i].power_w / asked[i].power_w;
            sum += (fabs(time - 1) + fabs(power - 1) + fabs(time * power - 1)) / 3;
            count++;
        }
    }
    return 100 * sum / count;
}

static double score(const fl_probes *p) { return (p->time_pct + p->power_pct + p->energy_pct) / 3; }

static bool is_end(const fl_chip_row *at) { return at->sm_mhz < 601 || at->sm_mhz > 1499; }

static bool in_order(const fl_probes *p) {
    for (size_t i = 1; i < p->count; i++)
        if (!(p->at[i].mem_mhz > p->at[i - 1].mem_mhz ||
              (p->at[i].mem_mhz == p->at[i - 1].mem_mhz && p->at[i].sm_mhz > p->at[i - 1].sm_mhz)))
            return false;
    return true;
}

static size_t most_probes(void) { return fl_nightly() ? FL_PROBES_MAX : 2; }

/* The errors stated are those of the set itself, more probes leave less to guess, and nothing usual does better. */
static void test_choice(void) {
    static fl_chip chip;
    for (size_t i = 0; i < COUNT(chips); i++) {
        double before = INFINITY;
        make(&chips[i], WORKLOADS, CLOCKS, &chip);
        for (size_t count = 1; count <= most_probes(); count++) {
            fl_probes p, again, usual;
            CU_ASSERT_FATAL(fl_probes_choose(&chip, count, &p) == FL_MODEL_OK);
            again = p;
            CU_ASSERT_FATAL(fl_probes_expect(&chip, &again) == FL_MODEL_OK);
            CU_ASSERT_FATAL(fl_probes_usual(&chip, count, &usual) == FL_MODEL_OK && usual.count == count);
            CU_ASSERT_FATAL(fl_probes_expect(&chip, &usual) == FL_MODEL_OK);
            FL_CHECK(p.count == count && in_order(&p) && p.tested == WORKLOADS, "%s, %zu", chips[i].what, count);
            FL_CHECK(score(&again) == score(&p), "%s, %zu: %.17g, stated %.17g", chips[i].what, count, score(&again),
                     score(&p));
            FL_CHECK(score(&p) <= score(&usual) && (chips[i].ends_off > 0 || score(&p) < before),
                     "%s, %zu: %.2f, usual %.2f, one less %.2f", chips[i].what, count, score(&p), score(&usual),
                     before);
            before = score(&p);
        }
    }
}

/* The calibration keeps enough of its rows to say what they would. */
static void test_as_measured(void) {
    static fl_chip chip;
    for (size_t i = 0; i < COUNT(chips); i++) {
        fl_chip_row row[WORKLOADS * CLOCKS * 2];
        const size_t n = make_rows(&chips[i], WORKLOADS, CLOCKS, row);
        make(&chips[i], WORKLOADS, CLOCKS, &chip);
        for (size_t count = 1; count <= most_probes(); count++) {
            fl_probes usual;
            CU_ASSERT_FATAL(fl_probes_usual(&chip, count, &usual) == FL_MODEL_OK);
            CU_ASSERT_FATAL(fl_probes_expect(&chip, &usual) == FL_MODEL_OK);
            const double is = score_by_rows(&chip, row, n, &usual);
            FL_CHECK(fabs(score(&usual) / is - 1) < 0.1, "%s, %zu: %.3f, by the rows %.3f", chips[i].what, count,
                     score(&usual), is);
        }
    }
}

/* Every pair of a small chip, one by one: the chosen one is as good as the best, within a tenth. */
static void test_every_pair(void) {
    static fl_chip chip;
    for (size_t i = 0; i < (fl_nightly() ? COUNT(chips) : 1); i++) {
        make(&chips[i], WORKLOADS, chips[i].mem[1] > 0 ? 4 : 6, &chip);
        fl_probes chosen;
        double best = INFINITY, worst = 0;
        CU_ASSERT_FATAL(fl_probes_choose(&chip, 2, &chosen) == FL_MODEL_OK);
        for (uint32_t a = 0; a < chip.settings; a++)
            for (uint32_t b = 0; b < a; b++) {
                fl_probes p = {.count = 2};
                p.at[0] = (fl_chip_row){
                    .sm_mhz = chip.setting_sm[a], .mem_mhz = chip.setting_mem[a], .time_s = NAN, .power_w = NAN};
                p.at[1] = (fl_chip_row){
                    .sm_mhz = chip.setting_sm[b], .mem_mhz = chip.setting_mem[b], .time_s = NAN, .power_w = NAN};
                CU_ASSERT_FATAL(fl_probes_expect(&chip, &p) == FL_MODEL_OK);
                best = fmin(best, score(&p));
                worst = fmax(worst, score(&p));
            }
        FL_CHECK(score(&chosen) <= 1.1 * best && best < 0.7 * worst, "%s: chosen %.3f, best %.3f, worst %.3f",
                 chips[i].what, score(&chosen), best, worst);
    }
}

/* Ends whose readings are off tell less than what lies between them. With three or more to spend they may be worth it
 * after all: what nobody can predict has to be measured. */
static void test_interior(void) {
    static fl_chip chip;
    make(&chips[2], WORKLOADS, CLOCKS, &chip);
    for (size_t count = 1; count <= 2; count++) {
        fl_probes p;
        CU_ASSERT_FATAL(fl_probes_choose(&chip, count, &p) == FL_MODEL_OK);
        for (size_t i = 0; i < count; i++)
            FL_CHECK(!is_end(&p.at[i]), "%zu probes: %g MHz is an end", count, p.at[i].sm_mhz);
    }
}

static void test_next(void) {
    static fl_chip chip;
    make(&chips[1], WORKLOADS, CLOCKS, &chip);
    const fl_chip_row known[] = {
        {.sm_mhz = 1500, .mem_mhz = 3500, .time_s = NAN, .power_w = NAN},
        {.sm_mhz = 1037, .mem_mhz = 3500, .time_s = NAN, .power_w = NAN}}; /* the second: on no ladder */
    for (size_t n = 1; n <= COUNT(known); n++) {
        fl_probes now, next, alone = {.count = n};
        size_t added = 99, found = 0;
        CU_ASSERT_FATAL(fl_probes_next(&chip, known, n, &now, &next, &added) == FL_MODEL_OK);
        memcpy(alone.at, known, n * sizeof *known);
        CU_ASSERT_FATAL(fl_probes_expect(&chip, &alone) == FL_MODEL_OK);
        FL_CHECK(score(&now) == score(&alone) && now.count == n, "now: %.17g, alone %.17g", score(&now), score(&alone));
        FL_CHECK(next.count == n + 1 && added <= n && score(&next) < 0.7 * score(&now), "%zu known: %.3f after %.3f", n,
                 score(&next), score(&now));
        for (size_t i = 0; i < next.count; i++)
            for (size_t k = 0; k < n; k++)
                found += i != added && fabs(next.at[i].sm_mhz - known[k].sm_mhz) < 1e-9 &&
                         fabs(next.at[i].mem_mhz - known[k].mem_mhz) < 1e-9;
        FL_CHECK(found == n, "%zu of %zu known settings in the next set", found, n);
        FL_CHECK(n > 1 || next.at[added].mem_mhz < 801, "after the top: the other memory clock, not %g MHz",
                 next.at[added].sm_mhz);
    }
}

/* The usual ones: the top, the ends, the corners. */
static void test_usual(void) {
    static const double want[][4] = {{1500}, {600, 1500}, {600, 1050, 1500}, {600, 1500, 600, 1500}};
    static fl_chip chip;
    make(&chips[1], WORKLOADS, CLOCKS, &chip);
    for (size_t count = 1; count <= 4; count++) {
        fl_probes p;
        CU_ASSERT_FATAL(fl_probes_usual(&chip, count, &p) == FL_MODEL_OK && p.count == count);
        for (size_t i = 0; i < count; i++)
            FL_CHECK(fabs(p.at[i].sm_mhz - want[count - 1][i]) < 0.5 &&
                         (p.at[i].mem_mhz > 3499) == (count < 4 || i >= 2),
                     "%zu: %g/%g", count, p.at[i].sm_mhz, p.at[i].mem_mhz);
    }
}

static void test_refusals(void) {
    static fl_chip chip;
    fl_probes p, q;
    size_t added = 0;
    make(&chips[0], WORKLOADS, CLOCKS, &chip);
    CU_ASSERT(fl_probes_choose(&chip, 0, &p) == FL_MODEL_INVALID);
    CU_ASSERT(fl_probes_choose(&chip, FL_PROBES_MAX + 1, &p) == FL_MODEL_INVALID);
    CU_ASSERT(fl_probes_usual(&chip, 0, &p) == FL_MODEL_INVALID);
    CU_ASSERT(fl_probes_next(&chip, NULL, 0, &p, &q, &added) == FL_MODEL_INVALID);
    p.count = 0;
    CU_ASSERT(fl_probes_expect(&chip, &p) == FL_MODEL_INVALID);
    make(&chips[0], 2, CLOCKS, &chip); /* two workloads cannot stand for others */
    CU_ASSERT(fl_probes_choose(&chip, 1, &p) == FL_MODEL_NO_FIT);
    make(&chips[0], WORKLOADS, 2, &chip); /* two settings: nothing is left to predict */
    CU_ASSERT(fl_probes_choose(&chip, 2, &p) == FL_MODEL_NO_FIT);
    CU_ASSERT(fl_probes_usual(&chip, 2, &p) == FL_MODEL_NO_FIT);
}

FL_SUITE("probes", {"choice", test_choice}, {"as measured", test_as_measured}, {"every pair", test_every_pair},
         {"interior", test_interior}, {"next", test_next}, {"usual", test_usual}, {"refusals", test_refusals})
