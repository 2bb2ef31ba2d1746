/* Nsight Systems' SQLite export: the same data as its cuda_gpu_trace CSV, in ns and in full, and with it the host's
 * calls that launched the work. Only tables are read, no views: a file runs nothing. */
#include "traces/profiler/inside.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if FL_HAS_SQLITE

#define KERNELS "CUPTI_ACTIVITY_KIND_KERNEL"
#define MEMCPY "CUPTI_ACTIVITY_KIND_MEMCPY"
#define MEMSET "CUPTI_ACTIVITY_KIND_MEMSET"
#define RUNTIME "CUPTI_ACTIVITY_KIND_RUNTIME"
#define SYNCS "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
#define GRAPHS "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"

enum { PIDS_MAX = 127, ID_BITS = 24 }; /* ids of several processes are put side by side in 31 bits */

typedef struct loader {
    fl_sqlite q;
    const fl_import_options *o;
    fl_imported *out;
    fl_left_out left;
    fl_diag *d; /* the caller's; q.d is left.own while a row is read */
    fl_gather gather;
    fl_host_log log;
    int64_t pid[PIDS_MAX]; /* globalPid without its low bits */
    size_t pid_count;
    size_t other_device, long_ids;
    bool rocpd;       /* a table of rocprofv3 */
    char tables[160]; /* the first tables' names, where none is of Nsight Systems */
} loader;

static fl_status no_memory(loader *l) { return fl_no_memory(l->q.d, l->q.path); }

/* ---- ids ---- */

/* The number of a process in order of appearance, or -1 where there are too many. */
static int rank_of(loader *l, int64_t global) {
    int64_t pid = global >> ID_BITS;
    for (size_t i = 0; i < l->pid_count; i++)
        if (l->pid[i] == pid)
            return (int)i;
    if (l->pid_count == PIDS_MAX)
        return -1;
    l->pid[l->pid_count++] = pid;
    return (int)l->pid_count - 1;
}

/* Correlation ids count within a process. 0 where it does not fit. */
static uint32_t correlation_of(loader *l, int rank, int64_t id) {
    if (id <= 0)
        return 0;
    if (rank == 0 && id <= UINT32_MAX >> 1)
        return (uint32_t)id;
    if (rank < 0 || id >> ID_BITS) {
        l->long_ids++;
        return 0;
    }
    return UINT32_C(1) << 31 | (uint32_t)rank << ID_BITS | (uint32_t)id;
}

/* ---- ops ---- */

enum { START, END, DEVICE, CONTEXT, STREAM, CORRELATION, PID, NAME, GRID, BYTES = GRID };

#define COMMON "start, [end], deviceId, contextId, streamId, correlationId, "

/* CUPTI writes 0 and 0 where it has no times, and the export NULL or 0 for an end that was never written. */
static bool no_times(loader *l) {
    return fl_sql.column_type(l->q.query, START) == SQLITE_NULL || fl_sql.column_type(l->q.query, END) == SQLITE_NULL ||
           (fl_sql.column_type(l->q.query, END) == SQLITE_INTEGER && !fl_sql.column_int64(l->q.query, END));
}

/* *wanted: false where the op is of another device, or has no times. */
static fl_status read_op(loader *l, fl_trace_op *op, bool *wanted) {
    int64_t device = 0, context = 0, stream = 0;
    *wanted = false;
    *op = (fl_trace_op){.launch_ns = INT64_MIN, .bytes = -1, .host_thread = -1};
    if (no_times(l))
        return fl_left_empty(&l->left, l->q.path, 0, 0, l->q.d, "%s: row %" PRId64 " has no end, or no times",
                             l->q.table, l->q.row);
    fl_status s = fl_sqlite_int(&l->q, START, 0, INT64_MAX, &op->start_ns);
    if (!s)
        s = fl_sqlite_int(&l->q, END, op->start_ns, INT64_MAX, &op->end_ns);
    if (!s)
        s = fl_sqlite_int(&l->q, DEVICE, 0, INT32_MAX, &device);
    if (!s)
        s = fl_sqlite_int(&l->q, CONTEXT, 0, INT32_MAX, &context);
    if (!s)
        s = fl_sqlite_int(&l->q, STREAM, 0, INT32_MAX, &stream);
    if (s)
        return s;
    int rank = rank_of(l, fl_sql.column_int64(l->q.query, PID));
    op->device = (int32_t)device;
    op->process = (int32_t)context;
    if (rank > 0) /* contexts count within a process */
        op->process = (int32_t)((uint32_t)rank << ID_BITS | ((uint32_t)context & ((1u << ID_BITS) - 1)));
    op->stream = (int32_t)stream;
    op->waits_first = correlation_of(l, rank, fl_sql.column_int64(l->q.query, CORRELATION)); /* until they are joined */
    *wanted = l->o->device < 0 || op->device == l->o->device;
    l->other_device += !*wanted;
    return FL_OK;
}

