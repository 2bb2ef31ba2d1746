/* Serving: requests arrive at a node whose servers answer them in batches, as engines of language models do.
 *
 * The next step of an engine depends on the requests that have arrived by the end of the one before. So the workload
 * carries requests and servers instead of ops, and the node composes the steps as it goes. Each step is a kernel of the
 * server's GPUs, whose length and power follow from the law of its batch at the clocks in force.
 *
 * Make a workload with fl_serving_workload (the setup is borrowed for its life) and give it to fl_run; the result is
 * fl_served_result. fl_batching is the scheduler by itself, a state machine without time. fl_engines are the servers in
 * execution, which sim/node advances. fl_serving_bound_of gives a lower bound of energy. Requests that can never be
 * served are FL_BAD_INPUT with the line of the trace. */
#pragma once

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the scheduler ----
 *
 * The scheduler of a serving engine with continuous batching, by the rules of vLLM v1 (vllm/v1/core/sched/scheduler.py,
 * kv_cache_manager.py, block_pool.py; Kwon et al., "Efficient Memory Management for Large Language Model Serving with
 * PagedAttention", SOSP 2023): which requests compute how many tokens in which step. A pure state machine: it knows
 * neither time nor how long a step takes. The caller reports arrivals (fl_batching_arrive), asks for the next step
 * (fl_batching_begin), lets time pass, and ends the step (fl_batching_end).
 *
 * The rules, for one step:
 *  1. There is one budget of tokens. The running requests come first, in the order of their admission. Each wants all
 *     tokens that it has and that are not computed: one when it decodes, the rest of its prompt otherwise, cut to what
 *     is left of the budget (chunked prefill).
 *  2. Tokens need KV blocks of block_tokens tokens. Where none is free, the last of the running requests is preempted
 *     until there is one: its blocks are given back, what it computed is lost, and it goes to the head of the waiting
 *     queue. It keeps the tokens it has put out, and computes them again together with its prompt. A request that finds
 *     no block though it is the last is preempted itself, and the step has no further part.
 *  3. Unless a request was preempted in this step, waiting ones are admitted, first come, first served, while fewer
 *     than max_seqs run, tokens are left in the budget, and the blocks for the tokens that it would compute now are
 *     free. The first one that finds no room ends it. Without chunked prefill a prompt must fit into what is left of
 *     the budget whole.
 *  4. When the last token that a request has is computed, the step puts out its next one. The token itself is computed
 *     when the following one is due: a request with P and O tokens needs blocks for P + O - 1. One that has put out its
 *     last token gives its blocks back at the end of the step.
 *
 * The prefix cache: a block that was given back keeps what it holds until it is taken again; of all free blocks the one
 * that was given back longest ago is taken first, and a request gives its blocks back from the last to the first. At
 * its admission a request takes over the leading whole blocks of its tokens that are still held, by running requests or
 * free, and does not compute them; at least one token is computed in any case. Two sources are looked at, and the
 * longer one counts: the blocks that the request itself had before it was preempted; and for the first cached_tokens of
 * its prompt the blocks of an earlier request. A trace does not say which one that was. We take the last one that
 * reached this server before it and whose prompt is long enough: the most favourable choice, since its blocks are the
 * youngest.
 *
 * One per server. Cost: a step in which nothing but contexts changed costs the same whatever its number of requests;
 * any other step a pass over the running requests, never over all. Memory: 40 bytes per request of the trace, 8 per
 * block of those that have arrived and are not finished, 16 per block of the cache that was ever used. */

typedef struct fl_batching_rules {
    uint32_t max_seqs;      /* requests that run at once (vLLM: max_num_seqs), at least 1 */
    uint32_t token_budget;  /* tokens of one step (max_num_batched_tokens), at least 1 */
    uint32_t block_tokens;  /* tokens of a KV block, at least 1 */
    uint64_t kv_blocks;     /* that requests can use, at least 1. vLLM keeps one of its num_gpu_blocks for itself */
    uint64_t max_model_len; /* tokens of prompt and output together; 0 = no limit but the cache */
    bool chunked_prefill;   /* a prompt may be computed in several steps */
    bool prefix_cache;
    /* A step is composed when the one before begins (vLLM's asynchronous scheduling), so that a request that comes
     * during a step waits for the end of the next one; else when the one before has ended. The caller applies this
     * rule when it reports arrivals, since the scheduler knows no time. */
    bool async_scheduling;
    bool hands_over; /* a prefill server: a request that has put out a token, and not its last, is held for another */
} fl_batching_rules;

/* 256 requests, 2048 tokens, blocks of 16, chunked prefill and prefix cache: vLLM's defaults. kv_blocks is 0: that of a
 * GPU has to be stated. */
fl_batching_rules fl_batching_defaults(void);

/* What one request does in a step. */
typedef struct fl_batch_part {
    uint32_t request; /* row of the trace */
    uint32_t tokens;  /* computed in this step */
    uint32_t context; /* of its tokens, those that were in the KV cache before */
    uint32_t output;  /* tokens that it had put out before */
    bool prompt;      /* a chunk of its prompt, or of all its tokens again after a preemption; else it decodes one */
    bool admitted;    /* the first step since it was taken from the queue */
    bool emits;       /* the end of the step puts out a token of it */
    bool first;       /* ... its first */
    bool last;        /* ... its last: the request is finished */
} fl_batch_part;

typedef struct fl_batching_counts {
    uint32_t waiting, running;        /* now; during a step its requests are running */
    uint32_t held;                    /* now: prefilled here, and kept until their KV has moved */
    uint32_t oldest_waiting;          /* row of the trace, first of the queue; UINT32_MAX = the queue is empty */
    uint64_t blocks_used;             /* now, shared ones once; blocks_used + free ones = kv_blocks */
    uint64_t arrived, finished;       /* requests, since the beginning; arrived = waiting + running + held + finished */
    uint64_t preemptions, admissions; /* admissions: those after preemptions too */
    uint64_t steps;                   /* composed so far */
    uint64_t prompt_tokens;           /* computed in chunks, those computed again included */
    uint64_t decode_tokens;           /* computed one by one */
    uint64_t cached_tokens;           /* found in the prefix cache instead */
    uint64_t lost_tokens;             /* computed or found, and lost by preemptions */
    uint64_t output_tokens;           /* put out */
} fl_batching_counts;

typedef struct fl_batching fl_batching;

/* Refuse rules out of range (FL_BAD_INPUT without a file) and requests that could never be served: longer than
 * max_model_len, than the KV cache, or, without chunked prefill, than the budget. The message names the line of the
 * trace. */
fl_status fl_batching_check(const fl_batching_rules *rules, const fl_requests *requests, fl_diag *d);

/* Make a scheduler for requests that the caller has checked with fl_batching_check and keeps until fl_batching_free. */
fl_status fl_batching_new(fl_batching **out, const fl_batching_rules *rules, const fl_requests *requests, fl_diag *d);
void fl_batching_free(fl_batching *b);

/* Put request `request` of the trace into this server's queue. Call it once for each request, in the order of time. A
 * request that comes during a step counts for the next one. FL_NO_MEMORY: nothing has changed. */
fl_status fl_batching_arrive(fl_batching *b, uint32_t request, fl_diag *d);

/* Put a request that has put out `output` tokens elsewhere, and lost its KV, into this server's queue. */
fl_status fl_batching_arrive_again(fl_batching *b, uint32_t request, uint32_t output, fl_diag *d);

/* The decode side of a transfer. Reserve blocks for `context` tokens that will come, and for one more; *fits is false,
 * and nothing has changed, while there is no room or a preempted request waits. Then either cancel, or let it land: it
 * needs no block for its next token, and is admitted before those that wait. */
fl_status fl_batching_reserve(fl_batching *b, uint32_t request, uint32_t context, uint32_t output, bool *fits);
void fl_batching_cancel(fl_batching *b, uint32_t request);
fl_status fl_batching_land(fl_batching *b, uint32_t request, fl_diag *d);

/* The prefill side. Return the requests that the last step has begun to hold; give the blocks of one back. */
const uint32_t *fl_batching_held(const fl_batching *b, size_t *count);
void fl_batching_release(fl_batching *b, uint32_t request);

/* Compose the next step and fill *shape. Returns false if no request is here. End each step before the next begins. */
bool fl_batching_begin(fl_batching *b, fl_step_shape *shape);
/* End the step: put out its tokens, and remove finished requests. */
void fl_batching_end(fl_batching *b);

/* Return the parts of the step, in the order of the rules; valid until the next begin. In a row of equal steps this
 * costs a pass over its requests. */
const fl_batch_part *fl_batching_parts(fl_batching *b, size_t *count);

/* Return the length of the row of equal steps that begins with the step in progress; 0: it begins none. In such a row
 * each step has the same parts, and each part is a decode that puts out one token. Only the last step may contain the
 * first or last token of a request. Arrivals may cut the row short: fl_batching_same checks each step. */
uint32_t fl_batching_steady(const fl_batching *b);

fl_batching_counts fl_batching_count(fl_batching *b);

/* ---- the workload ---- */

/* Split prefill and decode: a request goes to a prefill server, whose last chunk of the prompt puts out the first
 * token. Then its KV blocks move to a decode server over the link between the two, which carries one transfer after
 * another. The prefill server keeps the blocks until the transfer ends. The decode server reserves blocks before it
 * begins, first come, first served, and computes no prompt token for it, unless it preempts the request later. So TTFT
 * is counted on the prefill side, and the first time between tokens, on the decode side, holds the wait for room and
 * the transfer. A mixed server does both. When a server of a pool is lost, its requests go back to a prefill server,
 * with the tokens that they have put out; a transfer to it goes to another one. */
typedef struct fl_serving_link { /* between any prefill and any decode server */
    int64_t latency_ns;
    double bytes_per_s, bytes_per_token; /* KV bytes of a token, of all GPUs of a server */
} fl_serving_link;

/* Return the default choice, an index of q->view: the first of those with the fewest waiting tokens on arrival, with
 * the fewest running requests after the prefill. */
uint32_t fl_route_fewest(const fl_route_query *q);

typedef enum fl_route {
    FL_ROUTE_ROUND_ROBIN, /* request by request, one server after the other */
    FL_ROUTE_LEAST_LOADED /* the server with the fewest requests waiting and running; of equals the first */
} fl_route;

/* One engine. With several GPUs they are the ranks of one tensor-parallel model: each takes part in every step, and a
 * step ends when the slowest rank has done its share. A rank that is done earlier waits spinning: it goes on drawing
 * the SM power of the step, and the memory's only for the bytes that it moved. Data-parallel replicas share their
 * experts, so their steps begin and end together; one without requests runs an empty step of one token, whose energy is
 * no request's. */
typedef struct fl_serving_server {
    fl_batching_rules rules;
    const fl_step_law *law;
    const uint32_t *gpu; /* gpu_count, each of one server only */
    uint32_t gpu_count;
    uint32_t role; /* FL_ROLE_... (policies/policy.h) */
} fl_serving_server;

typedef struct fl_serving_setup {
    const fl_requests *requests;
    const fl_serving_server *server; /* server_count */
    uint32_t server_count;
    uint32_t replicas; /* so many servers one after another are data-parallel replicas of one model; 0 or 1: none are */
    fl_route route;    /* without pools */
    fl_serving_link link;                  /* of pools */
    double scale;                          /* factor on the rate of arrivals; 0 = as stated */
    int64_t ttft_target_ns, tbt_target_ns; /* 0 = no target: nothing misses it */
    double target_share; /* share of first tokens, and of later ones, that must meet the targets: 0.99 */
    int64_t signals_ns;  /* refresh period of the servers' signals; 0 = current at every read */
} fl_serving_setup;

/* Make a workload that serves. *setup and all that it points to are borrowed for the workload's life. Its one class is
 * the engines' steps. FL_BAD_INPUT: no request, no server, a server without a GPU or law, a GPU of two servers, a
 * scale that is not positive and finite, a request that a server's KV cache can never hold. */
fl_status fl_serving_workload(fl_workload **out, const char *name, const fl_serving_setup *setup, fl_diag *d);

/* Fill out[setup->server_count] with what a policy may know about the servers. GPU lists stay the setup's. */
void fl_serving_facts(const fl_serving_setup *setup, fl_server_facts *out);

/* ---- what a run served ---- */

/* One request. Times are instants of the run.
 *
 * Energy: what the server's GPUs draw while a step runs, idle power and leakage included, belongs to the requests of
 * that step. Prompts and decodes share it as the times of a step with only the ones and of one with only the others;
 * prompts then by their tokens in the step, decodes alike per sequence. Rounding goes to later parts, so that no
 * femtojoule is lost. All else that the node draws is `idle_fj` of fl_served_summary. */
typedef struct fl_served {
    int64_t arrival_ps, taken_ps, first_ps, done_ps; /* taken_ps: its first step begins; first_ps: its first token */
    int64_t worst_tbt_ps;                            /* longest time between two of its tokens; 0 with one token */
    fl_wide prefill_fj, decode_fj;                   /* what is computed again after a preemption is prefill */
    uint32_t server;                                 /* that put out its last token */
    uint32_t prefilled_by;                           /* server whose KV it took over; UINT32_MAX: none */
    int64_t moved_ps;                                /* when its KV had moved; FL_TIME_NEVER: it did not */
    uint32_t cached_tokens;                          /* of its prompt, found in the prefix cache when it was taken */
    uint32_t preemptions;
    uint32_t tbt_missed; /* tokens later after the one before than the target */
    bool ttft_missed;
} fl_served;

/* How the energy of steps spreads over requests: joules of a request, and per output token of each. In fl_times joules
 * stand for seconds. */
typedef struct fl_served_energy {
    uint64_t requests, output_tokens;
    fl_times request_j, token_j;
} fl_served_energy;

enum { FL_SERVED_CLASSES = 9 };
/* Classes of lengths: two letters, of the prompt (short below 256 tokens, medium below 1024, long) and of the output
 * (below 100, below 350, long). DynamoLLM (Stojkovic et al., HPCA 2025, Table 2). */
extern const char *const fl_served_class_name[FL_SERVED_CLASSES];
uint32_t fl_served_class_of(uint32_t prompt_tokens, uint32_t output_tokens);

enum { FL_OVERLOAD_LEAST = 10 }; /* fewer requests tell nothing of an overload */

typedef struct fl_served_summary {
    uint64_t requests, prompt_tokens, cached_tokens, output_tokens;
    uint64_t steps, preemptions;
    uint64_t moved;                 /* transfers from a prefill to a decode server; 0 without pools */
    uint64_t computed_tokens;       /* in all steps: prompts, and what preempted requests lost, and one per decode */
    fl_times ttft, tbt, tpot, e2e;  /* to first token; between tokens of a request; mean of the latter, by request; from
                                       arrival to the last token */
    double ttft_missed, tbt_missed; /* shares of first tokens, and of later ones, over the targets; 0 without targets */
    bool targets;                   /* one was stated at all */
    bool met;                       /* both shares are at most 1 - target_share */
    double requests_per_s, tokens_per_s; /* over the makespan */
    double offered_per_s; /* requests that arrive, from the first to the last of them; NAN: all at once */
    bool overloaded; /* requests arrive faster than they are served, so that waits grow; false for fewer than ten */
    double wait_second_s, wait_last_s; /* mean waits of the second quarter of the requests, and of the last */
    double goodput;              /* requests/s whose TTFT, and whose mean time between tokens (TPOT), met the targets */
    fl_wide serving_fj, idle_fj; /* of the steps, and the rest: together the node's energy */
    double j_per_request, j_per_token; /* of what scores use (fl_run_result.energy_j), per request and output token */
    fl_served_energy energy, class[FL_SERVED_CLASSES]; /* of steps alone: of all requests, and by class of lengths */
    double idle_share;                                 /* of the node's energy: what no step drew */
    /* The minute, by arrival, in which the largest share of requests missed a target; of equals the one with the longer
     * mean TTFT. */
    double worst_minute_s;      /* when it begins */
    double worst_minute_missed; /* that share */
    double worst_minute_ttft_s; /* mean TTFT of its requests */
} fl_served_summary;

typedef struct fl_served_result {
    fl_served *request; /* request_count, in the order of arrival; NULL where the workload serves nothing */
    size_t request_count;
    fl_served_summary sum;
} fl_served_result;

void fl_served_free(fl_served_result *r);

/* ---- a lower bound of energy ----
 *
 * No policy can serve these requests with less, whatever clocks it sets and when. The bound ignores latency, so it
 * holds for policies that miss the targets too. It is a sum of two parts.
 *
 * - Boards: none draws less than its idle power at the cheapest clocks (gated, where it gates), and the run lasts at
 *   least until the last request has arrived.
 * - Steps: what a step adds to that is, per GPU, the seconds in which its SMs are busy times their power, and likewise
 *   for the memory (serving.c). The former go as 1 / f, so at no clocks does a second of the reference clock cost
 *   less than X = min P_sm(f) f_ref / f; for the memory Y = min P_memory min(1 / m, f_ref / f). A step changes its
 * clock under way: each part of it is then done at one of these clocks. Attention, experts, host time, all-reduces and
 * exchanges cost nothing here. What is left depends on the tokens n of a step and on its sequences s: h(n) + k(s), at
 * the reference clock.
 *
 * However the requests are batched, their steps compute at least N tokens (each prompt less what a prefix cache may
 * hold of it, and each later output token once), in at least S parts (one for each output token), and there are at
 * least K of them: a request is in one step for each of its tokens, a step has at most max_seqs sequences and
 * token_budget tokens, and its sequences hold at most all KV blocks at a time. For each line a + b n below h, with a
 * and b at least 0, the sum of h over all steps is at least a K + b N. The best line is an edge of the lower convex
 * hull of h. The same holds for k and S. */

typedef struct fl_serving_bound {
    double energy_j;             /* of all GPUs of the node: floor_j + steps_j */
    double floor_j, steps_j;     /* of the boards, and what the steps add */
    double steps, tokens, parts; /* K, N and S */
} fl_serving_bound;

/* Compute the bound. w must serve, and no GPU may be lost. rates and spec: those of the run. */
fl_status fl_serving_bound_of(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec, fl_serving_bound *out,
                              fl_diag *d);

/* ---- servers in execution, for sim/node ---- */

typedef struct fl_step_rank { /* one GPU of a server in the step in progress */
    fl_gpu *g;
    int64_t alone_ps;         /* how long its share of the step takes at its clocks */
    double compute, memory;   /* shares of that time */
    int32_t sm_mw, memory_mw; /* above the base, at the pace of the slowest rank */
    int64_t active_memory;    /* memory controller active, in 1/32768 */
    int64_t active_alu;       /* ALUs, likewise */
} fl_step_rank;

typedef struct fl_tbt_run { /* tokens that came equally long after the ones before, at one instant */
    int64_t end_ps, tbt_ps;
    uint32_t count;
} fl_tbt_run;

typedef struct fl_engine { /* one server */
    const fl_serving_server *s;
    uint32_t index;
    fl_batching *batching;
    fl_step_rank *rank; /* s->gpu_count */
    bool busy;          /* a step is in progress */
    bool empty;         /* it has no requests: other replicas have some */
    bool lost;          /* a GPU of it fell off the bus: what it has will never be done */

    /* the step in progress */
    fl_step_shape shape;
    int64_t length_ps; /* whole, at the clocks in force */
    int64_t begin_ps, end_ps, charged_ps;
    fl_wide step_fj; /* up to charged_ps, of all ranks */

    /* A row of steps of the same decodes: what they came to is added to the requests when it ends. */
    uint32_t *member;   /* rules.max_seqs */
    uint32_t members;   /* that all got a token at row_ps; 0 = no such row */
    uint64_t row_steps; /* not yet settled */
    int64_t row_ps, row_worst_ps;
    fl_wide row_fj; /* of each member */
    uint32_t row_missed;
    fl_wide carry_fj; /* less than one femtojoule per sequence of the last decodes: for the next ones */
    uint32_t last;    /* request that finished last; FL_NONE = none yet */

    /* of pools */
    uint64_t gone;           /* of `mine`, those that went elsewhere, or were lost with the server */
    uint64_t waiting_tokens; /* of prompts that are not prefilled yet */
    struct fl_transfer *incoming;
    size_t incoming_from, incoming_count, incoming_room; /* wait for room here */
    uint32_t moving;                                     /* on their way here */

    /* since the start */
    uint64_t arrived, finished, steps, tokens, computed;
    uint64_t prompt_tokens, cached_tokens; /* of requests that have put out a token */
    uint64_t ttft_count, tbt_count, ttft_missed, tbt_missed;
    fl_wide ttft_sum_ps, tbt_sum_ps, steps_fj;
    fl_tbt_run *tbt; /* tbt_runs, in the order of time */
    size_t tbt_runs, tbt_room;
    uint32_t *first; /* requests in the order of their first tokens: ttft_count */
    size_t first_room;
    size_t oldest;  /* in `mine`: all before it have put out a token */
    uint32_t *mine; /* requests in the order of arrival: arrived */
    size_t mine_room;
    size_t handed;                     /* of them, those that the scheduler has */
    int64_t ended_ps;                  /* the last step */
    struct fl_engine_signals *signals; /* NULL: nobody reads them */
} fl_engine;

typedef struct fl_transfer { /* of a request's KV */
    uint32_t request, from, to, tokens;
    int64_t end_ps; /* FL_TIME_NEVER: it waits for room */
} fl_transfer;

typedef struct fl_engines {
    const fl_serving_setup *u;
    fl_engine *engine;       /* u->server_count */
    fl_served *served;       /* by request */
    int64_t *last_ps;        /* by request: its last token, as of the row that it is in */
    size_t next;             /* request that arrives next */
    int64_t next_ps, now_ps; /* now_ps: up to which it was advanced */
    int64_t *ready_ps;       /* by request: since when its server may take it */
    uint32_t *output;        /* by request: tokens that it had put out when it came to its server again */
    bool pools;              /* a server has a role */
    fl_transfer *transfer;   /* `transfers` on their way */
    size_t transfers, transfer_room;
    int64_t *link_ps; /* server_count squared, from and to: when the link is free */
    int64_t moved_ps; /* when the next transfer ends */
    int64_t wake_ps;  /* when servers may begin something though nothing happens: after a loss */
    uint64_t moved;
    fl_route_view *view;                                    /* server_count */
    uint32_t (*route)(void *user, const fl_route_query *q); /* an index of q->view; NULL: fl_route_fewest */
    void *route_user;
    uint64_t finished;       /* requests, of all servers */
    int64_t ttft_ps, tbt_ps; /* targets; FL_TIME_NEVER = none */
    bool records;            /* of batches: somebody asks for them */
    fl_batch_record *batch;
    size_t batch_count, batch_room;
    int64_t signals_ps; /* their period; 0 = as they are */
    int64_t tell_ps;    /* when the servers tell them next; FL_TIME_NEVER = never */
    fl_status status;   /* what went wrong while it advanced */
    fl_model_status model;
} fl_engines;

/* Return the server's counts, with the arrivals that the scheduler has not received yet. */
static inline fl_batching_counts fl_engine_count(const fl_engine *e) {
    fl_batching_counts c = fl_batching_count(e->batching);
    c.arrived += e->arrived - e->handed;
    c.waiting += (uint32_t)(e->arrived - e->handed);
    return c;
}

/* Fill *r from servers whose requests are all done, and take over their per-request array. node_fj: the whole node's
 * energy; score_j: the energy that scores use. *r may be freed also on failure. FL_MODEL_FAULT where the requests'
 * energies are not those of the steps, a request has no end, or a KV block or a token got lost: a fault of the
 * simulator. */
fl_status fl_served_collect(fl_engines *v, int64_t makespan_ps, fl_wide node_fj, double score_j, fl_served_result *r,
                            fl_diag *d);

/* Read the signals of one server at t (FL_SERVER_SIGNALS in policies/policy.h). remember: freshness counts from here.
 *
 * Percentiles cover a window of ten seconds, as histograms of 64 steps per power of two. The value is the upper end of
 * a step: never less than the true percentile (nearest rank), and at most 1.6 % more. */
void fl_engines_read(fl_engines *v, uint32_t server, int64_t t, bool remember, fl_server_sample *out);

/* Advancing the servers of a node: event by event, which are arrivals and the ends of steps. All ends of one instant
 * come first, then the arrivals, then the steps that can begin; so the result does not depend on where an advance
 * was cut. A boundary only reads. When a clock changes, the end of a step moves like that of any op (fl_rescale_ps).
 *
 * A step counts as one kernel on each GPU of its server, and as one iteration. A GPU is busy while it lasts. */

typedef struct fl_engines_needs {                           /* what will be read */
    uint64_t signals;                                       /* FL_BIT(FL_SERVER_...) */
    bool batches;                                           /* records of steps are kept */
    uint32_t (*route)(void *user, const fl_route_query *q); /* of pools; NULL: the default */
    void *route_user;
} fl_engines_needs;

/* gpu: the node's, by index. */
fl_status fl_engines_open(fl_engines **out, const fl_workload *w, fl_gpu *gpu, const fl_engines_needs *needs,
                          fl_diag *d);
void fl_engines_close(fl_engines *v); /* NULL is allowed */

/* From `now` to `until`, or to the end of the last request; returns the instant reached. Charges the GPUs' windows up
 * to it, not their base. v->status holds an error: see fl_engines_refused. */
int64_t fl_engines_advance(fl_engines *v, int64_t now, int64_t until);
fl_status fl_engines_refused(const fl_engines *v, const char *name, fl_diag *d);
static inline bool fl_engines_done(const fl_engines *v) { return v->finished == v->u->requests->count; }
/* Return whether only the work of lost GPUs is left. */
bool fl_engines_stuck(const fl_engines *v);

/* After fl_gpu_clock at t, up to which all is charged. */
void fl_engines_rescale(fl_engines *v, const fl_gpu *g, int64_t t);
/* g fell off the bus: its server's step, and that of its replicas, never ends, and nothing is sent to that server any
 * more. */
void fl_engines_lose(fl_engines *v, fl_gpu *g);
/* Power above the base with what runs on g now, if its SM clock were `sm`, with these rates; < 0: nothing runs. */
int64_t fl_engines_predict_mw(const fl_engines *v, const fl_gpu *g, uint32_t sm, const fl_clock_rates *rates);

/* Continues a hash with where the servers stand. */
uint64_t fl_engines_hash(const fl_engines *v, uint64_t h);
