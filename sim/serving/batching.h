/* The scheduler of a serving engine with continuous batching, by the rules of vLLM v1 (vllm/v1/core/sched/scheduler.py,
 * kv_cache_manager.py, block_pool.py; Kwon et al., "Efficient Memory Management for Large Language Model Serving with
 * PagedAttention", SOSP 2023): which requests compute how many tokens in which step. A pure state machine: it knows
 * neither time nor how long a step takes. Whoever simulates a server tells it of arrivals, asks for the next step,
 * lets time pass, and says that the step is over.
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
#pragma once

#include "models/laws/laws.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fl_batching_rules {
    uint32_t max_seqs;      /* requests that run at once (vLLM: max_num_seqs), at least 1 */
    uint32_t token_budget;  /* tokens of one step (max_num_batched_tokens), at least 1 */
    uint32_t block_tokens;  /* tokens of a KV block, at least 1 */
    uint64_t kv_blocks;     /* that requests can use, at least 1. vLLM keeps one of its num_gpu_blocks for itself */
    uint64_t max_model_len; /* tokens of prompt and output together; 0 = no limit but the cache */
    bool chunked_prefill;   /* a prompt may be computed in several steps */
    bool prefix_cache;
    /* A step is composed when the one before begins (vLLM's asynchronous scheduling), so that a request that comes
     * during a step waits for the end of the next one; else when the one before has ended. For whoever tells of
     * arrivals: it is a matter of time, which this machine knows nothing of. */
    bool async_scheduling;
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
    uint32_t oldest_waiting;          /* row of the trace, first of the queue; UINT32_MAX = nobody waits */
    uint64_t blocks_used;             /* now, shared ones once; blocks_used + free ones = kv_blocks */
    uint64_t arrived, finished;       /* requests, since the beginning; arrived = waiting + running + finished */
    uint64_t preemptions, admissions; /* admissions: those after preemptions too */
    uint64_t steps;                   /* composed so far */
    uint64_t prompt_tokens;           /* computed in chunks, those computed again included */
    uint64_t decode_tokens;           /* computed one by one */
    uint64_t cached_tokens;           /* found in the prefix cache instead */
    uint64_t lost_tokens;             /* computed or found, and lost by preemptions */
    uint64_t output_tokens;           /* put out */
} fl_batching_counts;

typedef struct fl_batching fl_batching;

/* Refuses rules out of range (FL_BAD_INPUT, about no file) and requests that could never be served: longer than
 * max_model_len, than the KV cache, or, without chunked prefill, than the budget; told with the line of the trace. */
fl_status fl_batching_check(const fl_batching_rules *rules, const fl_requests *requests, fl_diag *d);

/* *out for requests that the caller checked with fl_batching_check, and keeps until fl_batching_free. */
fl_status fl_batching_new(fl_batching **out, const fl_batching_rules *rules, const fl_requests *requests, fl_diag *d);
void fl_batching_free(fl_batching *b);

/* Request `request` of the trace reaches this server's queue, once, in the order of time. During a step too: it is
 * looked at when the next one is composed. FL_NO_MEMORY: nothing has changed. */
fl_status fl_batching_arrive(fl_batching *b, uint32_t request, fl_diag *d);

/* Composes the next step and fills *shape; false: no request is here, and there is no step. A step must have been ended
 * before the next one begins. */
bool fl_batching_begin(fl_batching *b, fl_step_shape *shape);
/* The step is over: its tokens are out, its finished requests gone. */
void fl_batching_end(fl_batching *b);

/* The parts of the step, in the order of the rules; valid from begin to the next begin. Where the step is one of a row
 * of equal ones, this costs a pass over its requests. */
const fl_batch_part *fl_batching_parts(fl_batching *b, size_t *count);

/* During a step: of how many steps, this one included, is it certain that they have the parts of this one, each a
 * decode that puts out one token, none the first or last of its request but in the very last of these steps? 0: this
 * step is none such. Arrivals may cut the row short: fl_batching_same tells of each step whether it still belongs. */
uint32_t fl_batching_steady(const fl_batching *b);

fl_batching_counts fl_batching_count(fl_batching *b);
