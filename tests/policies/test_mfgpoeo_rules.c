/* MF-GPOEO as released, its rules as functions of numbers: the idle gate, the length of a window, the database's
 * windows, refreshes, memory trials, the start of the search, monitoring. Every limit has a row on either side. */
#include "policies/mfgpoeo/inside.h"
#include "policies/policy.h"
#include "tests/support/suite.h"

#include <math.h>

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(1, fmax(fabs(a), fabs(b))); }

/* ---- the idle gate ---- */

/* Samples: 1 busy, 0 idle. The last one passes; L: the limit is set there. */
static void test_gate(void) {
    static const struct {
        const char *samples;
        bool passes;
    } row[] = {
        {"11111", true},
        {"1111", false},
        {"000000000011111", true},        /* the fifth is the fifteenth */
        {"00000000001111L", false},       /* four of fifteen */
        {"00000000001111L1111111", true}, /* then seven of the last fifteen; those before do not count */
        {"00000000001111L111111", false},
        {"11110000000000L00000000000000000000101010101010101", false}, /* eight of fifteen: not yet seven at the end */
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_mfg_gate gate = {.samples = 0};
        const char *s = row[i].samples;
        int verdict = FL_MFG_GATE_WAITS;
        size_t k = 0;
        for (; s[k] && verdict != FL_MFG_GATE_PASSES; k++) {
            verdict = fl_mfg_gate_sample(&gate, s[k] == '1');
            FL_CHECK((verdict == FL_MFG_GATE_LIMITS) == (s[k] == 'L'), "row %zu: a limit at sample %zu", i, k);
        }
        if (i < 6)
            FL_CHECK((verdict == FL_MFG_GATE_PASSES) == row[i].passes && !s[k], "row %zu: passes after %zu", i, k);
        else
            FL_CHECK(k == strlen(s) - 2, "seven of the last fifteen after %zu of %zu", k, strlen(s));
    }
    fl_mfg_gate gate = {.idle = 1}; /* six busy ones, then nine idle: the first of the six leaves the ring */
    int verdict = FL_MFG_GATE_WAITS;
    for (const char *s = "1111110000000001"; *s; s++)
        verdict = fl_mfg_gate_sample(&gate, *s == '1');
    FL_CHECK(verdict == FL_MFG_GATE_WAITS, "sixteen samples are in a ring of fifteen");
}

/* ---- the length of a window ---- */

static void test_length(void) {
    static const struct {
        double before, util, mean_util;
        uint32_t repeats;
        double factor, seconds, added;
        uint32_t after;
    } row[] = {
        {4, 80, 80, 0, 0.8, 4, 0, 1},         {4, 50, 36, 2, 0.1, 8, 4, 0},     /* 0.163: above 0.15 */
        {4, 50, 34, 2, 0.01, 4, 0, 0},                                          /* 16 / 84 = 0.19: anew */
        {4, 0, 0, 1, 0.8, 4, 0, 2},                                             /* idle twice: alike */
        {4, 20, 22.1, 2, 0.8, 4, 0, 3},                                         /* mean 21: 0.0499 */
        {4, 20, 22.2, 2, 0.8, 8, 4, 0},                                         /* 0.0521 */
        {4, 24.3, 26.2, 2, 0.8, 4, 0, 3},                                       /* mean 25.25: 0.0376 */
        {4, 24.2, 26.3, 2, 0.8, 8, 4, 0},                                       /* 0.0416 */
        {4, 40, 42.4, 2, 0.8, 4, 0, 3},                                         /* 2.4, not above */
        {4, 40, 42.5, 2, 0.8, 8, 4, 0},                                         /* mean 41.25: above 2.4 */
        {4, 52, 55, 2, 0.8, 4, 0, 3},                                           /* mean 53.5: 3, not above */
        {4, 52, 55.1, 2, 0.8, 8, 4, 0},       {4, 86.5, 93.4, 2, 0.8, 4, 0, 3}, /* 6.9: 0.0384 */
        {4, 90, 97.1, 2, 0.8, 8, 4, 0},                                         /* 7.1: 0.0379 */
        {4, 85, 100, 2, 0.8, 8, 4, 0},                                          /* 0.081 */
        {4, 70, 100, 2, 0.1, 8, 4, 0},                                          /* 0.176: above 0.15 */
        {18, 70, 100, 2, 0.1, 20, 2, 0},                                        /* at most 20 s */
        {4, 59, 41, 2, 0.1, 8, 4, 0},                                           /* 0.18 itself: not anew */
        {4, 57.5, 42.5, 2, 0.8, 8, 4, 0},                                       /* 0.15 itself */
        {4, 21, 19, 2, 0.8, 4, 0, 3},                                           /* 0.05 itself */
        {4, 26, 24, 2, 0.8, 4, 0, 3},                                           /* 0.04 itself */
        {4, 26.125, 23.875, 2, 0.8, 8, 4, 0},                                   /* a mean of 25: 0.045 */
        {4, 51.25, 48.75, 2, 0.8, 4, 0, 3},                                     /* of 50: 2.5 */
        {4, 62, 58, 2, 0.8, 4, 0, 3},                                           /* of 60: 4 */
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_mfg_length l = {.seconds = row[i].before, .repeats = row[i].repeats, .added = 1};
        const double factor = fl_mfg_length_test(&l, row[i].util, row[i].mean_util, 4, 20);
        FL_CHECK(near(factor, row[i].factor) && l.seconds == row[i].seconds && l.added == row[i].added &&
                     l.repeats == row[i].after,
                 "row %zu: %g, %g s, %g more, %u", i, factor, l.seconds, l.added, l.repeats);
    }
}

