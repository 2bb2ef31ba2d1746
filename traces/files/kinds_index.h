/* Kinds by name, for callers with many look-ups: fl_kinds_find scans all rows each time. */
#pragma once

#include "traces/io/records.h"

typedef struct fl_kinds_index {
    const fl_kinds *kinds;   /* borrowed */
    size_t *order;           /* rows sorted by name, and in the file's order within a name; NULL: see below */
    const fl_kind_load *any; /* the row for names without a row of their own; NULL: none */
} fl_kinds_index;

/* Builds the index. Where memory runs out, the look-ups give the same answers, only more slowly. Call
 * fl_kinds_index_free in either case. */
fl_kinds_index fl_kinds_index_make(const fl_kinds *k);
void fl_kinds_index_free(fl_kinds_index *x);

/* The result of fl_kinds_find. */
const fl_kind_load *fl_kinds_index_find(const fl_kinds_index *x, const char *name);
