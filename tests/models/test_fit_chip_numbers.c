/* What fits of chips come to, number by number, against tests/golden/chip-*.csv. Nothing here says that a number is
 * right: the other suites of the fit do, within the errors that noise allows. This one sees that a change moved a
 * number, and of what: bless it (FL_BLESS=1) after you know why. The last bits of a library's exp and pow may move
 * where a search ends, so numbers are compared within NEAR, and words and counts as they are. */
#include "models/chip/chip.h"
#include "models/fit/fit.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "tests/support/golden_near.h"

#include <math.h>

enum { WORKLOADS = 7, CLOCKS = 5, MEMS = 2, ROWS = WORKLOADS * CLOCKS * MEMS };

/* A search ends where a step is below 1e-5 of each parameter, so where the data hold a parameter loosely, a hundred
 * such steps may be left. With exp, log and pow off by their last bit, the loosest number moved by a fifth of this
 * share. So the chips have workloads enough that the data hold each parameter: with four, some moved by half. */
#define NEAR 1e-2

typedef struct made {
    const char *name;
    int mems;
    double link_mhz, stall, wild; /* wild: one row in so many is off by a quarter; 0: none */
    bool power;
    fl_chip_law law;
} made;

static const made chips[] = {
    {"plain", 1, 0, 1, 0, true, FL_CHIP_PLAIN},  {"link", 2, 800, 0.5, 0, true, FL_CHIP_FULL},
    {"stall", 1, 0, 0.6, 0, true, FL_CHIP_FULL}, {"wild", 1, 0, 0.6, 11, true, FL_CHIP_BEST},
    {"time", 1, 0, 1, 0, false, FL_CHIP_FULL},
};

static FILE *out;
static char *text;
static size_t size;
static fl_chip chip;

static void begin(void) { CU_ASSERT_FATAL((out = open_memstream(&text, &size)) != NULL); }

static void finish(const char *what) {
    char name[64];
    fprintf(out, "\n");
    CU_ASSERT_FATAL(fclose(out) == 0);
    snprintf(name, sizeof name, "chip-%s.csv", what);
    fl_golden_near(name, text, NEAR);
    free(text);
}

static void put(const char *name, double value) { fprintf(out, ",%s=%.6g", name, value); }

static void put_all(const char *name, const double *value, size_t count) {
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%.6g", i ? " " : (fprintf(out, ",%s=", name), ""), value[i]);
}

/* ---- what is measured -------------------------------------------------------------------------------------------- */

static double time_at(const made *m, double memory, double rest, double f, double mem) {
    const double link = m->link_mhz > 0 ? pow(m->link_mhz / f, 3) : 0,
                 h = pow(pow(1200 / mem, 8) + pow(link, 8), 0.125);
    return pow(pow((1 - memory) * 1500 / f, 6) + pow(memory * h, 6), 1 / 6.0) + rest;
}

static size_t measure(const made *m, uint64_t seed, fl_chip_row *row) {
    fl_random r = fl_random_seed(seed, 2);
    size_t n = 0;
    for (uint32_t k = 0; k < WORKLOADS; k++) {
        const double memory = k ? fl_random_unit(&r) : 0, rest = 0.3 * fl_random_unit(&r),
                     scale = 0.5 + 4 * fl_random_unit(&r), alpha = 0.3 + 0.7 * fl_random_unit(&r),
                     beta = memory * (0.4 + 0.6 * fl_random_unit(&r));
        for (int j = 0; j < m->mems; j++)
            for (int i = 0; i < CLOCKS; i++, n++) {
                const double f = 600 + 225 * i, mem = 1200 - 500 * j, t = scale * time_at(m, memory, rest, f, mem);
                const double v = f < 900 ? 1 : 1 + 0.35 * (f - 900) / 600,
                             busy = m->stall +
                                    (1 - m->stall) * scale * time_at(m, memory, rest, 1500, 1200) / t * 1500 / f,
                             watts =
                                 90 * alpha * v * v * f / 1000 * busy + 50 * beta * mem / 1200 + 25 - 8 * j + 15 * v;
                row[n] = (fl_chip_row){k, f, mem, t * (1 + 0.004 * fl_random_normal(&r)),
                                       m->power ? watts * (1 + 0.004 * fl_random_normal(&r)) : (double)NAN};
                if (m->wild > 0 && n % (size_t)m->wild == 5)
                    row[n].time_s *= 1.25;
            }
    }
    return n;
}

/* ---- what comes of it -------------------------------------------------------------------------------------------- */

static void put_error(const char *name, const fl_chip_error *e) {
    fprintf(out, "\n%s", name);
    put("scatter", e->scatter);
    put("smooth", e->smooth);
    put("length_sm", e->length_sm);
    put("length_mem", e->length_mem);
    put_all("growth", e->growth, FL_CHIP_PLACES);
    put_all("wide", e->wide, FL_CHIP_PLACES);
    put_all("own", e->own, FL_CHIP_PLACES);
}

