/* A lone stream by sums: the bits of the scan, whatever the boundaries, and the table built once and only where it
 * pays. */
#include "harness/base/work/work.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/advance/inside.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/inside.h"
#include "sim/gpu/work.h"
#include "sim/instance/instance.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "traces/io/io.h"
#include "tests/support/sim_fixture.h"

#include <string.h>

static const uint64_t every_signal = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1;

typedef struct digest { /* of all that a policy sees */
    uint64_t h, steps;
} digest;

static void feed(digest *x, const void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        x->h = (x->h ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
}

static fl_status on_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    digest *x = user;
    (void)d;
    x->steps++;
    feed(x, &sample->time_ns, sizeof sample->time_ns);
    feed(x, sample->gpu, sample->gpu_count * sizeof *sample->gpu);
    feed(x, &decision->delay_ns, sizeof decision->delay_ns);
    return FL_OK;
}

typedef struct outcome {
    fl_run_result r;
    digest seen;
    uint64_t jumps;
} outcome;

static void run_by(const fx_rig *rig, fx_how how, fl_path path, outcome *out) {
    *out = (outcome){.seen = {0}};
    const uint64_t before = fl_path_taken(FL_PATH_PREFIX);
    how.path = path;
    how.on_step = on_step;
    how.user = &out->seen;
    fx_run(rig, &how, &out->r);
    out->jumps = fl_path_taken(FL_PATH_PREFIX) - before;
}

static void free_outcome(outcome *o) { fl_run_result_free(&o->r); }

static bool same_arrays(const fl_run_result *a, const fl_run_result *b) {
    bool same = a->mark_count == b->mark_count && a->residence_count == b->residence_count &&
                a->process_count == b->process_count;
    same = same && !memcmp(a->mark_ps, b->mark_ps, a->mark_count * sizeof *a->mark_ps);
    for (size_t i = 0; same && i < a->residence_count; i++)
        same = a->residence[i].ps == b->residence[i].ps && a->residence[i].sm_mhz == b->residence[i].sm_mhz &&
               a->residence[i].mem_mhz == b->residence[i].mem_mhz;
    for (uint32_t c = 0; same && c < a->class_count && c < b->class_count; c++)
        same = !memcmp(&a->class_time_s[c], &b->class_time_s[c], sizeof(double)) &&
               !memcmp(&a->class_energy_j[c], &b->class_energy_j[c], sizeof(double));
    return same;
}

/* All that a run tells, bit by bit. */
static void must_equal(const char *what, uint64_t seed, const outcome *a, const outcome *b) {
    const fl_run_result *x = &a->r, *y = &b->r;
    const unsigned long long s = seed;
    FL_CHECK(x->hash == y->hash && x->makespan_ps == y->makespan_ps, "%s, seed %llu: another course", what, s);
    FL_CHECK(a->seen.steps == b->seen.steps && a->seen.h == b->seen.h, "%s, seed %llu: the policy saw other things",
             what, s);
    FL_CHECK(x->energy_fj == y->energy_fj && !memcmp(&x->ledger, &y->ledger, sizeof x->ledger),
             "%s, seed %llu: another ledger", what, s);
    FL_CHECK(!memcmp(&x->peak_power_w, &y->peak_power_w, sizeof(double)), "%s, seed %llu: a peak of %.17g W, not %.17g",
             what, s, y->peak_power_w, x->peak_power_w);
    FL_CHECK(x->kernels == y->kernels && x->switches == y->switches, "%s, seed %llu: other counts", what, s);
    FL_CHECK(same_arrays(x, y), "%s, seed %llu: other marks, residences or classes", what, s);
}

/* ---- the same bits ---- */

