/* What the files of traces/profiler share: gathering ops, the host's calls, events of Kineto, numbers of JSON, SQLite,
 * and memory for YAJL. */
#pragma once

#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if FL_HAS_SQLITE
#include <sqlite3.h>
#endif
#if FL_HAS_YAJL
#include <yajl/yajl_common.h>
#endif

/* ---- gathering ops: interning names and kinds, sorting by time, separating ops that overlap in one lane ---- */

typedef struct fl_gather_lane {
    int32_t device, process, stream;
    int64_t end_ns;
} fl_gather_lane;

typedef struct fl_gather {
    fl_imported *out;
    fl_intern names, kinds, lanes;
    fl_gather_lane *lane;
    size_t lane_count, lane_room, last_lane;
    int64_t last_start_ns;
    size_t renamed; /* names that contained something other than printable UTF-8 */
    bool disorder;  /* some op starts before its predecessor */
    bool overlap;   /* some op starts before an earlier one of its lane ends */
} fl_gather;

/* Zero the struct and set out. Adds one op of the given name and size to out->kernels and fills op->kind and op->type.
 * Times must satisfy 0 <= start <= end. The caller enters the waits. */
fl_status fl_gather_op(fl_gather *g, const char *name, size_t size, const uint32_t grid[3], const uint32_t block[3],
                       fl_trace_op *op, fl_diag *d);

/* Sorts the ops (only where no op waits for another), resolves overlaps, notes what it changed, and sets has_kernels.
 */
fl_status fl_gather_end(fl_gather *g, fl_diag *d);
void fl_gather_free(fl_gather *g);

/* ---- the host's calls: launches, recorded events and waits ----
 *
 * A correlation id joins them with the ops once all are known. */

typedef struct fl_host_call { /* a call that launches ops or records an event */
    int64_t ns;
    uint32_t correlation;
    int32_t thread;
} fl_host_call;

typedef enum fl_wait_kind {
    FL_WAIT_ALL,  /* for all work of the device or context */
    FL_WAIT_SOME, /* for a stream or event; fl_sync_detail says which */
    FL_WAIT_COPY  /* a blocking copy: waits for the op of its own correlation id */
} fl_wait_kind;

typedef struct fl_host_wait { /* a call in which a host thread waits */
    int64_t start_ns, end_ns;
    uint32_t correlation;
    int32_t thread;
    uint8_t kind; /* fl_wait_kind */
} fl_host_wait;

typedef enum fl_sync_kind {
    FL_SYNC_CONTEXT,    /* for everything that was launched */
    FL_SYNC_STREAM,     /* for everything that was launched into `stream` */
    FL_SYNC_EVENT,      /* for everything that stream `on` held when call `record` recorded the event */
    FL_SYNC_STREAM_WAIT /* the same, but `stream` waits, not the host */
} fl_sync_kind;

typedef struct fl_sync_detail { /* the object of the synchronisation with a correlation id */
    int64_t ns;
    uint32_t correlation, record;        /* record: 0 where it is not known */
    int32_t device, process, stream, on; /* on: -1 where it is not known */
    uint8_t kind;                        /* fl_sync_kind */
} fl_sync_detail;

typedef struct fl_host_log {
    fl_host_call *call;
    fl_host_wait *wait;
    fl_sync_detail *detail;
    size_t call_count, call_room, wait_count, wait_room, detail_count, detail_room;
} fl_host_log;

fl_status fl_host_log_call(fl_host_log *log, fl_host_call call);
fl_status fl_host_log_wait(fl_host_log *log, fl_host_wait wait);
fl_status fl_host_log_detail(fl_host_log *log, fl_sync_detail detail);

/* The kind of a runtime's call, by its name (CUDA, its driver interface, HIP). */
typedef enum fl_call_kind {
    FL_CALL_OTHER,
    FL_CALL_LAUNCH,   /* launches a kernel, graph, copy or fill */
    FL_CALL_COPY,     /* a copy for which the host waits */
    FL_CALL_WAIT_ALL, /* waits for a device or context */
    FL_CALL_WAIT,     /* waits for a stream or event */
    FL_CALL_RECORD    /* records an event */
} fl_call_kind;
fl_call_kind fl_call_kind_of(const char *name, size_t size);

