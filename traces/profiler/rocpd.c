/* rocpd: the SQLite database that rocprofv3 writes by default since ROCm 7.0, and rocprofiler-systems too.
 *
 * The form: github.com/ROCm/rocm-systems, projects/rocprofiler-sdk/source/share/rocprofiler-sdk-rocpd/rocpd_tables.sql
 * (schema_version 3, 2025-08; "4.0.0" of 2026, whose dispatches name a track and two time stamps). The name of each
 * table ends in the run's GUID; a merged file has several sets of tables, and ids count within one GUID. Plain names
 * are views over them. Only tables are read, no views: a file runs nothing. Times are ns of CLOCK_BOOTTIME. */
#include "traces/profiler/inside.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if FL_HAS_SQLITE

#define DISPATCH "rocpd_kernel_dispatch"

enum { SETS_MAX = 256, SUFFIX_ROOM = 80, SQL_ROOM = 4096 };

enum { START, END, DEVICE, PROCESS, STREAM, QUEUE, NAME, GRID, GROUP = GRID + 3, BYTES = GRID };

typedef struct loader {
    fl_sqlite q;
    const fl_import_options *o;
    fl_imported *out;
    fl_left_out left;
    fl_diag *d; /* the caller's; q.d is left.own while a row is read */
    fl_gather gather;
    char suffix[SETS_MAX][SUFFIX_ROOM];
    size_t sets, other_device, ragged, unnamed;
} loader;

static bool is_null(const loader *l, int column) { return fl_sql.column_type(l->q.query, column) == SQLITE_NULL; }

static fl_status read_op(loader *l, fl_trace_op *op, bool *wanted) {
    int64_t n[4] = {0};
    *wanted = false;
    *op = (fl_trace_op){.launch_ns = INT64_MIN, .bytes = -1, .host_thread = -1};
    if (is_null(l, START) || is_null(l, END) ||
        (fl_sql.column_type(l->q.query, END) == SQLITE_INTEGER && !fl_sql.column_int64(l->q.query, END)))
        return fl_left_empty(&l->left, l->q.path, 0, 0, l->q.d, "%s: row %" PRId64 " has no times", l->q.table,
                             l->q.row);
    fl_status s = fl_sqlite_int(&l->q, START, 0, INT64_MAX, &op->start_ns);
    if (!s)
        s = fl_sqlite_int(&l->q, END, op->start_ns, INT64_MAX, &op->end_ns);
    for (int i = 0; i < 4 && !s; i++)
        if (!is_null(l, DEVICE + i))
            s = fl_sqlite_int(&l->q, DEVICE + i, 0, INT32_MAX, &n[i]);
    if (s)
        return s;
    op->device = (int32_t)n[0];
    op->process = (int32_t)n[1];
    op->stream = (int32_t)(n[2] ? n[2] : n[3]); /* without streams, queues stand for them */
    *wanted = l->o->device < 0 || op->device == l->o->device;
    l->other_device += !*wanted;
    return FL_OK;
}

/* Work-items over those of a group are groups: the grid as the other vendor counts it. */
static fl_status read_sizes(loader *l, uint32_t grid[3], uint32_t group[3]) {
    for (int i = 0; i < 3; i++) {
        int64_t items = 1, size = 1;
        fl_status s = is_null(l, GRID + i) ? FL_OK : fl_sqlite_int(&l->q, GRID + i, 0, UINT32_MAX, &items);
        if (!s && !is_null(l, GROUP + i))
            s = fl_sqlite_int(&l->q, GROUP + i, 0, UINT32_MAX, &size);
        if (s)
            return s;
        size = size ? size : 1;
        l->ragged += items % size != 0;
        grid[i] = (uint32_t)((items + size - 1) / size);
        group[i] = (uint32_t)size;
    }
    return FL_OK;
}

static fl_status end_row(loader *l, fl_status s) {
    l->q.d = l->d;
    return fl_left_row(&l->left, s, l->d);
}

