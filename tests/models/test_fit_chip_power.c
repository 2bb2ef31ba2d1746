/* The power part of a chip from measurements without any error: the law meets them, its numbers follow the conventions
 * by which equal laws are told apart, and what is kept of each row is how far it lies off. */
#include "models/chip/chip.h"
#include "models/chip/inside.h"
#include "models/math/math.h"
#include "tests/support/suite.h"

#include <stdlib.h>

enum { ROWS = 800, SPANS = 41 };

static fl_chip_row row[ROWS];
static fl_chip_span span[SPANS];
static double time_ref[SPANS];
static fl_chip chip;

typedef struct made {
    const char *what;
    size_t spans, clocks;
    int mems;
    double stall;
    fl_chip_law law;
    size_t numbers; /* shared by all workloads, in the fit that counts */
} made;

/* 90 W of the SMs, 40 W of memory, 20 and 12 W of it idle, 15 W C, 6 W A0; V is flat up to 800 MHz and rises to 1.25 at
 * 1500. Half of each workload's time is the core's. */
static size_t measure(const made *m) {
    size_t n = 0;
    chip = (fl_chip){.sm_ref = 1500,
                     .mem_ref = 1000,
                     .sm_min = 500,
                     .mem_min = m->mems > 1 ? 600 : 1000,
                     .shares = (uint32_t)m->spans,
                     .workloads = (uint32_t)m->spans};
    for (size_t k = 0; k < m->spans; k++) {
        const double alpha = 0.2 + 0.8 * fabs(sin(3 * (double)k + 1)), beta = 0.1 + 0.7 * fabs(cos(5 * (double)k));
        span[k].first = n;
        time_ref[k] = 2 + (double)k;
        for (int j = m->mems - 1; j >= 0; j--)
            for (size_t i = 0; i < m->clocks; i++, n++) {
                const double f = 500 + 1000 * (double)i / (double)(m->clocks - 1), mem = j ? 600 : 1000,
                             v = f < 800 ? 1 : 1 + 0.25 * (f - 800) / 700, t = 0.5 + 0.5 * 1500 / f,
                             busy = m->stall + (1 - m->stall) * 1500 / f / t,
                             moved = m->stall + (1 - m->stall) * 1000 / mem / t,
                             w = 90 * alpha * v * v * f / 1000 * busy + 40 * beta * mem / 1000 * moved + (j ? 12 : 20) +
                                 15 * v + 6 * v * v * f / 1000;
                row[n] = (fl_chip_row){(uint32_t)k, f, mem, time_ref[k] * t, w};
            }
        span[k].count = n - span[k].first;
    }
    CU_ASSERT_FATAL(fl_chip_place_settings(row, n, &chip) == FL_MODEL_OK);
    return n;
}

