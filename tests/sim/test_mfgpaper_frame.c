/* MF-GPOEO, the framework (Algorithms 2 and 7) over a GPU made by hand: what is measured under which clocks, when the
 * search ends, what is held, what lost readings do. */
#include "tests/support/golden.h"
#include "tests/support/mfgpoeo_node.h"

#include <stdarg.h>

enum { WAITS, BASELINE, MEMORY, SEARCH, STABLE, HELD };

static const mx_kernel loop[] = {{0, 0, 900, 50}, {1, 0, 400, 20}, {2, 0, 1500, 100}, {0, 0, 900, 30}};

static mx_node *open_loop(uint32_t gpus, const char *const *settings, double sm_share, double mem_share) {
    mx_node *n = mx_open(&fl_policy_mfgpaper_extended, gpus, settings);
    for (uint32_t i = 0; i < gpus; i++) {
        n->gpu[i].kernel = loop;
        n->gpu[i].kernel_count = 4;
        n->gpu[i].sm_share = sm_share;
        n->gpu[i].mem_share = mem_share;
    }
    return n;
}

/* ---- one optimisation as text ---- */

typedef struct course {
    char text[4096];
    size_t used;
} course;

static void add(course *c, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int wrote = vsnprintf(c->text + c->used, sizeof c->text - c->used, format, list);
    va_end(list);
    c->used += wrote > 0 ? (size_t)wrote : 0;
    if (c->used >= sizeof c->text)
        c->used = sizeof c->text - 1;
}

/* A letter for each measurement, and the clocks that were set: "B" baseline, "M5001", "S118", "=99@9501 stable". */
static void follow(mx_node *n, course *c, double until_s) {
    double baselines = mx_probe(n, 0, "baselines"), adjustments = mx_probe(n, 0, "adjustments");
    double last_mem = FL_DEFAULT;
    int before = (int)mx_probe(n, 0, "state");
    double gear = mx_probe(n, 0, "sm_gear");
    while (mx_now_s(n) < until_s) {
        mx_step(n);
        const int state = (int)mx_probe(n, 0, "state");
        if (mx_probe(n, 0, "baselines") != baselines) {
            baselines = mx_probe(n, 0, "baselines");
            add(c, "B%g ", mx_probe(n, 0, "window_s"));
        }
        const double mem = mx_probe(n, 0, "mem_set_mhz");
        if (state == MEMORY && (before != MEMORY || mem != last_mem))
            add(c, "M%g ", mem);
        last_mem = mem;
        if (mx_probe(n, 0, "adjustments") > adjustments)
            add(c, "S%g ", gear);
        adjustments = mx_probe(n, 0, "adjustments");
        gear = mx_probe(n, 0, "sm_gear");
        if (state == STABLE && before != STABLE)
            add(c, "=%g@%g ", gear, mem);
        before = state;
    }
}

static void check_course(const char *name, const char *const *settings, double sm_share, double mem_share,
                         double util_mem, double dynamic_w, const char *expected) {
    mx_node *n = open_loop(1, settings, sm_share, mem_share);
    course c = {.used = 0};
    n->gpu[0].util_mem = util_mem;
    n->gpu[0].dynamic_w = dynamic_w;
    mx_step(n);
    follow(n, &c, 200);
    FL_CHECK(strcmp(c.text, expected) == 0, "%s:\n      %s\n      expected\n      %s", name, c.text, expected);
    FL_CHECK(fl_instance_counts_of(n->in).faults == 0 && fl_instance_counts_of(n->in).snapped == 0, "%s: faults", name);
    mx_close(n);
}

/* The bound is 4.9 % (a thousand kernels a second). sm_share 1: 1965 MHz (gear 117) costs 4.6 %, 1950 MHz 5.4 %; 0.5:
 * gear 111 costs 4.9 %, with the gaps a little less. */
