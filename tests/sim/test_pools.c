/* Pools of servers: by hand, against a second router that reads the result, and seeded, with losses and every policy.
 */
#include "models/laws/laws.h"
#include "policies/random.h"
#include "policies/registry/registry.h"
#include "sim/base/base.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/serving/serving.h"
#include "traces/io/io.h"
#include "tests/support/serving_fixture.h"

#include <inttypes.h>

#define MS FX_MS_PS

/* prefill + decode servers of one GPU each; the link takes 2 ms and 1 us for each token. */
static void open_pools(sx_rig *x, uint32_t prefill, uint32_t decode) {
    sx_open(x, prefill + decode, 1);
    for (uint32_t i = 0; i < prefill + decode; i++)
        x->server[i].role = i < prefill ? FL_ROLE_PREFILL : FL_ROLE_DECODE;
    x->setup.link = (fl_serving_link){.latency_ns = 2000000, .bytes_per_s = 1e9, .bytes_per_token = 1000};
}

static void run_pools(sx_rig *x, fl_run_result *run) {
    const fl_run_options o = {
        .w = x->r.w, .rates = x->r.rates, .spec = &x->r.spec, .facts = &x->r.facts, .first_sm_mhz = 1000};
    FX_MUST(fl_run(&o, run, d));
}

static int64_t prompt_ps(const sx_rig *x, uint32_t tokens, uint32_t context) {
    fl_step_shape s = {0};
    fl_step_add_prompt(&s, tokens, context);
    return llround(fl_step_time_s(&x->law, &s, 1000, 1) * 1e12);
}

static int64_t decode_ps(const sx_rig *x, uint32_t sequences, uint32_t context) {
    fl_step_shape s = {0};
    for (uint32_t i = 0; i < sequences; i++)
        fl_step_add_decode(&s, context);
    return llround(fl_step_time_s(&x->law, &s, 1000, 1) * 1e12);
}

/* One request at a time: first token after its prompt's steps, then the transfer of its prompt's KV, then one step for
 * each token. Budget 2048: a prompt of 3000 tokens takes two. */
static void test_one_request(void) {
    static const uint32_t prompt[] = {1, 500, 2048, 3000};
    for (size_t i = 0; i < 4; i++) {
        sx_rig x;
        fl_run_result run;
        open_pools(&x, 1, 1);
        sx_request(&x, 5000000, prompt[i], 4);
        sx_finish(&x);
        run_pools(&x, &run);
        const fl_served *s = run.served.request;
        const uint32_t first = prompt[i] < 2048 ? prompt[i] : 2048;
        int64_t t = 5 * MS + prompt_ps(&x, first, 0);
        t += prompt[i] > 2048 ? prompt_ps(&x, prompt[i] - 2048, 2048) : 0;
        FL_CHECK(s->first_ps == t, "%u: first token at %" PRId64 ", by hand %" PRId64, prompt[i], s->first_ps, t);
        t += 2 * MS + prompt[i] * INT64_C(1000000);
        FL_CHECK(s->moved_ps == t, "%u: moved at %" PRId64 ", by hand %" PRId64, prompt[i], s->moved_ps, t);
        for (uint32_t k = 0; k < 3; k++)
            t += decode_ps(&x, 1, prompt[i] + k);
        FL_CHECK(s->done_ps == t && s->server == 1 && s->prefilled_by == 0, "%u: done at %" PRId64 ", by hand %" PRId64,
                 prompt[i], s->done_ps, t);
        FL_CHECK(run.served.sum.moved == 1 && run.served.sum.tbt.count == 3 &&
                     s->worst_tbt_ps == s->moved_ps - s->first_ps + decode_ps(&x, 1, prompt[i]),
                 "%u: the first time between tokens holds the transfer", prompt[i]);
        fl_run_result_free(&run);
        sx_close(&x);
    }
}

/* A request of one token is done on the prefill side, and nothing moves. */
static void test_nothing_to_decode(void) {
    sx_rig x;
    fl_run_result run;
    open_pools(&x, 1, 1);
    sx_request(&x, 0, 64, 1);
    sx_finish(&x);
    run_pools(&x, &run);
    CU_ASSERT(run.served.sum.moved == 0 && run.served.request[0].server == 0 &&
              run.served.request[0].moved_ps == FL_TIME_NEVER);
    fl_run_result_free(&run);
    sx_close(&x);
}

