/* POLCA's two thresholds, each course worked by hand: a budget of 1000 W, thresholds at 800 and 890 W, 50 W of margin.
 * GPU 0 is of low priority, GPU 1 of high; the ladder is 500 to 1500 MHz by 100. */
#include "tests/support/serving_rig.h"

#define D FL_DEFAULT

enum { HELD = 2 }; /* place of the probe */

enum { STEPS = 6 };
static const struct {
    const char *rule;
    double power_w[STEPS], low[STEPS], high[STEPS]; /* the clocks in force after each reading */
} courses[] = {
    {"below the first threshold: nothing", {799, 800, 10, 700, 799, 0}, {D, D, D, D, D, D}, {D, D, D, D, D, D}},
    {"above the first: 0.904 x 1500, down to 1300",
     {801, 801, 801, 760, 751, 749},
     {1300, 1300, 1300, 1300, 1300, D},
     {D, D, D, D, D, D}},
    {"above the second: low priority first, then all; a step at a time",
     {950, 950, 950, 950, 841, 839},
     {1300, 1100, 1100, 1100, 1100, 1100},
     {D, D, 1300, 1300, 1300, D}},
    {"back: all, low, nothing",
     {950, 950, 950, 700, 700, 700},
     {1300, 1100, 1100, 1100, 1300, D},
     {D, D, 1300, D, D, D}},
};

static rig r;

static void test_courses(void) {
    const fl_setting settings[] = {{"budget_w", "1000", NULL}, {"low", "0", NULL}};
    for (size_t i = 0; i < FL_COUNT(courses); i++) {
        double clock[RIG_GPUS] = {D, D};
        rig_begin(&r, 2);
        r.facts.server_count = 0;
        rig_open(&r, "polca", settings, 2);
        for (int k = 0; k < STEPS; k++) {
            rig_gpu(&r, FL_GPU_POWER_W, courses[i].power_w[k] / 2);
            rig_step(&r);
            for (int g = 0; g < RIG_GPUS; g++)
                if (r.decision->gpu[g][FL_SET_SM_MHZ].set)
                    clock[g] = r.decision->gpu[g][FL_SET_SM_MHZ].value;
            FL_CHECK(clock[0] == courses[i].low[k] && clock[1] == courses[i].high[k],
                     "%s: reading %d: %g and %g MHz, expected %g and %g", courses[i].rule, k, clock[0], clock[1],
                     courses[i].low[k], courses[i].high[k]);
        }
        rig_close(&r);
    }
}

/* Readings that stay away for 10 s give all clocks back. */
static void test_unknown(void) {
    const fl_setting settings[] = {{"budget_w", "1000", NULL}, {"low", "0", NULL}};
    rig_begin(&r, 1);
    rig_open(&r, "polca", settings, 2); /* its one server is number 0 */
    rig_gpu(&r, FL_GPU_POWER_W, 850);
    rig_step(&r);
    FL_CHECK(r.mhz == 1300, "%g MHz, expected 1300", r.mhz);
    r.seen[0].valid = 0;
    for (int i = 0; i < 5; i++) {
        rig_step(&r);
        r.seen[0].valid = 0;
    }
    FL_CHECK(r.mhz == 1300, "%g MHz after 8 s without a reading, expected 1300", r.mhz);
    rig_step(&r);
    rig_step(&r);
    FL_CHECK(r.mhz == FL_DEFAULT, "%g MHz after 12 s without a reading, expected the default", r.mhz);
    FL_CHECK(r.decision->probe[HELD] == 1, "and says so");
    rig_gpu(&r, FL_GPU_POWER_W, 850);
    rig_step(&r);
    FL_CHECK(r.mhz == 1300 && r.decision->probe[HELD] == 0, "%g MHz with readings again, held %g", r.mhz,
             r.decision->probe[HELD]);
    rig_close(&r);
}

static void test_refusals(void) {
    static const struct {
        fl_setting setting;
        const char *expected;
    } cases[] = {{{"low", "2", NULL}, "low must hold numbers of servers"},
                 {{"first", "0.9", NULL}, "first must be below second"},
                 {{"low_second", "0.95", NULL}, "low_second must not exceed low_first"}};
    for (size_t i = 0; i < FL_COUNT(cases); i++) {
        fl_diag d = {0};
        rig_begin(&r, 2);
        r.facts.server_count = 0;
        FL_CHECK(rig_try(&r, "polca", &cases[i].setting, 1, &d) == FL_BAD_INPUT && strstr(d.message, cases[i].expected),
                 "%s", d.message);
    }
}

FL_SUITE("polca", {"courses", test_courses}, {"power that is not known", test_unknown}, {"refusals", test_refusals})
