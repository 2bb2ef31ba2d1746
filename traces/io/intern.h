/* Finds equal items by hash: texts to indices, and any array of items with one index each. */
#pragma once

#include "traces/io/diag.h"

#include <stdbool.h>

typedef struct fl_intern_slot {
    uint32_t hash, index; /* index UINT32_MAX: the slot is empty */
} fl_intern_slot;

typedef struct fl_intern {
    fl_intern_slot *slot;
    size_t room, count;
} fl_intern;

/* True where item `index` of the owner equals the key. */
typedef bool (*fl_same_function)(const void *owner, uint32_t index, const void *key);

uint32_t fl_hash(const void *data, size_t size);

/* The slot of the item equal to key, or an empty slot (index UINT32_MAX) where the item belongs; the caller then stores
 * its index there. NULL when out of memory. The slot is valid until the next call. */
fl_intern_slot *fl_intern_find(fl_intern *n, uint32_t hash, fl_same_function same, const void *owner, const void *key);
void fl_intern_free(fl_intern *n);

/* A list of distinct texts. Returns the index of text in (*names) and adds a copy if it is new; UINT32_MAX when out of
 * memory. */
uint32_t fl_intern_text(fl_intern *n, char ***names, size_t *count, size_t *room, const char *text, size_t size);
