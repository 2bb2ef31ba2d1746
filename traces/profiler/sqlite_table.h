/* Tables of a SQLite file of unknown origin, read row by row. Opening it executes nothing from the file and writes
 * nothing to it. */
#pragma once

#include "traces/profiler/sqlite_calls.h"

#include <stdbool.h>

typedef struct fl_sqlite {
    const char *path;
    sqlite3 *db;
    sqlite3_stmt *query; /* at a row, within fl_sqlite_each */
    const char *table;   /* named in diagnostics */
    int64_t row;         /* from 1 */
    fl_diag *d;
    void *bytes; /* the bytes of a file that SQLite cannot open by its name */
    size_t size;
} fl_sqlite;

/* Opens a file read-only, also a gzipped file, "-" or a pipe. FL_BAD_INPUT: not a SQLite file. FL_IO: a read failure,
 * or SQLite is not installed. Close it in any case; path must stay valid. */
fl_status fl_sqlite_open(const char *path, fl_sqlite *q, fl_diag *d);
void fl_sqlite_close(fl_sqlite *q);

/* Whether the table exists (a view does not count), and in it the column (may be NULL). */
fl_status fl_sqlite_has(fl_sqlite *q, const char *table, const char *column, bool *answer);

/* Runs a query and calls row at each row of the result. */
fl_status fl_sqlite_each(fl_sqlite *q, const char *table, const char *sql, fl_status (*row)(void *user), void *user);

/* Reads a column of the current row, which must be a whole number within min and max. */
fl_status fl_sqlite_int(fl_sqlite *q, int column, int64_t min, int64_t max, int64_t *value);
