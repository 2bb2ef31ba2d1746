/* Clocks that are set take effect when they have settled, in the order in which they were set. The device: 500 to 1500
 * MHz in steps of 100, 1000 by default; memory 400 and 800 MHz, 800 by default; settled after 10 ns. */
#include "sim/gpu/gpu.h"
#include "tests/support/sim_fixture.h"

typedef struct rig {
    fx_rig fx;
    fl_actuator a;
    uint32_t sm, mem;
} rig;

static void open_rig(rig *r) {
    *r = (rig){.sm = 7, .mem = 7};
    fx_open(&r->fx, 1);
    r->fx.spec.device->actuator.settle_ns = 10;
    fl_actuator_open(&r->a, r->fx.spec.device);
}

static bool take(rig *r, int64_t t) { return fl_actuator_take(&r->a, t, &r->sm, &r->mem); }

static void test_values(void) {
    static const struct {
        double sm, mem;
        uint32_t want_sm, want_mem; /* 7: untouched */
    } rows[] = {{500, 400, 0, 0}, {1500, 800, 10, 1}, {NAN, NAN, 7, 7},  {-1, -1, 5, 1}, {0, NAN, 10, 7},
                {600, NAN, 1, 7}, {NAN, 400, 7, 0},   {123, NAN, 10, 7}, {NAN, 0, 7, 1}, {NAN, 555, 7, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r;
        open_rig(&r);
        fl_actuator_set(&r.a, 0, rows[i].sm, rows[i].mem);
        FL_CHECK(!take(&r, 9999) && r.sm == 7 && r.mem == 7, "row %zu: not before it has settled", i);
        const bool moves = rows[i].want_sm != 7 || rows[i].want_mem != 7;
        FL_CHECK(take(&r, 10000) == moves && r.sm == rows[i].want_sm && r.mem == rows[i].want_mem, "row %zu: %u and %u",
                 i, r.sm, r.mem);
        FL_CHECK(!take(&r, 20000), "row %zu: it is taken once", i);
        fx_close(&r.fx);
    }
    rig r;
    open_rig(&r);
    r.fx.spec.device->default_sm_mhz = 777, r.fx.spec.device->default_mem_mhz = 777;
    fl_actuator_open(&r.a, r.fx.spec.device);
    fl_actuator_set(&r.a, 0, -1, -1);
    FL_CHECK(take(&r, 10000) && r.sm == 10 && r.mem == 1, "a default that is no clock of the ladder: the highest");
    fx_close(&r.fx);
}

/* Set at 0, 5 and 20 ns, so settled at 10, 15 and 30. */
static void test_order(void) {
    rig r;
    open_rig(&r);
    fl_actuator_set(&r.a, 0, 500, NAN);
    fl_actuator_set(&r.a, 5000, 600, 400);
    fl_actuator_set(&r.a, 20000, 700, NAN);
    FL_CHECK(take(&r, 15000) && r.sm == 1 && r.mem == 0, "the later of two that have settled: %u", r.sm);
    FL_CHECK(!take(&r, 29999) && r.sm == 1, "not the third");
    FL_CHECK(take(&r, 30000) && r.sm == 2 && r.mem == 0, "the third moves one alone");
    fl_actuator_set(&r.a, 30000, 700, 400);
    FL_CHECK(!take(&r, 90000) && !take(&r, 90000), "the same clocks again change nothing");
    fl_actuator_set(&r.a, 90000, 700, 800);
    FL_CHECK(take(&r, 100000) && r.mem == 1, "the memory's alone is a change");
    fx_close(&r.fx);
}

/* One more than the queue holds replaces the last, and leaves standing what it does not name. */
static void test_full(void) {
    rig r;
    open_rig(&r);
    for (int64_t i = 0; i < FL_PENDING_MAX; i++)
        fl_actuator_set(&r.a, 1000 * i, 500, 400);
    fl_actuator_set(&r.a, 1000 * FL_PENDING_MAX, NAN, 800);
    FL_CHECK(r.a.count == FL_PENDING_MAX, "%u wait", r.a.count);
    FL_CHECK(take(&r, 1000 * FL_PENDING_MAX + 9999) && r.mem == 0, "the last but one");
    FL_CHECK(take(&r, 1000 * FL_PENDING_MAX + 10000) && r.sm == 0 && r.mem == 1, "%u and %u", r.sm, r.mem);
    for (int64_t i = 0; i < FL_PENDING_MAX; i++)
        fl_actuator_set(&r.a, 0, 600, 400);
    fl_actuator_set(&r.a, 0, 500, NAN);
    FL_CHECK(take(&r, 10000) && r.sm == 0 && r.mem == 0, "%u and %u", r.sm, r.mem);
    fx_close(&r.fx);
}

/* What the last place of a full queue names alone stays, whichever of the two clocks it is. */
static void test_full_of_one(void) {
    static const struct {
        double last_sm, last_mem, sm, mem;
    } rows[] = {{900, NAN, NAN, 400}, {NAN, 400, 900, NAN}, {500, 800, 900, 400}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r;
        open_rig(&r);
        for (int64_t k = 1; k < FL_PENDING_MAX; k++)
            fl_actuator_set(&r.a, 0, 600, 800);
        fl_actuator_set(&r.a, 0, rows[i].last_sm, rows[i].last_mem);
        fl_actuator_set(&r.a, 0, rows[i].sm, rows[i].mem);
        FL_CHECK(r.a.count == FL_PENDING_MAX, "row %zu: %u wait", i, r.a.count);
        FL_CHECK(take(&r, 10000) && r.sm == 4 && r.mem == 0, "row %zu: %u and %u", i, r.sm, r.mem);
        fx_close(&r.fx);
    }
}

FL_SUITE("actuator", {"values", test_values}, {"order", test_order}, {"full", test_full},
         {"full of sets of one clock", test_full_of_one})
