/* Tables of measured settings that are public, each known by its header and read by a map (import.h). Their units
 * are their owners'; what a table does not say is a note. */
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/import/inside.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/serving/serving.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    return fl_cells_have(line, "workload") && fl_cells_have(line, "time_s") &&
           (fl_cells_have(line, "sm_mhz") || fl_cells_have(line, "power_cap_w"));
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

const fl_reader fl_reader_kernels = {"foldline-kernels",   "canonical kernel trace",
                                     "foldline, format 1", FL_GIVES_KERNELS | FL_GIVES_LAUNCHES | FL_GIVES_CLOCKS,
                                     detect_kernels,       read_kernels};
const fl_reader fl_reader_telemetry = {"foldline-telemetry",
                                       "canonical telemetry",
                                       "foldline, format 1",
                                       FL_GIVES_READINGS | FL_GIVES_TIMES | FL_GIVES_CLOCKS | FL_GIVES_POWER |
                                           FL_GIVES_USE | FL_GIVES_ENERGY,
                                       detect_telemetry,
                                       read_telemetry};
const fl_reader fl_reader_sweep = {"sweep",
                                   "table of measured settings",
                                   "foldline, format 1",
                                   FL_GIVES_SETTINGS | FL_GIVES_CLOCKS | FL_GIVES_POWER | FL_GIVES_ENERGY,
                                   detect_sweep,
                                   read_sweep};
const fl_reader fl_reader_requests = {"foldline-requests",  "requests to a server of language models",
                                      "foldline, format 1", FL_GIVES_REQUESTS | FL_GIVES_PREFIXES | FL_GIVES_LATENCIES,
                                      detect_requests,      read_requests};

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
    "gpu-dvfs-wide",    "table of GPU-DVFS-Dataset (a column per clock; performance, and power beside it)",
    "GPU-DVFS-Dataset", FL_GIVES_SETTINGS | FL_GIVES_CLOCKS | FL_GIVES_POWER,
    wide_detect,        wide_read};

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

/* ---- trajectories of executed controllers, row by row ---- */

enum { T_S, DEMAND_W, POWER_W, SET_W, REQUIRED, SM_MHZ = REQUIRED, COMMAND_W, CAP_W, COLUMNS };
static const char *const COLUMN[COLUMNS] = {"t_s", "demand_w", "power_w", "set_w", "sm_mhz", "command_w", "cap_w"};

enum { TARGET, DRAWN, CLOCK, SIGNALS };
static const char *const SIGNAL[SIGNALS] = {"target_w", "power_w", "sm_mhz"};

#define LAST_S (26.0 * 86400)

typedef struct loader {
    fl_decisions r;
    fl_decisions_room room;
    size_t where[COLUMNS], width;
} loader;

static fl_status begin(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_decisions *r = &l->r;
    l->width = row->count;
    fl_status s = fl_columns_find(row, COLUMN, COLUMNS, REQUIRED, l->where, d);
    if (s)
        return s;
    r->gpu_count = 1;
    r->signal = calloc(SIGNALS, sizeof *r->signal);
    r->control = calloc(1, sizeof *r->control);
    if (!r->signal || !r->control || !(r->control[0] = strdup("power_limit_w")))
        return fl_no_memory(d, row->file);
    r->control_count = 1;
    for (; r->signal_count < SIGNALS; r->signal_count++)
        if (!(r->signal[r->signal_count] = strdup(SIGNAL[r->signal_count])))
            return fl_no_memory(d, row->file);
    return FL_OK;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    fl_decisions *r = &l->r;
    double v[COLUMNS];
    if (!l->width)
        return begin(l, row, d);
    fl_status s = fl_columns_width(row, l->width, d);
    if (!s)
        s = fl_field_real(row, l->where[T_S], COLUMN[T_S], 0, LAST_S, &v[T_S], d);
    for (size_t i = DEMAND_W; !s && i < COLUMNS; i++)
        s = i >= REQUIRED && l->where[i] == SIZE_MAX
                ? FL_OK
                : fl_field_real_or_nan(row, l->where[i], COLUMN[i], 0, i == SM_MHZ ? FL_SM_MHZ_MOST : FL_WATTS_MOST,
                                       &v[i], d);
    if (s)
        return s;
    const size_t now = r->step_count, host = now * 2 * SIGNALS, gpu = host + SIGNALS;
    const int64_t t = (int64_t)(v[T_S] * 1e9 + 0.5);
    if (now && t < r->t_ns[now - 1])
        return FL_FIELD_FAIL(d, row, l->where[T_S], "t_s is %.9g after %.9g, expected ascending times", v[T_S],
                             (double)r->t_ns[now - 1] * 1e-9);
    if (fl_decisions_grow(r, &l->room, now + 1, 1))
        return fl_no_memory(d, row->file);
    for (size_t i = 0; i < SIGNALS; i++) {
        r->value[host + i] = r->value[gpu + i] = NAN;
        r->fresh[host + i] = r->fresh[gpu + i] = false;
    }
    r->value[host + TARGET] = v[DEMAND_W];
    r->fresh[host + TARGET] = true;
    r->value[gpu + DRAWN] = v[POWER_W];
    r->fresh[gpu + DRAWN] = !now || v[POWER_W] != r->value[gpu - 2 * SIGNALS + DRAWN];
    r->value[gpu + CLOCK] = l->where[SM_MHZ] == SIZE_MAX ? (double)NAN : v[SM_MHZ];
    r->fresh[gpu + CLOCK] = !isnan(r->value[gpu + CLOCK]);
    r->set[now * 2] = NAN;
    r->set[now * 2 + 1] = v[SET_W];
    r->t_ns[now] = t;
    r->delay_ns[now] = -1;
    r->line[now] = row->line;
    r->step_count++;
    return FL_OK;
}

fl_status fl_trajectory_read(const char *path, fl_decisions *r, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-trajectory", .head_optional = true};
    loader l = {0};
    fl_status s = fl_csv_read(path, &OPTIONS, &l.r.head, on_row, &l, d);
    if (!s && !l.r.step_count)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no rows, expected at least one after the header");
    if (s)
        fl_decisions_free(&l.r);
    *r = l.r;
    return s;
}
