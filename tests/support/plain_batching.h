/* The rules of the batching scheduler a second time, as plainly as they can be said: lists that are searched from one
 * end to the other, no state that could be derived. Written from the rules (the head of sim/serving/serving.h, and
 * vLLM v1), not from the code; for tests. Runs out of no memory that a test has. */
#pragma once

#include "models/laws/laws.h"
#include "sim/serving/serving.h"
#include "traces/serving/serving.h"

#include <stdlib.h>
#include <string.h>

typedef struct pb_list {
    uint64_t *item;
    size_t count, room;
} pb_list;

static inline void pb_insert(pb_list *l, size_t at, uint64_t item) {
    if (l->count == l->room)
        l->item = realloc(l->item, (l->room = 2 * l->room + 8) * sizeof *l->item);
    memmove(l->item + at + 1, l->item + at, (l->count - at) * sizeof *l->item);
    l->item[at] = item;
    l->count++;
}

static inline void pb_append(pb_list *l, uint64_t item) { pb_insert(l, l->count, item); }

static inline uint64_t pb_remove(pb_list *l, size_t at) {
    const uint64_t item = l->item[at];
    l->count--;
    memmove(l->item + at, l->item + at + 1, (l->count - at) * sizeof *l->item);
    return item;
}

typedef struct pb_request {
    pb_list block; /* that it has now, by number */
    pb_list full;  /* contents of its whole blocks, in order; also after it lost them */
    uint32_t computed, output;
    bool running, finished;
} pb_request;

typedef struct plain_batching {
    fl_batching_rules rules;
    const fl_requests *requests;
    pb_request *of;
    uint64_t *content;        /* of each block: a number that no other content has; 0 = never used */
    uint32_t *users;          /* of each block */
    uint64_t contents;        /* numbers given so far */
    pb_list free_block;       /* from the one to be taken first */
    pb_list arrived;          /* all requests that reached this server */
    pb_list waiting, running; /* requests, in order */
    fl_batch_part *part;
    size_t part_count;
    pb_list preempted; /* in this step */
    fl_step_shape shape;
} plain_batching;

static inline plain_batching *pb_new(const fl_batching_rules *rules, const fl_requests *requests) {
    plain_batching *p = calloc(1, sizeof *p);
    p->rules = *rules;
    p->requests = requests;
    p->of = calloc(requests->count + 1, sizeof *p->of);
    p->part = calloc(requests->count + 1, sizeof *p->part);
    p->content = calloc(rules->kv_blocks, sizeof *p->content);
    p->users = calloc(rules->kv_blocks, sizeof *p->users);
    for (uint64_t i = 0; i < rules->kv_blocks; i++)
        pb_append(&p->free_block, i);
    return p;
}

static inline void pb_free(plain_batching *p) {
    for (size_t i = 0; i < p->requests->count; i++) {
        free(p->of[i].block.item);
        free(p->of[i].full.item);
    }
    free(p->of);
    free(p->part);
    free(p->content);
    free(p->users);
    free(p->free_block.item);
    free(p->arrived.item);
    free(p->waiting.item);
    free(p->running.item);
    free(p->preempted.item);
    free(p);
}

static inline void pb_arrive(plain_batching *p, uint32_t r) {
    pb_append(&p->arrived, r);
    pb_append(&p->waiting, r);
}

/* All tokens that a request has so far: its prompt and what it put out. */
static inline uint32_t pb_tokens(const plain_batching *p, uint32_t r) {
    return p->requests->row[r].prompt_tokens + p->of[r].output;
}

static inline uint64_t pb_blocks(const plain_batching *p, uint64_t tokens) {
    uint64_t n = 0;
    while (n * p->rules.block_tokens < tokens)
        n++;
    return n;
}

static inline void pb_take(plain_batching *p, uint32_t r) {
    const uint64_t block = pb_remove(&p->free_block, 0);
    p->content[block] = ++p->contents;
    p->users[block] = 1;
    pb_append(&p->of[r].block, block);
}

/* Gives back all blocks of a request, the last one first. */
static inline void pb_give(plain_batching *p, uint32_t r) {
    pb_list *own = &p->of[r].block;
    while (own->count) {
        const uint64_t block = pb_remove(own, own->count - 1);
        if (--p->users[block] == 0)
            pb_append(&p->free_block, block);
    }
}

static inline void pb_preempt(plain_batching *p) {
    const uint32_t r = (uint32_t)pb_remove(&p->running, p->running.count - 1);
    pb_give(p, r);
    p->of[r].computed = 0;
    p->of[r].running = false;
    pb_insert(&p->waiting, 0, r);
    pb_append(&p->preempted, r);
}

/* The block that holds this content, or -1. */
static inline int64_t pb_block_with(const plain_batching *p, uint64_t content) {
    for (uint64_t i = 0; i < p->rules.kv_blocks; i++)
        if (p->content[i] == content)
            return (int64_t)i;
    return -1;
}

