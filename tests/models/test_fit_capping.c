/* The two-step procedure of power-capping 3.2.2 on powers made by its own law, with and without what the law leaves
 * out. */
#include "models/fit/fit.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "tests/support/exact.h"
#include "tests/support/suite.h"

#include <math.h>

enum { CLOCKS_MAX = 190 };

typedef struct chip_case {
    const char *name;
    size_t clocks;
    double low_mhz, high_mhz, a_w, b_w, c_w;
    double floor;      /* share of the ladder over which V stays 1 */
    double rise;       /* of V above it, up to the top */
    double noise;      /* standard deviation, relative */
    double within_pct; /* of A, B, C and V */
} chip_case;

static const chip_case chips[] = {
    {"the paper's ladder", 7, 614, 784, 90, 45, 50, 0, 0.15, 0, 1e-4},
    {"the paper's CPU", 12, 1200, 2201, 5, 3, 40, 0.2, 0.3, 0, 1e-4},
    {"a floor, then a rise", 20, 500, 1500, 100, 60, 30, 0.5, 0.4, 0, 1e-4},
    {"190 clocks", 190, 135, 1530, 120, 50, 40, 0.4, 0.5, 0, 1e-4},
    {"two clocks: as many unknowns as readings", 2, 600, 900, 80, 30, 25, 0, 0.2, 0, 1e-4},
    {"no rise at all", 9, 500, 1300, 100, 40, 60, 1, 0, 0, 1e-4},
    {"C large against A", 7, 614, 784, 20, 10, 120, 0, 0.1, 0, 1e-4},
    {"C small", 7, 614, 784, 150, 100, 8, 0, 0.2, 0, 1e-3},
    {"a small chip", 7, 200, 900, 0.6, 0.3, 0.4, 0, 0.2, 0, 1e-3},
    {"readings that scatter by 0.2 %", 40, 500, 1500, 100, 60, 40, 0.3, 0.4, 0.002, 5},
};

static double volt_of(const chip_case *c, size_t i) {
    const double x = c->clocks > 1 ? (double)i / (double)(c->clocks - 1) : 0;
    return 1 + (x > c->floor ? c->rise * (x - c->floor) / (1 - c->floor) : 0);
}

static double mhz_of(const chip_case *c, size_t i) {
    return c->low_mhz + (c->high_mhz - c->low_mhz) * (double)i / (double)(c->clocks - 1);
}

static double off_pct(double got, double want) { return 100 * fabs(got / want - 1); }

static void test_chip(void) {
    for (size_t k = 0; k < sizeof chips / sizeof *chips; k++) {
        const chip_case *c = &chips[k];
        const uint64_t seed = 3;
        fl_random random = fl_random_seed(seed, k);
        double mhz[CLOCKS_MAX], memory_w[CLOCKS_MAX], compute_w[CLOCKS_MAX], volt[CLOCKS_MAX];
        fl_capping_chip got = {0};
        for (size_t i = 0; i < c->clocks; i++) {
            const double v = volt_of(c, i);
            mhz[i] = mhz_of(c, i);
            memory_w[i] = (c->b_w + c->c_w * v) * (1 + c->noise * fl_random_normal(&random));
            compute_w[i] = (c->a_w * v * v * mhz[i] / 1000 + c->c_w * v) * (1 + c->noise * fl_random_normal(&random));
        }
        const fl_model_status s = fl_fit_capping_chip(mhz, c->clocks, memory_w, compute_w, volt, &got);
        FL_CHECK(s == FL_MODEL_OK, "%s: %s", c->name, fl_model_text(s));
        if (s)
            continue;
        FL_CHECK(off_pct(got.a_w, c->a_w) < c->within_pct && off_pct(got.b_w, c->b_w) < c->within_pct &&
                     off_pct(got.c_w, c->c_w) < c->within_pct,
                 "%s, seed %llu: A %g B %g C %g", c->name, (unsigned long long)seed, got.a_w, got.b_w, got.c_w);
        FL_CHECK(volt[0] == 1, "%s: V(fmin) is %g", c->name, volt[0]);
        for (size_t i = 0; i < c->clocks; i++)
            FL_CHECK(off_pct(volt[i], volt_of(c, i)) < c->within_pct, "%s: V(%g) is %g, expected %g", c->name, mhz[i],
                     volt[i], volt_of(c, i));
        if (c->noise > 0)
            FL_CHECK(got.rms_pct > 50 * c->noise && got.rms_pct < 150 * c->noise && got.worst_pct > got.rms_pct &&
                         got.c_sd_pct > 0.1 && got.c_sd_pct < 5 && off_pct(got.c_w, c->c_w) < 4 * got.c_sd_pct,
                     "%s: rms %g %%, worst %g %%, C known to %g %%", c->name, got.rms_pct, got.worst_pct, got.c_sd_pct);
        else
            FL_CHECK(got.rms_pct < 1e-4 && got.worst_pct < 1e-3 && (c->clocks == 2) == isnan(got.c_sd_pct),
                     "%s: rms %g %%, worst %g %%, sd of C %g", c->name, got.rms_pct, got.worst_pct, got.c_sd_pct);
    }
}

