/* The PyTorch profiler's JSON: times, categories, ids, joins, and every byte at which a file may be cut. */
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"
#include "traces/profiler/inside.h"

#include <zlib.h>

static fl_status import(const char *json, fl_imported *x, fl_diag *d) {
    *d = (fl_diag){0};
    return fl_reader_read(&fl_reader_kineto, fl_temp_text("t.json", json), NULL, x, d);
}

static bool noted(const fl_imported *x, const char *part) {
    for (size_t i = 0; i < x->note_count; i++)
        if (strstr(x->note[i], part))
            return true;
    return false;
}

static const char *name_of(const fl_kernel_trace *t, size_t op) { return t->names[t->kinds[t->ops[op].kind].name]; }

static void test_microseconds(void) {
    static const struct {
        const char *text;
        int64_t ns;
    } GOOD[] = {{"0", 0},
                {"1", 1000},
                {"0.001", 1},
                {"0.0005", 1}, /* to the nearest */
                {"0.00049", 0},
                {"0.4994999999999999999999999", 499},
                {"4203669604595.407", 4203669604595407},       /* a double of this many ns would be exact */
                {"1712867402348289.123", 1712867402348289123}, /* of this not: 256 ns apart */
                {"1712867402348289.1239999", 1712867402348289124},
                {"1.7128674023482891e15", 1712867402348289100},
                {"1.712867402348289123E+15", 1712867402348289123},
                {"9223372036854775.807", INT64_MAX},
                {"12345e-3", 12345},
                {"1e-30", 0},
                {"0e99", 0},
                {"-2.5", -2500}};
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        int64_t ns = -1;
        FL_CHECK(fl_us_to_ns(GOOD[i].text, strlen(GOOD[i].text), &ns) && ns == GOOD[i].ns, "%s: %lld", GOOD[i].text,
                 (long long)ns);
    }
    static const char *const BAD[] = {"",     "-",    ".", "1e", "1e+", "1x", "0x1", "9223372036854775.808",
                                      "1e17", "1..2", " 1"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        int64_t ns;
        FL_CHECK(!fl_us_to_ns(BAD[i], strlen(BAD[i]), &ns), "'%s' is a number", BAD[i]);
    }
}

#define LAUNCH(name, ts, tid, id)                                                                                      \
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"" name "\",\"pid\":9,\"tid\":" tid ",\"ts\":" ts                \
    ",\"dur\":5,\"args\":{\"correlation\":" id "}}"
#define KERNEL(name, ts, dur, stream, id)                                                                              \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"pid\":0,\"tid\":" stream ",\"ts\":" ts ",\"dur\":" dur   \
    ",\"args\":{\"device\":0,\"context\":1,\"stream\":" stream ",\"correlation\":" id                                  \
    ",\"grid\":[8,16,5],\"block\":[128,1,1]}}"

