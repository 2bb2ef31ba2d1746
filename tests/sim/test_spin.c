/* Kernels that spin while they wait for another GPU: what they draw and for how long, whatever else happens on their
 * GPU meanwhile. */
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "tests/support/node_fixture.h"

#include <string.h>

/* Takes as long at any clock, and draws 100 W/GHz. */
static uint32_t spinning_class(fx_rig *r, double alpha) {
    const fl_load load = {.tl = 1, .alpha = alpha, .sm_demand = 0.05, .ref_sm_mhz = 1000, .ref_mem_mhz = 800};
    const fl_kernel_kind kind = {.name = "spin", .grid = {1, 1, 1}, .block = {32, 1, 1}};
    uint32_t id;
    FX_MUST(fl_workload_add_class(r->w, &load, &kind, &id, d));
    r->w->class[id].spins = true;
    return id;
}

/* ---- by hand: GPU 0 comes at 10 ms, GPU 1 at 100 ms, and together they take 2 ms ---- */

#define FIRST_NS INT64_C(10000000)
#define SECOND_NS INT64_C(100000000)
#define TOGETHER_NS INT64_C(2000000)

static void open_pair(fx_rig *r, bool in_parts) {
    fx_open(r, 2);
    const uint32_t light = fx_light(r), spin = spinning_class(r, 0.4);
    r->w->class[light].part = in_parts;
    for (uint32_t g = 0; g < 2; g++)
        fx_stream(r, g, (int32_t)g);
    for (uint32_t g = 0; g < 2; g++) {
        fx_op(r, g, 0, g ? SECOND_NS : FIRST_NS, light);
        fx_op(r, g, 0, TOGETHER_NS, spin);
        fx_wait(r, g, 1 - g, 1);
    }
    fx_finish(r, 0);
}

static double joules(const fl_node *n, uint32_t gpu) { return fl_joules(fl_node_gpu(n, gpu)->sums.energy_fj); }

/* 20 + 10 + 10 W of the base at 1000 and 800 MHz; 100 W while it computes, 40 W while it spins. */
static const double base_w = 40, light_w = 100, spin_w = 40;

static void test_records(void) {
    for (int in_parts = 0; in_parts < 2; in_parts++) {
        fx_rig r;
        open_pair(&r, in_parts);
        fl_node *n = fx_node(&r, 0, false);
        for (uint32_t g = 0; g < 2; g++)
            fl_node_records_free(n, g, true);
        fx_advance(n, 300 * FX_MS_PS);
        const fl_kernel_record *record;
        size_t count;
        FX_MUST(fl_node_take_records(n, &record, &count, d));
        FL_CHECK(count == (in_parts ? 2 : 4), "%zu records", count);
        for (size_t i = 0; i < count; i++)
            if (!record[i].gpu && (in_parts || i)) {
                const int64_t start = in_parts ? 0 : FIRST_NS;
                FL_CHECK(record[i].start_ns == start && record[i].end_ns == SECOND_NS + TOGETHER_NS,
                         "the record of GPU 0 is of %lld to %lld ns", (long long)record[i].start_ns,
                         (long long)record[i].end_ns);
            }
        const fl_gpu *g = fl_node_gpu(n, 0);
        FL_CHECK(g->barrier_ps == (SECOND_NS - FIRST_NS) * FL_PS_PER_NS, "%lld ps at a barrier",
                 (long long)g->barrier_ps);
        FL_CHECK(g->sums.busy_ps == (SECOND_NS + TOGETHER_NS) * FL_PS_PER_NS, "busy for %lld ps",
                 (long long)g->sums.busy_ps);
        const double expected = base_w * 0.102 + light_w * 0.010 + spin_w * 0.092;
        FL_CHECK(fx_near(joules(n, 0), expected, 1e-12), "%.12g J, expected %.12g", joules(n, 0), expected);
        fl_node_close(n);
        fx_close(&r);
    }
}

/* Who waits for a GPU that has fallen off the bus spins on, and draws what it drew; who has fallen off draws what a
 * board without a context does. */
