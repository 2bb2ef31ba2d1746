/* Predictions of a workload held to a second computation of the same posterior: with inverted matrices in place of
 * whitened columns, and an even grid over the unit square in place of cells that are made finer. The formulas are those
 * of Gaussian-process regression with explicit basis functions (Rasmussen and Williams, 2006, Eqs. 2.23 to 2.25 and
 * 2.39 to 2.42), and the deviations those of its law of total variance. */
#include "models/chip/chip.h"
#include "models/chip/inside.h"
#include "models/math/math.h"
#include "tests/support/made_up_chip.h"
#include "tests/support/suite.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define KNOWN 3
#define FINE 240 /* cells along each side of the square */

/* a := a^-1, by Gauss and Jordan; symmetric positive definite matrices need no pivot. */
static void invert(double a[KNOWN][KNOWN]) {
    for (size_t p = 0; p < KNOWN; p++) {
        const double d = a[p][p];
        a[p][p] = 1;
        for (size_t j = 0; j < KNOWN; j++)
            a[p][j] /= d;
        for (size_t i = 0; i < KNOWN; i++) {
            const double f = a[i][p];
            if (i == p)
                continue;
            a[i][p] = 0;
            for (size_t j = 0; j < KNOWN; j++)
                a[i][j] -= f * a[p][j];
        }
    }
}

static double dot(const double *x, double a[KNOWN][KNOWN], const double *y) {
    double sum = 0;
    for (size_t i = 0; i < KNOWN; i++)
        for (size_t j = 0; j < KNOWN; j++)
            sum += x[i] * a[i][j] * y[j];
    return sum;
}

static double smooth(const fl_chip_error *e, const fl_chip_row *a, const fl_chip_row *b) {
    const double x = log(a->sm_mhz / b->sm_mhz), y = log(a->mem_mhz / b->mem_mhz);
    return e->smooth * e->smooth *
           exp(-x * x / (2 * e->length_sm * e->length_sm) - y * y / (2 * e->length_mem * e->length_mem));
}

static fl_chip chip;
static fl_chip_row known[KNOWN] = {{0, 900, 800, 12.5, 140}, {0, 1400, 800, 10, 200}, {0, 1200, 400, 13, 150}};
static const fl_chip_row asked[] = {
    {0, 1100, 800, NAN, NAN}, {0, 600, 800, NAN, NAN}, {0, 1300, 400, NAN, NAN}, {0, 900, 800, NAN, NAN}};

static void make_chip(void) {
    chip = made_up_chip();
    chip.sm_ref = chip.knot_mhz[2] = 1400;
    chip.sm_min = chip.knot_mhz[0] = 600;
    chip.link_mhz = 700;
    chip.link_slope = 2;
    chip.link_sharp = 8;
    chip.time_error = (fl_chip_error){.scatter = 0.01,
                                      .smooth = 0.02,
                                      .length_sm = 0.3,
                                      .length_mem = 0.6,
                                      .growth = {0.1, 0.2, 0.3, 0.4},
                                      .wide = {1.1, 1.2, 1.3, 1.4}};
    chip.power_error = (fl_chip_error){.scatter = 0.015,
                                       .smooth = 0.03,
                                       .length_sm = 0.25,
                                       .length_mem = 0.5,
                                       .growth = {0.05, 0.1, 0.15, 0.2},
                                       .wide = {1.3, 1.2, 1.1, 1.05}};
}

/* ---- power ---- */

#define BASE_SD 0.1 /* of the base's share, as fit_chip_power_guess.c states it */

/* The columns of one row as shares of its power. */
static void columns(const fl_chip_row *r, double time_ref, double time_s, double watts, double h[3]) {
    fl_chip_columns(&chip, r->sm_mhz, r->mem_mhz, time_ref / time_s, &h[0], &h[1], &h[2]);
    h[0] *= chip.a_w / watts;
    h[1] *= chip.b_w / watts;
    h[2] /= watts;
}

