/* Power gating: an idle GPU loses C V and A0 V^2 f once it has been idle for long enough. By hand, in every instant,
 * and with equal bits by both ways of advancing. */
#include "models/laws/device.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "sim/oracle/oracle.h"
#include "tests/support/sim_fixture.h"

#define GATE_NS 2000000

/* Base of the fixture at 1000 MHz: 20 W static, 10 W of clock tree, 10 W of memory, which stays. */
enum { AWAKE_MW = 40000, GATED_MW = 10000 };

static void open_rig(fx_rig *r, uint32_t gpus, int64_t gate_ns) {
    fx_open(r, gpus);
    r->spec.device->gate_ns = gate_ns;
}

/* Ops of 1 ms, each after a gap: what is beyond 2 ms of a gap is gated. */
static void test_by_hand(void) {
    static const struct {
        int64_t gap_ms[3], gated_ms;
    } rows[] = {{{0, 0, 0}, 0}, {{2, 2, 2}, 0}, {{3, 0, 0}, 1}, {{0, 5, 1}, 3}, {{7, 3, 4}, 8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int only = 0; only < 2; only++)
            for (int64_t step_us = 130; step_us < 100000; step_us *= 3) { /* wherever it is looked at */
                fx_rig r;
                open_rig(&r, 1, GATE_NS);
                const uint32_t c = fx_light(&r), stream = fx_stream(&r, 0, 0);
                int64_t idle_ms = 0;
                for (int k = 0; k < 3; k++) {
                    fx_op(&r, stream, rows[i].gap_ms[k] * 1000000, 1000000, c);
                    idle_ms += rows[i].gap_ms[k];
                }
                fx_finish(&r, 0);
                fl_node *n = fx_node(&r, 0, only);
                while (!fl_node_done(n))
                    fx_advance(n, fl_node_now(n) + step_us * FX_US_PS);
                const fl_gpu *g = fl_node_gpu(n, 0);
                const fl_wide want = ((fl_wide)(idle_ms + 3) * AWAKE_MW + 3 * (fl_wide)100000 -
                                      (fl_wide)rows[i].gated_ms * (AWAKE_MW - GATED_MW)) *
                                     FX_MS_PS;
                FL_CHECK(g->sums.energy_fj == want && g->slot[0].gated_ps == rows[i].gated_ms * FX_MS_PS,
                         "row %zu, way %d, each %lld us: %.17g fJ, %lld ps gated; expected %.17g", i, only,
                         (long long)step_us, fx_f(g->sums.energy_fj), (long long)g->slot[0].gated_ps, fx_f(want));
                fl_ledger l = {0};
                FX_MUST(fl_ledger_add_gpu(&l, g, d));
                FL_CHECK(l.part_fj[FL_PART_STATIC] == (idle_ms + 3 - rows[i].gated_ms) * (fl_wide)20000 * FX_MS_PS &&
                             l.part_fj[FL_PART_CLOCK_TREE] * 2 == l.part_fj[FL_PART_STATIC] &&
                             l.part_fj[FL_PART_MEMORY] == (idle_ms + 3) * (fl_wide)10000 * FX_MS_PS,
                         "row %zu: static %g, clock tree %g, memory %g fJ", i, fx_f(l.part_fj[FL_PART_STATIC]),
                         fx_f(l.part_fj[FL_PART_CLOCK_TREE]), fx_f(l.part_fj[FL_PART_MEMORY]));
                fl_node_close(n);
                fx_close(&r);
            }
}

/* The power of an instant: awake, gated from the 2 ms on, awake again with the op that ends the idling. */
static void test_instants(void) {
    static const struct {
        int64_t us, mw;
    } rows[] = {{1999, AWAKE_MW},          {2000, GATED_MW},         {4999, GATED_MW}, {5000, AWAKE_MW + 100000},
                {5999, AWAKE_MW + 100000}, {6000, AWAKE_MW},         {7999, AWAKE_MW}, {8000, GATED_MW},
                {9000, GATED_MW},          {9001, AWAKE_MW + 100000}};
    for (int only = 0; only < 2; only++) {
        fx_rig r;
        open_rig(&r, 1, GATE_NS);
        const uint32_t c = fx_light(&r), stream = fx_stream(&r, 0, 0);
        fx_op(&r, stream, 5000000, 1000000, c);
        fx_op(&r, stream, 3000500, 1000000, c);
        fx_finish(&r, 0);
        fl_node *n = fx_node(&r, 0, only);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            fx_advance(n, rows[i].us * FX_US_PS);
            const int64_t mw = fl_gpu_power_mw(fl_node_gpu(n, 0));
            FL_CHECK(mw == rows[i].mw, "way %d, %lld us: %lld mW, expected %lld", only, (long long)rows[i].us,
                     (long long)mw, (long long)rows[i].mw);
        }
        fl_node_close(n);
        fx_close(&r);
    }
}