static double law_at(size_t k, const fl_chip_row *r) {
    double core, memory, base;
    fl_chip_columns(&chip, r->sm_mhz, r->mem_mhz, time_ref[k] / r->time_s, &core, &memory, &base);
    return chip.share[k].alpha * chip.a_w * core + chip.share[k].beta * chip.b_w * memory + base;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The 95th of a hundred workloads, counted from below, has a share of 1. */
static void check_shares(const made *m) {
    double alpha[SPANS], beta[SPANS];
    const size_t at = (size_t)ceil(0.95 * (double)m->spans - 1e-9) - 1;
    for (size_t k = 0; k < m->spans; k++) {
        alpha[k] = chip.share[k].alpha;
        beta[k] = chip.share[k].beta;
    }
    qsort(alpha, m->spans, sizeof *alpha, by_value);
    qsort(beta, m->spans, sizeof *beta, by_value);
    FL_CHECK(fabs(alpha[at] - 1) < 1e-12 && fabs(beta[at] - 1) < 1e-12, "%s: shares of %g and %g", m->what, alpha[at],
             beta[at]);
    if (m->law == FL_CHIP_PLAIN && m->spans > 3)
        FL_CHECK(fabs(beta[0]) < 1e-12 && (fabs(alpha[0]) < 1e-12 || fabs(chip.a0_w - chip.slope_w) < 1e-9),
                 "%s: what all have is nobody's: %g and %g", m->what, alpha[0], beta[0]);
    if (m->spans <= 3)
        FL_CHECK(alpha[0] > 0 && beta[0] > 0, "%s: the least of so few says nothing: %g and %g", m->what, alpha[0],
                 beta[0]);
    FL_CHECK(chip.a0_w <= chip.slope_w + 1e-9 || m->law != FL_CHIP_PLAIN, "%s: A0 of %g, the least slope is %g",
             m->what, chip.a0_w, chip.slope_w);
}

static void test_met(void) {
    static const made rows[] = {
        {"plain", 8, 8, 1, 1, FL_CHIP_PLAIN, 7 + 1 + 2},
        {"three workloads", 3, 8, 1, 1, FL_CHIP_PLAIN, 7 + 1 + 2},
        {"stalls", 6, 7, 1, 0.4, FL_CHIP_FULL, 6 + 1 + 2 + 2},
        {"two memory clocks", 6, 5, 2, 1, FL_CHIP_PLAIN, 2 + 2},
        {"two memory clocks, stalls", 5, 4, 2, 0.5, FL_CHIP_FULL, 3 + 2 + 2 + 2 + 2},
        {"40 workloads", 40, 4, 1, 1, FL_CHIP_PLAIN, 3 + 1 + 2},
        {"41 workloads", 41, 4, 1, 1, FL_CHIP_PLAIN, 3 + 1 + 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const made *m = &rows[i];
        const size_t n = measure(m);
        CU_ASSERT_FATAL(fl_chip_fit_power(row, span, m->spans, time_ref, m->law, &chip) == FL_MODEL_OK);
        const double left = (double)n - (double)m->numbers - 2 * (double)m->spans;
        FL_CHECK(chip.has_power && chip.power_left == left, "%s: %g rows left, not %g", m->what, chip.power_left, left);
        FL_CHECK(chip.power_rms_pct < 0.3 && chip.power_outliers == 0, "%s: %g %%", m->what, chip.power_rms_pct);
        FL_CHECK(fabs(fl_chip_volt(&chip, 500, 1000) - 1) < 1e-12, "%s: V is relative to that of the lowest clock",
                 m->what);
        FL_CHECK(chip.knots == m->clocks && chip.knot_mhz[0] == 500 && chip.knot_mhz[m->clocks - 1] == 1500,
                 "%s: %u knots", m->what, chip.knots);
        for (uint32_t k = 1; k < chip.knots; k++)
            FL_CHECK(chip.volt[k] >= chip.volt[k - 1], "%s: V never falls", m->what);
        FL_CHECK(chip.mems == (uint32_t)m->mems && chip.mem_mhz[chip.mems - 1] == 1000, "%s: %u memory clocks", m->what,
                 chip.mems);
        FL_CHECK((m->law == FL_CHIP_PLAIN) == (chip.stall == 1 && chip.stall_memory == 1), "%s: stalls %g", m->what,
                 chip.stall);
        for (size_t k = 0; k < m->spans; k++)
            for (size_t j = span[k].first; j < span[k].first + span[k].count; j++) {
                const double law = law_at(k, &row[j]), off = chip.power_off[k][fl_chip_setting_of(&chip, &row[j])];
                FL_CHECK(fabs(law / row[j].power_w - 1) < 0.01, "%s, workload %zu at %g MHz: %g W, not %g", m->what, k,
                         row[j].sm_mhz, law, row[j].power_w);
                FL_CHECK(fabs(off - (1 - law / row[j].power_w)) < 1e-9, "%s, workload %zu at %g MHz: off by %g",
                         m->what, k, row[j].sm_mhz, off);
            }
        double mean[2], cov[3];
        fl_chip_load_prior(&chip, mean, cov);
        FL_CHECK(!memcmp(mean, chip.load_mean, sizeof mean) && !memcmp(cov, chip.load_cov, sizeof cov),
                 "%s: the prior is that of these workloads", m->what);
        check_shares(m);
    }
}

/* Powers that were not measured do not count, one that is wild shows, and without any there is no law. */
static void test_missing(void) {
    static const made plain = {"plain", 6, 8, 1, 1, FL_CHIP_PLAIN, 7 + 1 + 2};
    const size_t n = measure(&plain);
    row[3].power_w = row[span[2].first].power_w = NAN;
    row[span[4].first + 5].power_w *= 1.4;
    CU_ASSERT_FATAL(fl_chip_fit_power(row, span, plain.spans, time_ref, FL_CHIP_PLAIN, &chip) == FL_MODEL_OK);
    FL_CHECK(chip.power_left == (double)n - 2 - 10 - 12, "%g left", chip.power_left);
    FL_CHECK(chip.power_outliers == 1 && isnan(chip.power_off[0][3]) && isnan(chip.power_off[2][0]) &&
                 fabs(chip.power_off[4][5] - (1 - 1 / 1.4)) < 0.02,
             "%zu outliers, off by %g", chip.power_outliers, chip.power_off[4][5]);
    for (size_t i = 0; i < n; i++)
        row[i].power_w = NAN;
    FL_CHECK(fl_chip_fit_power(row, span, plain.spans, time_ref, FL_CHIP_PLAIN, &chip) == FL_MODEL_NO_FIT &&
                 !chip.has_power,
             "no power, no law");
}

/* 47 clocks become 24 knots, every second clock; clocks within 0.4 % are one. */
static void test_knots(void) {
    static const made many = {"many", 3, 47, 1, 1, FL_CHIP_PLAIN, 0};
    const size_t n = measure(&many);
    for (size_t i = 0; i < n; i++)
        row[i].mem_mhz *= i % 2 ? 1.003 : 1;
    CU_ASSERT_FATAL(fl_chip_fit_power(row, span, many.spans, time_ref, FL_CHIP_PLAIN, &chip) == FL_MODEL_OK);
    FL_CHECK(chip.knots == 24 && chip.mems == 1, "%u knots, %u memory clocks", chip.knots, chip.mems);
    for (uint32_t i = 0; i < chip.knots; i++)
        FL_CHECK(fabs(chip.knot_mhz[i] - row[2 * i].sm_mhz) < 1e-9, "knot %u at %g MHz", i, chip.knot_mhz[i]);
}

FL_SUITE("fit_chip_power", {"met", test_met}, {"missing and wild", test_missing}, {"knots", test_knots})