/* Sensors of every kind, at odd periods, the wall within reach, heat. */
static void add_features(fl_device *dev, fl_random *g) {
    for (int i = 0; i < FL_SENSOR_COUNT; i++) {
        const int64_t period = 1000003 + (int64_t)fl_random_below(g, 30000000);
        dev->sensor[i] = (fl_sensor_spec){.present = 1, .period_ns = period, .window_ns = 2 * period / 3, .noise = 1};
    }
    dev->actuator = (fl_actuator_spec){.call_ns = 12345, .settle_ns = 777777, .read_ns = 50001};
    dev->wall = (fl_wall_spec){
        .period_ns = 5000000, .filter_ns = 5000000, .exponent = 0.4, .aim = 0.95, .rise_ns = 20000000, .rise_mhz = 100};
    dev->power_default_w = 120;
    dev->thermal = (fl_thermal_spec){.period_ns = 30000000,
                                     .ambient_c = 30,
                                     .c_per_w = 0.3,
                                     .tau_s = 0.5,
                                     .leak_w_per_c = 0.5,
                                     .leak_ref_c = 40,
                                     .limit_c = 80,
                                     .release_c = 75};
}

static const int64_t steps_us[] = {0, 37, 1000, 1500, 20000, 300000}; /* 0: no policy */

static fx_how how_of(uint64_t seed, size_t k) {
    return (fx_how){.mode = steps_us[k] ? (k + seed) % 2 ? FX_RANDOM_BOTH : FX_NOTHING : -1,
                    .step_us = steps_us[k],
                    .needs = seed % 3 ? every_signal : FL_BIT(FL_GPU_POWER_W)};
}

static void test_random(void) {
    uint64_t jumps = 0;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        fx_rig r;
        fl_random g = fl_random_seed(seed, 191);
        fx_open(&r, 1);
        if (seed % 4 == 1)
            add_features(r.spec.device, &g);
        fx_random_classes(&r, &g, 1 + (uint32_t)(seed % 7), 1);
        fx_random_ops(&r, &g, fx_stream(&r, 0, 1), 15 + (size_t)fl_random_below(&g, 3000), seed % 2 ? 40000 : 900);
        fx_finish(&r, (uint32_t)(seed % 25));
        for (size_t k = 0; k < sizeof steps_us / sizeof *steps_us; k++) {
            const fx_how how = how_of(seed, k);
            fx_how blind = how; /* nobody asks for classes: the ledger's parts and the peak come with the sums */
            blind.no_classes = true;
            outcome plain, sums, streams, parts;
            run_by(&r, how, FL_PATH_PLAIN, &plain);
            run_by(&r, how, FL_PATH_PREFIX, &sums);
            run_by(&r, how, FL_PATH_EVENTS, &streams);
            run_by(&r, blind, FL_PATH_PREFIX, &parts);
            must_equal("scan and sums", seed, &plain, &sums);
            must_equal("scan and sums without classes", seed, &plain, &parts);
            FL_CHECK(plain.r.class_count == r.w->class_count && !parts.r.class_time_s, "classes for who asks");
            must_equal("streams and sums", seed, &streams, &sums);
            FL_CHECK(!plain.jumps && !streams.jumps, "seed %llu: sums where others were forced",
                     (unsigned long long)seed);
            jumps += sums.jumps;
            free_outcome(&plain);
            free_outcome(&sums);
            free_outcome(&streams);
            free_outcome(&parts);
        }
        fx_close(&r);
    }
    FL_CHECK(jumps >= 24 * sizeof steps_us / sizeof *steps_us, "%llu jumps", (unsigned long long)jumps);
}

/* Lengths and powers at the edge of what 64 bits hold between two boundaries, and a stream that no run comes to the end
 * of at its lowest clock. */
static void test_borders(void) {
    static const int64_t work_ns[] = {0, 1, 65535, 4294967295, 4294967296, 20000000000, 3000000000000};
    for (uint64_t seed = 1; seed <= 6; seed++) {
        fx_rig r;
        fl_random g = fl_random_seed(seed, 192);
        fx_open(&r, 1);
        r.spec.device->a_w = 5900; /* with beta 8.97 kW at the top: row_make refuses more than 9 */
        r.spec.device->b_w = 120;
        fx_class(&r, 1, 0, 0, 1, 1, 1);
        fx_class(&r, 0, 1, 0, 0.2, 0.7, 0.5);
        fx_class(&r, 1, 1, 3, 1, 0, 1);
        const uint32_t s = fx_stream(&r, 0, 1);
        for (int i = 0; i < 700; i++) {
            const uint64_t which = fl_random_below(&g, 40);
            fx_op(&r, s, which == 9 ? 70000000 : (int64_t)fl_random_below(&g, 70000),
                  which < 7 ? work_ns[which] : 1 + (int64_t)fl_random_below(&g, 3000000),
                  (uint32_t)fl_random_below(&g, 3));
        }
        fx_finish(&r, 13);
        for (size_t k = 2; k < sizeof steps_us / sizeof *steps_us; k++) {
            fx_how how = how_of(seed, k);
            how.step_us *= 700; /* up to minutes: kernels last hours */
            outcome plain, sums;
            run_by(&r, how, FL_PATH_PLAIN, &plain);
            run_by(&r, how, FL_PATH_PREFIX, &sums);
            must_equal("borders", seed, &plain, &sums);
            FL_CHECK(sums.jumps > 0, "seed %llu: no jump", (unsigned long long)seed);
            free_outcome(&plain);
            free_outcome(&sums);
        }
        fx_close(&r);
    }
}