static void test_courses(void) {
    static const char *const
        printed[] = {"pid", "printed", NULL},
        *const list[] = {"mem_mhz", "810/405", NULL}, *const often[] = {"refresh_every", "2", NULL},
        *const early[] = {"forced_early_s", "40", NULL}, *const worth[] = {"mem_worth", "10", NULL},
        *const power[] = {"objective", "power", NULL}, *const edp[] = {"objective", "edp", NULL},
        *const greedy[] = {"mem_worth", "0", NULL}, *const edp_or[] = {"objective", "edp", "rollback", "or", NULL},
        *const many[] = {"confirm", "1", "forced_after", "20", "refresh_every", "30", NULL},
        *const mean[] = {"confirm", "1", "forced_after", "20", "refresh_every", "30", "stable_at", "mean", NULL},
        *const flat_mem[] = {"mem_worth", "0", "search_again", "0", NULL},
        *const wide[] = {"confirm",   "1",    "forced_after", "20",  "refresh_every", "30",
                         "stable_at", "mean", "th_ctrl",      "1e9", "stable_gears",  "50",
                         NULL},
        *const next[] = {"confirm", "1",   "forced_after", "20", "refresh_every", "30",   "stable_at", "mean",
                         "th_ctrl", "1e9", "stable_gears", "50", "trace_gear",    "next", NULL},
        *const seldom[] = {"swing", "4", NULL},
        *const narrow[] = {"forced_after", "9", "refresh_every", "30", "stable_gears", "0", NULL};
    check_course("bound by the SM clock", NULL, 1, 0, 30, 200, "B8 B8 S118 S114 S121 S107 S123 B8 S118 =118@-1 ");
    check_course("half", NULL, 0.5, 0, 30, 200, "B8 B8 S118 S108 S115 S108 S114 B8 S114 =114@-1 ");
    check_course("flat", NULL, 0.02, 0, 30, 200, "B8 B8 S118 S102 S79 S56 S42 B8 S42 =42@-1 ");
    check_course("memory clock irrelevant", NULL, 0.5, 0, 20, 200,
                 "B8 B8 M5001 M810 S81 S107 S108 B8 S112 S109 S112 =112@810 ");
    check_course("memory in use: not tried", NULL, 0.5, 0, 20.5, 200,
                 "B8 B8 S118 S108 S115 S108 S114 B8 S114 =114@-1 ");
    check_course("memory clock costs a little", NULL, 0.5, 0.01, 10, 200,
                 "B8 B8 M5001 M810 S86 S109 S110 B8 S115 S110 S115 =115@5001 ");
    check_course("memory clock costs too much", NULL, 0.5, 0.1, 10, 200,
                 "B8 B8 M5001 S118 S108 S115 S108 B8 S114 S114 =114@-1 ");
    check_course("memory clock past the bound, were it worth it", greedy, 0.5, 0.1, 10, 200,
                 "B8 B8 M5001 S118 S108 S115 S108 B8 S114 S114 =114@-1 ");
    check_course("memory clock not worth what it costs", worth, 0.5, 0.02, 10, 200,
                 "B8 B8 M5001 S118 S108 S115 S108 B8 S114 S114 =114@-1 ");
    check_course("a list", list, 0.5, 0, 10, 200, "B8 B8 M810 M405 S81 S107 S108 B8 S112 S109 S112 =112@405 ");
    check_course("objective rises at once", NULL, 0.5, 0, 30, 1, "B8 B8 S118 S108 S118 S107 S118 =-1@-1 ");
    check_course("power", power, 0.1, 0, 30, 20, "B8 B8 S118 S103 S90 S84 S80 B8 S80 =80@-1 ");
    check_course("EDP rises below", edp, 0.1, 0, 30, 20, "B8 B8 S118 S103 S90 S84 S80 B8 S90 =90@-1 ");
    check_course("EDP rises below, or", edp_or, 0.1, 0, 30, 20, "B8 B8 S118 S103 S90 S84 S90 =90@-1 ");
    check_course("as printed", printed, 0.5, 0, 30, 200, "B8 B8 S118 S118 S118 S118 S118 =118@-1 ");
    check_course("refreshed often", often, 0.5, 0, 30, 200, "B8 B8 S118 S108 B8 S115 S108 B8 S114 S114 =114@-1 ");
    check_course("four after 40 s", early, 0.5, 0, 30, 200, "B8 B8 S118 S108 S115 S108 S115 =115@-1 ");
    check_course("stable by itself", many, 0.3, 0, 30, 200, "B8 B8 S118 S105 S104 S103 =103@-1 ");
    check_course("stable by itself, at the mean", mean, 0.3, 0, 30, 200, "B8 B8 S118 S105 S104 S103 =104@-1 ");
    check_course("gears too far apart", narrow, 0.3, 0, 30, 200,
                 "B8 B8 S118 S105 S104 S103 S102 S103 S102 S103 =103@-1 ");
    check_course("low memory clock that uses up the bound", greedy, 1, 0.045, 10, 240,
                 "B8 B8 M5001 M810 S105 S123 S105 B8 S123 S118 S114 S121 B8 S107 S118 =-1@5001 ");
    check_course("the same, kept without a second search", flat_mem, 1, 0.045, 10, 240,
                 "B8 B8 M5001 M810 S105 S123 S105 B8 S123 S105 =-1@5001 ");
    check_course("K_D from 20 points on", seldom, 0.5, 0, 30, 200, "B8 B8 S118 S108 S111 S110 S111 =111@-1 ");
    check_course("stable by itself: wide gears, the mean of those measured", wide, 0.3, 0, 30, 200,
                 "B8 B8 S118 S105 S104 =109@-1 ");
    check_course("the same of those set next", next, 0.3, 0, 30, 200, "B8 B8 S118 S105 S104 =104@-1 ");
}

