/* Servers on a simulated node, seeded: where it is cut cannot show, and what must be conserved whatever happens. */
#include "models/laws/device.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "policies/registry/registry.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/instance/instance.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "sim/serving/serving.h"
#include "sim/serving/inside.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"
#include "tests/support/serving_fixture.h"

#include <inttypes.h>

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
    x->setup.tbt_target_ns = 6000000;
    x->setup.signals_ns = fl_random_below(g, 2) ? 1 + (int64_t)fl_random_below(g, 100000000) : 0;
    for (uint32_t i = 0; i < servers; i++) {
        fl_batching_rules *rules = &x->server[i].rules;
        rules->async_scheduling = fl_random_below(g, 2) > 0;
        rules->max_seqs = 1 + (uint32_t)fl_random_below(g, 24);
        rules->token_budget = 1 + (uint32_t)fl_random_below(g, 300);
        rules->block_tokens = 1 + (uint32_t)fl_random_below(g, 16);
        rules->kv_blocks = 400 / rules->block_tokens + 1 + fl_random_below(g, 100);
        rules->prefix_cache = fl_random_below(g, 2) > 0;
    }
    sx_random_requests(x, g, 1 + fl_random_below(g, 60), 30e6 * fl_random_unit(g), 200,
                       1 + (uint32_t)fl_random_below(g, 200));
    if (servers > 1 && fl_random_below(g, 2)) { /* replicas that share experts */
        x->setup.replicas = x->law.replicas = x->law.expert_ranks = 2;
        x->law.experts = 16;
        x->law.top_k = 2;
        x->law.expert_s = 1e-4;
        x->law.expert_token = 1e-5;
        x->law.exchanges = 4;
        x->law.exchange_s = 1e-5;
    } else if (servers > 1 && fl_random_below(g, 2)) { /* pools */
        x->server[0].role = FL_ROLE_PREFILL;
        x->server[1].role = FL_ROLE_DECODE;
        x->setup.link = (fl_serving_link){.latency_ns = 20000, .bytes_per_s = 1e9, .bytes_per_token = 1e5};
    }
    sx_finish(x);
}

typedef struct course { /* of one run */
    uint64_t hash;
    int64_t end_ps;
    fl_wide energy_fj;
} course;

/* Sets at fixed instants; in between it is advanced in one go, or cut at random. */
static course drive(const sx_rig *x, fl_random *cuts) {
    fl_node *n = sx_node(x, &(fl_node_options){.server_needs = UINT64_MAX, .batches = true});
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
    FL_CHECK(s->prefill_fj > 0 && s->decode_fj >= 0 && (row->output_tokens > 1 || s->decode_fj < 24) &&
                 (s->decode_fj > 0 || s->preemptions || row->output_tokens == 1),
             "seed %" PRIu64 ", request %zu: %g and %g J", seed, i, fl_joules(s->prefill_fj), fl_joules(s->decode_fj));
}

typedef struct kv_watch {
    const sx_rig *x;
    uint64_t wrong, looks;
} kv_watch;

static fl_status watch_blocks(void *user, const fl_node *n, int64_t t_ps, fl_diag *d) {
    kv_watch *w = user;
    (void)t_ps;
    (void)d;
    for (uint32_t i = 0; i < w->x->setup.server_count; i++) {
        const fl_batching_counts c = fl_node_batching(n, i);
        w->wrong += c.blocks_used > w->x->server[i].rules.kv_blocks || c.running > w->x->server[i].rules.max_seqs ||
                    c.arrived != c.waiting + c.running + c.held + c.finished;
        w->looks++;
    }
    return FL_OK;
}

/* No run costs less than the bound says, takes fewer steps, or computes fewer tokens. */
static void check_bound(const sx_rig *x, const fl_run_result *run, uint64_t seed) {
    const fl_served_summary *sum = &run->served.sum;
    fl_serving_bound least;
    FX_MUST(fl_serving_bound_of(x->r.w, x->r.rates, &x->r.spec, &least, d));
    FL_CHECK(least.steps_j > 0 && least.floor_j >= 0 && run->gpu_energy_j >= least.energy_j,
             "seed %" PRIu64 ": %.17g J, bound %.17g + %.17g J", seed, run->gpu_energy_j, least.floor_j, least.steps_j);
    FL_CHECK((double)sum->steps >= least.steps && (double)sum->computed_tokens >= least.tokens,
             "seed %" PRIu64 ": %" PRIu64 " steps, %" PRIu64 " tokens, bound %.17g, %.17g", seed, sum->steps,
             sum->computed_tokens, least.steps, least.tokens);
}

