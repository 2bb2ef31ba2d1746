/* The power limit of one board, look by look, against values worked by hand. The board: 500 to 1500 MHz in steps of
 * 100, 50 W awake, one stream that adds at most 100 W, a look each ms. */
#include "models/laws/device.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "tests/support/sim_fixture.h"

#define MS FX_MS_PS

typedef struct rig {
    fx_rig fx;
    fl_clock_rates rates;
    fl_gpu g;
    fl_wall w;
    int64_t t;
} rig;

static void open_rig(rig *r, fl_wall_spec spec) {
    *r = (rig){.rates = {.base.total_mw = 50000, .max_dyn_mw = 100000}};
    fx_open(&r->fx, 1);
    fl_device *dev = r->fx.spec.device;
    dev->wall = spec;
    dev->power_default_w = 200;
    r->g = (fl_gpu){.dev = dev,
                    .rates = &r->rates,
                    .stream_count = 1,
                    .open = true,
                    .lock_sm = 10,
                    .wall_sm = 10,
                    .gate_at_ps = FL_TIME_NEVER,
                    .closed_mw = 8000};
    fl_wall_open(&r->w, &r->g);
}

static fl_wall_spec stepping(void) {
    return (fl_wall_spec){
        .period_ns = 1000000, .exponent = 1, .aim = 0.9, .rise_ns = 4000000, .rise_mhz = 100, .recover_ns = 2000000};
}

/* ms ms at so many watts. */
static void draw(rig *r, double ms, double watts) {
    r->g.sums.energy_fj += (fl_wide)(ms * 1e9 * watts * 1000 + 0.5);
    r->t += (int64_t)(ms * 1e9);
    r->g.now_ps = r->t;
}

static int64_t no_prediction(void *user, uint32_t sm) {
    (void)user, (void)sm;
    return -1;
}

static void look(rig *r, double ms, double watts) {
    draw(r, ms, watts);
    fl_wall_at(&r->w, &r->g, r->t, no_prediction, NULL);
}

static void test_without(void) {
    rig r;
    open_rig(&r, (fl_wall_spec){0});
    FL_CHECK(fl_wall_next(&r.w) == FL_TIME_NEVER && !fl_wall_limit(&r.w, 100), "no controller, no limit");
    fl_wall_wake(&r.w, &r.g, 5 * MS);
    FL_CHECK(fl_wall_next(&r.w) == FL_TIME_NEVER, "and nothing wakes it");
    fx_close(&r.fx);
}