/* The memory-bound benchmark alone fits with any C; the other one tells. */
static void test_together(void) {
    const double mhz[] = {500, 700, 900};
    const double memory_w[] = {100, 104, 110};
    double volt[3];
    for (int k = 0; k < 2; k++) {
        const double c_w = k ? 80 : 40, b_w = 100 - c_w;
        double compute_w[3];
        fl_capping_chip got = {0};
        for (int i = 0; i < 3; i++) {
            const double v = (memory_w[i] - b_w) / c_w;
            compute_w[i] = 60 * v * v * mhz[i] / 1000 + c_w * v;
        }
        FL_CHECK(fl_fit_capping_chip(mhz, 3, memory_w, compute_w, volt, &got) == FL_MODEL_OK &&
                     off_pct(got.c_w, c_w) < 1e-4 && off_pct(got.b_w, b_w) < 1e-4 && off_pct(got.a_w, 60) < 1e-4,
                 "the same memory-bound powers: C %g, expected %g", got.c_w, c_w);
    }
}

/* ---- the least squares, a second time ---- */

enum { READ = 4, KNOWN = READ + 2 }; /* clocks; A, B, C and V at all clocks but the lowest, which is 1 */

typedef struct readings {
    double mhz[READ], memory_w[READ], compute_w[READ];
} readings;

/* The relative error of each power by Eq. 2, and its slope by each unknown, worked out by hand. */
static void equations(const readings *r, const fl_capping_chip *c, const double *volt, double e[2 * READ],
                      double slope[2 * READ][KNOWN]) {
    memset(slope, 0, 2 * READ * sizeof *slope);
    for (int i = 0; i < READ; i++) {
        const double v = volt[i], f = r->mhz[i] / 1000;
        double *memory = slope[i], *compute = slope[READ + i];
        e[i] = (c->b_w + c->c_w * v) / r->memory_w[i] - 1;
        e[READ + i] = (c->a_w * v * v * f + c->c_w * v) / r->compute_w[i] - 1;
        memory[1] = 1 / r->memory_w[i];
        memory[2] = v / r->memory_w[i];
        compute[0] = v * v * f / r->compute_w[i];
        compute[2] = v / r->compute_w[i];
        if (i > 0) {
            memory[2 + i] = c->c_w / r->memory_w[i];
            compute[2 + i] = (2 * c->a_w * v * f + c->c_w) / r->compute_w[i];
        }
    }
}

/* Element (at, at) of the inverse of J'J, by elimination. */
static double inverse_at(double slope[2 * READ][KNOWN], int at) {
    double m[KNOWN][KNOWN + 1] = {{0}};
    for (int i = 0; i < KNOWN; i++) {
        for (int k = 0; k < KNOWN; k++)
            for (int row = 0; row < 2 * READ; row++)
                m[i][k] += slope[row][i] * slope[row][k];
        m[i][KNOWN] = i == at;
    }
    for (int i = 0; i < KNOWN; i++)
        for (int row = 0; row < KNOWN; row++)
            for (int k = KNOWN; row != i && k >= i; k--)
                m[row][k] -= m[row][i] / m[i][i] * m[i][k];
    return m[at][KNOWN] / m[at][at];
}