static fl_status add_kernel(loader *l) {
    fl_trace_op op;
    uint32_t size[6];
    bool wanted;
    fl_status s = read_op(l, &op, &wanted);
    for (int i = 0; i < 6 && !s; i++) {
        int64_t n;
        s = fl_sqlite_int(&l->q, GRID + i, 0, UINT32_MAX, &n);
        size[i] = !s ? (uint32_t)n : 0;
    }
    if (s || !wanted)
        return s;
    const char *name = (const char *)fl_sql.column_text(l->q.query, NAME);
    int bytes = fl_sql.column_bytes(l->q.query, NAME);
    if (!name || bytes <= 0)
        return fl_fail(l->q.d, FL_BAD_INPUT, l->q.path, 0, 0,
                       "%s: row %" PRId64 ": its name is not among the StringIds, expected one", l->q.table, l->q.row);
    if (name[0] != '[' || name[bytes - 1] != ']')
        return fl_gather_op(&l->gather, name, (size_t)bytes, size, size + 3, &op, l->q.d);
    char other[1024]; /* brackets are what tells copies from kernels in a trace */
    int used = snprintf(other, sizeof other, "kernel %.1000s", name);
    return fl_gather_op(&l->gather, other, (size_t)used, size, size + 3, &op, l->q.d);
}

/* Ends a row: its error, in left.own, may be a contradiction. */
static fl_status end_row(loader *l, fl_status s) {
    l->q.d = l->d;
    return fl_left_row(&l->left, s, l->d);
}

static fl_status on_kernel(void *user) {
    loader *l = user;
    l->q.d = &l->left.own;
    return end_row(l, add_kernel(l));
}

static fl_status add_copy(loader *l, const char *name) {
    static const uint32_t NONE[3] = {0};
    fl_trace_op op;
    bool wanted;
    fl_status s = read_op(l, &op, &wanted);
    if (s || !wanted)
        return s;
    if (fl_sql.column_type(l->q.query, BYTES) == SQLITE_INTEGER && fl_sql.column_int64(l->q.query, BYTES) >= 0)
        op.bytes = fl_sql.column_int64(l->q.query, BYTES);
    return fl_gather_op(&l->gather, name, strlen(name), NONE, NONE, &op, l->q.d);
}

static fl_status on_memset(void *user) {
    loader *l = user;
    l->q.d = &l->left.own;
    return end_row(l, add_copy(l, "[CUDA memset]"));
}

/* Named as the CSV reports do, by the file's own labels where it has them. */
static fl_status on_memcpy(void *user) {
    loader *l = user;
    static const char *const KIND[] = {"Unknown",
                                       "Host-to-Device",
                                       "Device-to-Host",
                                       "Host-to-Array",
                                       "Array-to-Host",
                                       "Array-to-Array",
                                       "Array-to-Device",
                                       "Device-to-Array",
                                       "Device-to-Device",
                                       "Host-to-Host",
                                       "Peer-to-Peer",
                                       "Unified Host-to-Device",
                                       "Unified Device-to-Host",
                                       "Unified Device-to-Device"};
    int64_t kind = fl_sql.column_int64(l->q.query, NAME);
    const char *label = (const char *)fl_sql.column_text(l->q.query, BYTES + 1);
    char name[160];
    if (!label || !*label)
        label = kind >= 0 && kind < (int64_t)(sizeof KIND / sizeof *KIND) ? KIND[kind] : KIND[0];
    snprintf(name, sizeof name, "[CUDA memcpy %.100s]", label);
    l->q.d = &l->left.own;
    return end_row(l, add_copy(l, name));
}

/* ---- the host ---- */

