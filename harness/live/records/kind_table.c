#include "harness/live/records/kind_table.h"

#include <stdlib.h>
#include <string.h>

typedef struct key {
    uint32_t name_id, grid[3], block[3];
} key;

static bool same(const void *owner, uint32_t index, const void *key_of) {
    const fl_kernel_kind *kind = (const fl_kernel_kind *)owner + index;
    const key *k = key_of;
    return kind->name_id == k->name_id && !memcmp(kind->grid, k->grid, sizeof k->grid) &&
           !memcmp(kind->block, k->block, sizeof k->block);
}

static bool same_name(const void *owner, uint32_t index, const void *name) {
    return !strcmp(((char *const *)owner)[index], name);
}

/* *name_id of that name; UINT32_MAX where it is new and `add` is false. False: out of memory. */
static bool name_of(fl_kind_table *k, const char *name, bool add, uint32_t *name_id) {
    const size_t size = strlen(name);
    if (add) {
        *name_id = fl_intern_text(&k->by_name, &k->name, &k->name_count, &k->name_room, name, size);
        return *name_id != UINT32_MAX;
    }
    const fl_intern_slot *slot = fl_intern_find(&k->by_name, fl_hash(name, size), same_name, k->name, name);
    *name_id = slot ? slot->index : UINT32_MAX;
    k->by_name.count -= slot && slot->index == UINT32_MAX; /* it was counted as taken, and stays empty */
    return slot != NULL;
}

fl_status fl_kind_of(fl_kind_table *k, const char *name, const uint32_t grid[3], const uint32_t block[3], bool add,
                     uint32_t *index, fl_diag *d) {
    key at = {0};
    *index = UINT32_MAX;
    if (!name_of(k, name, add, &at.name_id))
        return fl_no_memory(d, "the kinds of kernels");
    if (at.name_id == UINT32_MAX)
        return FL_OK;
    memcpy(at.grid, grid, sizeof at.grid);
    memcpy(at.block, block, sizeof at.block);
    fl_intern_slot *slot = fl_intern_find(&k->by_kind, fl_hash(&at, sizeof at), same, k->kind, &at);
    if (!slot || (slot->index == UINT32_MAX && fl_grow(&k->kind, &k->room, k->count + 1, sizeof *k->kind)))
        return fl_no_memory(d, "the kinds of kernels");
    if (slot->index == UINT32_MAX && !add) {
        k->by_kind.count--;
        return FL_OK;
    }
    if (slot->index == UINT32_MAX) {
        fl_kernel_kind *new = &k->kind[k->count];
        *new = (fl_kernel_kind){.name = k->name[at.name_id], .name_id = at.name_id};
        memcpy(new->grid, grid, sizeof new->grid);
        memcpy(new->block, block, sizeof new->block);
        slot->index = (uint32_t)k->count++;
    }
    *index = slot->index;
    return FL_OK;
}

void fl_kind_table_free(fl_kind_table *k) {
    for (size_t i = 0; i < k->name_count; i++)
        free(k->name[i]);
    free(k->name);
    free(k->kind);
    fl_intern_free(&k->by_name);
    fl_intern_free(&k->by_kind);
    *k = (fl_kind_table){0};
}