/* At the least squares J'e is 0. From the same e come the errors that are told, and from J'J the deviation of C, with
 * as many degrees of freedom as there are more powers than unknowns: 8 - 6. */
static void test_least_squares(void) {
    static const double off[][2 * READ] = {{0.01, -0.01, 0.01, -0.01, 0.01, 0.01, -0.01, -0.01},
                                           {0.02, 0, -0.01, 0.005, -0.004, 0.01, 0, -0.006},
                                           {-0.003, 0.001, 0.002, -0.001, 0.001, -0.002, 0.003, -0.002}};
    static const fl_capping_chip chip[] = {{.a_w = 100, .b_w = 60, .c_w = 40}, {.a_w = 60, .b_w = 20, .c_w = 70}};
    static const double volt[READ] = {1, 1.08, 1.2, 1.35};
    for (size_t k = 0; k < 6; k++) {
        const fl_capping_chip *c = &chip[k / 3];
        readings r = {.mhz = {500, 800, 1100, 1500}};
        double e[2 * READ], slope[2 * READ][KNOWN], got_volt[READ], squares = 0, worst = 0;
        for (int i = 0; i < READ; i++) {
            const double v = volt[i];
            r.memory_w[i] = (c->b_w + c->c_w * v) * (1 + off[k % 3][i]);
            r.compute_w[i] = (c->a_w * v * v * r.mhz[i] / 1000 + c->c_w * v) * (1 + off[k % 3][READ + i]);
        }
        fl_capping_chip got = {0};
        double *mhz = exact(r.mhz, sizeof r.mhz), *memory_w = exact(r.memory_w, sizeof r.memory_w),
               *compute_w = exact(r.compute_w, sizeof r.compute_w), *v = exact(NULL, sizeof got_volt);
        CU_ASSERT_FATAL(fl_fit_capping_chip(mhz, READ, memory_w, compute_w, v, &got) == FL_MODEL_OK);
        memcpy(got_volt, v, sizeof got_volt);
        free(mhz);
        free(memory_w);
        free(compute_w);
        free(v);
        equations(&r, &got, got_volt, e, slope);
        for (int u = 0; u < KNOWN; u++) {
            double down = 0, size = 0;
            for (int row = 0; row < 2 * READ; row++) {
                down += slope[row][u] * e[row];
                size += fabs(slope[row][u] * e[row]);
            }
            FL_CHECK(fabs(down) < 1e-6 * size, "case %zu: unknown %d goes down by %g of %g", k, u, down, size);
        }
        for (int row = 0; row < 2 * READ; row++) {
            squares += e[row] * e[row];
            worst = fmax(worst, fabs(e[row]));
        }
        const double sd_pct = 100 * sqrt(squares / (2 * READ - KNOWN) * inverse_at(slope, 2)) / got.c_w;
        FL_CHECK(got.worst_pct > 0 && off_pct(got.rms_pct, 100 * sqrt(squares / (2 * READ))) < 1e-6 &&
                     off_pct(got.worst_pct, 100 * worst) < 1e-6,
                 "case %zu: rms %g %%, worst %g %%", k, got.rms_pct, got.worst_pct);
        FL_CHECK(off_pct(got.c_sd_pct, sd_pct) < 1e-4, "case %zu: C is known to %g %%, expected %g %%", k, got.c_sd_pct,
                 sd_pct);
    }
}

/* A voltage may seem to fall as the clock rises, as readings scatter, but not below 0.9; and no part of Eq. 2 takes
 * power away. All of these powers lie exactly on the law. */
