/* The power law of a board, by hand: what a load draws, what the board draws anyway, and what is refused. */
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "tests/support/suite.h"

#include <math.h>

static int32_t memory[] = {400, 800, 1600};
static double idle_w[] = {5, 10, 30};

/* V rises from 0.8 at 500 MHz to 1.2 at 1500. */
static fl_device make(void) {
    static const double mhz[] = {500, 1500}, volt[] = {0.8, 1.2};
    fl_device dev = {.a_w = 100,
                     .a0_w = 10,
                     .b_w = 50,
                     .c_w = 20,
                     .b0_w = idle_w,
                     .mem_mhz = memory,
                     .mem_count = 3,
                     .default_mem_mhz = 800};
    CU_ASSERT_FATAL(fl_curve_new(&dev.voltage, mhz, volt, 2) == FL_MODEL_OK);
    return dev;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-12 * fabs(b); }

static void test_dynamic(void) {
    static const struct {
        double alpha, beta, sm, mem, excess, sm_w, memory_w;
    } rows[] = {
        {1, 1, 1000, 800, 0, 100, 50},              /* 1 V, 1 GHz */
        {0.5, 0, 500, 800, 0, 0.5 * 100 * 0.32, 0}, /* 0.64 V^2 at half a GHz */
        {0, 0.4, 1500, 400, 0, 0, 10},
        {0.3, 0.2, 1500, 1600, 0, 0.3 * 100 * 1.44 * 1.5, 20},
        {1, 0, 1000, 800, 0.1, 121, 0}, /* a tenth more volts */
        {0.001, 0.001, 1000, 0.5, 0, 0.1, 0.05 * 0.5 / 800},
    };
    fl_device dev = make();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double sm_w = NAN, memory_w = NAN;
        dev.v_excess = rows[i].excess;
        FL_CHECK(fl_power_dynamic(&dev, rows[i].alpha, rows[i].beta, rows[i].sm, rows[i].mem, &sm_w, &memory_w) ==
                         FL_MODEL_OK &&
                     near(sm_w, rows[i].sm_w) && near(memory_w, rows[i].memory_w),
                 "row %zu: %g and %g W", i, sm_w, memory_w);
    }
    fl_curve_free(dev.voltage);
}

static void test_base(void) {
    static const struct {
        double sm, mem;
        int32_t static_mw, memory_mw, tree_mw;
    } rows[] = {{1000, 800, 20000, 10000, 10000}, {500, 400, 16000, 5000, 3200},     {1500, 1600, 24000, 30000, 21600},
                {1000, 600, 20000, 7500, 10000},  {1000, 1200, 20000, 20000, 10000}, {1000, 1000, 20000, 15000, 10000}};
    fl_device dev = make();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_base b = {0};
        FL_CHECK(fl_base_make(&dev, rows[i].sm, rows[i].mem, &b) == FL_MODEL_OK && b.static_mw == rows[i].static_mw &&
                     b.memory_mw == rows[i].memory_mw && b.tree_mw == rows[i].tree_mw &&
                     b.total_mw == b.static_mw + b.memory_mw + b.tree_mw,
                 "row %zu: %d + %d + %d = %d mW", i, b.static_mw, b.memory_mw, b.tree_mw, b.total_mw);
    }
    fl_curve_free(dev.voltage);
}

