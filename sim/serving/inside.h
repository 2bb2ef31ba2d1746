/* What the files of sim/serving share: the scheduler's state (steps.c, kv.c), and steps in execution (engines.c,
 * serving.c, signals.c). */
#pragma once

#include "models/laws/laws.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The requests that composing this step preempted, in that order; NULL and 0: none. */
const uint32_t *fl_batching_preempted(const fl_batching *b, size_t *count);

/* Return true if this step has the same parts as the one before, each with one token of context and output more. */
bool fl_batching_same(const fl_batching *b);

/* Return true while the request is held for another server, and how many tokens of it are in the cache. */
bool fl_batching_is_held(const fl_batching *b, uint32_t request);
uint32_t fl_batching_context(const fl_batching *b, uint32_t request);

/* Return how often a request was preempted, and how many tokens it has put out. */
uint32_t fl_batching_preemptions(const fl_batching *b, uint32_t request);
uint32_t fl_batching_output(fl_batching *b, uint32_t request);

/* The arrival of request i, in ps, scaled. */
int64_t fl_serving_arrival_ps(const fl_serving_setup *setup, size_t i);

/* The blocks of a KV cache: which are free, and which of the free ones still hold what was computed into them.
 *
 * A block that nobody uses any more goes to the end of the list of free blocks, and the first of that list is taken
 * next: so what was used longest ago is lost first (vllm/v1/core/block_pool.py). Blocks that were never taken stand
 * before all others. */

/* A block as it was when somebody took it: `stamp` counts how often that had happened. */
typedef struct fl_kv_place {
    uint32_t block, stamp;
} fl_kv_place;

typedef struct fl_kv_block {
    uint32_t before, after; /* in the list of free blocks, while nobody uses it */
    uint32_t users, stamp;
} fl_kv_block;

typedef struct fl_kv_blocks {
    fl_kv_block *block; /* count */
    uint32_t count, used;
    uint32_t fresh;       /* the first that was never taken; all after it neither */
    uint32_t first, last; /* of the list of free ones; UINT32_MAX = it is empty */
} fl_kv_blocks;

/* FL_NO_MEMORY: *k is zeroed. count < UINT32_MAX. */
fl_status fl_kv_open(fl_kv_blocks *k, uint32_t count, fl_diag *d);
void fl_kv_close(fl_kv_blocks *k);

static inline uint32_t fl_kv_free(const fl_kv_blocks *k) { return k->count - k->used; }
/* Return true if the block still holds what it held when `p` was noted. */
static inline bool fl_kv_holds(const fl_kv_blocks *k, fl_kv_place p) { return k->block[p.block].stamp == p.stamp; }
static inline bool fl_kv_idle(const fl_kv_blocks *k, fl_kv_place p) { return k->block[p.block].users == 0; }

/* Takes the first free block; there must be one. */
fl_kv_place fl_kv_take(fl_kv_blocks *k);
/* Add a user to a block that holds the wanted tokens. */
void fl_kv_share(fl_kv_blocks *k, fl_kv_place p);
/* Remove a user; without users the block is free. */
void fl_kv_give(fl_kv_blocks *k, fl_kv_place p);

/* ---- the scheduler's state ---- */

enum { FL_BATCH_ABSENT, FL_BATCH_WAITING, FL_BATCH_RUNNING, FL_BATCH_HELD, FL_BATCH_DONE };

#define FL_BATCH_NONE UINT32_MAX

/* A request, as this server knows it. */
typedef struct fl_batch_request {
    fl_kv_place *place; /* the blocks of its tokens in order: room for all that it will ever have */
    uint32_t blocks;    /* running: how many it has. Else: of those that it had, the leading ones that were full */
    uint32_t computed;  /* running: tokens in the cache, those of the step that runs included */
    uint32_t output;    /* tokens put out */
    uint32_t preemptions;
    uint32_t lender; /* the earlier request with whose prompt its own begins */
    uint32_t lent;   /* who may still look at `place`: later requests that borrow, and the list of lenders */
    uint8_t state;
} fl_batch_request;

struct fl_batching {
    fl_batching_rules rules;
    const fl_requests *requests;
    fl_kv_blocks kv;
    fl_batch_request *of; /* one per row of the trace */

    /* Waiting: first those preempted, the last of them first, then those that arrived. */
    uint32_t *preempted; /* at most `most`, and as many more as landed: those are admitted before them */
    uint32_t preempted_count;
    size_t preempted_room;
    uint32_t *queue; /* those that arrived, in order; the first `queue_from` of them were admitted once */
    size_t queue_count, queue_from, queue_room;

