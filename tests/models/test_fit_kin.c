/* A chip without measurements, with numbers worked out by hand: where the prior is so narrow that it leaves one
 * chip, and where it leaves one number open, beside a sum over that number. test_kin.c holds it to real chips. */
#include "models/chip/chip.h"
#include "models/fit/fit.h"
#include "models/laws/device.h"
#include "models/math/math.h"
#include "tests/support/suite.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define NARROW 1.000001

static bool near(double a, double b, double share) { return fabs(a - b) <= share * fabs(b); }

/* V is 1 at 500 MHz, 1.1 halfway and 1.4 at the top: V - 1 halfway is a quarter of that at the top, so the bend is 2.
 */
static void test_device(void) {
    static const double mhz[] = {500, 1250, 2000}, volt[] = {1, 1.1, 1.4};
    int32_t sm[] = {500, 2000}, mem[] = {400, 800};
    double b0[] = {10, 30};
    fl_device dev = {.sm_mhz = sm,
                     .sm_count = 2,
                     .mem_mhz = mem,
                     .mem_count = 2,
                     .default_mem_mhz = 800,
                     .b0_w = b0,
                     .tdp_w = 200,
                     .a_w = 60,
                     .a0_w = 5,
                     .b_w = 40,
                     .c_w = 0};
    fl_kin k;
    CU_ASSERT_FATAL(fl_curve_new(&dev.voltage, mhz, volt, 3) == FL_MODEL_OK);
    CU_ASSERT_FATAL(fl_kin_of_device(&dev, &k) == FL_MODEL_OK);
    /* A V^2 f = 60 x 1.96 x 2 of 200 W; C is 0 and counts as a hundredth */
    const double want[FL_KIN_COUNT] = {
        [FL_KIN_A] = 1.176, [FL_KIN_A0] = 0.098,  [FL_KIN_B] = 0.2,    [FL_KIN_B0] = 0.15,
        [FL_KIN_C] = 0.01,  [FL_KIN_KNEE] = 0.25, [FL_KIN_RISE] = 0.4, [FL_KIN_BEND] = 2};
    for (int i = 0; i < FL_KIN_COUNT; i++)
        FL_CHECK(near(k.part[i], want[i], 1e-9), "%s: %.9g, expected %.9g", fl_kin_what[i], k.part[i], want[i]);
    dev.default_mem_mhz = 500; /* on no ladder: the lowest */
    CU_ASSERT_FATAL(fl_kin_of_device(&dev, &k) == FL_MODEL_OK);
    FL_CHECK(near(k.part[FL_KIN_B0], 0.05, 1e-9), "B0 %.9g", k.part[FL_KIN_B0]);
    fl_device wrong[] = {dev, dev, dev, dev};
    wrong[0].tdp_w = 0;
    wrong[1].sm_count = 1;
    wrong[2].voltage = NULL;
    wrong[3].b0_w = NULL;
    for (size_t i = 0; i < COUNT(wrong); i++)
        FL_CHECK(fl_kin_of_device(&wrong[i], &k) == FL_MODEL_INVALID, "device %zu", i);
    dev.tdp_w = 1; /* any power is one */
    CU_ASSERT(fl_kin_of_device(&dev, &k) == FL_MODEL_OK);
    fl_curve_free(dev.voltage);
}

/* Equal chips spread by a twentieth at least; unequal ones by Student's quantile for the next of four (3.182446). */
static void test_spread(void) {
    fl_kin kin[4];
    fl_kin_spread s;
    for (int k = 0; k < FL_KIN_COUNT; k++)
        for (int i = 0; i < 4; i++)
            kin[i].part[k] = k == FL_KIN_A ? (i < 2 ? 1 : 4) : 3;
    CU_ASSERT_FATAL(fl_kin_prior(kin, 4, &s) == FL_MODEL_OK);
    FL_CHECK(near(s.middle[FL_KIN_B], 3, 1e-9) && near(s.factor[FL_KIN_B], exp(0.05), 1e-9), "%g, factor %g",
             s.middle[FL_KIN_B], s.factor[FL_KIN_B]);
    const double deviation = log(2) * sqrt(4.0 / 3) * 3.182446 / 1.959964 * sqrt(1.25);
    FL_CHECK(near(s.middle[FL_KIN_A], 2, 1e-9) && near(log(s.factor[FL_KIN_A]), deviation, 1e-5), "%g, factor %g",
             s.middle[FL_KIN_A], s.factor[FL_KIN_A]);
}