/* False where the policy of this seed refuses the node. */
static bool conserve(uint64_t seed) {
    sx_rig x;
    fl_random g = fl_random_seed(seed, 1);
    random_rig(&x, &g);
    const size_t how = seed % (fl_policies_count + 2); /* nothing, random clocks, the built-in ones */
    kv_watch kv = {.x = &x};
    fl_run_result run;
    fl_diag d = {0};
    if (how < 2) {
        fx_run(&x.r,
               &(fx_how){.mode = how ? FX_RANDOM_BOTH : FX_NOTHING,
                         .step_us = 5000,
                         .records = fl_random_below(&g, 2),
                         .on_truth = watch_blocks,
                         .truth_ns = 7000000,
                         .user = &kv},
               &run);
    } else {
        fl_setting clock = {.name = "sm_mhz", .text = "700"};
        const bool fixed = !strcmp(fl_policies[how - 2]->name, "fixed");
        const fl_layer layer = {.origin = "test", .setting = &clock, .count = fixed};
        const fl_run_options o = {.w = x.r.w,
                                  .rates = x.r.rates,
                                  .spec = &x.r.spec,
                                  .facts = &x.r.facts,
                                  .policy = fl_policies[how - 2],
                                  .layer = &layer,
                                  .layer_count = 1,
                                  .on_truth = watch_blocks,
                                  .truth_ns = 7000000,
                                  .user = &kv};
        const fl_status s = fl_run(&o, &run, &d);
        FL_CHECK(s == FL_OK || s == FL_BAD_INPUT, "seed %" PRIu64 ", %s: %s", seed, o.policy->name, d.message);
        if (s) { /* it asks for a parameter, or for what this node does not have */
            sx_close(&x);
            return false;
        }
    }
    uint64_t prompts = 0, outputs = 0, preempted = 0, late = 0;
    fl_wide given = 0, between = 0;
    for (size_t i = 0; i < x.requests.count; i++) {
        const fl_served *s = &run.served.request[i];
        check_request(&x, s, i, seed);
        prompts += x.requests.row[i].prompt_tokens;
        outputs += x.requests.row[i].output_tokens;
        preempted += s->preemptions;
        given += s->prefill_fj + s->decode_fj;
        late += s->tbt_missed;
        between += s->done_ps - s->first_ps;
    }
    const fl_served_summary *sum = &run.served.sum;
    FL_CHECK(kv.wrong == 0 && kv.looks > 0, "seed %" PRIu64 ": %" PRIu64 " times beyond the rules", seed, kv.wrong);
    FL_CHECK(sum->requests == x.requests.count && sum->prompt_tokens == prompts && sum->output_tokens == outputs &&
                 sum->preemptions == preempted,
             "seed %" PRIu64 ": %" PRIu64 " of %" PRIu64 " tokens, %" PRIu64 " of %" PRIu64 " preemptions", seed,
             sum->output_tokens, outputs, sum->preemptions, preempted);
    FL_CHECK(fx_near(sum->tbt_missed * (double)sum->tbt.count, (double)late, 1e-9) &&
                 (!sum->tbt.count || fx_near(sum->tbt.mean_s * (double)sum->tbt.count, fl_real(between) * 1e-12, 1e-9)),
             "seed %" PRIu64 ": %" PRIu64 " late tokens, %.17g s between all", seed, late, fl_real(between) * 1e-12);
    FL_CHECK(sum->tbt.count == outputs - sum->requests && sum->ttft.count == sum->requests, "seed %" PRIu64, seed);
    FL_CHECK(given == sum->serving_fj && given + sum->idle_fj == run.energy_fj && sum->idle_fj >= 0,
             "seed %" PRIu64 ": %.17g + %.17g J of %.17g", seed, fl_joules(given), fl_joules(sum->idle_fj),
             fl_joules(run.energy_fj));
    check_bound(&x, &run, seed);
    FL_CHECK(run.makespan_ps >= run.served.request[x.requests.count - 1].first_ps, "seed %" PRIu64, seed);
    fl_run_result_free(&run);
    sx_close(&x);
    return true;
}