/* Kernels of 1 ms and boundaries that fall on their ends, edges of rows among them; marks, too. */
static void test_edges(void) {
    for (int count = 1; count <= 200; count += count < 70 ? 1 : 13) {
        fx_rig r;
        fx_open(&r, 1);
        const uint32_t light = fx_light(&r), s = fx_stream(&r, 0, 1);
        for (int i = 0; i < count; i++)
            fx_op(&r, s, 0, 1000000, light);
        fx_finish(&r, count % 2 ? 20 : 0); /* marks end jumps, too: every op of a short stream is one */
        for (int64_t ms = 1; ms <= 64; ms *= 2) {
            const fx_how how = {.mode = FX_NOTHING, .step_us = ms * 1000, .needs = every_signal};
            outcome plain, sums;
            run_by(&r, how, FL_PATH_PLAIN, &plain);
            run_by(&r, how, FL_PATH_PREFIX, &sums);
            must_equal("edges", (uint64_t)count, &plain, &sums);
            FL_CHECK(count % 2 || !sums.jumps == (count < FL_PREFIX_ROW || ms == 1), "%d ops, each %lld ms: %llu jumps",
                     count, (long long)ms, (unsigned long long)sums.jumps);
            free_outcome(&plain);
            free_outcome(&sums);
        }
        fx_close(&r);
    }
}

/* A kernel of no length draws nothing, however hungry its kind is: it is no peak, wherever in a table it lies. */
static void test_no_length(void) {
    for (int at = 0; at < 200; at += 7) {
        fx_rig r;
        fx_open(&r, 1);
        const uint32_t light = fx_light(&r), hungry = fx_class(&r, 1, 0, 0, 5, 5, 1), s = fx_stream(&r, 0, 0);
        for (int i = 0; i < 200; i++)
            fx_op(&r, s, 100, i == at ? 0 : 50000, i == at ? hungry : light);
        fx_finish(&r, 1);
        outcome plain, sums;
        const fx_how how = {.mode = FX_NOTHING, .step_us = 1100, .needs = FL_BIT(FL_GPU_POWER_W)};
        run_by(&r, how, FL_PATH_EVENTS, &plain);
        run_by(&r, how, FL_PATH_PREFIX, &sums);
        must_equal("no length", (uint64_t)at, &plain, &sums);
        FL_CHECK(sums.r.peak_power_w < 145, "op %d: a peak of %g W", at, sums.r.peak_power_w); /* 40 and 100 by hand */
        free_outcome(&plain);
        free_outcome(&sums);
        fx_close(&r);
    }
}

static bool same_sums(const fl_sums *a, const fl_sums *b) {
    return a->energy_fj == b->energy_fj && a->memory == b->memory && a->busy_ps == b->busy_ps && a->alu == b->alu &&
           a->sms == b->sms && a->bytes == b->bytes && a->copy_ps == b->copy_ps;
}

/* The sums of a later instant are those that a stop there finds, wherever the two lie in gaps and ops, and also after a
 * new clock. To ask for them changes nothing. */