static fl_status add_call(loader *l) {
    const char *name = (const char *)fl_sql.column_text(l->q.query, 4);
    int64_t tid = fl_sql.column_int64(l->q.query, 2), start, end;
    fl_call_kind kind = name ? fl_call_kind_of(name, strlen(name)) : FL_CALL_OTHER;
    if (kind == FL_CALL_OTHER)
        return FL_OK;
    fl_status s = fl_sqlite_int(&l->q, 0, 0, INT64_MAX, &start);
    if (s)
        return s;
    int rank = rank_of(l, tid);
    uint32_t id = correlation_of(l, rank, fl_sql.column_int64(l->q.query, 3));
    int32_t thread = (int32_t)((uint64_t)tid & ((1u << ID_BITS) - 1));
    thread |= rank > 0 ? rank << ID_BITS : 0;
    bool waits = kind == FL_CALL_COPY || kind == FL_CALL_WAIT || kind == FL_CALL_WAIT_ALL;
    bool launches = kind == FL_CALL_COPY || kind == FL_CALL_LAUNCH || kind == FL_CALL_RECORD;
    fl_wait_kind wait = kind == FL_CALL_COPY ? FL_WAIT_COPY : kind == FL_CALL_WAIT ? FL_WAIT_SOME : FL_WAIT_ALL;
    if (launches && id && fl_host_log_call(&l->log, (fl_host_call){start, id, thread}))
        return no_memory(l);
    if (!waits || (!id && kind == FL_CALL_COPY))
        return FL_OK;
    if (no_times(l)) /* a launch needs no end */
        return fl_left_empty(&l->left, l->q.path, 0, 0, l->q.d, "%s: row %" PRId64 " has no end", l->q.table, l->q.row);
    s = fl_sqlite_int(&l->q, 1, start, INT64_MAX, &end);
    if (!s && fl_host_log_wait(&l->log, (fl_host_wait){start, end, id, thread, (uint8_t)wait}))
        return no_memory(l);
    return s;
}

static fl_status on_call(void *user) {
    loader *l = user;
    l->q.d = &l->left.own;
    return end_row(l, add_call(l));
}

/* CUPTI's types: 3 = a stream, 4 = a context. Which call recorded an event the export does not say. */
static fl_status on_sync(void *user) {
    loader *l = user;
    int64_t type = fl_sql.column_int64(l->q.query, NAME), n[CORRELATION];
    if (type != 3 && type != 4)
        return FL_OK;
    for (int i = START; i < CORRELATION; i++)
        n[i] = fl_sql.column_int64(l->q.query, i);
    int rank = rank_of(l, fl_sql.column_int64(l->q.query, PID));
    uint32_t id = correlation_of(l, rank, fl_sql.column_int64(l->q.query, CORRELATION));
    if (!id || n[DEVICE] < 0 || n[DEVICE] > INT32_MAX || n[CONTEXT] < 0 || n[CONTEXT] > INT32_MAX ||
        n[STREAM] > INT32_MAX || n[STREAM] < INT32_MIN)
        return FL_OK;
    int32_t process = rank > 0 ? (int32_t)((uint32_t)rank << ID_BITS | ((uint32_t)n[CONTEXT] & ((1u << ID_BITS) - 1)))
                               : (int32_t)n[CONTEXT];
    fl_sync_detail s = {.ns = n[START],
                        .correlation = id,
                        .device = (int32_t)n[DEVICE],
                        .process = process,
                        .stream = (int32_t)n[STREAM],
                        .on = -1,
                        .kind = type == 3 ? FL_SYNC_STREAM : FL_SYNC_CONTEXT};
    return !fl_host_log_detail(&l->log, s) ? FL_OK : no_memory(l);
}

static fl_status on_gpu(void *user) {
    loader *l = user;
    const char *name = (const char *)fl_sql.column_text(l->q.query, 0);
    return name && *name ? fl_foreign_head(&l->out->kernels.head, "device", name, l->q.d) : FL_OK;
}

/* Which board a device is. */
static fl_status on_board(void *user) {
    loader *l = user;
    const char *board = (const char *)fl_sql.column_text(l->q.query, 1);
    char key[32];
    snprintf(key, sizeof key, FL_GPU_KEY "%lld", (long long)fl_sql.column_int64(l->q.query, 0));
    return board && *board ? fl_foreign_head(&l->out->kernels.head, key, board, l->q.d) : FL_OK;
}

static fl_status read_boards(loader *l) {
    int32_t device[64];
    char sql[160];
    bool uuid = false;
    fl_status s = fl_sqlite_has(&l->q, "TARGET_INFO_GPU", "uuid", &uuid);
    const size_t count = s || !uuid ? 0 : fl_activity_devices(&l->out->kernels, device, 64);
    for (size_t i = 0; !s && i < count; i++) {
        snprintf(sql, sizeof sql, "SELECT id, uuid FROM TARGET_INFO_GPU WHERE id = %d LIMIT 1", device[i]);
        s = fl_sqlite_each(&l->q, "TARGET_INFO_GPU", sql, on_board, l);
    }
    return s;
}

