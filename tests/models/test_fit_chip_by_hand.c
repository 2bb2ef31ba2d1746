/* The parts of a chip's fit and of its predictions, with numbers worked out by hand. */
#include "models/chip/chip.h"
#include "models/chip/inside.h"
#include "models/laws/device.h"
#include "models/math/math.h"
#include "tests/support/suite.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(1, fabs(b)); }

static void test_sound(void) {
    static const struct {
        fl_chip_row row;
        int sound;
    } rows[] = {
        {{0, 600, 800, 1, 100}, 1},      {{0, 600, 800, 1, NAN}, 1},      {{0, 0, 800, 1, 100}, 0},
        {{0, 600, 0, 1, 100}, 0},        {{0, 600, 800, 0, 100}, 0},      {{0, 600, 800, 1, 0}, 0},
        {{0, 600, 800, 1, -1}, 0},       {{0, 600, 800, 1, INFINITY}, 0}, {{0, 600, 800, INFINITY, 100}, 0},
        {{0, 600, INFINITY, 1, 100}, 0}, {{0, INFINITY, 800, 1, 100}, 0}, {{0, NAN, 800, 1, 100}, 0},
        {{0, -600, 800, 1, 100}, 0},     {{0, 0.5, 0.5, 0.5, 0.5}, 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        FL_CHECK(fl_chip_row_is_sound(&rows[i].row) == rows[i].sound, "row %zu", i);
}

/* 0.8 of the time is core (a quarter of it memory instead) and 0.2 neither: (0.6, 0.2) at the reference; at a ratio of
 * 2 and h of 8: 1.2 and 1.6 make 2. */
static void test_shape(void) {
    const double f_ratio[] = {1, 2}, h[] = {1, 8};
    double ln[2];
    fl_chip_shape(2, 0.25, 0.2, f_ratio, h, 2, ln);
    FL_CHECK(near(ln[0], log(sqrt(0.4) + 0.2)) && near(ln[1], log(2.2)), "%.9g %.9g", ln[0], ln[1]);
}

/* At one length's distance in each clock: smooth^2 exp(-1/2 - 1/2). */
static void test_covariance(void) {
    const fl_chip_error e = {.smooth = 0.5, .length_sm = log(2), .length_mem = log(4)};
    const fl_chip_row a = {.sm_mhz = 500, .mem_mhz = 200}, b = {.sm_mhz = 1000, .mem_mhz = 800},
                      c = {.sm_mhz = 1000, .mem_mhz = 200};
    FL_CHECK(near(fl_chip_covariance(&e, &a, &a), 0.25) && near(fl_chip_covariance(&e, &a, &b), 0.25 * exp(-1)) &&
                 near(fl_chip_covariance(&e, &a, &c), 0.25 * exp(-0.5)),
             "%g %g %g", fl_chip_covariance(&e, &a, &a), fl_chip_covariance(&e, &a, &b),
             fl_chip_covariance(&e, &a, &c));
}

static void test_places(void) {
    static const struct {
        const char *what;
        double known[3][2], at[2];
        size_t count;
        fl_chip_place place;
        double ratio[2]; /* of the clocks to those of the nearest */
    } rows[] = {
        {"alone", {{1000, 800}}, {500, 800}, 1, FL_CHIP_ALONE, {2, 1}},
        {"alone, another memory clock", {{1000, 800}}, {500, 400}, 1, FL_CHIP_ALONE, {2, 2}},
        {"between", {{500, 800}, {1000, 800}}, {800, 800}, 2, FL_CHIP_INSIDE, {1.25, 1}},
        {"on the lower", {{500, 800}, {1000, 800}}, {500, 800}, 2, FL_CHIP_INSIDE, {1, 1}},
        {"on the upper", {{500, 800}, {1000, 800}}, {1000, 800}, 2, FL_CHIP_INSIDE, {1, 1}},
        {"below", {{500, 800}, {1000, 800}}, {400, 800}, 2, FL_CHIP_OUTSIDE, {1.25, 1}},
        {"above", {{500, 800}, {1000, 800}}, {1250, 800}, 2, FL_CHIP_OUTSIDE, {1.25, 1}},
        {"memory below", {{500, 800}, {1000, 800}}, {800, 400}, 2, FL_CHIP_OTHER_MEMORY, {1.25, 2}},
        {"memory above", {{500, 800}, {1000, 800}}, {800, 1600}, 2, FL_CHIP_OTHER_MEMORY, {1.25, 2}},
        {"between two that differ in both", {{500, 400}, {1000, 800}}, {800, 600}, 2, FL_CHIP_OUTSIDE, {1.25, 4.0 / 3}},
        {"the other corners of two that do", {{500, 800}, {1000, 400}}, {800, 800}, 2, FL_CHIP_OUTSIDE, {1.6, 1}},
        {"three corners", {{500, 400}, {1000, 400}, {500, 800}}, {1000, 800}, 3, FL_CHIP_OUTSIDE, {2, 1}},
        {"three others", {{500, 400}, {500, 800}, {1000, 800}}, {1000, 400}, 3, FL_CHIP_OUTSIDE, {2, 1}},
        {"three above", {{1000, 400}, {500, 800}, {1000, 800}}, {500, 400}, 3, FL_CHIP_OUTSIDE, {2, 1}},
        {"three at the right", {{500, 400}, {1000, 400}, {1000, 800}}, {500, 800}, 3, FL_CHIP_OUTSIDE, {2, 1}},
        {"an edge of three", {{500, 400}, {1000, 400}, {500, 800}}, {500, 800}, 3, FL_CHIP_INSIDE, {1, 1}},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fl_chip_row known[3], at = {.sm_mhz = rows[i].at[0], .mem_mhz = rows[i].at[1]};
        for (size_t k = 0; k < rows[i].count; k++)
            known[k] = (fl_chip_row){.sm_mhz = rows[i].known[k][0], .mem_mhz = rows[i].known[k][1]};
        fl_chip_place place = FL_CHIP_PLACES;
        const double far = fl_chip_distance(known, rows[i].count, &at, &place),
                     want = hypot(log(rows[i].ratio[0]), log(rows[i].ratio[1]));
        FL_CHECK(place == rows[i].place && near(far, want), "%s: place %d, distance %.9g, expected %.9g", rows[i].what,
                 (int)place, far, want);
        fl_chip_error e = {.growth = {0.1, 0.2, 0.3, 0.4}, .wide = {1, 2, 3, 4}};
        const double sd = fl_chip_sd_pct(&e, known, rows[i].count, &at, 0.0009), grown = e.growth[place] * want;
        FL_CHECK(near(sd, 100 * e.wide[place] * sqrt(0.0009 + grown * grown)), "%s: %.9g %%", rows[i].what, sd);
        FL_CHECK(near(fl_chip_sd_pct(&e, known, rows[i].count, &at, -1), 100 * e.wide[place] * grown),
                 "%s: a variance below 0 is none", rows[i].what);
    }
}

/* L L^T of L = (2; 1 3; -1 1 2), and L x = (2, 7, 4) for x = (1, 2, 1.5). */
static void test_algebra(void) {
    static const double lower[] = {2, 0, 0, 1, 3, 0, -1, 1, 2}, want[] = {1, 2, 1.5};
    double a[] = {4, 0, 0, 2, 10, 0, -2, 2, 6}, x[] = {2, 7, 4}, zero[] = {0}, flat[] = {1, 0, 1, 1};
    CU_ASSERT(fl_chip_cholesky(a, 3) == 1);
    fl_chip_lower_solve(a, 3, x);
    for (size_t i = 0; i < 9; i++)
        FL_CHECK(near(a[i], lower[i]), "element %zu: %g", i, a[i]);
    for (size_t i = 0; i < 3; i++)
        FL_CHECK(near(x[i], want[i]), "x %zu: %g", i, x[i]);
    CU_ASSERT(fl_chip_cholesky(zero, 1) == 0);
    CU_ASSERT(fl_chip_cholesky(flat, 2) == 0);
}

/* Two shares with residuals at two settings. A row on the first setting sees it alone: the next lies 23 widths away. */
static void test_offs(void) {
    static fl_chip c = {
        .shares = 2, .workloads = 2, .settings = 2, .setting_sm = {500, 1000}, .setting_mem = {800, 800}};
    c.time_off[0][0] = 0.1;
    c.time_off[0][1] = 0.2;
    c.time_off[1][0] = NAN;
    c.time_off[1][1] = -0.3;
    c.power_off[0][0] = 0.4;
    c.share[0] = (fl_chip_share){.memory = 0.5, .rest = 0.2, .alpha = 0.5, .beta = 0.1};
    c.share[1] = (fl_chip_share){.memory = 0.65, .rest = 0.2, .alpha = 0.5, .beta = 0.6};
    /* exp(0.03) of the clock is one width away: the weight is exp(-1/2); at 1.6 widths it is 0.278, too little */
    const fl_chip_row row[] = {{.sm_mhz = 500, .mem_mhz = 800},
                               {.sm_mhz = 1000 * exp(0.03), .mem_mhz = 800},
                               {.sm_mhz = 1000, .mem_mhz = 800 * exp(-0.03 * 1.6)},
                               {.sm_mhz = 1000, .mem_mhz = 800 * exp(0.03 * 1.5)}};
    double offs[8], off[4];
    fl_chip_offs_make(&c, 0, row, 4, offs);
    const double want[] = {0.1, NAN, 0.2, -0.3, NAN, NAN, 0.2, -0.3};
    for (size_t i = 0; i < COUNT(want); i++)
        FL_CHECK(isnan(want[i]) ? isnan(offs[i]) : near(offs[i], want[i]), "residual %zu: %g", i, offs[i]);
    /* likeness: 1 of the first, exp(-1/2) of the second, whose memory is one width of 0.15 away; 1 is the pull to 0 */
    fl_chip_offs_at(&c, 0, offs, 4, &c.share[0], off);
    const double like = exp(-0.5), both = (0.2 - 0.3 * like) / (2 + like);
    FL_CHECK(near(off[0], 0.05) && near(off[1], both) && off[2] == 0 && near(off[3], both), "%g %g %g %g", off[0],
             off[1], off[2], off[3]);
    fl_chip_offs_make(&c, 1, row, 1, offs);
    fl_chip_offs_at(&c, 1, offs, 1, &c.share[0], off);
    FL_CHECK(near(offs[0], 0.4) && near(off[0], 0.4 / (1 + like * exp(-0.5) + 2)), "of power: %g", off[0]);
    const fl_chip_share odd = {.memory = 0.5, .rest = 0.2 + 0.15 * 4.3}; /* d is 18.49 */
    fl_chip_offs_make(&c, 0, row, 1, offs);
    fl_chip_offs_at(&c, 0, offs, 1, &odd, off);
    FL_CHECK(off[0] == 0, "nothing is alike: %g", off[0]);
    c.workloads = 0;
    fl_chip_offs_make(&c, 0, row, 1, offs);
    FL_CHECK(isnan(offs[0]), "residuals of made-up workloads say nothing");
}

static void test_settings(void) {
    static fl_chip_row row[130];
    static fl_chip c;
    for (size_t i = 0; i < 130; i++) /* 127 settings, the first four times, from the highest down */
        row[i] = (fl_chip_row){.sm_mhz = i < 127 ? 1127 - (double)i : 1127, .mem_mhz = 800};
    CU_ASSERT(fl_chip_place_settings(row, 130, &c) == FL_MODEL_OK);
    FL_CHECK(c.settings == 64 && c.setting_sm[0] == 1001 && c.setting_sm[1] == 1003 && c.setting_sm[63] == 1127,
             "%u settings from %g, %g to %g", c.settings, c.setting_sm[0], c.setting_sm[1], c.setting_sm[63]);
    row[1].mem_mhz = 400;
    row[2] = row[0];
    CU_ASSERT(fl_chip_place_settings(row, 4, &c) == FL_MODEL_OK);
    FL_CHECK(c.settings == 3 && c.setting_mem[0] == 400 && c.setting_sm[1] == 1124 && c.setting_sm[2] == 1127,
             "%u settings, memory clocks first", c.settings);
    FL_CHECK(fl_chip_setting_of(&c, &row[1]) == 0 && fl_chip_setting_of(&c, &row[0]) == 2, "found");
    const fl_chip_row other[] = {{.sm_mhz = 1127, .mem_mhz = 400}, {.sm_mhz = 1128, .mem_mhz = 800}};
    FL_CHECK(fl_chip_setting_of(&c, &other[0]) == UINT32_MAX && fl_chip_setting_of(&c, &other[1]) == UINT32_MAX,
             "both clocks have to agree");
    CU_ASSERT(fl_chip_place_settings(row, 1, &c) == FL_MODEL_OK);
    FL_CHECK(c.settings == 1 && c.setting_sm[0] == 1127, "one setting");
}

/* The middle of 1, 2, 3 % is 2 %; beyond 6 x 1.4826 x 2 % = 17.8 % is one row, and no row within 3 % ever is. */
static void test_robust(void) {
    const double r[] = {0.01, NAN, -0.02, 0.03, -0.018, 0.2}, even[] = {0.029, 0, 0, -0.031};
    double pct = 0;
    size_t beyond = 9;
    CU_ASSERT(fl_chip_robust_pct(r, 6, &pct, &beyond) == FL_MODEL_OK);
    FL_CHECK(near(pct, 2.9652) && beyond == 1, "%.9g %%, %zu beyond", pct, beyond);
    CU_ASSERT(fl_chip_robust_pct(even, 3, &pct, &beyond) == FL_MODEL_OK);
    FL_CHECK(pct == 0 && beyond == 0, "%.9g %%, %zu beyond", pct, beyond);
    const double far[] = {0, 0, 0, 0.029, -0.031};
    CU_ASSERT(fl_chip_robust_pct(far, 5, &pct, &beyond) == FL_MODEL_OK);
    FL_CHECK(pct == 0 && beyond == 1, "%.9g %%, %zu beyond", pct, beyond);
    CU_ASSERT(fl_chip_robust_pct(r, 0, &pct, &beyond) == FL_MODEL_OK);
    FL_CHECK(isnan(pct) && beyond == 0, "of none: %g %%, %zu", pct, beyond);
}

/* A platform's constants as a chip: its own numbers, no link, and the assumed errors and spread of workloads. */
static void test_device(void) {
    static const double volt_mhz[] = {100, 5000}, volt[] = {1, 1.49};
    static fl_chip c;
    int32_t sm[47], mem[] = {400, 800, 900};
    double b0[] = {10, 20, 30};
    for (int i = 0; i < 47; i++)
        sm[i] = 100 + 100 * i;
    fl_device dev = {.sm_mhz = sm,
                     .sm_count = 47,
                     .mem_mhz = mem,
                     .mem_count = 3,
                     .default_mem_mhz = 800,
                     .b0_w = b0,
                     .a_w = 60,
                     .a0_w = 5,
                     .b_w = 40,
                     .c_w = 25,
                     .sharpness = 9};
    CU_ASSERT_FATAL(fl_curve_new(&dev.voltage, volt_mhz, volt, 2) == FL_MODEL_OK);
    CU_ASSERT_FATAL(fl_chip_of_device(&dev, &c) == FL_MODEL_OK);
    FL_CHECK(c.sm_ref == 4700 && c.sm_min == 100 && c.mem_ref == 800 && c.mem_min == 400 && c.sharpness == 9, "clocks");
    FL_CHECK(c.a_w == 60 && c.a0_w == 5 && c.b_w == 40 && c.c_w == 25 && c.stall == 1 && c.stall_memory == 1 &&
                 c.link_mhz == 0 && c.has_power && c.workloads == 0 && c.law == FL_CHIP_PLAIN,
             "the plain law");
    FL_CHECK(c.load_mean[0] == 0.5 && c.load_mean[1] == 0.5 && c.load_cov[0] == 0.25 && c.load_cov[1] == 0 &&
                 c.load_cov[2] == 0.25,
             "any workload");
    FL_CHECK(c.knots == 24 && c.mems == 3, "%u knots, %u memory clocks", c.knots, c.mems);
    for (uint32_t i = 0; i < 24; i++) /* every other of 47 clocks; a hundredth of V for 100 MHz */
        FL_CHECK(c.knot_mhz[i] == 100 + 200 * i && near(c.volt[i], 1 + 0.02 * i) && isnan(c.volt_sd[i]),
                 "knot %u: V(%g) = %g", i, c.knot_mhz[i], c.volt[i]);
    for (uint32_t i = 0; i < 3; i++)
        FL_CHECK(c.mem_mhz[i] == mem[i] && c.b0_w[i] == b0[i] && isnan(c.b0_sd[i]), "memory clock %u", i);
    const double unknown[] = {
        c.sharpness_sd,     c.link_sd,         c.c_sd,         c.a0_sd,         c.slope_w,         c.slope_sd,
        c.stall_sd,         c.stall_memory_sd, c.time_rms_pct, c.power_rms_pct, c.time_law_pct[0], c.time_law_pct[1],
        c.power_law_pct[0], c.power_law_pct[1]};
    for (size_t i = 0; i < COUNT(unknown); i++)
        FL_CHECK(isnan(unknown[i]), "number %zu is not known", i);
    dev.sharpness = INFINITY; /* the fit's norm goes as far as 60 */
    dev.b_w = 0;
    dev.sm_count = dev.mem_count = 1;
    CU_ASSERT_FATAL(fl_chip_of_device(&dev, &c) == FL_MODEL_OK);
    FL_CHECK(c.sharpness == 60 && !c.has_power && c.knots == 1 && c.knot_mhz[0] == 100 && c.mems == 1,
             "sharpness %g, %u knots", c.sharpness, c.knots);
    fl_device wrong[] = {dev, dev, dev, dev, dev};
    wrong[0].sm_count = 0;
    wrong[1].mem_count = 0;
    wrong[2].voltage = NULL;
    wrong[3].b0_w = NULL;
    wrong[4].sharpness = 0.999;
    for (size_t i = 0; i < COUNT(wrong); i++)
        FL_CHECK(fl_chip_of_device(&wrong[i], &c) == FL_MODEL_INVALID, "device %zu", i);
    fl_curve_free(dev.voltage);
}

static fl_chip flat(void) {
    return (fl_chip){.sm_ref = 1000,
                     .mem_ref = 800,
                     .knots = 1,
                     .knot_mhz = {500},
                     .volt = {2},
                     .mems = 1,
                     .mem_mhz = {800},
                     .b0_w = {7},
                     .a_w = 50,
                     .a0_w = 3,
                     .b_w = 30,
                     .c_w = 5,
                     .stall = 0.25,
                     .stall_memory = 0.5,
                     .sharpness = 2};
}

/* V = 2 and f = 0.5 GHz: V^2 f = 2. At half the rate and half the clock a = 0.25 + 0.75 x 0.5 x 2 = 1. */
static void test_columns(void) {
    const fl_chip c = flat();
    double core = 0, memory = 0, base = 0;
    fl_chip_columns(&c, 500, 400, 0.5, &core, &memory, &base);
    FL_CHECK(near(core, 2) && near(memory, 0.5) && near(base, 7 + 10 + 6), "%g %g %g", core, memory, base);
    fl_chip_columns(&c, 500, 200, 0.25, &core, &memory, &base);
    FL_CHECK(near(core, 2 * 0.625) && near(memory, 0.25), "%g %g", core, memory);
}

/* Normal equations; where the least squares have a number below 0, the better of the two alone. */
static void test_two(void) {
    static const struct {
        double aa, ab, bb, az, bz, x, y;
    } rows[] = {
        {2, 1, 3, 4, 7, 1, 2},    /* 2 + 2 = 4, 1 + 6 = 7 */
        {2, 1, 3, 4, 2, 2, 0},    /* y = 0 exactly */
        {3, 1, 2, 1, 2, 0, 1},    /* x = 0 exactly */
        {2, 1, 3, 6, 1, 3, 0},    /* y below 0: x alone */
        {2, 1, 3, -1, 6, 0, 2},   /* x below 0 */
        {2, 1, 3, -1, -2, 0, 0},  /* both */
        {1, 1, 1, 2, 2, 2, 0},    /* the same column twice: the first */
        {1, 2, 4, 2, 5, 0, 1.25}, /* one twice the other: what explains more, 6.25 to 4 */
        {0, 0, 4, 0, 8, 0, 2},    /* no x */
        {4, 0, 0, 8, 0, 2, 0},    /* no y */
        {0, 0, 0, 1, 1, 0, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        double x = 9, y = 9;
        fl_chip_solve_two(rows[i].aa, rows[i].ab, rows[i].bb, rows[i].az, rows[i].bz, &x, &y);
        FL_CHECK(near(x, rows[i].x) && near(y, rows[i].y), "row %zu: %g %g", i, x, y);
    }
}

/* Of alpha 0.2 and 0.6, beta 0.4 and 0.1. Covariances are widened by (1 - t) / 4 + 1e-4 and the correlation shrinks by
 * t = n / (n + 4), n the number of workloads. */
static void test_prior(void) {
    static const fl_chip two = {.shares = 2, .share = {{.alpha = 0.2, .beta = 0.4}, {.alpha = 0.6, .beta = 0.1}}}, none;
    const double t = 1.0 / 3, wider = (1 - t) / 4 + 1e-4;
    double mean[2], cov[3];
    fl_chip_load_prior(&two, mean, cov);
    FL_CHECK(near(mean[0], 0.4) && near(mean[1], 0.25), "mean %.9g %.9g", mean[0], mean[1]);
    FL_CHECK(near(cov[0], 0.04 + wider) && near(cov[1], -0.03 * t) && near(cov[2], 0.0225 + wider),
             "covariance %.9g %.9g %.9g", cov[0], cov[1], cov[2]);
    fl_chip_load_prior(&none, mean, cov);
    FL_CHECK(mean[0] == 0 && mean[1] == 0 && near(cov[0], 0.2001) && cov[1] == 0 && near(cov[2], 0.2001),
             "nobody known: %g %g %g", cov[0], cov[1], cov[2]);
}

FL_SUITE("fit_chip_by_hand", {"rows that cannot be", test_sound}, {"the shape of time", test_shape},
         {"covariance", test_covariance}, {"places and deviations", test_places}, {"linear algebra", test_algebra},
         {"how far the law is off", test_offs}, {"settings", test_settings}, {"a robust deviation", test_robust},
         {"a platform as a chip", test_device}, {"columns of power", test_columns},
         {"two numbers, none below 0", test_two}, {"prior of alpha and beta", test_prior})
