/* The least slope of power in V^2 f, with numbers worked out by hand. Clocks of 1000, 2000, ... MHz make f 1, 2, ...
 * GHz. */
#include "models/chip/chip.h"
#include "models/chip/inside.h"
#include "models/math/math.h"
#include "tests/support/suite.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define SIGMA 1.4826

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(1, fabs(b)); }

static fl_chip chip_of(const double *volt, uint32_t knots) {
    fl_chip c = {.sm_ref = 1000.0 * knots, .sm_min = 1000, .mem_ref = 800, .mem_min = 400, .knots = knots};
    for (uint32_t i = 0; i < knots; i++) {
        c.knot_mhz[i] = 1000.0 * (i + 1);
        c.volt[i] = volt[i];
        c.volt_sd[i] = 0.05;
    }
    return c;
}

static const double level[] = {1, 1, 1, 1, 1, 1};

/* One workload of n rows at 1000, 2000, ... MHz and the top memory clock. */
static fl_chip_span put(fl_chip_row *row, size_t first, const double *watts, size_t n) {
    for (size_t i = 0; i < n; i++)
        row[first + i] = (fl_chip_row){0, 1000.0 * (double)(i + 1), 800, 1, watts[i]};
    return (fl_chip_span){first, n};
}

static void expect(const char *what, const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip *c,
                   double slope, double sd) {
    CU_ASSERT_FATAL(fl_chip_least_slope(row, span, spans, c) == FL_MODEL_OK);
    FL_CHECK(isnan(slope) ? isnan(c->slope_w) : near(c->slope_w, slope), "%s: slope %.9g, expected %.9g", what,
             c->slope_w, slope);
    FL_CHECK(isnan(sd) ? isnan(c->slope_sd) : near(c->slope_sd, sd), "%s: deviation %.9g, expected %.9g", what,
             c->slope_sd, sd);
}

/* 8 W and 2 W per GHz, with readings off by 1 W up and down: the six slopes are 0, 1, 2, 2, 3, 4, the middle level is
 * 8 W, and every reading is 1 W off its line. Four points about their mean have squares of 5. */
static void test_line(void) {
    static const double off[] = {11, 11, 13, 17}, exact[] = {10, 12, 14, 16}, steep[] = {13, 16, 19, 22};
    const double scatter = SIGMA / 13 * sqrt(2), own = scatter * 13 / sqrt(5);
    fl_chip_row row[12];
    fl_chip_span span[3] = {put(row, 0, off, 4), put(row, 4, exact, 4), put(row, 8, steep, 4)};
    fl_chip c = chip_of(level, 4);
    expect("scattered", row, span, 1, &c, 2, own);
    expect("exact", row, span + 1, 1, &c, 2, 1e-3 * 13 / sqrt(5));
    expect("half of the scatter is common to both", row, span, 2, &c, 2, 0.5 * scatter * 13 / sqrt(5));
    expect("the middle of three scatters is none", row, span, 3, &c, 2, 1e-3 * 13 / sqrt(5));
    expect("the least of two", row, span + 1, 2, &c, 2, 1e-3 * 13 / sqrt(5));
    expect("none", row, span, 0, &c, NAN, NAN);
}

/* A slope of 1.9 that is known to within 1 is not certainly less than one of 2. */
static void test_certain(void) {
    static const double vague[] = {11, 10.9, 12.8, 16.7}, exact[] = {10, 12, 14, 16}, falling[] = {20, 19, 18, 17};
    fl_chip_row row[12];
    fl_chip_span span[3] = {put(row, 0, vague, 4), put(row, 4, exact, 4), put(row, 8, falling, 4)};
    fl_chip c = chip_of(level, 4);
    CU_ASSERT_FATAL(fl_chip_least_slope(row, span, 1, &c) == FL_MODEL_OK);
    FL_CHECK(c.slope_w < 2 && c.slope_sd > 0.5, "alone: %g +- %g", c.slope_w, c.slope_sd);
    const double scatter = c.slope_sd / 2; /* half of it is common to both */
    CU_ASSERT_FATAL(fl_chip_least_slope(row, span, 2, &c) == FL_MODEL_OK);
    FL_CHECK(near(c.slope_w, 2) && c.slope_sd > 0.9 * scatter && c.slope_sd < 1.1 * scatter, "both: %g +- %g",
             c.slope_w, c.slope_sd);
    expect("power that falls has no slope below 0", row, span + 2, 1, &c, 0, 1e-3 * 18.5 / sqrt(5));
}

/* What V adds where it has no floor: with V of 1 to 1.3, V^2 f is 1, 2.42, 4.32 and 6.76. */
static void test_no_floor(void) {
    static const double volt[] = {1, 1.1, 1.2, 1.3}, watts[] = {10, 12.84, 16.64, 21.52};
    const double mean = 14.5 / 4, power = 61.0 / 4,
                 squares = 1 + 2.42 * 2.42 + 4.32 * 4.32 + 6.76 * 6.76 - 4 * mean * mean,
                 own = 1e-3 * power / sqrt(squares), by_volt = 2 * 2 * 1.3 * 4 * 0.05 / (6.76 - 1);
    fl_chip_row row[4];
    const fl_chip_span span = put(row, 0, watts, 4);
    fl_chip c = chip_of(volt, 4);
    expect("V rises", row, &span, 1, &c, 2, hypot(own, by_volt));
}

