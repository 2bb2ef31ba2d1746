/* Assure and SweetSpot against what the rules of the GEEPAFS daemon give: single probes worked out by hand, random
 * probes against a second derivation in another style, the timing of loops, and whole decision sequences. */
#include "policies/random.h"
#include "tests/support/assure_node.h"
#include "tests/support/golden.h"

/* ---- one probe at a time ------------------------------------------------------------------------------------------
 */

#define NONE NAN
#define UP_DOWN(a, b, c, d)                                                                                            \
    { a, b, c, d, d, c, b, a }
#define ALL(x)                                                                                                         \
    { x, x, x, x, x, x, x, x }
#define BUSY ALL(100)
#define AS_CLOCK UP_DOWN(400, 600, 800, 1000) /* as power: equal performance per power on a line through zero */
#define MISSING (-1.0)

typedef struct probe_case {
    const char *name, *theta, *setting, *text; /* one more setting, or NULL */
    double mem[8], util[8], power[8], mhz[8];  /* MISSING = not known; mhz 0 = as set */
    double fit, error, bound, efficient, cap, choice;
} probe_case;

/* Probe clocks 400 600 800 1000. Each expectation worked out from the rules with pencil and paper. At full utilisation
 * the cap is fmax / (2 - theta): 909.09 for 0.9, 952.38 for 0.95, 769.23 for 0.7. */
