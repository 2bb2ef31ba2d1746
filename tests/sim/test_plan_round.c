/* From lengths to clocks of the ladder, by hand: a part beside ops whose length no clock changes. */
#include "sim/pipeline/inside.h"
#include "sim/pipeline/pipeline.h"
#include "sim/workload/workload.h"
#include "tests/support/sim_fixture.h"

#include <string.h>

/* Two ranks: one op of `fixed_s`, beside a part of 1 s that may take 2, 4 or 8 for less and less energy. */
typedef struct rig {
    fx_rig fx;
    fl_plan_program g;
    fl_plan_part part;
    fl_plan_table table;
    uint32_t part_of[2], front[4];
    double fixed_s[2], time_s[4], over_j[4];
} rig;

static void rig_open(rig *r, double fixed_s, uint32_t front_count) {
    *r = (rig){.part = {.op = 1},
               .part_of = {FL_NONE, 0},
               .front = {3, 2, 1, 0}, /* the table ascends by clock */
               .fixed_s = {fixed_s, 0},
               .time_s = {8, 4, 2, 1},
               .over_j = {100, 200, 400, 800}};
    fx_open(&r->fx, 2);
    const uint32_t id = fx_light(&r->fx);
    for (uint32_t i = 0; i < 2; i++)
        fx_op(&r->fx, fx_stream(&r->fx, i, 0), 0, 1000, id);
    fx_finish(&r->fx, 1);
    r->table = (fl_plan_table){
        .time_s = r->time_s, .over_j = r->over_j, .count = 4, .front = r->front, .front_count = front_count};
    r->g = (fl_plan_program){.w = r->fx.w,
                             .fixed_s = r->fixed_s,
                             .part = &r->part,
                             .part_count = 1,
                             .part_of = r->part_of,
                             .table = &r->table,
                             .table_count = 1};
    FX_MUST(fl_critical_new(&r->g.path, r->fx.w, d));
}

static void rig_close(rig *r) {
    fl_critical_free(&r->g.path);
    fx_close(&r->fx);
}

/* What is left beside the fixed op is given to the part: as many of its clocks down as end by then. A plan that takes
 * longer than its limit may go on taking as long. */
static void test_fill(void) {
    static const struct {
        double fixed_s, limit_s;
        uint32_t from, at; /* places in the table */
        double takes_s;
    } rows[] = {{5, 0, 3, 1, 5}, {5, 5, 3, 1, 5}, {8, 0, 3, 0, 8}, {7.9, 0, 3, 1, 7.9}, {1, 0, 3, 3, 1},
                {1, 4, 3, 1, 4}, {1, 0, 1, 1, 4}, {0, 2, 3, 2, 2}, {3, 0, 0, 0, 8},     {20, 0, 3, 0, 20}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r;
        rig_open(&r, rows[i].fixed_s, 4);
        fl_plan_round round;
        FX_MUST(fl_plan_round_new(&round, &r.g, d));
        uint32_t at = rows[i].from;
        const double takes = fl_plan_round_fill(&round, rows[i].limit_s, &at);
        FL_CHECK(at == rows[i].at && fx_near(takes, rows[i].takes_s, 1e-12), "row %zu: place %u, %g s", i, at, takes);
        fl_plan_round_free(&round);
        rig_close(&r);
    }
}

/* The highest price is the steepest step of a front: 400 J for a second more here, whatever comes behind its end. */
static void test_steepest(void) {
    static const double want[] = {0, 400, 400, 400};
    for (uint32_t n = 1; n <= 4; n++) {
        rig r;
        rig_open(&r, 0, n);
        r.over_j[0] = -1e9; /* steeper than all: of use only where the front goes so far */
        fl_plan_round round;
        FX_MUST(fl_plan_round_new(&round, &r.g, d));
        FL_CHECK(n == 4 ? round.steepest > 1e8 : round.steepest == want[n - 1], "%u places: %g W", n, round.steepest);
        fl_plan_round_free(&round);
        rig_close(&r);
    }
}

FL_SUITE("plan_round", {"fill", test_fill}, {"steepest", test_steepest})
