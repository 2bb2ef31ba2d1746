/* DEPO: four windows at the default limit, then golden section search over the power limit by the rate of kernels. */
#include "tests/mfgpoeo_node.h"

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
        {"no cost", NULL, 0, 380, "195@17.3 255@21.6 160@25.9 135@30.2 125@34.5 115@38.8 = 115"},
        {"in proportion", NULL, 1, 380, "195@17.3 255@21.6 290@25.9 315@30.2 325@34.5 335@38.8 = 335"},
        {"a quarter", NULL, 0.25, 380, "195@17.3 255@21.6 290@25.9 315@30.2 280@34.5 300@38.8 290@43.1 = 290"},
        {"EDP", edp, 0.6, 380, "195@17.3 255@21.6 290@25.9 315@30.2 325@34.5 335@38.8 -1@43.1 = -1"},
        {"to one gear", fine, 0.25, 380,
         "195@17.3 255@21.6 290@25.9 315@30.2 280@34.5 300@38.8 290@43.1 295@47.4 290@51.7 = 290"},
        {"a range", range, 0, 380, "240@17.3 260@21.6 225@25.9 215@30.2 = 215"},
        {"gears of 25 W", coarse, 0, 380, "200@17.3 250@21.6 150@25.9 = 150"},
        {"loose bound", loose, 0.25, 380, "195@17.3 255@21.6 160@25.9 135@30.2 125@34.5 115@38.8 = 115"},
        {"by the objective alone", free_, 0.25, 380, "195@17.3 255@21.6 -1@25.9 = -1"},
        {"short windows", short_, 0, 380, "195@2.7 255@4.0 160@5.3 135@6.6 125@7.9 115@9.2 = 115"},
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
    mx_until(n, 20);
    FL_CHECK(mx_probe(n, 0, "state") == SEARCH && fabs(mx_probe(n, 0, "base_rate") - 2 / 1.37e-3) < 1, "%g kernels/s",
             mx_probe(n, 0, "base_rate"));
    mx_until(n, 24);
    FL_CHECK(fabs(mx_probe(n, 0, "loss_pct") - 100 * (1300 * (pow(350.0 / 195, 0.25) - 1) / 1370)) < 0.1, "loss %g %%",
             mx_probe(n, 0, "loss_pct"));
    mx_close(n);
}

static void test_lost(void) {
    static const double when[] = {0.5, 10, 20, 27, 60};
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

FL_SUITE("depo", {"courses", test_courses}, {"readings", test_reading}, {"a GPU lost", test_lost},
         {"nothing to do", test_nothing_to_do})