/* clang-format off */
static const probe_case probe_cases[] = {
    {"line: bound theta fmax; the first of equally efficient clocks",
     "0.9", NULL, NULL, UP_DOWN(40, 60, 80, 100), BUSY, AS_CLOCK, {0}, 1, 0, 900, 400, 909.0909091, 900},
    {"efficient clock above the bound",
     "0.7", NULL, NULL, UP_DOWN(40, 60, 80, 100), BUSY, UP_DOWN(100, 100, 100, 200), {0}, 1, 0, 700, 800,
     769.2307692, 800},
    {"cap below the bound; the largest cap, not the last",
     "0.9", NULL, NULL, UP_DOWN(40, 60, 80, 100), ALL(20), AS_CLOCK, {0}, 1, 0, 900, 400, 666.6666667, 670},
    {"the largest cap when it is the first",
     "0.9", NULL, NULL, UP_DOWN(40, 60, 80, 100), {50, 5, 5, 5, 5, 5, 5, 5}, AS_CLOCK, {0}, 1, 0, 900, 400,
     740.7407407, 750},
    {"utilisation below 1 counts as 1",
     "0.9", NULL, NULL, UP_DOWN(40, 60, 80, 100), ALL(0), AS_CLOCK, {0}, 1, 0, 900, 400, 90.9090909, 400},
    {"cap from the observed clock, not from the one set",
     "0.9", NULL, NULL, UP_DOWN(40, 60, 80, 100), ALL(50), AS_CLOCK, {400, 600, 800, 950, 950, 800, 600, 400}, 1,
     0, 900, 400, 829.6943231, 830},
    {"error above the threshold: no model",
     "0.9", "efficient_mhz", "700", UP_DOWN(0, 100, 0, 100), BUSY, AS_CLOCK, {0}, 0, NONE, 1000, 700, 909.0909091,
     910},
    {"error at the threshold: still a model",
     "0.9", NULL, NULL, {35, 47.5, 60, 72.5, 52.5, 40, 27.5, 15}, BUSY, AS_CLOCK, {0}, 1, 800, 900, 400,
     909.0909091, 900},
    {"the threshold is per point",
     "0.9", "error_per_point", "99.5", {35, 47.5, 60, 72.5, 52.5, 40, 27.5, 15}, BUSY, AS_CLOCK, {0}, 0, 800,
     1000, 400, 909.0909091, 910},
    {"all memory utilisations zero",
     "0.9", "efficient_mhz", "700", ALL(0), BUSY, AS_CLOCK, {0}, -1, NONE, 1000, 700, 909.0909091, 910},
    {"the port's error: a root mean square of 2 % of utilisation is too large",
     "0.9", "error_per_point", "1", {37, 57, 77, 97, 93, 73, 53, 33}, BUSY, AS_CLOCK, {0}, 0, 32, 1000, 400,
     909.0909091, 910},
    {"the port's least memory utilisation: below it in the whole probe",
     "0.9", "least_mem_pct", "3", UP_DOWN(0, 1, 2, 2), BUSY, AS_CLOCK, {0}, -1, NONE, 1000, 400, 909.0909091, 910},
    {"the port's least memory utilisation: reached once",
     "0.9", "least_mem_pct", "3", UP_DOWN(0, 1, 2, 3), BUSY, AS_CLOCK, {0}, 1, 0, 940, 1000, 909.0909091, 1000},
    {"all but one zero",
     "0.9", NULL, NULL, {0, 0, 0, 1, 0, 0, 0, 0}, BUSY, AS_CLOCK, {0}, 1, 0.65, 953.3333333, 1000, 909.0909091,
     1000},
    {"fold that crosses in the gap: bound on the high line",
     "0.95", NULL, NULL, UP_DOWN(40, 60, 72.5, 77.5), BUSY, AS_CLOCK, {0}, 2, 0, 845, 400, 952.3809524, 850},
    {"the high line's answer is below the crossing: low line",
     "0.9", NULL, NULL, UP_DOWN(40, 60, 72.5, 77.5), BUSY, AS_CLOCK, {0}, 2, 0, 697.5, 400, 909.0909091, 700},
    {"crossing at the upper end of the gap",
     "0.95", NULL, NULL, UP_DOWN(50, 75, 100, 112.5), BUSY, AS_CLOCK, {0}, 2, 0, 910, 400, 952.3809524, 910},
    {"high slope zero: performance and bound at the crossing",
     "0.9", NULL, NULL, UP_DOWN(40, 60, 70, 70), BUSY, ALL(100), {0}, 2, 0, 630, 800, 909.0909091, 800},
    {"high slope negative: performance at the crossing above it",
     "0.9", NULL, NULL, UP_DOWN(40, 60, 65, 55), BUSY, UP_DOWN(400, 600, 100, 90), {0}, 2, 0, 630, 1000,
     909.0909091, 1000},
    {"high slope negative: bound from the crossing",
     "0.9", NULL, NULL, UP_DOWN(40, 60, 65, 55), BUSY, AS_CLOCK, {0}, 2, 0, 630, 400, 909.0909091, 630},
    {"line of slope zero",
     "0.9", NULL, NULL, ALL(50), BUSY, UP_DOWN(100, 90, 95, 100), {0}, 1, 0, 400, 600, 909.0909091, 600},
    {"line that falls: performance at the lowest clock for all",
     "0.9", NULL, NULL, UP_DOWN(100, 80, 60, 40), BUSY, UP_DOWN(100, 90, 60, 100), {0}, 1, 0, 400, 800,
     909.0909091, 800},
    {"line that falls below zero: the level is that of the lowest clock",
     "0.9", NULL, NULL, UP_DOWN(30, 0, 0, 0), BUSY, UP_DOWN(100, 90, 60, 100), {0}, 1, 540, 400, 800, 909.0909091, 800},
    {"fold with low slope zero",
     "0.9", NULL, NULL, UP_DOWN(60, 60, 50, 0), BUSY, UP_DOWN(100, 90, 60, 50), {0}, 2, 0, 400, 1000, 909.0909091,
     1000},
    {"fold with negative low slope",
     "0.9", NULL, NULL, UP_DOWN(60, 55, 40, 0), BUSY, UP_DOWN(100, 80, 70, 90), {0}, 2, 0, 400, 800, 909.0909091,
     800},
    {"crossing below the gap: fold fixed at the second clock",
     "0.9", NULL, NULL, UP_DOWN(40, 60, 59, 61), BUSY, UP_DOWN(40, 60, 80, 100), {0}, 3, 3, 548.2051282, 400,
     909.0909091, 550},
    {"crossing above the gap: fold fixed at the second clock",
     "0.9", NULL, NULL, UP_DOWN(40, 60, 95, 100), BUSY, AS_CLOCK, {0}, 3, 300, 895, 600, 909.0909091, 900},
    {"low slope not greater than high: no fold",
     "0.9", NULL, NULL, UP_DOWN(40, 45, 60, 80), BUSY, AS_CLOCK, {0}, 1, 115, 886.6666667, 400, 909.0909091, 890},
    {"power is the mean of both samples: the first is not enough",
     "0.5", NULL, NULL, UP_DOWN(40, 60, 80, 100), BUSY, {100, 500, 1000, 2000, 2000, 1000, 500, 700}, {0}, 1, 0,
     500, 600, 666.6666667, 600},
    {"power is the mean of both samples: the last is not enough",
     "0.5", NULL, NULL, UP_DOWN(40, 60, 80, 100), BUSY, {700, 500, 1000, 2000, 2000, 1000, 500, 100}, {0}, 1, 0,
     500, 600, 666.6666667, 600},
    {"not below the lowest clock; rounded up on the ladder",
     "0.9", "lowest_mhz", "503", ALL(50), BUSY, AS_CLOCK, {0}, 1, 0, 400, 400, 909.0909091, 510},
    {"lowest clock defaults to the first probe clock, for GPUs without a model too",
     "0.9", NULL, NULL, ALL(0), ALL(1), AS_CLOCK, {0}, -1, NONE, 1000, 400, 90.9090909, 400},
    {"efficient clock defaults to the lowest",
     "0.9", "lowest_mhz", "450", ALL(0), ALL(1), AS_CLOCK, {0}, -1, NONE, 1000, 450, 90.9090909, 450},
    {"the lowest clock of the ladder has none below: the last set-point of the probe stays",
     "0.9", "lowest_mhz", "100", ALL(0), ALL(1), AS_CLOCK, {0}, -1, NONE, 1000, 100, 90.9090909, 400},
    {"the second clock of the ladder has one below",
     "0.9", "lowest_mhz", "110", ALL(0), ALL(1), AS_CLOCK, {0}, -1, NONE, 1000, 110, 90.9090909, 110},
    {"a bound a rounding above a clock of the ladder: the next one up",
     "0.9", NULL, NULL, {1, 1, 2, 3, 2, 1, 3, 1}, BUSY, {42.628, 69.572, 79.555, 115.408, 96.537, 84.339, 47.181,
     102.557}, {0}, 3, NONE, 820, 600, 909.0909091, 830},
    {"means that are equal in milliwatts and not in watts: the first clock",
     "0.9", NULL, NULL, ALL(50), BUSY, {40, 40.001, 100, 100, 100, 100, 40.001, 40.002}, {0}, 1, 0, 400, 400,
     909.0909091, 400},
    {"power that is no whole milliwatt: the nearest, by which the second clock is the more efficient",
     "0.9", NULL, NULL, ALL(50), BUSY, {40.0006, 40.0004, 100, 100, 100, 100, 40.0004, 40.0006}, {0}, 1, 0, 400, 600,
     909.0909091, 600},
    {"limited to the top",
     "1", NULL, NULL, UP_DOWN(40, 60, 80, 100), BUSY, AS_CLOCK, {0}, 1, 0, 1000, 400, 1000, 1000},
    {"a memory utilisation missing: no model",
     "0.9", "efficient_mhz", "700", {40, 60, 80, 100, 100, MISSING, 60, 40}, BUSY, AS_CLOCK, {0}, -1, NONE, 1000,
     700, 909.0909091, 910},
    {"a power missing: no model",
     "0.9", "efficient_mhz", "700", UP_DOWN(40, 60, 80, 100), BUSY, {MISSING, 600, 800, 1000, 1000, 800, 600,
     400}, {0}, -1, NONE, 1000, 700, 909.0909091, 910},
    {"no power at all: no model",
     "0.9", "efficient_mhz", "700", UP_DOWN(40, 60, 80, 100), BUSY, ALL(0), {0}, -1, NONE, 1000, 700, 909.0909091,
     910},
    {"cap from the utilisations that are known",
     "0.9", NULL, NULL, UP_DOWN(40, 60, 80, 100), {MISSING, 20, 20, MISSING, MISSING, 20, 20, 20}, AS_CLOCK, {0},
     1, 0, 900, 400, 625, 630},
    {"no utilisation known: no cap",
     "0.95", NULL, NULL, UP_DOWN(40, 60, 80, 100), ALL(MISSING), AS_CLOCK, {0}, 1, 0, 950, 400, NONE, 950},
};
/* clang-format on */