static void test_golden(void) {
    static const struct {
        double sm_share, mem_share, util_mem, dynamic_w;
    } row[] = {{1, 0, 30, 200}, {0.5, 0, 30, 200}, {0.1, 0.02, 10, 200}, {0.3, 0, 10, 100}, {0.02, 0.3, 5, 200}};
    static char text[16384];
    size_t used = (size_t)snprintf(text, sizeof text, "sm_share,mem_share,util_mem_pct,dynamic_w,course\n");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        mx_node *n = open_loop(1, NULL, row[i].sm_share, row[i].mem_share);
        course c = {.used = 0};
        n->gpu[0].util_mem = row[i].util_mem;
        n->gpu[0].dynamic_w = row[i].dynamic_w;
        mx_step(n);
        follow(n, &c, 200);
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%g,%g,%g,%g,%s%g s\n", row[i].sm_share, row[i].mem_share,
                             row[i].util_mem, row[i].dynamic_w, c.text, mx_probe(n, 0, "optimisation_s"));
        mx_close(n);
    }
    fl_golden_check("mfgpaper.csv", text);
}

/* ---- the baseline ---- */

/* The first window is 4 s; it is doubled while the database does not cover what is measured. */
static void test_baseline(void) {
    mx_node *n = open_loop(1, NULL, 0.5, 0);
    n->gpu[0].kernel_count = 0;
    mx_until(n, 5);
    FL_CHECK(mx_probe(n, 0, "state") == WAITS && mx_probe(n, 0, "baselines") == 0, "measures before a kernel has run");
    n->gpu[0].kernel_count = 4;
    FL_CHECK(mx_wait(n, 0, "state", BASELINE, 2) && mx_now_s(n) > 6, "starts at %g s, not 1 s after the first kernel",
             mx_now_s(n));
    const double begun = mx_now_s(n);
    FL_CHECK(mx_wait(n, 0, "baselines", 1, 5) && fabs(mx_now_s(n) - begun - 4.3) < 0.11, "first window: %g s",
             mx_now_s(n) - begun);
    FL_CHECK(mx_probe(n, 0, "window_s") == 8 && mx_probe(n, 0, "coverage") == 0, "window %g s",
             mx_probe(n, 0, "window_s"));
    FL_CHECK(mx_wait(n, 0, "baselines", 2, 9) && fabs(mx_now_s(n) - begun - 12.6) < 0.21, "second: %g s",
             mx_now_s(n) - begun);
    FL_CHECK(mx_probe(n, 0, "state") == SEARCH && mx_probe(n, 0, "coverage") == 1 && mx_probe(n, 0, "window_s") == 8,
             "window %g s", mx_probe(n, 0, "window_s"));
    FL_CHECK(mx_probe(n, 0, "kernel_kinds") == 3 && mx_probe(n, 0, "gap_kinds") == 4, "%g kinds, %g gaps",
             mx_probe(n, 0, "kernel_kinds"), mx_probe(n, 0, "gap_kinds"));
    mx_close(n);
}

/* A record of a kind that the sample does not describe is passed over: what lies behind the kinds is not read. */
static void test_unknown_kinds(void) {
    for (uint32_t known = 0; known <= 3; known++) {
        mx_node *n = open_loop(1, NULL, 0.5, 0);
        n->s.kind_count = known;
        mx_until(n, 3);
        FL_CHECK(mx_probe(n, 0, "kernel_kinds") == known, "of 3 kinds %u are described, %g are in the table", known,
                 mx_probe(n, 0, "kernel_kinds"));
        mx_close(n);
    }
}

/* The search starts no higher than the clock that the default reaches, or the next one of the ladder: above it nothing
 * would change. */