/* At most 150 W are in reach: it sleeps at a limit of 150 W, and below that it wakes. */
static void test_reach(void) {
    static const struct {
        double limit_w;
        int64_t leak_mw;
        uint32_t streams;
        bool open, awake;
    } rows[] = {{150, 0, 1, true, false}, {149.999, 0, 1, true, true}, {150, 1, 1, true, true},
                {249, 0, 2, true, true},  {250, 0, 2, true, false},    {0, 0, 1, true, false},
                {-1, 0, 1, true, false},  {-1, 50001, 1, true, true},  {149.999, 0, 1, false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r;
        open_rig(&r, stepping());
        FL_CHECK(fl_wall_next(&r.w) == FL_TIME_NEVER && r.w.limit_mw == 200000,
                 "the board's own limit is out of reach");
        CU_ASSERT(fl_wall_limit(&r.w, rows[i].limit_w));
        r.g.leak_mw = rows[i].leak_mw;
        r.g.stream_count = rows[i].streams;
        r.g.open = rows[i].open;
        draw(&r, 4.5, 50);
        fl_wall_wake(&r.w, &r.g, r.t);
        FL_CHECK(fl_wall_next(&r.w) == (rows[i].awake ? 5 * MS : FL_TIME_NEVER), "row %zu: next %lld", i,
                 (long long)fl_wall_next(&r.w));
        fx_close(&r.fx);
    }
    rig r;
    open_rig(&r, stepping());
    fl_wall_limit(&r.w, 100);
    draw(&r, 2, 80);
    fl_wall_wake(&r.w, &r.g, r.t);
    FL_CHECK(r.w.filtered_mw == 80000 && fl_wall_next(&r.w) == 3 * MS && r.w.seen_ps == 2 * MS,
             "the filter resumes with what was drawn: %g mW", r.w.filtered_mw);
    draw(&r, 0.5, 500);
    fl_wall_wake(&r.w, &r.g, r.t);
    FL_CHECK(r.w.filtered_mw == 80000 && fl_wall_next(&r.w) == 3 * MS, "who is awake does not wake");
    look(&r, 0.5, 40); /* 500 and 40 W: 270 W over the ms */
    FL_CHECK(r.w.filtered_mw == 270000, "a look is at the mean since the last: %g mW", r.w.filtered_mw);
    fx_close(&r.fx);
}

static void test_limits(void) {
    rig r;
    open_rig(&r, stepping());
    CU_ASSERT(fl_wall_limit(&r.w, 123.4567) && r.w.limit_mw == 123457);
    fl_wall_deal(&r.w, 90000);
    CU_ASSERT(r.w.limit_mw == 90000);
    CU_ASSERT(fl_wall_limit(&r.w, 80) && r.w.limit_mw == 80000);
    CU_ASSERT(fl_wall_limit(&r.w, 0) && r.w.limit_mw == 0); /* a limit too, and not the board's own */
    CU_ASSERT(fl_wall_limit(&r.w, -1) && r.w.limit_mw == 90000);
    fl_wall_deal(&r.w, INT64_MAX);
    CU_ASSERT(r.w.limit_mw == 200000);
    fx_close(&r.fx);
}

/* A limit of 100 W, so a move aims at 90 W. The clock rises by 100 MHz at most: each 4 ms, and at each look before 2 ms
 * have passed since one over the limit. */
static void test_steps(void) {
    static const struct {
        double watts, ceiling_mhz;
        uint32_t wall_sm;
    } rows[] = {{100, 1500, 10},                           /* 1 ms: at the limit is not over it */
                {120, 1125, 6},                            /* over: 1500 x 90/120 */
                {95, 1125, 6},                             /* between aim and limit nothing moves */
                {75, 1225, 7},                             /* 4 ms: on the grid; 1350 would be more than 100 MHz up */
                {75, 1225, 7},                             /* 5 ms: off the grid */
                {110, 1225 * 90. / 110, 5},                /* over: at once */
                {88, 1225 * 90. / 88 * 90 / 110, 5},       /* 7 ms: it recovers, by less than 100 MHz */
                {80, 1225 * 90. / 88 * 90 / 110 + 100, 6}, /* 8 ms: no longer, but on the grid */
                {80, 1225 * 90. / 88 * 90 / 110 + 100, 6},
                {450, 500, 0}, /* not below the ladder */
                {450, 500, 0},
                {60, 600, 1}, /* 12 ms */
                {60, 600, 1}, /* 13 ms: 2 ms after the look over the limit */
                {90, 600, 1},
                {90, 600, 1},
                {90, 600, 1}}; /* 16 ms: on the grid, but at what a move aims at */
    rig r;
    open_rig(&r, stepping());
    fl_wall_limit(&r.w, 100);
    fl_wall_wake(&r.w, &r.g, 0);
    look(&r, 0.5, 500);
    FL_CHECK(!r.w.acts && r.w.seen_ps == 0, "no look is due");
    r.t = 0, r.g.sums.energy_fj = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        look(&r, 1, rows[i].watts);
        FL_CHECK((!r.w.acts || fabs(r.w.ceiling_mhz - rows[i].ceiling_mhz) < 1e-9) && r.g.wall_sm == rows[i].wall_sm,
                 "look %zu: %.9g MHz, index %u", i, r.w.ceiling_mhz, r.g.wall_sm);
        FL_CHECK(r.w.acts == (rows[i].ceiling_mhz < 1500) && fl_wall_next(&r.w) == r.t + MS, "look %zu", i);
    }
    r.g.lock_sm = 1; /* 600 MHz are asked for */
    look(&r, 1, 20);
    FL_CHECK(!r.w.acts && r.g.wall_sm == 10 && fl_wall_next(&r.w) == r.t + MS,
             "the ceiling is not below what is asked for");
    r.w.ceiling_mhz = 1500;
    look(&r, 1, 101);
    FL_CHECK(fabs(r.w.ceiling_mhz - 600 * 90. / 101) < 1e-9 && r.g.wall_sm == 0 && r.w.acts,
             "down from what is asked for, not from the ceiling: %g MHz", r.w.ceiling_mhz);
    look(&r, 1, 20);
    FL_CHECK(!r.w.acts, "%g MHz", r.w.ceiling_mhz);
    fl_wall_limit(&r.w, 200);
    look(&r, 1, 20);
    FL_CHECK(fl_wall_next(&r.w) == FL_TIME_NEVER, "out of reach: it sleeps");
    fl_wall_wake(&r.w, &r.g, r.t);
    FL_CHECK(fl_wall_next(&r.w) == FL_TIME_NEVER, "and sleeps on");
    look(&r, 1, 500);
    FL_CHECK(r.w.filtered_mw == 20000, "who sleeps does not look");
    fx_close(&r.fx);
}

/* A limit that rises ends the recovery; one that falls does not. */
static void test_raised(void) {
    static const struct {
        double watts;
        int64_t dealt_mw;
        double ceiling_mhz;
    } rows[] = {{100, INT64_MAX, 1225}, {99, INT64_MAX, 1225}, {101, INT64_MAX, 1125}, {101, 99000, 1225}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r;
        open_rig(&r, stepping());
        fl_wall_limit(&r.w, 100);
        fl_wall_wake(&r.w, &r.g, 0);
        look(&r, 1, 120);
        fl_wall_deal(&r.w, rows[i].dealt_mw);
        fl_wall_limit(&r.w, rows[i].watts);
        look(&r, 1, 20);
        FL_CHECK(r.w.ceiling_mhz == rows[i].ceiling_mhz, "row %zu: %g MHz", i, r.w.ceiling_mhz);
        fx_close(&r.fx);
    }
}