static fl_status on_count(void *user) {
    loader *l = user;
    int64_t n = fl_sql.column_int64(l->q.query, 0);
    return n > 0 ? fl_import_note(l->out, l->q.d,
                                  "%" PRId64 " CUDA graphs were recorded as a whole: their kernels are not "
                                  "in the file (nsys profile --cuda-graph-trace=node records them)",
                                  n)
                 : FL_OK;
}

/* ---- the whole ---- */

static fl_status read_kernels(loader *l) {
    static const char *const COLUMN[] = {"demangledName", "shortName", "mangledName"};
    bool there = false;
    fl_status s = FL_OK;
    size_t i = 0;
    for (; i < 3 && !s; i++) {
        s = fl_sqlite_has(&l->q, KERNELS, COLUMN[i], &there);
        if (there)
            break;
    }
    if (!s && !there)
        return fl_fail(l->q.d, FL_BAD_INPUT, l->q.path, 0, 0, KERNELS ": no column demangledName, expected it");
    bool pid = false;
    if (!s)
        s = fl_sqlite_has(&l->q, KERNELS, "globalPid", &pid);
    char sql[512];
    snprintf(sql, sizeof sql,
             "SELECT " COMMON "%s, s.value, gridX, gridY, gridZ, blockX, blockY, blockZ FROM " KERNELS
             " LEFT JOIN StringIds AS s ON s.id = %s",
             pid ? "globalPid" : "0", COLUMN[i < 3 ? i : 0]);
    return s ? s : fl_sqlite_each(&l->q, KERNELS, sql, on_kernel, l);
}

static fl_status read_copies(loader *l, const char *table, bool labels) {
    bool there, pid = false;
    bool copy = !strcmp(table, MEMCPY);
    fl_status s = fl_sqlite_has(&l->q, table, NULL, &there);
    if (!s && there)
        s = fl_sqlite_has(&l->q, table, "globalPid", &pid);
    if (s || !there)
        return s;
    char sql[512];
    snprintf(sql, sizeof sql, "SELECT " COMMON "%s, %s, bytes%s FROM %s%s", pid ? "globalPid" : "0",
             copy ? "copyKind" : "0", copy && labels ? ", e.label" : ", NULL", table,
             copy && labels ? " LEFT JOIN ENUM_CUDA_MEMCPY_OPER AS e ON e.id = copyKind" : "");
    return fl_sqlite_each(&l->q, table, sql, copy ? on_memcpy : on_memset, l);
}

static fl_status read_host(loader *l) {
    bool calls, syncs;
    fl_status s = fl_sqlite_has(&l->q, RUNTIME, NULL, &calls);
    if (!s)
        s = fl_sqlite_has(&l->q, SYNCS, NULL, &syncs);
    if (!s && calls)
        s = fl_sqlite_each(&l->q, RUNTIME,
                           "SELECT start, [end], globalTid, correlationId, s.value FROM " RUNTIME
                           " LEFT JOIN StringIds AS s ON s.id = nameId",
                           on_call, l);
    if (!s && calls && syncs)
        s = fl_sqlite_each(&l->q, SYNCS, "SELECT " COMMON "globalPid, syncType FROM " SYNCS, on_sync, l);
    return s;
}

static fl_status on_table(void *user) {
    loader *l = user;
    const char *name = (const char *)fl_sql.column_text(l->q.query, 0);
    const size_t size = strlen(l->tables);
    if (!name)
        return FL_OK;
    l->rocpd |= !strncmp(name, "rocpd_", 6);
    if (size < sizeof l->tables - 80)
        snprintf(l->tables + size, sizeof l->tables - size, "%s%.60s", size ? ", " : "", name);
    return FL_OK;
}