/* Two that are prefilled in one step move one after the other; over links of their own, together. */
static void test_link(void) {
    for (uint32_t decode = 1; decode < 3; decode++) {
        sx_rig x;
        fl_run_result run;
        open_pools(&x, 1, decode);
        sx_request(&x, 0, 100, 8);
        sx_request(&x, 0, 200, 8);
        sx_finish(&x);
        run_pools(&x, &run);
        const fl_served *a = &run.served.request[0], *b = &run.served.request[1];
        const int64_t first = 2 * MS + 100 * INT64_C(1000000), second = 2 * MS + 200 * INT64_C(1000000);
        FL_CHECK(a->first_ps == b->first_ps && a->moved_ps - a->first_ps == first, "%u", decode);
        FL_CHECK(b->moved_ps - b->first_ps == second + (decode == 1 ? first : 0), "%u links: %" PRId64 " ps", decode,
                 b->moved_ps - b->first_ps);
        FL_CHECK(b->server == decode, "of equals the first, then the other: %u", b->server);
        fl_run_result_free(&run);
        sx_close(&x);
    }
}

/* A decode server with room for one of them holds the other's KV back on the prefill server until the first is done. */
static void test_room(void) {
    sx_rig x;
    fl_run_result run;
    open_pools(&x, 1, 1);
    x.server[1].rules.kv_blocks = 10; /* of 16 tokens: 100 + 8 of them need 7 blocks */
    sx_request(&x, 0, 100, 8);
    sx_request(&x, 0, 100, 8);
    sx_finish(&x);
    run_pools(&x, &run);
    const fl_served *a = &run.served.request[0], *b = &run.served.request[1];
    FL_CHECK(b->moved_ps == a->done_ps + 2 * MS + 100 * INT64_C(1000000),
             "moved at %" PRId64 ", the first is done at %" PRId64, b->moved_ps, a->done_ps);
    fl_run_result_free(&run);
    sx_close(&x);
}

/* Of 8 decodes a step computes 8 tokens, of 9 a tile of 16. */
static void test_tile(void) {
    for (uint32_t n = 8; n < 10; n++) {
        sx_rig x;
        fl_run_result run;
        open_pools(&x, 1, 1);
        x.law.kv_s = x.law.kv_beside_s = x.law.pair = 0;
        for (uint32_t i = 0; i < n; i++)
            sx_request(&x, 0, 16, 200);
        sx_finish(&x);
        run_pools(&x, &run);
        const double by_hand = 5e-3 + 1e-5 * (n == 8 ? 8 : 16);
        FL_CHECK(fabs(run.served.sum.tbt.p50_s - by_hand) < 1e-12, "%u: %.12g s, by hand %.12g s", n,
                 run.served.sum.tbt.p50_s, by_hand);
        fl_run_result_free(&run);
        sx_close(&x);
    }
}

/* ---- a second router: it reads the result, and counts anew at each choice ---- */

static uint32_t fewest(const uint64_t *count, uint32_t from, uint32_t to) {
    uint32_t best = from;
    for (uint32_t i = from; i < to; i++)
        best = count[i] < count[best] ? i : best;
    return best;
}

static void check_router(const sx_rig *x, const fl_run_result *run, uint32_t prefill, uint64_t seed) {
    const size_t count = x->requests.count;
    const fl_served *s = run->served.request;
    size_t *order = calloc(count, sizeof *order), moved = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t tokens[SX_SERVERS_MAX] = {0};
        for (size_t k = 0; k < i; k++)
            if (s[k].first_ps > s[i].arrival_ps)
                tokens[s[k].moved_ps < FL_TIME_NEVER ? s[k].prefilled_by : s[k].server] +=
                    x->requests.row[k].prompt_tokens;
        const uint32_t went = s[i].moved_ps < FL_TIME_NEVER ? s[i].prefilled_by : s[i].server;
        FL_CHECK(went == fewest(tokens, 0, prefill), "seed %" PRIu64 ", request %zu: prefilled by %u", seed, i, went);
        if (s[i].moved_ps == FL_TIME_NEVER)
            continue;
        size_t at = moved++; /* by the end of the prefill, then by its server, then as they came */
        while (at && (s[order[at - 1]].first_ps > s[i].first_ps ||
                      (s[order[at - 1]].first_ps == s[i].first_ps && s[order[at - 1]].prefilled_by > went))) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    for (size_t i = 0; i < moved; i++) {
        uint64_t open[SX_SERVERS_MAX] = {0};
        for (size_t k = 0; k < i; k++)
            open[s[order[k]].server] += s[order[k]].done_ps >= s[order[i]].first_ps; /* decodes end after prefills */
        FL_CHECK(s[order[i]].server == fewest(open, prefill, x->setup.server_count),
                 "seed %" PRIu64 ", request %zu: on %u", seed, order[i], s[order[i]].server);
    }
    free(order);
}