static fl_status add_kernel(loader *l) {
    fl_trace_op op;
    uint32_t grid[3], group[3];
    bool wanted;
    char made[64];
    fl_status s = read_op(l, &op, &wanted);
    if (!s && wanted)
        s = read_sizes(l, grid, group);
    if (s || !wanted)
        return s;
    const char *name = (const char *)fl_sql.column_text(l->q.query, NAME);
    size_t size = name ? (size_t)fl_sql.column_bytes(l->q.query, NAME) : 0;
    if (!size || (name[0] == '[' && name[size - 1] == ']')) {
        size =
            (size_t)snprintf(made, sizeof made, "kernel %lld", (long long)fl_sql.column_int64(l->q.query, GROUP + 3));
        name = made;
        l->unnamed++;
    }
    return fl_gather_op(&l->gather, name, size, grid, group, &op, l->q.d);
}

static fl_status on_kernel(void *user) {
    loader *l = user;
    l->q.d = &l->left.own;
    return end_row(l, add_kernel(l));
}

static fl_status add_copy(loader *l) {
    static const uint32_t NONE[3] = {0};
    fl_trace_op op;
    bool wanted;
    char name[120];
    const fl_status s = read_op(l, &op, &wanted);
    if (s || !wanted)
        return s;
    const char *text = (const char *)fl_sql.column_text(l->q.query, NAME);
    const int size = snprintf(name, sizeof name, "[%.100s]", text && *text ? text : "MEMORY_COPY");
    if (fl_sql.column_type(l->q.query, BYTES) == SQLITE_INTEGER && fl_sql.column_int64(l->q.query, BYTES) >= 0)
        op.bytes = fl_sql.column_int64(l->q.query, BYTES);
    return fl_gather_op(&l->gather, name, (size_t)size, NONE, NONE, &op, l->q.d);
}

static fl_status on_copy(void *user) {
    loader *l = user;
    l->q.d = &l->left.own;
    return end_row(l, add_copy(l));
}

