/* The SQLite export of Nsight Systems: equal to the CSV of the same content, joined with the host, and what a damaged
 * or foreign database does. */
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <sqlite3.h>

#define OP_COLUMNS                                                                                                     \
    "start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT NULL, "     \
    "correlationId INT, globalPid INT"
#define TABLES                                                                                                         \
    "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"                                   \
    "CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT);"                                                                \
    "CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER PRIMARY KEY, name TEXT, label TEXT);"                              \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (" OP_COLUMNS                                                             \
    ", demangledName INT NOT NULL, shortName INT, gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, blockZ "    \
    "INT);"                                                                                                            \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (" OP_COLUMNS ", bytes INT, copyKind INT);"                               \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (" OP_COLUMNS ", bytes INT, value INT);"                                  \
    "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA Test 1'), (1, 'other');"                                           \
    "INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (1, 'CUDA_MEMCPY_KIND_HTOD', 'Host-to-Device'), "                        \
    "(8, 'CUDA_MEMCPY_KIND_DTOD', 'Device-to-Device');"                                                                \
    "INSERT INTO StringIds VALUES (3, 'void f<int, 2>(float *)'), (4, 'f'), (9, 'g'), (20, "                           \
    "'cudaLaunchKernel_v7000'), "                                                                                      \
    "(21, 'cudaStreamSynchronize_v3020'), (22, 'cudaMalloc_v3020');"

/* Not in order of time; two kernels of one stream that overlap by 5 ns, two that truly run side by side. */
#define ROWS                                                                                                           \
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (2000, 3005, 0, 1, 7, 11, 16777216, 3, 4, 8, 4, 1, 128, 1, 1), "    \
    "(3000, 4000, 0, 1, 7, 12, 16777216, 9, 9, 1, 1, 1, 32, 1, 1), (9000, 12000, 0, 1, 13, 13, 16777216, 9, 9, 1, 1, " \
    "1, 32, 1, 1), (9500, 12500, 0, 1, 13, 13, 16777216, 9, 9, 2, 1, 1, 32, 1, 1);"                                    \
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1000, 1500, 0, 1, 7, 10, 16777216, 4194304, 1), "                  \
    "(5000, 5500, 0, 1, 14, 14, 16777216, 2000, 8);"                                                                   \
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (6000, 6001, 0, 1, 7, 15, 16777216, 512000, 0);"

#define CSV                                                                                                            \
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"      \
    "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n"                                              \
    "1000,500,10,,,,,,,,,,4.194,25.000,Pageable,Device,NVIDIA Test 1 (0),1,,7,[CUDA memcpy Host-to-Device]\n"          \
    "2000,1005,11,8,4,1,128,1,1,16,0.000,0.000,,,,,NVIDIA Test 1 (0),1,,7,\"void f<int, 2>(float *)\"\n"               \
    "3000,1000,12,1,1,1,32,1,1,16,0.000,0.000,,,,,NVIDIA Test 1 (0),1,,7,g\n"                                          \
    "5000,500,14,,,,,,,,,,0.002,25.000,Device,Device,NVIDIA Test 1 (0),1,,14,[CUDA memcpy Device-to-Device]\n"         \
    "6000,1,15,,,,,,,,,,0.512,25.000,Device,,NVIDIA Test 1 (0),1,,7,[CUDA memset]\n"                                   \
    "9000,3000,13,1,1,1,32,1,1,16,0.000,0.000,,,,,NVIDIA Test 1 (0),1,,13,g\n"                                         \
    "9500,3000,13,2,1,1,32,1,1,16,0.000,0.000,,,,,NVIDIA Test 1 (0),1,,13,g\n"

/* A database of that schema and content; the path is valid until the next temporary file. */
static const char *make(const char *name, const char *sql, const char *more) {
    const char *path = fl_temp_path(name);
    sqlite3 *db = NULL;
    char *message = NULL;
    unlink(path);
    if (sqlite3_open(path, &db) != SQLITE_OK || sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK ||
        sqlite3_exec(db, more, NULL, NULL, &message) != SQLITE_OK) {
        printf("%s: %s\n", path, message ? message : "cannot open");
        exit(1);
    }
    sqlite3_close(db);
    return path;
}

