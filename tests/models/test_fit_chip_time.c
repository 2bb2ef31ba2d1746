/* The time part of a chip from measurements without any error: what the law was comes back, and so do the
 * residuals. */
#include "models/chip/chip.h"
#include "models/chip/inside.h"
#include "models/math/math.h"
#include "tests/support/suite.h"

enum { ROWS = 400, SPANS = 12 };

static fl_chip_row row[ROWS];
static fl_chip_span span[SPANS];
static fl_chip chip;
static double memory[SPANS], rest[SPANS], scale[SPANS];

/* Workloads from none to most of their time bound by memory, each of its own length. mem_mhz: a second memory clock, or
 * 0. link_mhz: 0 where the core clock does not slow the memory down. */
static size_t measure(size_t spans, size_t clocks, double mem_mhz, double sharpness, double link_mhz) {
    size_t n = 0;
    chip = (fl_chip){.sm_ref = 1500, .mem_ref = 1000, .sm_min = 500, .mem_min = mem_mhz > 0 ? mem_mhz : 1000};
    for (size_t k = 0; k < spans; k++) {
        memory[k] = 0.9 * (double)k / (double)(spans - 1);
        rest[k] = 0.05 + 0.2 * fabs(sin(2 * (double)k));
        scale[k] = 0.5 + (double)k;
        span[k].first = n;
        for (int j = mem_mhz > 0 ? 0 : 1; j < 2; j++)
            for (size_t i = 0; i < clocks; i++, n++) {
                const double f = 500 + 1000 * (double)i / (double)(clocks - 1), m = j ? 1000 : mem_mhz,
                             link = link_mhz > 0 ? pow(link_mhz / f, 2) : 0,
                             top = link_mhz > 0 ? pow(link_mhz / 1500, 2) : 0,
                             h = pow(pow(1000 / m, 8) + pow(link, 8), 0.125) / pow(1 + pow(top, 8), 0.125),
                             t = pow(pow((1 - memory[k]) * 1500 / f, sharpness) + pow(memory[k] * h, sharpness),
                                     1 / sharpness);
                row[n] = (fl_chip_row){(uint32_t)k, f, m, scale[k] * ((1 - rest[k]) * t + rest[k]), NAN};
            }
        span[k].count = n - span[k].first;
    }
    return n;
}

