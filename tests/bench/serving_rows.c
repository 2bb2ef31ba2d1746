/* A server of a language model: how many requests it simulates per second. */
#include "tests/bench/case.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/serving/serving.h"
#include "sim/synth/synth.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

/* A law as of an eight-billion-parameter model on one large GPU. Its numbers are made up: it only matters that a
 * step costs the simulator as much as with any fitted law. Decodes dominate, about 30 at a time. */
static fl_step_law law(void) {
    fl_step_law l = fl_step_law_none();
    l.sharpness = l.attention_sharpness = 3;
    l.host_s = 1e-3;
    l.weights_s = 9e-3;
    l.token = 1.2e-5;
    l.pair = 1e-9;
    l.kv_s = l.kv_beside_s = 8e-8;
    l.kv_clock = 1e-8;
    l.decode = l.decode_beside = 1e-5;
    return l;
}

static fl_status rounds(fl_bench *b, const fl_workload *w, fl_rates *rates, const fl_serving_setup *setup, fl_diag *d) {
    fl_server_facts server;
    fl_facts facts = b->facts;
    fl_serving_facts(setup, &server);
    facts.server = &server;
    facts.server_count = 1;
    fl_setting period = {.name = (char *)"period_ms", .text = (char *)"100"};
    const fl_layer layer = {.origin = "bench", .setting = &period, .count = 1};
    const fl_run_options o = {.w = w,
                              .rates = rates,
                              .spec = &b->platform.node,
                              .facts = &facts,
                              .policy = fl_bench_policy("utilizscale"),
                              .layer = &layer,
                              .layer_count = 1};
    fl_status s = FL_OK;
    for (int64_t r = 0; !s && r < b->repeat; r++) {
        fl_run_result run;
        const double start = fl_bench_cpu_seconds();
        s = fl_run(&o, &run, d);
        const double took = fl_bench_cpu_seconds() - start;
        if (!s)
            fl_bench_take(b, "serving.requests", (double)setup->requests->count / took)->step_ns =
                1e9 * took / (double)run.served.sum.steps;
        fl_run_result_free(&run);
    }
    return s;
}

/* The shipped ten minutes, one after the other, so many times. */
static fl_status repeat(fl_requests *r, size_t times, fl_diag *d) {
    const size_t count = r->count;
    fl_status s = FL_OK;
    for (size_t k = 1; k < times; k++)
        for (size_t i = 0; !s && i < count; i++) {
            fl_request_row row = r->row[i];
            row.t_ns += (int64_t)k * 600 * 1000000000;
            s = fl_requests_add(r, &row, d);
        }
    return s;
}

enum { POOLS = 8 };

/* Without a policy: the pools, their router and the KV that moves. */
static fl_status pools(fl_bench *b, fl_diag *d) {
    if (!fl_bench_wants(b, "serving.pools"))
        return FL_OK;
    fl_requests requests = {0};
    const fl_step_law steps = law();
    uint32_t gpu[POOLS];
    fl_serving_server server[POOLS];
    fl_node_spec node = b->platform.node;
    uint32_t kind[POOLS] = {0};
    fl_serving_setup setup = {.requests = &requests,
                              .server = server,
                              .server_count = POOLS,
                              .link = {.latency_ns = 37000, .bytes_per_s = 177e9, .bytes_per_token = 131072}};
    for (uint32_t i = 0; i < POOLS; i++) {
        gpu[i] = i;
        kind[i] = node.gpu[0];
        server[i] = (fl_serving_server){.rules = fl_batching_defaults(), .law = &steps, .gpu = &gpu[i], .gpu_count = 1};
        server[i].rules.kv_blocks = 20000;
        server[i].role = i < POOLS / 2 ? FL_ROLE_PREFILL : FL_ROLE_DECODE;
    }
    node.gpu = kind;
    node.gpu_count = POOLS;
    fl_workload *w = NULL;
    fl_rates *rates = NULL;
    fl_status s = fl_requests_read(FL_ROOT "/traces/samples/azure/conversation.requests.csv", &requests, NULL, d);
    if (!s)
        s = repeat(&requests, 6, d);
    if (!s)
        s = fl_serving_workload(&w, "bench", &setup, d);
    if (!s)
        s = fl_rates_new(&rates, w, &node, d);
    for (int64_t r = 0; !s && r < b->repeat; r++) {
        const fl_run_options o = {.w = w, .rates = rates, .spec = &node, .facts = &b->facts};
        fl_run_result run;
        const double start = fl_bench_cpu_seconds();
        s = fl_run(&o, &run, d);
        if (!s)
            fl_bench_take(b, "serving.pools", fl_bench_cpu_seconds() - start);
        fl_run_result_free(&run);
    }
    fl_rates_free(rates);
    fl_workload_free(w);
    fl_requests_free(&requests);
    return s;
}

fl_status fl_bench_serving(fl_bench *b, fl_diag *d) {
    fl_status pooled = pools(b, d);
    if (pooled || !fl_bench_wants(b, "serving.requests"))
        return pooled;
    fl_synth_requests_options traffic = fl_synth_requests_standard;
    traffic.seed = 1;
    traffic.rate = 5;
    traffic.seconds = 0;
    traffic.most = 5000;
    fl_requests requests = {0};
    const fl_step_law steps = law();
    const uint32_t gpu = 0;
    fl_serving_server server = {.rules = fl_batching_defaults(), .law = &steps, .gpu = &gpu, .gpu_count = 1};
    server.rules.kv_blocks = 20000;
    const fl_serving_setup setup = {.requests = &requests, .server = &server, .server_count = 1};
    fl_workload *w = NULL;
    fl_rates *rates = NULL;
    fl_status s = fl_synth_requests(&traffic, &requests, d);
    if (!s)
        s = fl_serving_workload(&w, "bench", &setup, d);
    if (!s)
        s = fl_rates_new(&rates, w, &b->platform.node, d);
    if (!s)
        s = rounds(b, w, rates, &setup, d);
    fl_rates_free(rates);
    fl_workload_free(w);
    fl_requests_free(&requests);
    return s;
}
