/* Files of other tools' formats, in the seeds of their fuzzers: numbers that were worked out by hand, detection, and
 * what a cut leaves. */
#include "tests/support/import_fixture.h"

#include <dirent.h>

#define SEEDS FL_ROOT "/tests/fuzz/seeds/"

static fl_taken open_seed(const char *format, const char *file) {
    fl_taken t = {.status = FL_OK};
    char path[600];
    const fl_reader *reader = NULL;
    snprintf(path, sizeof path, SEEDS "%s/%s", format, file);
    t.status = fl_reader_find(path, NULL, &reader, &t.d);
    FL_CHECK(t.status != FL_OK || !strcmp(reader->name, format), "%s: is read as %s", path, reader->name);
    if (!t.status)
        t.status = fl_reader_read(reader, path, NULL, &t.in, &t.d);
    return t;
}

/* rows: of telemetry, settings or requests, or ops. A value is that of a signal (column) in a row. */
typedef struct good {
    const char *format, *file;
    size_t rows;
    struct {
        const char *name;
        size_t row;
        double value;
    } value[8];
} good;

#define DMON_NS 1786872154e9 /* 2026-08-16 09:22:34 */

static const good GOOD[] = {
    {"nvidia-smi-dmon",
     "good.txt",
     6,
     {{"t_ns", 4, DMON_NS + 3e9},
      {"device", 5, 1},
      {"power_w", 2, 251},
      {"sm_mhz", 4, 1380},
      {"mem_mhz", 0, 1593},
      {"util_gpu_pct", 0, 98},
      {"throttle", 2, 1},
      {"throttle", 4, 3}}},
    {"nvidia-smi-dmon", "fewer.txt", 2, {{"t_ns", 1, 1e9}, {"util_mem_pct", 1, 41}}},
    {"nvidia-smi-dmon", "old.txt", 5, {{"t_ns", 4, 2e9}, {"device", 4, 1}, {"temp_c", 1, 41}, {"power_w", 2, 42}}},
    {"nvidia-smi-dmon", "time.txt", 2, {{"t_ns", 1, 86400e9}, {"power_w", 1, 94}}},
    {"nvidia-smi-dmon", "torn.txt", 5, {{"power_w", 4, 249}}},
    {"dcgm-exporter",
     "good.txt",
     4,
     {{"t_ns", 2, 30e9},
      {"power_w", 0, 251.25},
      {"power_w", 1, 61.5},
      {"device", 1, 1},
      {"energy_j", 2, 8500},
      {"sm_active_pct", 0, 87.5},
      {"util_gpu_pct", 3, 98}}},
    {"dcgm-exporter", "mig.txt", 2, {{"power_w", 0, 151.5}, {"sm_mhz", 0, 1410}, {"power_w", 1, 152.5}}},
    {"dcgm-exporter", "old.txt", 2, {{"t_ns", 1, 1787000015e9}, {"power_w", 1, 101}}},
    {"dcgm-exporter", "torn.txt", 4, {{"power_w", 3, 250}}},
    {"prometheus",
     "good.json",
     4,
     {{"t_ns", 2, 1787000015e9},
      {"power_w", 0, 251.25},
      {"device", 1, 1},
      {"power_w", 1, 61.5},
      {"sm_mhz", 2, 1395},
      {"util_gpu_pct", 3, 98}}},
    {"prometheus", "instant.json", 1, {{"device", 0, 3}, {"t_ns", 0, 1787000000781e6}}},
    {"prometheus", "fewer.json", 1, {{"dram_active_pct", 0, 25}}},
    {"zeus-power", "good.csv", 16, {{"t_ns", 2, 1787000001250e6}, {"power_w", 2, 251.5}, {"device", 3, 1}}},
    {"zeus-power", "old.csv", 2, {{"t_ns", 1, 1664618401500e6}, {"power_w", 1, 251.5}}},
    {"zeus-power", "torn.csv", 2, {{"power_w", 1, 251.5}}},
    {"zeus-power", "fewer.csv", 2, {{"power_w", 1, 252.5}}},
    {"amd-smi",
     "good.csv",
     5,
     {{"t_ns", 4, 1787000002e9},
      {"power_w", 2, 255},
      {"device", 3, 1},
      {"sm_mhz", 2, 1695},
      {"mem_mhz", 1, 900},
      {"util_mem_pct", 0, 33},
      {"throttle", 2, 1},
      {"temp_c", 4, 48}}},
    {"amd-smi", "torn.csv", 4, {{"power_w", 3, 140}}},
    {"amd-smi", "fewer.csv", 2, {{"t_ns", 1, 1e9}, {"sm_mhz", 1, 1700}}},
    {"amd-smi",
     "metric.csv",
     1,
     {{"power_w", 0, 251}, {"sm_mhz", 0, 1700}, {"energy_j", 0, 123456.789}, {"throttle", 0, 8}}},
    {"amd-smi",
     "metric.json",
     2,
     {{"power_w", 0, 251},
      {"sm_mhz", 1, 132},
      {"energy_j", 0, 123456.789},
      {"throttle", 0, 0},
      {"temp_c", 0, 47},
      {"util_mem_pct", 0, 33}}},
    {"amd-smi", "monitor.json", 2, {{"t_ns", 1, 1787000001e9}, {"power_w", 1, 255}, {"util_gpu_pct", 1, 99}}},
    {"rocm-smi",
     "good.csv",
     3,
     {{"t_ns", 2, 1e9},
      {"power_w", 2, 255},
      {"device", 1, 1},
      {"sm_mhz", 2, 1695},
      {"mem_mhz", 1, 900},
      {"energy_j", 0, 123.45678912},
      {"power_limit_w", 0, 750}}},
    {"rocm-smi",
     "good.json",
     4,
     {{"t_ns", 2, 1e9}, {"power_w", 2, 255}, {"sm_mhz", 3, 132}, {"energy_j", 2, 378.45678912}}},
    {"rocm-smi", "old.csv", 2, {{"power_w", 1, 39}, {"sm_mhz", 1, 1695}}},
    {"rocm-smi", "fewer.csv", 2, {{"util_gpu_pct", 1, 99}}},
    {"rocm-smi", "torn.csv", 2, {{"power_w", 1, 141}}},
    {"rocm-smi", "torn.json", 2, {{"power_w", 0, 251}}},
    {"rocpd",
     "good.db",
     5,
     {{"start_ns", 1, 1e15 + 1000},
      {"end_ns", 1, 1e15 + 2500},
      {"device", 3, 1},
      {"stream", 1, 2},
      {"grid_x", 1, 4},
      {"block_x", 1, 256},
      {"grid_x", 2, 2},
      {"bytes", 0, 4096}}},
    {"rocpd", "merged.db", 10, {{"device", 9, 1}, {"bytes", 9, 512}}},
    {"rocpd", "fewer.db", 1, {{"end_ns", 0, 200}}},
    {"rocpd",
     "v4.db",
     2,
     {{"start_ns", 1, 3000}, {"end_ns", 1, 4000}, {"device", 0, 2}, {"stream", 0, 6}, {"grid_x", 0, 2}}},
    {"nsys-exec",
     "good.csv",
     3,
     {{"launch_ns", 0, 1000000},
      {"start_ns", 0, 1025000},
      {"end_ns", 0, 1075000},
      {"grid_x", 0, 148},
      {"block_x", 1, 32},
      {"launch_ns", 1, 1100000},
      {"device", 2, 1}}},
    {"nsys-exec", "fewer.csv", 1, {{"launch_ns", 0, 1e6}, {"start_ns", 0, 1025500}, {"end_ns", 0, 1075500}}},
    {"nsys-exec", "ms.csv", 1, {{"launch_ns", 0, 1e6}, {"start_ns", 0, 1025000}, {"end_ns", 0, 1075000}}},
    {"nsys-exec", "torn.csv", 2, {{"start_ns", 1, 1103000}}},
    {"kineto",
     "merged.json",
     4,
     {{"device", 0, 0}, {"device", 1, 1}, {"device", 3, 1}, {"start_ns", 3, 1700000000001001e3}}},
    {"mooncake",
     "good.jsonl",
     4,
     {{"t_ns", 2, 3e9},
      {"prompt", 1, 1100},
      {"output", 3, 11},
      {"cached", 1, 1024},
      {"cached", 2, 1024},
      {"cached", 3, 0}}},
    {"mooncake", "fewer.jsonl", 2, {{"t_ns", 1, 18e6}, {"cached", 1, 0}}},
    {"mooncake", "arxiv.jsonl", 2, {{"t_ns", 1, 10500000}, {"cached", 1, 512}}},
    {"mooncake", "torn.jsonl", 3, {{"output", 2, 9}}},
    {"burstgpt", "good.csv", 3, {{"t_ns", 2, 113.5e9}, {"prompt", 1, 1087}, {"output", 1, 230}, {"last", 1, 43.25e9}}},
    {"burstgpt", "old.csv", 2, {{"t_ns", 1, 40e9}, {"output", 0, 18}}},
    {"burstgpt", "fewer.csv", 1, {{"prompt", 0, 472}}},
    {"burstgpt", "torn.csv", 2, {{"prompt", 1, 1087}}},
    {"vllm-bench",
     "good.json",
     3,
     {{"t_ns", 1, 0.5e9}, {"prompt", 1, 50}, {"first", 1, 1e9}, {"last", 1, 1.05e9}, {"last", 2, 1.925e9}}},
    {"vllm-bench", "old.json", 4, {{"t_ns", 3, 1.5e9}, {"first", 3, 1.6e9}}},
    {"vllm-bench", "fewer.json", 4, {{"t_ns", 3, 0}, {"prompt", 1, 201}}},
    {"vllm-bench", "appended.json", 3, {{"output", 2, 4}}},
    {"azure-llm", "2024.csv", 2, {{"t_ns", 1, 7405000}, {"prompt", 0, 2162}}},
    {"kernel-tuner",
     "good.json",
     2,
     {{"sm_mhz", 0, 1005}, {"time_s", 0, 0.015}, {"power_w", 1, 220}, {"energy_j", 1, 2.64}, {"sm_mhz", 1, 1410}}},
    {"kernel-tuner", "unfinished.json", 2, {{"time_s", 1, 0.012}}},
    {"kernel-tuner", "fewer.json", 1, {{"sm_mhz", 0, 1410}, {"time_s", 0, 0.002}}},
    {"zeus-windows",
     "good.csv",
     3,
     {{"power_cap_w", 0, 150}, {"time_s", 0, 10}, {"energy_j", 0, 2700}, {"power_w", 2, 520}, {"power_cap_w", 2, 300}}},
    {"zeus-windows", "fewer.csv", 3, {{"power_cap_w", 1, 200}, {"sm_mhz", 2, 1410}, {"energy_j", 0, 1400}}},
    {"zeus-windows", "torn.csv", 2, {{"energy_j", 1, 3500}}},
};