/* V is flat up to 4000 MHz, within 1 %. Beyond it the power is another's. */
static void test_floor(void) {
    static const double watts[] = {10, 12, 14, 16, 99, 199};
    static const struct {
        const char *what;
        double volt[6];
        bool flat;
    } rows[] = {
        {"flat up to 4000 MHz", {1, 1, 1, 1, 1.2, 1.4}, true},
        {"1 % counts as flat", {1, 1, 1, 1.009999, 1.2, 1.4}, true},
        {"three points are too few", {1, 1, 1, 1.02, 1.2, 1.4}, false},
        {"relative to the lowest", {2, 2, 2, 2.019, 2.2, 2.4}, true},
    };
    fl_chip_row row[6];
    const fl_chip_span span = put(row, 0, watts, 6);
    for (size_t i = 0; i < COUNT(rows); i++) {
        fl_chip c = chip_of(rows[i].volt, 6);
        CU_ASSERT_FATAL(fl_chip_least_slope(row, &span, 1, &c) == FL_MODEL_OK);
        const double v = rows[i].volt[0];
        FL_CHECK((c.slope_w < 2.1 / v / v) == rows[i].flat, "%s: %g", rows[i].what, c.slope_w);
    }
    /* 1000, 1050, 1100 and 1150 MHz are four points, but the range is not over 1.15 */
    fl_chip_row close[8];
    fl_chip c = chip_of((double[]){1, 1, 1, 1, 1.2, 1.4, 1.6, 1.8}, 8);
    for (uint32_t i = 0; i < 8; i++) {
        c.knot_mhz[i] = 1000 + 50 * i;
        close[i] = (fl_chip_row){0, c.knot_mhz[i], 800, 1, i < 4 ? 10 : 10 + 40 * i};
    }
    c.sm_ref = 1350;
    const fl_chip_span all = {0, 8};
    CU_ASSERT_FATAL(fl_chip_least_slope(close, &all, 1, &c) == FL_MODEL_OK);
    FL_CHECK(c.slope_w > 10, "a short floor does not count: %g", c.slope_w);
    c.knot_mhz[3] = close[3].sm_mhz = 1151;
    CU_ASSERT_FATAL(fl_chip_least_slope(close, &all, 1, &c) == FL_MODEL_OK);
    FL_CHECK(c.slope_w == 0, "a longer one does: %g", c.slope_w);
}

/* Rows at another memory clock, without power, or too few or too close say nothing. */
static void test_rows(void) {
    static const struct {
        const char *what;
        size_t row;
        double sm_mhz, mem_mhz, power_w;
        bool counts;
    } rows[] = {{"as it is", 0, 1000, 800, 10, true},
                {"another memory clock", 0, 1000, 791.9, 10, false},
                {"nearly the same", 0, 1000, 792.1, 10, true},
                {"no power", 0, 1000, 800, NAN, false}};
    static const double watts[] = {10, 12, 14, 16};
    fl_chip_row row[400];
    fl_chip c = chip_of(level, 4);
    for (size_t i = 0; i < COUNT(rows); i++) {
        fl_chip_span span = put(row, 0, watts, 4);
        row[0].mem_mhz = rows[i].mem_mhz;
        row[0].power_w = rows[i].power_w;
        const bool counts = rows[i].counts;
        expect(rows[i].what, row, &span, 1, &c, counts ? 2 : (double)NAN, counts ? 1e-3 * 13 / sqrt(5) : (double)NAN);
    }
    for (int wide = 0; wide < 2; wide++) { /* the highest clock has to be more than 1.15 times the lowest */
        const fl_chip_span span = put(row, 0, watts, 4);
        for (size_t i = 0; i < 4; i++) {
            row[i].sm_mhz = 1000 + (wide ? 51 : 50) * (double)i;
            row[i].power_w = 10 + 2 * row[i].sm_mhz / 1000;
        }
        CU_ASSERT_FATAL(fl_chip_least_slope(row, &span, 1, &c) == FL_MODEL_OK);
        FL_CHECK(wide ? near(c.slope_w, 2) : isnan(c.slope_w), "a range of %g: %g", row[3].sm_mhz / 1000, c.slope_w);
    }
    /* 300 rows: every fourth counts. The others draw more the higher the clock. */
    for (size_t i = 0; i < 300; i++) {
        const double f = 1000 + 10 * (double)i;
        row[i] = (fl_chip_row){0, f, 800, 1, i % 4 ? 10 + 50 * f / 1000 : 10 + 2 * f / 1000};
    }
    const fl_chip_span all = {0, 300};
    CU_ASSERT_FATAL(fl_chip_least_slope(row, &all, 1, &c) == FL_MODEL_OK);
    FL_CHECK(near(c.slope_w, 2), "thinned: %g", c.slope_w);
}

FL_SUITE("fit_chip_slope", {"a line", test_line}, {"certainly low", test_certain}, {"no floor of V", test_no_floor},
         {"floor of V", test_floor}, {"rows that count", test_rows})