static void test_probes(void) {
    static const double clocks[] = {400, 600, 800, 1000};
    for (size_t i = 0; i < sizeof probe_cases / sizeof *probe_cases; i++) {
        const probe_case *c = &probe_cases[i];
        const char *settings[] = {"probe_mhz", "400/600/800/1000", "theta", c->theta, c->setting, c->text, NULL};
        node n;
        node_open(&n, &fl_policy_assure, 1, settings);
        run_probe(&n, 8, clocks, c->mem, c->util, c->power, c->mhz);
        const struct {
            const char *what;
            int row;
            double want;
        } shows[] = {{"fit", FIT, c->fit},
                     {"bound", BOUND, c->bound},
                     {"efficient", EFFICIENT, c->efficient},
                     {"cap", CAP, c->cap},
                     {"choice", CHOICE, c->choice}};
        for (size_t k = 0; k < sizeof shows / sizeof *shows; k++)
            FL_CHECK(near(shown(&n, 0, shows[k].row), shows[k].want), "%s: %s %.10g, expected %.10g", c->name,
                     shows[k].what, shown(&n, 0, shows[k].row), shows[k].want);
        FL_CHECK(isnan(c->error) || fabs(shown(&n, 0, FIT_ERROR) - c->error) < 1e-6, "%s: error %.10g, expected %g",
                 c->name, shown(&n, 0, FIT_ERROR), c->error);
        fl_instance_close(n.in);
    }
}