static double value_of(const fl_imported *in, const char *name, size_t row) {
    const fl_telemetry *t = &in->telemetry;
    if (in->has_telemetry && row < t->row_count)
        return !strcmp(name, "t_ns")     ? (double)t->t_ns[row]
               : !strcmp(name, "device") ? t->device[row]
                                         : fl_signal(t, row, name);
    if (in->has_kernels && row < in->kernels.op_count) {
        const fl_trace_op *o = &in->kernels.ops[row];
        const fl_trace_kind *k = &in->kernels.kinds[o->kind];
        return !strcmp(name, "start_ns")    ? (double)o->start_ns
               : !strcmp(name, "end_ns")    ? (double)o->end_ns
               : !strcmp(name, "launch_ns") ? (double)o->launch_ns
               : !strcmp(name, "device")    ? o->device
               : !strcmp(name, "stream")    ? o->stream
               : !strcmp(name, "bytes")     ? (double)o->bytes
               : !strcmp(name, "grid_x")    ? k->grid[0]
               : !strcmp(name, "block_x")   ? k->block[0]
                                            : (double)NAN;
    }
    if (in->has_sweep && row < in->sweep.row_count) {
        const fl_sweep_row *r = &in->sweep.rows[row];
        return !strcmp(name, "sm_mhz")        ? r->sm_mhz
               : !strcmp(name, "mem_mhz")     ? r->mem_mhz
               : !strcmp(name, "power_cap_w") ? r->power_cap_w
               : !strcmp(name, "time_s")      ? r->time_s
               : !strcmp(name, "power_w")     ? r->power_w
               : !strcmp(name, "energy_j")    ? r->energy_j
                                              : (double)NAN;
    }
    if (in->has_requests && row < in->requests.count) {
        const fl_request_row *r = &in->requests.row[row];
        const fl_request_times *m = in->requests.times ? &in->requests.times[row] : NULL;
        return !strcmp(name, "t_ns")     ? (double)r->t_ns
               : !strcmp(name, "prompt") ? r->prompt_tokens
               : !strcmp(name, "output") ? r->output_tokens
               : !strcmp(name, "cached") ? r->cached_tokens
               : !m                      ? (double)NAN
               : !strcmp(name, "first")  ? (double)m->first_token_ns
               : !strcmp(name, "last")   ? (double)m->last_token_ns
                                         : (double)NAN;
    }
    return NAN;
}