/* Blocks that hold the first `most` contents of a list, until the first that none holds. */
static inline pb_list pb_held(const plain_batching *p, const pb_list *full, uint64_t most) {
    pb_list found = {0};
    for (size_t i = 0; i < full->count && i < most; i++) {
        const int64_t block = pb_block_with(p, full->item[i]);
        if (block < 0)
            break;
        pb_append(&found, (uint64_t)block);
    }
    return found;
}

/* What the prefix cache has of a waiting request. */
static inline pb_list pb_cached(const plain_batching *p, uint32_t r) {
    const fl_request_row *row = &p->requests->row[r];
    const uint64_t most = (pb_tokens(p, r) - 1) / p->rules.block_tokens,
                   shared = row->cached_tokens / p->rules.block_tokens;
    if (!p->rules.prefix_cache)
        return (pb_list){0};
    pb_list own = pb_held(p, &p->of[r].full, most);
    if (!shared)
        return own;
    size_t at = 0;
    while (p->arrived.item[at] != r)
        at++;
    while (at > 0) {
        const uint64_t other = p->arrived.item[--at];
        if (p->requests->row[other].prompt_tokens < row->cached_tokens)
            continue;
        pb_list theirs = pb_held(p, &p->of[other].full, shared < most ? shared : most);
        if (theirs.count > own.count) {
            free(own.item);
            return theirs;
        }
        free(theirs.item);
        break;
    }
    return own;
}

static inline void pb_part(plain_batching *p, uint32_t r, uint32_t tokens, bool admitted) {
    pb_request *q = &p->of[r];
    fl_batch_part *part = &p->part[p->part_count++];
    const uint32_t left = pb_tokens(p, r) - q->computed;
    *part = (fl_batch_part){
        .request = r, .tokens = tokens, .context = q->computed, .output = q->output, .admitted = admitted};
    part->prompt = !(left == 1 && q->output > 0);
    part->emits = tokens == left;
    part->first = part->emits && q->output == 0;
    part->last = part->emits && q->output + 1 == p->requests->row[r].output_tokens;
    if (part->prompt)
        fl_step_add_prompt(&p->shape, tokens, q->computed);
    else
        fl_step_add_decode(&p->shape, q->computed);
    while (q->block.count < pb_blocks(p, (uint64_t)q->computed + tokens))
        pb_take(p, r);
    q->computed += tokens;
    q->full.count = 0;
    for (size_t i = 0; i < q->computed / p->rules.block_tokens; i++)
        pb_append(&q->full, p->content[q->block.item[i]]);
}

static inline uint32_t pb_less(uint32_t a, uint32_t b) { return a < b ? a : b; }

static inline bool pb_begin(plain_batching *p) {
    uint32_t budget = p->rules.token_budget;
    p->part_count = p->preempted.count = 0;
    p->shape = (fl_step_shape){0};
    for (size_t i = 0; i < p->running.count && budget > 0; i++) {
        const uint32_t r = (uint32_t)p->running.item[i];
        const uint32_t tokens = pb_less(pb_tokens(p, r) - p->of[r].computed, budget);
        bool gone = false;
        while (!gone &&
               pb_blocks(p, (uint64_t)p->of[r].computed + tokens) > p->of[r].block.count + p->free_block.count) {
            gone = p->running.item[p->running.count - 1] == r;
            pb_preempt(p);
        }
        if (gone)
            break;
        pb_part(p, r, tokens, false);
        budget -= tokens;
    }
    while (!p->preempted.count && p->waiting.count && budget > 0 && p->running.count < p->rules.max_seqs) {
        const uint32_t r = (uint32_t)p->waiting.item[0];
        pb_request *q = &p->of[r];
        pb_list found = pb_cached(p, r);
        const uint32_t cached = (uint32_t)found.count * p->rules.block_tokens, left = pb_tokens(p, r) - cached;
        const uint32_t tokens = pb_less(left, budget);
        uint64_t needed = pb_blocks(p, (uint64_t)cached + tokens) - found.count;
        for (size_t i = 0; i < found.count; i++)
            needed += p->users[found.item[i]] == 0;
        const bool fits = needed <= p->free_block.count && (p->rules.chunked_prefill || tokens == left);
        for (size_t i = 0; fits && i < found.count; i++) {
            const uint64_t block = found.item[i];
            for (size_t k = 0; k < p->free_block.count; k++)
                if (p->free_block.item[k] == block)
                    pb_remove(&p->free_block, k--);
            p->users[block]++;
            pb_append(&q->block, block);
        }
        free(found.item);
        if (!fits)
            break;
        pb_remove(&p->waiting, 0);
        pb_append(&p->running, r);
        q->running = true;
        q->computed = cached;
        pb_part(p, r, tokens, true);
        budget -= tokens;
    }
    return p->part_count > 0;
}

static inline void pb_end(plain_batching *p) {
    for (size_t i = 0; i < p->part_count; i++) {
        const fl_batch_part *part = &p->part[i];
        pb_request *q = &p->of[part->request];
        q->output += part->emits;
        if (!part->last)
            continue;
        q->running = false;
        q->finished = true;
        pb_give(p, part->request);
        for (size_t k = 0; k < p->running.count; k++)
            if (p->running.item[k] == part->request)
                pb_remove(&p->running, k--);
    }
}
