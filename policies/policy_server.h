/* The half of the contract that only a policy for servers of language models needs: signals, records and facts of an
 * engine that batches requests, and the choice of a server for a request. policies/policy.h includes it. A policy that
 * sets clocks of a GPU without looking at a server reads nothing of this file. */
#ifndef FL_POLICY_SERVER_H
#define FL_POLICY_SERVER_H

#include <stdint.h>

/* ---- signals: X(ID, name, unit, kind, meaning), as in policies/policy.h ---- */

/* A server is one engine that batches requests (a language model's), on one or several of the node's GPUs. A host that
 * serves nothing has none. The window of a MEAN is the server's own, about the last ten seconds. */
#define FL_SERVER_SIGNALS(X)                                                                                           \
    X(WAITING, waiting, "", GAUGE, "requests that arrived and are in no batch, preempted ones too")                    \
    X(RUNNING, running, "", GAUGE, "requests in the batch")                                                            \
    X(KV_USED_PCT, kv_used_pct, "%", GAUGE, "share of the KV cache in use")                                            \
    X(OLDEST_WAIT_NS, oldest_wait_ns, "ns", GAUGE, "how long the oldest request without a first token has waited")     \
    X(PROMPT_TOKENS, prompt_tokens, "", COUNTER, "prompt tokens of requests whose prompt is done")                     \
    X(CACHED_TOKENS, cached_tokens, "", COUNTER, "of them, found in the prefix cache")                                 \
    X(OUTPUT_TOKENS, output_tokens, "", COUNTER, "tokens generated")                                                   \
    X(BATCHES, batches, "", COUNTER, "steps of the engine finished")                                                   \
    X(BATCH_TOKENS, batch_tokens, "", COUNTER, "tokens computed in them, of prompts and outputs")                      \
    X(PREEMPTIONS, preemptions, "", COUNTER, "times that a request lost its KV blocks")                                \
    X(ARRIVED, arrived, "", COUNTER, "requests that arrived")                                                          \
    X(FINISHED, finished, "", COUNTER, "requests that finished")                                                       \
    X(TTFT_SUM_NS, ttft_sum_ns, "ns", COUNTER, "sum of the times to first token (TTFT)")                               \
    X(TTFT_COUNT, ttft_count, "", COUNTER, "first tokens")                                                             \
    X(TBT_SUM_NS, tbt_sum_ns, "ns", COUNTER, "sum of the times between tokens of one request (TBT)")                   \
    X(TBT_COUNT, tbt_count, "", COUNTER, "tokens after the first")                                                     \
    X(TTFT_MISSED, ttft_missed, "", COUNTER, "first tokens later than the target")                                     \
    X(TBT_MISSED, tbt_missed, "", COUNTER, "tokens later after the one before than the target")                        \
    X(TTFT_P50_NS, ttft_p50_ns, "ns", MEAN, "median TTFT of the window")                                               \
    X(TTFT_P95_NS, ttft_p95_ns, "ns", MEAN, "95th percentile")                                                         \
    X(TTFT_P99_NS, ttft_p99_ns, "ns", MEAN, "99th percentile")                                                         \
    X(TBT_P50_NS, tbt_p50_ns, "ns", MEAN, "median TBT of the window")                                                  \
    X(TBT_P95_NS, tbt_p95_ns, "ns", MEAN, "95th percentile")                                                           \
    X(TBT_P99_NS, tbt_p99_ns, "ns", MEAN, "99th percentile")

#define FL_ROW_SERVER_SIGNAL_ID(id, ...) FL_SERVER_##id,
enum { FL_SERVER_SIGNALS(FL_ROW_SERVER_SIGNAL_ID) FL_SERVER_SIGNAL_COUNT };

/* ---- what a policy sees ---- */

typedef struct fl_server_sample {
    uint64_t valid;
    uint64_t fresh;
    double value[FL_SERVER_SIGNAL_COUNT];
} fl_server_sample;

static inline int fl_server_known(const fl_server_sample *s, int id) { return (s->valid >> id & 1) != 0; }
static inline int fl_server_fresh(const fl_server_sample *s, int id) { return (s->valid & s->fresh) >> id & 1; }

typedef struct fl_batch_record { /* one step of a server's engine */
    int64_t start_ns, end_ns;
    uint32_t server;
    uint32_t prompt_tokens;    /* computed in it, of prompts */
    uint32_t prompts;          /* that they belong to */
    uint32_t decode_sequences; /* requests that got one more token */
    uint64_t kv_tokens;        /* read of the KV cache, over all of its requests */
} fl_batch_record;

/* ---- what a policy may know of a server ---- */

/* What a server is for: prompts and outputs, or one of them, where a node splits prefill and decode. */
enum { FL_ROLE_MIXED, FL_ROLE_PREFILL, FL_ROLE_DECODE };

typedef struct fl_server_facts { /* 0 = not known, not stated */
    const uint32_t *gpu;         /* gpu_count indices: the GPUs that this server runs on */
    uint32_t gpu_count;
    uint32_t max_seqs;     /* requests in a batch, at most */
    uint64_t token_budget; /* tokens in a step, at most */
    uint64_t kv_tokens;    /* that the KV cache holds */
    int64_t ttft_target_ns, tbt_target_ns;
    double target_share; /* of tokens that must meet them: 0.99 */
    uint32_t role;       /* FL_ROLE_... */
    uint32_t spare;
} fl_server_facts;

/* ---- where a request goes: the optional member `route` of a descriptor ---- */

typedef struct fl_route_view { /* of a server that a request may go to */
    uint32_t server;
    uint32_t running;        /* requests that were routed to it, and neither finished nor gone elsewhere */
    uint64_t waiting_tokens; /* prompt tokens of its requests that are not prefilled yet; 0 on a decode server */
    uint64_t kv_tokens;      /* that its KV cache holds, reserved ones included */
    double sm_mhz;           /* clock in force on its first GPU */
} fl_route_view;

typedef struct fl_route_query {
    uint32_t decode;         /* 0: on arrival, servers that take prompts; 1: after the prefill, decode servers */
    uint32_t request;        /* its number, by arrival */
    uint32_t context_tokens; /* that it has to compute, or whose KV moves */
    uint32_t count;
    const fl_route_view *view; /* count, at least 1 */
} fl_route_query;

#endif
