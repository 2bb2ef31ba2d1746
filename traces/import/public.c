/* Tables of measured settings that are public, each known by its header and read by a map (import.h). Their units
 * are their owners'; what a table does not say is a note. */
#include "traces/import/inside.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/serving/serving.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Azure's LLM inference traces (github.com/Azure/AzurePublicDataset, AzureLLMInferenceTrace_conv.csv and _code.csv;
 * CC-BY 4.0; Patel et al., "Splitwise: Efficient generative LLM inference using phase splitting", ISCA 2024). */

#define LAST_NS (INT64_C(26) * 86400 * 1000000000)

enum { TIMESTAMP, CONTEXT, GENERATED, COLUMNS };

static const char *const COLUMN[COLUMNS] = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"};

typedef struct loader {
    fl_requests r;
    fl_left_out left;
    size_t where[COLUMNS], width;
} loader;

static fl_status read_request(loader *l, const fl_csv_row *row, fl_diag *d) {
    const char *time = row->field[l->where[TIMESTAMP]].text;
    int64_t prompt = 0, output = 0;
    fl_time at = {0};
    if (fl_no_value(time) || fl_no_value(row->field[l->where[CONTEXT]].text) ||
        fl_no_value(row->field[l->where[GENERATED]].text))
        return fl_left_empty(&l->left, row->file, row->line, 1, d, "a cell of the request has no value");
    if (!fl_time_parse(time, &at) || at.of_day)
        return FL_FIELD_FAIL(d, row, l->where[TIMESTAMP],
                             "TIMESTAMP is '%.40s', expected a time such as 2023-11-16 18:15:46.6805900", time);
    fl_status s = fl_field_int(row, l->where[CONTEXT], COLUMN[CONTEXT], 0, FL_REQUEST_TOKENS_MOST, &prompt, d);
    if (!s)
        s = fl_field_int(row, l->where[GENERATED], COLUMN[GENERATED], 0, FL_REQUEST_TOKENS_MOST, &output, d);
    if (!s && (!prompt || !output))
        return fl_left_empty(&l->left, row->file, row->line, row->field[l->where[CONTEXT]].column, d,
                             "the request has no prompt or output tokens, so no step to simulate");
    if (!s && l->left.strict && l->r.count && at.ns < l->r.row[l->r.count - 1].t_ns)
        s = FL_FIELD_FAIL(d, row, l->where[TIMESTAMP],
                          "TIMESTAMP is '%.40s', before that of the row above, expected ascending times", time);
    const fl_request_row q = {.t_ns = at.ns,
                              .prompt_tokens = (uint32_t)prompt,
                              .output_tokens = (uint32_t)output,
                              .line = row->line < UINT32_MAX ? (uint32_t)row->line : 0,
                              .column = (uint32_t)row->field[l->where[CONTEXT]].column};
    return s ? s : fl_requests_add(&l->r, &q, d);
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (l->width) {
        const fl_status s = fl_foreign_width(row, l->width, d);
        return s ? s : fl_left_row(&l->left, read_request(l, row, &l->left.own), d);
    }
    l->width = row->count;
    return fl_columns_find(row, COLUMN, COLUMNS, COLUMNS, l->where, d);
}

/* The first request comes at 0; those too long after it are of another trace, or have a wrong date. */
static fl_status count_from_first(loader *l, fl_diag *d) {
    fl_requests *r = &l->r;
    const int64_t first = r->count ? r->row[0].t_ns : 0;
    size_t kept = 0;
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < r->count; i++) {
        r->row[i].t_ns -= first;
        if (r->row[i].t_ns <= LAST_NS) {
            r->row[kept++] = r->row[i];
            continue;
        }
        fl_fail(&l->left.own, FL_BAD_INPUT, r->file, r->row[i].line, 1,
                "TIMESTAMP is %.4g days after the first, expected at most 26 days after the first",
                (double)r->row[i].t_ns / 86400e9);
        l->left.rows--; /* it was counted as it came */
        s = fl_left_row(&l->left, fl_of_values(&l->left.own), d);
    }
    r->count = s ? r->count : kept;
    return s;
}

