/* Blocks of a KV cache, and which earlier request's blocks a request may take over. */
#include "sim/serving/inside.h"

#include "sim/serving/serving.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <stdint.h>
#include <stdlib.h>

/* The prefix cache: which leading blocks of a request are still held (sim/serving/serving.h, its last rule). */

/* Nobody looks at the blocks of this request any more, and it does not need them itself. */
static void forget(fl_batch_request *q) {
    if (q->lent || q->state != FL_BATCH_DONE)
        return;
    free(q->place);
    q->place = NULL;
    q->blocks = 0;
}

static void look_away(fl_batching *b, uint32_t r) {
    b->of[r].lent--;
    forget(&b->of[r]);
}

/* The last of the lenders whose prompt has so many tokens. Their prompts descend. */
static uint32_t lender_of(const fl_batching *b, uint32_t tokens) {
    size_t low = 0, high = b->lender_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (b->requests->row[b->lenders[middle]].prompt_tokens >= tokens)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? b->lenders[low - 1] : FL_BATCH_NONE;
}

fl_status fl_batch_lend(fl_batching *b, uint32_t r, fl_diag *d) {
    const fl_request_row *row = &b->requests->row[r];
    fl_batch_request *q = &b->of[r];
    if (fl_grow(&b->lenders, &b->lender_room, b->lender_count + 1, sizeof *b->lenders))
        return fl_no_memory(d, "a request that arrives");
    if (row->cached_tokens >= b->rules.block_tokens)
        q->lender = lender_of(b, row->cached_tokens);
    if (q->lender != FL_BATCH_NONE)
        b->of[q->lender].lent++;
    while (b->lender_count && b->requests->row[b->lenders[b->lender_count - 1]].prompt_tokens <= row->prompt_tokens)
        look_away(b, b->lenders[--b->lender_count]);
    b->lenders[b->lender_count++] = r;
    q->lent++;
    return FL_OK;
}

/* Of the first `most` blocks at `place`, those from the first on that are still held. */
static uint32_t held(const fl_batching *b, const fl_kv_place *place, uint32_t most) {
    uint32_t n = 0;
    while (n < most && fl_kv_holds(&b->kv, place[n]))
        n++;
    return n;
}

static uint32_t least(uint32_t x, uint32_t y) { return x < y ? x : y; }

uint32_t fl_batch_find(const fl_batching *b, uint32_t r, const fl_kv_place **place, uint32_t *idle) {
    const fl_batch_request *q = &b->of[r];
    const fl_request_row *row = &b->requests->row[r];
    const uint32_t block = b->rules.block_tokens;
    const uint32_t most = (row->prompt_tokens + q->output - 1) / block; /* one token is computed in any case */
    uint32_t found = held(b, q->place, least(q->blocks, most));
    *place = q->place;
    if (q->lender != FL_BATCH_NONE) {
        const fl_batch_request *l = &b->of[q->lender];
        const bool keeps = l->state == FL_BATCH_RUNNING || l->state == FL_BATCH_HELD;
        const uint32_t full = keeps ? l->computed / block : l->blocks;
        const uint32_t shared = held(b, l->place, least(least(row->cached_tokens / block, most), full));
        if (shared > found) {
            found = shared;
            *place = l->place;
        }
    }
    *idle = 0;
    for (uint32_t i = 0; i < found; i++)
        *idle += fl_kv_idle(&b->kv, (*place)[i]);
    return found;
}

void fl_batch_part_with(fl_batching *b, uint32_t r) {
    fl_batch_request *q = &b->of[r];
    if (q->lender != FL_BATCH_NONE)
        look_away(b, q->lender);
    forget(q);
}

/* ---- blocks of the cache ---- */

#define NONE UINT32_MAX

fl_status fl_kv_open(fl_kv_blocks *k, uint32_t count, fl_diag *d) {
    *k = (fl_kv_blocks){.count = count, .first = NONE, .last = NONE};
    if ((k->block = calloc(count, sizeof *k->block)))
        return FL_OK;
    *k = (fl_kv_blocks){0};
    return fl_no_memory(d, "the blocks of a KV cache");
}

void fl_kv_close(fl_kv_blocks *k) {
    free(k->block);
    *k = (fl_kv_blocks){0};
}

static void unlink_free(fl_kv_blocks *k, uint32_t block) {
    const fl_kv_block *b = &k->block[block];
    if (b->before == NONE)
        k->first = b->after;
    else
        k->block[b->before].after = b->after;
    if (b->after == NONE)
        k->last = b->before;
    else
        k->block[b->after].before = b->before;
}

fl_kv_place fl_kv_take(fl_kv_blocks *k) {
    const uint32_t block = k->fresh < k->count ? k->fresh++ : k->first;
    fl_kv_block *b = &k->block[block];
    if (b->stamp) /* it stood in the list; one never taken does not */
        unlink_free(k, block);
    b->users = 1;
    b->stamp++;
    k->used++;
    return (fl_kv_place){block, b->stamp};
}

void fl_kv_share(fl_kv_blocks *k, fl_kv_place p) {
    fl_kv_block *b = &k->block[p.block];
    if (b->users++)
        return;
    unlink_free(k, p.block);
    k->used++;
}

void fl_kv_give(fl_kv_blocks *k, fl_kv_place p) {
    fl_kv_block *b = &k->block[p.block];
    if (--b->users)
        return;
    k->used--;
    b->before = k->last;
    b->after = NONE;
    if (k->last == NONE)
        k->first = p.block;
    else
        k->block[k->last].after = p.block;
    k->last = p.block;
}
