#include "traces/profiler/yajl_memory.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct fl_yajl_block {
    struct fl_yajl_block *before, *after;
    max_align_t bytes[];
} block;

static void link_in(fl_yajl_memory *m, block *b, block *before, block *after) {
    b->before = before;
    b->after = after;
    *(before ? &before->after : &m->first) = b;
    if (after)
        after->before = b;
}

static block *of(void *bytes) { return (block *)(void *)((char *)bytes - offsetof(block, bytes)); }

static void *change(void *user, void *bytes, size_t size) {
    fl_yajl_memory *m = user;
    block *old = bytes ? of(bytes) : NULL, *before = old ? old->before : NULL, *after = old ? old->after : m->first;
    block *b = size <= SIZE_MAX - sizeof *b ? realloc(old, sizeof *b + size) : NULL;
    if (!b) /* noted as any of ours */
        longjmp(m->out, 1);
    link_in(m, b, before, after);
    return b->bytes;
}

static void *take(void *user, size_t size) { return change(user, NULL, size); }

static void give(void *user, void *bytes) {
    fl_yajl_memory *m = user;
    block *b = bytes ? of(bytes) : NULL;
    if (!b)
        return;
    *(b->before ? &b->before->after : &m->first) = b->after;
    if (b->after)
        b->after->before = b->before;
    free(b);
}

yajl_alloc_funcs fl_yajl_functions(fl_yajl_memory *m) {
    m->first = NULL;
    return (yajl_alloc_funcs){.malloc = take, .realloc = change, .free = give, .ctx = m};
}

void fl_yajl_memory_free(fl_yajl_memory *m) {
    while (m->first)
        give(m, m->first->bytes);
}
