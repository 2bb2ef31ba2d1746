#include "traces/io/intern.h"

#include <stdlib.h>
#include <string.h>

uint32_t fl_hash(const void *data, size_t size) {
    const unsigned char *p = data;
    uint64_t h = 0x9e3779b97f4a7c15u ^ size;
    while (size) {
        uint64_t word = 0;
        size_t n = size < sizeof word ? size : sizeof word;
        memcpy(&word, p, n);
        h = (h ^ word) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
        p += n;
        size -= n;
    }
    return (uint32_t)(h ^ (h >> 29));
}

static fl_status rehash(fl_intern *n) {
    size_t room = n->room ? n->room * 2 : 64;
    if (room > UINT32_MAX)
        return FL_NO_MEMORY;
    fl_intern_slot *slot = malloc(room * sizeof *slot);
    if (!slot)
        return FL_NO_MEMORY;
    for (size_t i = 0; i < room; i++)
        slot[i].index = UINT32_MAX;
    for (size_t i = 0; i < n->room; i++) {
        if (n->slot[i].index == UINT32_MAX)
            continue;
        size_t at = n->slot[i].hash & (room - 1);
        while (slot[at].index != UINT32_MAX)
            at = (at + 1) & (room - 1);
        slot[at] = n->slot[i];
    }
    free(n->slot);
    n->slot = slot;
    n->room = room;
    return FL_OK;
}

fl_intern_slot *fl_intern_find(fl_intern *n, uint32_t hash, fl_same_function same, const void *owner, const void *key) {
    if (n->count * 2 >= n->room && rehash(n))
        return NULL;
    size_t at = hash & (n->room - 1);
    for (; n->slot[at].index != UINT32_MAX; at = (at + 1) & (n->room - 1))
        if (n->slot[at].hash == hash && same(owner, n->slot[at].index, key))
            return &n->slot[at];
    n->slot[at].hash = hash;
    n->count++; /* an upper bound, should the caller fail to fill it */
    return &n->slot[at];
}

void fl_intern_free(fl_intern *n) {
    free(n->slot);
    memset(n, 0, sizeof *n);
}

typedef struct text_key {
    const char *text;
    size_t size;
} text_key;

static bool same_text(const void *owner, uint32_t index, const void *key) {
    const char *name = ((char *const *)owner)[index];
    const text_key *k = key;
    return strncmp(name, k->text, k->size) == 0 && name[k->size] == '\0';
}

uint32_t fl_intern_text(fl_intern *n, char ***names, size_t *count, size_t *room, const char *text, size_t size) {
    text_key key = {text, size};
    fl_intern_slot *slot = fl_intern_find(n, fl_hash(text, size), same_text, *names, &key);
    if (!slot)
        return UINT32_MAX;
    if (slot->index != UINT32_MAX)
        return slot->index;
    if (*count >= UINT32_MAX || fl_grow(names, room, *count + 1, sizeof **names))
        return UINT32_MAX;
    char *copy = strndup(text, size);
    if (!copy)
        return UINT32_MAX;
    (*names)[*count] = copy;
    slot->index = (uint32_t)(*count)++;
    return slot->index;
}