static const int32_t sm[] = {100,  200,  300,  400,  500,  600,  700,  800,  900,  1000,
                             1100, 1200, 1300, 1400, 1500, 1600, 1700, 1800, 1900, 2000},
                     mem[] = {300, 600, 1000, 1200, 1500};
static const fl_kin_facts facts = {sm, mem, COUNT(sm), COUNT(mem), 1200, 250};

static fl_kin_spread narrow(void) {
    fl_kin_spread s = {.middle = {[FL_KIN_A] = 0.5,
                                  [FL_KIN_A0] = 0.1,
                                  [FL_KIN_B] = 0.2,
                                  [FL_KIN_B0] = 0.08,
                                  [FL_KIN_C] = 0.15,
                                  [FL_KIN_KNEE] = 0.6,
                                  [FL_KIN_RISE] = 0.5,
                                  [FL_KIN_BEND] = 2}};
    for (int i = 0; i < FL_KIN_COUNT; i++)
        s.factor[i] = NARROW;
    return s;
}

static double part_of_one(double x) { return x - floor(x); }

static fl_chip chip;

/* Of 250 W at V = 1.5 and 2 GHz. Four memory clocks are kept, three of which lie between half the default and it. */
static void test_law(void) {
    const fl_kin_spread prior = narrow();
    fl_kin_spread after;
    CU_ASSERT_FATAL(fl_kin_chip(&facts, &prior, NULL, 0, NULL, 0, &chip, &after) == FL_MODEL_OK);
    FL_CHECK(near(chip.a_w, 125 / 4.5, 1e-5) && near(chip.a0_w, 25 / 4.5, 1e-5) && near(chip.b_w, 50, 1e-5) &&
                 near(chip.c_w, 37.5, 1e-5),
             "A %g A0 %g B %g C %g", chip.a_w, chip.a0_w, chip.b_w, chip.c_w);
    FL_CHECK(chip.sm_ref == 2000 && chip.sm_min == 100 && chip.mem_ref == 1200 && chip.mem_min == 600 &&
                 chip.stall == 1 && chip.stall_memory == 1 && chip.has_power && chip.workloads == 0,
             "from %g to %g MHz, memory from %g to %g", chip.sm_min, chip.sm_ref, chip.mem_min, chip.mem_ref);
    FL_CHECK(chip.knots == 16 && chip.mems == 4 && chip.settings == 48 && chip.shares == 64,
             "%u knots, %u memory clocks, %u settings, %u workloads", chip.knots, chip.mems, chip.settings,
             chip.shares);
    for (uint32_t i = 0; i < 16; i++) {
        const double f = sm[i * 19 / 15], x = fmax(0, (f - 1200) / 800);
        FL_CHECK(chip.knot_mhz[i] == f && near(chip.volt[i], 1 + 0.5 * x * x, 1e-5), "knot %u: V(%g) = %g", i,
                 chip.knot_mhz[i], chip.volt[i]);
        for (uint32_t j = 0; j < 3; j++)
            FL_CHECK(chip.setting_sm[16 * j + i] == f && chip.setting_mem[16 * j + i] == mem[1 + j], "setting %u, %u",
                     i, j);
    }
    FL_CHECK(near(chip.sharpness, 9, 0.01) && near(chip.link_slope, 2, 0.01) && chip.link_sharp == 8 &&
                 (chip.link_mhz == 0 || near(chip.link_mhz, 1200, 0.01)),
             "sharpness %g, link at %g MHz, slope %g", chip.sharpness, chip.link_mhz, chip.link_slope);
    for (uint32_t j = 0; j < 4; j++) /* a tenth of 20 W is there at any memory clock */
        FL_CHECK(near(chip.b0_w[j], 2 + 18 * mem[1 + j] / 1200.0, 0.01), "B0(%g) = %g", chip.mem_mhz[j], chip.b0_w[j]);
    for (int i = 0; i < FL_KIN_COUNT; i++)
        FL_CHECK(near(after.middle[i], prior.middle[i], 1e-5) && near(after.factor[i], NARROW, 1e-5), "%s: %g x/ %g",
                 fl_kin_what[i], after.middle[i], after.factor[i]);
}

/* Two clocks are enough to ask. */
static const int32_t small_sm[] = {1000, 2000}, small_mem[] = {1200};
static const fl_kin_facts small = {small_sm, small_mem, 2, 1, 1200, 250};