static const char *name_of(const fl_kernel_trace *t, size_t op) { return t->names[t->kinds[t->ops[op].kind].name]; }

static bool noted(const fl_imported *x, const char *part) {
    for (size_t i = 0; i < x->note_count; i++)
        if (strstr(x->note[i], part))
            return true;
    return false;
}

static void check_same(const fl_kernel_trace *a, const fl_kernel_trace *b) {
    FL_CHECK(a->op_count == b->op_count, "%zu ops, %zu ops", a->op_count, b->op_count);
    for (size_t i = 0; i < a->op_count && i < b->op_count; i++) {
        fl_trace_op x = a->ops[i], y = b->ops[i];
        const fl_trace_kind *j = &a->kinds[x.kind], *k = &b->kinds[y.kind];
        FL_CHECK(!strcmp(name_of(a, i), name_of(b, i)) && !memcmp(j->grid, k->grid, sizeof j->grid) &&
                     !memcmp(j->block, k->block, sizeof j->block),
                 "row %zu: kinds %s, %s", i, name_of(a, i), name_of(b, i));
        FL_CHECK(x.start_ns == y.start_ns && x.end_ns == y.end_ns && x.device == y.device && x.process == y.process &&
                     x.stream == y.stream && x.type == y.type && x.launch_ns == y.launch_ns &&
                     x.host_thread == y.host_thread && x.waits_count == y.waits_count && x.sm_mhz == y.sm_mhz,
                 "row %zu: %lld..%lld on %d/%d/%d, %lld..%lld on %d/%d/%d", i, (long long)x.start_ns,
                 (long long)x.end_ns, x.device, x.process, x.stream, (long long)y.start_ns, (long long)y.end_ns,
                 y.device, y.process, y.stream);
        /* The CSV rounds bytes to three digits of their unit. */
        FL_CHECK(x.bytes == y.bytes || (y.bytes > 0 && llabs(x.bytes - y.bytes) <= 500), "row %zu: %lld, %lld bytes", i,
                 (long long)x.bytes, (long long)y.bytes);
    }
    const char *j = fl_head_get(&a->head, "device"), *k = fl_head_get(&b->head, "device");
    FL_CHECK(j && k && !strcmp(j, k), "device %s, %s", j ? j : "", k ? k : "");
}

static void test_same_as_csv(void) {
    fl_imported x, y;
    fl_diag d = {0};
    FL_CHECK(fl_reader_read(&fl_reader_nsys_sqlite, make("a.sqlite", TABLES, ROWS), NULL, &x, &d) == FL_OK, "%s",
             d.message);
    FL_CHECK(fl_reader_read(&fl_reader_nsys_csv, fl_temp_text("a.csv", CSV), NULL, &y, &d) == FL_OK, "%s", d.message);
    FL_CHECK(x.kernels.op_count == 7, "%zu ops", x.kernels.op_count);
    check_same(&x.kernels, &y.kernels);
    FL_CHECK(x.kernels.op_count == 7 && x.kernels.ops[1].end_ns == 3000 && x.kernels.ops[6].stream > 14,
             "overlaps are sorted out");
    FL_CHECK(noted(&x, "no clocks") && noted(&x, "no launches") && noted(&x, "their ends were cut"), "notes");
    fl_imported_free(&x);
    fl_imported_free(&y);
}