fl_status fl_requests_read_azure(const char *path, fl_requests *r, fl_left_out *left, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true};
    loader l = {.left = fl_left_begin(left)};
    fl_status s = (l.r.file = strdup(fl_input_name(path))) && (l.r.names = calloc(1, sizeof *l.r.names)) &&
                          (l.r.names[0] = strdup(""))
                      ? FL_OK
                      : fl_no_memory(d, path);
    l.r.name_count = l.r.name_room = l.r.names && l.r.names[0];
    if (!s)
        s = fl_csv_read(path, &OPTIONS, NULL, on_row, &l, d);
    if (!s)
        s = fl_requests_order(&l.r, &l.left, d);
    if (!s)
        s = count_from_first(&l, d);
    if (!s)
        s = fl_left_end(&l.left, left, path, d);
    if (!s && !l.r.count)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no requests with tokens, expected at least one row after the header");
    if (s)
        fl_requests_free(&l.r);
    *r = l.r;
    return s;
}

static bool is_header(const fl_cells *line) {
    return line->count == COLUMNS && fl_cells_have(line, COLUMN[TIMESTAMP]) && fl_cells_have(line, COLUMN[CONTEXT]) &&
           fl_cells_have(line, COLUMN[GENERATED]);
}

static bool azure_detect(const char *path, const char *head, size_t size) {
    (void)path;
    return fl_header_find(head, size, is_header) == 0;
}

static fl_status azure_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    (void)o;
    fl_left_out left;
    fl_status s = fl_requests_read_azure(path, &out->requests, &left, d);
    if (!s)
        s = fl_import_left(out, &left, d);
    out->has_requests = !s;
    if (!s)
        fl_import_say(out, "no latencies, and the rate is that of the whole service, not of one server (--scale)");
    if (!s)
        s = fl_import_said(out, d);
    return s;
}

const fl_reader fl_reader_azure_llm = {.name = "azure-llm",
                                       .what = "requests of Azure's LLM inference traces",
                                       .tool = "Azure LLM inference traces, 2023 and 2024",
                                       .gives = FL_GIVES_REQUESTS,
                                       .detect = azure_detect,
                                       .read = azure_read};

/* Our own files among the others, so that a command takes any of them by one way. */

static bool begins(const char *head, size_t size, const char *text) {
    size_t length = strlen(text);
    if (size >= 3 && !memcmp(head, "\xef\xbb\xbf", 3)) {
        head += 3;
        size -= 3;
    }
    return size >= length && !memcmp(head, text, length);
}

/* A file that was cut off within its last number would still read as a whole row. Ours end with a newline. */
static fl_status check_end(const char *path, fl_diag *d) {
    const int fd = fl_gunzip_whole(path, d); /* a gzipped one's own end was seen to be there */
    FILE *file = fd < 0 ? NULL : fdopen(fd, "rb");
    int last = '\n', c;
    int64_t lines = 1, column = 1;
    if (!file && fd >= 0)
        close(fd);
    if (!file)
        return fd >= 0 ? fl_no_memory(d, path) : d ? d->status : FL_IO;
    if (fseek(file, -1, SEEK_END) == 0)
        last = fgetc(file);
    rewind(file);
    while (last != '\n' && last != EOF && (c = getc_unlocked(file)) != EOF) {
        lines += c == '\n';
        column = c == '\n' ? 1 : column + 1;
    }
    fclose(file);
    if (last == '\n' || last == EOF)
        return FL_OK;
    return fl_fail(d, FL_BAD_INPUT, path, lines, column, "the last line may be cut off, expected a newline at its end");
}

static bool detect_kernels(const char *path, const char *head, size_t size) {
    (void)path;
    return begins(head, size, "# foldline-kernels ");
}

static fl_status read_kernels(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    (void)o;
    fl_left_out left;
    fl_status status = fl_kernels_read(path, &out->kernels, &left, d);
    if (!status)
        status = check_end(path, d);
    if (!status)
        status = fl_import_left(out, &left, d);
    out->has_kernels = !status;
    return status;
}