/* The workloads are points k + 1 of Roberts' sequence (2018) in four dimensions: steps of 1 / phi, 1 / phi^2, ... with
 * phi the root of x^5 = x + 1, 1.1673039782614187. */
static void test_workloads(void) {
    const double phi = 1.1673039782614187;
    const fl_kin_spread prior = narrow();
    CU_ASSERT_FATAL(fl_kin_chip(&small, &prior, NULL, 0, NULL, 0, &chip, NULL) == FL_MODEL_OK);
    for (uint32_t k = 0; k < 64; k++) {
        double x[4];
        for (int i = 0; i < 4; i++)
            x[i] = part_of_one(0.5 + (k + 1) / pow(phi, i + 1));
        const fl_chip_share *s = &chip.share[k];
        FL_CHECK(near(s->memory, x[0], 1e-6) && near(s->rest, x[1] * x[1] / 2, 1e-6) &&
                     near(s->alpha, 0.2 + 0.8 * x[2], 1e-6) && near(s->beta, x[0] * (0.3 + 0.7 * x[3]), 1e-6),
                 "workload %u: %g %g %g %g", k, s->memory, s->rest, s->alpha, s->beta);
        FL_CHECK(s->memory_sd == 0.02 && s->rest_sd == 0.02, "workload %u: deviations", k);
    }
}

/* With one number open, a sum over it says what an idle log and a run tell of it: its mean and deviation, in ln. idle
 * logs weigh with 3 %, readings of a run with 5 %, and the run may be any of the 64 workloads. */
static void check_open(const char *what, int open, const fl_idle_point *idle, const fl_chip_row *run) {
    fl_kin_spread prior = narrow(), after;
    const double sd = log(prior.factor[open] = 1.5);
    double total = 0, mean = 0, squares = 0;
    CU_ASSERT_FATAL(fl_kin_chip(&small, &prior, idle, idle ? 2 : 0, run, run ? 1 : 0, &chip, &after) == FL_MODEL_OK);
    for (int i = -2000; i <= 2000; i++) {
        const double x = i / 400.0 * sd, c = 37.5, a0 = 25 / 4.5;
        const double b0 = 20 * (open == FL_KIN_B0 ? exp(x) : 1), a = 125 * (open == FL_KIN_A ? exp(x) : 1);
        double like = 0, off = 0;
        for (int k = 0; idle && k < 2; k++) { /* V is 1 up to 1200 MHz */
            const double d = log(idle[k].power_w / (b0 + c + a0 * idle[k].sm_mhz / 1000)) / 0.03;
            off += d * d / 2;
        }
        for (int k = 0; run && k < 64; k++) { /* at the top clocks */
            const fl_chip_share *s = &chip.share[k];
            const double watts = s->alpha * a + s->beta * 50 + b0 + c * 1.5 + 25, d = log(run->power_w / watts) / 0.05;
            like += exp(-d * d / 2) / 64;
        }
        const double w = exp(-x * x / (2 * sd * sd) - off) * (run ? like : 1);
        total += w;
        mean += w * x;
        squares += w * x * x;
    }
    mean /= total;
    const double left = sqrt(squares / total - mean * mean);
    FL_CHECK(left < 0.8 * sd && left > 0.01, "%s: it tells: %g", what, left / sd);
    FL_CHECK(fabs(log(after.middle[open] / prior.middle[open]) - mean) < 0.05 * left &&
                 near(log(after.factor[open]), left, 0.03),
             "%s: ln %.5f +- %.5f, expected %.5f +- %.5f", what, log(after.middle[open] / prior.middle[open]),
             log(after.factor[open]), mean, left);
}

static void test_open(void) {
    const fl_idle_point idle[] = {{500, 62, 1}, {1000, 66, 1}};
    const fl_chip_row run = {.sm_mhz = 2000, .mem_mhz = 1200, .time_s = 9, .power_w = 300};
    check_open("an idle log", FL_KIN_B0, idle, NULL);
    check_open("a run", FL_KIN_A, NULL, &run);
    check_open("both", FL_KIN_A, idle, &run);
}

FL_SUITE("fit_kin", {"parts of a device", test_device}, {"the spread of known chips", test_spread},
         {"a prior that leaves one chip", test_law}, {"the assumed workloads", test_workloads},
         {"a prior that leaves one number", test_open})