static void test_reached(void) {
    static const struct {
        double reach_mhz, first_mhz;
    } rows[] = {{1500, 1500}, {1486, 1500}, {1485, 1485}, {600, 600}};
    mx_node *free = open_loop(1, NULL, 0.5, 0);
    CU_ASSERT_FATAL(mx_wait(free, 0, "state", SEARCH, 30));
    const double first = free->gpu[0].sm;
    FL_CHECK(first > 1500, "with nothing in its way the search starts at %g MHz", first);
    mx_close(free);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mx_node *n = open_loop(1, NULL, 0.5, 0);
        n->gpu[0].reach_mhz = rows[i].reach_mhz;
        FL_CHECK(mx_wait(n, 0, "state", SEARCH, 30) && n->gpu[0].sm == rows[i].first_mhz,
                 "the default reaches %g MHz, the search starts at %g, expected %g", rows[i].reach_mhz, n->gpu[0].sm,
                 rows[i].first_mhz);
        mx_close(n);
    }
}

/* Kinds that never come back: the baseline is never complete, the default clocks stay, windows reach 20 s. */
static void test_uncovered(void) {
    mx_kernel fresh[4] = {{0, 0, 900, 50}, {1, 0, 400, 20}, {2, 0, 1500, 100}, {3, 0, 900, 30}};
    mx_node *n = open_loop(1, NULL, 0.5, 0);
    n->gpu[0].kernel = fresh;
    while (mx_now_s(n) < 150) {
        mx_step(n);
        for (uint32_t k = 0; k < 4 && n->s.step % 50 == 0; k++)
            n->kind[k].name_id += 1000;
    }
    FL_CHECK(mx_probe(n, 0, "state") == BASELINE && mx_probe(n, 0, "window_s") == 20 && n->gpu[0].sm == FL_DEFAULT,
             "state %g, window %g s, clock %g", mx_probe(n, 0, "state"), mx_probe(n, 0, "window_s"), n->gpu[0].sm);
    mx_close(n);
}

/* A new kind, half of the time, in the midst of the search: the baseline is measured anew, and the search goes on where
 * it was. */
static void test_outdated(void) {
    mx_node *n = open_loop(1, NULL, 0.5, 0);
    FL_CHECK(mx_wait(n, 0, "adjustments", 2, 40), "no second adjustment");
    const double gear = mx_probe(n, 0, "sm_gear"), baselines = mx_probe(n, 0, "baselines");
    for (uint32_t k = 0; k < 1; k++)
        n->kind[k].name_id += 1000;
    FL_CHECK(mx_wait(n, 0, "state", BASELINE, 10) && mx_probe(n, 0, "coverage") < 0.75 && n->gpu[0].sm == FL_DEFAULT,
             "no baseline; coverage %g", mx_probe(n, 0, "coverage"));
    FL_CHECK(mx_wait(n, 0, "state", SEARCH, 40) && mx_probe(n, 0, "sm_gear") == gear &&
                 mx_probe(n, 0, "baselines") == baselines + 2 && mx_probe(n, 0, "adjustments") == 2,
             "gear %g, %g baselines, %g adjustments", mx_probe(n, 0, "sm_gear"), mx_probe(n, 0, "baselines"),
             mx_probe(n, 0, "adjustments"));
    mx_close(n);
}

/* The best within the bound of half a load is gear 111; the derivative makes the controller swing about it, and five
 * gears are measured at most. */
static bool is_near_best(double mhz) { return mhz >= 210 + 15 * 111 && mhz <= 210 + 15 * 115; }

static const mx_kernel longer[] = {{0, 0, 1100, 60}, {1, 0, 500, 24}, {2, 0, 1800, 120}, {0, 0, 1100, 36}};

/* The same kinds take a fifth longer from the midst of the search on, as with larger input: the database is of other
 * work, and the search goes on with a new one. */
static void test_longer(void) {
    mx_node *n = open_loop(1, NULL, 0.5, 0);
    FL_CHECK(mx_wait(n, 0, "adjustments", 2, 40), "no second adjustment");
    n->gpu[0].kernel = longer;
    FL_CHECK(mx_wait(n, 0, "state", STABLE, 150) && is_near_best(n->gpu[0].sm) && mx_probe(n, 0, "baselines") <= 7,
             "state %g, %g MHz, %g baselines", mx_probe(n, 0, "state"), n->gpu[0].sm, mx_probe(n, 0, "baselines"));
    mx_close(n);
}

/* As long as that in the next phase, or longer by less than what shows that a kind varies: the index is that of the
 * phase's own baseline. */
