/* Kinds by name, for who looks up many: fl_kinds_find goes through all rows each time. */
#ifndef FL_KINDS_INDEX_H
#define FL_KINDS_INDEX_H

#include "traces/records.h"

typedef struct fl_kinds_index {
    const fl_kinds *kinds;   /* borrowed */
    size_t *order;           /* rows by name, in the file's order where a name has several; NULL: see below */
    const fl_kind_load *any; /* the row for names without one of their own; NULL: there is none */
} fl_kinds_index;

/* Without memory for an index it answers the same, only slower. fl_kinds_index_free either way. */
fl_kinds_index fl_kinds_index_make(const fl_kinds *k);
void fl_kinds_index_free(fl_kinds_index *x);

/* What fl_kinds_find gives. */
const fl_kind_load *fl_kinds_index_find(const fl_kinds_index *x, const char *name);

#endif