static void test_lost(void) {
    for (uint32_t lost = 0; lost < 2; lost++) {
        fx_rig r;
        open_pair(&r, false);
        const int64_t at_ns[] = {lost ? INT64_MAX : 50000000, lost ? 50000000 : INT64_MAX};
        const fl_node_options o = {
            .w = r.w, .rates = r.rates, .spec = &r.spec, .seed = 1, .lost_at_ns = at_ns, .path = FL_PATH_AUTO};
        fl_node *n;
        FX_MUST(fl_node_open(&n, &o, d));
        fx_advance(n, 1000 * FX_MS_PS);
        /* GPU 0 had come before it was lost, so GPU 1 goes through and idles: its work is done, the node's is not. */
        const double left = lost ? base_w + light_w * 0.010 + spin_w * 0.990
                                 : base_w * 0.050 + 8 * 0.950 + light_w * 0.010 + spin_w * 0.040;
        const double right =
            lost ? base_w * 0.050 + 8 * 0.950 + light_w * 0.050 : base_w + light_w * 0.100 + spin_w * 0.002;
        FL_CHECK(fx_near(joules(n, 0), left, 1e-12), "GPU %u lost, GPU 0: %.12g J, expected %.12g", lost, joules(n, 0),
                 left);
        FL_CHECK(fx_near(joules(n, 1), right, 1e-12), "GPU %u lost, GPU 1: %.12g J, expected %.12g", lost, joules(n, 1),
                 right);
        fl_ledger l = {0};
        fl_diag d = {0};
        for (uint32_t g = 0; g < 2; g++)
            FL_CHECK(!fl_ledger_add_gpu(&l, fl_node_gpu(n, g), &d), "GPU %u lost: %s", lost, d.message);
        FL_CHECK(fl_node_advance(n, 1001 * FX_MS_PS, &d) == FL_HARDWARE, "its work can never end");
        fl_node_close(n);
        fx_close(&r);
    }
}

/* ---- at random ---- */

enum { ROUNDS = 25, STREAMS_MAX = FX_GPUS_MAX * 3 };

typedef struct case_of {
    fx_rig r;
    uint32_t gpus, streams, spin;
    bool plain;                  /* no gap before an op that spins, no records: how long they spin is known */
    int64_t own_ns[FX_GPUS_MAX]; /* work of ops that spin */
} case_of;

/* The first stream of each GPU meets those of the others in each round; up to two more compute beside it, of the same
 * or of other processes, launched or not. */
static void make_case(case_of *c, uint64_t seed) {
    fl_random g = fl_random_seed(seed, 5);
    fx_rig *r = &c->r;
    *c = (case_of){.gpus = 2 + (uint32_t)fl_random_below(&g, 3), .plain = seed % 2};
    c->streams = c->gpus * (1 + (uint32_t)fl_random_below(&g, 3));
    fx_open(r, c->gpus);
    fl_device *dev = r->spec.device;
    nx_wall(r, 60 + (double)fl_random_below(&g, 120));
    nx_heat(r, 28 + (double)fl_random_below(&g, 8));
    dev->wall.ideal = seed % 3 == 0;
    dev->thermal.period_ns = 1700000;
    dev->thermal.tau_s = 0.02;
    dev->thermal.leak_ref_c = 22;
    dev->interference = fl_random_unit(&g);
    dev->records_slowdown = 0.07;
    dev->gate_ns = fl_random_below(&g, 3) ? 1 + (int64_t)fl_random_below(&g, 100000) : 0;
    dev->actuator.settle_ns = (int64_t)fl_random_below(&g, 300000);
    fx_random_classes(r, &g, 5, 1);
    c->spin = spinning_class(r, fl_random_unit(&g));
    for (uint32_t s = 0; s < c->streams; s++) {
        uint32_t index;
        FX_MUST(fl_workload_add_stream(r->w, s % c->gpus, 1 + (int32_t)fl_random_below(&g, 2), (int32_t)s, &index, d));
    }
    uint64_t at[STREAMS_MAX] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t s = 0; s < c->streams; s++)
            for (uint64_t k = fl_random_below(&g, 4); k > 0; k--, at[s]++)
                fx_op(r, s, fl_random_below(&g, 3) ? 0 : (int64_t)fl_random_below(&g, 50000),
                      (int64_t)fl_random_below(&g, 900000), (uint32_t)fl_random_below(&g, c->spin));
        for (uint32_t s = 0; s < c->gpus; s++) {
            const int64_t ns = (int64_t)fl_random_below(&g, 300000);
            c->own_ns[s] += ns;
            fx_op(r, s, c->plain || fl_random_below(&g, 4) ? 0 : 40000, ns, c->spin);
            for (uint32_t on = 0; on < c->gpus; on++)
                if (on != s)
                    fx_wait(r, s, on, at[on]);
        }
        for (uint32_t s = 0; s < c->gpus; s++)
            at[s]++;
    }
    for (uint32_t gpu = 0; seed % 4 < 2 && gpu < c->gpus; gpu++) { /* a thread launches what its GPU does */
        const uint32_t thread = fx_thread(r);
        for (uint64_t k = 0, any = 1; any; k++) {
            any = 0;
            for (uint32_t s = gpu; s < c->streams; s += c->gpus)
                if (k < at[s]) {
                    fx_launch(r, thread, (int64_t)fl_random_below(&g, 30000), s);
                    any = 1;
                }
        }
    }
    fx_finish(r, 0);
}