static void test_old_and_new(void) {
    static const char *const JSON[] = {
        /* new: a time base after the events, an object around them, ids in args, a fraction */
        "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":3,\"name\":\"chip\",\"numSms\":[1]}],\"displayTimeUnit\":"
        "\"ms\","
        "\"traceEvents\":[" KERNEL("g", "30.25", "1.5", "7", "2") ",\n" LAUNCH(
            "cudaLaunchKernel", "12.5", "44",
            "2") ","
                 "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy "
                 "HtoD\",\"ts\":20.001,\"dur\":4,\"pid\":0,\"tid\":7,"
                 "\"args\":{\"device\":0,\"context\":1,\"stream\":7,\"correlation\":1,\"bytes\":4096}},"
                 "{\"ph\":\"X\",\"cat\":\"gpu_memset\",\"name\":\"Memset "
                 "(Device)\",\"ts\":40,\"dur\":1,\"pid\":0,\"tid\":7,\"args\":"
                 "{\"device\":0,\"context\":1,\"stream\":7,\"correlation\":1}}," LAUNCH(
                     "cudaMemcpyAsync", "10", "44", "1") "],"
                                                         "\"baseTimeNanoseconds\": 1735632360000000000}",
        /* old: a bare list, capitals, no args but what a row of the timeline has, keys in another order */
        "[{\"name\":\"g\",\"cat\":\"Kernel\",\"tid\":7,\"pid\":0,\"dur\":1.5,\"ts\":30.25,\"ph\":\"X\"},"
        "{\"ph\":\"X\",\"cat\":\"Memcpy\",\"name\":\"Memcpy HtoD\",\"ts\":20.001,\"dur\":4,\"pid\":0,\"tid\":7,"
        "\"args\":{\"bytes\":4096}},{\"ph\":\"X\",\"cat\":\"Memset\",\"name\":\"Memset (Device)\",\"ts\":40,\"dur\":1,"
        "\"pid\":0,\"tid\":7}]"};
    for (int old = 0; old < 2; old++) {
        fl_imported x;
        fl_diag d;
        int64_t base = old ? 0 : 1735632360000000000;
        FL_CHECK(import(JSON[old], &x, &d) == FL_OK && x.has_kernels && !x.has_telemetry && x.kernels.op_count == 3,
                 "%d: %lld:%lld %s", old, (long long)d.line, (long long)d.column, d.message);
        const fl_trace_op *o = x.kernels.ops;
        if (x.kernels.op_count != 3)
            continue;
        FL_CHECK(!strcmp(name_of(&x.kernels, 0), "[Memcpy HtoD]") && !strcmp(name_of(&x.kernels, 1), "g") &&
                     !strcmp(name_of(&x.kernels, 2), "[Memset (Device)]"),
                 "%d: names, in order of time", old);
        FL_CHECK(o[0].type == FL_OP_COPY && o[1].type == FL_OP_KERNEL && o[2].type == FL_OP_COPY, "%d: types", old);
        FL_CHECK(o[0].start_ns == base + 20001 && o[0].end_ns == base + 24001 && o[1].start_ns == base + 30250 &&
                     o[1].end_ns == base + 31750,
                 "%d: times, %lld", old, (long long)o[0].start_ns);
        FL_CHECK(o[0].bytes == 4096 && o[1].bytes == -1 && o[1].stream == 7 && o[1].device == 0 && o[1].process == !old,
                 "%d: ids", old);
        FL_CHECK(o[1].launch_ns == (old ? INT64_MIN : base + 12500) && o[1].host_thread == (old ? -1 : 44),
                 "%d: launch", old);
        FL_CHECK(x.kernels.kinds[o[1].kind].grid[1] == (old ? 0u : 16u), "%d: grid", old);
        FL_CHECK(noted(&x, "no clocks") && noted(&x, "1 of 1 kernels have no grid") == old &&
                     noted(&x, "baseTimeNanoseconds") == !old && noted(&x, "no launches") == old,
                 "%d: notes", old);
        fl_imported_free(&x);
    }
}

/* Streams that overlap, an event between them, a wait of the host for a stream, one for all, one for a blocking copy.
 */