/* ---- loops and time -----------------------------------------------------------------------------------------------
 */

typedef enum phase { PROBING, CHOOSING, QUIET } phase;

/* What the daemon does in loop k of a run whose probes begin at loops `start`: 8 set-points, the last again, the
 * choice. */
static phase phase_at(const int *start, int starts, int loop) {
    for (int i = 0; i < starts; i++)
        if (loop >= start[i] && loop < start[i] + 10)
            return loop < start[i] + 9 ? PROBING : CHOOSING;
    return QUIET;
}

typedef struct timing_case {
    const char *name;
    double loop_ns;             /* -1: not known */
    const char *setting, *text; /* or NULL */
    int start[4], starts, loops;
} timing_case;

/* A probe is over after loop 9 of its own. Loops from then on add max(200 ms, duration); the loop after the one that
 * reached 15 s decides: 9 + 75 loops, decided at the end of loop 84, begun in loop 85. */
static const timing_case timing_cases[] = {
    {"loops within the period", 120e6, NULL, NULL, {0, 85, 170}, 3, 200},
    {"durations not known", -1, NULL, NULL, {0, 85, 170}, 3, 200},
    {"loops of 500 ms", 500e6, NULL, NULL, {0, 40, 80, 120}, 4, 140},
    {"a nanosecond less takes a loop more", 499999999, NULL, NULL, {0, 41, 82, 123}, 4, 140},
    {"one long loop is enough", 20e9, NULL, NULL, {0, 11, 22, 33}, 4, 40},
    {"another interval", 0, "reprobe_s", "1", {0, 15, 30, 45}, 4, 60},
    {"another period", 0, "period_ms", "1000", {0, 25, 50, 75}, 4, 100},
};

static void test_timing(void) {
    for (size_t i = 0; i < sizeof timing_cases / sizeof *timing_cases; i++) {
        const timing_case *c = &timing_cases[i];
        const char *settings[] = {"probe_mhz", "400/600/800/1000", c->setting, c->text, NULL};
        static const double set_point[] = {400, 600, 800, 1000, 1000, 800, 600, 400, 400};
        node n;
        int64_t period = c->setting && strcmp(c->setting, "period_ms") == 0 ? 1000000000 : 200000000;
        node_open(&n, &fl_policy_assure, 2, settings);
        for (int k = 0; k < c->loops; k++) {
            phase p = phase_at(c->start, c->starts, k);
            for (uint32_t g = 0; g < 2; g++)
                read_gpu(&n, g, 50, 30, 100, 700);
            node_step(&n, c->loop_ns);
            FL_CHECK(n.decision->delay_ns == period, "%s: delay %lld", c->name, (long long)n.decision->delay_ns);
            for (uint32_t g = 0; g < 2; g++) {
                int into = 0;
                for (int s = 0; s < c->starts; s++)
                    into = k >= c->start[s] ? k - c->start[s] : into;
                double want = p == PROBING ? set_point[into] : p == CHOOSING ? shown(&n, g, CHOICE) : -1;
                FL_CHECK(set_of(&n, g) == want, "%s: loop %d GPU %u sets %g, expected %g", c->name, k, g, set_of(&n, g),
                         want);
            }
        }
        fl_instance_close(n.in);
    }
}

typedef struct window_case {
    const char *name;
    double util[2]; /* of both GPUs in the loops first..last; 0 in all others */
    int first, last;
    const char *window; /* or NULL */
    bool unknown;       /* other readings are not known, instead of 0 */
    bool probes;        /* does a probe begin in loop 85? */
} window_case;

/* The decision at the end of loop 84 sees the 16 readings of loops 69..84. */
static const window_case window_cases[] = {
    {"idle", {0, 0}, 0, 84, NULL, false, false},
    {"an average of one is enough", {1, 0}, 0, 84, NULL, false, true},
    {"15 of 16 are not", {1, 0}, 70, 84, NULL, false, false},
    {"the sum over GPUs counts", {0.5, 0.5}, 0, 84, NULL, false, true},
    {"the sum over GPUs falls short", {0.5, 0.4}, 0, 84, NULL, false, false},
    {"the oldest reading is in", {16, 0}, 69, 69, NULL, false, true},
    {"one older is out", {16, 0}, 68, 68, NULL, false, false},
    {"the loop's own reading is in", {0, 16}, 84, 84, NULL, false, true},
    {"the next loop's is not", {0, 100}, 85, 85, NULL, false, false},
    {"a shorter window: in", {4, 0}, 81, 81, "4", false, true},
    {"a shorter window: out", {4, 0}, 80, 80, "4", false, false},
    {"unknown readings push nothing out", {16, 0}, 10, 10, NULL, true, true},
};

