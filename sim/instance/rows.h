/* The tables of the contract at run time: rows by name, and the comparison of a plug-in's tables with these. */
#pragma once

#include "policies/policy.h"

/* Row of a table by name, -1 where there is none. The kind of table: */
typedef enum fl_row_set {
    FL_ROWS_GPU_SIGNAL,
    FL_ROWS_HOST_SIGNAL,
    FL_ROWS_SERVER_SIGNAL,
    FL_ROWS_WAKE,
    FL_ROWS_GPU_CONTROL,
    FL_ROWS_HOST_CONTROL
} fl_row_set;
typedef struct fl_row_info {
    const char *name, *unit, *meaning;
    fl_signal_kind kind; /* signals only */
} fl_row_info;
size_t fl_rows_count(fl_row_set set);
const fl_row_info *fl_rows_at(fl_row_set set, size_t index);
int fl_rows_find(fl_row_set set, const char *name);

/* NULL where the plug-in was built against this very contract; else text in buf: both versions and the first row that
 * differs. Reads nothing of the descriptor beyond its fl_abi. */
const char *fl_abi_difference(const fl_abi *theirs, char *buf, size_t size);