static void test_exponent(void) {
    fl_wall_spec spec = stepping();
    spec.exponent = 0.5;
    spec.rise_ns = 0;
    spec.recover_ns = 0;
    rig r;
    open_rig(&r, spec);
    fl_wall_limit(&r.w, 100);
    fl_wall_wake(&r.w, &r.g, 0);
    look(&r, 1, 160);
    FL_CHECK(fabs(r.w.ceiling_mhz - 1125) < 1e-9, "1500 x 3/4: %.9g MHz", r.w.ceiling_mhz);
    look(&r, 1, 80);
    FL_CHECK(fabs(r.w.ceiling_mhz - 1125 * sqrt(9. / 8)) < 1e-9, "without a grid it rises at each look: %.9g MHz",
             r.w.ceiling_mhz);
    fx_close(&r.fx);
}

/* What acts, or is over the limit by its filter, stays awake although no work could reach the limit. */
static void test_stays_awake(void) {
    rig r;
    open_rig(&r, stepping());
    fl_wall_limit(&r.w, 100);
    fl_wall_wake(&r.w, &r.g, 0);
    look(&r, 1, 120);
    r.rates.max_dyn_mw = 0;
    look(&r, 1, 20);
    FL_CHECK(r.w.acts && fl_wall_next(&r.w) == 3 * MS, "it has to raise the clock again");
    look(&r, 9, 20);
    look(&r, 4, 20);
    look(&r, 4, 20);
    FL_CHECK(!r.w.acts && fl_wall_next(&r.w) == FL_TIME_NEVER, "1125, 1225, 1325, 1425, 1525 MHz: done");
    r.g.open = true;
    fl_wall_limit(&r.w, 19);
    fl_wall_wake(&r.w, &r.g, r.t);
    FL_CHECK(fl_wall_next(&r.w) == 20 * MS, "filtered power is over the limit");
    look(&r, 1, 20);
    r.g.open = false;
    look(&r, 1, 20);
    FL_CHECK(!r.w.acts && r.g.wall_sm == 10 && fl_wall_next(&r.w) == FL_TIME_NEVER,
             "a program that has ended frees the clock");
    fx_close(&r.fx);
}

/* A filter that halves in 1 ms: 1 / ln 2 ms. It begins at the 50 W of the idle board. */
static void test_filter(void) {
    fl_wall_spec spec = stepping();
    spec.filter_ns = 1442695;
    rig r;
    open_rig(&r, spec);
    fl_wall_limit(&r.w, 100);
    fl_wall_wake(&r.w, &r.g, 0);
    look(&r, 1, 90);
    FL_CHECK(fabs(r.w.filtered_mw - 70000) < 0.1, "half of 50 and half of 90 W: %.6g mW", r.w.filtered_mw);
    look(&r, 2, 110); /* late: a quarter of 70, three of 110 */
    FL_CHECK(fabs(r.w.filtered_mw - 100000) < 0.1, "%.6g mW", r.w.filtered_mw);
    fx_close(&r.fx);
}

typedef struct known {
    int64_t mw[11];
    uint32_t asked;
} known;

static int64_t predicted(void *user, uint32_t sm) {
    known *k = user;
    k->asked++;
    return k->mw[sm];
}

static void test_ideal(void) {
    static const struct {
        known known;
        uint32_t lock, wall_sm, asked;
        bool acts;
    } rows[] = {{{{30, 40, 50, 60, 70, 80, 90, 95000, 100000, 100001, 130000}, 0}, 10, 8, 3, true},
                {{{30, 40, 50, 60, 70, 80, 90, 95000, 100000, 100001, 130000}, 0}, 8, 10, 1, false},
                {{{101000, 102000, 103000, 0, 0, 0, 0, 0, 0, 0, 0}, 0}, 2, 0, 3, true},
                {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1}, 0}, 10, 10, 1, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_wall_spec spec = stepping();
        spec.ideal = 1;
        rig r;
        open_rig(&r, spec);
        fl_wall_limit(&r.w, 100);
        fl_wall_wake(&r.w, &r.g, 0);
        r.g.lock_sm = rows[i].lock;
        known k = rows[i].known;
        draw(&r, 1, 140);
        fl_wall_at(&r.w, &r.g, r.t, predicted, &k);
        FL_CHECK(r.g.wall_sm == rows[i].wall_sm && r.w.acts == rows[i].acts && k.asked == rows[i].asked,
                 "row %zu: index %u, asked %u times", i, r.g.wall_sm, k.asked);
        fx_close(&r.fx);
    }
}

FL_SUITE("wall", {"without one", test_without}, {"in reach", test_reach}, {"limits", test_limits},
         {"steps", test_steps}, {"raised", test_raised}, {"exponent", test_exponent}, {"stays awake", test_stays_awake},
         {"filter", test_filter}, {"ideal", test_ideal})