static void test_window(void) {
    for (size_t i = 0; i < sizeof window_cases / sizeof *window_cases; i++) {
        const window_case *c = &window_cases[i];
        const char *settings[] = {"probe_mhz", "400/600/800/1000", c->window ? "window" : NULL, c->window, NULL};
        node n;
        node_open(&n, &fl_policy_assure, 2, settings);
        for (int k = 0; k <= 161; k++) {
            for (uint32_t g = 0; g < 2; g++) {
                bool in = k >= c->first && k <= c->last;
                read_gpu(&n, g, in ? c->util[g] : 0, 10, 50, 400);
                if (!in && c->unknown)
                    n.sample[g].valid &= ~FL_BIT(FL_GPU_UTIL_GPU_PCT);
            }
            node_step(&n, 1000);
            if (k == 85)
                FL_CHECK((set_of(&n, 0) > 0) == c->probes && (set_of(&n, 1) > 0) == c->probes,
                         "%s: loop 85 sets %g and %g", c->name, set_of(&n, 0), set_of(&n, 1));
            if (k == 85 && !c->probes)
                FL_CHECK(n.decision->probe[NODE_COUNTER] == -2 && n.decision->probe[NODE_SINCE] == 0,
                         "%s: counter %g, %g s", c->name, n.decision->probe[NODE_COUNTER],
                         n.decision->probe[NODE_SINCE]);
            if (k > 85 && !c->probes && c->first != 85)
                FL_CHECK(set_of(&n, 0) < 0, "%s: idle loop %d sets %g", c->name, k, set_of(&n, 0));
        }
        fl_instance_close(n.in);
    }
}

/* An idle node asks again after another 15 s: 75 loops from 85 on, decided at the end of loop 160. */
static void test_idle_then_busy(void) {
    const char *settings[] = {"probe_mhz", "400/600/800/1000", NULL};
    node n;
    node_open(&n, &fl_policy_assure, 1, settings);
    for (int k = 0; k <= 161; k++) {
        read_gpu(&n, 0, k < 100 ? 0 : 90, 10, 50, 400);
        node_step(&n, 1000);
        if (k >= 10)
            FL_CHECK(set_of(&n, 0) == (k == 161 ? 400 : -1), "loop %d sets %g", k, set_of(&n, 0));
    }
    fl_instance_close(n.in);
}

/* The daemon's port to Python: other numbers for the same rules. Six probe clocks, 0.3 s a loop, 18 s from the end of a
 * probe to the next: 12 loops of probing, one that fits, one that sets the choice and begins the wait of 60 loops, and
 * the one that finds it over. */
static void test_port(void) {
    static const char *const settings[] = {
        "period_ms", "300",           "reprobe_s", "18",        "error_per_point",
        "1",         "least_mem_pct", "3",         "probe_mhz", "500/600/700/800/900/1000",
        NULL};
    static const double up[] = {500, 600, 700, 800, 900, 1000};
    int again = 0;
    node n;
    node_open(&n, &fl_policy_assure, 1, settings);
    for (int k = 0; k < 100 && !again; k++) {
        read_gpu(&n, 0, 100, 50, 100, 700);
        node_step(&n, 1e6);
        FL_CHECK(n.decision->delay_ns == 300000000, "%lld ns", (long long)n.decision->delay_ns);
        const int at = k < 12 ? (k < 6 ? k : 11 - k) : 0;
        FL_CHECK(k > 12 || set_of(&n, 0) == up[at], "loop %d sets %g", k, set_of(&n, 0));
        again = k > 13 && set_of(&n, 0) == 500 ? k : 0;
    }
    FL_CHECK(again == 74, "the next probe begins at loop %d", again);
    fl_instance_close(n.in);
}