static void test_joins(void) {
    fl_imported x;
    fl_diag d;
    fl_status s = import(
        "[{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaDeviceSynchronize\",\"tid\":44,\"ts\":5,\"dur\":1}"
        "," LAUNCH("cudaLaunchKernel", "10", "44", "1") "," LAUNCH("cudaEventRecord", "11", "44", "2") "," LAUNCH(
            "cudaLaunchKernel", "13", "44",
            "4") "," KERNEL("a", "20", "30", "7",
                            "1") "," KERNEL("b", "51", "9", "8",
                                            "4") ","
                                                 "{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"Stream Wait "
                                                 "Event\",\"ts\":12,\"dur\":1,\"pid\":0,\"tid\":8,\"args\":"
                                                 "{\"cuda_sync_kind\":\"Stream Wait "
                                                 "Event\",\"wait_on_stream\":7,\"wait_on_cuda_event_record_corr_id\":2,"
                                                 "\"stream\":8,\"correlation\":3,\"device\":0,\"context\":1}},"
                                                 "{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"Stream "
                                                 "Sync\",\"ts\":14,\"dur\":47,\"pid\":0,\"tid\":8,\"args\":"
                                                 "{\"cuda_sync_kind\":\"Stream "
                                                 "Sync\",\"stream\":8,\"correlation\":5,\"device\":0,\"context\":1}},"
                                                 "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":"
                                                 "\"cudaStreamSynchronize\",\"tid\":44,\"ts\":14,\"dur\":48,\"args\":"
                                                 "{\"correlation\":5}},"
                                                 "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaMemcpy\","
                                                 "\"tid\":44,\"ts\":70,\"dur\":20,\"args\":"
                                                 "{\"correlation\":6}},"
                                                 "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy "
                                                 "DtoH\",\"ts\":75,\"dur\":10,\"args\":"
                                                 "{\"device\":0,\"context\":1,\"stream\":7,\"correlation\":6}},"
                                                 "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":"
                                                 "\"cudaDeviceSynchronize\",\"tid\":44,\"ts\":95,\"dur\":3,\"args\":"
                                                 "{\"correlation\":7}},"
                                                 "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaEventQuery\","
                                                 "\"tid\":44,\"ts\":99,\"dur\":3,\"args\":"
                                                 "{\"correlation\":8}}]",
        &x, &d);
    FL_CHECK(s == FL_OK && x.kernels.op_count == 7, "%zu ops: %s", x.kernels.op_count, d.message);
    if (s != FL_OK || x.kernels.op_count != 7)
        return;
    const fl_kernel_trace *t = &x.kernels;
    static const struct {
        const char *name;
        int64_t start_us, launch_us; /* -1: none */
        int wait;                    /* row; -1: none */
    } ROWS[] = {{"[sync]", 5, -1, -1},         {"a", 20, 10, -1},     {"b", 51, 13, 1},
                {"[sync]", 14, -1, 2}, /* after the row that it waits for */
                {"[Memcpy DtoH]", 75, 70, -1}, {"[sync]", 70, -1, 4}, {"[sync]", 95, -1, -1}};
    for (size_t i = 0; i < 7; i++) {
        const fl_trace_op *op = &t->ops[i];
        FL_CHECK(!strcmp(name_of(t, i), ROWS[i].name) && op->start_ns == ROWS[i].start_us * 1000, "row %zu: %s at %lld",
                 i, name_of(t, i), (long long)op->start_ns);
        FL_CHECK(op->launch_ns == (ROWS[i].launch_us < 0 ? INT64_MIN : ROWS[i].launch_us * 1000), "row %zu: launch", i);
        FL_CHECK(op->waits_count == (ROWS[i].wait >= 0) &&
                     (!op->waits_count || t->waits[op->waits_first] == (uint32_t)ROWS[i].wait),
                 "row %zu: waits", i);
        FL_CHECK(op->host_thread == 44, "row %zu: thread %d", i, op->host_thread);
    }
    /* What was read is what a canonical file can hold. */
    fl_kernel_trace back = {0};
    char path[512];
    snprintf(path, sizeof path, "%s", fl_temp_path("joined.csv"));
    FL_CHECK(fl_kernels_write(path, t, &d) == FL_OK && fl_kernels_read(path, &back, NULL, &d) == FL_OK &&
                 back.wait_count == t->wait_count,
             "%s", d.message);
    fl_kernel_trace_free(&back);
    fl_imported_free(&x);
}

