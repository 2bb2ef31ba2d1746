/* Servers as a policy and its host see them: signals, facts, records of steps; routing, a GPU that is lost, and setups
 * that are refused. */
#include "tests/support/reads.h"
#include "tests/support/serving_fixture.h"
#include "sim/node/inside.h"

#include <inttypes.h>

#define ALL (FL_BIT(FL_SERVER_SIGNAL_COUNT) - 1)

/* ---- what is told, against what the run's result says ---- */

typedef struct witness {
    const sx_rig *x;
    fl_server_sample last[SX_SERVERS_MAX];
    fl_batch_record *batch;
    size_t batches, room;
    uint64_t steps, wrong, percentiles;
    int64_t ended_ns;
} witness;

static bool counts_grow(const fl_server_sample *a, const fl_server_sample *b) {
    static const int counters[] = {FL_SERVER_PROMPT_TOKENS, FL_SERVER_CACHED_TOKENS, FL_SERVER_OUTPUT_TOKENS,
                                   FL_SERVER_BATCHES,       FL_SERVER_BATCH_TOKENS,  FL_SERVER_PREEMPTIONS,
                                   FL_SERVER_ARRIVED,       FL_SERVER_FINISHED,      FL_SERVER_TTFT_SUM_NS,
                                   FL_SERVER_TTFT_COUNT,    FL_SERVER_TBT_SUM_NS,    FL_SERVER_TBT_COUNT,
                                   FL_SERVER_TTFT_MISSED,   FL_SERVER_TBT_MISSED};
    for (size_t i = 0; i < FL_COUNT(counters); i++)
        if (b->value[counters[i]] < a->value[counters[i]])
            return false;
    return true;
}

static fl_status see(void *user, const fl_sample *s, const fl_decision *decision, fl_diag *d) {
    witness *w = user;
    (void)decision;
    w->steps++;
    for (uint32_t i = 0; i < s->server_count; i++) {
        const double *v = s->server[i].value;
        w->wrong += !counts_grow(&w->last[i], &s->server[i]) || (s->server[i].valid & ~ALL) ||
                    v[FL_SERVER_WAITING] + v[FL_SERVER_RUNNING] + v[FL_SERVER_FINISHED] < v[FL_SERVER_ARRIVED] - 0.5 ||
                    v[FL_SERVER_KV_USED_PCT] > 100 || v[FL_SERVER_RUNNING] > w->x->server[i].rules.max_seqs ||
                    v[FL_SERVER_TTFT_COUNT] + v[FL_SERVER_TBT_COUNT] < v[FL_SERVER_OUTPUT_TOKENS] - 0.5;
        w->percentiles += fl_server_known(&s->server[i], FL_SERVER_TBT_P99_NS) != 0;
        w->wrong +=
            v[FL_SERVER_TBT_P50_NS] > v[FL_SERVER_TBT_P95_NS] || v[FL_SERVER_TTFT_P95_NS] > v[FL_SERVER_TTFT_P99_NS];
        w->last[i] = s->server[i];
    }
    if (fl_grow(&w->batch, &w->room, w->batches + s->batch_count, sizeof *w->batch))
        return fl_no_memory(d, "the test");
    for (uint64_t i = 0; i < s->batch_count; i++) {
        w->wrong += s->batch[i].end_ns < w->ended_ns || s->batch[i].end_ns > s->time_ns;
        w->ended_ns = s->batch[i].end_ns;
        w->batch[w->batches++] = s->batch[i];
    }
    return FL_OK;
}

static fl_policy watcher(void) {
    fl_policy p = fx_policy(0);
    rx_read(&p, (rx_set){.server = ALL, .steps = 1});
    return p;
}

static fl_status watch(const sx_rig *x, witness *w, const fl_fault *fault, fl_run_result *run, fl_diag *d) {
    const fl_policy policy = watcher();
    fl_setting step = {.name = "step_us", .text = "10000"};
    const fl_layer layer = {.origin = "test", .setting = &step, .count = 1};
    const fl_run_options o = {.w = x->r.w,
                              .rates = x->r.rates,
                              .spec = &x->r.spec,
                              .facts = &x->r.facts,
                              .policy = &policy,
                              .layer = &layer,
                              .layer_count = 1,
                              .fault = fault,
                              .fault_count = fault != NULL,
                              .on_step = see,
                              .user = w};
    *w = (witness){.x = x};
    return fl_run(&o, run, d);
}