static void test_foreseen(void) {
    uint64_t told = 0, asked = 0;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        fx_rig r;
        fl_random g = fl_random_seed(seed, 195);
        fx_open(&r, 1);
        fx_random_classes(&r, &g, 1 + (uint32_t)(seed % 5), 1);
        fx_random_ops(&r, &g, fx_stream(&r, 0, 1), 2000, seed % 2 ? 40000 : 900);
        fx_finish(&r, (uint32_t)(seed % 7));
        const fl_node_options o = {.w = r.w,
                                   .rates = r.rates,
                                   .spec = &r.spec,
                                   .seed = seed,
                                   .gpu_needs = seed % 3 ? every_signal : FL_BIT(FL_GPU_POWER_W),
                                   .path = FL_PATH_PREFIX};
        fl_node *n, *twin;
        FX_MUST(fl_node_open(&n, &o, d));
        FX_MUST(fl_node_open(&twin, &o, d));
        for (int64_t now = 0; !fl_node_done(twin);) {
            fl_sums sums;
            const int64_t t = now + 1 + (int64_t)fl_random_below(&g, 4 * (uint64_t)FX_MS_PS);
            const bool busy_only = fl_random_below(&g, 2);
            const bool known = fl_prefix_foresee(&n->gpu[0], &n->lane[0], FL_MUL_ONE, t, busy_only, &sums);
            if (fl_random_below(&g, 8) == 0) { /* settles at once: the rest of the op in progress is rescaled */
                const double mhz = 500 + 100 * (double)fl_random_below(&g, 11);
                fl_node_set(n, 0, t, mhz, 800);
                fl_node_set(twin, 0, t, mhz, 800);
            }
            FX_MUST(fl_node_advance(n, t, d));
            FX_MUST(fl_node_advance(twin, t, d));
            asked++;
            told += known;
            FL_CHECK(!known || sums.busy_ps == n->gpu[0].sums.busy_ps, "seed %llu: other busy time at %lld ps",
                     (unsigned long long)seed, (long long)t);
            FL_CHECK(!known || busy_only || same_sums(&sums, &n->gpu[0].sums), "seed %llu: other sums at %lld ps",
                     (unsigned long long)seed, (long long)t);
            FL_CHECK(fl_node_hash(n) == fl_node_hash(twin), "seed %llu: asking changed the course at %lld ps",
                     (unsigned long long)seed, (long long)t);
            now = t;
        }
        fl_node_close(n);
        fl_node_close(twin);
        fx_close(&r);
    }
    FL_CHECK(told > 300 && told < asked, "told %llu of %llu", (unsigned long long)told, (unsigned long long)asked);
}

/* ---- what it does not carry ---- */

static void test_stays_away(void) {
    for (int what = 0; what < 4; what++) {
        fx_rig r;
        fl_random g = fl_random_seed(7, 193);
        fx_open(&r, 1);
        fx_random_classes(&r, &g, 3, 1);
        if (what == 0)
            r.w->class[1].copy = true;
        if (what == 1)
            r.w->class[1].part = true;
        if (what == 2)
            r.spec.device->gate_ns = 50000;
        fx_random_ops(&r, &g, fx_stream(&r, 0, 1), 2000, 40000);
        fx_finish(&r, 5);
        fx_how how = {.mode = FX_RANDOM, .step_us = 5000, .needs = every_signal, .records = what == 3};
        outcome plain, sums;
        run_by(&r, how, FL_PATH_PLAIN, &plain);
        run_by(&r, how, FL_PATH_PREFIX, &sums);
        must_equal("not carried", (uint64_t)what, &plain, &sums);
        FL_CHECK(!sums.jumps, "case %d: %llu jumps", what, (unsigned long long)sums.jumps);
        free_outcome(&plain);
        free_outcome(&sums);
        fx_close(&r);
    }
}

/* ---- when a table is built ---- */

static void long_rig(fx_rig *r, size_t ops) {
    fl_random g = fl_random_seed(3, 194);
    fx_open(r, 1);
    fx_random_classes(r, &g, 5, 1);
    fx_random_ops(r, &g, fx_stream(r, 0, 1), ops, 40000);
    fx_finish(r, 20);
}

static const fl_prefix *table_at(const fx_rig *r, double sm_mhz) {
    return atomic_load(&fx_rates(r, sm_mhz, 800)->prefix[0].table);
}

