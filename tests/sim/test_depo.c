/* DEPO as its authors ran it: 16 s, four windows of 4 s at the default limit, then bracket and section over the limit.
 * Each rule is worked by hand; then a second implementation has to try the same limits. */
#include "policies/random.h"
#include "tests/reference/depo.h"
#include "tests/support/depo_node.h"
#include "tests/support/golden.h"

enum { WAITS, RESET, BASELINE, RAISE, LOWER, SECTION, DONE };

/* ---- rules, each worked by hand -----------------------------------------------------------------------------------
 */

typedef struct trial {
    double limit_w; /* expected; 0: none, the search is over */
    response seen;
} trial;

typedef struct course {
    const char *rule, *settings[7];
    response base; /* of each of the four windows */
    trial trial[TRIALS_MAX];
    double kept_w; /* 0: it goes on for ever */
} course;

typedef struct script {
    const course *c;
    int wrong;
} script;

static response by_script(void *world, int window, double limit_w) {
    script *s = world;
    if (window < BASE_WINDOWS || window >= BASE_WINDOWS + TRIALS_MAX)
        return s->c->base;
    const trial *t = &s->c->trial[window - BASE_WINDOWS];
    s->wrong += t->limit_w > 0 && t->limit_w != limit_w;
    return t->limit_w == limit_w ? t->seen : s->c->base;
}

static int trials_of(const course *c) {
    int n = 0;
    while (n < TRIALS_MAX && c->trial[n].limit_w > 0)
        n++;
    return n;
}

/* Limits are 100 + 5 gear. A loss of 5 % is 4000 kernels instead of 4200; the objective is watts over those of the
 * default limit, times the ratio of kernels. */