static void test_router(void) {
    for (uint64_t seed = 0; seed < 40; seed++) {
        sx_rig x;
        fl_run_result run;
        fl_random g = fl_random_seed(seed, 52);
        open_pools(&x, 2, 2);
        sx_random_requests(&x, &g, 60, 30e6 * fl_random_unit(&g), 400, 60);
        sx_finish(&x);
        run_pools(&x, &run);
        check_router(&x, &run, 2, seed);
        fl_run_result_free(&run);
        sx_close(&x);
    }
}

/* ---- policies that route ---- */

static uint32_t to_the_last(const void *state, const void *params, const fl_facts *facts, const fl_route_query *q) {
    (void)state;
    (void)params;
    return facts->server[q->view[0].server].role == (q->decode ? FL_ROLE_DECODE : FL_ROLE_PREFILL) ? q->count - 1 : 0;
}

static uint32_t nowhere(const void *state, const void *params, const fl_facts *facts, const fl_route_query *q) {
    (void)state;
    (void)params;
    (void)facts;
    return q->count;
}

static const fl_policy *built_in(const char *name) {
    for (size_t i = 0; i < fl_policies_count; i++)
        if (!strcmp(fl_policies[i]->name, name))
            return fl_policies[i];
    return NULL;
}

/* The hook decides; a number that is no server's leaves it to the default. */
static void test_hook(void) {
    for (int k = 0; k < 2; k++) {
        sx_rig x;
        fl_run_result run;
        open_pools(&x, 2, 2);
        for (int i = 0; i < 20; i++)
            sx_request(&x, i * INT64_C(10000000), 100, 10);
        sx_finish(&x);
        fl_policy policy = *built_in("nvboost");
        policy.route = k ? nowhere : to_the_last;
        const fl_run_options o = {
            .w = x.r.w, .rates = x.r.rates, .spec = &x.r.spec, .facts = &x.r.facts, .policy = &policy};
        FX_MUST(fl_run(&o, &run, d));
        for (size_t i = 0; i < 20 && !k; i++)
            FL_CHECK(run.served.request[i].server == 3 && run.served.request[i].prefilled_by == 1, "request %zu", i);
        if (k)
            check_router(&x, &run, 2, 0);
        fl_run_result_free(&run);
        sx_close(&x);
    }
}

/* EcoRoute by hand. Below a tile: the lowest clock, then the fewest requests. From a tile on, where no step was seen,
 * all servers are taken for raised to the top: the fewest tiles, then the most requests. */
static void test_ecoroute(void) {
    static const struct {
        uint32_t running[3];
        double mhz[3];
        uint32_t want;
    } rows[] = {{{5, 4, 3}, {900, 800, 900}, 1},       {{5, 4, 3}, {900, 900, 900}, 2},
                {{3, 3, 3}, {700, 700, 700}, 0},       {{128, 64, 120}, {900, 900, 900}, 0},
                {{129, 256, 250}, {900, 800, 700}, 1}, {{128, 127, 300}, {900, 800, 700}, 0},
                {{200, 0, 200}, {900, 800, 700}, 1}};
    const fl_policy *p = built_in("ecoroute");
    CU_ASSERT_FATAL(p && p->route && p->init);
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        sx_rig x;
        open_pools(&x, 1, 3);
        sx_request(&x, 0, 10, 2);
        sx_finish(&x);
        void *params, *state = calloc(1, fl_state_rounded(p->state_size) + 4 * p->gpu_size);
        FX_MUST(fl_params_resolve(&params, p, NULL, 0, d));
        CU_ASSERT_PTR_NULL_FATAL(p->init(state, params, &x.r.facts));
        fl_route_view view[3];
        for (uint32_t k = 0; k < 3; k++)
            view[k] = (fl_route_view){.server = 1 + k, .running = rows[i].running[k], .sm_mhz = rows[i].mhz[k]};
        const fl_route_query q = {.decode = 1, .context_tokens = 100, .count = 3, .view = view};
        const uint32_t got = p->route(state, params, &x.r.facts, &q);
        FL_CHECK(got == rows[i].want, "row %zu: server %u", i, got);
        fl_params_free(p, params);
        free(state);
        sx_close(&x);
    }
}

/* ---- what is conserved ---- */

typedef struct watch {
    const sx_rig *x;
    uint64_t wrong, looks;
} watch;