/* A build may be without the library of a format (FL_HAS_SQLITE, FL_HAS_YAJL), which it then names. */
static bool is_without(const fl_taken *t, const char *format) {
    for (size_t i = 0; i < fl_readers_count; i++)
        if (!strcmp(fl_readers[i]->name, format) && fl_reader_missing(fl_readers[i])) {
            FL_CHECK(t->status == FL_IO && strstr(t->d.message, fl_reader_missing(fl_readers[i])), "%s: %s", format,
                     t->d.message);
            return true;
        }
    return false;
}

static void test_values(void) {
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        const good *g = &GOOD[i];
        fl_taken t = open_seed(g->format, g->file);
        if (is_without(&t, g->format))
            continue;
        const fl_imported *in = &t.in;
        const size_t rows = in->has_telemetry  ? in->telemetry.row_count
                            : in->has_kernels  ? in->kernels.op_count
                            : in->has_sweep    ? in->sweep.row_count
                            : in->has_requests ? in->requests.count
                                               : 0;
        FL_CHECK(t.status == FL_OK, "%s/%s: %lld: %s", g->format, g->file, (long long)t.d.line, t.d.message);
        FL_CHECK(t.status || rows == g->rows, "%s/%s: %zu rows, expected %zu", g->format, g->file, rows, g->rows);
        for (size_t k = 0; !t.status && k < sizeof g->value / sizeof *g->value && g->value[k].name; k++) {
            const double is = value_of(in, g->value[k].name, g->value[k].row), want = g->value[k].value;
            FL_CHECK(fabs(is - want) <= 1e-9 * fabs(want), "%s/%s: %s in row %zu is %.12g, expected %.12g", g->format,
                     g->file, g->value[k].name, g->value[k].row, is, want);
        }
        if (t.status == FL_OK)
            fl_round_trip(in);
        fl_imported_free(&t.in);
    }
}

