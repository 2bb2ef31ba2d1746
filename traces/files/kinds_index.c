#include "traces/files/kinds_index.h"

#include "traces/files/kernels.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b, void *user) {
    const fl_kinds *k = user;
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    const int order = strcmp(k->kind[x].name, k->kind[y].name);
    return order ? order : (x > y) - (x < y);
}

fl_kinds_index fl_kinds_index_make(const fl_kinds *k) {
    fl_kinds_index x = {.kinds = k, .order = k && k->count ? malloc(k->count * sizeof *x.order) : NULL};
    for (size_t i = 0; x.order && i < k->count; i++)
        x.order[i] = i;
    for (size_t i = 0; x.order && i < k->count; i++)
        x.any = strcmp(k->kind[i].name, "*") == 0 ? &k->kind[i] : x.any;
    if (x.order)
        qsort_r(x.order, k->count, sizeof *x.order, by_name, (void *)(uintptr_t)k);
    return x;
}

void fl_kinds_index_free(fl_kinds_index *x) {
    free(x->order);
    x->order = NULL;
}

const fl_kind_load *fl_kinds_index_find(const fl_kinds_index *x, const char *name) {
    const fl_kinds *k = x->kinds;
    if (!x->order)
        return k ? fl_kinds_find(k, name) : NULL;
    size_t low = 0, high = k->count; /* the first row that does not come before the name */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(k->kind[x->order[middle]].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < k->count && !strcmp(k->kind[x->order[low]].name, name))
        return &k->kind[x->order[low]];
    return x->any;
}