static bool detect_telemetry(const char *path, const char *head, size_t size) {
    (void)path;
    return begins(head, size, "# foldline-telemetry ");
}

static fl_status read_telemetry(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    (void)o;
    fl_left_out left;
    fl_status status = fl_telemetry_read(path, &out->telemetry, &left, d);
    if (!status)
        status = check_end(path, d);
    return status ? status : fl_import_telemetry(out, &left, path, d);
}

static bool sweep_header(const fl_cells *line) {
    return fl_cells_have(line, "workload") && fl_cells_have(line, "sm_mhz") && fl_cells_have(line, "time_s");
}

static bool detect_sweep(const char *path, const char *head, size_t size) {
    (void)path;
    return begins(head, size, "# foldline-sweep ") || fl_header_find(head, size, sweep_header) == 0;
}

static fl_status read_sweep(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    (void)o;
    fl_left_out left;
    fl_status status = fl_sweep_read(path, &out->sweep, &left, d);
    if (!status)
        status = fl_import_left(out, &left, d);
    out->has_sweep = !status;
    return status;
}

static fl_status read_requests(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    (void)o;
    fl_left_out left;
    fl_status status = fl_requests_read(path, &out->requests, &left, d);
    if (!status)
        status = fl_import_left(out, &left, d);
    if (!status)
        status = check_end(path, d);
    out->has_requests = !status;
    return status;
}

static bool requests_header(const fl_cells *line) {
    return fl_cells_have(line, "t_ns") && fl_cells_have(line, "prompt_tokens") && fl_cells_have(line, "output_tokens");
}

static bool detect_requests(const char *path, const char *head, size_t size) {
    (void)path;
    return begins(head, size, "# foldline-requests ") || fl_header_find(head, size, requests_header) == 0;
}

const fl_reader fl_reader_kernels = {.name = "foldline-kernels",
                                     .what = "canonical kernel trace",
                                     .tool = "foldline, format 1",
                                     .gives = FL_GIVES_KERNELS | FL_GIVES_LAUNCHES | FL_GIVES_CLOCKS,
                                     .detect = detect_kernels,
                                     .read = read_kernels};
const fl_reader fl_reader_telemetry = {.name = "foldline-telemetry",
                                       .what = "canonical telemetry",
                                       .tool = "foldline, format 1",
                                       .gives = FL_GIVES_READINGS | FL_GIVES_TIMES | FL_GIVES_CLOCKS | FL_GIVES_POWER |
                                                FL_GIVES_USE | FL_GIVES_ENERGY,
                                       .detect = detect_telemetry,
                                       .read = read_telemetry};
const fl_reader fl_reader_sweep = {.name = "sweep",
                                   .what = "table of measured settings",
                                   .tool = "foldline, format 1",
                                   .gives = FL_GIVES_SETTINGS | FL_GIVES_CLOCKS | FL_GIVES_POWER | FL_GIVES_ENERGY,
                                   .detect = detect_sweep,
                                   .read = read_sweep};
const fl_reader fl_reader_requests = {.name = "foldline-requests",
                                      .what = "requests to a server of language models",
                                      .tool = "foldline, format 1",
                                      .gives = FL_GIVES_REQUESTS | FL_GIVES_PREFIXES | FL_GIVES_LATENCIES,
                                      .detect = detect_requests,
                                      .read = read_requests};

/* GPU-DVFS-Dataset: dataset_performance.csv and dataset_power.csv, a row per program and a column per clock.
 * Performance is relative to the program's own at one clock, so its times are too; power lies in a file of its own
 * beside it. */

#define FIRST "frequency(MHz)"
#define PERFORMANCE "performance"
#define POWER "power"

static bool wide_is_header(const fl_cells *line) {
    double mhz = 0;
    char text[64];
    if (line->count < 2 || !fl_cell_is(line->cell[0], FIRST) || line->cell[1].size >= sizeof text)
        return false;
    snprintf(text, sizeof text, "%.*s", (int)line->cell[1].size, line->cell[1].text);
    return fl_real_parse(text, &mhz) == FL_NUMBER_OK;
}