/* Each good file is of one format alone, whatever reader looks at it. */
static void test_detection(void) {
    size_t files = 0;
    for (size_t r = 0; r < fl_readers_count; r++) {
        char folder[600], path[900];
        snprintf(folder, sizeof folder, SEEDS "%s", fl_readers[r]->name);
        DIR *dir = opendir(folder);
        for (const struct dirent *e; dir && (e = readdir(dir));) {
            char head[65536 + 1];
            size_t size = 0;
            fl_diag d = {0};
            if (e->d_name[0] == '.')
                continue;
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            fl_gunzip *g = fl_gunzip_open(path, &d);
            if (!g && !FL_HAS_ZLIB && fl_gzip_named(path))
                continue;
            FL_CHECK(g && fl_gunzip_read(g, head, sizeof head - 1, &size, &d) == FL_OK, "%s: %s", path, d.message);
            fl_gunzip_close(g);
            head[size] = '\0';
            if (!fl_readers[r]->detect(path, head, size)) /* a seed that no reader knows is for its messages */
                continue;
            files++;
            for (size_t k = 0; k < fl_readers_count; k++)
                FL_CHECK(k == r || !fl_readers[k]->detect(path, head, size), "%s is taken for %s", path,
                         fl_readers[k]->name);
        }
        if (dir)
            closedir(dir);
    }
    FL_CHECK(files >= fl_readers_count, "%zu files", files);
}

/* Text files cut at every byte: refused, or whole rows. */
static void test_cut(void) {
    static const char *const TEXT[][2] = {{"nvidia-smi-dmon", "good.txt"},
                                          {"zeus-power", "good.csv"},
                                          {"amd-smi", "good.csv"},
                                          {"rocm-smi", "good.csv"},
                                          {"nsys-exec", "good.csv"}};
    for (size_t i = 0; i < sizeof TEXT / sizeof *TEXT; i++) {
        char path[600];
        size_t size = 0;
        snprintf(path, sizeof path, SEEDS "%s/%s", TEXT[i][0], TEXT[i][1]);
        char *text = fl_temp_slurp(path, &size);
        FL_CHECK(text != NULL, "%s", path);
        if (text)
            fl_cut_everywhere(TEXT[i][0], text);
        free(text);
    }
}