static void check_power(const char *what, double stretch) {
    fl_chip_load load = {.tc = 6, .tm = 3, .tl = 1}, still = load;
    fl_chip_guess guess[COUNT(asked)];
    double slope[COUNT(asked)], h[KNOWN][3], r[KNOWN][KNOWN], left[KNOWN];
    const double time_ref = fl_chip_time(&chip, &load, 1400, 800);
    for (size_t j = 0; j < COUNT(asked); j++)
        guess[j] = (fl_chip_guess){.time_s = 11 + (double)j, .time_sd_pct = 2};
    for (size_t i = 0; i < KNOWN; i++)
        known[i].power_w *= stretch;
    CU_ASSERT_FATAL(fl_chip_predict_power(&chip, known, KNOWN, asked, COUNT(asked), guess, &load, slope) ==
                    FL_MODEL_OK);
    for (size_t i = 0; i < KNOWN; i++)
        columns(&known[i], time_ref, known[i].time_s, known[i].power_w, h[i]);
    for (size_t i = 0; i < KNOWN; i++)
        for (size_t j = 0; j < KNOWN; j++)
            r[i][j] = smooth(&chip.power_error, &known[i], &known[j]) + BASE_SD * BASE_SD * h[i][2] * h[j][2] +
                      (i == j ? 0.015 * 0.015 + 1e-10 : 0);
    invert(r);
    double column[3][KNOWN], precision[2][2], z[2];
    for (size_t i = 0; i < KNOWN; i++) {
        left[i] = 1 - h[i][2];
        for (size_t k = 0; k < 3; k++)
            column[k][i] = h[i][k];
    }
    const double *c = chip.load_cov, det = c[0] * c[2] - c[1] * c[1];
    const double prior[2][2] = {{c[2] / det, -c[1] / det}, {-c[1] / det, c[0] / det}};
    for (size_t a = 0; a < 2; a++) {
        z[a] = prior[a][0] * chip.load_mean[0] + prior[a][1] * chip.load_mean[1] + dot(column[a], r, left);
        for (size_t b = 0; b < 2; b++)
            precision[a][b] = prior[a][b] + dot(column[a], r, column[b]);
    }
    const double whole = precision[0][0] * precision[1][1] - precision[0][1] * precision[1][0];
    const double cov[2][2] = {{precision[1][1] / whole, -precision[0][1] / whole},
                              {-precision[0][1] / whole, precision[0][0] / whole}};
    const double part[2] = {cov[0][0] * z[0] + cov[0][1] * z[1], cov[1][0] * z[0] + cov[1][1] * z[1]};
    FL_CHECK(part[0] > 0 && part[1] > 0 && fabs(load.alpha - part[0]) < 1e-9 && fabs(load.beta - part[1]) < 1e-9,
             "%s: alpha %.9g beta %.9g, expected %.9g %.9g", what, load.alpha, load.beta, part[0], part[1]);
    FL_CHECK(load.tc == still.tc && load.tm == still.tm && load.tl == still.tl, "%s: the times stay", what);
    for (size_t i = 0; i < KNOWN; i++)
        left[i] -= part[0] * h[i][0] + part[1] * h[i][1];
    const double base_off = BASE_SD * BASE_SD * dot(column[2], r, left);
    for (size_t j = 0; j < COUNT(asked); j++) {
        double at[3], calm[3], gain[KNOWN], rest[2];
        columns(&asked[j], time_ref, guess[j].time_s, 1, at);
        columns(&asked[j], time_ref, INFINITY, 1, calm);
        for (size_t i = 0; i < KNOWN; i++)
            gain[i] = smooth(&chip.power_error, &asked[j], &known[i]);
        const double law = at[2] + part[0] * at[0] + part[1] * at[1], watts = law + base_off * at[2];
        const double steep = -(part[0] * (at[0] - calm[0]) + part[1] * (at[1] - calm[1])) / watts;
        FL_CHECK(fabs(slope[j] - steep) < 1e-9 && steep < -0.1, "%s %zu: slope %.9g, expected %.9g", what, j, slope[j],
                 steep);
        FL_CHECK(fabs(guess[j].power_w * (1 - dot(gain, r, left)) / watts - 1) < 1e-9, "%s %zu: %.9g W, expected %.9g",
                 what, j, guess[j].power_w, watts / (1 - dot(gain, r, left)));
        for (size_t k = 0; k < 3; k++)
            at[k] /= watts;
        for (size_t i = 0; i < KNOWN; i++)
            gain[i] += BASE_SD * BASE_SD * at[2] * h[i][2];
        for (size_t a = 0; a < 2; a++)
            rest[a] = at[a] - dot(gain, r, column[a]);
        const double variance = 0.015 * 0.015 + 0.03 * 0.03 + BASE_SD * BASE_SD * at[2] * at[2] - dot(gain, r, gain) +
                                rest[0] * rest[0] * cov[0][0] + 2 * rest[0] * rest[1] * cov[0][1] +
                                rest[1] * rest[1] * cov[1][1];
        const double sd = hypot(fl_chip_sd_pct(&chip.power_error, known, KNOWN, &asked[j], variance), 2 * steep);
        FL_CHECK(fabs(guess[j].power_sd_pct / sd - 1) < 1e-6, "%s %zu: %.9g %%, expected %.9g", what, j,
                 guess[j].power_sd_pct, sd);
    }
    for (size_t i = 0; i < KNOWN; i++)
        known[i].power_w /= stretch;
}

