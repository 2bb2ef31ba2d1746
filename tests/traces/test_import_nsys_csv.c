#include "tests/support/import_fixture.h"

#define FORMAT "nsys-csv"
#define HEAD                                                                                                           \
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"      \
    "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n"
#define COPY "1000,500,1,,,,,,,,,,1.048,2.1,Pageable,Device,Board X (0),1,,13,[CUDA memcpy Host-to-Device]\n"
#define KERNEL "2000,300,2,8,2,1,128,1,1,16,0.000,0.000,,,,,Board X (0),1,,7,\"void f<int, 3>(float*, int)\"\n"
#define NEXT "2400,100,2,8,2,1,128,1,1,16,0.000,0.000,,,,,Board X (0),1,,7,g\n" /* same correlation: one graph */

static void test_good(void) {
    fl_taken t = fl_take(FORMAT, HEAD COPY KERNEL NEXT);
    const fl_kernel_trace *k = &t.in.kernels;
    FL_CHECK(t.status == FL_OK && t.in.has_kernels && !t.in.has_telemetry && k->op_count == 3, "%s", t.d.message);
    if (t.status != FL_OK)
        return;
    const fl_trace_op *op = k->ops;
    FL_CHECK(op[0].type == FL_OP_COPY && op[0].bytes == 1048000 && op[0].stream == 13 &&
                 k->kinds[op[0].kind].grid[0] == 0,
             "copy");
    FL_CHECK(op[1].type == FL_OP_KERNEL && op[1].start_ns == 2000 && op[1].end_ns == 2300 && op[1].process == 1 &&
                 op[1].bytes == -1 && op[1].launch_ns == INT64_MIN && op[1].host_thread == -1,
             "kernel");
    FL_CHECK(!strcmp(fl_op_name(k, &op[1]), "void f<int, 3>(float*, int)"), "'%s'", fl_op_name(k, &op[1]));
    FL_CHECK(k->kinds[op[1].kind].grid[0] == 8 && k->kinds[op[1].kind].grid[1] == 2 &&
                 k->kinds[op[1].kind].block[0] == 128,
             "grid and block");
    FL_CHECK(!strcmp(fl_head_get(&k->head, "device"), "Board X"), "device");
    FL_CHECK(fl_noted(&t.in, "no clocks") && fl_noted(&t.in, "no launches") && fl_noted(&t.in, "bytes"), "notes");
    fl_round_trip(&t.in);
    fl_imported_free(&t.in);
}

static void test_header_units(void) {
    static const char *const CASE[][2] = {
        {"Start (ns),Duration (ns)", "1500000000,2500000"},
        {"Start (\xc2\xb5s),Duration (\xc2\xb5s)", "1500000,2500"},
        {"Start (\xce\xbcs),Duration (us)", "1500000.000,2500.000"},
        {"Start (ms),Duration (ms)", "1500,2.5"},
        {"Start (s),Duration (s)", "1.5,0.0025"},
        {"Start(nsec),Duration(nsec)", "1500000000,2500000"},
        {"Start(sec),Duration(usec)", "1.500000000,2500.0004"},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        char text[500];
        snprintf(text, sizeof text, "%s,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Device,Strm,Name\n%s,1,1,1,32,1,1,X (2),7,f\n",
                 CASE[i][0], CASE[i][1]);
        fl_taken t = fl_take(FORMAT, text);
        FL_CHECK(t.status == FL_OK && t.in.kernels.ops[0].start_ns == 1500000000 &&
                     t.in.kernels.ops[0].end_ns == 1502500000 && t.in.kernels.ops[0].device == 2,
                 "%s: %s", CASE[i][0], t.d.message);
        fl_imported_free(&t.in);
    }
}

static void test_bytes_units(void) {
    static const struct {
        const char *header, *cell;
        long long bytes;
    } CASE[] = {{"Bytes (MB)", "1.5", 1500000},
                {"Bytes (B)", "77", 77},
                {"Size(KiB)", "2", 2048},
                {"Bytes (MiB)", "1.5", 1572864},
                {"Bytes (MB)", "0.000", -1},
                {"Bytes (MB)", "", -1},
                {"Bytes", "", -1},
                {"Bytes", "0", -1}};
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        char text[500];
        snprintf(text, sizeof text,
                 "Start (ns),Duration (ns),%s,Throughput (MBps),Device,Name\n0,9,%s,1,X (0),[CUDA memset]\n",
                 CASE[i].header, CASE[i].cell);
        fl_taken t = fl_take(FORMAT, text);
        FL_CHECK(t.status == FL_OK && t.in.kernels.ops[0].bytes == CASE[i].bytes, "%s %s: %lld %s", CASE[i].header,
                 CASE[i].cell, t.status ? 0LL : (long long)t.in.kernels.ops[0].bytes, t.d.message);
        fl_imported_free(&t.in);
    }
}