static void test_length_found(void) {
    static const struct {
        double seconds;
        uint32_t repeats;
        bool found;
    } row[] = {{4, 2, false},   {4, 3, true},   {8, 2, false}, {10, 2, false}, {10, 3, true},
               {10.5, 1, true}, {12, 0, false}, {12, 1, true}, {16, 0, false}, {20, 0, true}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const fl_mfg_length l = {.seconds = row[i].seconds, .repeats = row[i].repeats};
        FL_CHECK(fl_mfg_length_found(&l, 20) == row[i].found, "row %zu", i);
    }
}

/* ---- the database ---- */

static void test_violations(void) {
    static const struct {
        fl_mfg_repeat r;
        bool violates, again;
    } row[] = {
        {{{0.04, 0.08, 0.15, 0.75, 0.75, 0}, 0.06, 60, 60}, false, false},
        {{{0.04, 0.08, 0.25, 0.75, 0.75, 0}, 0.06, 60, 60}, false, true},
        {{{0, 0, 0, 0.749, 1, 0}, 0, 60, 60}, true, true},
        {{{0, 0, 0, 1, 0.749, 0}, 0, 60, 60}, true, true},
        {{{0.041, 0, 0, 1, 1, 0}, 0, 60, 60}, true, true},
        {{{-0.041, 0, 0, 1, 1, 0}, 0, 60, 60}, true, true},
        {{{0, 0.081, 0, 1, 1, 0}, 0, 60, 60}, true, true},
        {{{0, -0.081, 0, 1, 1, 0}, 0, 60, 60}, true, true},
        {{{0, 0, 0.251, 1, 1, 0}, 0, 60, 60}, true, true},
        {{{0, 0, -0.151, 1, 1, 0}, 0, 60, 60}, false, true},
        {{{0, 0, 0.051, 1, 1, 0}, 0, 71, 51}, true, false},
        {{{0, 0, -0.051, 1, 1, 0}, 0, 71, 51}, true, false},
        {{{0, 0, 0.05, 1, 1, 0}, 0, 71, 51}, false, false},
        {{{0, 0, 0.051, 1, 1, 0}, 0, 70, 51}, false, false},
        {{{0, 0, 0.051, 1, 1, 0}, 0, 71, 50}, false, false},
        {{{0, 0, 0, 1, 1, 0}, 0.061, 60, 60}, true, false},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        FL_CHECK((fl_mfg_violates(&row[i].r, 0.75) != 0) == row[i].violates, "row %zu: a violation", i);
        FL_CHECK((fl_mfg_repeat_again(&row[i].r.index, 0.75) != 0) == row[i].again, "row %zu: another window", i);
    }
}