static void test_power(void) {
    make_chip();
    check_power("as the prior has it", 1);
    check_power("a tenth above", 1.1);
    check_power("a tenth below", 0.9);
}

/* ---- time ---- */

/* The density of a workload's parts about those of the chip's workloads, as fit_chip_posterior.c states it: widths of
 * 0.3 over the root of their number but 0.06 at least, joined with each one's own, and 0.3 of a workload of any kind.
 */
static double density(double memory, double rest, const double *likely) {
    const double near = fmax(0.06, 0.3 / sqrt(fmax(1, chip.shares)));
    double sum = 0.3, count = 0.3;
    for (uint32_t k = 0; k < chip.shares; k++) {
        const fl_chip_share *s = &chip.share[k];
        const double su = hypot(s->memory_sd, near), sv = hypot(s->rest_sd, near);
        const double x = (memory - s->memory) / su, y = (rest - s->rest) / sv;
        sum += likely[k] * exp(-x * x / 2 - y * y / 2) / (2 * M_PI * su * sv);
        count += likely[k];
    }
    return sum / count;
}

/* How near each share comes to the power of the fastest known row (1400 MHz): a width of 0.35 in ln power, and 0.05
 * even where it is far. */
static void weigh(double *likely) {
    for (uint32_t k = 0; k < chip.shares; k++) {
        const fl_chip_share *s = &chip.share[k];
        const fl_chip_load load = {(1 - s->rest) * (1 - s->memory), (1 - s->rest) * s->memory, s->rest, s->alpha,
                                   s->beta};
        const double watts = fl_chip_power(&chip, &load, 1400, 800, fl_chip_time(&chip, &load, 1400, 800));
        const double x = log(200 / watts) / 0.35;
        likely[k] = isnan(known[1].power_w) ? 1 : 0.05 + exp(-x * x / 2);
    }
}

static double ln_shape(double memory, double rest, const fl_chip_row *r) {
    const fl_chip_load load = {.tc = (1 - rest) * (1 - memory), .tm = (1 - rest) * memory, .tl = rest};
    return log(fl_chip_time(&chip, &load, r->sm_mhz, r->mem_mhz));
}