/* The host's calls: launches, a wait for a stream that is named, calls that do not matter. */
static void test_host(void) {
    fl_imported x;
    fl_diag d = {0};
    const char *path = make(
        "h.sqlite", TABLES ROWS,
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT);"
        "UPDATE ENUM_CUDA_MEMCPY_OPER SET label = 'Elsewhere' WHERE id = 8;"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (" OP_COLUMNS ", syncType INT);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100, 200, 16777216 + 77, 10, 20), (300, 310, 16777216 + 77, "
        "11, "
        "20), (400, 410, 16777216 + 77, 12, 20), (420, 4100, 16777216 + 77, 20, 21), (4200, 4210, 16777216 + 78, 13, "
        "20), "
        "(4300, 4310, 16777216 + 78, 14, 20), (4400, 4410, 16777216 + 78, 15, 20), (1, 2, 16777216 + 78, 16, 22);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (420, 4100, 0, 1, 7, 20, 16777216, 3);");
    FL_CHECK(fl_reader_read(&fl_reader_nsys_sqlite, path, NULL, &x, &d) == FL_OK && x.kernels.op_count == 8, "%zu: %s",
             x.kernels.op_count, d.message);
    const fl_kernel_trace *t = &x.kernels;
    if (t->op_count != 8)
        return;
    FL_CHECK(t->has_launches && t->ops[0].launch_ns == 100 && t->ops[1].launch_ns == 300 &&
                 t->ops[1].host_thread == 77 && t->ops[6].host_thread == 78 && t->ops[7].launch_ns == 4200,
             "launches");
    FL_CHECK(!strcmp(name_of(t, 4), "[CUDA memcpy Elsewhere]"), "%s: the file's own label", name_of(t, 4));
    FL_CHECK(t->ops[3].type == FL_OP_SYNC && t->ops[3].start_ns == 420 && t->ops[3].end_ns == 4100 &&
                 t->ops[3].waits_count == 1 && t->waits[t->ops[3].waits_first] == 2 && t->ops[3].host_thread == 77,
             "the wait is for the last kernel of its stream");
    fl_imported_free(&x);
    const fl_import_options one = {.device = 1};
    FL_CHECK(fl_reader_read(&fl_reader_nsys_sqlite, path, &one, &x, &d) == FL_BAD_INPUT &&
                 strstr(d.message, "of other devices than 1"),
             "%s", d.message);
}

/* Contexts and correlation ids count within a process. */
static void test_processes(void) {
    fl_imported x;
    fl_diag d = {0};
    const char *path = make(
        "p.sqlite", TABLES,
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 1, 7, 5, 1 << 24, 9, 9, 1, 1, 1, 1, 1, 1), "
        "(15, 25, 0, 1, 7, 5, 2 << 24, 9, 9, 1, 1, 1, 1, 1, 1);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (2, 3, (2 << 24) + 8, 5, 20), (1, 3, (1 << 24) + 8, 5, 20);");
    FL_CHECK(fl_reader_read(&fl_reader_nsys_sqlite, path, NULL, &x, &d) == FL_OK && x.kernels.op_count == 2, "%s",
             d.message);
    if (x.kernels.op_count == 2) {
        const fl_trace_op *o = x.kernels.ops;
        FL_CHECK(o[0].process != o[1].process && o[0].stream == 7 && o[1].stream == 7, "processes %d, %d", o[0].process,
                 o[1].process);
        FL_CHECK(o[0].launch_ns == 1 && o[1].launch_ns == 2 && o[0].host_thread != o[1].host_thread, "launches");
        FL_CHECK(noted(&x, "2 processes"), "note");
    }
    fl_imported_free(&x);
}