/* What real files have around their rows. */
static void test_around(void) {
    static const struct {
        const char *format, *text, *note;
    } CASE[] = {
        {"nvidia-smi-dmon", "\xef\xbb\xbf# gpu    pwr\r\n# Idx      W\r\n    0    100\r\n    0    101\r\n", NULL},
        {"nvidia-smi-dmon", "nohup: ignoring input\n# gpu    pwr\n# Idx      W\n    0    100\n\n    0    101\n", NULL},
        {"nvidia-smi-dmon", "#gpu, pwr\n#Idx, W\n0, 100\n0, 101\n", NULL},
        {"nvidia-smi-dmon", "#Time gpu pwr\n#HH:MM:SS Idx W\n 10:00:02 0 100\n 10:00:02 0 101\n",
         "1 rows have the whole second of their GPU's row before"},
        {"nvidia-smi-dmon", "# gpu    pwr\n# Idx      W\n    0    100\nGPU is lost\n    0    101\n",
         "line 4: no reading, but 'GPU is lost'"},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_taken t = fl_take(NULL, CASE[i].text);
        FL_CHECK(t.status == FL_OK && t.in.telemetry.row_count == 2 && fl_signal(&t.in.telemetry, 1, "power_w") > 100 &&
                     (!CASE[i].note || fl_noted(&t.in, CASE[i].note)),
                 "case %zu: %s", i, t.d.message);
        fl_imported_free(&t.in);
    }
    fl_taken nan = fl_take("mooncake", "{\"timestamp\": 0, \"input_length\": 5, \"output_length\": 2, \"x\": NaN, "
                                       "\"y\": -Infinity, \"z\": \"a \\\"NaN\"}\n");
    FL_CHECK(nan.status == FL_OK && nan.in.requests.count == 1, "%s", nan.d.message);
    fl_imported_free(&nan.in);
    fl_refused("nvidia-smi-dmon", "# gpu    pwr\n# Idx     kN\n    0    1\n", 2, 1, "unit of pwr is 'kN', expected W");
    fl_refused("nvidia-smi-dmon", "# gpu    pwr\n# Idx      W\n    0    1  2\n", 3, 1, "row has 3 values, expected 2");
    fl_refused("nvidia-smi-dmon", "# gpu    pwr\n# Idx      W\n    0   x1\n", 3, 9, "pwr is 'x1', expected a number");
    fl_refused("nvidia-smi-dmon", "# gpu    enc\n# Idx      %\n    0   1\n", 2, 1, "no column that telemetry has");
}

/* Files that end within a value, or hold nothing to read. */
static void test_refused(void) {
    static const struct {
        const char *format, *file, *part;
    } CASE[] = {
        {"prometheus", "torn.json", "no JSON, or it ends within a value"},
        {"rocpd", "torn.db", "malformed"},
        {"vllm-bench", "torn.json", "no JSON, or it ends within a value"},
        {"vllm-bench", "totals.json", "expected one of --save-result with --save-detailed"},
        {"kernel-tuner", "torn.json", "no JSON, or it ends within a value"},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_taken t = open_seed(CASE[i].format, CASE[i].file);
        if (is_without(&t, CASE[i].format))
            continue;
        FL_CHECK(t.status == FL_BAD_INPUT && strstr(t.d.message, CASE[i].part), "%s/%s: %d %s", CASE[i].format,
                 CASE[i].file, t.status, t.d.message);
        fl_imported_free(&t.in);
    }
}

/* Any table as telemetry: separators, heads, forms of time, units, constants. Each has a reading of 250 W at 10:00:00
 * UTC on 1 March 2025 and one of 251 W a second later. */
