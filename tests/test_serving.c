/* Servers on a simulated node: by hand, through changes of the clock, and what must be conserved whatever happens. */
#include "policies/registry.h"
#include "sim/work.h"
#include "tests/support/serving_fixture.h"

#include <inttypes.h>

/* ---- by hand ---- */

#define BASE_MW 40000 /* at 1000 and 800 MHz */

/* One request alone: 100 tokens in, 3 out, and 20 ms later another of one token. The prompt takes 128 tiles, 100 tokens
 * of KV and 5050 pairs: 1 + 4 + 1.28 + 0.01 + 0.00505 ms. Its decodes read 101 and 102 tokens of KV. */
static void test_one_at_a_time(void) {
    sx_rig x;
    sx_open(&x, 1, 1);
    sx_request(&x, 1000000, 100, 3);
    sx_request(&x, 21000000, 16, 1);
    sx_finish(&x);
    fl_run_result run;
    fx_run(&x.r, &(fx_how){.mode = -1}, &run);
    const fl_served *a = &run.served.request[0], *b = &run.served.request[1];
    const int64_t us = FX_US_PS, first = 1000 * us + 6295050000, second = first + 5020100000,
                  third = second + 5020200000;
    FL_CHECK(a->arrival_ps == 1000 * us && a->taken_ps == a->arrival_ps && a->first_ps == first && a->done_ps == third,
             "taken %" PRId64 ", first %" PRId64 ", done %" PRId64, a->taken_ps, a->first_ps, a->done_ps);
    FL_CHECK(a->worst_tbt_ps == 5020200000, "worst TBT %" PRId64, a->worst_tbt_ps);
    /* 1 + 4 + 0.16 + 0.0016 + 0.000136 ms */
    FL_CHECK(b->first_ps - b->arrival_ps == 5161736000 && b->done_ps == b->first_ps, "%" PRId64,
             b->first_ps - b->arrival_ps);
    FL_CHECK(run.makespan_ps == b->done_ps, "ends at %" PRId64, run.makespan_ps);
    CU_ASSERT_EQUAL(run.kernels, 4);
    CU_ASSERT_EQUAL(run.served.sum.steps, 4);
    CU_ASSERT_EQUAL(run.served.sum.output_tokens, 4);
    CU_ASSERT_EQUAL(run.served.sum.prompt_tokens, 116);
    CU_ASSERT_EQUAL(run.served.sum.computed_tokens, 118);
    CU_ASSERT_DOUBLE_EQUAL(run.served.sum.tbt.mean_s, 5.02015e-3, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(run.served.sum.tpot.p50_s, 5.02015e-3, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(run.served.sum.ttft.max_s, 6.29505e-3, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(run.served.sum.e2e.max_s, 16.33535e-3, 1e-12);
    /* The prompt computes for 1.28 + 0.00505 ms at 100 W and moves data for 4 + 0.01 ms at 50 W, above 40 W. */
    const double step_s = 6.29505e-3;
    const int64_t sm_mw = llround(1.28505e-3 / step_s * 100000), memory_mw = llround(4.01e-3 / step_s * 50000);
    FL_CHECK(a->prefill_fj == (fl_wide)6295050000 * (BASE_MW + sm_mw + memory_mw), "%.17g J", fl_joules(a->prefill_fj));
    const fl_wide busy = 6295050000 + 5020100000 + 5020200000 + INT64_C(5161736000);
    FL_CHECK(run.served.sum.idle_fj == (run.makespan_ps - busy) * BASE_MW, "idle %.17g J",
             fl_joules(run.served.sum.idle_fj));
    FL_CHECK(run.served.sum.idle_fj + a->prefill_fj + a->decode_fj + b->prefill_fj + b->decode_fj == run.energy_fj,
             "parts do not make the whole");
    fl_run_result_free(&run);
    sx_close(&x);
}

/* Two decodes beside a prompt: who shares what. */
static void test_shared_step(void) {
    sx_rig x;
    sx_open(&x, 1, 1);
    sx_request(&x, 0, 16, 3);
    sx_request(&x, 0, 32, 3);
    sx_request(&x, 1000000, 64, 1); /* comes while the first step runs, and is in the second */
    sx_finish(&x);
    fl_run_result run;
    fx_run(&x.r, &(fx_how){.mode = -1}, &run);
    const fl_served *s = run.served.request;
    fl_step_shape first = {0}, prompts = {0}, decodes = {0};
    fl_step_add_prompt(&first, 16, 0);
    fl_step_add_prompt(&first, 32, 0);
    fl_step_add_prompt(&prompts, 64, 0);
    fl_step_add_decode(&decodes, 16);
    fl_step_add_decode(&decodes, 32);
    fl_step_shape both = prompts;
    fl_step_add_decode(&both, 16);
    fl_step_add_decode(&both, 32);
    fl_step_point at;
    CU_ASSERT_FATAL(fl_step_at(&x.law, &both, 1000, 1, &at) == FL_MODEL_OK);
    const int64_t length = llround(at.time_s * 1e12), began = llround(1e12 * fl_step_time_s(&x.law, &first, 1000, 1)),
                  alone_p = llround(1e12 * fl_step_time_s(&x.law, &prompts, 1000, 1)),
                  alone_d = llround(1e12 * fl_step_time_s(&x.law, &decodes, 1000, 1));
    FL_CHECK(s[2].taken_ps == began && s[2].first_ps == began + length && s[0].first_ps == began,
             "taken %" PRId64 ", expected %" PRId64, s[2].taken_ps, began);
    const fl_wide all = (fl_wide)length * (BASE_MW + llround(at.compute * 100000) + llround(at.memory * 50000));
    FL_CHECK(s[2].prefill_fj == all * alone_p / (alone_p + alone_d), "prefill %.17g J", fl_joules(s[2].prefill_fj));
    CU_ASSERT(s[2].decode_fj == 0);
    const fl_wide less = s[0].decode_fj - s[1].decode_fj; /* both decoded in the same two steps */
    FL_CHECK(less >= -2 && less <= 2, "decodes differ by %g fJ", fx_f(less));
    const fl_wide third = s[0].prefill_fj * 2 - s[1].prefill_fj; /* 16 tokens against 32 */
    FL_CHECK(third >= -2 && third <= 2, "prompts are off by %g fJ", fx_f(third));
    fl_run_result_free(&run);
    sx_close(&x);
}

/* ---- clocks ---- */

static uint32_t sm_index(const sx_rig *x, double mhz) {
    return (uint32_t)fl_ladder_index(x->r.spec.device->sm_mhz, x->r.spec.device->sm_count, mhz);
}

static fl_node *open_node(const sx_rig *x, const fl_node_options *more) {
    fl_node_options o = *more;
    o.w = x->r.w;
    o.rates = x->r.rates;
    o.spec = &x->r.spec;
    o.seed = 1;
    fl_node *n;
    FX_MUST(fl_node_open(&n, &o, d));
    return n;
}

/* The prompt of test_one_at_a_time takes 6.29505 ms at 1000 MHz and 5.01 + 1.28505 x 2 = 7.5801 ms at 500 MHz. At 3 ms
 * the clock falls: 3.29505 ms are left, which become 3.29505 x 7.5801 / 6.29505. A memory clock of 400 MHz then makes
 * it 9.0001 + 2.5701 at 4 ms. */
static void test_change_in_a_step(void) {
    sx_rig x;
    sx_open(&x, 1, 1);
    sx_request(&x, 0, 100, 1);
    sx_finish(&x);
    fl_node *n = open_node(&x, &(fl_node_options){0});
    fx_advance(n, 3 * FX_MS_PS);
    fl_node_set(n, 0, fl_node_now(n), 500, NAN);
    fx_advance(n, 4 * FX_MS_PS);
    fl_node_set(n, 0, fl_node_now(n), NAN, 400);
    fx_to_end(n);
    const int64_t full[] = {6295050000, 7580100000, 7580100000 + 4010000000};
    const int64_t then = fl_rescale_ps(full[0] - 3 * FX_MS_PS, full[0], full[1]);
    const int64_t last = fl_rescale_ps(then - FX_MS_PS, full[1], full[2]);
    FL_CHECK(fl_node_now(n) == 4 * FX_MS_PS + last, "ends at %" PRId64 ", expected %" PRId64, fl_node_now(n),
             4 * FX_MS_PS + last);
    CU_ASSERT_EQUAL(fl_node_gpu(n, 0)->sm, sm_index(&x, 500));
    fl_node_close(n);
    sx_close(&x);
}

/* Kernel records stretch a step, as they do kernels. */
static void test_records_take_time(void) {
    sx_rig x;
    sx_open(&x, 1, 1);
    x.r.spec.device->records_slowdown = 0.5;
    sx_request(&x, 0, 100, 2);
    sx_finish(&x);
    fl_node *n = open_node(&x, &(fl_node_options){0});
    fl_node_records(n, 0, true);
    fx_to_end(n);
    const fl_kernel_record *record;
    size_t count;
    FX_MUST(fl_node_take_records(n, &record, &count, d));
    FL_CHECK(fl_node_now(n) == llround(1.5 * (6295050000 + 5020100000.0)), "%" PRId64, fl_node_now(n));
    CU_ASSERT_EQUAL(count, 2);
    FL_CHECK(record[0].start_ns == 0 && record[0].end_ns == 9442575 && record[1].start_ns == 9442575, "%" PRId64,
             record[0].end_ns);
    fl_node_close(n);
    sx_close(&x);
}

/* Two ranks at 1000 and 500 MHz: the slower sets the pace, the other spins at its SM power. */
static void test_slowest_rank(void) {
    sx_rig x;
    sx_open(&x, 1, 2);
    sx_request(&x, 0, 100, 1);
    sx_finish(&x);
    fl_node *n = open_node(&x, &(fl_node_options){0});
    fl_node_set(n, 1, 0, 500, NAN);
    fx_to_end(n);
    FL_CHECK(fl_node_now(n) == 7580100000, "ends at %" PRId64, fl_node_now(n));
    const int64_t fast_mw = llround(1.28505 / 6.29505 * 100000) + llround(4.01 / 7.5801 * 50000) + BASE_MW,
                  slow_mw = llround(2.5701 / 7.5801 * 50000) + llround(4.01 / 7.5801 * 50000) + BASE_MW - 5000;
    FL_CHECK(fl_node_gpu(n, 0)->sums.energy_fj == (fl_wide)7580100000 * fast_mw, "%.17g J of %.17g",
             fl_joules(fl_node_gpu(n, 0)->sums.energy_fj), 7.5801e-3 * (double)fast_mw * 1e-3);
    FL_CHECK(fl_node_gpu(n, 1)->sums.energy_fj == (fl_wide)7580100000 * slow_mw, "%.17g J of %.17g",
             fl_joules(fl_node_gpu(n, 1)->sums.energy_fj), 7.5801e-3 * (double)slow_mw * 1e-3);
    fl_node_close(n);
    sx_close(&x);
}

/* A step of two seconds at 1500 MHz draws more than the limit: the wall takes the clock down in it. */
static void test_wall(void) {
    for (int ideal = 0; ideal < 2; ideal++) {
        sx_rig x;
        sx_open(&x, 1, 1);
        x.law.token = 1e-2;
        x.law.weights_s = 0;
        nx_wall(&x.r, 120);
        x.r.spec.device->wall.ideal = ideal;
        sx_request(&x, 0, 200, 1);
        sx_finish(&x);
        fl_node *n = open_node(&x, &(fl_node_options){.first_sm_mhz = 1500});
        fx_advance(n, 50 * FX_MS_PS);
        fl_wide before = fl_node_gpu(n, 0)->sums.energy_fj;
        fx_advance(n, 1500 * FX_MS_PS);
        const fl_gpu *g = fl_node_gpu(n, 0);
        const double watts = fl_joules(g->sums.energy_fj - before) / 1.45;
        FL_CHECK(watts < 121 && watts > 100, "%g W behind a wall of 120 W", watts);
        FL_CHECK(g->wall_held_ps > 1400 * FX_MS_PS, "held for %g s", fl_seconds(g->wall_held_ps));
        fx_to_end(n);
        fl_node_close(n);
        sx_close(&x);
    }
}

/* ---- where it is cut cannot show ---- */

static void random_rig(sx_rig *x, fl_random *g) {
    const uint32_t servers = 1 + (uint32_t)fl_random_below(g, 2), ranks = 1 + (uint32_t)fl_random_below(g, 2);
    sx_open(x, servers, ranks);
    if (fl_random_below(g, 2))
        nx_wall(&x->r, 60 + 60 * fl_random_unit(g));
    if (fl_random_below(g, 2))
        nx_heat(&x->r, 45);
    if (fl_random_below(g, 2))
        nx_cpu(&x->r);
    if (fl_random_below(g, 2))
        nx_host_sensors(&x->r);
    fl_device *dev = x->r.spec.device;
    dev->gate_ns = fl_random_below(g, 2) ? 3000000 : 0;
    dev->actuator.settle_ns = (int64_t)fl_random_below(g, 5000000);
    dev->records_slowdown = 0.02;
    x->setup.route = fl_random_below(g, 2) ? FL_ROUTE_LEAST_LOADED : FL_ROUTE_ROUND_ROBIN;
    x->setup.scale = fl_random_below(g, 2) ? 1 + fl_random_unit(g) : 0;
    x->setup.signals_ns = fl_random_below(g, 2) ? 1 + (int64_t)fl_random_below(g, 100000000) : 0;
    for (uint32_t i = 0; i < servers; i++) {
        fl_batching_rules *rules = &x->server[i].rules;
        rules->max_seqs = 1 + (uint32_t)fl_random_below(g, 24);
        rules->token_budget = 1 + (uint32_t)fl_random_below(g, 300);
        rules->block_tokens = 1 + (uint32_t)fl_random_below(g, 16);
        rules->kv_blocks = 400 / rules->block_tokens + 1 + fl_random_below(g, 100);
        rules->prefix_cache = fl_random_below(g, 2);
    }
    sx_random_requests(x, g, 1 + fl_random_below(g, 60), 30e6 * fl_random_unit(g), 200,
                       1 + (uint32_t)fl_random_below(g, 200));
    sx_finish(x);
}

typedef struct course { /* of one run */
    uint64_t hash;
    int64_t end_ps;
    fl_wide energy_fj;
} course;

/* Sets at fixed instants; in between it is advanced in one go, or cut at random. */
static course drive(const sx_rig *x, fl_random *cuts) {
    fl_node *n = open_node(x, &(fl_node_options){.server_needs = UINT64_MAX, .batches = true});
    fl_random sets = fl_random_seed(5, 5);
    const int64_t apart = 40 * FX_MS_PS;
    fl_server_sample sample;
    uint64_t seen = 1469598103934665603u;
    for (int64_t next = apart; !fl_node_done(n); next += apart) {
        while (cuts && !fl_node_done(n) && fl_node_now(n) < next) {
            const int64_t cut = fl_node_now(n) + 1 + (int64_t)fl_random_below(cuts, 20 * (uint64_t)FX_MS_PS);
            fx_advance(n, cut < next ? cut : next);
            fl_node_read_server(n, 0, false, &sample);
        }
        if (!fl_node_done(n))
            fx_advance(n, next);
        for (uint32_t i = 0; i < x->setup.server_count; i++) {
            fl_node_read_server(n, i, true, &sample);
            for (int k = 0; k < FL_SERVER_SIGNAL_COUNT; k++)
                seen = (seen ^ (uint64_t)(sample.value[k] * 64)) * 1099511628211u;
        }
        for (uint32_t i = 0; i < fl_node_gpu_count(n); i++)
            fl_node_set(n, i, fl_node_now(n), x->r.spec.device->sm_mhz[fl_random_below(&sets, 11)], NAN);
    }
    const course c = {fl_node_hash(n) ^ seen, fl_node_now(n), fl_node_energy_fj(n)};
    fl_node_close(n);
    return c;
}

static void test_cuts(void) {
    for (uint64_t seed = 0; seed < 40; seed++) {
        sx_rig x;
        fl_random g = fl_random_seed(seed, 3);
        random_rig(&x, &g);
        fl_random cuts = fl_random_seed(seed, 4);
        const course whole = drive(&x, NULL), cut = drive(&x, &cuts);
        FL_CHECK(whole.hash == cut.hash && whole.end_ps == cut.end_ps && whole.energy_fj == cut.energy_fj,
                 "seed %" PRIu64 ": ends at %" PRId64 " and %" PRId64 " ps, %.17g and %.17g J", seed, whole.end_ps,
                 cut.end_ps, fl_joules(whole.energy_fj), fl_joules(cut.energy_fj));
        sx_close(&x);
    }
}

/* ---- what is conserved ---- */

static void check_request(const sx_rig *x, const fl_served *s, size_t i, uint64_t seed) {
    const fl_request_row *row = &x->requests.row[i];
    FL_CHECK(s->arrival_ps == fl_serving_arrival_ps(&x->setup, i) && s->arrival_ps <= s->taken_ps &&
                 s->taken_ps < s->first_ps && s->first_ps <= s->done_ps && s->server < x->setup.server_count,
             "seed %" PRIu64 ", request %zu: %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, seed, i, s->arrival_ps,
             s->taken_ps, s->first_ps, s->done_ps);
    FL_CHECK((row->output_tokens > 1) == (s->done_ps > s->first_ps) &&
                 (row->output_tokens > 1) == (s->worst_tbt_ps > 0),
             "seed %" PRIu64 ", request %zu of %u tokens", seed, i, row->output_tokens);
    FL_CHECK(s->worst_tbt_ps * (row->output_tokens - 1) >= s->done_ps - s->first_ps,
             "seed %" PRIu64 ", request %zu: worst TBT %" PRId64, seed, i, s->worst_tbt_ps);
    /* A token may also come out of the prompt that a preempted request computes again. */
    FL_CHECK(s->prefill_fj > 0 && s->decode_fj >= 0 && (row->output_tokens > 1 || !s->decode_fj) &&
                 (s->decode_fj > 0 || s->preemptions || row->output_tokens == 1),
             "seed %" PRIu64 ", request %zu: %g and %g J", seed, i, fl_joules(s->prefill_fj), fl_joules(s->decode_fj));
}

typedef struct kv_watch {
    const sx_rig *x;
    uint64_t wrong, looks;
} kv_watch;

static fl_status watch_blocks(void *user, const fl_node *n, int64_t t_ps, fl_diag *d) {
    kv_watch *w = user;
    const fl_engines *v = fl_node_engines(n);
    (void)t_ps;
    (void)d;
    for (uint32_t i = 0; i < w->x->setup.server_count; i++) {
        const fl_batching_counts c = fl_batching_count(v->engine[i].batching);
        w->wrong += c.blocks_used > w->x->server[i].rules.kv_blocks || c.running > w->x->server[i].rules.max_seqs ||
                    c.arrived != c.waiting + c.running + c.finished;
        w->looks++;
    }
    return FL_OK;
}

static const fl_policy *built_in(const char *name) {
    for (size_t i = 0; i < fl_policies_count; i++)
        if (!strcmp(fl_policies[i]->name, name))
            return fl_policies[i];
    return NULL;
}

static void conserve(uint64_t seed) {
    sx_rig x;
    fl_random g = fl_random_seed(seed, 1);
    random_rig(&x, &g);
    static const char *const names[] = {"fixed", "utilizscale"};
    const uint64_t how = fl_random_below(&g, 4); /* nothing, the two by name, random clocks */
    kv_watch kv = {.x = &x};
    fl_run_result run;
    fl_diag d = {0};
    if (how == 1 || how == 2) {
        const fl_policy *policy = built_in(names[how - 1]);
        CU_ASSERT_FATAL(policy != NULL);
        fl_setting mhz = {.name = "sm_mhz", .text = "700"};
        fl_layer layer = {.origin = "test", .setting = &mhz, .count = how == 1};
        fl_run_options o = {.w = x.r.w,
                            .rates = x.r.rates,
                            .spec = &x.r.spec,
                            .facts = &x.r.facts,
                            .policy = policy,
                            .layer = &layer,
                            .layer_count = 1,
                            .on_truth = watch_blocks,
                            .truth_ns = 7000000,
                            .user = &kv};
        const fl_status s = fl_run(&o, &run, &d);
        FL_CHECK(!s, "seed %" PRIu64 ": %s", seed, d.message);
        CU_ASSERT_FATAL(!s);
    } else {
        fx_run(&x.r,
               &(fx_how){.mode = how ? FX_RANDOM_BOTH : FX_NOTHING,
                         .step_us = 5000,
                         .records = fl_random_below(&g, 2),
                         .on_truth = watch_blocks,
                         .truth_ns = 7000000,
                         .user = &kv},
               &run);
    }
    uint64_t prompts = 0, outputs = 0, preempted = 0;
    fl_wide given = 0;
    for (size_t i = 0; i < x.requests.count; i++) {
        const fl_served *s = &run.served.request[i];
        check_request(&x, s, i, seed);
        prompts += x.requests.row[i].prompt_tokens;
        outputs += x.requests.row[i].output_tokens;
        preempted += s->preemptions;
        given += s->prefill_fj + s->decode_fj;
    }
    const fl_served_summary *sum = &run.served.sum;
    FL_CHECK(kv.wrong == 0 && kv.looks > 0, "seed %" PRIu64 ": %" PRIu64 " times beyond the rules", seed, kv.wrong);
    FL_CHECK(sum->requests == x.requests.count && sum->prompt_tokens == prompts && sum->output_tokens == outputs &&
                 sum->preemptions == preempted,
             "seed %" PRIu64 ": %" PRIu64 " of %" PRIu64 " tokens, %" PRIu64 " of %" PRIu64 " preemptions", seed,
             sum->output_tokens, outputs, sum->preemptions, preempted);
    FL_CHECK(sum->tbt.count == outputs - sum->requests && sum->ttft.count == sum->requests, "seed %" PRIu64, seed);
    FL_CHECK(given == sum->serving_fj && given + sum->idle_fj == run.energy_fj && sum->idle_fj >= 0,
             "seed %" PRIu64 ": %.17g + %.17g J of %.17g", seed, fl_joules(given), fl_joules(sum->idle_fj),
             fl_joules(run.energy_fj));
    FL_CHECK(run.makespan_ps >= run.served.request[x.requests.count - 1].first_ps, "seed %" PRIu64, seed);
    fl_run_result_free(&run);
    sx_close(&x);
}

/* FL_TRIALS=1000 for the long form. */
static void test_conservation(void) {
    const char *trials = getenv("FL_TRIALS");
    const uint64_t count = trials ? strtoull(trials, NULL, 10) : 150;
    for (uint64_t seed = 0; seed < count; seed++)
        conserve(seed);
}

FL_SUITE("serving", {"one request at a time", test_one_at_a_time}, {"a step shared", test_shared_step},
         {"a clock changes in a step", test_change_in_a_step}, {"records take time", test_records_take_time},
         {"the slowest rank", test_slowest_rank}, {"the wall", test_wall}, {"cut anywhere", test_cuts},
         {"conservation", test_conservation})