/* clang-format off */
#define GOOD {4000, 200}
#define BROKEN {3000, 200}
#define WORSE {3900, 290}
#define AGAIN {345, BROKEN}, {345, BROKEN}, {345, BROKEN}, {345, BROKEN}
static const course courses[] = {
    /* 350 W at the default limit: the first guess is gear 44, 320 W */
    {"the bracket goes down while it gets better, by a gear at least; a worse trial is low", {NULL}, {4000, 350},
     {{320, {4000, 300}}, {315, {4000, 295}}, {310, {4000, 290}}, {305, {4000, 292}}},
     310}, /* low 41, golden 42, high 43: over at once */
    /* low 43, golden 44, high 50: 44 + 0.382 x 6 = 46.3 */
    {"a trial below as good as golden is low", {NULL}, {4000, 350},
     {{320, {4000, 300}}, {315, {4000, 300}}, {330, {4000, 310}}},
     315}, /* the first of equals */
    /* objectives 1.71, 1.31, 0.89, 0.91 */
    {"a trial below that breaks the bound is low, though it be better", {NULL}, {4200, 350},
     {{320, {4200, 600}}, {315, {3900, 100}}, {330, {4200, 310}}, {340, {4200, 320}}},
     330},
    /* 330 W: 0.5 x 1.063 + 1 is more than 1.43, so high, and it breaks the bound */
    {"beyond the bound 1 is added", {NULL}, {4200, 350},
     {{320, {4200, 500}}, {315, {4200, 510}}, {330, {3950, 175}}},
     350},
    /* 200 W: 23.65, gear 23; 23 - 0.15 x 27 = 18.95: 18; 23 + 0.382 x 27 = 33.3; 23 + 0.382 x 10 = 26.8 */
    {"an upper end that breaks the bound ends it with the last one that did not", {NULL}, {4000, 200},
     {{215, {4000, 190}}, {190, BROKEN}, {265, {4000, 195}}, {205, {4000, 199}}, {235, {3700, 100}}},
     265},
    /* A loss of 0.25 is allowed in the bracket, and none that is kept: 315 W, 0.78, stands behind 320 W, 0.71. */
    {"at the bound nothing is broken yet", {"con_perf", "0.25", NULL}, {5000, 350},
     {{320, {4000, 200}}, {315, {4200, 230}}, {330, {4500, 340}}},
     315},
    {"an upper end at the bound ends it", {"con_perf", "0.25", NULL}, {5000, 350},
     {{320, {4000, 200}}, {315, {4200, 200}}},
     350},
    /* 300 W: gear 40; 40 + 0.618 x 10 = 46.2; 46 + 0.618 x 4 = 48.5; 49.2; 49.6 */
    {"the first guess goes up by the golden ratio until the bound holds", {NULL}, {4200, 300},
     {{300, BROKEN}, {330, BROKEN}, {340, {4100, 280}}, {335, BROKEN}},
     340}, /* low 47, golden 48, high 50 */
    {"at 345 W for ever", {NULL}, {4200, 300},
     {{300, BROKEN}, {330, BROKEN}, {340, BROKEN}, {345, BROKEN}, AGAIN, AGAIN, AGAIN, AGAIN},
     0},
    /* (0.3 x 3600 + 3820) / 1.3 = 3769: 6.1 %; (0.3 x 3769 + 3900) / 1.3 = 3869: 3.4 % */
    {"a gear tried again keeps 0.3 of what it was", {NULL}, {4000, 300},
     {{300, BROKEN}, {330, BROKEN}, {340, BROKEN}, {345, {3600, 280}}, {345, {3820, 280}}, {345, {3900, 280}},
      {340, BROKEN}},
     345},
    /* (0.3 x 3600 + 3900) / 1.3 = 3830.8: 4.418 %; cut: 4.439 % */
    {"its kernels are cut to whole ones", {"con_perf", "0.0443", NULL}, {4000, 300},
     {{300, BROKEN}, {330, BROKEN}, {340, BROKEN}, {345, {3600, 280}}, {345, {3900, 280}}, {345, {3900, 280}},
      {340, BROKEN}},
     345},
    /* 340 W: (0.3 x 3000 + 4300) / 1.3 = 4000 kernels, (0.3 x 100 + 330) / 1.3 = 277 W: 0.92, below 1.03 of 345 W */
    {"its energy keeps 0.3 too", {NULL}, {4000, 300},
     {{300, BROKEN}, {330, BROKEN}, {340, {3000, 100}}, {345, {3900, 300}}, {340, {4300, 330}}, {335, {4300, 330}}},
     340},
    /* 90 W: gear 0, so 50 - 43.35: gear 6; 6 - 0.15 x 44 = -0.6 */
    {"no gear lies below the lowest", {NULL}, {4000, 90},
     {{130, {4000, 90}}, {100, {4000, 80}}, {100, {4000, 80}}, {110, {4000, 85}}},
     100},
    /* 150 W: gear 10: 50 - 34.85: gear 15; 15 - 0.15 x 35 = 9.75; 9 - 0.15 x 6 = 8.1 */
    {"while low is unknown it counts as -1", {NULL}, {4000, 150},
     {{175, {4000, 149}}, {145, {4000, 145}}, {140, {4000, 140}}, {135, {4000, 135}}, {130, {4000, 130}},
      {125, {4000, 125}}, {120, {4000, 120}}, {115, {4000, 115}}},
     115}, /* high 4 */
    /* low 9, golden 15, high 50: 15 + 0.382 x 35 = 28.4; 9 + 0.618 x 6 = 12.7; 9 + 0.618 x 4 = 11.5 */
    {"the section goes down where the trial above is worse, and on where the one below is better", {NULL}, {4000, 150},
     {{175, GOOD}, {145, BROKEN}, {240, {4000, 210}}, {165, {4000, 190}}, {155, {4000, 180}}},
     155},
    /* low 13: 15 + 0.382 x 13 = 19.97; high 20: 13 + 0.618 x 2 = 14.2; low 14: 15 + 0.382 x 5 = 16.9 */
    {"the section goes up behind a trial below that is worse", {NULL}, {4000, 150},
     {{175, GOOD}, {145, BROKEN}, {240, WORSE}, {165, WORSE}, {200, WORSE}, {170, WORSE}, {185, WORSE}},
     175},
    /* low 18, golden 23, high 33: 18 + 0.618 x 5 = 21.1; 23 - 18 = 5 gears are the end */
    {"a trial above as good as golden is high", {NULL}, {4000, 200},
     {{215, {4000, 190}}, {190, BROKEN}, {265, {4000, 190}}, {205, {4000, 189}}},
     205},
    {"a trial below as good as golden is golden", {NULL}, {4000, 200},
     {{215, {4000, 190}}, {190, BROKEN}, {265, {4000, 195}}, {205, {4000, 190}}},
     205},
    /* 23 + 0.382 x 27 = 33.3; 33 + 0.382 x 17 = 39.5; 39 + 0.382 x 11 = 43.2; 33 + 0.618 x 6 = 36.7;
     * 39 + 0.382 x 4 = 40.5 */
    {"the section goes up where the trial above is better", {NULL}, {4000, 200},
     {{215, {4000, 199}}, {190, BROKEN}, {265, {4000, 198}}, {295, {4000, 190}}, {315, {4000, 195}},
      {285, {4000, 192}}, {305, {4000, 191}}},
     295},
    /* objectives 1.02, 1.03, 1.015, 1.01, and 1 of the default limit */
    {"the default limit may be the best", {NULL}, {4080, 350},
     {{320, {4000, 350}}, {315, {4000, 354}}, {330, {4020, 350}}, {340, {4040, 350}}},
     350},
    /* s = 1.040 and 1.049 */
    {"energy is power by time", {NULL}, {5000, 350},
     {{320, {4808, 300}}, {315, {4766, 297}}, {310, BROKEN}},
     315},
    {"EDP is power by time squared", {"objective", "edp", NULL}, {5000, 350},
     {{320, {4808, 300}}, {315, {4766, 297}}, {330, BROKEN}},
     350},
    {"EDP still saves", {"objective", "edp", NULL}, {5000, 350},
     {{320, {4808, 300}}, {315, {4766, 294}}, {310, BROKEN}},
     315},
    {"ED2P is power by time cubed", {"objective", "ed2p", NULL}, {5000, 350},
     {{320, {4808, 300}}, {315, {4766, 294}}, {330, BROKEN}},
     350},
};
/* clang-format on */