static void test_other_schemas(void) {
    static const struct {
        const char *sql, *more, *message; /* NULL: good */
    } ROWS_[] = {
        {TABLES, "", "no rows in CUPTI_ACTIVITY_KIND_KERNEL"},
        {"CREATE TABLE t (a);", "", "a SQLite file with other tables (t, ...)"},
        {"CREATE TABLE rocpd_string_1 (a);", "", "no table rocpd_kernel_dispatch"},
        {TABLES, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 0, 0, 1, 7, 1, 0, 9, 9, 1, 1, 1, 1, 1, 1);",
         "no row has a value (CUPTI_ACTIVITY_KIND_KERNEL: row 1 has no end"},
        {"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 AS start;", "", "no rows in"},
        {TABLES,
         "DROP TABLE StringIds; INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 1, 7, 1, 0, 9, 9, 1, 1, 1, 1, "
         "1, 1);",
         "no table StringIds"},
        {TABLES, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 2, 0, 1, 7, 1, 0, 9, 9, 1, 1, 1, 1, 1, 1);",
         "CUPTI_ACTIVITY_KIND_KERNEL: row 1: end is '2', expected a whole number from 5"},
        {TABLES, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 1, 7, 1, 0, 9, 9, 1, 'x', 1, 1, 1, 1);",
         "row 1: gridY is 'x', expected a whole number from 0"},
        {TABLES, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, -1, 1, 7, 1, 0, 9, 9, 1, 1, 1, 1, 1, 1);",
         "deviceId is '-1'"},
        {TABLES, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 1, 7, 1, 0, 99, 9, 1, 1, 1, 1, 1, 1);",
         "its name is not among the StringIds"},
        {"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT); CREATE TABLE StringIds (id INT, value TEXT);",
         "", "no column demangledName"},
        {"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, demangledName INT); CREATE TABLE StringIds (id INT, "
         "value TEXT);",
         "", "no such column: end"},
        /* older exports: no demangled names, no process, no labels of copies */
        {"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES (9, 'g');"
         "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, streamId INT, "
         "correlationId INT, shortName INT, gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT);"
         "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (" OP_COLUMNS ", bytes INT, copyKind INT);",
         "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 1, 7, 1, 9, 1, 1, 1, 1, 1, 1);"
         "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1, 2, 0, 1, 7, 1, 0, NULL, 2);",
         NULL},
    };
    for (size_t i = 0; i < sizeof ROWS_ / sizeof *ROWS_; i++) {
        fl_imported x, zero = {0};
        fl_diag d = {0};
        memset(&x, 0xaa, sizeof x);
        fl_status s =
            fl_reader_read(&fl_reader_nsys_sqlite, make("s.sqlite", ROWS_[i].sql, ROWS_[i].more), NULL, &x, &d);
        if (ROWS_[i].message)
            FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, ROWS_[i].message) && !memcmp(&x, &zero, sizeof x),
                     "row %zu: %d '%s'", i, s, d.message);
        else
            FL_CHECK(s == FL_OK && x.kernels.op_count == 2 &&
                         !strcmp(name_of(&x.kernels, 0), "[CUDA memcpy Device-to-Host]") &&
                         x.kernels.ops[0].bytes == -1 && !strcmp(name_of(&x.kernels, 1), "g"),
                     "row %zu: %s", i, d.message);
        fl_imported_free(&x);
    }
}

/* Cut at every byte, and each byte changed: an error or a whole trace, never a crash, never half. */
static void test_damaged(void) {
    size_t size = 0;
    char *good = fl_temp_slurp(make("d.sqlite", "PRAGMA page_size = 512;" TABLES, ROWS), &size);
    FL_CHECK(good && fl_reader_nsys_sqlite.detect("x", good, size), "is known by its first bytes");
    for (size_t cut = 0; good && cut < size; cut++) {
        fl_imported x;
        fl_diag d = {0};
        fl_status s = fl_reader_read(&fl_reader_nsys_sqlite, fl_temp_write("cut.sqlite", good, cut), NULL, &x, &d);
        FL_CHECK(s == FL_BAD_INPUT && d.message[0] && !x.kernels.ops, "cut at %zu of %zu: %d", cut, size, s);
        fl_imported_free(&x);
    }
    for (size_t i = 0; good && i < size; i += 3) {
        fl_imported x;
        fl_diag d = {0};
        good[i] ^= (char)(1 << i % 8);
        fl_status s = fl_reader_read(&fl_reader_nsys_sqlite, fl_temp_write("bit.sqlite", good, size), NULL, &x, &d);
        FL_CHECK(s == FL_OK || (s == FL_BAD_INPUT && d.message[0]), "byte %zu: %d %s", i, s, d.message);
        good[i] ^= (char)(1 << i % 8);
        fl_imported_free(&x);
    }
    free(good);
    static const unsigned char GZIP[] = {0x1f, 0x8b, 8, 0, 0, 0};
    fl_imported x;
    fl_diag d = {0};
    FL_CHECK(fl_reader_read(&fl_reader_nsys_sqlite, fl_temp_write("z.gz", GZIP, sizeof GZIP), NULL, &x, &d) ==
                     FL_BAD_INPUT &&
                 strstr(d.message, "cut off"),
             "%s", d.message);
    FL_CHECK(fl_reader_read(&fl_reader_nsys_sqlite, fl_temp_path("none.sqlite"), NULL, &x, &d) == FL_BAD_INPUT &&
                 strstr(d.message, "unable to open"),
             "%s", d.message);
    fl_temp_remove();
}

FL_SUITE("nsys-sqlite", {"same as CSV", test_same_as_csv}, {"host", test_host}, {"processes", test_processes},
         {"other schemas", test_other_schemas}, {"damaged", test_damaged})