/* All but the last few steps were seen: a run ends with the last token. */
static void test_signals(void) {
    for (uint64_t seed = 0; seed < 6; seed++) {
        sx_rig x;
        fl_random g = fl_random_seed(seed, 9);
        sx_open(&x, 2, 1);
        x.setup.signals_ns = seed % 2 ? 30000000 : 0;
        x.setup.route = seed % 3 ? FL_ROUTE_ROUND_ROBIN : FL_ROUTE_LEAST_LOADED;
        x.server[0].rules.kv_blocks = 50;
        sx_random_requests(&x, &g, 200, 30e6, 300, 80);
        sx_finish(&x);
        witness w;
        fl_run_result run;
        FX_MUST(watch(&x, &w, NULL, &run, d));
        FL_CHECK(w.wrong == 0 && w.steps > 100 && w.percentiles > 100,
                 "seed %" PRIu64 ": %" PRIu64 " wrong of %" PRIu64, seed, w.wrong, w.steps);
        double finished = 0, tokens = 0, ttft = 0, sum_ttft = 0;
        uint64_t computed = 0, decodes = 0;
        for (uint32_t i = 0; i < 2; i++) {
            finished += w.last[i].value[FL_SERVER_FINISHED];
            tokens += w.last[i].value[FL_SERVER_OUTPUT_TOKENS];
            ttft += w.last[i].value[FL_SERVER_TTFT_SUM_NS];
        }
        for (size_t i = 0; i < w.batches; i++) {
            computed += w.batch[i].prompt_tokens + w.batch[i].decode_sequences;
            decodes += w.batch[i].decode_sequences;
            FL_CHECK(w.batch[i].server < 2 && w.batch[i].end_ns - w.batch[i].start_ns >= 5000000 &&
                         (w.batch[i].prompts > 0) == (w.batch[i].prompt_tokens > 0),
                     "seed %" PRIu64 ", batch %zu", seed, i);
        }
        for (size_t i = 0; i < run.served.request_count; i++)
            sum_ttft += (double)(run.served.request[i].first_ps - run.served.request[i].arrival_ps) / FL_PS_PER_NS;
        FL_CHECK(finished >= 190 && finished <= 200, "seed %" PRIu64 ": %g finished", seed, finished);
        FL_CHECK(run.served.sum.computed_tokens >= computed && run.served.sum.computed_tokens - computed < 300 &&
                     decodes,
                 "seed %" PRIu64 ": %" PRIu64 " of %" PRIu64 " tokens", seed, computed, run.served.sum.computed_tokens);
        FL_CHECK(tokens <= (double)run.served.sum.output_tokens &&
                     tokens > 0.9 * (double)run.served.sum.output_tokens && fx_near(ttft, sum_ttft, 0.05),
                 "seed %" PRIu64 ": %g tokens, %g of %g ns", seed, tokens, ttft, sum_ttft);
        free(w.batch);
        fl_run_result_free(&run);
        sx_close(&x);
    }
}

/* The percentiles told are those of the tokens of the last ten seconds, at most 1/64 above. One request of 3000 tokens:
 * its TBT grows with its context, 5.0201 ms at first, so that the window matters. late: a second one comes at 20 s with
 * a long prompt, so that one token waits far longer than all others: the 99th percentile is not the longest. */
static void check_windows(bool late) {
    sx_rig x;
    sx_open(&x, 1, 1);
    x.law.kv_s = x.law.kv_beside_s = 1e-5;
    sx_request(&x, 0, 100, 3000);
    if (late)
        sx_request(&x, INT64_C(20000000000), 3000, 1);
    sx_finish(&x);
    fl_node_options o = {.w = x.r.w, .rates = x.r.rates, .spec = &x.r.spec, .seed = 1, .server_needs = ALL};
    fl_node *n;
    FX_MUST(fl_node_open(&n, &o, d));
    fl_server_sample s;
    fl_node_read_server(n, 0, true, &s);
    CU_ASSERT(!fl_server_known(&s, FL_SERVER_TBT_P50_NS) && fl_server_known(&s, FL_SERVER_RUNNING));
    fx_advance(n, 25 * FL_PS_PER_S);
    fl_node_read_server(n, 0, true, &s);
    const fl_engine *e = fl_node_engines(n)->engine;
    int64_t within[4096];
    size_t count = 0;
    for (size_t i = 0; i < e->tbt_runs; i++)
        for (int64_t k = 0; e->tbt[i].end_ps > 15 * FL_PS_PER_S && k < e->tbt[i].count; k++)
            within[count++] = e->tbt[i].tbt_ps;
    const fl_times t = fl_times_of(within, count);
    const double told[] = {s.value[FL_SERVER_TBT_P50_NS], s.value[FL_SERVER_TBT_P95_NS], s.value[FL_SERVER_TBT_P99_NS]},
                 is[] = {t.p50_s * 1e9, t.p95_s * 1e9, t.p99_s * 1e9};
    for (int i = 0; i < 3; i++)
        FL_CHECK(told[i] >= is[i] - 1 && told[i] <= is[i] * (1 + 1.0 / 64) + 1, "%g ns, expected %g", told[i], is[i]);
    CU_ASSERT_EQUAL(s.value[FL_SERVER_OLDEST_WAIT_NS], 0);
    CU_ASSERT_EQUAL(s.value[FL_SERVER_TTFT_COUNT], late ? 2 : 1);
    FL_CHECK(!late || t.max_s > 1.5 * t.p99_s, "the longest %g s, the 99th percentile %g s", t.max_s, t.p99_s);
    fl_node_close(n);
    sx_close(&x);
}