static void test_sound(void) {
    static const struct {
        double a_w, b_w, c_w, volt;
        fl_model_status want;
    } rows[] = {{90, 45, 50, 0.95, FL_MODEL_OK},      {90, 45, 50, 0.91, FL_MODEL_OK},
                {90, 45, 50, 0.89, FL_MODEL_NO_FIT},  {90, 45, 50, 0.6, FL_MODEL_NO_FIT},
                {90, 0.1, 50, 1.05, FL_MODEL_OK},     {90, -5, 50, 1.05, FL_MODEL_NO_FIT},
                {-20, 30, 100, 1.05, FL_MODEL_NO_FIT}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const double mhz[] = {500, 700, 900, 1100}, v[] = {1, rows[k].volt, 1.1, 1.2};
        double memory_w[4], compute_w[4], volt[4] = {7, 7, 7, 7};
        fl_capping_chip got = {.a_w = 7};
        for (int i = 0; i < 4; i++) {
            memory_w[i] = rows[k].b_w + rows[k].c_w * v[i];
            compute_w[i] = rows[k].a_w * v[i] * v[i] * mhz[i] / 1000 + rows[k].c_w * v[i];
        }
        const fl_model_status s = fl_fit_capping_chip(mhz, 4, memory_w, compute_w, volt, &got);
        FL_CHECK(s == rows[k].want, "row %zu: %s", k, fl_model_text(s));
        FL_CHECK(s ? got.a_w == 7 && volt[1] == 7 : off_pct(volt[1], v[1]) < 1e-4, "row %zu: A %g, V %g", k, got.a_w,
                 volt[1]);
    }
}

static void test_refuses(void) {
    const double mhz[] = {500, 700, 900}, memory_w[] = {100, 104, 110}, compute_w[] = {90, 110, 140};
    const double back[] = {500, 900, 700}, zero[] = {100, 0, 110}, lost[] = {100, (double)NAN, 110},
                 falling[] = {140, 110, 20};
    double volt[3] = {7, 7, 7};
    fl_capping_chip got = {.a_w = 7};
    FL_CHECK(fl_fit_capping_chip(mhz, 1, memory_w, compute_w, volt, &got) == FL_MODEL_NO_FIT, "one clock");
    FL_CHECK(fl_fit_capping_chip(back, 3, memory_w, compute_w, volt, &got) == FL_MODEL_INVALID, "clocks fall");
    FL_CHECK(fl_fit_capping_chip(mhz, 3, zero, compute_w, volt, &got) == FL_MODEL_INVALID, "no power");
    FL_CHECK(fl_fit_capping_chip(mhz, 3, memory_w, lost, volt, &got) == FL_MODEL_INVALID, "NaN");
    FL_CHECK(fl_fit_capping_chip(mhz, 3, falling, falling, volt, &got) == FL_MODEL_NO_FIT, "powers that fall");
    static const double bad[] = {0, -500, INFINITY, (double)NAN};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        for (int column = 0; column < 3; column++)
            for (int i = 0; i < 3; i++) {
                double row[3][3];
                memcpy(row[0], mhz, sizeof mhz);
                memcpy(row[1], memory_w, sizeof memory_w);
                memcpy(row[2], compute_w, sizeof compute_w);
                row[column][i] = bad[k];
                FL_CHECK(fl_fit_capping_chip(row[0], 3, row[1], row[2], volt, &got) == FL_MODEL_INVALID,
                         "%g in column %d of row %d", bad[k], column, i);
            }
    const double twice[] = {500, 700, 700};
    FL_CHECK(fl_fit_capping_chip(twice, 3, memory_w, compute_w, volt, &got) == FL_MODEL_INVALID, "a clock twice");
    FL_CHECK(fl_fit_capping_chip(mhz, 0, memory_w, compute_w, volt, &got) == FL_MODEL_NO_FIT, "no clock");
    FL_CHECK(got.a_w == 7 && volt[0] == 7, "a refused fit wrote its result");
}

static const fl_capping_chip board = {.a_w = 90, .b_w = 45, .c_w = 50};