static bool wide_detect(const char *path, const char *head, size_t size) {
    (void)path;
    return fl_header_find(head, size, wide_is_header) == 0;
}

static fl_status read_table(const char *path, const char *text, fl_sweep *s, fl_imported *out, fl_diag *d) {
    fl_sweep_map map;
    fl_left_out left;
    fl_status status = fl_sweep_map_parse(text, &map, d);
    if (!status)
        status = fl_sweep_read_mapped_times(path, &map, s, &left, d);
    fl_sweep_map_free(&map);
    char sentence[400];
    for (int i = 0; !status && fl_left_text(&left, i, sentence, sizeof sentence); i++)
        if (*sentence)
            (i == FL_LEFT_DOUBT ? fl_import_doubt : fl_import_lost)(out, "%s: %s", basename(path), sentence);
    return status ? status : fl_import_said(out, d);
}

/* The path with `from` in its file's name replaced by `to`; NULL where it is not in it (or without memory). */
static char *companion(const char *path, const char *from, const char *to) {
    const char *slash = strrchr(path, '/'), *at = strstr(slash ? slash : path, from);
    char *other = NULL;
    if (!at || asprintf(&other, "%.*s%s%s", (int)(at - path), path, to, at + strlen(from)) < 0)
        return NULL;
    return other;
}

/* Powers of the same programs and clocks; *missing: settings without one. */
static void join_power(fl_sweep *s, const fl_sweep *power, size_t *missing) {
    for (size_t i = 0; i < s->row_count; i++) {
        fl_sweep_row *r = &s->rows[i];
        for (size_t k = 0; k < power->row_count && isnan(r->power_w); k++) {
            const fl_sweep_row *p = &power->rows[k];
            if (p->sm_mhz == r->sm_mhz && !strcmp(power->names[p->workload], s->names[r->workload]))
                r->power_w = p->power_w;
        }
        r->energy_j = r->power_w * r->time_s;
        *missing += isnan(r->power_w) ? 1 : 0;
    }
}

static fl_status wide_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    (void)o;
    char *power_path = companion(path, PERFORMANCE, POWER), *table = companion(path, POWER, PERFORMANCE);
    if (!power_path && table) {
        const fl_status wrong =
            fl_fail(d, FL_BAD_INPUT, path, 0, 0, "a table of power without its table of times, expected %s", table);
        free(table);
        return wrong;
    }
    free(table);
    fl_sweep power = {0};
    size_t missing = 0;
    fl_status s = read_table(path, "workload=" FIRST ",sm_mhz=header,time_s=1/cells", &out->sweep, out, d);
    out->has_sweep = !s;
    if (!s && power_path && access(power_path, R_OK) == 0) {
        s = read_table(power_path, "workload=" FIRST ",sm_mhz=header,time_s=1,power_w=cells", &power, out, d);
        if (!s)
            join_power(&out->sweep, &power, &missing);
        if (!s)
            s = fl_import_note(out, d, "power is from %s", power_path);
    } else if (!s) {
        s = power_path ? fl_import_note(out, d, "no %s: times alone", power_path)
                       : fl_import_note(out, d, "the table does not say of what: taken as performance, without power");
    }
    if (!s && missing)
        s = fl_import_note(out, d, "%zu settings have no power there", missing);
    if (!s)
        s = fl_import_note(out, d, "times are relative: 1 s where a program's performance is 1");
    fl_sweep_free(&power);
    free(power_path);
    return s;
}

const fl_reader fl_reader_wide = {
    .name = "gpu-dvfs-wide",
    .what = "table of GPU-DVFS-Dataset (a column per clock; performance, and power beside it)",
    .tool = "GPU-DVFS-Dataset",
    .gives = FL_GIVES_SETTINGS | FL_GIVES_CLOCKS | FL_GIVES_POWER,
    .detect = wide_detect,
    .read = wide_read};

/* ---- the tables that are known ---- */

enum { NEEDED_MAX = 8 };

typedef struct table {
    const char *needed[NEEDED_MAX]; /* columns that its header has */
    const char *map;
    const char *note; /* NULL: nothing to say */
} table;

