/* The law of a chip, with numbers worked out by hand from the equations of models/chip/chip.h. */
#include "models/chip/chip.h"
#include "models/chip/inside.h"
#include "tests/support/suite.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b); }

/* V is 1 up to 1000 MHz and 1.5 at 1500 MHz. The memory clocks hold it at 1.2 and at 1.1 at least. */
static fl_chip made(void) {
    return (fl_chip){.sm_ref = 1500,
                     .mem_ref = 800,
                     .sharpness = 2,
                     .knots = 3,
                     .knot_mhz = {600, 1000, 1500},
                     .volt = {1, 1, 1.5},
                     .mems = 2,
                     .mem_mhz = {400, 800},
                     .b0_w = {10, 20},
                     .volt_floor = {1.2, 1.1},
                     .a_w = 80,
                     .a0_w = 10,
                     .b_w = 40,
                     .c_w = 20,
                     .stall = 1,
                     .stall_memory = 1};
}

static void test_lines(void) {
    static const struct {
        double sm_mhz, mem_mhz, volt, b0_w;
    } rows[] = {
        {300, 800, 1.1, 20},      /* below the lowest clock: as there, and memory holds V up */
        {1000, 800, 1.1, 20},     /* the last clock at which V is 1 */
        {1250, 800, 1.25, 20},    /* halfway */
        {1350, 800, 1.35, 20},    /* seven tenths of the way: from the lower end */
        {1500, 800, 1.5, 20},     /* the top */
        {1900, 800, 1.5, 20},     /* beyond it: as there */
        {600, 400, 1.2, 10},      /* the lower memory clock needs more */
        {600, 300, 1.2, 10},      /* below the lowest memory clock */
        {600, 500, 1.175, 12.5},  /* between both: a quarter of the way */
        {1125, 500, 1.175, 12.5}, /* V of the core is 1.125 */
        {1200, 500, 1.2, 12.5},   /* V of the core is 1.2 */
        {600, 900, 1.1, 20},
    };
    const fl_chip c = made();
    for (size_t i = 0; i < COUNT(rows); i++) {
        const double v = fl_chip_volt(&c, rows[i].sm_mhz, rows[i].mem_mhz), b0 = fl_chip_b0(&c, rows[i].mem_mhz);
        FL_CHECK(near(v, rows[i].volt) && near(b0, rows[i].b0_w), "%g and %g MHz: V %.9g, B0 %.9g", rows[i].sm_mhz,
                 rows[i].mem_mhz, v, b0);
    }
    const fl_chip none = {.knots = 1, .knot_mhz = {600}, .volt = {1.25}};
    FL_CHECK(fl_chip_volt(&none, 900, 800) == 1.25 && fl_chip_b0(&none, 800) == 0, "one knot and no memory clock");
}

/* Without a link bytes wait for the memory alone. With one, both waits count by the norm of q: at 500 and 400 MHz they
 * are 2 and (750/500)^2 = 2.25, and at the reference 1 and (750/1500)^2 = 0.25. */
static void test_memory_ratio(void) {
    fl_chip c = made();
    FL_CHECK(near(fl_chip_memory_ratio(&c, 500, 400), 2), "no link: %.9g", fl_chip_memory_ratio(&c, 500, 400));
    c.link_mhz = 750;
    c.link_slope = 2;
    c.link_sharp = 2;
    FL_CHECK(near(fl_chip_memory_ratio(&c, 500, 400), sqrt((4 + 2.25 * 2.25) / (1 + 0.0625))), "link: %.9g",
             fl_chip_memory_ratio(&c, 500, 400));
    FL_CHECK(near(fl_chip_memory_ratio(&c, 1500, 800), 1), "at the reference %.9g",
             fl_chip_memory_ratio(&c, 1500, 800));
    c.link_mhz = 1; /* the lowest that is one */
    c.link_slope = 1;
    FL_CHECK(near(fl_chip_memory_ratio(&c, 1, 800), sqrt(2 / (1 + 1 / 2250000.0))), "a link of 1 MHz: %.9g",
             fl_chip_memory_ratio(&c, 1, 800));
}

/* 3 s of the core and 4 s of memory make 5 s, and 1 s waits for neither. At half of both clocks: 6, 8, 10 and 1. */
static void test_time(void) {
    static const struct {
        double sm_mhz, mem_mhz, time_s;
    } rows[] = {{1500, 800, 6}, {750, 400, 11}, {750, 800, 1 + 7.211102550927978}, {1500, 400, 1 + 8.54400374531753}};
    const fl_chip c = made();
    const fl_chip_load load = {.tc = 3, .tm = 4, .tl = 1};
    for (size_t i = 0; i < COUNT(rows); i++) { /* sqrt(52), sqrt(73) */
        const double time = fl_chip_time(&c, &load, rows[i].sm_mhz, rows[i].mem_mhz);
        FL_CHECK(near(time, rows[i].time_s), "%g and %g MHz: %.9g s", rows[i].sm_mhz, rows[i].mem_mhz, time);
    }
}

/* alpha A V^2 f a + beta B (m / m_ref) b + B0 + C V + A0 V^2 f, term by term. */
static void test_power(void) {
    const fl_chip_load load = {.tc = 3, .tm = 4, .tl = 1, .alpha = 0.5, .beta = 0.25};
    fl_chip c = made();
    double watts = fl_chip_power(&c, &load, 1250, 800, 6.5);
    FL_CHECK(near(watts, 78.125 + 10 + 20 + 25 + 19.53125), "whatever the work: %.9g W", watts);
    /* V = 1.2, f = 0.75, T_ref / T = 0.75: a = 0.25 + 0.75 x 0.75 x 2, b = 0.5 + 0.5 x 0.75 x 2 */
    c.stall = 0.25;
    c.stall_memory = 0.5;
    watts = fl_chip_power(&c, &load, 750, 400, 8);
    FL_CHECK(near(watts, 43.2 * 1.375 + 5 * 1.25 + 10 + 24 + 10.8), "stalled units: %.9g W", watts);
}

static void test_floor(void) {
    static const struct {
        double volt[3], tolerance, mhz;
    } rows[] = {
        {{1, 1.25, 1.5}, 0.25, 1000}, /* exactly the tolerance */
        {{1, 1.25, 1.5}, 0.5, 1500},  {{1, 1.25, 1.5}, 0.125, 600},
        {{1, 1.5, 1}, 0.25, 600}, /* what lies above a clock that needs more is no floor */
        {{1.5, 1, 1}, 0.25, NAN},
    };
    static const double mhz[] = {600, 1000, 1500};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const double at = fl_voltage_floor_mhz(mhz, rows[i].volt, 3, rows[i].tolerance);
        FL_CHECK(at == rows[i].mhz || (isnan(at) && isnan(rows[i].mhz)), "row %zu: %g", i, at);
    }
}

FL_SUITE("chip", {"V and B0 along their points", test_lines}, {"how long bytes take", test_memory_ratio},
         {"time", test_time}, {"power", test_power}, {"up to where V rests", test_floor})