static void test_recovered(void) {
    static const struct {
        const char *what;
        size_t spans, clocks;
        double mem_mhz, sharpness, link_mhz;
        fl_chip_law law;
        bool linked;
    } rows[] = {
        {"plain", 6, 9, 0, 5, 0, FL_CHIP_PLAIN, false},
        {"sharp", 6, 9, 0, 12, 0, FL_CHIP_PLAIN, false},
        {"two memory clocks", 4, 5, 400, 4, 0, FL_CHIP_PLAIN, false},
        {"link", 6, 9, 0, 6, 900, FL_CHIP_FULL, true},
        {"the plain law has no link", 6, 9, 0, 6, 900, FL_CHIP_PLAIN, false},
        {"64 settings", 3, 64, 0, 5, 0, FL_CHIP_PLAIN, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double time_ref[SPANS];
        const size_t n = measure(rows[i].spans, rows[i].clocks, rows[i].mem_mhz, rows[i].sharpness, rows[i].link_mhz);
        CU_ASSERT_FATAL(fl_chip_fit_time(row, span, rows[i].spans, rows[i].law, &chip, time_ref) == FL_MODEL_OK);
        FL_CHECK((chip.link_mhz > 0) == rows[i].linked, "%s: link %g", rows[i].what, chip.link_mhz);
        const double numbers = rows[i].linked ? 4 : 1;
        FL_CHECK(chip.time_left == (double)n - numbers - 3 * (double)rows[i].spans, "%s: %g left", rows[i].what,
                 chip.time_left);
        FL_CHECK(chip.shares == rows[i].spans, "%s: %u shares", rows[i].what, chip.shares);
        const bool exact = !(rows[i].link_mhz > 0) || rows[i].linked;
        FL_CHECK(!exact || (fabs(log(chip.sharpness / rows[i].sharpness)) < 0.1 && chip.time_rms_pct < 0.1),
                 "%s: p %g, off by %g %%", rows[i].what, chip.sharpness, chip.time_rms_pct);
        FL_CHECK(exact || chip.time_rms_pct > 0.1, "%s: off by %g %%", rows[i].what, chip.time_rms_pct);
        FL_CHECK(!rows[i].linked || fabs(chip.link_mhz / rows[i].link_mhz - 1) < 0.03, "%s: link %g", rows[i].what,
                 chip.link_mhz);
        FL_CHECK(isnan(chip.link_sd) || rows[i].linked, "%s: no link, no deviation of it", rows[i].what);
        FL_CHECK(chip.settings == rows[i].clocks * (rows[i].mem_mhz > 0 ? 2 : 1), "%s: %u settings", rows[i].what,
                 chip.settings);
        for (size_t k = 0; k < rows[i].spans && exact; k++) {
            const fl_chip_share *s = &chip.share[k];
            const fl_chip_load load = fl_chip_load_of(s);
            const fl_chip_row *top = &row[span[k].first + span[k].count - 1];
            FL_CHECK(fabs(time_ref[k] / top->time_s - 1) < 0.003, "%s, workload %zu: %g s at the reference",
                     rows[i].what, k, time_ref[k]);
            for (const fl_chip_row *r = &row[span[k].first]; r < top; r++) {
                const double shape = fl_chip_time(&chip, &load, r->sm_mhz, r->mem_mhz) /
                                     fl_chip_time(&chip, &load, top->sm_mhz, top->mem_mhz);
                FL_CHECK(fabs(shape * top->time_s / r->time_s - 1) < 0.012, "%s, workload %zu at %g MHz: %g, not %g",
                         rows[i].what, k, r->sm_mhz, shape, r->time_s / top->time_s);
            }
            for (uint32_t j = 0; j < chip.settings; j++)
                FL_CHECK(fabs(chip.time_off[k][j]) < 0.005 && isnan(chip.power_off[k][j]),
                         "%s, workload %zu: off by %g at setting %u", rows[i].what, k, chip.time_off[k][j], j);
        }
    }
}

/* One reading that is wild shows as its own residual, and counts as one outlier. */
static void test_wild(void) {
    double time_ref[SPANS];
    measure(6, 9, 0, 5, 0);
    row[span[3].first + 4].time_s *= 1.3;
    CU_ASSERT_FATAL(fl_chip_fit_time(row, span, 6, FL_CHIP_PLAIN, &chip, time_ref) == FL_MODEL_OK);
    FL_CHECK(chip.time_outliers == 1 && chip.time_rms_pct < 0.3, "%zu outliers, %g %%", chip.time_outliers,
             chip.time_rms_pct);
    FL_CHECK(fabs(chip.time_off[3][4] - log(1.3)) < 0.02, "off by %g", chip.time_off[3][4]);
    for (uint32_t i = 0; i < 9; i++)
        FL_CHECK(i == 4 || fabs(chip.time_off[3][i]) < 0.02, "setting %u is off by %g", i, chip.time_off[3][i]);
}

/* With no more rows than numbers nothing is left to tell how far off the law is. */
static void test_few(void) {
    double time_ref[SPANS];
    measure(2, 3, 0, 5, 0);
    CU_ASSERT_FATAL(fl_chip_fit_time(row, span, 2, FL_CHIP_PLAIN, &chip, time_ref) == FL_MODEL_OK);
    FL_CHECK(chip.time_left == -1 && isnan(chip.time_rms_pct) && isinf(chip.sharpness_sd), "%g left, %g %%, p +- %g",
             chip.time_left, chip.time_rms_pct, chip.sharpness_sd);
    measure(2, 2, 0, 5, 0);
    CU_ASSERT_FATAL(fl_chip_fit_time(row, span, 2, FL_CHIP_PLAIN, &chip, time_ref) == FL_MODEL_OK);
    FL_CHECK(chip.time_left == -1, "two rows hold two numbers: %g left", chip.time_left);
}

FL_SUITE("fit_chip_time", {"recovered", test_recovered}, {"a wild reading", test_wild}, {"few rows", test_few})
