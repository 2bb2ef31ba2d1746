/* AGFT: its bandit worked by hand, and its course on a server whose best clock is known. */
#include "policies/policy.h"
#include "policies/server/inside.h"
#include "sim/instance/instance.h"
#include "tests/support/serving_rig.h"

/* One arm, ridge 1, x = (1, 0, ...): A = 1 + n, b = sum of rewards; theta = b / A, width 1 / sqrt(A). */
static void test_linucb(void) {
    static fl_linucb l;
    const double x[FL_LINUCB_TERMS] = {1}, other[FL_LINUCB_TERMS] = {0, 1};
    fl_linucb_begin(&l, 2, 1);
    FL_CHECK(fl_linucb_choose(&l, x, 1) == 1, "of equals the last");
    fl_linucb_learn(&l, 1, x, 0.5);
    fl_linucb_learn(&l, 1, x, 1);
    const double bound = fl_linucb_bound(&l, 1, x, 2), expected = 1.5 / 3 + 2 * sqrt(1 / 3.0);
    FL_CHECK(fabs(bound - expected) < 1e-12, "bound %g, expected %g", bound, expected);
    FL_CHECK(fabs(fl_linucb_bound(&l, 1, other, 2) - 2) < 1e-12, "another context is still unknown");
    FL_CHECK(fl_linucb_choose(&l, x, 2) == 0, "an arm never pulled has the wider bound");
    FL_CHECK(fl_linucb_choose(&l, x, 0) == 1, "without a bound the better mean");
    l.arm[1].pruned = 1;
    FL_CHECK(fl_linucb_choose(&l, x, 0) == 0, "a pruned arm is never chosen");
    /* two contexts that overlap: A = [[2, 1], [1, 2]] + ..., by hand A^-1 b */
    const double both[FL_LINUCB_TERMS] = {1, 1};
    fl_linucb_begin(&l, 1, 1);
    fl_linucb_learn(&l, 0, both, 3); /* A = I + 11', b = (3, 3), theta = (1, 1) */
    FL_CHECK(fabs(fl_linucb_bound(&l, 0, x, 0) - 1) < 1e-12, "theta_0 is %g, expected 1", fl_linucb_bound(&l, 0, x, 0));
}

static rig r;

/* Energy of a window and time of a token at a clock: the product is least at 1000 MHz. */
static double tpot_s(double mhz) { return mhz == 1500 ? 0.010 : mhz == 1000 ? 0.012 : 0.030; }
static double watts(double mhz) { return mhz == 1500 ? 300 : mhz == 1000 ? 150 : 140; }

static void window(bool tokens) {
    const double mhz = r.mhz > 0 ? r.mhz : RIG_TOP, window_s = 0.8;
    if (tokens) {
        const double count = floor(window_s / tpot_s(mhz));
        rig_add(&r, FL_SERVER_TBT_COUNT, count);
        rig_add(&r, FL_SERVER_TBT_SUM_NS, count * tpot_s(mhz) * 1e9);
        rig_add(&r, FL_SERVER_OUTPUT_TOKENS, count);
    } else { /* known, and they stand */
        rig_add(&r, FL_SERVER_TBT_COUNT, 0);
        rig_add(&r, FL_SERVER_TBT_SUM_NS, 0);
    }
    rig_know(&r, FL_SERVER_RUNNING, 8);
    rig_know(&r, FL_SERVER_WAITING, 0);
    rig_gpu(&r, FL_GPU_ENERGY_J,
            (r.seen[0].valid >> FL_GPU_ENERGY_J & 1 ? r.seen[0].value[FL_GPU_ENERGY_J] : 0) + watts(mhz) * window_s);
    rig_step(&r);
}

static double probe(size_t index) { return r.decision->probe[index * r.facts.gpu_count]; }

static void test_course(void) {
    const fl_setting settings[] = {{"clocks_mhz", "500/1000/1500", NULL}, {"prune_after", "1", NULL}};
    int at[3] = {0};
    rig_begin(&r, 1);
    rig_open(&r, "agft", settings, 2);
    for (int i = 0; i < 6; i++) {
        window(true);
        FL_CHECK(r.mhz == 1500 || i == 5, "window %d of the baseline at %g MHz", i, r.mhz);
    }
    FL_CHECK(fabs(probe(2) - 300 * 0.8 * 0.010) < 1e-9, "baseline %g J s, expected %g", probe(2), 300 * 0.8 * 0.010);
    for (int i = 0; i < 100; i++) {
        window(true);
        at[r.mhz == 500 ? 0 : r.mhz == 1000 ? 1 : 2] += i >= 50;
    }
    FL_CHECK(at[1] > 40, "of the last 50 windows %d at 1000 MHz, %d at 500, %d at 1500", at[1], at[0], at[2]);
    /* at 500 MHz: E TPOT 112 x 0.030 = 3.36 of 2.4: a reward of -0.8; at 1000: 1.44, +0.8 */
    FL_CHECK(probe(3) == 1, "%g clocks are pruned, expected 500 MHz to be", probe(3));
    rig_close(&r);
}

/* Windows without a token teach nothing; after five seconds of them the default holds, until tokens come. */
static void test_idle(void) {
    const fl_setting clocks = {"clocks_mhz", "500/1000/1500", NULL};
    rig_begin(&r, 1);
    rig_open(&r, "agft", &clocks, 1);
    for (int i = 0; i < 4; i++)
        window(true);
    for (int i = 0; i < 6; i++)
        window(false);
    FL_CHECK(r.mhz == 1500, "%g MHz after 4.8 s without a token, expected 1500", r.mhz);
    window(false);
    FL_CHECK(r.mhz == FL_DEFAULT, "%g MHz after 5.6 s without a token, expected the default", r.mhz);
    for (int i = 0; i < 20; i++)
        window(false);
    FL_CHECK(r.mhz == FL_DEFAULT, "%g MHz while no token comes, expected the default", r.mhz);
    window(true);
    FL_CHECK(r.mhz == 1500, "%g MHz once tokens come, expected 1500", r.mhz);
    rig_close(&r);
}

/* The top clock is always among arms that nobody lists: the baseline is measured there. */
static void test_arms(void) {
    static const struct {
        const char *arms;
        double lowest;
    } cases[] = {{"1", RIG_TOP}, {"2", 500}, {"16", 500}};
    for (size_t i = 0; i < FL_COUNT(cases); i++) {
        const fl_setting arms = {"arms", cases[i].arms, NULL};
        double lowest = INFINITY;
        rig_begin(&r, 1);
        rig_open(&r, "agft", &arms, 1);
        window(true);
        FL_CHECK(r.mhz == RIG_TOP, "%s arms: the first window is at %g MHz", cases[i].arms, r.mhz);
        for (int k = 0; k < 40; k++) {
            window(true);
            lowest = fmin(lowest, r.mhz);
        }
        FL_CHECK(lowest == cases[i].lowest, "%s arms: the lowest clock tried is %g MHz, expected %g", cases[i].arms,
                 lowest, cases[i].lowest);
        rig_close(&r);
    }
}

FL_SUITE("agft", {"LinUCB", test_linucb}, {"course", test_course}, {"without tokens", test_idle}, {"arms", test_arms})