/* Joins the log with the ops. On entry the ops of out->kernels are sorted by time, carry their correlation id (0 =
 * none) in waits_first, and have no waits; log is sorted. The function sets launch_ns (never after the start) and
 * host_thread. An op without a call of its own counts as launched with its predecessor; ops before the first known
 * launch of their stream have none. Where there are launches, the function adds
 * [sync] rows for the host's waits (after the rows they wait for), and waits_for to the ops after a stream's wait. It
 * notes every assumption. */
fl_status fl_host_log_join(fl_host_log *log, fl_imported *out, fl_diag *d);

void fl_host_log_free(fl_host_log *log);

/* Finds the entries of a correlation id in a host log, once the log is sorted. */

/* Sorts calls and details by correlation id, then time, in place. */
void fl_host_log_sort(fl_host_log *log);

/* The earliest entry of that correlation id, or NULL. */
const fl_host_call *fl_host_find_call(const fl_host_log *log, uint32_t correlation);
const fl_sync_detail *fl_host_find_detail(const fl_host_log *log, uint32_t correlation);

/* Events of the PyTorch profiler (Kineto, the JSON of chrome://tracing), one after the other from a stream of text. */

#define FL_KINETO_TEXT_MAX 64u /* bytes of categories and kinds of synchronisation; longer texts are truncated */

typedef enum fl_kineto_key { /* numbers of an event; from DEVICE on, numbers of its args */
                             FL_KINETO_PID,
                             FL_KINETO_TID,
                             FL_KINETO_TS,  /* in ns, unlike in the file */
                             FL_KINETO_DUR, /* in ns */
                             FL_KINETO_DEVICE,
                             FL_KINETO_STREAM,
                             FL_KINETO_CONTEXT,
                             FL_KINETO_CORRELATION,
                             FL_KINETO_BYTES,
                             FL_KINETO_WAIT_STREAM,
                             FL_KINETO_WAIT_RECORD,
                             FL_KINETO_NUMBERS
} fl_kineto_key;

typedef struct fl_kineto_event {
    const char *name; /* name_size bytes of any value, NUL-terminated; valid within the call */
    size_t name_size;
    char category[FL_KINETO_TEXT_MAX], sync[FL_KINETO_TEXT_MAX]; /* the values of cat and args.cuda_sync_kind */
    char phase;                                                  /* ph; 0 = the event has none */
    bool has_name;
    int64_t number[FL_KINETO_NUMBERS];
    bool known[FL_KINETO_NUMBERS]; /* known: the event has a whole number (ts, dur: any number) that fits */
    uint32_t grid[3], block[3];
    uint8_t grid_count, block_count; /* how many components the event gave */
    bool wrong_size;                 /* one of them cannot be */
    int64_t line, column;            /* where the event begins */
} fl_kineto_event;

typedef struct fl_kineto_device {
    int64_t id;
    char name[128];
} fl_kineto_device;

typedef struct fl_kineto_file { /* the file's values around the events */
    int64_t base_ns;            /* baseTimeNanoseconds; 0 = the file has none */
    fl_kineto_device device[64];
    size_t device_count;
    bool has_events;
    bool has_rank; /* distributedInfo names the rank of the process */
    int64_t rank;
    bool open_end;           /* the list of events is not closed, which the format allows */
    size_t slashes, unknown; /* backslashes that were not escaped, read as '/'; numbers nan or inf, read as not known */
} fl_kineto_file;

typedef struct fl_kineto_reader {
    fl_status (*event)(void *user, const fl_kineto_event *e, fl_diag *d);
    void (*progress)(void *user, double share); /* may be NULL */
    void *user, *progress_user;
} fl_kineto_reader;