static void test_surroundings(void) {
    static const char *const CASE[] = {
        "NOTICE: Existing SQLite export found: \"r.sqlite\n\nProcessing [r.sqlite] with [/opt/x/cuda_gpu_trace.py]... "
        "\n" HEAD COPY KERNEL NEXT,
        "Exporting: [==   40%\r====  100%]\n" HEAD COPY KERNEL NEXT,
        "\xef\xbb\xbf" HEAD COPY KERNEL NEXT,
        HEAD COPY HEAD KERNEL NEXT,
        HEAD COPY KERNEL NEXT "3000,300,2,8,2,1,128,1,1,16,0.000,0.000,,,,,Board X (0),1,,7,trunc",
        HEAD NEXT COPY KERNEL, /* not in order */
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_taken t = fl_take(FORMAT, CASE[i]);
        FL_CHECK(t.status == FL_OK && t.in.kernels.op_count == 3 && t.in.kernels.ops[0].start_ns == 1000 &&
                     t.in.kernels.ops[1].start_ns == 2000 && t.in.kernels.ops[2].start_ns == 2400,
                 "case %zu: %s", i, t.d.message);
        FL_CHECK((i != 4 || fl_noted(&t.in, "line 5, the last")) && (i != 5 || fl_noted(&t.in, "order of time")),
                 "case %zu: notes", i);
        fl_imported_free(&t.in);
    }
}

/* A few ns are rounding; more is real and needs a lane of its own. */
static void test_overlap(void) {
#define ROW(start, duration, name) start "," duration ",1,1,1,32,1,1,X (0),7," name "\n"
#define SMALL "Start (ns),Duration (ns),GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Device,Strm,Name\n"
    fl_taken t = fl_take(FORMAT, SMALL ROW("1000", "1003", "a") ROW("2000", "500", "b") ROW("2500", "10", "c"));
    FL_CHECK(t.status == FL_OK && t.in.kernels.ops[0].end_ns == 2000 && t.in.kernels.ops[1].stream == 7 &&
                 fl_noted(&t.in, "1 ops ended up to"),
             "%s", t.d.message);
    fl_round_trip(&t.in);
    fl_imported_free(&t.in);
    t = fl_take(FORMAT,
                SMALL ROW("1000", "9000", "a") ROW("2000", "9000", "b") ROW("3000", "500", "c") ROW("20000", "5", "d"));
    const fl_trace_op *op = t.in.kernels.ops;
    FL_CHECK(t.status == FL_OK && op[0].stream == 7 && op[1].stream == 8 && op[2].stream == 9 && op[3].stream == 7 &&
                 op[0].end_ns == 10000 && fl_noted(&t.in, "2 ops overlap others of their stream"),
             "%s", t.d.message);
    fl_round_trip(&t.in);
    fl_imported_free(&t.in);
    t = fl_take(FORMAT, SMALL ROW("1000", "9000", "a") ROW("8000", "5000", "b"));
    FL_CHECK(t.status == FL_OK && t.in.kernels.ops[0].end_ns == 10000 && t.in.kernels.ops[1].stream == 8, "%s",
             t.d.message);
    fl_imported_free(&t.in);
    /* A short kernel is not eaten up by the tolerance. */
    t = fl_take(FORMAT, SMALL ROW("1000", "600", "a") ROW("1100", "600", "b"));
    FL_CHECK(t.status == FL_OK && t.in.kernels.ops[0].end_ns == 1600 && t.in.kernels.ops[1].stream == 8, "%s",
             t.d.message);
    fl_imported_free(&t.in);
}

static void test_names(void) {
    fl_taken t = fl_take(FORMAT, SMALL ROW("1", "2", "\"say \"\"hi\"\", twice\"") ROW("5", "2", "\xff\xfe")
                                     ROW("9", "2", "\xff\xfe"));
    const fl_kernel_trace *k = &t.in.kernels;
    FL_CHECK(t.status == FL_OK && !strcmp(fl_op_name(k, &k->ops[0]), "say \"hi\", twice") &&
                 !strcmp(fl_op_name(k, &k->ops[1]), "??") && k->name_count == 2 &&
                 fl_noted(&t.in, "not printable UTF-8"),
             "%s", t.d.message);
    fl_round_trip(&t.in);
    fl_imported_free(&t.in);
}

