/* What the files of the batching scheduler share (sim/serving/batching.h). */
#pragma once

#include "sim/serving/batching.h"
#include "sim/serving/kv_blocks.h"

enum { FL_BATCH_ABSENT, FL_BATCH_WAITING, FL_BATCH_RUNNING, FL_BATCH_DONE };

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
    uint32_t *preempted; /* at most `most` */
    uint32_t preempted_count;
    uint32_t *queue; /* those that arrived, in order; the first `queue_from` of them were admitted once */
    size_t queue_count, queue_from, queue_room;

    uint32_t most;     /* requests that can run at once */
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

fl_status fl_batch_check_rules(const fl_batching_rules *rules, fl_diag *d);

/* Brings parts, requests and blocks up to date. */
void fl_batch_settle(fl_batching *b);

/* ---- prefixes (batching_prefix.c) ---- */

/* Request r arrives: who lends to it, and that it may lend to others. FL_NO_MEMORY: nothing has changed. */
fl_status fl_batch_lend(fl_batching *b, uint32_t r, fl_diag *d);
/* Of waiting request r: how many of its leading blocks the cache still holds, and where they are noted (*place: its
 * own, or those of another request); *idle: of them, those that nobody uses. */
uint32_t fl_batch_find(const fl_batching *b, uint32_t r, const fl_kv_place **place, uint32_t *idle);
/* Request r is finished: frees what nobody looks at any more. */
void fl_batch_part_with(fl_batching *b, uint32_t r);
