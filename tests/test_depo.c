/* DEPO: four windows at the default limit, then golden section search over the power limit by the rate of kernels. */
#include "tests/support/golden.h"
#include "tests/support/mfgpoeo_node.h"

enum { WAITS, AT_DEFAULT, SEARCH, DONE };

static const mx_kernel loop[] = {{0, 0, 900, 50}, {1, 0, 400, 20}};

/* Time goes with (350 / limit) ^ share; the board draws `watts`, but no more than the limit. */
static mx_node *open_depo(const char *const *settings, double share, double watts) {
    mx_node *n = mx_open(&fl_policy_depo, 1, settings);
    n->gpu[0].kernel = loop;
    n->gpu[0].kernel_count = 2;
    n->gpu[0].cap_w_share = share;
    n->gpu[0].dynamic_w = watts - 100;
    return n;
}

/* The limits set, in order, and after them what is held. */
static void follow(mx_node *n, char *text, size_t size) {
    size_t used = 0;
    *text = '\0';
    while (mx_now_s(n) < 120) {
        mx_step(n);
        const double set = mx_set(n, 0, FL_SET_POWER_LIMIT_W);
        if (set != 0)
            used += (size_t)snprintf(text + used, size - used, "%g@%.1f ", set, mx_now_s(n));
    }
    snprintf(text + used, size - used, "= %g", n->gpu[0].limit_w);
}

