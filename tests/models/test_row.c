#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#include <math.h>

/* A device small enough to reckon by hand: V is 1 up to 1000 MHz and 1.2 at 1500. */
static int32_t sm_ladder[] = {500, 1000, 1500}, mem_ladder[] = {500, 1000};
static double idle_memory[] = {10, 20};

static fl_device device_of_hand(void) {
    const double mhz[] = {500, 1000, 1500}, volts[] = {1, 1, 1.2};
    fl_device dev = {.name = "hand",
                     .sm_mhz = sm_ladder,
                     .mem_mhz = mem_ladder,
                     .sm_count = 3,
                     .mem_count = 2,
                     .default_sm_mhz = 1500,
                     .default_mem_mhz = 1000,
                     .a_w = 100,
                     .a0_w = 5,
                     .b_w = 40,
                     .b0_w = idle_memory,
                     .c_w = 30,
                     .sharpness = INFINITY};
    CU_ASSERT_FATAL(fl_curve_new(&dev.voltage, mhz, volts, 3) == FL_MODEL_OK);
    return dev;
}

static const fl_load memory_bound = {
    .tc = 0.5, .tm = 1, .alpha = 0.5, .beta = 1, .sm_demand = 0.25, .ref_sm_mhz = 1000, .ref_mem_mhz = 1000};

static void test_law(void) {
    fl_device dev = device_of_hand();
    static const struct {
        double sm, mem;
        uint32_t mul;
        int32_t sm_mw, memory_mw;
        uint16_t memory, alu;
    } rows[] = {
        {1000, 1000, 65536000u, 50000, 40000, 32768, 16384},  /* the reference; the memory is always active */
        {500, 1000, 65536000u, 25000, 40000, 32768, 32768},   /* both terms equal */
        {1500, 1000, 65536000u, 108000, 40000, 32768, 10923}, /* 0.5 x 100 x 1.44 x 1.5; a third of the time in ALUs */
        {1000, 500, 131072000u, 50000, 20000, 32768, 8192},   /* half the memory clock: twice the time */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_row r = {0};
        fl_row_parts p = {0};
        const fl_model_status s = fl_row_make(&dev, &memory_bound, rows[i].sm, rows[i].mem, &r, &p);
        FL_CHECK(s == FL_MODEL_OK, "row %zu: %s", i, fl_model_text(s));
        FL_CHECK(r.mul == rows[i].mul, "row %zu: mul %u", i, r.mul);
        FL_CHECK(p.sm_mw == rows[i].sm_mw && p.memory_mw == rows[i].memory_mw && p.unsplit_mw == 0,
                 "row %zu: %d + %d + %d mW", i, p.sm_mw, p.memory_mw, p.unsplit_mw);
        FL_CHECK(r.dyn_mw == p.sm_mw + p.memory_mw, "row %zu: parts do not sum", i);
        FL_CHECK(r.memory == rows[i].memory && r.alu == rows[i].alu && r.sms == 8192,
                 "row %zu: memory %u alu %u sms %u", i, r.memory, r.alu, r.sms);
    }
    fl_curve_free(dev.voltage);
}