static void longer_phase(const mx_kernel *kernel, double busy_us, double gap_us) {
    mx_node *n = open_loop(1, NULL, 0.5, 0);
    FL_CHECK(mx_wait(n, 0, "state", STABLE, 100), "not stable");
    mx_until(n, mx_now_s(n) + 20);
    n->gpu[0].kernel = kernel;
    n->gpu[0].dynamic_w = 20;
    n->gpu[0].util_mem = 3;
    FL_CHECK(mx_wait(n, 0, "state", BASELINE, 16), "no restart");
    FL_CHECK(mx_wait(n, 0, "state", STABLE, 200), "not stable again");
    const double slow = mx_slowdown(&n->gpu[0]), expected = (busy_us * slow + gap_us) / (busy_us + gap_us);
    FL_CHECK(n->gpu[0].mem == 810 && fabs(mx_probe(n, 0, "index") - expected) < 1e-3, "%g MHz, index %g, expected %g",
             n->gpu[0].mem, mx_probe(n, 0, "index"), expected);
    mx_close(n);
}

static void test_longer_phase(void) {
    static const mx_kernel slightly[] = {{0, 0, 922, 50}, {1, 0, 410, 20}, {2, 0, 1537, 100}, {0, 0, 922, 30}};
    longer_phase(longer, 4500, 240);
    longer_phase(slightly, 3791, 200);
}

/* Two comparisons of three fail: it is none of work that never compares, and the search ends. */
static void test_seldom_comparable(void) {
    static const char *const three[] = {"give_up", "3", NULL};
    mx_node *n = open_loop(1, three, 0.5, 0);
    int trials = 0;
    double before = BASELINE, adjustments = 0;
    mx_step(n);
    while (mx_now_s(n) < 900 && mx_probe(n, 0, "state") != STABLE) {
        mx_step(n);
        const double state = mx_probe(n, 0, "state");
        trials += state == SEARCH && (before != SEARCH || mx_probe(n, 0, "adjustments") > adjustments);
        n->gpu[0].kernel = state == SEARCH && trials % 3 ? longer : loop;
        adjustments = mx_probe(n, 0, "adjustments");
        before = state;
    }
    FL_CHECK(trials > 6 && mx_probe(n, 0, "state") == STABLE && n->gpu[0].sm > 0, "%d trials, state %g, %g MHz", trials,
             mx_probe(n, 0, "state"), n->gpu[0].sm);
    mx_close(n);
}

/* Work that is never like before, but for the times when the baseline is taken: after give_up comparisons the default
 * clocks stay, without records, until the load changes. */
static void test_incomparable(void) {
    static const char *const three[] = {"give_up", "3", NULL};
    mx_node *n = open_loop(1, three, 0.5, 0);
    int searches = 0;
    double before = BASELINE;
    mx_step(n);
    while (mx_now_s(n) < 300 && mx_probe(n, 0, "state") != STABLE) {
        mx_step(n);
        const double state = mx_probe(n, 0, "state");
        n->gpu[0].kernel = state == SEARCH ? longer : loop;
        searches += state == SEARCH && before != SEARCH;
        before = state;
    }
    FL_CHECK(searches == 3 && mx_probe(n, 0, "state") == STABLE && n->gpu[0].sm == FL_DEFAULT && n->gpu[0].records == 0,
             "%d searches, state %g, %g MHz", searches, mx_probe(n, 0, "state"), n->gpu[0].sm);
    mx_until(n, mx_now_s(n) + 20);
    n->gpu[0].dynamic_w = 0;
    n->gpu[0].util_mem = 3;
    FL_CHECK(mx_wait(n, 0, "state", BASELINE, 16) && n->gpu[0].records == 1, "no restart");
    mx_close(n);
}

/* A window at the default clocks that differs from the one before is not one to compare with. */
static void test_self(void) {
    mx_node *n = open_loop(1, NULL, 0.5, 0);
    FL_CHECK(mx_wait(n, 0, "baselines", 1, 10), "no baseline");
    n->gpu[0].sm = 1950; /* 2.6 % longer, as if something else had held the clock */
    FL_CHECK(mx_wait(n, 0, "baselines", 2, 20) && mx_probe(n, 0, "state") == BASELINE &&
                 mx_probe(n, 0, "window_s") == 16,
             "state %g, window %g s", mx_probe(n, 0, "state"), mx_probe(n, 0, "window_s"));
    mx_close(n);
}

/* Half of the kinds stop in the midst of the search: a trial that sees too little of the database's time goes on for
 * another window where that is allowed, but not where it surely breaks the bound. */
static void test_turns(void) {
    static const char *const once[] = {"extend", "1", NULL};
    double took[3];
    for (int k = 0; k < 3; k++) {
        mx_node *n = open_loop(1, k ? NULL : once, 0.3, 0);
        FL_CHECK(mx_wait(n, 0, "adjustments", 1, 60), "no search");
        n->gpu[0].kernel_count = 2;            /* of 3700 us the database holds 1800 of kind 0, 400 of kind 1 */
        n->gpu[0].sm_share = k == 2 ? 1 : 0.3; /* at 1785 MHz: 15 % or 4.5 % */
        const double begun = mx_now_s(n);
        FL_CHECK(mx_wait(n, 0, "adjustments", 2, 60), "the trial does not end");
        took[k] = mx_now_s(n) - begun;
        mx_close(n);
    }
    FL_CHECK(took[0] < 9 && took[1] > 15 && took[1] < 17 && took[2] < 9, "%g s, alone %g s, past the bound %g s",
             took[1], took[0], took[2]);
}