/* nsys stats -r A,B -f csv writes several reports into one stream. */
static void test_reports(void) {
#define GPU "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Bytes (MB),Device,Ctx,Strm,Name\n"
#define F "1000,50,1,8,1,1,32,1,1,,X (0),1,7,f\n"
#define G "2000,50,2,8,1,1,32,1,1,,X (0),1,7,g\n"
#define API "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid\n900,10,cudaLaunchKernel,0,1,5,5\n"
#define SUM "Time (%),Total Time (ns),Instances,Name\n100.0,50,1,f\n"
#define TITLE(what) "\nProcessing [r.sqlite] with [" what ".py]... \n"
    static const struct {
        const char *text, *note; /* NULL: none of reports */
        size_t ops;
    } CASE[] = {
        {TITLE("gpu") GPU F G, NULL, 2},
        {TITLE("gpu") GPU F G TITLE("api") API, "the table in line 3 is read; 3 lines", 2},
        {TITLE("api") API TITLE("gpu") GPU F G, "the table in line 7 is read; 3 lines", 2},
        {TITLE("sum") SUM TITLE("gpu") GPU F TITLE("api") API, "the table in line 7 is read", 1},
        {GPU F "a line of other text\n" G, "1 lines are of other reports, or no rows", 2},
        {GPU F GPU G, NULL, 2},
        {TITLE("api") API "SKIPPED: r.sqlite does not contain CUDA trace data.\n" TITLE("gpu") GPU F, "in line 8", 1},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_taken t = fl_take(FORMAT, CASE[i].text);
        FL_CHECK(t.status == FL_OK && t.in.kernels.op_count == CASE[i].ops &&
                     (CASE[i].note ? fl_noted(&t.in, CASE[i].note) : !fl_noted(&t.in, "other reports")),
                 "case %zu: %zu ops, %s, %s", i, t.in.kernels.op_count, t.d.message,
                 t.in.note_count ? t.in.note[0] : "");
        fl_imported_free(&t.in);
    }
    /* A long report may come first. */
    char *text = malloc(400 << 10), *at = text + sprintf(text, "%s", TITLE("api") API);
    while (at - text < 200 << 10)
        at += sprintf(at, "900,10,cudaLaunchKernel,0,1,5,5\n");
    sprintf(at, "%s", TITLE("gpu") GPU F);
    fl_taken t = fl_take(NULL, text);
    FL_CHECK(t.status == FL_OK && t.in.kernels.op_count == 1, "%s", t.d.message);
    fl_imported_free(&t.in);
    free(text);
    fl_refused(FORMAT, TITLE("gpu") GPU F TITLE("gpu") GPU G, 7, 1, "a second report on GPUs of r.sqlite");
    fl_refused(FORMAT, TITLE("api") API, 3, 1, "no column Device");
}

static void test_refused(void) {
    fl_refused(FORMAT, SMALL "1,234,5,1,1,1,32,1,1,X (0),7,f\n", 2, 30, "decimal commas or thousands separators");
    fl_refused(FORMAT, SMALL "\"1,234\",5,1,1,1,32,1,1,X (0),7,f\n", 2, 1, "thousands separators");
    fl_refused(FORMAT, SMALL "1,-5,1,1,1,32,1,1,X (0),7,f\n", 2, 3, "Duration is '-5'");
    fl_refused(FORMAT, SMALL "1,5,,,,32,1,1,X (0),7,f\n", 2, 5, "GrdX is empty");
    fl_refused(FORMAT, SMALL "1,5,1,1,1,32,1,1,X,7,f\n", 2, 18, "a name and its number");
    fl_refused(FORMAT, SMALL "1,5,1,1,1,32,1,1,X (0),7,\n", 2, 26, "Name is empty");
    fl_refused(FORMAT, SMALL "1,5,1,1,1,32,1,1\n", 2, 16, "row has 8 fields, expected 11");
    fl_refused(FORMAT, SMALL "9223372036854775790,5000,1,1,1,32,1,1,X (0),7,f\n", 2, 21, "too large to add");
    fl_refused(FORMAT, SMALL "99999999999999999999,5,1,1,1,32,1,1,X (0),7,f\n", 2, 1, "below 292 years");
    fl_refused(FORMAT, "Start (h),Duration (ns),Device,Name\n1,2,X (0),[x]\n", 1, 1, "no known unit");
    fl_refused(FORMAT, "Start (ns),Duration (ns),Name\n1,2,f\n", 1, 1, "no column Device");
    fl_refused(FORMAT, "Start (ns);Duration (ns);Device;Name\n1;2;X (0);f\n", 1, 11, "semicolons");
    fl_refused(FORMAT, "a,b\n1,2\n", 1, 1, "no header line");
    fl_refused(FORMAT, SMALL, 0, 0, "no kernels");
}

static void test_cut(void) { fl_cut_everywhere(FORMAT, "Processing [r]...\n" HEAD COPY KERNEL NEXT); }

static void test_sample(void) {
    const char *path = fl_sample_path("formats/nsys_cuda_gpu_trace.csv");
    if (!path)
        return;
    fl_diag d = {0};
    fl_imported in;
    const fl_reader *reader;
    FL_CHECK(fl_reader_find(path, NULL, &reader, &d) == FL_OK && !strcmp(reader->name, FORMAT), "%s", d.message);
    FL_CHECK(fl_reader_read(reader, path, NULL, &in, &d) == FL_OK && in.kernels.op_count == 14, "%s", d.message);
    fl_round_trip(&in);
    fl_imported_free(&in);
}

FL_SUITE("import_nsys_csv", {"good", test_good}, {"header units", test_header_units},
         {"units of bytes", test_bytes_units}, {"surroundings", test_surroundings}, {"overlap", test_overlap},
         {"names", test_names}, {"reports", test_reports}, {"refused", test_refused}, {"cut", test_cut},
         {"sample", test_sample})
