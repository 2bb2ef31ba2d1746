/* Tables of a SQLite file that somebody else wrote, read row by row; the file runs nothing and gets nothing written. */
#ifndef FL_SQLITE_TABLE_H
#define FL_SQLITE_TABLE_H

#include "traces/sqlite_calls.h"

#include <stdbool.h>

typedef struct fl_sqlite {
    const char *path;
    sqlite3 *db;
    sqlite3_stmt *query; /* at a row, within fl_sqlite_each */
    const char *table;   /* named in diagnostics */
    int64_t row;         /* from 1 */
    fl_diag *d;
    void *bytes; /* of a file that SQLite cannot open by its name */
    size_t size;
} fl_sqlite;

/* Read only; gzipped, "-" and a pipe too. FL_BAD_INPUT where it is no SQLite file; FL_IO also where
 * SQLite is not installed. To be closed in any case; path must stay. */
fl_status fl_sqlite_open(const char *path, fl_sqlite *q, fl_diag *d);
void fl_sqlite_close(fl_sqlite *q);

/* Whether there is that table (a view is none), and in it that column (may be NULL). */
fl_status fl_sqlite_has(fl_sqlite *q, const char *table, const char *column, bool *answer);

/* Runs a query; row is called at each. */
fl_status fl_sqlite_each(fl_sqlite *q, const char *table, const char *sql, fl_status (*row)(void *user), void *user);

/* A column of the row at hand, which must be a whole number within min and max. */
fl_status fl_sqlite_int(fl_sqlite *q, int column, int64_t min, int64_t max, int64_t *value);

#endif