/* Reads path (plain or gzipped) to its end. Memory use does not grow with the file: texts of more than 16 MiB and
 * nesting beyond 200 are refused. FL_BAD_INPUT, with line and column: the file is not JSON, or ends inside it. */
fl_status fl_kineto_events(const char *path, const fl_kineto_reader *r, fl_kineto_file *file, fl_diag *d);

/* Mends what profilers write and their viewers accept, although it is no JSON. Every change keeps the number of bytes:
 * a backslash in a text that begins no escape (paths of Windows) becomes '/', a control character in a text a blank,
 * nan and inf an empty text, a comma before the end of a list a blank. */
typedef struct fl_json_mend { /* zeroed at the begin of a file */
    bool in_text;
    size_t slashes, unknown;
} fl_json_mend;

/* Mends bytes in place and returns how many are ready. The rest, less than FL_MEND_ROOM, must come again before the
 * bytes that follow. last: nothing follows, so all become ready. */
enum { FL_MEND_ROOM = 4096 };
size_t fl_json_mend_bytes(fl_json_mend *m, char *bytes, size_t size, bool last);

/* Numbers in the syntax of JSON. */

/* Converts decimal microseconds to whole nanoseconds, rounded to the nearest, exactly at any size. False where text is
 * not such a number or is too large. */
bool fl_us_to_ns(const char *text, size_t size, int64_t *ns);
/* Parses a whole number, also in the form that a writer of floating-point numbers gives it ("7.0"). */
bool fl_json_whole(const char *text, size_t size, int64_t *value);

#if FL_HAS_SQLITE
/* The functions of SQLite that the readers call. The library is loaded with the first SQLite file; loading it at the
 * start would take a fifth of the start-up time of every command. */

/* clang-format off */
#define FL_SQLITE_CALLS(X)                                                                                             \
    X(bind_text) X(close) X(column_bytes) X(column_int64) X(column_name) X(column_text) X(column_type) X(db_config)    \
    X(deserialize) X(errmsg) X(errstr) X(exec) X(extended_result_codes) X(finalize) X(limit) X(open_v2) X(prepare_v2)  \
    X(step)

typedef struct fl_sqlite_calls {
#define MEMBER(name) __typeof__(sqlite3_##name) *name;
    FL_SQLITE_CALLS(MEMBER)
#undef MEMBER
} fl_sqlite_calls;

extern fl_sqlite_calls fl_sql; /* valid after fl_sqlite_calls_load has succeeded; never changed after that */

/* Tables of a SQLite file of unknown origin, read row by row. Opening it executes nothing from the file and writes
 * nothing to it. */

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

/* Return in *answer whether the table exists (a view does not count), and in it the column (may be NULL). */
fl_status fl_sqlite_has(fl_sqlite *q, const char *table, const char *column, bool *answer);

/* Runs a query and calls row at each row of the result. */
fl_status fl_sqlite_each(fl_sqlite *q, const char *table, const char *sql, fl_status (*row)(void *user), void *user);

/* Reads a column of the current row, which must be a whole number within min and max. */
fl_status fl_sqlite_int(fl_sqlite *q, int column, int64_t min, int64_t max, int64_t *value);
#endif

/* Read rocprofv3's database, which has the same first bytes as that of Nsight Systems. */
fl_status fl_rocpd_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d);

#if FL_HAS_YAJL
/* Memory for YAJL, which checks no allocation of its own: the first that fails leaves the parser by a longjmp. */

typedef struct fl_yajl_memory {
    jmp_buf out; /* set it before any call of YAJL; a longjmp with 1 arrives here when memory runs out */
    struct fl_yajl_block *first;
} fl_yajl_memory;

/* The allocator for yajl_alloc; m must stay at its address until fl_yajl_memory_free. */
yajl_alloc_funcs fl_yajl_functions(fl_yajl_memory *m);
/* Frees everything that YAJL allocated, including its handle. */
void fl_yajl_memory_free(fl_yajl_memory *m);
#endif