static void test_counter_floor(void) {
    const char *settings[] = {"probe_mhz", "400/600/800/1000", "reprobe_s", "60", NULL};
    node n;
    node_open(&n, &fl_policy_assure, 1, settings);
    for (int k = 0; k < 310; k++) {
        read_gpu(&n, 0, 50, 10, 50, 400);
        node_step(&n, 1000);
        double want = fmax(8 - k, -99);
        FL_CHECK(n.decision->probe[NODE_COUNTER] == want || k >= 310, "loop %d: counter %g, expected %g", k,
                 n.decision->probe[NODE_COUNTER], want);
    }
    node_step(&n, 1000); /* 9 + 300 loops */
    FL_CHECK(n.decision->probe[NODE_COUNTER] == 8, "counter %g after a minute", n.decision->probe[NODE_COUNTER]);
    fl_instance_close(n.in);
}

/* Every GPU is judged by its own readings, the probe is the node's. */
static void test_gpus_apart(void) {
    const char *settings[] = {"probe_mhz", "400/600/800/1000", "efficient_mhz", "700", NULL};
    node n;
    node_open(&n, &fl_policy_assure, 3, settings);
    static const double mhz[] = {0, 400, 600, 800, 1000, 1000, 800, 600, 400, 400};
    for (int k = 0; k < 10; k++) {
        read_gpu(&n, 0, 20, mhz[k] / 10, mhz[k], mhz[k]);
        read_gpu(&n, 1, 100, 0, mhz[k], mhz[k]);
        read_gpu(&n, 2, 0, 50, mhz[k] < 600 ? 300 : mhz[k], mhz[k]);
        node_step(&n, 1000);
    }
    FL_CHECK(set_of(&n, 0) == 670 && set_of(&n, 1) == 910 && set_of(&n, 2) == 400,
             "choices %g %g %g, expected 670 910 400", set_of(&n, 0), set_of(&n, 1), set_of(&n, 2));
    fl_instance_close(n.in);
}

/* ---- parameters and set-up ----------------------------------------------------------------------------------------
 */

static void test_setup(void) {
    static const int32_t few[] = {500, 900, 1000}, one[] = {500};
    static const struct {
        const char *setting, *text, *expected;
    } refused[] = {
        {"probe_mhz", "400", "2 to 32"},       {"probe_mhz", "400/400", "ascending"},
        {"probe_mhz", "600/400", "ascending"}, {"probe_mhz", "405/600", "ladder"},
        {"probe_mhz", "400/2000", "ladder"},   {"lowest_mhz", "1010", "top"},
        {"efficient_mhz", "1010", "top"},      {"theta", "1.5", "out of range"},
    };
    node n;
    fl_diag d;
    node_open(&n, &fl_policy_assure, 1, NULL);
    static const double by_default[] = {600, 740, 870, 1000, 1000, 870, 740, 600, 600};
    for (int k = 0; k < 9; k++) {
        node_step(&n, -1);
        FL_CHECK(set_of(&n, 0) == by_default[k], "default probe clock %d is %g", k, set_of(&n, 0));
    }
    fl_instance_close(n.in);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        fl_setting s = {.name = refused[i].setting, .text = refused[i].text};
        fl_layer layer = {"test", &s, 1};
        fl_instance_options o = {.policy = &fl_policy_assure, .facts = &n.facts, .layer = &layer, .layer_count = 1};
        fl_status status = fl_instance_open(&n.in, &o, &d);
        FL_CHECK(status == FL_BAD_INPUT && strstr(d.message, refused[i].expected), "%s=%s: %s", refused[i].setting,
                 refused[i].text, status == FL_OK ? "accepted" : d.message);
    }
    /* A short ladder has fewer probe clocks. */
    fl_instance_options o = {.policy = &fl_policy_assure, .facts = &n.facts};
    n.gpu[0].sm = (fl_ladder){few, 3};
    static const double on_few[] = {500, 900, 1000, 1000, 900, 500, 500};
    n.s.step = 0;
    CU_ASSERT_FATAL(fl_instance_open(&n.in, &o, &d) == FL_OK);
    for (int k = 0; k < 7; k++) {
        node_step(&n, -1);
        FL_CHECK(set_of(&n, 0) == on_few[k], "probe clock %d of a short ladder is %g", k, set_of(&n, 0));
    }
    fl_instance_close(n.in);
    n.gpu[0].sm = (fl_ladder){one, 1};
    n.s.step = 0;
    CU_ASSERT_FATAL(fl_instance_open(&n.in, &o, &d) == FL_OK);
    for (int k = 0; k < 40; k++) { /* one clock: nothing to probe, nothing to set */
        node_step(&n, -1);
        FL_CHECK(!(set_of(&n, 0) > 0), "set %g MHz where there is one clock", set_of(&n, 0));
    }
    fl_instance_close(n.in);
}