/* Whatever alpha and beta gave the two powers comes back, on chips of 100 W and of 1 W. */
static void test_app(void) {
    static const fl_capping_chip small = {.a_w = 0.9, .b_w = 0.45, .c_w = 0.5};
    for (int a = 0; a <= 10; a++)
        for (int b = 0; b <= 21; b++) {
            const double alpha = a / 10.0, beta = b % 11 / 10.0;
            const fl_capping_chip *chip = b > 10 ? &small : &board;
            fl_capping_app got;
            FL_CHECK(fl_fit_capping_app(chip, 614, fl_capping_power(chip, alpha, beta, 614, 1), 784, 1.15,
                                        fl_capping_power(chip, alpha, beta, 784, 1.15), &got) == FL_MODEL_OK &&
                         fabs(got.alpha - alpha) < 1e-9 && fabs(got.beta - beta) < 1e-9 && got.error_pct < 1e-9,
                     "alpha %g beta %g: %g and %g, %g %%", alpha, beta, got.alpha, got.beta, got.error_pct);
        }
}

/* Powers that no alpha and beta within 0..1 give: the nearest on the border, and no other is nearer. */
static void test_app_bounds(void) {
    static const double true_alpha[] = {-0.1, 1.2, 0.5, 0.5, 1.3, -0.2, 1.5, -0.2, 1.2},
                        true_beta[] = {0.5, 0.5, -0.2, 1.3, 1.4, -0.3, -0.1, 1.1, -0.6};
    for (size_t k = 0; k < sizeof true_alpha / sizeof *true_alpha; k++) {
        const double low_w = fl_capping_power(&board, true_alpha[k], true_beta[k], 614, 1),
                     high_w = fl_capping_power(&board, true_alpha[k], true_beta[k], 784, 1.15);
        fl_capping_app got;
        FL_CHECK(fl_fit_capping_app(&board, 614, low_w, 784, 1.15, high_w, &got) == FL_MODEL_OK, "case %zu", k);
        FL_CHECK(got.alpha >= 0 && got.alpha <= 1 && got.beta >= 0 && got.beta <= 1 && got.error_pct > 0,
                 "case %zu: %g and %g, %g %%", k, got.alpha, got.beta, got.error_pct);
        double best = INFINITY, squares = 0;
        for (int a = -1; a <= 100; a++)
            for (int b = -1; b <= 100; b++) {
                const double alpha = a < 0 ? got.alpha : a / 100.0, beta = b < 0 ? got.beta : b / 100.0;
                const double low = fl_capping_power(&board, alpha, beta, 614, 1) / low_w - 1,
                             high = fl_capping_power(&board, alpha, beta, 784, 1.15) / high_w - 1;
                if (a < 0 && b < 0)
                    squares = low * low + high * high;
                best = fmin(best, low * low + high * high);
            }
        FL_CHECK(squares <= best * (1 + 1e-9), "case %zu: %g, but %g can be had", k, squares, best);
        const double low = fl_capping_power(&board, got.alpha, got.beta, 614, 1) / low_w - 1,
                     high = fl_capping_power(&board, got.alpha, got.beta, 784, 1.15) / high_w - 1;
        FL_CHECK(fabs(got.error_pct - 100 * fmax(fabs(low), fabs(high))) < 1e-9,
                 "case %zu: off by %g and %g, told %g %%", k, low, high, got.error_pct);
    }
}