/* A memory clock that doubles the time is seen through after a quarter of the window, one that costs 9 % is not. */
static void test_hopeless(void) {
    static const char *const never[] = {"hopeless", "10", NULL};
    static const struct {
        const char *const *settings;
        double mem_share, least_s, most_s;
    } row[] = {{NULL, 1, 2.2, 2.5}, {never, 1, 8.2, 8.5}, {NULL, 0.1, 8.2, 8.5}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        mx_node *n = open_loop(1, row[i].settings, 0.5, row[i].mem_share);
        n->gpu[0].util_mem = 10;
        FL_CHECK(mx_wait(n, 0, "state", MEMORY, 40), "row %zu: no memory clock is tried", i);
        const double begun = mx_now_s(n);
        FL_CHECK(mx_wait(n, 0, "state", SEARCH, 40), "row %zu: the trial does not end", i);
        const double took = mx_now_s(n) - begun;
        FL_CHECK(took > row[i].least_s && took < row[i].most_s, "row %zu: the trial takes %g s", i, took);
        mx_close(n);
    }
}

/* ---- stable, phases ---- */

static void test_stable(void) {
    mx_node *n = open_loop(1, NULL, 0.5, 0);
    FL_CHECK(mx_wait(n, 0, "state", STABLE, 100) && n->gpu[0].records == 0, "records stay on once stable");
    const double at = mx_now_s(n), clock = n->gpu[0].sm;
    FL_CHECK(fabs(mx_probe(n, 0, "optimisation_s") - at) < 0.2, "optimised in %g s of %g",
             mx_probe(n, 0, "optimisation_s"), at);
    mx_until(n, at + 60);
    FL_CHECK(mx_probe(n, 0, "state") == STABLE && n->gpu[0].sm == clock && mx_probe(n, 0, "distance") < 1e-3,
             "state %g, distance %g", mx_probe(n, 0, "state"), mx_probe(n, 0, "distance"));
    /* 250 W and 30 % of memory become 60 W and 3 %: (0.6 + 0.82) / 5 */
    n->gpu[0].dynamic_w = 0;
    n->gpu[0].util_mem = 3;
    FL_CHECK(mx_wait(n, 0, "state", BASELINE, 16), "no restart; distance %g", mx_probe(n, 0, "distance"));
    FL_CHECK(n->gpu[0].records == 1 && n->gpu[0].sm == FL_DEFAULT && mx_probe(n, 0, "phase_changes") == 1 &&
                 mx_probe(n, 0, "window_s") == 4 && mx_probe(n, 0, "distance") > 0.1,
             "records %g, clock %g", n->gpu[0].records, n->gpu[0].sm);
    FL_CHECK(mx_wait(n, 0, "state", STABLE, 200) && mx_probe(n, 0, "optimisation_s") < at + 1, "state %g, %g s",
             mx_probe(n, 0, "state"), mx_probe(n, 0, "optimisation_s"));
    mx_close(n);
}

/* Vectors are compared with the one before: a load that creeps is none of phase, however far it gets. */
static void test_creeping(void) {
    mx_node *n = open_loop(1, NULL, 0.5, 0);
    FL_CHECK(mx_wait(n, 0, "state", STABLE, 100), "not stable");
    for (int k = 0; k < 12; k++) {
        mx_until(n, mx_now_s(n) + 10);
        n->gpu[0].util_mem *= 0.7;
    }
    FL_CHECK(mx_probe(n, 0, "phase_changes") == 0, "distance %g", mx_probe(n, 0, "distance"));
    mx_close(n);
}

/* A small change of load is none of phase. */
static void test_same_phase(void) {
    mx_node *n = open_loop(1, NULL, 0.5, 0);
    FL_CHECK(mx_wait(n, 0, "state", STABLE, 100), "not stable");
    mx_until(n, mx_now_s(n) + 20);
    n->gpu[0].util_mem = 20; /* (10 / 50) / 5 */
    mx_until(n, mx_now_s(n) + 20);
    FL_CHECK(mx_probe(n, 0, "state") == STABLE, "distance %g", mx_probe(n, 0, "distance"));
    mx_close(n);
}