static void test_map(void) {
    static const struct {
        const char *map, *table;
        int32_t device;
    } CASE[] = {
        {"t=timestamp,gpu=index,power_w=power/1000",
         "timestamp,index,power\n1740823200,3,250000\n1740823201,3,251000\n", 3},
        {"t=ts,power_w=W", "ts;W\n2025-03-01T10:00:00Z;250,0\n2025-03-01T10:00:01Z;251,0\n", 0},
        {"t=ts,power_w=W", "ts\tW\n2025-03-01 11:00:00+01:00\t250\n2025-03-01 11:00:01+01:00\t251\n", 0},
        {"t=ts,power_w=W", "# my log\n# ts W\n1.7408232e9 250\n1.740823201e9 251\n", 0},
        {"t=ts,power_w=W", "   ts   W\n0  1740823200000   250\n1  1740823201000   251\n", 0},
        {"t=ts,power_w=W", "   ts   W\n0  2025-03-01 10:00:00   250\n1  2025-03-01 10:00:01   251\n", 0},
        {"t=ts,power_w=W", ",ts,W\r\n0,1740823200000000,250\r\n1,1740823201000000,251\r\n", 0},
        {"t=ts,power_w=W", "\xef\xbb\xbfts,W\n1740823200000000000,250\nts,W\n1740823201000000000,251\n", 0},
        {"t=time_ms,power_w=W", "time_ms,W\n1740823200000,250\n# a word\n1740823201000,251\n", 0},
        {"t=ms/1000,power_w=W", "ms,W\n1740823200000,250\n1740823201000,251\n", 0},
        {"t=ts,power_w=power.draw",
         "ts,power.draw [mW]\n2025/03/01 10:00:00.000,250000\n2025/03/01 10:00:01.000,251000\n", 0},
        {"t=ts,power_w=P",
         "ts,P\n2025-03-01T10:00:00,000000000+00:00,250 W\n2025-03-01T10:00:01,000000000+00:00,0.251 kW\n", 0},
        {"t=d+c,gpu=g,power_w=P,sm_mhz=1410,workload='gemm'",
         "d,c,g,P\n20250301,10:00:00,GPU 2,250\n20250301,10:00:01,GPU 2,251\n20250301,10:00:02,GPU 2,N/A\n", 2},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_sweep_map map;
        fl_imported in = {0};
        fl_diag d = {0};
        const fl_import_options o = {.device = -1};
        fl_status s = fl_sweep_map_parse(CASE[i].map, &map, &d);
        FL_CHECK(!s && fl_map_is_telemetry(&map), "case %zu", i);
        s = s ? s : fl_telemetry_read_mapped(fl_temp_text("map.csv", CASE[i].table), &map, &o, &in, &d);
        const fl_telemetry *t = &in.telemetry;
        const bool right = !s && t->row_count >= 2 && t->t_ns[0] == INT64_C(1740823200000000000) &&
                           t->t_ns[1] == INT64_C(1740823201000000000) && t->device[0] == CASE[i].device &&
                           fl_same_real(fl_signal(t, 0, "power_w"), 250) &&
                           fl_same_real(fl_signal(t, 1, "power_w"), 251);
        FL_CHECK(right, "case %zu, %s: %lld:%lld: %s; %zu rows", i, CASE[i].map, (long long)d.line, (long long)d.column,
                 d.message, t->row_count);
        FL_CHECK(!strstr(CASE[i].map, "1410") ||
                     (fl_same_real(fl_signal(t, 1, "sm_mhz"), 1410) && fl_head_get(&t->head, "workload")),
                 "constants");
        fl_imported_free(&in);
        fl_sweep_map_free(&map);
    }
}

/* What a map or its table has wrong. */
static void test_map_refused(void) {
    static const struct {
        const char *map, *table;
        int64_t line, column;
        const char *part;
    } CASE[] = {
        {"t=ts,power_w=x", "ts,W\n1,2\n", 1, 1, "no column 'x' for power_w"},
        {"t=ts,powr_w=W", "ts,W\n1,2\n", 0, 0, "did you mean 'power_w'?"},
        {"power_w=W", "ts,W\n1,2\n", 0, 0, "the map names no time"},
        {"t=ts,gpu=W", "ts,W\n1,2\n", 0, 0, "the map names no signal"},
        {"t=ts,power_w=W", "ts,W\nx,2\n", 2, 1, "the time is 'x', expected a date"},
        {"t=ts,power_w=W", "ts,W\n1,2,3\n", 2, 5, "row has 3 fields, expected 2"},
        {"t=ts,power_w=W", "ts,W\n1,2 MHz\n", 2, 3, "unit of power_w is 'MHz', expected W"},
        {"t=ts,sm_mhz=W", "ts,W\n1,99999\n", 2, 3, "sm_mhz is 99999"},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_sweep_map map;
        fl_imported in = {0};
        fl_diag d = {0};
        const fl_import_options o = {.device = -1};
        fl_status s = fl_sweep_map_parse(CASE[i].map, &map, &d);
        s = s ? s : fl_telemetry_read_mapped(fl_temp_text("map.csv", CASE[i].table), &map, &o, &in, &d);
        FL_CHECK(s == FL_BAD_INPUT && d.line == CASE[i].line && d.column == CASE[i].column &&
                     strstr(d.message, CASE[i].part),
                 "case %zu: %lld:%lld: %s", i, (long long)d.line, (long long)d.column, d.message);
        fl_imported_free(&in);
        fl_sweep_map_free(&map);
    }
}

FL_SUITE("formats", {"values", test_values}, {"detection", test_detection}, {"cut", test_cut}, {"around", test_around},
         {"refused", test_refused}, {"map", test_map}, {"map refused", test_map_refused})
