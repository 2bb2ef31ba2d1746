/* The kinds of kernels that a host has seen, found by hash: one entry per distinct name, grid and block. */
#pragma once

#include "policies/policy.h"
#include "traces/io/intern.h"

typedef struct fl_kind_table {
    fl_kernel_kind *kind; /* their names are those of `name` */
    size_t count, room;
    char **name; /* name_id is the index */
    size_t name_count, name_room;
    fl_intern by_name, by_kind;
} fl_kind_table;

/* *index of that kind, added where it is new and `add` is true (the name is copied), else UINT32_MAX. */
fl_status fl_kind_of(fl_kind_table *k, const char *name, const uint32_t grid[3], const uint32_t block[3], bool add,
                     uint32_t *index, fl_diag *d);
void fl_kind_table_free(fl_kind_table *k);