/* By hand: bandwidth is 1 at the fold of 800 MHz, 0.625 at 500, 1.05 at 1000, and 1.175 at 1500. */
static void test_fold_line(void) {
    fl_device dev = device_of_hand();
    fl_load load = {.tm = 1, .sm_demand = 1, .ref_sm_mhz = 1000, .ref_mem_mhz = 1000, .bandwidth = {800, 1, 0.2}};
    static const struct {
        double tc, sm, mem, length, memory;
    } rows[] = {
        {0, 1000, 1000, 1, 1.05 / 1.175},               /* the reference uses less than the top clock offers */
        {0, 1500, 1000, 1.05 / 1.175, 1},               /* above the fold */
        {0, 800, 1000, 1.05, 1 / 1.175},                /* at the fold */
        {0, 500, 1000, 1.05 / 0.625, 0.625 / 1.175},    /* below it */
        {0, 500, 500, 2 * 1.05 / 0.625, 0.625 / 1.175}, /* half the memory clock: bandwidth and its limit halve */
        {0.9, 500, 1000, 1.8, 1.05 / 1.175 / 1.8},      /* the core's term is longer: 0.9 x 2 */
        {0.5, 500, 1000, 1.05 / 0.625, 0.625 / 1.175},  /* the memory's term is longer */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_row r = {0};
        load.tc = rows[i].tc;
        FL_CHECK(fl_row_make(&dev, &load, rows[i].sm, rows[i].mem, &r, NULL) == FL_MODEL_OK, "row %zu", i);
        FL_CHECK(r.mul == (uint32_t)lround(rows[i].length * FL_MUL_ONE), "row %zu: mul %u, expected %.9g", i, r.mul,
                 rows[i].length * FL_MUL_ONE);
        FL_CHECK(r.memory == (uint16_t)lround(rows[i].memory * FL_ROW_ONE), "row %zu: memory %u, expected %.9g", i,
                 r.memory, rows[i].memory * FL_ROW_ONE);
    }
    const fl_fold_line unsound[] = {{800, 0.2, 0.3}, {800, 1, -0.1}, {1000, 2, 0.1},
                                    {-1, 0, 0},      {NAN, 1, 0},    {800, NAN, 0}};
    for (size_t i = 0; i < sizeof unsound / sizeof *unsound; i++) { /* the third has no bandwidth left at 500 MHz */
        fl_row r;
        load.bandwidth = unsound[i];
        FL_CHECK(fl_row_make(&dev, &load, 500, 1000, &r, NULL) == FL_MODEL_INVALID, "unsound %zu accepted", i);
    }
    load.bandwidth = (fl_fold_line){800, 0, 0}; /* flat: max-scaling */
    fl_row flat, plain;
    FL_CHECK(fl_row_make(&dev, &load, 500, 1000, &flat, NULL) == FL_MODEL_OK, "flat");
    load.bandwidth = (fl_fold_line){0};
    FL_CHECK(fl_row_make(&dev, &load, 500, 1000, &plain, NULL) == FL_MODEL_OK && !memcmp(&flat, &plain, sizeof flat),
             "a fold line without slopes differs from none");
    fl_curve_free(dev.voltage);
}

static void test_sharpness(void) {
    fl_device dev = device_of_hand();
    fl_load load = {.tc = 1, .tm = 1, .sharpness = 1, .sm_demand = 1, .ref_sm_mhz = 1000, .ref_mem_mhz = 1000};
    fl_row r = {0};
    FL_CHECK(fl_row_make(&dev, &load, 500, 1000, &r, NULL) == FL_MODEL_OK && r.mul == 98304000u,
             "its own p = 1: (2 + 1) / 2, mul %u", r.mul);
    load.sharpness = 0;
    FL_CHECK(fl_row_make(&dev, &load, 500, 1000, &r, NULL) == FL_MODEL_OK && r.mul == 131072000u,
             "the device's maximum: 2, mul %u", r.mul);
    load.tl = 1;
    FL_CHECK(fl_row_make(&dev, &load, 500, 1000, &r, NULL) == FL_MODEL_OK && r.mul == 98304000u,
             "with a rest: 3 / 2, mul %u", r.mul);
    FL_CHECK(r.memory == 10923 && r.alu == 21845, "memory 1/3, ALUs 2/3: %u, %u", r.memory, r.alu);
    fl_curve_free(dev.voltage);
}