/* Clocks, limits and records change at random instants, which do not depend on `cuts`: further boundaries between. */
static fl_wide run_case(const case_of *c, uint64_t seed, bool cuts, uint64_t *hash, int64_t *end_ps) {
    fl_random g = fl_random_seed(seed, 6), k = fl_random_seed(seed, 7);
    fl_node *n = fx_node(&c->r, 0, cuts);
    while (!fl_node_done(n)) {
        const int64_t next = fl_node_now(n) + 1 + (int64_t)fl_random_below(&g, 3000 * FX_US_PS);
        const uint32_t which = (uint32_t)fl_random_below(&g, c->gpus);
        fl_node_set(n, which, fl_node_now(n), 500 + 100 * (double)fl_random_below(&g, 11),
                    400 * (1 + (double)fl_random_below(&g, 2)));
        if (!fl_random_below(&g, 4))
            fl_node_set_limit(n, (uint32_t)fl_random_below(&g, c->gpus), fl_node_now(n),
                              60 + (double)fl_random_below(&g, 120));
        const bool on = fl_random_below(&g, 2);
        if (!c->plain)
            fl_node_records(n, (uint32_t)fl_random_below(&g, c->gpus), on);
        while (cuts && !fl_node_done(n) && next - fl_node_now(n) > 1)
            fx_advance(n, fl_node_now(n) + 1 + (int64_t)fl_random_below(&k, (uint64_t)(next - fl_node_now(n) - 1)));
        if (!fl_node_done(n))
            fx_advance(n, next);
        for (uint32_t i = 0; i < c->gpus; i++) {
            const fl_gpu *gpu = fl_node_gpu(n, i);
            fl_ledger l = {0};
            fl_diag d = {0};
            FL_CHECK(!fl_ledger_add_gpu(&l, gpu, &d), "seed %llu: %s", (unsigned long long)seed, d.message);
            FL_CHECK(gpu->sums.busy_ps <= fl_node_now(n) && gpu->barrier_ps <= fl_node_now(n) && gpu->dyn_now_mw >= 0,
                     "seed %llu: GPU %u is busy for %lld of %lld ps", (unsigned long long)seed, i,
                     (long long)gpu->sums.busy_ps, (long long)fl_node_now(n));
        }
    }
    for (uint32_t i = 0; c->plain && i < c->gpus; i++) {
        const fl_gpu *gpu = fl_node_gpu(n, i);
        int64_t spun = 0;
        for (uint32_t s = 0; s < gpu->slot_count; s++)
            spun += gpu->slot[s].class_ps[c->spin];
        const int64_t expected = gpu->barrier_ps + c->own_ns[i] * FL_PS_PER_NS;
        FL_CHECK(spun == expected, "seed %llu: GPU %u spins for %lld ps, expected %lld", (unsigned long long)seed, i,
                 (long long)spun, (long long)expected);
    }
    const fl_wide energy = fx_energy(n);
    *hash = fl_node_hash(n);
    *end_ps = fl_node_now(n);
    fl_node_close(n);
    return energy;
}

static void test_random(void) {
    for (uint64_t seed = 1; seed <= 40; seed++) {
        case_of c;
        make_case(&c, seed);
        uint64_t hash[2];
        int64_t end[2];
        fl_wide energy[2];
        for (int cuts = 0; cuts < 2; cuts++)
            energy[cuts] = run_case(&c, seed, cuts, &hash[cuts], &end[cuts]);
        FL_CHECK(energy[0] == energy[1] && hash[0] == hash[1] && end[0] == end[1],
                 "seed %llu: %.17g fJ in %lld ps, with more boundaries %.17g in %lld", (unsigned long long)seed,
                 fx_f(energy[0]), (long long)end[0], fx_f(energy[1]), (long long)end[1]);
        fx_close(&c.r);
    }
}

FL_SUITE("spin", {"records", test_records}, {"a lost GPU", test_lost}, {"at random", test_random})