static void test_keeps(void) {
    static const struct {
        double exe, gap;
        bool violates;
        double factor;
    } row[] = {{0.5, 0.5, false, 0.9},    {0.019, -0.019, true, 0.9}, {0.02, 0, true, 0.7},  {0, -0.02, true, 0.7},
               {0.079, 0.079, true, 0.7}, {0, 0.08, true, 0.6},       {-0.08, 0, true, 0.6}, {0.119, 0.119, true, 0.6},
               {0.12, 0, true, 0.4},      {0, 0.12, true, 0.4}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const fl_mfg_repeat r = {.index = {.exe = row[i].exe, .gap = row[i].gap}};
        FL_CHECK(fl_mfg_repeat_keeps(&r, row[i].violates) == row[i].factor, "row %zu: %g", i,
                 fl_mfg_repeat_keeps(&r, row[i].violates));
    }
}

/* A window of 5 s on a database of 20 s. */
static void test_refresh(void) {
    static const struct {
        double loss, factor;
    } row[] = {{0.019, 0.8},       {-0.019, 0.8},       {0.02, 0.4 * 0.25}, {-0.049, 0.4 * 0.25},
               {0.05, 0.3 * 0.25}, {0.079, 0.3 * 0.25}, {0.08, 0.2 * 0.25}, {-1, 0.2 * 0.25}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        FL_CHECK(near(fl_mfg_factor(fl_mfg_refresh_keeps(row[i].loss), 5, 20), row[i].factor), "row %zu: %g", i,
                 fl_mfg_factor(fl_mfg_refresh_keeps(row[i].loss), 5, 20));
    FL_CHECK(fl_mfg_factor((fl_mfg_keep){.factor = 0.2, .relative = 1}, 1, 100) == 0.01, "not below 0.01");
    FL_CHECK(fl_mfg_factor((fl_mfg_keep){.factor = 0.001}, 1, 1) == 0.01, "nor an absolute one");
}

/* ---- memory clocks, and the start ---- */

static void test_memory_gears(void) {
    static const struct {
        uint32_t gears;
        const char *tried;
    } row[] = {{0, ""}, {1, ""}, {2, ""}, {3, "1 "}, {4, "2 1 "}, {5, "2 1 "}, {8, "4 3 "}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[64] = "";
        for (int32_t g = fl_mfg_next_memory(row[i].gears, FL_MFG_DEFAULT); g != FL_MFG_DEFAULT;
             g = fl_mfg_next_memory(row[i].gears, g))
            snprintf(text + strlen(text), sizeof text - strlen(text), "%d ", g);
        FL_CHECK(strcmp(text, row[i].tried) == 0, "row %zu: %s", i, text);
    }
    FL_CHECK(fl_mfg_is_low_memory(5, 2) && !fl_mfg_is_low_memory(5, 3) && !fl_mfg_is_low_memory(5, FL_MFG_DEFAULT),
             "the lower half of the ladder");
}

/* Losses and objectives of gears 2 and 1, tried in that order; what is kept and handed on. */
static void test_memory_verdicts(void) {
    static const struct {
        double loss[2], objective[2];
        int32_t tried, chosen;
        double handed;
    } row[] = {
        {{0.02, 0.03}, {0.8, 0.7}, 2, 1, 0.03},
        {{0.02, 0.03}, {0.8, 0.8}, 2, 1, 0.03},            /* as good: the lower one */
        {{0.02, 0.03}, {0.8, 0.81}, 2, 2, 0.03},           /* a worse objective; its loss is handed on */
        {{0.02, 0.051}, {0.8, 0.7}, 2, 2, 0.02},           /* beyond 5 %: the loss before */
        {{0.05, 0.05}, {0.8, 0.7}, 2, 1, 0.05},            /* 5 % are not beyond */
        {{0.051, 0}, {0.8, 0.7}, 1, FL_MFG_DEFAULT, 0.05}, /* ends it; none before: 5 % */
        {{-0.01, 0.01}, {2, 0.7}, 2, 1, 0.01},             /* the first is not held against the default */
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_mfg_memory m = {.chosen = FL_MFG_DEFAULT, .handed = 0.05};
        int32_t tried = 0, goes_on = 1;
        for (; goes_on && tried < 2; tried++)
            goes_on = fl_mfg_judge_memory(&m, 2 - tried, row[i].loss[tried], row[i].objective[tried], 0.05);
        FL_CHECK(tried == row[i].tried && m.chosen == row[i].chosen && m.handed == row[i].handed,
                 "row %zu: %d tried, %d kept, %g handed on", i, tried, m.chosen, m.handed);
    }
}

static void test_start(void) {
    static const struct {
        fl_mfg_start s;
        int32_t gear;
    } row[] = {
        {{124, 1, 0, 0.1, 50, 10}, 118},  {{124, 1, 1, 0.1, 95, 10}, 118}, {{124, 1, 1, 0.59, 94, 10}, 81},
        {{124, 1, 1, 0.6, 94, 10}, 87},   {{124, 1, 1, 0.89, 94, 10}, 87}, {{124, 1, 1, 0.9, 94, 10}, 112},
        {{124, 1, 1, 0.59, 94, 20}, 105}, {{124, 1, 1, 0.6, 94, 20}, 99},  {{124, 1, 1, 0.9, 94, 20}, 112},
        {{124, 0, 0, 1, 50, 50}, 112},    {{1, 1, 0, 1, 50, 50}, 0},       {{2, 1, 1, 0.9, 50, 10}, 1},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        FL_CHECK(fl_mfg_start_gear(&row[i].s) == row[i].gear, "row %zu: %d", i, fl_mfg_start_gear(&row[i].s));
    FL_CHECK(fl_mfg_high_gear(124, 0.95) == 118 && fl_mfg_high_gear(1, 0.95) == 0, "rounded up, on the ladder");
}

static void test_bound(void) {
    FL_CHECK(near(fl_mfg_bound(0.05, 1999), 0.049) && near(fl_mfg_bound(0.05, 2000), 0.047), "tightened");
    FL_CHECK(fl_mfg_bound(0.001, 5000) > 0, "never 0");
}

/* ---- monitoring ---- */

static void test_distance(void) {
    const double most[FL_MFG_MEANS] = {[FL_MFG_POWER] = 350,
                                       [FL_MFG_SM] = 2055,
                                       [FL_MFG_MEM] = 9501,
                                       [FL_MFG_UTIL_GPU] = 100,
                                       [FL_MFG_UTIL_MEM] = 100};
    const double a[FL_MFG_MEANS] =
        {[FL_MFG_POWER] = 350, [FL_MFG_SM] = 2055, [FL_MFG_MEM] = 9501, [FL_MFG_UTIL_GPU] = 100, [FL_MFG_UTIL_MEM] = 0},
                 b[FL_MFG_MEANS] = {[FL_MFG_POWER] = 175,
                                    [FL_MFG_SM] = 2055,
                                    [FL_MFG_MEM] = 9501,
                                    [FL_MFG_UTIL_GPU] = 100,
                                    [FL_MFG_UTIL_MEM] = 10},
                 none[FL_MFG_MEANS] = {0};
    FL_CHECK(near(fl_mfg_distance(a, b, most), 0.6 / 7.6), "%g", fl_mfg_distance(a, b, most));
    FL_CHECK(fl_mfg_distance(none, none, most) == 0, "nothing and nothing");
}

/* Windows: b bad, g good. Pauses after each, in windows; the change at the end of the text or not. */
static void test_watched(void) {
    static const struct {
        const char *windows, *pauses;
        bool changed;
    } row[] = {
        {"gggggggggg", "0000124888", false},
        {"gggggbgggb", "0000101240", false},
        {"bgb", "000", false},
        {"bbb", "000", true},
        {"bgbgb", "00000", true},
        {"bggbgb", "000010", false},
        {"gbgggggg", "00001248", false},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_mfg_watch w = {.windows = 0};
        int changed = 0;
        size_t k = 0;
        for (; row[i].windows[k]; k++) {
            FL_CHECK(!changed, "row %zu: a change before window %zu", i, k);
            changed = fl_mfg_watched(&w, row[i].windows[k] == 'b' ? 0.1001 : 0.1, 0.1);
            FL_CHECK(fl_mfg_watch_pause(&w) == row[i].pauses[k] - '0', "row %zu, window %zu: a pause of %g", i, k,
                     fl_mfg_watch_pause(&w));
        }
        FL_CHECK((changed != 0) == row[i].changed, "row %zu: changed %d", i, changed);
    }
}

FL_SUITE("mfgpoeo_rules", {"idle gate", test_gate}, {"length of a window", test_length},
         {"length found", test_length_found}, {"violations", test_violations},
         {"what a database window leaves", test_keeps}, {"what a refresh leaves", test_refresh},
         {"memory gears", test_memory_gears}, {"memory verdicts", test_memory_verdicts},
         {"where the search starts", test_start}, {"bound", test_bound}, {"distance", test_distance},
         {"monitoring windows", test_watched})