/* ---- missing readings ---- */

static void test_lost(void) {
    static const double when[] = {3, 8, 20, 30, 45, 70};
    for (size_t i = 0; i < sizeof when / sizeof *when; i++) {
        mx_node *n = open_loop(1, NULL, 0.5, 0);
        mx_until(n, when[i]);
        const bool stable = mx_probe(n, 0, "state") == STABLE;
        const double clock = n->gpu[0].sm;
        n->gpu[0].lost = true;
        n->gpu[0].kernel_count = 0;
        mx_until(n, when[i] + 0.5);
        FL_CHECK(n->gpu[0].sm == clock && mx_probe(n, 0, "held") == 1, "lost at %g s: %g MHz at once, held %g", when[i],
                 n->gpu[0].sm, mx_probe(n, 0, "held"));
        mx_until(n, when[i] + 40);
        FL_CHECK(n->gpu[0].sm == (stable ? clock : FL_DEFAULT) &&
                     mx_probe(n, 0, "state") == (stable ? STABLE : BASELINE),
                 "lost at %g s: %g MHz later, state %g", when[i], n->gpu[0].sm, mx_probe(n, 0, "state"));
        n->gpu[0].lost = false; /* and back */
        n->gpu[0].kernel_count = 4;
        mx_until(n, when[i] + 200);
        FL_CHECK(mx_probe(n, 0, "state") == STABLE && mx_probe(n, 0, "held") == 0 && is_near_best(n->gpu[0].sm),
                 "back at %g s: state %g, %g MHz", when[i] + 40, mx_probe(n, 0, "state"), n->gpu[0].sm);
        mx_close(n);
    }
}

/* What is tried without anybody watching ends a second after the last reading, not a step later. */
static void test_blind_second(void) {
    mx_node *n = open_loop(1, NULL, 0.5, 0);
    CU_ASSERT_FATAL(mx_wait(n, 0, "state", SEARCH, 30));
    const double seen = mx_now_s(n);
    n->gpu[0].lost = true;
    FL_CHECK(mx_wait(n, 0, "state", BASELINE, 10) && n->gpu[0].sm == FL_DEFAULT && fabs(mx_now_s(n) - seen - 1) < 1e-6,
             "last seen at %g s, back at the default at %g", seen, mx_now_s(n));
    mx_close(n);
}

static void test_no_power(void) {
    mx_node *n = open_loop(1, NULL, 0.5, 0);
    n->gpu[0].no_power = true;
    mx_until(n, 60);
    FL_CHECK(mx_probe(n, 0, "state") == BASELINE && n->gpu[0].sm == FL_DEFAULT && mx_probe(n, 0, "held") == 1,
             "state %g without power", mx_probe(n, 0, "state"));
    n->gpu[0].no_power = false;
    FL_CHECK(mx_wait(n, 0, "adjustments", 1, 60) && mx_probe(n, 0, "held") == 0, "no search with power");
    n->gpu[0].no_power = true;
    mx_until(n, mx_now_s(n) + 30);
    FL_CHECK(mx_probe(n, 0, "state") == BASELINE && n->gpu[0].sm == FL_DEFAULT && mx_probe(n, 0, "held") == 1,
             "state %g, %g MHz", mx_probe(n, 0, "state"), n->gpu[0].sm);
    mx_close(n);
}

/* Idle seconds are not measured: the window is longer by them. */
static void test_idle(void) {
    mx_node *n = open_loop(1, NULL, 0.5, 0);
    mx_until(n, 3);
    n->gpu[0].kernel_count = 0;
    mx_until(n, 13);
    n->gpu[0].kernel_count = 4;
    FL_CHECK(mx_wait(n, 0, "baselines", 1, 10) && fabs(mx_now_s(n) - 15.4) < 0.3, "the window ends at %g s",
             mx_now_s(n));
    FL_CHECK(mx_wait(n, 0, "baselines", 2, 10) && fabs(mx_probe(n, 0, "base_objective") - 300) < 1,
             "%g W with idle time", mx_probe(n, 0, "base_objective"));
    mx_close(n);
}

/* ---- several GPUs, short ladders, held clocks ---- */

static void test_gpus_apart(void) {
    mx_node *n = open_loop(2, NULL, 0.5, 0);
    n->gpu[1].sm_share = 1;
    mx_until(n, 100);
    FL_CHECK(n->gpu[0].sm == 210 + 15 * 114 && n->gpu[1].sm == 210 + 15 * 118, "%g and %g MHz", n->gpu[0].sm,
             n->gpu[1].sm);
    n->gpu[1].dynamic_w = 0;
    n->gpu[1].util_mem = 1;
    mx_until(n, 115);
    FL_CHECK(mx_probe(n, 0, "state") == STABLE && mx_probe(n, 0, "phase_changes") == 0 &&
                 mx_probe(n, 1, "phase_changes") == 1,
             "states %g and %g", mx_probe(n, 0, "state"), mx_probe(n, 1, "state"));
    mx_close(n);
}