/* Two streams: it is idle only while neither runs. A clock that changes while it is gated changes nothing it draws. */
static void test_streams(void) {
    fx_rig r;
    open_rig(&r, 1, GATE_NS);
    const uint32_t c = fx_light(&r), one = fx_stream(&r, 0, 0), two = fx_stream(&r, 0, 1);
    fx_op(&r, one, 0, 4000000, c);
    fx_op(&r, two, 3000000, 6000000, c); /* to 9 ms */
    fx_op(&r, two, 10000000, 1000000, c);
    fx_finish(&r, 0);
    fl_node *n = fx_node(&r, 0, false);
    fl_node_set(n, 0, 12 * FX_MS_PS, 500, NAN);
    fx_advance(n, 8 * FX_MS_PS); /* one stream has been idle for 4 ms */
    fx_to_end(n);
    const fl_gpu *g = fl_node_gpu(n, 0);
    int64_t gated = 0;
    for (uint32_t i = 0; i < g->slot_count; i++)
        gated += g->slot[i].gated_ps;
    FL_CHECK(gated == 8 * FX_MS_PS && g->slot_count == 2 && g->slot[0].gated_ps == FX_MS_PS,
             "%lld ps gated, %lld of them before the change", (long long)gated, (long long)g->slot[0].gated_ps);
    /* 12 ms at 1000 MHz, one of them gated; 7 ms gated at 500 MHz; there the last op, 2 ms of 35 W and 50 W */
    const fl_wide want = ((fl_wide)12 * 40000 - 30000 + 10 * 100000 + 7 * 10000 + 2 * (35000 + 50000)) * FX_MS_PS;
    FL_CHECK(g->sums.energy_fj == want, "%.17g fJ, expected %.17g", fx_f(g->sums.energy_fj), fx_f(want));
    fl_node_close(n);
    fx_close(&r);
}

static void test_equal_bits(void) {
    for (uint64_t seed = 1; seed <= 30; seed++) {
        fl_random g = fl_random_seed(seed, 31);
        fx_rig r;
        open_rig(&r, 1, 1 + (int64_t)fl_random_below(&g, seed % 2 ? 4000 : 70000));
        fx_random_classes(&r, &g, 5, 1);
        fx_random_ops(&r, &g, fx_stream(&r, 0, 0), 2000, 20000);
        fx_finish(&r, 0);
        fl_node *n[2] = {fx_node(&r, ~UINT64_C(0), false), fx_node(&r, ~UINT64_C(0), true)};
        while (!fl_node_done(n[0])) {
            const int64_t next = fl_node_now(n[0]) + 1 + (int64_t)fl_random_below(&g, 300 * FX_US_PS);
            const double mhz = 500 + 100 * (double)fl_random_below(&g, 11);
            for (int k = 0; k < 2; k++) {
                fl_node_set(n[k], 0, fl_node_now(n[k]), mhz, NAN);
                fx_advance(n[k], next);
            }
            FL_CHECK(fl_node_hash(n[0]) == fl_node_hash(n[1]), "seed %llu, %lld ps: other bits",
                     (unsigned long long)seed, (long long)fl_node_now(n[0]));
        }
        int64_t gated = 0;
        for (int k = 0; k < 2; k++) {
            fl_ledger l = {0};
            FX_MUST(fl_ledger_add_gpu(&l, fl_node_gpu(n[k], 0), d));
            for (uint32_t i = 0; i < fl_node_gpu(n[k], 0)->slot_count; i++)
                gated += fl_node_gpu(n[k], 0)->slot[i].gated_ps;
            fl_node_close(n[k]);
        }
        FL_CHECK(gated > 0, "seed %llu: never gated", (unsigned long long)seed);
        fx_close(&r);
    }
}

/* A wall that would act sleeps only for what the board draws awake; no clairvoyant bound is claimed. */
static void test_neighbours(void) {
    fx_rig r;
    open_rig(&r, 1, 1000000);
    fl_device *dev = r.spec.device;
    dev->wall = (fl_wall_spec){.period_ns = 1000000, .exponent = 0.4, .aim = 0.9, .rise_mhz = 50};
    dev->power_default_w = 130;
    const uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 1), stream = fx_stream(&r, 0, 0);
    fx_op(&r, stream, 20000000, 20000000, c); /* 140 W, after a long sleep at 10 W */
    fx_finish(&r, 0);
    FL_CHECK(fl_oracle_inexact(r.w, r.rates, &r.spec) != NULL, "claims an exact schedule");
    fl_node *n = fx_node(&r, 0, false);
    fx_to_end(n);
    FL_CHECK(fl_node_gpu(n, 0)->wall_held_ps > 0, "the wall slept through");
    fl_node_close(n);
    dev->wall.period_ns = 0;
    FL_CHECK(!strcmp(fl_oracle_inexact(r.w, r.rates, &r.spec), "an idle GPU's power is gated"), "why it is not exact");
    fx_close(&r);
}

FL_SUITE("gating", {"by hand", test_by_hand}, {"instants", test_instants}, {"streams", test_streams},
         {"equal bits", test_equal_bits}, {"wall and oracle", test_neighbours})