static void follow(const course *c, bool counter, int period_ms) {
    script said = {.c = c};
    node *n = open_node(by_script, &said, c->settings, period_ms);
    n->no_counter = !counter;
    const int trials = trials_of(c);
    const double end_s = (double)n->first_ns * 1e-9 + 36 + 4 * trials;
    until(n, end_s);
    char text[512];
    size_t used = 0;
    for (int i = BASE_WINDOWS; i < n->sets; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %g", n->limits[i]);
    const bool over = c->kept_w > 0;
    FL_CHECK(!said.wrong && n->sets == BASE_WINDOWS + trials + 1 && n->limit_w == (over ? c->kept_w : 345),
             "%s: limits%s", c->rule, text);
    FL_CHECK((probe(n, "state") == DONE) == over, "%s: state %g", c->rule, probe(n, "state"));
    if (over) {
        FL_CHECK(fabs(probe(n, "optimisation_s") - (36 + 4 * trials)) < 1e-6, "%s: %g s", c->rule,
                 probe(n, "optimisation_s"));
        FL_CHECK(
            probe(n, "loss_pct") <
                100 * strtod(c->settings[0] && strcmp(c->settings[0], "con_perf") == 0 ? c->settings[1] : "0.05", NULL),
            "%s: loss %g %%", c->rule, probe(n, "loss_pct"));
        until(n, end_s + 30);
        FL_CHECK(n->sets == BASE_WINDOWS + trials + 1, "%s: it goes on", c->rule);
    }
    FL_CHECK(fl_instance_counts_of(n->in).faults == 0 && fl_instance_counts_of(n->in).clamped == 0, "%s: faults",
             c->rule);
    close_node(n);
}

static void test_courses(void) {
    for (size_t i = 0; i < sizeof courses / sizeof *courses; i++)
        follow(&courses[i], true, 100);
}

/* Where a board has no counter of energy, the mean of its power readings does. */
static void test_without_counter(void) {
    for (size_t i = 0; i < sizeof courses / sizeof *courses; i++)
        follow(&courses[i], false, 100);
}

/* ---- what goes before the search ----------------------------------------------------------------------------------
 */

typedef struct guess {
    response base[BASE_WINDOWS];
    double limit_w;
} guess;

static response by_guess(void *world, int window, double limit_w) {
    (void)limit_w;
    const guess *g = world;
    return g->base[window < BASE_WINDOWS ? window : 0];
}

/* The gear nearest the base power, d, gives the guess: 50 - 51 max(0.1, 0.85 (51 - d) / 51), rounded down. */
static void test_first_guess(void) {
    static const double row[][2] = {{90, 130},    {102.4, 130}, {102.6, 135}, {150, 175}, {200, 215}, {300, 300},
                                    {302.4, 300}, {302.6, 305}, {320, 320},   {330, 320}, {350, 320}, {420, 320}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        guess g;
        for (int k = 0; k < BASE_WINDOWS; k++)
            g.base[k] = (response){4000, row[i][0]};
        node *n = open_node(by_guess, &g, NULL, 100);
        until(n, 36.1);
        FL_CHECK(n->sets == 5 && n->limit_w == row[i][1], "%g W: the first trial is %g W, expected %g", row[i][0],
                 n->limit_w, row[i][1]);
        close_node(n);
    }
}

/* Four windows, summed, each 1 s after a reset; the limits set go with the first: at 16, 21, 26, 31 and 36 s. */
static void test_baseline(void) {
    guess g = {.base = {{2000, 100}, {6000, 500}, {3000, 250}, {5000, 350}}, .limit_w = 300};
    static const double at[] = {16.1, 21.1, 26.1, 31.1, 36.1};
    node *n = open_node(by_guess, &g, NULL, 100);
    for (int i = 0; i < 5; i++) {
        until(n, at[i] - 0.15);
        FL_CHECK(n->sets == i, "%g s: %d limits set", now_s(n), n->sets);
        step_node(n);
        FL_CHECK(n->sets == i + 1 && n->limit_w == (i < 4 ? FL_DEFAULT : g.limit_w), "%g s: %g W, %d limits set",
                 now_s(n), n->limit_w, n->sets);
    }
    FL_CHECK(probe(n, "state") == RAISE && probe(n, "base_rate") == 1000, "state %g, %g kernels/s", probe(n, "state"),
             probe(n, "base_rate"));
    close_node(n);
}

static response nothing_runs(void *world, int window, double limit_w) {
    (void)limit_w;
    return (response){window < *(int *)world ? 0 : 4000, 300};
}

/* Without a kernel in all four windows there is no rate to lose: four new ones. */
static void test_no_kernels(void) {
    int from = 100;
    node *n = open_node(nothing_runs, &from, NULL, 100);
    until(n, 100);
    FL_CHECK(probe(n, "state") < RAISE && n->limit_w == FL_DEFAULT && n->sets > 10, "state %g, %g W", probe(n, "state"),
             n->limit_w);
    close_node(n);
    from = 3;
    n = open_node(nothing_runs, &from, NULL, 100);
    until(n, 36.1);
    FL_CHECK(probe(n, "state") == RAISE && probe(n, "base_rate") == 250, "state %g, %g kernels/s", probe(n, "state"),
             probe(n, "base_rate"));
    close_node(n);
}

static void test_no_limits(void) {
    guess g = {.base = {{4000, 300}, {4000, 300}, {4000, 300}, {4000, 300}}};
    static const char *const coarse[] = {"step_w", "300", NULL};
    node *n = open_node(by_guess, &g, coarse, 100);
    until(n, 60);
    FL_CHECK(n->sets == 0 && probe(n, "held") == 1, "%g W where there is one gear", n->limit_w);
    close_node(n);
}

static void test_too_many_gears(void) {
    static const fl_gpu_facts board = {.name = "gpu", .power_min_w = 100, .power_max_w = 700, .power_default_w = 700};
    const fl_facts facts = {.gpu_count = 1, .gpu = &board, .host = {.name = "host"}};
    const fl_setting setting = {.name = "step_w", .text = "1"};
    const fl_layer layer = {.origin = "test", .setting = &setting, .count = 1};
    const fl_instance_options o = {.policy = &fl_policy_depo, .facts = &facts, .layer = &layer, .layer_count = 1};
    fl_instance *in = NULL;
    fl_diag d = {0};
    FL_CHECK(fl_instance_open(&in, &o, &d) == FL_BAD_INPUT && strstr(d.message, "512 gears"), "%s", d.message);
}

/* ---- a second implementation --------------------------------------------------------------------------------------
 */

/* Less power than the program wants costs it time; rates and powers are noisy, or not at all. Some slow down for
 * another reason once the baseline is measured. */
typedef struct world {
    uint64_t seed;
    double kernels, watts, share, noise, power_noise, drift;
} world;

static world draw_world(uint64_t seed) {
    fl_random r = fl_random_seed(seed, 0);
    world w = {.seed = seed};
    w.kernels = floor(exp(log(20) + fl_random_unit(&r) * log(10000)));
    w.watts = 90 + 300 * fl_random_unit(&r);
    w.share = seed % 4 == 0 ? 0 : 1.2 * fl_random_unit(&r) * fl_random_unit(&r);
    w.drift = seed % 10 == 0 ? 0.5 * fl_random_unit(&r) : 0;
    w.noise = seed % 3 == 0 ? 0 : 0.05 * fl_random_unit(&r);
    w.power_noise = seed % 3 == 0 ? 0 : 0.03 * fl_random_unit(&r);
    return w;
}

static response of_world(void *at, int window, double limit_w) {
    const world *w = at;
    fl_random r = fl_random_seed(w->seed, 1 + (uint64_t)window);
    const double limit = limit_w == FL_DEFAULT ? 350 : limit_w;
    const double slow = w->watts > limit ? pow(w->watts / limit, w->share) : 1;
    const double kernels =
        floor(w->kernels * (window < BASE_WINDOWS ? 1 : 1 - w->drift) / slow * (1 + w->noise * fl_random_normal(&r)));
    const double watts = fmin(w->watts, limit) * (1 + w->power_noise * fl_random_normal(&r));
    return (response){fmax(kernels, window < BASE_WINDOWS), floor(watts * 256) / 256}; /* 4 s of it: exact joules */
}

typedef struct asked {
    world *w;
    int window;
} asked;

static rd_window ask(void *at, int gear) {
    asked *a = at;
    const response r = of_world(a->w, a->window++, gear == RD_UNKNOWN ? FL_DEFAULT : rd_watts(gear));
    return (rd_window){4, 4 * r.watts, r.kernels};
}

static void test_reference(void) {
    static const char *const bounds[] = {"0.05", "0.02", "0.1"}, *const objectives[] = {"energy", "edp", "ed2p"};
    int over = 0, trials = 0;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        world w = draw_world(seed);
        asked a = {.w = &w};
        const size_t bound = seed % 5 < 3 ? 0 : seed % 5 - 2, objective = seed % 7 < 5 ? 0 : seed % 7 - 4;
        rd_run r = {
            .measure = ask, .world = &a, .bound = strtod(bounds[bound], NULL), .power_of_s = 1 + (int)objective};
        rd_search(&r);
        const char *const settings[] = {"con_perf", bounds[bound], "objective", objectives[objective], NULL};
        node *n = open_node(of_world, &w, settings, 500);
        until(n, 0.5 + 36 + 4 * (r.trials - (r.kept == RD_UNKNOWN)));
        bool same = n->sets == BASE_WINDOWS + r.trials + (r.kept != RD_UNKNOWN);
        for (int i = 0; same && i < r.trials; i++)
            same = n->limits[BASE_WINDOWS + i] == rd_watts(r.tried[i]);
        same = same && (probe(n, "state") == DONE) == (r.kept != RD_UNKNOWN) &&
               (r.kept == RD_UNKNOWN || n->limit_w == rd_watts(r.kept));
        FL_CHECK(same, "seed %llu: %d limits set, the last %g W; the reference tries %d and keeps %g W",
                 (unsigned long long)seed, n->sets - BASE_WINDOWS, n->limit_w, r.trials, rd_watts(r.kept));
        over += r.kept != RD_UNKNOWN;
        trials += r.trials;
        close_node(n);
    }
    FL_CHECK(over > 500 && over < 1000, "%d searches of 1,000 end: too alike to say anything", over);
    printf(" seeds 1 to 1000, %d trials, %d searches end ", trials, over);
}

