/* Serving: requests arrive at a node whose servers answer them in batches, as engines of language models do. What a
 * node runs then is no list of ops: what the next step of an engine computes depends on what has arrived by the time
 * the one before ends. So the workload carries the requests and the servers, and the node makes the steps as it goes
 * (serving_steps.h). All else is as with any workload: fl_run drives a policy over it, and each step is a kernel of its
 * GPUs, whose length and power follow from the law of its batch at the clocks in force. */
#pragma once

#include "models/laws/step_law.h"
#include "sim/serving/batching.h"
#include "sim/workload/workload.h"
#include "traces/serving/requests.h"

typedef enum fl_route {
    FL_ROUTE_ROUND_ROBIN, /* request by request, one server after the other */
    FL_ROUTE_LEAST_LOADED /* the server with the fewest requests waiting and running; of equals the first */
} fl_route;

/* One engine. With several GPUs they are the ranks of one tensor-parallel model: each takes part in every step, and a
 * step ends when the slowest rank has done its share. A rank that is done earlier waits spinning: it goes on drawing
 * the SM power of the step, and the memory's only for the bytes that it moved. */
typedef struct fl_serving_server {
    fl_batching_rules rules;
    const fl_step_law *law;
    const uint32_t *gpu; /* gpu_count, each of one server only */
    uint32_t gpu_count;
} fl_serving_server;

typedef struct fl_serving_setup {
    const fl_requests *requests;
    const fl_serving_server *server; /* server_count */
    uint32_t server_count;
    fl_route route;
    double scale;                          /* requests arrive so many times as fast as stated; 0 = as stated */
    int64_t ttft_target_ns, tbt_target_ns; /* 0 = none is stated: nothing misses it */
    double target_share;                   /* of first tokens, and of later ones, that are to meet them: 0.99 */
    int64_t signals_ns; /* servers tell their signals anew so often; 0 = as they are whenever somebody reads */
} fl_serving_setup;

/* A workload that serves. *setup and all that it points to are borrowed for the workload's life. Its one class stands
 * for the engines' steps. FL_BAD_INPUT: no request, no server, a server without a GPU or law, a GPU of two servers, a
 * scale that is not positive and finite, a request that a server's KV cache can never hold. */
fl_status fl_serving_workload(fl_workload **out, const char *name, const fl_serving_setup *setup, fl_diag *d);

/* What a policy may know of the servers: out[setup->server_count], whose GPU lists are the setup's. */
void fl_serving_facts(const fl_serving_setup *setup, fl_server_facts *out);

/* The arrival of request i, in ps, scaled. */
int64_t fl_serving_arrival_ps(const fl_serving_setup *setup, size_t i);