/* FL_TRIALS=1000 for the long form. */
static void test_conservation(void) {
    const char *trials = getenv("FL_TRIALS");
    const uint64_t count = trials ? strtoull(trials, NULL, 10) : 200;
    uint64_t done = 0;
    for (uint64_t seed = 0; done < count; seed++)
        done += conserve(seed);
}

/* ---- what it costs at least ---- */

/* At every static clock of every seed; the others are held against it above. */
static void test_bound_static(void) {
    for (uint64_t seed = 0; seed < 60; seed++) {
        sx_rig x;
        fl_random g = fl_random_seed(seed, 6);
        random_rig(&x, &g);
        fl_serving_bound least;
        FX_MUST(fl_serving_bound_of(x.r.w, x.r.rates, &x.r.spec, &least, d));
        for (uint32_t k = 0; k < x.r.spec.device->sm_count; k++) {
            fl_run_result run;
            const fl_run_options o = {.w = x.r.w,
                                      .rates = x.r.rates,
                                      .spec = &x.r.spec,
                                      .facts = &x.r.facts,
                                      .first_sm_mhz = x.r.spec.device->sm_mhz[k]};
            FX_MUST(fl_run(&o, &run, d));
            FL_CHECK(run.gpu_energy_j >= least.energy_j, "seed %" PRIu64 ", %d MHz: %.17g J, bound %.17g J", seed,
                     x.r.spec.device->sm_mhz[k], run.gpu_energy_j, least.energy_j);
            fl_run_result_free(&run);
        }
        sx_close(&x);
    }
}

/* One request of P + 1 tokens without a memory to read: the law of the fixture costs sm_mw and memory_mw at their least
 * for a second of the reference clock, and nothing else is to be done. */
static void test_bound_by_hand(void) {
    sx_rig x;
    sx_open(&x, 1, 1);
    x.server[0].rules.token_budget = 64;
    x.server[0].rules.max_seqs = 2;
    sx_request(&x, 0, 128, 1);
    sx_request(&x, 2000000000, 64, 3);
    sx_finish(&x);
    fl_serving_bound least;
    FX_MUST(fl_serving_bound_of(x.r.w, x.r.rates, &x.r.spec, &least, d));
    /* 128 + 64 prompt tokens and 2 later ones in steps of 64 at most, of which there are at least 194 / 64. */
    FL_CHECK(least.tokens == 194 && least.parts == 4 && least.steps == 194.0 / 64, "%g tokens, %g parts, %g steps",
             least.tokens, least.parts, least.steps);
    double sm_w = INFINITY, memory_w = INFINITY, base_w = INFINITY;
    const fl_device *dev = x.r.spec.device;
    for (uint32_t i = 0; i < dev->sm_count * dev->mem_count; i++) {
        const fl_clock_rates *at;
        const uint32_t sm = i % dev->sm_count, mem = i / dev->sm_count;
        FX_MUST(fl_rates_at(x.r.rates, 0, sm, mem, &at, d));
        sm_w = fmin(sm_w, at->parts[0].sm_mw * 1000.0 / dev->sm_mhz[sm] * 1e-3);
        memory_w = fmin(memory_w, at->parts[0].memory_mw * 800.0 / dev->mem_mhz[mem] * 1e-3);
        base_w = fmin(base_w, (at->base.total_mw - 1) * 1e-3);
    }
    /* 4 ms of memory a step and 0.01 ms of SMs a tile: full steps are the cheapest. */
    const double steps_j = 194.0 / 64 * (4e-3 * memory_w + 64e-5 * sm_w);
    FL_CHECK(fx_near(least.steps_j, steps_j, 1e-8) && fx_near(least.floor_j, 2 * base_w, 1e-8),
             "%.12g and %.12g J, by hand %.12g and %.12g J", least.steps_j, least.floor_j, steps_j, 2 * base_w);
    sx_close(&x);
}

FL_SUITE("serving_seeds", {"cut anywhere", test_cuts}, {"conservation", test_conservation},
         {"no static clock is below the bound", test_bound_static}, {"the bound by hand", test_bound_by_hand})
