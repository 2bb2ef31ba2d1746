#include "traces/sqlite_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* SQLite says "out of memory" of some damaged schemas too, where memory there is. */
static fl_status no_memory(fl_sqlite *q) {
    void *volatile much = malloc(64 << 20); /* asked for in earnest */
    bool enough = much != NULL;
    free(much);
    if (enough)
        return fl_fail(
            q->d, FL_BAD_INPUT, q->path, 0, 0,
            "the file is damaged, SQLite cannot hold what it says; expected the SQLite export of a profiler");
    return fl_no_memory(q->d, q->path);
}

static fl_status failed(fl_sqlite *q, int code) {
    if ((code & 0xff) == SQLITE_NOMEM)
        return no_memory(q);
    if ((code & 0xff) == SQLITE_IOERR && code != SQLITE_IOERR_SHORT_READ)
        return fl_fail(q->d, FL_IO, q->path, 0, 0, "cannot read on: %s", sqlite3_errstr(code));
    return fl_fail(q->d, FL_BAD_INPUT, q->path, 0, 0, "%s%s%s, expected the SQLite export of a profiler",
                   q->table ? q->table : "", q->table ? ": " : "",
                   q->db ? sqlite3_errmsg(q->db) : sqlite3_errstr(code));
}

/* A damaged file must not make SQLite allocate what the file cannot hold, nor run what its schema says. */
fl_status fl_sqlite_open(const char *path, fl_sqlite *q, fl_diag *d) {
    unsigned char head[2] = {0};
    FILE *f = fopen(path, "rb");
    size_t got = f ? fread(head, 1, sizeof head, f) : 0;
    if (f)
        fclose(f);
    *q = (fl_sqlite){.path = path, .d = d};
    if (got == sizeof head && head[0] == 0x1f && head[1] == 0x8b)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "is gzipped, expected the SQLite file unpacked (gunzip)");
    int code = sqlite3_open_v2(path, &q->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK || !q->db)
        return failed(q, code);
    sqlite3_extended_result_codes(q->db, 1);
    sqlite3_db_config(q->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(q->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_limit(q->db, SQLITE_LIMIT_LENGTH, 16 << 20);
    code = sqlite3_exec(q->db, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;", NULL, NULL, NULL);
    return code == SQLITE_OK ? FL_OK : failed(q, code);
}

void fl_sqlite_close(fl_sqlite *q) {
    sqlite3_finalize(q->query);
    sqlite3_close(q->db);
    *q = (fl_sqlite){0};
}

static fl_status prepare(fl_sqlite *q, const char *sql) {
    int code = sqlite3_prepare_v2(q->db, sql, -1, &q->query, NULL);
    return code == SQLITE_OK ? FL_OK : failed(q, code);
}

static void finalize(fl_sqlite *q) {
    sqlite3_finalize(q->query);
    q->query = NULL;
}

fl_status fl_sqlite_has(fl_sqlite *q, const char *table, const char *column, bool *answer) {
    *answer = false;
    q->table = NULL;
    fl_status s = prepare(q, column ? "SELECT 1 FROM sqlite_master AS m JOIN pragma_table_info(?1) AS i "
                                      "WHERE m.type = 'table' AND m.name = ?1 AND i.name = ?2"
                                    : "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1");
    if (s)
        return s;
    sqlite3_bind_text(q->query, 1, table, -1, SQLITE_STATIC);
    if (column)
        sqlite3_bind_text(q->query, 2, column, -1, SQLITE_STATIC);
    int code = sqlite3_step(q->query);
    *answer = code == SQLITE_ROW;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        s = failed(q, code);
    finalize(q);
    return s;
}

fl_status fl_sqlite_each(fl_sqlite *q, const char *table, const char *sql, fl_status (*row)(void *user), void *user) {
    q->table = table;
    q->row = 0;
    fl_status s = prepare(q, sql);
    while (!s) {
        int code = sqlite3_step(q->query);
        if (code == SQLITE_DONE)
            break;
        q->row++;
        s = code == SQLITE_ROW ? row(user) : failed(q, code);
    }
    finalize(q);
    return s;
}

fl_status fl_sqlite_int(fl_sqlite *q, int column, int64_t min, int64_t max, int64_t *value) {
    if (sqlite3_column_type(q->query, column) == SQLITE_INTEGER) {
        *value = sqlite3_column_int64(q->query, column);
        if (*value >= min && *value <= max)
            return FL_OK;
    }
    const unsigned char *text = sqlite3_column_text(q->query, column);
    return fl_fail(q->d, FL_BAD_INPUT, q->path, 0, 0,
                   "%s: row %" PRId64 ": %s is '%.40s', expected a whole number from %" PRId64 " to %" PRId64, q->table,
                   q->row, sqlite3_column_name(q->query, column), text ? (const char *)text : "NULL", min, max);
}