/* The courses of some of these worlds as they are kept: neither implementation may change, not even both alike. */
static void test_golden(void) {
    char text[4096];
    size_t used = (size_t)snprintf(text, sizeof text, "seed,limits_w\n");
    for (uint64_t seed = 1; seed <= 20; seed++) {
        world w = draw_world(seed);
        node *n = open_node(of_world, &w, NULL, 500);
        until(n, 90);
        used += (size_t)snprintf(text + used, sizeof text - used, "%llu,", (unsigned long long)seed);
        for (int i = BASE_WINDOWS; i < n->sets; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%g ", n->limits[i]);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\n", probe(n, "state") == DONE ? "kept" : "on");
        close_node(n);
    }
    fl_golden_check("depo.csv", text);
}

/* ---- readings that go ---------------------------------------------------------------------------------------------
 */

static void lose(node *n, int what, bool lost) {
    bool *const of[] = {&n->lost, &n->no_power, &n->no_kernels};
    *of[what] = lost;
}

/* A window waits for readings that are gone for less than a second, and counts what they missed. */
static void test_short_gap(void) {
    static const course *c = &courses[0];
    for (int what = 0; what < 3; what++) {
        script said = {.c = c};
        node *n = open_node(by_script, &said, NULL, 100);
        for (int i = 0; i < 8; i++) {
            until(n, 18.1 + 5 * i - (i > 3 ? i - 3 : 0)); /* within a window */
            lose(n, what, true);
            until(n, now_s(n) + 0.75);
            lose(n, what, false);
        }
        until(n, 60);
        FL_CHECK(!said.wrong && n->limit_w == c->kept_w, "%d: %g W", what, n->limit_w);
        close_node(n);
    }
}