/* All of a stream have a launch or none; none is after the start. */
static void test_launches(void) {
    fl_imported x;
    fl_diag d;
    static const char JSON[] =
        "[" LAUNCH("cudaLaunchKernel", "10", "1", "2") "," LAUNCH("cudaGraphLaunch", "50", "1", "3");
    static const char OF_7[] = "," KERNEL("a", "5", "10", "7", "1") "," KERNEL("b", "20", "10", "7", "2");
    static const char GRAPH[] = "," KERNEL("c", "40", "5", "7", "3") "," KERNEL("d", "46", "5", "7", "3");
    static const char OF_8[] = "," KERNEL("e", "46", "5", "8", "77") "," KERNEL("f", "56", "5", "8", "78");
    static const char OF_9[] = "," LAUNCH("cudaLaunchKernel", "60", "1", "9") "," KERNEL("g", "70", "1", "9", "9");
    static const char REST[] = "," KERNEL("h", "72", "1", "9", "90") "," KERNEL("i", "74", "1", "9", "91") "]";
    char json[8192];
    snprintf(json, sizeof json, "%s%s%s%s%s%s", JSON, OF_7, GRAPH, OF_8, OF_9, REST);
    fl_status s = import(json, &x, &d);
    FL_CHECK(s == FL_OK && x.kernels.op_count == 9, "%s", d.message);
    if (s != FL_OK || x.kernels.op_count != 9)
        return;
    /* Before the first known one, own, late, late, a stream without any, own, and two with the one before. */
    static const struct {
        const char *name;
        int64_t us; /* below 0: none */
    } LAUNCHED[] = {{"a", -1}, {"b", 10}, {"c", 40}, {"d", 46}, {"e", -1}, {"f", -1}, {"g", 60}, {"h", 60}, {"i", 60}};
    for (size_t i = 0; i < 9; i++)
        for (size_t k = 0; k < 9; k++) {
            const fl_trace_op *op = &x.kernels.ops[i];
            if (strcmp(x.kernels.names[x.kernels.kinds[op->kind].name], LAUNCHED[k].name) != 0)
                continue;
            FL_CHECK(op->launch_ns == (LAUNCHED[k].us < 0 ? INT64_MIN : LAUNCHED[k].us * 1000), "%s: %lld",
                     LAUNCHED[k].name, (long long)op->launch_ns);
            FL_CHECK((op->host_thread == -1) == (LAUNCHED[k].us < 0), "%s: thread", LAUNCHED[k].name);
        }
    FL_CHECK(noted(&x, "2 ops start before their launch") && noted(&x, "2 ops have no launch") &&
                 noted(&x, "1 ops at the begin have no launch") && noted(&x, "1 streams have no launches"),
             "notes");
    fl_imported_free(&x);
}

/* What viewers of these files read, although it is no JSON. */
static void test_mended(void) {
#define REST ",\"ts\":10,\"dur\":5,\"pid\":0,\"tid\":7}"
    static const struct {
        const char *json, *note; /* NULL: none of mending */
        size_t kernels;
        const char *name; /* of the first */
    } CASE[] = {
        {"[{\"cat\":\"python_function\",\"name\":\"torch\\cuda\\util.py\"}," KERNEL("f", "10", "5", "7", "1") "]",
         "2 backslashes in texts are not escaped", 1, "f"},
        {"[{\"name\":\"D:\\x\\\\y\\\"z\\u00e4\\u12\"}," KERNEL("f", "10", "5", "7", "1") "]", "2 backslashes", 1, "f"},
        {"[{\"name\":\"a\\nb\\\"\"}," KERNEL("f", "10", "5", "7", "1") "]", NULL, 1, "f"},
        {"[{\"args\":{\"x\":nan,\"y\":-inf,\"z\":Infinity,\"u\":-NaN}}," KERNEL("f", "10", "5", "7", "1") "]",
         "4 numbers are nan or inf", 1, "f"},
        {"[{\"a\":[true,false,null,-1e+5,1E-3]}," KERNEL("f", "10", "5", "7", "1") "]", NULL, 1, "f"},
        {"[" KERNEL("f", "10", "5", "7", "1") ",\n\t ]", NULL, 1, "f"},
        {"{\"traceEvents\":[" KERNEL("f", "10", "5", "7", "1") ",],}", NULL, 1, "f"},
        {"[" KERNEL("f", "10", "5", "7", "1") ",\n", "the list of events has no end", 1, "f"},
        {"[" KERNEL("f", "10", "5", "7", "1") "," KERNEL("g", "20", "5", "7", "1"), "the list of events has no end", 2,
         "f"},
        {"[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\tb\nc\"" REST "]", NULL, 1, "a b c"},
        {"[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"f\",\"ts\":\"10\",\"dur\":\"5\",\"pid\":0,\"tid\":7}]", NULL, 1,
         "f"},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_imported x;
        fl_diag d = {0};
        const fl_status s = import(CASE[i].json, &x, &d);
        FL_CHECK(s == FL_OK && x.kernels.op_count == CASE[i].kernels, "case %zu: %s", i, d.message);
        if (!s)
            FL_CHECK(!strcmp(x.kernels.names[0], CASE[i].name) && x.kernels.ops[0].start_ns == 10000, "case %zu: '%s'",
                     i, x.kernels.names[0]);
        FL_CHECK(s || (CASE[i].note ? noted(&x, CASE[i].note)
                                    : !noted(&x, "backslash") && !noted(&x, "nan") && !noted(&x, "no end")),
                 "case %zu: notes", i);
        fl_imported_free(&x);
    }
#undef REST
}