static void test_base(void) {
    fl_device dev = device_of_hand();
    static const struct {
        double sm, mem;
        int32_t c, b0, tree;
    } rows[] = {{500, 1000, 30000, 20000, 2500}, {1500, 500, 36000, 10000, 10800}, {1000, 750, 30000, 15000, 5000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_base b = {0};
        FL_CHECK(fl_base_make(&dev, rows[i].sm, rows[i].mem, &b) == FL_MODEL_OK, "row %zu", i);
        FL_CHECK(b.static_mw == rows[i].c && b.memory_mw == rows[i].b0 && b.tree_mw == rows[i].tree,
                 "row %zu: %d %d %d", i, b.static_mw, b.memory_mw, b.tree_mw);
        FL_CHECK(b.total_mw == b.static_mw + b.memory_mw + b.tree_mw, "row %zu: total %d", i, b.total_mw);
    }
    fl_base b;
    FL_CHECK(fl_base_make(&dev, 499, 1000, &b) == FL_MODEL_RANGE, "below the voltage curve");
    FL_CHECK(fl_base_make(&dev, 1501, 1000, &b) == FL_MODEL_RANGE, "above the voltage curve");
    FL_CHECK(fl_base_make(&dev, 1000, 499, &b) == FL_MODEL_RANGE, "below the memory ladder");
    FL_CHECK(fl_base_make(&dev, 1000, 1001, &b) == FL_MODEL_RANGE, "above the memory ladder");
    fl_curve_free(dev.voltage);
}

static void test_measured(void) {
    fl_device dev = device_of_hand();
    const double mhz[] = {500, 1000, 1500}, ratio[] = {1.5, 1, 0.9}, watts[] = {60, 90.0004, 40};
    fl_measured m = {0};
    CU_ASSERT_FATAL(fl_curve_new(&m.time_ratio, mhz, ratio, 3) == FL_MODEL_OK);
    CU_ASSERT_FATAL(fl_curve_new(&m.power_w, mhz, watts, 3) == FL_MODEL_OK);
    fl_load load = memory_bound;
    load.measured = &m;
    static const struct {
        double sm;
        uint32_t mul;
        int32_t unsplit;
        uint16_t memory;
    } rows[] = {
        {500, 98304000u, 60000 - 52500, 21845},
        {1000, 65536000u, 90000 - 55000, 32768},
        {1500, 58982400u, 40000 - 66800, 32768}, /* less than the base: negative; 1 / 0.9 of memory saturates */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_row r = {0};
        fl_row_parts p = {0};
        FL_CHECK(fl_row_make(&dev, &load, rows[i].sm, 1000, &r, &p) == FL_MODEL_OK, "row %zu", i);
        FL_CHECK(r.mul == rows[i].mul, "row %zu: mul %u", i, r.mul);
        FL_CHECK(p.sm_mw == 0 && p.memory_mw == 0 && p.unsplit_mw == rows[i].unsplit && r.dyn_mw == p.unsplit_mw,
                 "row %zu: %d mW", i, p.unsplit_mw);
        FL_CHECK(r.memory == rows[i].memory, "row %zu: memory %u", i, r.memory);
    }
    fl_row r;
    /* what the sensors cannot have said: no time, at the clock or at the reference, or less than no power */
    static const struct {
        double ratio[3], watts[3];
        fl_model_status want;
    } bad[] = {{{0, 1, 0.9}, {60, 90, 40}, FL_MODEL_INVALID},     {{1.5, 0, 0.9}, {60, 90, 40}, FL_MODEL_INVALID},
               {{1.5, -1, 0.9}, {60, 90, 40}, FL_MODEL_INVALID},  {{-1.5, -1, 0.9}, {60, 90, 40}, FL_MODEL_INVALID},
               {{1.5, 1, 0.9}, {-0.5, 90, 40}, FL_MODEL_INVALID}, {{1.5, 1, 0.9}, {0, 90, 40}, FL_MODEL_OK}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fl_measured odd = {0};
        fl_load of_odd = load;
        CU_ASSERT_FATAL(fl_curve_new(&odd.time_ratio, mhz, bad[i].ratio, 3) == FL_MODEL_OK);
        of_odd.measured = &odd;
        FL_CHECK(fl_row_make(&dev, &of_odd, 500, 1000, &r, NULL) == FL_MODEL_INVALID, "row %zu without powers", i);
        CU_ASSERT_FATAL(fl_curve_new(&odd.power_w, mhz, bad[i].watts, 3) == FL_MODEL_OK);
        const fl_model_status s = fl_row_make(&dev, &of_odd, 500, 1000, &r, NULL);
        FL_CHECK(s == bad[i].want, "row %zu: %s", i, fl_model_text(s));
        fl_measured_free(&odd);
    }
    FL_CHECK(fl_row_make(&dev, &load, 499, 1000, &r, NULL) == FL_MODEL_RANGE, "below the measured points");
    FL_CHECK(fl_row_make(&dev, &load, 1000, 500, &r, NULL) == FL_MODEL_RANGE, "another memory clock");
    fl_curve_free(m.time_ratio);
    fl_curve_free(m.power_w);
    fl_curve_free(dev.voltage);
}

/* The table of a memory clock: the first is of the reference where it names none; half a MHz is as good as equal. */
static void test_find(void) {
    fl_measured slow = {.mem_mhz = 405}, middle = {.mem_mhz = 800, .next = &slow}, first = {.next = &middle};
    const struct {
        double mhz;
        const fl_measured *want;
    } rows[] = {{1000, &first},   {1000.5, &first}, {999.5, &first}, {1000.75, NULL}, {999.25, NULL}, {800, &middle},
                {800.5, &middle}, {405, &slow},     {404.5, &slow},  {404.25, NULL},  {0, NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        FL_CHECK(fl_measured_find(&first, 1000, rows[i].mhz) == rows[i].want, "row %zu", i);
    first.mem_mhz = 900;
    FL_CHECK(fl_measured_find(&first, 1000, 1000) == NULL && fl_measured_find(&first, 1000, 900) == &first,
             "the first has a clock of its own");
    FL_CHECK(fl_measured_find(NULL, 1000, 1000) == NULL, "no table");
}

/* Two megawatts are the most that a row holds, and they are allowed; so are a slowdown of 65536 less one unit, a load
 * of nothing but memory or rest, and every share and factor at its limit. */
static void test_limits(void) {
    fl_device dev = device_of_hand();
    fl_row r = {0};
    fl_load l = memory_bound;
    l.alpha = 20000; /* 100 W per V^2 GHz, at 1 V and 1 GHz */
    l.beta = 0;
    FL_CHECK(fl_row_make(&dev, &l, 1000, 1000, &r, NULL) == FL_MODEL_OK && r.dyn_mw == 2000000000, "%d mW", r.dyn_mw);
    l.beta = 0.001;
    FL_CHECK(fl_row_make(&dev, &l, 1000, 1000, &r, NULL) == FL_MODEL_OVERFLOW, "a little more");
    const double mhz[] = {500, 1000, 1500}, one[] = {1, 1, 1}, watts[] = {2e6, 2.000001e6, 1};
    fl_measured m = {0};
    CU_ASSERT_FATAL(fl_curve_new(&m.time_ratio, mhz, one, 3) == FL_MODEL_OK);
    CU_ASSERT_FATAL(fl_curve_new(&m.power_w, mhz, watts, 3) == FL_MODEL_OK);
    l = memory_bound;
    l.measured = &m;
    FL_CHECK(fl_row_make(&dev, &l, 500, 1000, &r, NULL) == FL_MODEL_OK && r.dyn_mw == 2000000000 - 52500,
             "measured: %d mW", r.dyn_mw);
    FL_CHECK(fl_row_make(&dev, &l, 1000, 1000, &r, NULL) == FL_MODEL_OVERFLOW, "measured, a little more");
    fl_measured_free(&m);
    const fl_load limit[] = {
        {.tc = 0, .tm = 1, .sharpness = 1, .ref_sm_mhz = 1000, .ref_mem_mhz = 1000},
        {.tc = 1, .tm = 0, .sm_demand = 1, .ref_sm_mhz = 1000, .ref_mem_mhz = 1000},
        {.tl = 1, .sm_demand = 1, .ref_sm_mhz = 1000, .ref_mem_mhz = 1000},
    };
    static const uint16_t sms[] = {0, FL_ROW_ONE, FL_ROW_ONE};
    static const uint32_t half_mul[] = {65536000, 131072000, 65536000}; /* at half the SM clock */
    for (size_t i = 0; i < 3; i++)
        FL_CHECK(fl_row_make(&dev, &limit[i], 500, 1000, &r, NULL) == FL_MODEL_OK && r.mul == half_mul[i] &&
                     r.sms == sms[i] && r.dyn_mw == 0,
                 "limit %zu: mul %u, %u SMs, %d mW", i, r.mul, r.sms, r.dyn_mw);
    l = limit[1];
    l.ref_sm_mhz = 1000 * 4294967295.0 / FL_MUL_ONE;
    FL_CHECK(fl_row_make(&dev, &l, 1000, 1000, &r, NULL) == FL_MODEL_OK && r.mul == UINT32_MAX, "the most: %u", r.mul);
    l.ref_sm_mhz = 1000 * 4294967296.0 / FL_MUL_ONE;
    FL_CHECK(fl_row_make(&dev, &l, 1000, 1000, &r, NULL) == FL_MODEL_OVERFLOW, "one unit more");
    l.ref_sm_mhz = 1000 * 1.0 / FL_MUL_ONE;
    FL_CHECK(fl_row_make(&dev, &l, 1000, 1000, &r, NULL) == FL_MODEL_OK && r.mul == 1, "the least: %u", r.mul);
    l.ref_sm_mhz = 1000 * 0.4 / FL_MUL_ONE;
    FL_CHECK(fl_row_make(&dev, &l, 1000, 1000, &r, NULL) == FL_MODEL_OVERFLOW, "nothing is left");
    fl_curve_free(dev.voltage);
}

static void test_refused(void) {
    fl_device dev = device_of_hand();
    fl_row r = {.mul = 7};
    fl_load l = memory_bound;
    l.ref_mem_mhz = 33000; /* 66 times faster than the slow memory clock */
    FL_CHECK(fl_row_make(&dev, &l, 1000, 500, &r, NULL) == FL_MODEL_OVERFLOW, "a slowdown of 66");
    l.ref_mem_mhz = 32750;
    FL_CHECK(fl_row_make(&dev, &l, 1000, 500, &r, NULL) == FL_MODEL_OK && r.mul == 4292608000u, "65.5 fits: %u", r.mul);
    l = memory_bound;
    l.alpha = 30000;
    FL_CHECK(fl_row_make(&dev, &l, 1000, 1000, &r, NULL) == FL_MODEL_OVERFLOW, "3 MW");
    l = memory_bound;
    double *const field[] = {&l.tc, &l.tm, &l.tl, &l.alpha, &l.beta, &l.sm_demand, &l.ref_sm_mhz, &l.ref_mem_mhz};
    for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
        const double kept = *field[i];
        *field[i] = -0.1;
        FL_CHECK(fl_row_make(&dev, &l, 1000, 1000, &r, NULL) == FL_MODEL_INVALID, "field %zu negative", i);
        *field[i] = NAN;
        FL_CHECK(fl_row_make(&dev, &l, 1000, 1000, &r, NULL) == FL_MODEL_INVALID, "field %zu NaN", i);
        *field[i] = kept;
    }
    l.sm_demand = 1.01;
    FL_CHECK(fl_row_make(&dev, &l, 1000, 1000, &r, NULL) == FL_MODEL_INVALID, "more SMs than there are");
    l = memory_bound;
    l.tc = l.tm = 0;
    FL_CHECK(fl_row_make(&dev, &l, 1000, 1000, &r, NULL) == FL_MODEL_INVALID, "no work");
    l = memory_bound;
    l.sharpness = 0.5;
    FL_CHECK(fl_row_make(&dev, &l, 1000, 1000, &r, NULL) == FL_MODEL_INVALID, "p below one");
    FL_CHECK(fl_row_make(&dev, &memory_bound, 0, 1000, &r, NULL) == FL_MODEL_INVALID, "no clock");
    FL_CHECK(fl_row_make(&dev, &memory_bound, 400, 1000, &r, NULL) == FL_MODEL_RANGE, "off the voltage curve");
    fl_curve_free(dev.voltage);
}

/* Whatever the load: the parts sum to the milliwatt, each within half a milliwatt of its law; the length within half a
 * unit. */
static void test_exact(void) {
    const uint64_t seed = 20240607;
    printf(" seed %llu ", (unsigned long long)seed);
    fl_random random = fl_random_seed(seed, 0);
    fl_device dev = device_of_hand();
    for (int i = 0; i < 20000; i++) {
        const fl_load l = {.tc = fl_random_unit(&random) + 1e-3,
                           .tm = fl_random_unit(&random),
                           .tl = fl_random_unit(&random),
                           .sharpness = 1 + 20 * fl_random_unit(&random),
                           .alpha = fl_random_unit(&random),
                           .beta = fl_random_unit(&random),
                           .sm_demand = fl_random_unit(&random),
                           .ref_sm_mhz = 500 + 1000 * fl_random_unit(&random),
                           .ref_mem_mhz = 1000};
        const double sm = 500 + 1000 * fl_random_unit(&random), mem = i % 2 ? 500 : 1000;
        fl_row r = {0};
        fl_row_parts p = {0};
        double sm_w = 0, memory_w = 0;
        const fl_model_status s = fl_row_make(&dev, &l, sm, mem, &r, &p);
        const fl_model_status law = fl_power_dynamic(&dev, l.alpha, l.beta, sm, mem, &sm_w, &memory_w);
        FL_CHECK(s == FL_MODEL_OK && law == FL_MODEL_OK, "case %d: %s", i, fl_model_text(s));
        FL_CHECK(r.dyn_mw == p.sm_mw + p.memory_mw + p.unsplit_mw, "case %d: %d mW", i, r.dyn_mw);
        FL_CHECK(fabs(p.sm_mw - 1000 * sm_w) <= 0.5 && fabs(p.memory_mw - 1000 * memory_w) <= 0.5, "case %d", i);
        const double ratio = fl_time_at(l.tc, l.tm, l.tl, l.sharpness, l.ref_sm_mhz / sm, l.ref_mem_mhz / mem) /
                             fl_time_at(l.tc, l.tm, l.tl, l.sharpness, 1, 1);
        FL_CHECK(fabs(r.mul - ratio * FL_MUL_ONE) <= 0.5 + 1e-6, "case %d: mul %u", i, r.mul);
        FL_CHECK(r.memory <= FL_ROW_ONE && r.alu <= FL_ROW_ONE && r.sms <= FL_ROW_ONE, "case %d: shares", i);
    }
    fl_curve_free(dev.voltage);
}

static void test_text(void) {
    for (int s = FL_MODEL_OK; s <= FL_MODEL_NO_FIT + 1; s++)
        for (int other = FL_MODEL_OK; other < s; other++)
            FL_CHECK(strcmp(fl_model_text((fl_model_status)s), fl_model_text((fl_model_status)other)) != 0,
                     "%d and %d share a text", s, other);
}

FL_SUITE("row", {"law", test_law}, {"fold line", test_fold_line}, {"sharpness", test_sharpness}, {"base", test_base},
         {"measured", test_measured}, {"find", test_find}, {"limits", test_limits}, {"refused", test_refused},
         {"exact", test_exact}, {"text", test_text})