/* Gone for longer, within a window: the default limit, and all anew once they are back. What is kept stays. */
static void test_lost(void) {
    static const double when[] = {0.5, 16.5, 19, 38, 60};
    guess g = {.base = {{4000, 300}, {4000, 300}, {4000, 300}, {4000, 300}}};
    for (int what = 0; what < 3; what++)
        for (size_t i = 0; i < sizeof when / sizeof *when; i++) {
            node *n = open_node(by_guess, &g, NULL, 100);
            n->now = n->between = g.base[0]; /* the search begins anew at another time */
            until(n, when[i]);
            const bool done = probe(n, "state") == DONE;
            const double limit = n->limit_w;
            const int sets = n->sets;
            lose(n, what, true);
            until(n, when[i] + 0.5);
            FL_CHECK(n->limit_w == limit && probe(n, "held") == 1, "lost at %g s: %g W, held %g", when[i], n->limit_w,
                     probe(n, "held"));
            until(n, when[i] + 30);
            FL_CHECK(n->limit_w == (done ? limit : FL_DEFAULT) && n->sets <= sets + 1, "lost at %g s: %g W later",
                     when[i], n->limit_w);
            lose(n, what, false);
            until(n, when[i] + 100);
            FL_CHECK(probe(n, "state") == DONE && n->limit_w > 0, "back: state %g, %g W", probe(n, "state"),
                     n->limit_w);
            close_node(n);
        }
}

/* A trial in which no kernel ends breaks any bound. */
static void test_pause(void) {
    static const course c = {"no kernel", {NULL}, {4000, 350}, {{320, {0, 80}}, {335, {4000, 300}}}, 0};
    script said = {.c = &c};
    node *n = open_node(by_script, &said, NULL, 100);
    until(n, 44.1);
    FL_CHECK(!said.wrong && n->limits[BASE_WINDOWS + 1] == 335, "%g W after a pause", n->limits[BASE_WINDOWS + 1]);
    close_node(n);
}

FL_SUITE("depo", {"courses", test_courses}, {"without a counter of energy", test_without_counter},
         {"first guess", test_first_guess}, {"baseline", test_baseline}, {"no kernels", test_no_kernels},
         {"no limits", test_no_limits}, {"too many gears", test_too_many_gears}, {"reference", test_reference},
         {"golden", test_golden}, {"a short gap", test_short_gap}, {"readings lost", test_lost},
         {"a pause", test_pause})