/* ---- SweetSpot ----------------------------------------------------------------------------------------------------
 */

typedef struct sweet_case {
    const char *name, *setting, *text;
    double util, mem, power;
    int missing;    /* signal that is not known, -1 = none */
    double settled; /* clock in force after the choice (930) was due, under these readings */
} sweet_case;

static const sweet_case sweet_cases[] = {
    {"busy and memory not saturated: capped", NULL, NULL, 96, 99, 50, -1, 700},
    {"utilisation at the threshold: not capped", NULL, NULL, 95, 50, 50, -1, 930},
    {"memory at the threshold: not capped", NULL, NULL, 100, 100, 50, -1, 930},
    {"memory threshold: below", "cap_mem_pct", "60", 100, 59, 50, -1, 700},
    {"memory threshold: at", "cap_mem_pct", "60", 100, 60, 50, -1, 930},
    {"power above the wall", "cap_power_w", "80", 100, 100, 81, -1, 700},
    {"power at the wall", "cap_power_w", "80", 100, 100, 80, -1, 930},
    {"power above the wall, but not busy", "cap_power_w", "80", 95, 100, 81, -1, 930},
    {"another utilisation threshold", "cap_util_pct", "50", 60, 50, 50, -1, 700},
    {"another cap, down the ladder", "alpha", "0.655", 100, 50, 50, -1, 650},
    {"a cap above the choice changes nothing", "alpha", "0.95", 100, 50, 50, -1, 930},
    {"utilisation not known", NULL, NULL, 100, 50, 50, FL_GPU_UTIL_GPU_PCT, 930},
    {"memory utilisation not known", NULL, NULL, 100, 50, 50, FL_GPU_UTIL_MEM_PCT, 930},
    {"memory utilisation not known, power above the wall", "cap_power_w", "80", 100, 50, 81, FL_GPU_UTIL_MEM_PCT, 700},
    {"power not known", "cap_power_w", "80", 100, 100, 81, FL_GPU_POWER_W, 930},
};

/* A probe whose choice is 930: on a line through zero the bound is theta fmax = 924, below the cap of 929.4. */
static void sweet_probe(node *n, const char *setting, const char *text) {
    static const double mhz[] = {400, 600, 800, 1000, 1000, 800, 600, 400};
    const char *settings[] = {"probe_mhz", "400/600/800/1000", "theta", "0.924", setting, text, NULL};
    node_open(n, &fl_policy_sweetspot, 1, settings);
    for (int k = 0; k < 9; k++) {
        double f = k ? mhz[k - 1] : 0;
        read_gpu(n, 0, 100, f / 16, f, f); /* congested all along: probes are not capped */
        node_step(n, 1000);
        FL_CHECK(set_of(n, 0) == mhz[k < 8 ? k : 7], "probe step %d sets %g", k, set_of(n, 0));
    }
    const double choice = setting && strcmp(setting, "rounding") == 0 ? 920 : 930;
    FL_CHECK(shown(n, 0, CHOICE) == choice, "choice %g, expected %g", shown(n, 0, CHOICE), choice);
}

/* Eq. 4: 924 is nearer to 920; 926 to 930, as it is for the daemon. Of two as near the upper. The lowest clock of the
 * ladder is a clock as any other: only the daemon's way up misses it. */
static void test_nearest(void) {
    static const struct {
        const char *theta, *lowest;
        double util, choice;
    } cases[] = {{"0.926", "400", 100, 930}, {"0.875", "400", 100, 880}, {"0.1", "100", 0, 100}};
    node n;
    sweet_probe(&n, "rounding", "nearest");
    fl_instance_close(n.in);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *settings[] = {"probe_mhz",    "400/600/800/1000", "theta",
                                  cases[i].theta, "lowest_mhz",       cases[i].lowest,
                                  "rounding",     "nearest",          NULL};
        node_open(&n, &fl_policy_sweetspot, 1, settings);
        static const double mhz[] = {0, 400, 600, 800, 1000, 1000, 800, 600, 400};
        for (int k = 0; k < 9; k++) { /* idle: no memory traffic, so that the lowest clock is chosen */
            read_gpu(&n, 0, cases[i].util, cases[i].util > 0 ? mhz[k] / 16 : 0, mhz[k], mhz[k]);
            node_step(&n, 1000);
        }
        FL_CHECK(shown(&n, 0, CHOICE) == cases[i].choice, "theta %s: choice %g, expected %g", cases[i].theta,
                 shown(&n, 0, CHOICE), cases[i].choice);
        fl_instance_close(n.in);
    }
}

