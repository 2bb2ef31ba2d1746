#include "sim/serving/kv_blocks.h"

#include <stdlib.h>

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