static void test_windows(void) {
    check_windows(false);
    check_windows(true);
}

static int by_span(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The upper end of the step of a histogram in which the nearest rank lies: single nanoseconds up to 64, then 64 steps
 * of each power of two. */
static double told_of(int64_t *span_ns, size_t count, size_t percent) {
    qsort(span_ns, count, sizeof *span_ns, by_span);
    const int64_t is = span_ns[(count * percent + 99) / 100 - 1];
    int64_t width = 1;
    while (is / width >= 128)
        width *= 2;
    return (double)((is / width + 1) * width - 1);
}

/* All six percentiles at several instants, against the tokens and first tokens of the ten seconds before. */
static void test_percentiles(void) {
    for (uint64_t seed = 0; seed < 3; seed++) {
        sx_rig x;
        fl_random g = fl_random_seed(seed, 12);
        sx_open(&x, 1, 1);
        x.law.kv_s = x.law.kv_beside_s = 1e-6;
        sx_random_requests(&x, &g, 150, 200e6, 3000, 60);
        sx_finish(&x);
        fl_node_options o = {.w = x.r.w, .rates = x.r.rates, .spec = &x.r.spec, .seed = 1, .server_needs = ALL};
        fl_node *n;
        FX_MUST(fl_node_open(&n, &o, d));
        size_t first_seen = 0;
        for (int64_t t = 2; t <= 24; t += 4) {
            fx_advance(n, t * FL_PS_PER_S);
            fl_server_sample s;
            fl_node_read_server(n, 0, true, &s);
            const fl_engines *v = fl_node_engines(n);
            const fl_engine *e = v->engine;
            static int64_t tbt[100000], ttft[1000];
            size_t tbts = 0, ttfts = 0;
            for (size_t i = 0; i < e->tbt_runs; i++)
                for (int64_t k = 0; e->tbt[i].end_ps > (t - 10) * FL_PS_PER_S && k < e->tbt[i].count; k++)
                    tbt[tbts++] = e->tbt[i].tbt_ps / FL_PS_PER_NS;
            for (size_t i = 0; i < 150; i++)
                if (v->served[i].first_ps <= t * FL_PS_PER_S && v->served[i].first_ps > (t - 10) * FL_PS_PER_S)
                    ttft[ttfts++] = (v->served[i].first_ps - v->served[i].arrival_ps) / FL_PS_PER_NS;
            first_seen += ttfts;
            static const size_t percent[] = {50, 95, 99};
            for (int i = 0; i < 3; i++)
                FL_CHECK(tbts && ttfts && s.value[FL_SERVER_TBT_P50_NS + i] == told_of(tbt, tbts, percent[i]) &&
                             s.value[FL_SERVER_TTFT_P50_NS + i] == told_of(ttft, ttfts, percent[i]),
                         "seed %d, %d s, %zu %%: TBT %g of %g, TTFT %g of %g ns", (int)seed, (int)t, percent[i],
                         s.value[FL_SERVER_TBT_P50_NS + i], told_of(tbt, tbts, percent[i]),
                         s.value[FL_SERVER_TTFT_P50_NS + i], told_of(ttft, ttfts, percent[i]));
        }
        CU_ASSERT(first_seen > 100);
        fl_node_close(n);
        sx_close(&x);
    }
}

/* ---- routing, facts ---- */

static void test_routes(void) {
    for (int least = 0; least < 2; least++) {
        sx_rig x;
        sx_open(&x, 3, 1);
        x.setup.route = least ? FL_ROUTE_LEAST_LOADED : FL_ROUTE_ROUND_ROBIN;
        sx_request(&x, 0, 16, 400); /* keeps server 0 busy */
        for (int i = 1; i < 9; i++)
            sx_request(&x, i * INT64_C(100000000), 16, 2);
        sx_finish(&x);
        fl_run_result run;
        fx_run(&x.r, &(fx_how){.mode = -1}, &run);
        for (uint32_t i = 0; i < 9; i++)
            FL_CHECK(run.served.request[i].server == (least ? i > 0 : i % 3), "request %u at server %u", i,
                     run.served.request[i].server);
        fl_run_result_free(&run);
        sx_close(&x);
    }
}

static void test_facts(void) {
    sx_rig x;
    sx_open(&x, 2, 2);
    sx_request(&x, 0, 16, 2);
    sx_finish(&x);
    const fl_server_facts *f = &x.facts[1];
    CU_ASSERT(f->gpu_count == 2 && f->gpu[0] == 2 && f->gpu[1] == 3);
    CU_ASSERT(f->max_seqs == 256 && f->token_budget == 2048 && f->kv_tokens == 4096 * 16);
    CU_ASSERT(f->ttft_target_ns == 1000000000 && f->tbt_target_ns == 50000000 && f->target_share == 0.99);
    sx_close(&x);
}

/* Two requests of which the second waits for the first: 6.16 ms and 5.02 ms steps against targets of 6.2 ms. */
static void test_targets(void) {
    sx_rig x;
    sx_open(&x, 1, 1);
    x.server[0].rules.max_seqs = 1;
    x.setup.ttft_target_ns = 6200000;
    x.setup.tbt_target_ns = 5021000;
    sx_request(&x, 0, 16, 2);
    sx_request(&x, 0, 16, 2);
    sx_request(&x, 61000000000, 16, 2);
    sx_request(&x, 61000000000, 16, 1);
    sx_finish(&x);
    fl_run_result run;
    fx_run(&x.r, &(fx_how){.mode = -1}, &run);
    const fl_served_summary *s = &run.served.sum;
    CU_ASSERT(!run.served.request[0].ttft_missed && run.served.request[1].ttft_missed);
    CU_ASSERT_DOUBLE_EQUAL(s->ttft_missed, 0.5, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(s->tbt_missed, 0, 1e-12);
    CU_ASSERT(!s->met);
    CU_ASSERT_DOUBLE_EQUAL(s->goodput, 2 / run.makespan_s, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(s->worst_minute_missed, 0.5, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(s->j_per_token, run.energy_j / 7, 1e-9);
    fl_run_result_free(&run);
    sx_close(&x);
}

/* One first token of ten is late: exactly what a share of 0.9 allows, though 1 - 0.9 is a little less than 0.1. */
static void test_exact_share(void) {
    for (int stated = 0; stated < 2; stated++) {
        sx_rig x;
        sx_open(&x, 1, 1);
        x.server[0].rules.max_seqs = 1;
        x.setup.ttft_target_ns = stated ? 6200000 : 0;
        x.setup.tbt_target_ns = 0;
        x.setup.target_share = 0.9;
        for (int i = 0; i < 10; i++) /* the second comes with the first and waits for it */
            sx_request(&x, i > 1 ? i * INT64_C(1000000000) : 0, 16, 2);
        sx_finish(&x);
        fl_run_result run;
        fx_run(&x.r, &(fx_how){.mode = -1}, &run);
        const fl_served_summary *s = &run.served.sum;
        CU_ASSERT(s->targets == (stated == 1));
        CU_ASSERT_DOUBLE_EQUAL(s->ttft_missed, stated ? 0.1 : 0, 1e-12);
        CU_ASSERT(s->met);
        fl_run_result_free(&run);
        sx_close(&x);
    }
}

/* ---- what goes wrong ---- */

/* Server 1 loses its GPU at 0.3 s: the other one goes on to its end, and the run says what happened. */
static void test_lost_gpu(void) {
    for (int ranks = 1; ranks < 3; ranks++) {
        sx_rig x;
        sx_open(&x, 2, (uint32_t)ranks);
        for (int i = 0; i < 40; i++)
            sx_request(&x, i * INT64_C(20000000), 50, 30);
        sx_finish(&x);
        const fl_fault lost = {
            .type = FL_FAULT_LOST, .gpu = ranks, .from_ns = 300000000, .until_ns = FL_FAULT_FOR_EVER};
        witness w;
        fl_run_result run;
        fl_diag d = {0};
        const fl_status s = watch(&x, &w, &lost, &run, &d);
        FL_CHECK(s == FL_HARDWARE && strstr(d.message, "fell off the bus at 0.3 s"), "%d: %s", s, d.message);
        FL_CHECK(w.last[0].value[FL_SERVER_FINISHED] > 25 && w.last[1].valid == 0, "%g finished",
                 w.last[0].value[FL_SERVER_FINISHED]);
        free(w.batch);
        sx_close(&x);
    }
}

static void refused(sx_rig *x, const char *why) {
    fl_workload *w = NULL;
    fl_diag d = {0};
    const fl_status s = fl_serving_workload(&w, "serving", &x->setup, &d);
    FL_CHECK(s == FL_BAD_INPUT && !w && strstr(d.message, why), "%d: '%s', expected '%s'", s, d.message, why);
}

static void test_refusals(void) {
    sx_rig x;
    sx_open(&x, 2, 1);
    refused(&x, "no request");
    sx_request(&x, 0, 100, 10);
    sx_request(&x, 1000000000, 100, 10);
    x.server[1].gpu = x.gpu;
    refused(&x, "GPU 0 serves twice");
    x.server[1].gpu = &x.gpu[1];
    x.setup.scale = -1;
    refused(&x, "scale -1");
    x.setup.scale = 1e-30;
    refused(&x, "beyond 26 days");
    x.setup.scale = NAN;
    refused(&x, "scale nan");
    x.setup.scale = INFINITY;
    refused(&x, "scale inf");
    x.setup.scale = 0;
    int64_t *const span[] = {&x.setup.ttft_target_ns, &x.setup.tbt_target_ns, &x.setup.signals_ns};
    for (size_t i = 0; i < FL_COUNT(span); i++) {
        const int64_t kept = *span[i];
        *span[i] = -1;
        refused(&x, "below 0");
        *span[i] = kept;
    }
    static const double no_share[] = {-0.01, 1.01, (double)NAN};
    for (size_t i = 0; i < FL_COUNT(no_share); i++) {
        x.setup.target_share = no_share[i];
        refused(&x, "are to meet the targets");
    }
    x.setup.target_share = 0.99;
    x.server[1].gpu_count = 0;
    refused(&x, "server 1 has no GPU");
    x.server[1].gpu_count = 1;
    x.server[1].law = NULL;
    refused(&x, "server 1 has no law");
    x.server[1].law = &x.law;
    x.law.host_s = NAN;
    refused(&x, "law of server 0");
    x.law.host_s = 0;
    x.server[1].rules.kv_blocks = 6;
    refused(&x, "7 KV blocks of 16 tokens, expected at most the server's 6");
    x.server[1].rules.kv_blocks = 4096;
    x.setup.server_count = 0;
    refused(&x, "no server");
    x.setup.server_count = 2;
    sx_finish(&x);
    nx_cpu(&x.r);
    nx_apu(&x.r);
    fl_run_result run;
    fl_diag d = {0};
    const fl_status s = fx_try(&x.r, &(fx_how){.mode = -1}, &run, &d);
    FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, "APU"), "%d: %s", s, d.message);
    sx_close(&x);
}

/* A policy that reads servers over a workload that has none. */
static void test_no_servers(void) {
    fx_rig r;
    fx_open(&r, 1);
    fx_op(&r, fx_stream(&r, 0, 0), 0, 1000, fx_light(&r));
    fx_finish(&r, 1);
    const fl_policy policy = watcher();
    const fl_run_options o = {.w = r.w, .rates = r.rates, .spec = &r.spec, .facts = &r.facts, .policy = &policy};
    fl_run_result run;
    fl_diag d = {0};
    const fl_status s = fl_run(&o, &run, &d);
    FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, "signals of servers"), "%d: %s", s, d.message);
    fx_close(&r);
}

FL_SUITE("serving_run", {"signals and records", test_signals}, {"windows", test_windows},
         {"percentiles", test_percentiles}, {"routes", test_routes}, {"facts", test_facts}, {"targets", test_targets},
         {"a share met exactly", test_exact_share}, {"a lost GPU", test_lost_gpu}, {"refusals", test_refusals},
         {"no servers", test_no_servers})
