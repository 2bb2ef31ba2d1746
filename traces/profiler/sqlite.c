/* SQLite, loaded with the first file that needs it, and tables of unknown origin, row by row. */
#include "traces/profiler/inside.h"

#include "traces/io/io.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if FL_HAS_SQLITE

/* ---- loading the library ---- */

fl_sqlite_calls fl_sql;

static bool loaded;

/* Stays loaded until the program ends. */
static void load(void) {
    void *library = dlopen("libsqlite3.so.0", RTLD_LAZY | RTLD_LOCAL);
    fl_sqlite_calls found = {0};
    bool all = library != NULL;
#define FIND(name)                                                                                                     \
    do {                                                                                                               \
        void *at = all ? dlsym(library, "sqlite3_" #name) : NULL;                                                      \
        memcpy(&found.name, &at, sizeof at);                                                                           \
        all = at != NULL;                                                                                              \
    } while (0);
    FL_SQLITE_CALLS(FIND)
#undef FIND
    if (all)
        fl_sql = found;
    loaded = all;
}

/* Loads the library; thread-safe. FL_IO, with `path` the file that needs it, where the library is not installed. */
static fl_status fl_sqlite_calls_load(const char *path, fl_diag *d) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (loaded)
        return FL_OK;
    return fl_fail(d, FL_IO, path, 0, 0,
                   "is an SQLite file, but libsqlite3.so.0 is not installed to read it (Debian, Ubuntu: package "
                   "libsqlite3-0)");
}

/* ---- reading tables ---- */

/* SQLite says "out of memory" of some damaged schemas too, where memory there is. */
static fl_status no_memory(fl_sqlite *q) {
    void *volatile much = malloc(64 << 20); /* asked for in earnest */
    bool enough = much != NULL;
    free(much);
    if (enough)
        return fl_fail(
            q->d, FL_BAD_INPUT, q->path, 0, 0,
            "the file is damaged: SQLite runs out of memory on it; expected the SQLite export of a profiler");
    return fl_no_memory(q->d, q->path);
}

static fl_status failed(fl_sqlite *q, int code) {
    if ((code & 0xff) == SQLITE_NOMEM)
        return no_memory(q);
    if ((code & 0xff) == SQLITE_IOERR && code != SQLITE_IOERR_SHORT_READ)
        return fl_fail(q->d, FL_IO, q->path, 0, 0, "cannot read on: %s", fl_sql.errstr(code));
    return fl_fail(q->d, FL_BAD_INPUT, q->path, 0, 0, "%s%s%s, expected the SQLite export of a profiler",
                   q->table ? q->table : "", q->table ? ": " : "", q->db ? fl_sql.errmsg(q->db) : fl_sql.errstr(code));
}

/* SQLite opens files by their name, with what changes lie beside them. One that has none to seek in, or is packed, is
 * given to it as memory: a mapping of the nameless file that holds what was read. */
static bool is_by_name(const char *path) {
    struct stat s;
    if (fl_is_standard(path))
        return false;
    if (stat(path, &s))
        return true; /* it says why not */
    if (!S_ISREG(s.st_mode))
        return !S_ISFIFO(s.st_mode);
    fl_diag ignored;
    fl_gunzip *g = fl_gunzip_open(path, &ignored);
    const bool packed = g && fl_gunzip_packed(g);
    fl_gunzip_close(g);
    return !packed;
}

static fl_status take_bytes(fl_sqlite *q) {
    struct stat s;
    const int fd = fl_gunzip_whole(q->path, q->d);
    if (fd < 0)
        return q->d ? q->d->status : FL_BAD_INPUT;
    void *at = !fstat(fd, &s) && s.st_size > 0
                   ? mmap(NULL, (size_t)s.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0)
                   : MAP_FAILED;
    close(fd);
    if (at == MAP_FAILED)
        return fl_fail(q->d, FL_BAD_INPUT, q->path, 0, 0, "cannot be mapped, expected the SQLite export of a profiler");
    q->bytes = at;
    q->size = (size_t)s.st_size;
    const int code = fl_sql.deserialize(q->db, "main", at, s.st_size, s.st_size, SQLITE_DESERIALIZE_READONLY);
    return code == SQLITE_OK ? FL_OK : failed(q, code);
}

/* A damaged file must not make SQLite allocate what the file cannot hold, nor run what its schema says. */
fl_status fl_sqlite_open(const char *path, fl_sqlite *q, fl_diag *d) {
    const bool by_name = is_by_name(path);
    fl_status status = FL_OK;
    *q = (fl_sqlite){.path = path, .d = d};
    if ((status = fl_sqlite_calls_load(path, d)))
        return status;
    int code = fl_sql.open_v2(by_name ? path : ":memory:", &q->db,
                              (by_name ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK || !q->db)
        return failed(q, code);
    if (!by_name && (status = take_bytes(q)))
        return status;
    fl_sql.extended_result_codes(q->db, 1);
    fl_sql.db_config(q->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    fl_sql.db_config(q->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    fl_sql.limit(q->db, SQLITE_LIMIT_LENGTH, 16 << 20);
    code = fl_sql.exec(q->db, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;", NULL, NULL, NULL);
    return code == SQLITE_OK ? FL_OK : failed(q, code);
}

void fl_sqlite_close(fl_sqlite *q) {
    if (q->db) {
        fl_sql.finalize(q->query);
        fl_sql.close(q->db);
    }
    if (q->bytes)
        munmap(q->bytes, q->size);
    *q = (fl_sqlite){0};
}

static fl_status prepare(fl_sqlite *q, const char *sql) {
    int code = fl_sql.prepare_v2(q->db, sql, -1, &q->query, NULL);
    return code == SQLITE_OK ? FL_OK : failed(q, code);
}

static void finalize(fl_sqlite *q) {
    fl_sql.finalize(q->query);
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
    fl_sql.bind_text(q->query, 1, table, -1, SQLITE_STATIC);
    if (column)
        fl_sql.bind_text(q->query, 2, column, -1, SQLITE_STATIC);
    int code = fl_sql.step(q->query);
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
        int code = fl_sql.step(q->query);
        if (code == SQLITE_DONE)
            break;
        q->row++;
        s = code == SQLITE_ROW ? row(user) : failed(q, code);
    }
    finalize(q);
    return s;
}

fl_status fl_sqlite_int(fl_sqlite *q, int column, int64_t min, int64_t max, int64_t *value) {
    if (fl_sql.column_type(q->query, column) == SQLITE_INTEGER) {
        *value = fl_sql.column_int64(q->query, column);
        if (*value >= min && *value <= max)
            return FL_OK;
    }
    const bool whole = fl_sql.column_type(q->query, column) == SQLITE_INTEGER;
    const unsigned char *text = fl_sql.column_text(q->query, column);
    fl_fail(q->d, FL_BAD_INPUT, q->path, 0, 0,
            "%s: row %" PRId64 ": %s is '%.40s', expected a whole number from %" PRId64 " to %" PRId64, q->table,
            q->row, fl_sql.column_name(q->query, column), text ? (const char *)text : "NULL", min, max);
    return whole ? fl_of_values(q->d) : FL_BAD_INPUT;
}

#endif
