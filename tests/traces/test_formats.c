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

static void test_values(void) {
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        const good *g = &GOOD[i];
        fl_taken t = open_seed(g->format, g->file);
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
    static const char *const TEXT[][2] = {{"nvidia-smi-dmon", "good.txt"}};
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
    fl_refused("nvidia-smi-dmon", "# gpu    pwr\n# Idx     kN\n    0    1\n", 2, 1, "unit of pwr is 'kN', expected W");
    fl_refused("nvidia-smi-dmon", "# gpu    pwr\n# Idx      W\n    0    1  2\n", 3, 1, "row has 3 values, expected 2");
    fl_refused("nvidia-smi-dmon", "# gpu    pwr\n# Idx      W\n    0   x1\n", 3, 9, "pwr is 'x1', expected a number");
    fl_refused("nvidia-smi-dmon", "# gpu    enc\n# Idx      %\n    0   1\n", 2, 1, "no column that telemetry has");
}

FL_SUITE("formats", {"values", test_values}, {"detection", test_detection}, {"cut", test_cut}, {"around", test_around})