/* Suffixes come into SQL, so they are letters, digits and underscores alone. */
static fl_status on_set(void *user) {
    loader *l = user;
    const char *name = (const char *)fl_sql.column_text(l->q.query, 0), *suffix = name ? name + strlen(DISPATCH) : "";
    for (const char *c = suffix; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_')
            return FL_OK;
    if (l->sets == SETS_MAX || strlen(suffix) >= SUFFIX_ROOM)
        return fl_fail(l->d, FL_BAD_INPUT, l->q.path, 0, 0, "more than %d runs in one database, or a name too long",
                       SETS_MAX);
    snprintf(l->suffix[l->sets++], SUFFIX_ROOM, "%s", suffix);
    return FL_OK;
}

/* ---- queries ---- */

typedef struct query {
    loader *l;
    const char *suffix;
    char from[SQL_ROOM]; /* FROM and joins */
    bool guid;           /* rows name the run that they are of */
} query;

static fl_status has(const query *q, const char *table, const char *column, bool *answer) {
    char name[160];
    snprintf(name, sizeof name, "%s%s", table, q->suffix);
    return fl_sqlite_has(&q->l->q, name, column, answer);
}

/* Joins a table by its id, where the file has it. */
static fl_status join(query *q, const char *table, const char *as, const char *id, bool *there) {
    const size_t used = strlen(q->from);
    const fl_status s = has(q, table, "id", there);
    if (!s && *there)
        snprintf(q->from + used, sizeof q->from - used, " LEFT JOIN \"%s%s\" AS %s ON %s.id = %s%s%s%s", table,
                 q->suffix, as, as, id, q->guid ? " AND " : "", q->guid ? as : "", q->guid ? ".guid = d.guid" : "");
    return s;
}

/* A column of the first of the sources that has it; "NULL" where none does. */
static const char *pick(bool first, const char *a, bool second, const char *b) {
    return first ? a : second ? b : "NULL";
}

/* What both tables have: times, board, process, stream, queue. agent: the column that names the board. */
static fl_status begin(query *q, const char *table, const char *agent, const char *version_4_agent, char *select,
                       size_t room) {
    bool stamps, agents = false, index = false, processes = false, from = false, to = false, track = false, stream,
                 queue;
    snprintf(q->from, sizeof q->from, " FROM \"%s%s\" AS d", table, q->suffix);
    fl_status s = has(q, table, "guid", &q->guid);
    if (!s)
        s = has(q, table, "start_id", &stamps);
    if (!s && stamps)
        s = join(q, "rocpd_timestamp", "t0", "d.start_id", &from);
    if (!s && stamps)
        s = join(q, "rocpd_timestamp", "t1", "d.end_id", &to);
    if (!s && stamps)
        s = join(q, "rocpd_track", "t", "d.track_id", &track);
    if (!s && stamps && !(from && to && track))
        return fl_fail(q->l->d, FL_BAD_INPUT, q->l->q.path, 0, 0,
                       "no table rocpd_timestamp%s or rocpd_track%s, expected the times of the dispatches there",
                       q->suffix, q->suffix);
    if (!s)
        s = join(q, "rocpd_info_agent", "a", stamps ? version_4_agent : agent, &agents);
    if (!s && agents)
        s = has(q, "rocpd_info_agent", "type_index", &index);
    if (!s)
        s = join(q, "rocpd_info_process", "p", stamps ? "t.pid" : "d.pid", &processes);
    if (!s)
        s = stamps ? has(q, "rocpd_track", "stream_id", &stream) : has(q, table, "stream_id", &stream);
    if (!s)
        s = stamps ? has(q, "rocpd_track", "queue_id", &queue) : has(q, table, "queue_id", &queue);
    if (s)
        return s;
    const char *of = stamps ? "t" : "d";
    snprintf(select, room, "SELECT %s, %s, %s, %s, %s%s, %s%s", stamps ? "t0.value" : "d.start",
             stamps ? "t1.value" : "d.\"end\"", pick(index, "a.type_index", true, stamps ? version_4_agent : agent),
             pick(processes, "p.pid", true, stamps ? "t.pid" : "d.pid"), stream ? of : "NULL",
             stream ? ".stream_id" : "", queue ? of : "NULL", queue ? ".queue_id" : "");
    return FL_OK;
}

static fl_status read_kernels(loader *l, const char *suffix) {
    query q = {.l = l, .suffix = suffix};
    char select[512], sql[SQL_ROOM + 1024];
    bool symbols = false, display = false, sizes = false;
    fl_status s = begin(&q, DISPATCH, "d.agent_id", "t.agent_id", select, sizeof select);
    if (!s)
        s = join(&q, "rocpd_info_kernel_symbol", "k", "d.kernel_id", &symbols);
    if (!s && symbols)
        s = has(&q, "rocpd_info_kernel_symbol", "display_name", &display);
    if (!s)
        s = has(&q, DISPATCH, "grid_size_x", &sizes);
    snprintf(sql, sizeof sql, "%s, %s, %s, d.kernel_id%s", select,
             pick(display, "k.display_name", symbols, "k.kernel_name"),
             sizes ? "d.grid_size_x, d.grid_size_y, d.grid_size_z, d.workgroup_size_x, d.workgroup_size_y, "
                     "d.workgroup_size_z"
                   : "NULL, NULL, NULL, NULL, NULL, NULL",
             q.from);
    return s ? s : fl_sqlite_each(&l->q, DISPATCH, sql, on_kernel, l);
}

static fl_status read_copies(loader *l, const char *suffix) {
    query q = {.l = l, .suffix = suffix};
    char select[512], sql[SQL_ROOM + 1024];
    bool there, strings = false, size = false;
    fl_status s = has(&q, "rocpd_memory_copy", NULL, &there);
    if (s || !there)
        return s;
    /* The board that takes part: the first agent of a copy may be the CPU. */
    s = begin(&q, "rocpd_memory_copy", "d.dst_agent_id", "d.dst_agent_id", select, sizeof select);
    if (!s)
        s = join(&q, "rocpd_string", "s", "d.name_id", &strings);
    if (!s)
        s = has(&q, "rocpd_memory_copy", "size", &size);
    bool agents = false, other = false;
    if (!s)
        s = has(&q, "rocpd_info_agent", "type_index", &agents);
    if (!s && agents)
        s = join(&q, "rocpd_info_agent", "b", "d.src_agent_id", &other);
    char *index = strstr(select, "a.type_index");
    char rest[512];
    if (!s && other && index) {
        snprintf(rest, sizeof rest, "%s", index + strlen("a.type_index"));
        snprintf(index, sizeof select - (size_t)(index - select),
                 "CASE WHEN a.type = 'GPU' THEN a.type_index ELSE b.type_index END%s", rest);
    }
    snprintf(sql, sizeof sql, "%s, %s, %s%s", select, pick(strings, "s.string", false, ""),
             pick(size, "d.size", false, ""), q.from);
    return s ? s : fl_sqlite_each(&l->q, "rocpd_memory_copy", sql, on_copy, l);
}

static fl_status read_all(loader *l) {
    fl_status s = fl_sqlite_each(
        &l->q, "sqlite_master",
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB '" DISPATCH "*' ORDER BY name", on_set, l);
    if (!s && !l->sets)
        return fl_fail(l->d, FL_BAD_INPUT, l->q.path, 0, 0,
                       "no table " DISPATCH ", expected a recording with --kernel-trace");
    for (size_t i = 0; !s && i < l->sets; i++) {
        s = read_kernels(l, l->suffix[i]);
        if (!s)
            s = read_copies(l, l->suffix[i]);
    }
    if (!s)
        s = fl_left_end(&l->left, NULL, l->q.path, l->d);
    if (!s)
        s = fl_import_left(l->out, &l->left, l->d);
    if (!s && !l->out->kernels.op_count)
        s = fl_fail(l->d, FL_BAD_INPUT, l->q.path, 0, 0,
                    l->other_device ? "all kernels and copies are of other devices than the one asked for"
                                    : "no rows in " DISPATCH ", expected a recording with --kernel-trace");
    return s;
}

static fl_status finish(loader *l) {
    fl_imported *out = l->out;
    fl_status s = l->gather.disorder ? fl_ops_sort(&out->kernels, l->d) : FL_OK;
    l->gather.disorder = false; /* rows have no order */
    if (!s)
        s = fl_gather_end(&l->gather, l->d);
    if (s)
        return s;
    if (l->sets > 1)
        fl_import_say(out, "%zu runs in one database: told apart by the process column", l->sets);
    if (l->ragged)
        fl_import_say(out, "grids in work-items became groups, rounded up in %zu places", l->ragged);
    if (l->unnamed)
        fl_import_say(out, "%zu kernels have no name: named by their number", l->unnamed);
    if (l->other_device)
        fl_import_say(out, "%zu ops of other devices left out, as asked", l->other_device);
    fl_import_say(out, "no clocks: kernels are taken at the platform's default (join telemetry for them)");
    fl_import_say(out, "no launches: gaps before kernels count as host time");
    return fl_import_said(out, l->d);
}

fl_status fl_rocpd_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    fl_diag none = {0};
    loader *l = calloc(1, sizeof *l);
    if (!l)
        return fl_no_memory(d, path);
    l->o = o;
    l->out = out;
    l->left = fl_left_begin(&l->left);
    l->d = d ? d : &none;
    l->gather.out = out;
    fl_status s = fl_sqlite_open(path, &l->q, l->d);
    if (!s)
        s = read_all(l);
    if (!s)
        s = finish(l);
    fl_sqlite_close(&l->q);
    fl_gather_free(&l->gather);
    free(l);
    return s;
}

#else

fl_status fl_rocpd_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    (void)o, (void)out;
    return fl_no_library(d, path, "the file is an SQLite database", "SQLite");
}

#endif

static bool detect(const char *path, const char *head, size_t size) {
    (void)path;
    return size >= 16 && memcmp(head, "SQLite format 3", 16) == 0 && memmem(head, size, "rocpd_", 6);
}

const fl_reader fl_reader_rocpd = {
    "rocpd", "rocprofv3's database (rocpd, SQLite)", "ROCm 7, schema 3 and 4", FL_GIVES_KERNELS, detect, fl_rocpd_read};