static void test_one_clock(void) {
    for (uint32_t clocks = 0; clocks < 2; clocks++) {
        mx_node *n = open_loop(1, NULL, 0.5, 0);
        n->gpu_facts[0].sm.count = n->gpu_facts[0].mem.count = clocks;
        n->gpu_facts[0].default_mem_mhz = mx_mem[0];
        n->gpu[0].util_mem = 5;
        mx_until(n, 40);
        FL_CHECK(mx_probe(n, 0, "state") == STABLE && n->gpu[0].sm == FL_DEFAULT && n->gpu[0].mem == FL_DEFAULT,
                 "%u clocks: state %g, %g MHz", clocks, mx_probe(n, 0, "state"), n->gpu[0].sm);
        mx_close(n);
    }
}

static void test_held_clocks(void) {
    static const char *const held[] = {"hold_sm_mhz", "1500", "hold_mem_mhz", "5001", NULL};
    mx_node *n = open_loop(1, held, 0.5, 0.01);
    mx_until(n, 80);
    FL_CHECK(mx_probe(n, 0, "state") == HELD && n->gpu[0].sm == 1500 && n->gpu[0].mem == 5001, "state %g, %g, %g MHz",
             mx_probe(n, 0, "state"), n->gpu[0].sm, n->gpu[0].mem);
    const double slow = mx_slowdown(&n->gpu[0]), expected = (3700 * slow + 200) / 3900;
    FL_CHECK(fabs(mx_probe(n, 0, "index") / expected - 1) < 1e-3, "index %g, expected %g", mx_probe(n, 0, "index"),
             expected);
    mx_close(n);
}

/* Clocks that no ladder has are refused: they would quietly be the default. So are ranges that end below their start;
 * a range of one value is none of these. */
static void test_refused(void) {
    static const struct {
        const char *name, *text;
        int taken;
    } row[] = {{"hold_sm_mhz", "1510", 0}, {"hold_mem_mhz", "5000", 0},  {"mem_mhz", "810/5000", 0},
               {"hold_sm_mhz", "1500", 1}, {"low_start_min", "0.91", 0}, {"low_start_min", "0.9", 1},
               {"forced_after", "3", 0},   {"forced_early", "5", 1}};
    mx_node *n = open_loop(1, NULL, 0.5, 0);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const fl_setting setting = {.name = row[i].name, .text = row[i].text};
        const fl_layer layer = {.origin = "test", .setting = &setting, .count = 1};
        const fl_instance_options o = {
            .policy = &fl_policy_mfgpaper_extended, .facts = &n->facts, .layer = &layer, .layer_count = 1};
        fl_diag d = {0};
        fl_instance *in = NULL;
        const fl_status status = fl_instance_open(&in, &o, &d);
        const int told = strstr(d.message, row[i].name) && strstr(d.message, "must"); /* and not "unknown" */
        FL_CHECK(row[i].taken ? status == FL_OK : status != FL_OK && told, "%s=%s: %s", row[i].name, row[i].text,
                 d.message);
        if (status == FL_OK)
            fl_instance_close(in);
    }
    mx_close(n);
}

FL_SUITE("mfgpaper_frame", {"courses", test_courses}, {"golden", test_golden}, {"baseline (Alg. 2)", test_baseline},
         {"kinds that are not described", test_unknown_kinds}, {"the clock that is reached", test_reached},
         {"kinds that never repeat", test_uncovered}, {"outdated database (Alg. 7)", test_outdated},
         {"kernels that become longer", test_longer}, {"kernels longer in the next phase", test_longer_phase},
         {"work that cannot be compared", test_incomparable}, {"work that seldom can", test_seldom_comparable},
         {"refused values", test_refused}, {"baseline that does not repeat", test_self},
         {"kinds that take turns", test_turns}, {"hopeless trials", test_hopeless},
         {"stable, then another phase", test_stable}, {"the same phase", test_same_phase},
         {"a load that creeps", test_creeping}, {"a GPU lost", test_lost},
         {"a second without readings", test_blind_second}, {"power not known", test_no_power}, {"idle time", test_idle},
         {"each GPU by itself", test_gpus_apart}, {"one clock or none", test_one_clock},
         {"held clocks", test_held_clocks})