/* Mended in any two parts, bytes are as they are mended at once. */
static void test_mended_in_parts(void) {
    static const char text[] = "[{\"n\":\"a\\x\\\\\\u00e4\\uQ\\\"\",\"v\":[nan,-inf,1e-5,true,-Infinity , ] , }";
    const size_t size = sizeof text - 1;
    char whole[sizeof text], parts[sizeof text];
    fl_json_mend all = {0};
    memcpy(whole, text, sizeof text);
    FL_CHECK(fl_json_mend_bytes(&all, whole, size, true) == size, "bytes are left");
    for (size_t cut = 0; cut <= size; cut++) {
        fl_json_mend m = {0};
        memcpy(parts, text, sizeof text);
        const size_t ready = fl_json_mend_bytes(&m, parts, cut, false);
        FL_CHECK(ready <= cut && fl_json_mend_bytes(&m, parts + ready, size - ready, true) == size - ready &&
                     !memcmp(parts, whole, size) && m.slashes == all.slashes && m.unknown == all.unknown,
                 "cut at %zu: %s", cut, parts);
    }
    FL_CHECK(all.slashes == 2 && all.unknown == 3, "%zu, %zu: %s", all.slashes, all.unknown, whole);
}

static void test_bad(void) {
    static const struct {
        const char *json;
        int64_t line, column;
        const char *message;
    } ROWS[] = {
        {"", 0, 0, "the file is empty"},
        {"3", 1, 1, "no list of traceEvents"},
        {"{\"a\":1}\n", 1, 1, "no list of traceEvents"},
        {"[]", 0, 0, "no kernels and no copies"},
        {"[1,2,null,true,\"x\",[[]]]", 0, 0, "no kernels and no copies"},
        {"{\"traceEvents\":[\n\n  {\"ph\" 3}]}", 3, 9, "expected the JSON of a profiler"},
        {"[{\"ph\":\"X\"", 1, 10, "the file ends within its JSON"},
        {"[\n {\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"f\",\"dur\":1}]", 2, 2, "'f' has no ts"},
        {"[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"f\",\"ts\":-1,\"dur\":1}]", 1, 2,
         "'f': ts is -1 us, expected at least 0"},
        {"[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"f\",\"ts\":1}]", 1, 2, "has no dur"},
        {"[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"f\",\"ts\":\"x\",\"dur\":1}]", 1, 2, "has no ts"},
        {"[{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":1,\"dur\":1}]", 1, 2, "without a name"},
        {"[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"f\",\"ts\":1,\"dur\":1}]", 1, 2, "has no device"},
        {"[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"f\",\"ts\":1,\"dur\":1,\"pid\":0,\"tid\":-1}]", 1, 2,
         "stream is -1, expected 0 to 2147483647"},
        {"[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"f\",\"ts\":9e15,\"dur\":9e15,\"pid\":0,\"tid\":1}]", 1, 2,
         "year 2262"},
        {"[{\"ph\":\"X\",\"cat\":\"kernel\",\"args\":{\"grid\":[1,-1,1]}}]", 1, 51, "a size of its grid or block"},
        {"{\"traceEvents\":[" KERNEL("f", "9e15", "1", "7", "1") "],\"baseTimeNanoseconds\":9000000000000000000}", 0, 0,
         "year 2262"},
        {"{\"baseTimeNanoseconds\":-5,\"traceEvents\":[]}", 1, 25, "expected whole nanoseconds"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_imported x, zero = {0};
        fl_diag d;
        memset(&x, 0xaa, sizeof x);
        fl_status s = import(ROWS[i].json, &x, &d);
        FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, ROWS[i].message), "row %zu: %d '%s'", i, s, d.message);
        FL_CHECK(d.line == ROWS[i].line && (d.column == ROWS[i].column || i == 5 || i == 15 || i == 17),
                 "row %zu: %lld:%lld", i, (long long)d.line, (long long)d.column);
        FL_CHECK(memcmp(&x, &zero, sizeof x) == 0, "row %zu: something was left", i);
    }
    /* Deep nesting and a text without end are refused instead of held. */
    size_t deep = 100000;
    char *json = malloc(deep + 1);
    memset(json, '[', deep);
    json[deep] = '\0';
    fl_imported x;
    fl_diag d;
    FL_CHECK(import(json, &x, &d) == FL_BAD_INPUT && strstr(d.message, "nested"), "%s", d.message);
    free(json);
    size_t size = 20 << 20;
    json = malloc(size + 1);
    memset(json, 'x', size);
    memcpy(json, "[\"", 2);
    json[size] = '\0';
    FL_CHECK(import(json, &x, &d) == FL_BAD_INPUT && strstr(d.message, "longer than 16777216 bytes"), "%s", d.message);
    free(json);
}