static fl_status read_all(loader *l) {
    bool kernels, strings, labels, gpus, graphs;
    fl_status s = fl_sqlite_has(&l->q, KERNELS, NULL, &kernels);
    if (!s && !kernels)
        s = fl_sqlite_each(&l->q, "sqlite_master", "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name",
                           on_table, l);
    if (!s)
        s = fl_sqlite_has(&l->q, "StringIds", NULL, &strings);
    if (!s)
        s = fl_sqlite_has(&l->q, "ENUM_CUDA_MEMCPY_OPER", "label", &labels);
    if (!s)
        s = fl_sqlite_has(&l->q, "TARGET_INFO_GPU", "name", &gpus);
    if (!s)
        s = fl_sqlite_has(&l->q, GRAPHS, NULL, &graphs);
    if (!s && kernels && !strings)
        return fl_fail(l->q.d, FL_BAD_INPUT, l->q.path, 0, 0,
                       "no table StringIds, expected the names of the kernels there");
    if (!s && kernels)
        s = read_kernels(l);
    if (!s)
        s = read_copies(l, MEMCPY, labels);
    if (!s)
        s = read_copies(l, MEMSET, false);
    if (!s && strings)
        s = read_host(l);
    if (!s && graphs)
        s = fl_sqlite_each(&l->q, GRAPHS, "SELECT count(*) FROM " GRAPHS, on_count, l);
    if (!s)
        s = fl_left_end(&l->left, NULL, l->q.path, l->q.d);
    if (!s)
        s = fl_import_left(l->out, &l->left, l->q.d);
    fl_kernel_trace *t = &l->out->kernels;
    if (!s && !t->op_count && l->other_device)
        return fl_fail(l->q.d, FL_BAD_INPUT, l->q.path, 0, 0, "all %zu kernels and copies are of other devices than %d",
                       l->other_device, l->o->device);
    if (!s && !t->op_count && l->rocpd) /* its schema lies beyond what detection saw */
        return FL_OK;
    if (!s && !t->op_count && !kernels && *l->tables)
        return fl_fail(
            l->q.d, FL_BAD_INPUT, l->q.path, 0, 0,
            "a SQLite file with other tables (%s, ...), expected the export of Nsight Systems (nsys export -t "
            "sqlite), recorded with --trace cuda",
            l->tables);
    if (!s && !t->op_count)
        return fl_fail(l->q.d, FL_BAD_INPUT, l->q.path, 0, 0,
                       "no rows in " KERNELS ", " MEMCPY " or " MEMSET ", expected a recording with --trace cuda");
    if (!s && gpus) {
        char sql[128];
        snprintf(sql, sizeof sql, "SELECT name FROM TARGET_INFO_GPU WHERE id = %d LIMIT 1", t->ops[0].device);
        s = fl_sqlite_each(&l->q, "TARGET_INFO_GPU", sql, on_gpu, l);
        if (!s)
            s = read_boards(l);
    }
    return s;
}

static fl_status finish_ops(loader *l) {
    fl_status s = l->gather.disorder ? fl_ops_sort(&l->out->kernels, l->q.d) : FL_OK;
    l->gather.disorder = false; /* no order to be noted: nobody expects one of this format */
    if (!s)
        s = fl_gather_end(&l->gather, l->q.d);
    if (!s)
        s = fl_host_log_join(&l->log, l->out, l->q.d);
    if (!s)
        s = fl_import_note(l->out, l->q.d,
                           "no clocks: kernels are taken at the platform's default (join telemetry for them)");
    if (!s && l->pid_count > 1)
        s = fl_import_note(l->out, l->q.d, "%zu processes: told apart by the process column", l->pid_count);
    if (!s && l->long_ids)
        s = fl_import_note(l->out, l->q.d, "%zu correlation ids do not fit: not joined", l->long_ids);
    if (!s && l->other_device)
        s = fl_import_note(l->out, l->q.d, "%zu ops of other devices left out, as asked", l->other_device);
    return s;
}

static fl_status read_nsys(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    loader l = {.o = o, .out = out, .left = fl_left_begin(&l.left), .d = d};
    l.gather.out = out;
    fl_status s = fl_sqlite_open(path, &l.q, d);
    if (!s)
        s = read_all(&l);
    const bool rocpd = !s && l.rocpd && !out->kernels.op_count;
    if (!s && !rocpd)
        s = finish_ops(&l);
    fl_sqlite_close(&l.q);
    fl_gather_free(&l.gather);
    fl_host_log_free(&l.log);
    return rocpd ? fl_rocpd_read(path, o, out, d) : s;
}

#else

static fl_status read_nsys(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    (void)o, (void)out;
    return fl_no_library(d, path, "the file is an SQLite database", "SQLite");
}

#endif

static bool detect_nsys(const char *path, const char *head, size_t size) {
    (void)path;
    return size >= 16 && memcmp(head, "SQLite format 3", 16) == 0 && !memmem(head, size, "rocpd_", 6);
}

const fl_reader fl_reader_nsys_sqlite = {"nsys-sqlite",
                                         "Nsight Systems SQLite export (nsys export -t sqlite)",
                                         "Nsight Systems 2020 to 2026",
                                         FL_GIVES_KERNELS | FL_GIVES_LAUNCHES,
                                         detect_nsys,
                                         read_nsys};