static void check_time(const char *what) {
    fl_chip_guess guess[COUNT(asked)];
    fl_chip_load load;
    double likely[FL_CHIP_SHARES], k[KNOWN][KNOWN], ones[KNOWN], gain[COUNT(asked)][KNOWN];
    double total = 0, memory = 0, rest = 0, level = 0, mean[COUNT(asked)] = {0}, square[COUNT(asked)] = {0};
    CU_ASSERT_FATAL(fl_chip_predict_time(&chip, known, KNOWN, asked, COUNT(asked), guess, &load) == FL_MODEL_OK);
    weigh(likely);
    for (size_t i = 0; i < KNOWN; i++) {
        ones[i] = 1;
        for (size_t j = 0; j < KNOWN; j++)
            k[i][j] = smooth(&chip.time_error, &known[i], &known[j]) + (i == j ? 0.01 * 0.01 + 1e-10 : 0);
        for (size_t j = 0; j < COUNT(asked); j++)
            gain[j][i] = smooth(&chip.time_error, &asked[j], &known[i]);
    }
    invert(k);
    const double one = dot(ones, k, ones);
    for (size_t c = 0; c < FINE * FINE; c++) {
        const double m = ((double)(c % FINE) + 0.5) / FINE, t = ((double)(c / FINE) + 0.5) / FINE;
        double left[KNOWN];
        for (size_t i = 0; i < KNOWN; i++)
            left[i] = log(known[i].time_s) - ln_shape(m, t, &known[i]);
        const double offset = dot(ones, k, left) / one;
        for (size_t i = 0; i < KNOWN; i++)
            left[i] -= offset;
        const double w = density(m, t, likely) * exp(-dot(left, k, left) / 2);
        total += w;
        memory += w * m;
        rest += w * t;
        level += w * offset;
        for (size_t j = 0; j < COUNT(asked) && w > 1e-30; j++) {
            const double y = ln_shape(m, t, &asked[j]) + offset + dot(gain[j], k, left);
            mean[j] += w * y;
            square[j] += w * y * y;
        }
    }
    const double scale = exp(level / total), u = memory / total, v = rest / total;
    FL_CHECK(fabs(load.tc / (scale * (1 - v) * (1 - u)) - 1) < 0.0005 &&
                 fabs(load.tm / (scale * (1 - v) * u) - 1) < 0.0005 && fabs(load.tl / (scale * v) - 1) < 0.001,
             "%s: %.6g %.6g %.6g s, expected %.6g %.6g %.6g", what, load.tc, load.tm, load.tl,
             scale * (1 - v) * (1 - u), scale * (1 - v) * u, scale * v);
    for (size_t j = 0; j < COUNT(asked); j++) {
        const double y = mean[j] / total,
                     variance = square[j] / total - y * y + 0.01 * 0.01 + 0.02 * 0.02 - dot(gain[j], k, gain[j]);
        const double sd = fl_chip_sd_pct(&chip.time_error, known, KNOWN, &asked[j], variance);
        FL_CHECK(fabs(guess[j].time_s / exp(y) - 1) < 2e-5, "%s %zu: %.9g s, expected %.9g", what, j, guess[j].time_s,
                 exp(y));
        FL_CHECK(fabs(guess[j].time_sd_pct / sd - 1) < 5e-4, "%s %zu: %.6g %%, expected %.6g", what, j,
                 guess[j].time_sd_pct, sd);
    }
}

static void test_time(void) {
    make_chip();
    check_time("nobody known");
    chip.shares = 3;
    chip.share[0] = (fl_chip_share){0.2, 0.1, 0.02, 0.03, 0.9, 0.2};
    chip.share[1] = (fl_chip_share){0.7, 0.05, 0.1, 0.02, 0.3, 0.7};
    chip.share[2] = (fl_chip_share){0.5, 0.5, 0.05, 0.15, 0.2, 0.1};
    check_time("three workloads, by their powers");
    known[1].power_w = NAN;
    check_time("three workloads, all alike");
    known[1].power_w = 200;
}

FL_SUITE("fit_chip_predict", {"power", test_power}, {"time", test_time})