/* Names that are no names of kernels here: brackets, escapes, control characters, bytes that are no UTF-8. */
static void test_names(void) {
    static const struct {
        const char *json, *name;
        int type;
    } ROWS[] = {{"a<int, 2>", "a<int, 2>", FL_OP_KERNEL},
                {"[sync]", "kernel [sync]", FL_OP_KERNEL},
                {"a\\u00e9\\n\\u0000b\\\"", "a\303\251??b\"", FL_OP_KERNEL},
                {"a\xff", "a?", FL_OP_KERNEL}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char json[1024];
        snprintf(json, sizeof json,
                 "\xef\xbb\xbf[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"ts\":1,\"dur\":1,\"pid\":0,\"tid\":1}"
                 "]\r\n",
                 ROWS[i].json);
        fl_imported x;
        fl_diag d;
        FL_CHECK(import(json, &x, &d) == FL_OK && x.kernels.op_count == 1 &&
                     !strcmp(name_of(&x.kernels, 0), ROWS[i].name) && x.kernels.ops[0].type == ROWS[i].type,
                 "row %zu: %s%s", i, d.message, d.message[0] ? "" : x.kernels.names[0]);
        fl_imported_free(&x);
    }
}

/* A file cut at any byte is refused, or whole where only the newline is gone. */
static void test_cut(void) {
    static const char JSON[] = "{\"traceEvents\":[" LAUNCH("cudaLaunchKernel", "10", "44", "1") "," KERNEL(
        "a", "20.5", "30", "7", "1") "],\"baseTimeNanoseconds\":12}\n";
    const char *path;
    for (size_t cut = 0; cut < sizeof JSON; cut++) {
        fl_imported x, zero = {0};
        fl_diag d = {0};
        path = fl_temp_write("cut.json", JSON, cut);
        fl_status s = fl_reader_read(&fl_reader_kineto, path, NULL, &x, &d);
        bool whole = cut + 2 >= sizeof JSON;
        FL_CHECK(whole ? s == FL_OK && x.kernels.op_count == 1 : s == FL_BAD_INPUT && !memcmp(&x, &zero, sizeof x),
                 "cut at %zu: %d", cut, s);
        fl_imported_free(&x);
    }
    gzFile gz = gzopen(fl_temp_path("whole.json.gz"), "wb");
    gzwrite(gz, JSON, sizeof JSON - 1);
    gzclose(gz);
    size_t size = 0;
    char *packed = fl_temp_slurp(fl_temp_path("whole.json.gz"), &size);
    for (size_t cut = 2; cut <= size; cut++) {
        fl_imported x;
        fl_diag d = {0};
        fl_status s = fl_reader_read(&fl_reader_kineto, fl_temp_write("cut.json.gz", packed, cut), NULL, &x, &d);
        FL_CHECK(cut == size ? s == FL_OK && x.kernels.op_count == 1 : s == FL_BAD_INPUT, "gz cut at %zu: %d", cut, s);
        fl_imported_free(&x);
    }
    free(packed);
}