static void test_sweetspot(void) {
    for (size_t i = 0; i < sizeof sweet_cases / sizeof *sweet_cases; i++) {
        const sweet_case *c = &sweet_cases[i];
        node n;
        sweet_probe(&n, c->setting, c->text);
        read_gpu(&n, 0, c->util, c->mem, c->power, 1000);
        if (c->missing >= 0)
            n.sample[0].valid &= ~FL_BIT(c->missing);
        node_step(&n, 1000);
        FL_CHECK(set_of(&n, 0) == c->settled, "%s: sets %g, expected %g", c->name, set_of(&n, 0), c->settled);
        node_step(&n, 1000);
        FL_CHECK(set_of(&n, 0) == -1, "%s: sets %g again", c->name, set_of(&n, 0));
        double capped = c->setting && strcmp(c->setting, "alpha") == 0 ? fmin(930, c->settled) : 700;
        /* The cap is lifted as soon as its reason is gone, and comes back with it. */
        read_gpu(&n, 0, 10, 10, 10, 1000);
        node_step(&n, 1000);
        FL_CHECK(set_of(&n, 0) == (c->settled == 930 ? -1 : 930), "%s: lifting sets %g", c->name, set_of(&n, 0));
        read_gpu(&n, 0, 100, 10, 10, 1000);
        node_step(&n, 1000);
        FL_CHECK(set_of(&n, 0) == (capped == 930 ? -1 : capped), "%s: capping again sets %g", c->name, set_of(&n, 0));
        fl_instance_close(n.in);
    }
}

/* ---- whole sequences ----------------------------------------------------------------------------------------------
 */

/* Two GPUs whose load changes with the probes: one bound by memory, one by the core; idle for a while; long loops. */
static void golden_run(const fl_policy *policy, const char *theta, char *text, size_t size) {
    fl_random r = fl_random_seed(7, 7);
    const char *settings[] = {"probe_mhz", "400/600/800/1000", "theta", theta, "efficient_mhz", "520", NULL};
    double clock[2] = {1000, 1000}, used = 0;
    node n;
    node_open(&n, policy, 2, settings);
    used += snprintf(text, size, "step,set_0,set_1,counter,fit_0,fit_1,choice_0,choice_1\n");
    for (int k = 0; k < 700; k++) {
        double loop_ns = 1e6 * (double)(50 + fl_random_below(&r, 300));
        for (uint32_t g = 0; g < 2; g++) {
            bool idle = k > 300 && k < 480;
            double busy = k / 80 % 3 == 0 ? 100 : 55 + 5 * (double)g;
            double knee = g ? 1000 : 550 + 20 * (k / 90);
            double mem = rint(0.08 * fmin(clock[g], knee) + 0.01 * fmax(0, clock[g] - knee) + 3 * fl_random_unit(&r));
            read_gpu(&n, g, idle ? 0 : busy, idle ? 0 : mem, 40 + 60 * pow(clock[g] / 1000, 3), clock[g]);
        }
        node_step(&n, loop_ns);
        for (uint32_t g = 0; g < 2; g++)
            clock[g] = set_of(&n, g) > 0 ? set_of(&n, g) : clock[g];
        if (set_of(&n, 0) > 0 || set_of(&n, 1) > 0)
            used += snprintf(text + (size_t)used, size - (size_t)used, "%d,%g,%g,%g,%g,%g,%g,%g\n", k, set_of(&n, 0),
                             set_of(&n, 1), n.decision->probe[NODE_COUNTER], shown(&n, 0, FIT), shown(&n, 1, FIT),
                             shown(&n, 0, CHOICE), shown(&n, 1, CHOICE));
    }
    fl_instance_close(n.in);
}

static void test_golden(void) {
    static char text[65536];
    golden_run(&fl_policy_assure, "0.9", text, sizeof text);
    fl_golden_check("assure-p90.csv", text);
    golden_run(&fl_policy_assure, "0.95", text, sizeof text);
    fl_golden_check("assure-p95.csv", text);
    golden_run(&fl_policy_sweetspot, "0.9", text, sizeof text);
    fl_golden_check("sweetspot-p90.csv", text);
}

FL_SUITE("assure", {"probes worked out by hand", test_probes}, {"loops and time", test_timing},
         {"the port's numbers", test_port}, {"moving window", test_window}, {"idle, then busy", test_idle_then_busy},
         {"counter floor", test_counter_floor}, {"each GPU by its own readings", test_gpus_apart},
         {"set-up", test_setup}, {"SweetSpot", test_sweetspot}, {"Eq. 4", test_nearest},
         {"whole sequences", test_golden})
