/* The functions of SQLite that the readers call. The library is loaded with the first SQLite file; loading it at the
 * start would take a fifth of the start-up time of every command. */
#pragma once

#include "traces/io/diag.h"

#include <sqlite3.h>

/* clang-format off */
#define FL_SQLITE_CALLS(X)                                                                                             \
    X(bind_text) X(close) X(column_bytes) X(column_int64) X(column_name) X(column_text) X(column_type) X(db_config)    \
    X(deserialize) X(errmsg) X(errstr) X(exec) X(extended_result_codes) X(finalize) X(limit) X(open_v2) X(prepare_v2)  \
    X(step)
/* clang-format on */

typedef struct fl_sqlite_calls {
#define MEMBER(name) __typeof__(sqlite3_##name) *name;
    FL_SQLITE_CALLS(MEMBER)
#undef MEMBER
} fl_sqlite_calls;

extern fl_sqlite_calls fl_sql; /* valid after fl_sqlite_calls_load has succeeded; never changed after that */

/* Loads the library; thread-safe. FL_IO, with `path` the file that needs it, where the library is not installed. */
fl_status fl_sqlite_calls_load(const char *path, fl_diag *d);