static fl_status look(void *user, const fl_node *n, int64_t t_ps, fl_diag *d) {
    watch *w = user;
    (void)t_ps;
    (void)d;
    for (uint32_t i = 0; i < w->x->setup.server_count; i++) {
        const fl_batching_counts c = fl_node_batching(n, i);
        w->wrong += c.blocks_used > w->x->server[i].rules.kv_blocks || c.running > w->x->server[i].rules.max_seqs ||
                    c.arrived != c.waiting + c.running + c.held + c.finished ||
                    (c.held && w->x->server[i].role != FL_ROLE_PREFILL);
        w->looks++;
    }
    return FL_OK;
}

static void random_pools(sx_rig *x, fl_random *g) {
    const bool experts = fl_random_below(g, 3) == 0;
    const uint32_t each = experts ? 4 : 2; /* replicas are lost in pairs */
    open_pools(x, each, each);
    x->setup.link.bytes_per_s = fl_random_below(g, 2) ? 1e9 : 1e7;
    for (uint32_t i = 0; i < 2 * each; i++) {
        fl_batching_rules *rules = &x->server[i].rules;
        rules->async_scheduling = fl_random_below(g, 2) > 0;
        rules->max_seqs = 1 + (uint32_t)fl_random_below(g, 24);
        rules->token_budget = 1 + (uint32_t)fl_random_below(g, 300);
        rules->block_tokens = 1 + (uint32_t)fl_random_below(g, 16);
        rules->kv_blocks = 400 / rules->block_tokens + 1 + fl_random_below(g, 100);
        rules->prefix_cache = fl_random_below(g, 2) > 0;
    }
    if (experts) {
        x->setup.replicas = x->law.replicas = x->law.expert_ranks = 2;
        x->law.experts = 16;
        x->law.top_k = 2;
        x->law.expert_s = 1e-4;
        x->law.exchanges = 2;
        x->law.exchange_s = 1e-5;
    }
    sx_random_requests(x, g, 1 + fl_random_below(g, 60), 30e6 * fl_random_unit(g), 200,
                       1 + (uint32_t)fl_random_below(g, 200));
    sx_finish(x);
}

static void check_sums(const sx_rig *x, const fl_run_result *run, bool loses, uint64_t seed) {
    const fl_served_summary *sum = &run->served.sum;
    uint64_t outputs = 0, longer = 0;
    fl_wide given = 0;
    for (size_t i = 0; i < x->requests.count; i++) {
        const fl_served *s = &run->served.request[i];
        const fl_request_row *row = &x->requests.row[i];
        FL_CHECK(s->arrival_ps <= s->taken_ps && s->taken_ps < s->first_ps && s->first_ps <= s->done_ps,
                 "seed %" PRIu64 ", request %zu", seed, i);
        FL_CHECK((row->output_tokens > 1) == (s->done_ps > s->first_ps), "seed %" PRIu64 ", request %zu", seed, i);
        outputs += row->output_tokens;
        longer += row->output_tokens > 1;
        given += s->prefill_fj + s->decode_fj;
    }
    FL_CHECK(sum->output_tokens == outputs && sum->requests == x->requests.count &&
                 sum->tbt.count == outputs - sum->requests && sum->ttft.count == sum->requests,
             "seed %" PRIu64 ": %" PRIu64 " of %" PRIu64 " tokens", seed, sum->output_tokens, outputs);
    FL_CHECK(loses || sum->moved == longer, "seed %" PRIu64 ": %" PRIu64 " moved", seed, sum->moved);
    FL_CHECK(given == sum->serving_fj && given + sum->idle_fj == run->energy_fj && sum->idle_fj >= 0,
             "seed %" PRIu64 ": %.17g + %.17g J of %.17g", seed, fl_joules(given), fl_joules(sum->idle_fj),
             fl_joules(run->energy_fj));
}

/* Every policy, and in every second run a server that is lost on the way, together with its replica if it has one:
 * tokens, requests, KV blocks, and joules to the femtojoule. Returns false where the policy of this seed refuses. */