static void put_chip(const char *name) {
    fprintf(out, "%s%s", ftell(out) > 0 ? "\n" : "", name);
    put("p", chip.sharpness);
    put("p_sd", chip.sharpness_sd);
    put("link", chip.link_mhz);
    put("slope", chip.link_slope);
    put("link_sd", chip.link_sd);
    put("a", chip.a_w);
    put("a0", chip.a0_w);
    put("b", chip.b_w);
    put("c", chip.c_w);
    put("stall", chip.stall);
    put("stall_memory", chip.stall_memory);
    put("stall_sd", chip.stall_sd);
    put("c_sd", chip.c_sd);
    put("a0_sd", chip.a0_sd);
    put("slope_w", chip.slope_w);
    put("slope_sd", chip.slope_sd);
    put("time_rms", chip.time_rms_pct);
    put("power_rms", chip.power_rms_pct);
    put("time_left", chip.time_left);
    put("power_left", chip.power_left);
    fprintf(out, ",outliers %zu %zu,law %d", (size_t)chip.time_outliers, (size_t)chip.power_outliers, (int)chip.law);
    put_all("time_law", chip.time_law_pct, 2);
    put_all("power_law", chip.power_law_pct, 2);
    put_all("load", chip.load_mean, 2);
    put_all("load_cov", chip.load_cov, 3);
    put_all("knots", chip.knot_mhz, chip.knots);
    put_all("volt", chip.volt, chip.knots);
    put_all("volt_sd", chip.volt_sd, chip.knots);
    put_all("b0", chip.b0_w, chip.mems);
    put_all("b0_sd", chip.b0_sd, chip.mems);
    put_all("floor", chip.volt_floor, chip.mems);
    put_error("time", &chip.time_error);
    put_error("power", &chip.power_error);
    for (uint32_t i = 0; i < chip.shares && i < 12; i++) {
        const fl_chip_share *s = &chip.share[i];
        fprintf(out, "\nshare");
        put_all("is", (const double[]){s->memory, s->rest, s->memory_sd, s->rest_sd, s->alpha, s->beta}, 6);
        put_all("time_off", chip.time_off[i], chip.settings);
        put_all("power_off", chip.power_off[i], chip.settings);
    }
}

/* A workload that the chip was not fitted to: from its top alone, its ends, and three settings. */
static void put_guesses(const fl_chip_row *own, size_t count) {
    const size_t known[][3] = {{CLOCKS - 1}, {0, CLOCKS - 1}, {0, 2, CLOCKS - 1}};
    for (size_t k = 0; k < 3; k++) {
        fl_chip_row row[3];
        fl_chip_guess guess[CLOCKS * MEMS];
        fl_chip_load load = {0};
        for (size_t i = 0; i <= k; i++)
            row[i] = own[known[k][i]];
        CU_ASSERT_FATAL(fl_chip_predict(&chip, row, k + 1, own, count, guess, &load) == FL_MODEL_OK);
        fprintf(out, "\nknown %zu", k + 1);
        put_all("load", (const double[]){load.tc, load.tm, load.tl, load.alpha, load.beta}, 5);
        for (size_t i = 0; i < count; i++) {
            put("time", guess[i].time_s);
            put("time_sd", guess[i].time_sd_pct);
            put("power", guess[i].power_w);
            put("power_sd", guess[i].power_sd_pct);
        }
    }
}

static void test_fits(void) {
    static fl_chip_row row[ROWS], other[ROWS];
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        const size_t n = measure(&chips[i], 11 + i, row), each = n / WORKLOADS;
        measure(&chips[i], 911 + i, other);
        CU_ASSERT_FATAL(fl_chip_fit(row, n, chips[i].law, &chip) == FL_MODEL_OK);
        begin();
        put_chip(chips[i].name);
        put_guesses(other + 3 * each, each);
        finish(chips[i].name);
    }
}

/* ---- chips that nobody measured ---------------------------------------------------------------------------------- */

static const int32_t sm[] = {300, 900, 1500}, mem[] = {700, 1200};

static void test_kin(void) {
    static const fl_idle_point idle[] = {{300, 38, 3}, {900, 44, 2}, {1500, 58, 5}};
    static const fl_kin_facts facts = {sm, mem, 3, 2, 1200, 250};
    static const fl_chip_row run[] = {{0, 1500, 1200, 1, 210}, {0, 900, 1200, 1.4, 120}};
    fl_kin kin[4];
    fl_kin_spread prior, after;
    fl_random r = fl_random_seed(5, 5);
    for (size_t i = 0; i < 4; i++)
        for (int k = 0; k < FL_KIN_COUNT; k++)
            kin[i].part[k] = (k == FL_KIN_BEND ? 1.2 : k == FL_KIN_KNEE ? 0.6 : 0.2) * exp(0.2 * fl_random_normal(&r));
    CU_ASSERT_FATAL(fl_kin_prior(kin, 4, &prior) == FL_MODEL_OK);
    begin();
    fprintf(out, "prior");
    put_all("middle", prior.middle, FL_KIN_COUNT);
    put_all("factor", prior.factor, FL_KIN_COUNT);
    CU_ASSERT_FATAL(fl_kin_chip(&facts, &prior, idle, 3, run, 1, &chip, &after) == FL_MODEL_OK);
    put_chip("kin");
    put_all("middle", after.middle, FL_KIN_COUNT);
    put_all("factor", after.factor, FL_KIN_COUNT);
    finish("kin");
}

FL_SUITE("fit_chip_numbers", {"fits", test_fits}, {"chips that nobody measured", test_kin})