static void test_detect(void) {
    static const struct {
        const char *head;
        bool is;
    } ROWS[] = {{"{\"schemaVersion\":1", true},
                {" \n{ \"traceEvents\": [", true},
                {"[{\"ph\":\"X\",\"ts\":1", true},
                {"\xef\xbb\xbf{\"traceEvents\"", true},
                {"{\"a\":1}", false},
                {"traceEvents", false},
                {"", false},
                {"[", false}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        FL_CHECK(fl_reader_kineto.detect("x", ROWS[i].head, strlen(ROWS[i].head)) == ROWS[i].is, "row %zu", i);
}

static void test_calls(void) {
    static const struct {
        const char *name;
        fl_call_kind kind;
    } ROWS[] = {{"cudaLaunchKernel", FL_CALL_LAUNCH},
                {"cudaLaunchKernel_v7000", FL_CALL_LAUNCH},
                {"cuLaunchKernelEx", FL_CALL_LAUNCH},
                {"hipExtModuleLaunchKernel", FL_CALL_LAUNCH},
                {"cudaGraphLaunch", FL_CALL_LAUNCH},
                {"cudaMemcpyAsync", FL_CALL_LAUNCH},
                {"cudaMemsetAsync", FL_CALL_LAUNCH},
                {"hipMemcpyWithStream", FL_CALL_COPY},
                {"cudaMemcpy", FL_CALL_COPY},
                {"cudaStreamSynchronize", FL_CALL_WAIT},
                {"cuEventSynchronize", FL_CALL_WAIT},
                {"cudaDeviceSynchronize", FL_CALL_WAIT_ALL},
                {"cuCtxSynchronize", FL_CALL_WAIT_ALL},
                {"cudaEventRecord", FL_CALL_RECORD},
                {"cudaEventRecordWithFlags", FL_CALL_RECORD},
                {"cudaEventQuery", FL_CALL_OTHER},
                {"cudaMalloc", FL_CALL_OTHER}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        FL_CHECK(fl_call_kind_of(ROWS[i].name, strlen(ROWS[i].name)) == ROWS[i].kind, "%s", ROWS[i].name);
}

static void test_real(void) {
    static const struct {
        const char *file;
        size_t kernels, copies, syncs;
        bool grid, launches;
    } ROWS[] = {{"event_sync_trace.json.gz", 3, 3, 1, true, true},
                {"mi250_minitoy_train_ROCm6_2_kineto.json.gz", 14, 2, 3, false, true}};
    const char *data = getenv("FOLDLINE_DATA");
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/formats/%s", data ? data : "", ROWS[i].file);
        if (!data || access(path, R_OK) != 0) {
            printf("\n    skipped: %s (set FOLDLINE_DATA) ", ROWS[i].file);
            continue;
        }
        fl_imported x;
        fl_diag d = {0};
        FL_CHECK(fl_reader_read(&fl_reader_kineto, path, NULL, &x, &d) == FL_OK, "%s: %s", ROWS[i].file, d.message);
        size_t n[4] = {0};
        for (size_t k = 0; k < x.kernels.op_count; k++)
            n[x.kernels.ops[k].type]++;
        FL_CHECK(n[FL_OP_KERNEL] == ROWS[i].kernels && n[FL_OP_COPY] == ROWS[i].copies &&
                     n[FL_OP_SYNC] == ROWS[i].syncs,
                 "%s: %zu kernels, %zu copies, %zu syncs", ROWS[i].file, n[FL_OP_KERNEL], n[FL_OP_COPY], n[FL_OP_SYNC]);
        FL_CHECK(noted(&x, "no grid") == !ROWS[i].grid && x.kernels.has_launches == ROWS[i].launches, "%s",
                 ROWS[i].file);
        fl_imported_free(&x);
    }
    fl_temp_remove();
}

FL_SUITE("kineto", {"microseconds", test_microseconds}, {"old and new files", test_old_and_new}, {"joins", test_joins},
         {"launches", test_launches}, {"mended", test_mended}, {"mended in parts", test_mended_in_parts},
         {"bad", test_bad}, {"names", test_names}, {"cut", test_cut}, {"detect", test_detect}, {"calls", test_calls},
         {"real files", test_real})
