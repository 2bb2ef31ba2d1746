/* SQLite's functions that the readers call, from a library that is loaded with the first SQLite file: it would else be
 * a fifth of what starting the program takes, for every command. */
#ifndef FL_SQLITE_CALLS_H
#define FL_SQLITE_CALLS_H

#include "traces/diag.h"

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

extern fl_sqlite_calls fl_sql; /* once fl_sqlite_calls_load has said so; never changed after that */

/* Any number of threads at once. FL_IO, with `path` the file that needs it, where the library is not there. */
fl_status fl_sqlite_calls_load(const char *path, fl_diag *d);

#endif