static void test_courses(void) {
    static const char *const edp[] = {"objective", "edp", NULL}, *const fine[] = {"bracket", "1", NULL},
                             *const range[] = {"low_w", "200", "high_w", "300", NULL},
                             *const coarse[] = {"step_w", "25", NULL}, *const loose[] = {"con_perf", "0.5", NULL},
                             *const free_[] = {"constrained", "0", NULL},
                             *const short_[] = {"windows", "2", "window_s", "1", NULL};
    const struct {
        const char *name, *const *settings;
        double share, watts;
        const char *expected;
    } row[] = {
        {"no cost", NULL, 0, 380, "195@22.3 255@26.6 160@30.9 135@35.2 125@39.5 115@43.8 = 115"},
        {"in proportion", NULL, 1, 380, "195@22.3 255@26.6 290@30.9 315@35.2 325@39.5 335@43.8 = 335"},
        {"a quarter", NULL, 0.25, 380, "195@22.3 255@26.6 290@30.9 315@35.2 280@39.5 300@43.8 290@48.1 = 290"},
        {"EDP", edp, 0.6, 380, "195@22.3 255@26.6 290@30.9 315@35.2 325@39.5 335@43.8 -1@48.1 = -1"},
        {"to one gear", fine, 0.25, 380,
         "195@22.3 255@26.6 290@30.9 315@35.2 280@39.5 300@43.8 290@48.1 295@52.4 290@56.7 = 290"},
        {"a range", range, 0, 380, "240@22.3 260@26.6 225@30.9 215@35.2 = 215"},
        {"gears of 25 W", coarse, 0, 380, "200@22.3 250@26.6 150@30.9 = 150"},
        {"loose bound", loose, 0.25, 380, "195@22.3 255@26.6 160@30.9 135@35.2 125@39.5 115@43.8 = 115"},
        {"by the objective alone", free_, 0.25, 380, "195@22.3 255@26.6 -1@30.9 = -1"},
        {"short windows", short_, 0, 380, "195@7.7 255@9.0 160@10.3 135@11.6 125@12.9 115@14.2 = 115"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[1024];
        mx_node *n = open_depo(row[i].settings, row[i].share, row[i].watts);
        follow(n, text, sizeof text);
        FL_CHECK(strcmp(text, row[i].expected) == 0, "%s:\n      %s\n      expected\n      %s", row[i].name, text,
                 row[i].expected);
        FL_CHECK(mx_probe(n, 0, "state") == DONE && fl_instance_counts_of(n->in).faults == 0 &&
                     fl_instance_counts_of(n->in).clamped == 0,
                 "%s: state %g", row[i].name, mx_probe(n, 0, "state"));
        mx_close(n);
    }
}

/* The loss is that of the kernel counter: records are off, all kernels count alike. */
static void test_reading(void) {
    mx_node *n = open_depo(NULL, 0.25, 380);
    mx_until(n, 25);
    FL_CHECK(mx_probe(n, 0, "state") == SEARCH && fabs(mx_probe(n, 0, "base_rate") - 2 / 1.37e-3) < 1, "%g kernels/s",
             mx_probe(n, 0, "base_rate"));
    mx_until(n, 29);
    FL_CHECK(fabs(mx_probe(n, 0, "loss_pct") - 100 * (1300 * (pow(350.0 / 195, 0.25) - 1) / 1370)) < 0.1, "loss %g %%",
             mx_probe(n, 0, "loss_pct"));
    mx_close(n);
}

/* The start is not of the rate: kernels three times as long, for as long as skip_s says. */
static void test_start(void) {
    static const mx_kernel slow[] = {{0, 0, 2700, 150}, {1, 0, 1200, 60}};
    static const char *const at_once[] = {"skip_s", "0", NULL}, *const ten[] = {"skip_s", "10", NULL};
    const struct {
        const char *const *settings;
        double skip_s;
    } row[] = {{NULL, 5}, {at_once, 0}, {ten, 10}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        mx_node *n = open_depo(row[i].settings, 0.25, 380);
        n->gpu[0].kernel = slow;
        mx_until(n, 5);
        n->gpu[0].kernel = loop;
        FL_CHECK(mx_wait(n, 0, "state", SEARCH, 60) && fabs(mx_now_s(n) - row[i].skip_s - 17.3) < 0.21,
                 "skip %g s: the search starts at %g s", row[i].skip_s, mx_now_s(n));
        const bool pure = fabs(mx_probe(n, 0, "base_rate") - 2 / 1.37e-3) < 2;
        FL_CHECK(pure == (row[i].skip_s >= 5), "skip %g s: %g kernels/s", row[i].skip_s, mx_probe(n, 0, "base_rate"));
        mx_close(n);
    }
}

/* Counting misleads (Fig. 2): beside many short kernels that no limit slows, the long ones that it does hardly count,
 * so that once they take their turn the bound is broken unseen. */
static void test_unlike_kernels(void) {
    static const mx_kernel brief[] = {{0, 0, 20, 5}, {1, 0, 15, 5}}, lengthy[] = {{2, 0, 9000, 50}, {3, 0, 7000, 50}};
    mx_node *n = open_depo(NULL, 0, 380);
    n->gpu[0].kernel = brief;
    while (mx_now_s(n) < 100) {
        const bool turn = (int)(mx_now_s(n) / 0.5) % 2;
        n->gpu[0].kernel = turn ? lengthy : brief;
        n->gpu[0].cap_w_share = turn ? 0.5 : 0;
        mx_step(n);
    }
    n->gpu[0].cap_w_share = 0.5;
    FL_CHECK(mx_probe(n, 0, "state") == DONE && mx_probe(n, 0, "loss_pct") < 5, "state %g, loss %g %%",
             mx_probe(n, 0, "state"), mx_probe(n, 0, "loss_pct"));
    FL_CHECK(n->gpu[0].limit_w > 0 && mx_slowdown(&n->gpu[0]) > 1.2, "%g W, %g times as long", n->gpu[0].limit_w,
             mx_slowdown(&n->gpu[0]));
    mx_close(n);
}

static void test_golden(void) {
    static const double share[] = {0, 0.1, 0.25, 0.6, 1};
    static char text[8192];
    size_t used = (size_t)snprintf(text, sizeof text, "share,limits_w@s\n");
    for (size_t i = 0; i < sizeof share / sizeof *share; i++) {
        char course[1024];
        mx_node *n = open_depo(NULL, share[i], 300);
        follow(n, course, sizeof course);
        used += (size_t)snprintf(text + used, sizeof text - used, "%g,%s\n", share[i], course);
        mx_close(n);
    }
    fl_golden_check("depo.csv", text);
}

static void test_lost(void) {
    static const double when[] = {0.5, 15, 25, 32, 65};
    for (size_t i = 0; i < sizeof when / sizeof *when; i++) {
        mx_node *n = open_depo(NULL, 0.25, 380);
        mx_until(n, when[i]);
        const bool done = mx_probe(n, 0, "state") == DONE;
        const double limit = n->gpu[0].limit_w;
        n->gpu[0].lost = true;
        mx_until(n, when[i] + 0.5);
        FL_CHECK(n->gpu[0].limit_w == limit && mx_probe(n, 0, "held") == 1, "lost at %g s: %g W", when[i],
                 n->gpu[0].limit_w);
        mx_until(n, when[i] + 30);
        FL_CHECK(n->gpu[0].limit_w == (done ? limit : FL_DEFAULT), "lost at %g s: %g W later", when[i],
                 n->gpu[0].limit_w);
        n->gpu[0].lost = false;
        mx_until(n, when[i] + 100);
        FL_CHECK(mx_probe(n, 0, "state") == DONE && n->gpu[0].limit_w == 290, "back: state %g, %g W",
                 mx_probe(n, 0, "state"), n->gpu[0].limit_w);
        mx_close(n);
    }
}

/* One of the two things that a window measures is lost: nothing is to be had from a trial either. */
static void test_half_lost(void) {
    static const double when[] = {15, 25, 32};
    for (int power = 0; power < 2; power++)
        for (size_t i = 0; i < sizeof when / sizeof *when; i++) {
            mx_node *n = open_depo(NULL, 0.25, 380);
            mx_until(n, when[i]);
            const double limit = n->gpu[0].limit_w;
            bool *lost = power ? &n->gpu[0].no_power : &n->gpu[0].no_kernels;
            *lost = true;
            mx_until(n, when[i] + 0.5);
            FL_CHECK(n->gpu[0].limit_w == limit && mx_probe(n, 0, "held") == 1, "%s lost at %g s: %g W, held %g",
                     power ? "power" : "kernels", when[i], n->gpu[0].limit_w, mx_probe(n, 0, "held"));
            mx_until(n, when[i] + 60);
            FL_CHECK(n->gpu[0].limit_w == FL_DEFAULT, "%s lost at %g s: %g W later", power ? "power" : "kernels",
                     when[i], n->gpu[0].limit_w);
            *lost = false;
            mx_until(n, when[i] + 130);
            FL_CHECK(mx_probe(n, 0, "state") == DONE && n->gpu[0].limit_w == 290, "%s back: state %g, %g W",
                     power ? "power" : "kernels", mx_probe(n, 0, "state"), n->gpu[0].limit_w);
            mx_close(n);
        }
}

/* Kernels stop within a trial, early in its window or late: the default holds until they return, and the search then
 * goes on to its end. A window without any kernel begins anew: the pause is not taken for a loss. */
static void test_pause(void) {
    static const double when[] = {22.4, 23, 25, 26.4, 33}, length[] = {5, 3000};
    for (size_t i = 0; i < sizeof when / sizeof *when; i++)
        for (size_t k = 0; k < 2; k++) {
            mx_node *n = open_depo(NULL, 0.25, 380);
            mx_until(n, when[i]);
            const double limit = n->gpu[0].limit_w;
            n->gpu[0].kernel_count = 0;
            mx_until(n, when[i] + 0.8);
            FL_CHECK(n->gpu[0].limit_w != FL_DEFAULT, "after 0.8 s: the trial has ended");
            mx_until(n, when[i] + 1.5);
            FL_CHECK(limit > 0 && n->gpu[0].limit_w == FL_DEFAULT, "no kernels since %g s: %g W in force", when[i],
                     n->gpu[0].limit_w);
            while (mx_now_s(n) < when[i] + length[k]) {
                mx_step(n);
                if (n->gpu[0].limit_w != FL_DEFAULT)
                    break;
            }
            FL_CHECK(n->gpu[0].limit_w == FL_DEFAULT, "%g W at %g s, while nothing runs", n->gpu[0].limit_w,
                     mx_now_s(n));
            n->gpu[0].kernel_count = 2;
            mx_until(n, mx_now_s(n) + 0.3);
            FL_CHECK(n->gpu[0].limit_w > 0, "kernels again: no trial");
            mx_until(n, mx_now_s(n) + 3);
            if (i == 0)
                FL_CHECK(n->gpu[0].limit_w == limit, "the window was too short: %g W", n->gpu[0].limit_w);
            mx_until(n, mx_now_s(n) + 60);
            FL_CHECK(mx_probe(n, 0, "state") == DONE, "paused at %g s for %g s: state %g", when[i], length[k],
                     mx_probe(n, 0, "state"));
            if (i == 0) /* within the settling */
                FL_CHECK(n->gpu[0].limit_w == 290, "%g W after a pause of %g s", n->gpu[0].limit_w, length[k]);
            mx_close(n);
        }
}

/* A kernel that runs is no pause, however long it is. */
static void test_long_kernels(void) {
    static const mx_kernel lengthy[] = {{0, 0, 2800000, 50}, {1, 0, 2800000, 50}};
    mx_node *n = open_depo(NULL, 0, 380);
    n->gpu[0].kernel = lengthy;
    FL_CHECK(mx_wait(n, 0, "state", SEARCH, 100), "no search");
    double limit = n->gpu[0].limit_w;
    while (mx_probe(n, 0, "state") == SEARCH && mx_now_s(n) < 200) {
        FL_CHECK(n->gpu[0].limit_w != FL_DEFAULT, "at %g s: %g W instead of %g", mx_now_s(n), n->gpu[0].limit_w, limit);
        limit = n->gpu[0].limit_w;
        mx_step(n);
    }
    FL_CHECK(mx_probe(n, 0, "state") == DONE, "state %g", mx_probe(n, 0, "state"));
    mx_close(n);
}

static void test_nothing_to_do(void) {
    mx_node *n = open_depo(NULL, 0, 380);
    n->gpu[0].kernel_count = 0;
    mx_until(n, 30);
    FL_CHECK(mx_probe(n, 0, "state") == WAITS && n->gpu[0].limit_w == FL_DEFAULT, "a search without kernels");
    mx_close(n);
    static const char *const no_range[] = {"low_w", "350", NULL};
    n = open_depo(no_range, 0, 380);
    mx_until(n, 60);
    FL_CHECK(n->gpu[0].limit_w == FL_DEFAULT && mx_probe(n, 0, "held") == 1, "%g W in an empty range",
             n->gpu[0].limit_w);
    mx_close(n);
}

FL_SUITE("depo", {"courses", test_courses}, {"readings", test_reading}, {"start", test_start},
         {"kernels unlike each other", test_unlike_kernels}, {"golden", test_golden}, {"a GPU lost", test_lost},
         {"half of what counts lost", test_half_lost}, {"a pause", test_pause}, {"long kernels", test_long_kernels},
         {"nothing to do", test_nothing_to_do})
