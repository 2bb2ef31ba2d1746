/* Servers on the test device of sim_fixture.h, with a law in round numbers, so that a person can check a step by hand.
 * With n tokens (rounded up to tiles), KV tokens that decodes read or chunks pass, and f in GHz, in ms:
 *   T = 1 + 4 + 0.01 tiles(n) / f + 0.0001 KV + 0.000001 pairs / f
 * 1 ms of it is the host's. It was measured from 500 to 1500 MHz, at 800 MHz of the memory. */
#pragma once

#include "models/laws/laws.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/gpu/gpu.h"
#include "sim/node/node.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/serving/serving.h"
#include "tests/support/node_fixture.h"

enum { SX_SERVERS_MAX = 8 };

typedef struct sx_rig {
    fx_rig r; /* r.w serves */
    fl_requests requests;
    fl_step_law law;
    uint32_t gpu[FX_GPUS_MAX];
    fl_serving_server server[SX_SERVERS_MAX];
    fl_serving_setup setup;
    fl_server_facts facts[SX_SERVERS_MAX];
} sx_rig;

static inline fl_step_law sx_law(void) {
    fl_step_law law = fl_step_law_none();
    law.host_s = 1e-3;
    law.weights_s = 4e-3;
    law.token = 1e-5;
    law.kv_s = law.kv_beside_s = 1e-7;
    law.pair = 1e-9;
    law.sm_count = 2;
    law.sm_mhz[0] = 500;
    law.sm_mhz[1] = 1500;
    law.ref_sm_mhz = 1000;
    law.ref_mem_mhz = 800;
    return law;
}

/* A node of servers x ranks GPUs, without requests as yet. */
static inline void sx_open(sx_rig *x, uint32_t servers, uint32_t ranks) {
    *x = (sx_rig){0};
    fx_open(&x->r, servers * ranks);
    fl_workload_free(x->r.w);
    x->r.w = NULL;
    x->law = sx_law();
    x->setup = (fl_serving_setup){.requests = &x->requests,
                                  .server = x->server,
                                  .server_count = servers,
                                  .ttft_target_ns = 1000000000,
                                  .tbt_target_ns = 50000000,
                                  .target_share = 0.99};
    for (uint32_t i = 0; i < servers; i++) {
        x->server[i] = (fl_serving_server){
            .rules = fl_batching_defaults(), .law = &x->law, .gpu = &x->gpu[i * ranks], .gpu_count = ranks};
        x->server[i].rules.kv_blocks = 4096;
        for (uint32_t k = 0; k < ranks; k++)
            x->gpu[i * ranks + k] = i * ranks + k;
    }
}

static inline void sx_request(sx_rig *x, int64_t t_ns, uint32_t prompt, uint32_t output) {
    const fl_request_row row = {.t_ns = t_ns, .prompt_tokens = prompt, .output_tokens = output};
    FX_MUST(fl_requests_add(&x->requests, &row, d));
}

/* Seeded: exponential gaps, some together; lengths from 1 on; some begin as an earlier prompt did. */
static inline void sx_random_requests(sx_rig *x, fl_random *g, size_t count, double mean_gap_ns, uint32_t prompt,
                                      uint32_t output) {
    int64_t t = 0;
    for (size_t i = 0; i < count; i++) {
        fl_request_row row = {.t_ns = t,
                              .prompt_tokens = 1 + (uint32_t)fl_random_below(g, prompt),
                              .output_tokens = 1 + (uint32_t)fl_random_below(g, output)};
        if (i && !fl_random_below(g, 4))
            row.cached_tokens = (uint32_t)fl_random_below(g, row.prompt_tokens + 1);
        FX_MUST(fl_requests_add(&x->requests, &row, d));
        t += fl_random_below(g, 8) ? (int64_t)(-log(1 - fl_random_unit(g)) * mean_gap_ns) : 0;
    }
}

static inline void sx_finish(sx_rig *x) {
    FX_MUST(fl_serving_workload(&x->r.w, "serving", &x->setup, d));
    FX_MUST(fl_rates_new(&x->r.rates, x->r.w, &x->r.spec, d));
    fl_serving_facts(&x->setup, x->facts);
    x->r.facts.server = x->facts;
    x->r.facts.server_count = x->setup.server_count;
}

/* A node of it; what *more says beside that. */
static inline fl_node *sx_node(const sx_rig *x, const fl_node_options *more) {
    fl_node_options o = *more;
    o.w = x->r.w;
    o.rates = x->r.rates;
    o.spec = &x->r.spec;
    o.seed = 1;
    fl_node *n;
    FX_MUST(fl_node_open(&n, &o, d));
    return n;
}

static inline void sx_close(sx_rig *x) {
    fx_close(&x->r);
    fl_requests_free(&x->requests);
}