static bool conserve(uint64_t seed) {
    sx_rig x;
    fl_random g = fl_random_seed(seed, 53);
    random_pools(&x, &g);
    const size_t how = seed % (fl_policies_count + 1);
    const bool loses = fl_random_below(&g, 2);
    const fl_fault lost = {.type = FL_FAULT_LOST,
                           .gpu = (int)fl_random_below(&g, x.setup.server_count),
                           .from_ns = 1 + (int64_t)fl_random_below(&g, 800000000),
                           .until_ns = FL_FAULT_FOR_EVER};
    fl_setting clock = {.name = (char *)"sm_mhz", .text = (char *)"700"};
    const fl_policy *policy = how ? fl_policies[how - 1] : NULL;
    const fl_layer layer = {.origin = "test", .setting = &clock, .count = policy && !strcmp(policy->name, "fixed")};
    watch w = {.x = &x};
    const fl_run_options o = {.w = x.r.w,
                              .rates = x.r.rates,
                              .spec = &x.r.spec,
                              .facts = &x.r.facts,
                              .policy = policy,
                              .layer = &layer,
                              .layer_count = 1,
                              .fault = &lost,
                              .fault_count = loses,
                              .on_truth = look,
                              .truth_ns = 7000000,
                              .user = &w};
    fl_run_result run;
    fl_diag d = {0};
    const fl_status s = fl_run(&o, &run, &d);
    FL_CHECK(s == FL_OK || s == FL_BAD_INPUT || (loses && s == FL_HARDWARE && !policy), "seed %" PRIu64 ", %s: %s",
             seed, policy ? policy->name : "nothing", d.message);
    if (!s) {
        check_sums(&x, &run, loses, seed);
        FL_CHECK(!w.wrong && w.looks, "seed %" PRIu64 ": %" PRIu64 " times beyond the rules", seed, w.wrong);
        fl_run_result_free(&run);
    }
    sx_close(&x);
    return !s;
}

static void test_conservation(void) {
    const uint64_t count = 1000;
    uint64_t done = 0;
    for (uint64_t seed = 0; done < count && seed < 4 * count; seed++)
        done += conserve(seed);
    FL_CHECK(done == count, "%" PRIu64 " runs", done);
}

/* A decode server that is lost sends its requests back, with what they had put out; so does a prefill server. */
static void test_lost(void) {
    for (int gpu = 0; gpu < 4; gpu++) {
        sx_rig x;
        fl_run_result run;
        open_pools(&x, 2, 2);
        for (int i = 0; i < 40; i++)
            sx_request(&x, i * INT64_C(10000000), 300, 40);
        sx_finish(&x);
        const fl_fault lost = {.type = FL_FAULT_LOST, .gpu = gpu, .from_ns = 250000000, .until_ns = FL_FAULT_FOR_EVER};
        const fl_run_options o = {.w = x.r.w,
                                  .rates = x.r.rates,
                                  .spec = &x.r.spec,
                                  .facts = &x.r.facts,
                                  .first_sm_mhz = 1000,
                                  .fault = &lost,
                                  .fault_count = 1};
        FX_MUST(fl_run(&o, &run, d));
        check_sums(&x, &run, true, (uint64_t)gpu);
        uint64_t after = 0;
        for (size_t i = 0; i < x.requests.count; i++) {
            const fl_served *s = &run.served.request[i];
            after += s->moved_ps > 250 * MS;
            FL_CHECK(s->moved_ps < 250 * MS || (s->server != (uint32_t)gpu && (s->prefilled_by != (uint32_t)gpu)),
                     "GPU %d, request %zu: on %u", gpu, i, s->server);
        }
        FL_CHECK(after > 10 && (gpu < 2 || run.served.sum.moved > 40), "GPU %d: %" PRIu64 ", %" PRIu64 " moved", gpu,
                 after, run.served.sum.moved);
        fl_run_result_free(&run);
        sx_close(&x);
    }
}

static void test_refused(void) {
    sx_rig x;
    open_pools(&x, 1, 1);
    sx_request(&x, 0, 10, 2);
    for (int k = 0; k < 3; k++) {
        fl_diag d = {0};
        x.server[1].role = k ? FL_ROLE_DECODE : FL_ROLE_PREFILL;
        x.setup.link.bytes_per_s = k == 1 ? 0 : 1e9;
        x.setup.link.bytes_per_token = k == 2 ? 0 : 1000;
        FL_CHECK(fl_serving_workload(&x.r.w, "pools", &x.setup, &d) == FL_BAD_INPUT &&
                     strstr(d.message, "expected all of them"),
                 "%d: %s", k, d.message);
    }
    x.setup.link.bytes_per_token = 1000;
    sx_finish(&x);
    sx_close(&x);
}

FL_SUITE("pools", {"one request", test_one_request}, {"nothing to decode", test_nothing_to_decode}, {"link", test_link},
         {"room", test_room}, {"tile", test_tile}, {"router", test_router}, {"hook", test_hook},
         {"ecoroute", test_ecoroute}, {"conservation", test_conservation}, {"lost", test_lost},
         {"refused", test_refused})