static void test_when(void) {
    fx_rig r;
    long_rig(&r, 20000);
    outcome plain, run;
    const fx_how far = {.mode = FX_NOTHING, .step_us = 100000}, near = {.mode = FX_NOTHING, .step_us = 2000};
    run_by(&r, far, FL_PATH_PLAIN, &plain);
    FL_CHECK(!table_at(&r, 1000), "a table that nobody may use");
    free_outcome(&plain);
    for (int i = 0; i < 3; i++) { /* some 50 ops a step */
        run_by(&r, near, FL_PATH_AUTO, &run);
        free_outcome(&run);
    }
    FL_CHECK(!table_at(&r, 1000), "a table for stretches that are scanned as fast");
    run_by(&r, far, FL_PATH_PLAIN, &plain);
    uint64_t jumps[3];
    for (int i = 0; i < 3; i++) {
        run_by(&r, far, FL_PATH_AUTO, &run);
        must_equal("when", (uint64_t)i, &plain, &run);
        jumps[i] = run.jumps;
        free_outcome(&run);
    }
    FL_CHECK(!jumps[0] && !jumps[1] && jumps[2] > 0, "jumps: %llu, %llu, %llu", (unsigned long long)jumps[0],
             (unsigned long long)jumps[1], (unsigned long long)jumps[2]);
    FL_CHECK(table_at(&r, 1000) && !table_at(&r, 900), "a table at the clock that was used, and no other");
    run_by(&r, near, FL_PATH_AUTO, &run);
    FL_CHECK(!run.jumps, "short stretches are scanned: %llu jumps", (unsigned long long)run.jumps);
    free_outcome(&run);
    free_outcome(&plain);
    fx_close(&r);
}

static int tables_of(const fx_rig *r) {
    int built = 0;
    for (int sm = 500; sm <= 1500; sm += 100) {
        const fl_run_options o = {.w = r->w,
                                  .rates = r->rates,
                                  .spec = &r->spec,
                                  .facts = &r->facts,
                                  .first_sm_mhz = sm,
                                  .path = FL_PATH_PREFIX};
        fl_run_result out;
        FX_MUST(fl_run(&o, &out, d));
        built += table_at(r, sm) != NULL;
        fl_run_result_free(&out);
    }
    return built;
}

/* Tables of 11 clocks in room for less than 4 of them: the other clocks go without. What is freed is room again. */
static void test_room(void) {
    const int64_t ops = 32000, table = (ops / 32 + 1) * 64 + (ops / 32 / 64 + 1) * 12 + (ops / 1024 + 1) * 4;
    fl_prefix_limit(4 * table - 1);
    for (int again = 0; again < 2; again++) {
        fx_rig r;
        long_rig(&r, (size_t)ops);
        const int built = tables_of(&r);
        FL_CHECK(built == 3, "%d tables", built);
        fx_close(&r);
    }
    fl_prefix_limit(FL_PREFIX_MOST_BYTES);
}

/* ---- several threads ---- */

typedef struct together {
    fx_rig r;
    outcome out[8];
} together;

static fl_status run_one(void *user, size_t i, fl_diag *d) {
    together *t = user;
    fx_how how = {.mode = i % 2 ? FX_RANDOM : FX_NOTHING,
                  .step_us = 50000,
                  .needs = every_signal,
                  .on_step = on_step,
                  .user = &t->out[i].seen};
    return fx_try(&t->r, &how, &t->out[i].r, d);
}

static void run_all(together *t, unsigned threads) {
    *t = (together){.out = {{.jumps = 0}}};
    long_rig(&t->r, 20000);
    FX_MUST(fl_pool_run(run_one, t, 8, threads, "runs", d));
}

static void test_threads(void) {
    together one, four;
    const uint64_t before = fl_path_taken(FL_PATH_PREFIX);
    run_all(&one, 1);
    run_all(&four, 4);
    FL_CHECK(fl_path_taken(FL_PATH_PREFIX) > before, "no jump");
    for (size_t i = 0; i < 8; i++) {
        must_equal("threads", i, &one.out[i], &four.out[i]);
        free_outcome(&one.out[i]);
        free_outcome(&four.out[i]);
    }
    fx_close(&one.r);
    fx_close(&four.r);
}

FL_SUITE("prefix", {"random streams", test_random}, {"borders", test_borders}, {"edges", test_edges},
         {"no length", test_no_length}, {"foreseen", test_foreseen}, {"stays away", test_stays_away},
         {"when", test_when}, {"room", test_room}, {"threads", test_threads})