static void test_app_refuses(void) {
    fl_capping_app got = {.alpha = 7};
    const fl_capping_chip no_a = {.b_w = 45, .c_w = 50};
    FL_CHECK(fl_fit_capping_app(&board, 784, 100, 784, 1, 110, &got) == FL_MODEL_INVALID, "one clock");
    FL_CHECK(fl_fit_capping_app(&board, 614, 0, 784, 1, 110, &got) == FL_MODEL_INVALID, "no power");
    FL_CHECK(fl_fit_capping_app(&board, 614, 100, 784, (double)NAN, 110, &got) == FL_MODEL_INVALID, "no voltage");
    FL_CHECK(fl_fit_capping_app(&no_a, 614, 100, 784, 1, 110, &got) == FL_MODEL_INVALID, "no A");
    static const struct {
        double a_w, b_w, c_w, low_mhz, low_w, high_mhz, volt, high_w;
        fl_model_status want;
    } rows[] = {
        {90, 45, 50, -1, 100, 784, 1.1, 110, FL_MODEL_INVALID},
        {90, 45, 50, 614, -1, 784, 1.1, 110, FL_MODEL_INVALID},
        {90, 45, 50, 614, 100, 784, 0, 110, FL_MODEL_INVALID},
        {90, 45, 50, 614, 100, 784, 1.1, 0, FL_MODEL_INVALID},
        {90, 45, 50, 614, 100, 613, 1.1, 110, FL_MODEL_INVALID},
        {90, -1, 50, 614, 100, 784, 1.1, 110, FL_MODEL_INVALID},
        {90, 45, -1, 614, 100, 784, 1.1, 110, FL_MODEL_INVALID},
        {-90, 45, 50, 614, 100, 784, 1.1, 110, FL_MODEL_INVALID},
        {90, 45, 50, INFINITY, 100, INFINITY, 1.1, 110, FL_MODEL_INVALID},
        /* the same V^2 f twice: nothing tells alpha */
        {90, 45, 50, 500, 100, 2000, 0.5, 110, FL_MODEL_NO_FIT},
        {90, 0, 50, 500, 100, 2000, 0.5, 110, FL_MODEL_NO_FIT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const fl_capping_chip chip = {.a_w = rows[i].a_w, .b_w = rows[i].b_w, .c_w = rows[i].c_w};
        const fl_model_status s = fl_fit_capping_app(&chip, rows[i].low_mhz, rows[i].low_w, rows[i].high_mhz,
                                                     rows[i].volt, rows[i].high_w, &got);
        FL_CHECK(s == rows[i].want, "row %zu: %s", i, fl_model_text(s));
    }
    FL_CHECK(got.alpha == 7, "a refused fit wrote its result");
    const fl_capping_chip neither = {.a_w = 90};
    FL_CHECK(fl_fit_capping_app(&neither, 500, 22.5, 1000, 1, 45, &got) == FL_MODEL_OK &&
                 fabs(got.alpha - 0.5) < 1e-12 && got.beta == 0,
             "neither B nor C: alpha %g, beta %g", got.alpha, got.beta);
    /* 1.25 times what alpha 1 draws: what can be had is a fifth less */
    FL_CHECK(fl_fit_capping_app(&neither, 500, 56.25, 1000, 1, 112.5, &got) == FL_MODEL_OK && got.alpha == 1 &&
                 got.beta == 0 && fabs(got.error_pct - 20) < 1e-9,
             "more than alpha 1: alpha %g, beta %g, %g %%", got.alpha, got.beta, got.error_pct);
}

/* Eq. 3, by hand. */
static void test_time(void) {
    static const struct {
        double low_s, high_s, mhz, want;
    } rows[] = {{18, 10, 500, 18}, {18, 10, 600, 15},           {18, 10, 900, 10}, {18, 15, 600, 15},
                {18, 15, 700, 15}, {18, 15, 550, 9000 / 550.0}, {18, 18, 900, 18}, {18, 18, 500, 18}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double got = fl_capping_time(500, rows[i].low_s, rows[i].high_s, rows[i].mhz);
        FL_CHECK(fabs(got - rows[i].want) < 1e-12, "T(%g) is %g, expected %g", rows[i].mhz, got, rows[i].want);
    }
    FL_CHECK(fabs(fl_capping_power(&board, 0.5, 0.2, 700, 1.1) - (0.5 * 90 * 1.21 * 0.7 + 9 + 55)) < 1e-12, "Eq. 2");
}

FL_SUITE("fit policy capping", {"step one", test_chip}, {"both together", test_together},
         {"least squares", test_least_squares}, {"what is sound", test_sound}, {"refuses", test_refuses},
         {"step two", test_app}, {"within 0..1", test_app_bounds}, {"step two refuses", test_app_refuses},
         {"Eq. 2 and 3", test_time})
