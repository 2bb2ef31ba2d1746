/* The blocks of a KV cache: which are free, and which of the free ones still hold what was computed into them.
 *
 * A block that nobody uses any more goes to the end of the list of free blocks, and the first of that list is taken
 * next: so what was used longest ago is lost first (vllm/v1/core/block_pool.py). Blocks that were never taken stand
 * before all others. */
#pragma once

#include "traces/io/diag.h"

#include <stdbool.h>
#include <stdint.h>

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
/* Does the block still hold what it held then? */
static inline bool fl_kv_holds(const fl_kv_blocks *k, fl_kv_place p) { return k->block[p.block].stamp == p.stamp; }
static inline bool fl_kv_idle(const fl_kv_blocks *k, fl_kv_place p) { return k->block[p.block].users == 0; }

/* Takes the first free block; there must be one. */
fl_kv_place fl_kv_take(fl_kv_blocks *k);
/* One user more of a block that holds what he looks for. */
void fl_kv_share(fl_kv_blocks *k, fl_kv_place p);
/* One user less; with the last one the block is free. */
void fl_kv_give(fl_kv_blocks *k, fl_kv_place p);