/* GPU-DVFS-Job-Schedule: real applications on a GTX 1080 Ti and an RTX 2070 Super. */
static const table dvfs = {
    {"appName", "coreF", "memF", "argNo", "kernel", "time/ms", "power/W"},
    "workload=appName+argNo,kernel=kernel,sm_mhz=coreF,mem_mhz=memF,time_s=time/ms/1000,power_w=power/W",
    NULL};

/* NV-DVFS-Benchmark: profiles with DCGM's activities, which run from 0 to 1. */
static const table profile = {
    {"benchmark", "argNo", "kernel", "core_frequency", "memory_frequency", "time", "average_power", "DRAMA"},
    "workload=benchmark+argNo,kernel=kernel,sm_mhz=core_frequency,mem_mhz=memory_frequency,time_s=time/1000,"
    "power_w=average_power,dram_active_pct=DRAMA*100,sm_active_pct=SMACT*100,sm_occupancy_pct=SMOCC*100,"
    "fp32_pct=FP32A*100,fp64_pct=FP64A*100,fp16_pct=FP16A*100,tensor_pct=TENSO*100",
    "the table does not say the unit of 'time': taken as ms (--map says another)"};

/* Zeus, summary_power_*.csv: one row per training job and power limit. */
static const table zeus = {
    {"dataset", "network", "batch_size", "optimizer", "power_limit", "time_per_epoch", "average_power"},
    "workload=dataset+network+batch_size+optimizer,power_cap_w=power_limit,time_s=time_per_epoch,power_w=average_power",
    "no clocks: each row is one epoch of training under a power limit"};

static bool has_header(const table *t, const fl_cells *line) {
    for (size_t i = 0; i < NEEDED_MAX && t->needed[i]; i++)
        if (!fl_cells_have(line, t->needed[i]))
            return false;
    return true;
}

static fl_status read_public(const table *t, const char *path, fl_imported *out, fl_diag *d) {
    fl_sweep_map map;
    fl_left_out left;
    fl_status s = fl_sweep_map_parse(t->map, &map, d);
    if (!s)
        s = fl_sweep_read_mapped(path, &map, &out->sweep, &left, d);
    if (!s)
        s = fl_import_left(out, &left, d);
    out->has_sweep = !s;
    if (!s && t->note)
        s = fl_import_note(out, d, "%s", t->note);
    if (!s)
        s = fl_import_note(out, d, "columns are taken as %s", t->map);
    fl_sweep_map_free(&map);
    return s;
}

/* A reader of a table: its header must be the first line. */
#define TABLE_READER(ident, called, text, by, of)                                                                      \
    static bool ident##_header(const fl_cells *line) { return has_header(&ident, line); }                              \
    static bool ident##_detect(const char *path, const char *head, size_t size) {                                      \
        (void)path;                                                                                                    \
        return fl_header_find(head, size, ident##_header) == 0;                                                        \
    }                                                                                                                  \
    static fl_status ident##_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {        \
        (void)o;                                                                                                       \
        return read_public(&ident, path, out, d);                                                                      \
    }                                                                                                                  \
    const fl_reader fl_reader_##ident = {                                                                              \
        .name = called, .what = text, .tool = by, .gives = of, .detect = ident##_detect, .read = ident##_read}

TABLE_READER(dvfs, "gpu-dvfs", "table of GPU-DVFS-Job-Schedule (coreF, memF, time/ms, power/W)",
             "GPU-DVFS-Job-Schedule", FL_GIVES_SETTINGS | FL_GIVES_CLOCKS | FL_GIVES_POWER);
TABLE_READER(profile, "nv-dvfs", "table of NV-DVFS-Benchmark (core_frequency, time, average_power, DCGM's activities)",
             "NV-DVFS-Benchmark", FL_GIVES_SETTINGS | FL_GIVES_CLOCKS | FL_GIVES_POWER);
TABLE_READER(zeus, "zeus", "table of Zeus (power_limit, time_per_epoch, average_power)",
             "Zeus, the trace of its paper of 2023", FL_GIVES_SETTINGS | FL_GIVES_POWER);