    uint32_t most;    /* requests that can run at once */
    uint32_t *landed; /* whose KV came from elsewhere; the first landed_from of them were admitted */
    size_t landed_count, landed_from, landed_room;
    uint32_t *held; /* at the end of the last step: held_count, at most `most` */
    uint32_t held_count;
    uint32_t *running; /* in the order of admission; at most `most` */
    uint32_t running_count;

    fl_batch_part *part; /* of the step; at most `most` */
    uint32_t part_count;
    uint32_t lost; /* requests that composing this step preempted: the newest of `preempted` */
    fl_step_shape shape;
    bool same; /* the step has the parts of the one before */

    /* A row of steps that only decode. Its parts, blocks and requests are brought up to date when somebody asks. */
    uint32_t steady; /* steps that certainly follow this one with its parts; arrivals may set it to 0 */
    bool settled;    /* this step is one of such a row */
    uint32_t behind; /* steps of the row that are begun, but not in parts, requests and blocks */
    uint32_t unseen; /* of them, those that have ended: their tokens are out */

    /* Those that reached this server and whose prompt is longer than that of each after them: where a later request
     * finds the youngest prompt that is long enough. Empty where nothing is shared. */
    uint32_t *lenders;
    size_t lender_count, lender_room;
    bool shares;

    fl_batching_counts count;
};

/* Find the earlier request whose prompt blocks request r may take over, and note r for later ones. FL_NO_MEMORY:
 * nothing has changed. */
fl_status fl_batch_lend(fl_batching *b, uint32_t r, fl_diag *d);
/* Return how many leading blocks of waiting request r the cache still holds, and where they are noted (*place: its
 * own, or those of another request); *idle: of them, those that nobody uses. */
uint32_t fl_batch_find(const fl_batching *b, uint32_t r, const fl_kv_place **place, uint32_t *idle);
/* Free what no later request can take over from finished request r. */
void fl_batch_part_with(fl_batching *b, uint32_t r);

/* The first of the servers that step together with e, and how many they are. */
static inline fl_engine *fl_engine_group(const fl_engines *v, const fl_engine *e, uint32_t *count) {
    *count = v->u->replicas > 1 ? v->u->replicas : 1;
    return &v->engine[e->index - e->index % *count];
}

/* The pace of e's step and of its replicas', at the clocks in force. False where the law gives no length: v->status
 * says why. */
bool fl_step_pace(fl_engines *v, fl_engine *e);
/* How long a step of this shape would take, at the clocks of the first rank. */
int64_t fl_step_alone_ps(const fl_engine *e, const fl_step_shape *shape);
/* Power above the base of one rank if its SM clock, with these rates, were another; < 0 = not known. */
int64_t fl_step_predict_mw(const fl_engines *v, const fl_engine *e, const fl_step_rank *r, uint32_t sm,
                           const fl_clock_rates *rates);

/* Note the requests that a composed step contains for the first time. */
void fl_step_taken(fl_engines *v, fl_engine *e);
/* Account for a step that has ended at e->end_ps, up to which it is charged. Call it before fl_batching_end. */
void fl_step_account(fl_engines *v, fl_engine *e);
/* Add the totals of the row of equal steps in progress to its members. */
void fl_step_settle(fl_engines *v, fl_engine *e);

/* The server of a pool, or a mixed one, that a request goes to; NULL: all are lost. context: as in fl_route_query. */
fl_engine *fl_pools_route(fl_engines *v, bool decode, uint32_t request, uint32_t context);
/* Put a request into the list of a server, which may take it from t on. */
void fl_pools_take(fl_engines *v, fl_engine *e, uint32_t request, int64_t t);
/* Line up the requests that the last step of a prefill server has begun to hold. */
void fl_pools_send(fl_engines *v, fl_engine *e);
/* Start the transfers that find room at t. */
void fl_pools_reserve(fl_engines *v, int64_t t);
/* End those that end at t. */
void fl_pools_land(fl_engines *v, int64_t t);
/* Send the requests of a server that is lost at t elsewhere. */
void fl_pools_lose(fl_engines *v, fl_engine *lost, int64_t t);

/* Open the servers' signals. needs: FL_BIT(FL_SERVER_...); 0 = none. */
fl_status fl_engines_signals_open(fl_engines *v, uint64_t needs, fl_diag *d);
/* Refresh the servers' signals at t, when their period is over. */
void fl_engines_tell(fl_engines *v, int64_t t);