/* Each alone. Nothing is written then. */
static void test_refused(void) {
    static const struct {
        double alpha, beta, sm, mem;
        fl_model_status want;
    } rows[] = {{-0.1, 1, 1000, 800, FL_MODEL_INVALID}, {1, -0.1, 1000, 800, FL_MODEL_INVALID},
                {NAN, 1, 1000, 800, FL_MODEL_INVALID},  {1, NAN, 1000, 800, FL_MODEL_INVALID},
                {1, 1, 0, 800, FL_MODEL_INVALID},       {1, 1, 1000, 0, FL_MODEL_INVALID},
                {1, 1, NAN, 800, FL_MODEL_INVALID},     {1, 1, 1000, NAN, FL_MODEL_INVALID},
                {1, 1, 499, 800, FL_MODEL_RANGE},       {1, 1, 1501, 800, FL_MODEL_RANGE}};
    fl_device dev = make();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double sm_w = 7, memory_w = 7;
        const fl_model_status s =
            fl_power_dynamic(&dev, rows[i].alpha, rows[i].beta, rows[i].sm, rows[i].mem, &sm_w, &memory_w);
        FL_CHECK(s == rows[i].want && sm_w == 7 && memory_w == 7, "row %zu: %s", i, fl_model_text(s));
    }
    fl_base b = {.total_mw = 7};
    FL_CHECK(
        fl_base_make(&dev, 1000, 399, &b) == FL_MODEL_RANGE && fl_base_make(&dev, 1000, 1601, &b) == FL_MODEL_RANGE &&
            fl_base_make(&dev, 499, 800, &b) == FL_MODEL_RANGE && fl_base_make(&dev, 1000, 0, &b) == FL_MODEL_INVALID &&
            fl_base_make(&dev, 0, 800, &b) == FL_MODEL_INVALID,
        "clocks beyond the board's");
    double *const part[] = {&dev.c_w, &idle_w[1], &dev.a0_w};
    for (size_t i = 0; i < 3; i++) { /* 2 MW are the most, of each part and of all together; less than 0 is none */
        const double kept[] = {dev.c_w, idle_w[1], dev.a0_w};
        dev.c_w = idle_w[1] = dev.a0_w = 0;
        static const struct {
            double watts;
            fl_model_status want;
        } limit[] = {
            {2e6, FL_MODEL_OK}, {2.0001e6, FL_MODEL_OVERFLOW}, {-0.001, FL_MODEL_INVALID}, {NAN, FL_MODEL_INVALID}};
        for (size_t k = 0; k < 4; k++) {
            *part[i] = limit[k].watts;
            const fl_model_status s = fl_base_make(&dev, 1000, 800, &b);
            FL_CHECK(s == limit[k].want && b.total_mw == (k ? 2000000000 : b.total_mw), "part %zu of %g W: %s", i,
                     limit[k].watts, fl_model_text(s));
        }
        *part[i] = 1.5e6;
        *part[(i + 1) % 3] = 0.6e6;
        FL_CHECK(fl_base_make(&dev, 1000, 800, &b) == FL_MODEL_OVERFLOW, "together 2.1 MW");
        dev.c_w = kept[0];
        idle_w[1] = kept[1];
        dev.a0_w = kept[2];
    }
    b = (fl_base){.total_mw = 7};
    dev.v_excess = -1;
    FL_CHECK(fl_base_make(&dev, 1000, 800, &b) == FL_MODEL_INVALID && b.total_mw == 7, "no volts are left");
    dev.v_excess = 0;
    double sm_w, memory_w;
    dev.default_mem_mhz = 0;
    FL_CHECK(fl_power_dynamic(&dev, 1, 1, 1000, 800, &sm_w, &memory_w) == FL_MODEL_INVALID, "no default memory clock");
    dev.mem_count = 0;
    FL_CHECK(fl_base_make(&dev, 1000, 800, &b) == FL_MODEL_INVALID, "no memory clocks");
    dev.mem_count = 3;
    dev.b0_w = NULL;
    FL_CHECK(fl_base_make(&dev, 1000, 800, &b) == FL_MODEL_INVALID, "no idle power of the memory");
    fl_curve *voltage = dev.voltage;
    dev.b0_w = idle_w;
    dev.voltage = NULL;
    FL_CHECK(fl_base_make(&dev, 1000, 800, &b) == FL_MODEL_INVALID && b.total_mw == 7, "no voltage");
    fl_curve_free(voltage);
}

FL_SUITE("power", {"dynamic", test_dynamic}, {"base", test_base}, {"refused", test_refused})
