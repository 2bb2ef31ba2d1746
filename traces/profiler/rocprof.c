/* rocprofv3 --kernel-trace (and --memory-copy-trace) CSV, and kernel tables of rocprof v1 and v2. Columns shift between
 * versions and are found by name; times are ns, grids are in work-items. */
#include "traces/profiler/inside.h"

#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    START,
    END,
    NAME,
    DIRECTION, /* of a copy, in place of a name */
    KIND,
    AGENT,
    FROM_AGENT,
    TO_AGENT,
    QUEUE,
    STREAM,
    PROCESS,
    THREAD,
    LAUNCH,
    GRID, /* three, or the product of all in the first */
    GROUP = GRID + 3,
    COLUMNS = GROUP + 3
};

/* Names as v3, v2 and v1 write them; case does not count, nor whether '-' or '_' joins words. */
static const char *const ALIAS[COLUMNS][4] = {
    [START] = {"Start_Timestamp", "BeginNs"},
    [END] = {"End_Timestamp", "EndNs"},
    [NAME] = {"Kernel_Name", "KernelName"},
    [DIRECTION] = {"Direction"},
    [KIND] = {"Kind"},
    [AGENT] = {"Agent_Id", "GPU_ID"},
    [FROM_AGENT] = {"Source_Agent_Id"},
    [TO_AGENT] = {"Destination_Agent_Id"},
    [QUEUE] = {"Queue_Id"},
    [STREAM] = {"Stream_Id"},
    [PROCESS] = {"Process_Id", "PID"},
    [THREAD] = {"Thread_Id", "TID"},
    [LAUNCH] = {"DispatchNs"},
    [GRID] = {"Grid_Size_X", "Grid_Size", "grd"},
    [GRID + 1] = {"Grid_Size_Y"},
    [GRID + 2] = {"Grid_Size_Z"},
    [GROUP] = {"Workgroup_Size_X", "Workgroup_Size", "wgr"},
    [GROUP + 1] = {"Workgroup_Size_Y"},
    [GROUP + 2] = {"Workgroup_Size_Z"},
};

typedef struct loader {
    fl_gather g;
    fl_left_out left;
    fl_progress progress;
    size_t where[COLUMNS], width;
    bool numbered; /* some agent is a plain number or "Agent N": CPUs count too */
    size_t other_kinds, ragged, early;
    int64_t torn;
} loader;

static bool same_name(const char *text, size_t size, const char *name) {
    if (strlen(name) != size)
        return false;
    for (size_t i = 0; i < size; i++)
        if (tolower((unsigned char)(text[i] == '-' ? '_' : text[i])) != tolower((unsigned char)name[i]))
            return false;
    return true;
}

static size_t column_of(const char *text, size_t size) {
    for (size_t c = 0; c < COLUMNS; c++)
        for (size_t a = 0; a < 4 && ALIAS[c][a]; a++)
            if (same_name(text, size, ALIAS[c][a]))
                return c;
    return COLUMNS;
}

static bool is_header(const fl_cells *line) {
    bool seen[COLUMNS + 1] = {false};
    for (size_t i = 0; i < line->count; i++)
        seen[column_of(line->cell[i].text, line->cell[i].size)] = true;
    return seen[START] && seen[END] && (seen[NAME] || seen[DIRECTION]);
}

static bool detect(const char *path, const char *head, size_t size) {
    (void)path;
    return fl_header_find(head, size, is_header) >= 0;
}

static fl_status read_header(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_status status = fl_header_commas(row, d);
    l->width = row->count;
    for (size_t c = 0; c < COLUMNS; c++)
        l->where[c] = SIZE_MAX;
    for (size_t i = 0; i < row->count && !status; i++) {
        size_t c = column_of(row->field[i].text, row->field[i].size);
        if (c == COLUMNS)
            continue;
        if (l->where[c] != SIZE_MAX)
            return FL_FIELD_FAIL(d, row, i, "column '%s' is given twice, expected once", ALIAS[c][0]);
        l->where[c] = i;
    }
    const bool named = l->where[NAME] != SIZE_MAX || l->where[DIRECTION] != SIZE_MAX;
    if (!status && (l->where[START] == SIZE_MAX || l->where[END] == SIZE_MAX || !named))
        status = fl_fail(d, FL_BAD_INPUT, row->file, row->line, 0, "no column '%s', expected one in the header",
                         ALIAS[l->where[START] == SIZE_MAX ? START
                               : l->where[END] == SIZE_MAX ? END
                                                           : NAME][0]);
    return status;
}

static bool present(const loader *l, const fl_csv_row *row, size_t c) {
    return l->where[c] != SIZE_MAX && row->field[l->where[c]].size > 0;
}

/* 1, "Agent 4" or "GPU 3". */
static fl_status read_agent(loader *l, const fl_csv_row *row, size_t c, int32_t *device, fl_diag *d) {
    if (!present(l, row, c))
        return FL_OK;
    const char *text = row->field[l->where[c]].text, *number = text;
    bool plain = isdigit((unsigned char)text[0]), gpu = !plain && !strncasecmp(text, "GPU ", 4);
    number += gpu ? 4 : !plain && !strncasecmp(text, "Agent ", 6) ? 6 : 0;
    size_t digits = strspn(number, "0123456789");
    if (!digits || digits > 9 || number[digits])
        return FL_FIELD_FAIL(d, row, l->where[c], "%s is '%.40s', expected such as 1, 'Agent 4' or 'GPU 3'",
                             ALIAS[c][0], text);
    *device = (int32_t)strtol(number, NULL, 10);
    l->numbered |= !gpu;
    return FL_OK;
}

/* Work-items over those of a group are groups: the grid as the other vendor counts it. */
static fl_status read_sizes(loader *l, const fl_csv_row *row, uint32_t grid[3], uint32_t group[3], fl_diag *d) {
    for (size_t i = 0; i < 3; i++) {
        int64_t items = 1, size = 1;
        fl_status status = FL_OK;
        if (present(l, row, GRID + i))
            status = fl_foreign_int(row, l->where[GRID + i], ALIAS[GRID + i][0], 0, UINT32_MAX, &items, d);
        if (!status && present(l, row, GROUP + i))
            status = fl_foreign_int(row, l->where[GROUP + i], ALIAS[GROUP + i][0], 0, UINT32_MAX, &size, d);
        if (status)
            return status;
        size = size ? size : 1;
        l->ragged += items % size != 0;
        grid[i] = (uint32_t)((items + size - 1) / size);
        group[i] = (uint32_t)size;
    }
    return FL_OK;
}

static fl_status read_number(const loader *l, const fl_csv_row *row, size_t c, int32_t *value, fl_diag *d) {
    int64_t n = 0;
    if (!present(l, row, c))
        return FL_OK;
    fl_status status = fl_foreign_int(row, l->where[c], ALIAS[c][0], 0, INT32_MAX, &n, d);
    *value = (int32_t)n;
    return status;
}

static fl_status read_times(loader *l, const fl_csv_row *row, fl_trace_op *op, fl_diag *d) {
    fl_status status = fl_foreign_int(row, l->where[START], ALIAS[START][0], 0, INT64_MAX, &op->start_ns, d);
    if (!status)
        status = fl_foreign_int(row, l->where[END], ALIAS[END][0], 0, INT64_MAX, &op->end_ns, d);
    if (!status && op->end_ns < op->start_ns)
        return FL_FIELD_WRONG(d, row, l->where[END], "the end %lld is before the start %lld", (long long)op->end_ns,
                              (long long)op->start_ns);
    if (!status && present(l, row, LAUNCH)) {
        status = fl_foreign_int(row, l->where[LAUNCH], ALIAS[LAUNCH][0], 0, INT64_MAX, &op->launch_ns, d);
        if (!status && op->launch_ns > op->start_ns) {
            op->launch_ns = op->start_ns; /* two clocks that are not quite one */
            l->early++;
        }
    }
    return status;
}

/* Whether the row has no end, or no start and end. */
static bool no_end(const loader *l, const fl_csv_row *row) {
    const char *start = row->field[l->where[START]].text, *end = row->field[l->where[END]].text;
    return fl_no_value(start) || fl_no_value(end) || !strcmp(end, "0");
}

static fl_status read_op(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_trace_op op = {.launch_ns = INT64_MIN, .bytes = -1, .host_thread = -1};
    uint32_t grid[3] = {0}, group[3] = {0};
    fl_status status = fl_foreign_width(row, l->width, d);
    if (status)
        return status;
    if (no_end(l, row))
        return fl_left_empty(&l->left, row->file, row->line, row->field[l->where[END]].column, d,
                             "%s is '%.40s', as of a kernel whose end was not written", ALIAS[END][0],
                             row->field[l->where[END]].text);
    bool copy = l->where[NAME] == SIZE_MAX;
    const char *kind = present(l, row, KIND) ? row->field[l->where[KIND]].text : NULL;
    if (kind && strcmp(kind, copy ? "MEMORY_COPY" : "KERNEL_DISPATCH") != 0) {
        l->other_kinds++;
        return FL_OK;
    }
    size_t named = l->where[copy ? DIRECTION : NAME];
    const fl_field *name = &row->field[named];
    char brackets[80];
    if (name->size == 0)
        return FL_FIELD_FAIL(d, row, named, "%s is empty, expected a name", ALIAS[copy ? DIRECTION : NAME][0]);
    status = read_times(l, row, &op, d);
    if (!status)
        status = read_agent(l, row,
                            !copy                             ? AGENT
                            : strstr(name->text, "TO_DEVICE") ? TO_AGENT
                                                              : FROM_AGENT,
                            &op.device, d);
    if (!status && !copy)
        status = read_sizes(l, row, grid, group, d);
    if (!status)
        status = read_number(l, row, present(l, row, STREAM) ? STREAM : QUEUE, &op.stream, d);
    if (!status)
        status = read_number(l, row, PROCESS, &op.process, d);
    if (!status && present(l, row, LAUNCH)) /* without launches threads say nothing */
        status = read_number(l, row, THREAD, &op.host_thread, d);
    if (status)
        return status;
    if (!copy)
        return fl_gather_op(&l->g, name->text, name->size, grid, group, &op, d);
    int size = snprintf(brackets, sizeof brackets, "[%.70s]", name->text);
    return fl_gather_op(&l->g, brackets, (size_t)size, grid, group, &op, d);
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    fl_progress_row(&l->progress, row);
    if (!l->width)
        return read_header(l, row, d);
    if (row->torn) {
        l->torn = row->line;
        return FL_OK;
    }
    if (row->count == l->width && isalpha((unsigned char)row->field[l->where[START]].text[0]) &&
        column_of(row->field[l->where[START]].text, row->field[l->where[START]].size) == START)
        return FL_OK; /* the header once more */
    return fl_left_row(&l->left, read_op(l, row, &l->left.own), d);
}

/* ---- agents to devices ---- */

enum { AGENTS_MAX = 1024 };

static fl_status number_devices(loader *l, const char *path, int32_t only, fl_diag *d) {
    fl_kernel_trace *t = &l->g.out->kernels;
    int32_t agent[AGENTS_MAX];
    size_t count = 0;
    for (size_t i = 0; l->numbered && i < t->op_count; i++) {
        size_t k = 0;
        while (k < count && agent[k] < t->ops[i].device)
            k++;
        if (k < count && agent[k] == t->ops[i].device)
            continue;
        if (count == AGENTS_MAX)
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "more than %d agents", AGENTS_MAX);
        memmove(agent + k + 1, agent + k, (count - k) * sizeof *agent);
        agent[k] = t->ops[i].device;
        count++;
    }
    size_t kept = 0;
    for (size_t i = 0; i < t->op_count; i++) {
        size_t k = 0;
        while (k < count && agent[k] != t->ops[i].device)
            k++;
        t->ops[i].device = l->numbered ? (int32_t)k : t->ops[i].device;
        if (only < 0 || t->ops[i].device == only)
            t->ops[kept++] = t->ops[i];
    }
    t->op_count = kept;
    if (!kept)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no kernels of the device asked for");
    char list[200] = "";
    for (size_t k = 0; k < count && strlen(list) < 180; k++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%d", k ? ", " : "", agent[k]);
    return count ? fl_import_note(l->g.out, d, "agents %s (numbers that CPUs have part in) are devices 0 to %zu", list,
                                  count - 1)
                 : FL_OK;
}

static fl_status add_notes(const loader *l, fl_diag *d) {
    fl_imported *out = l->g.out;
    if (l->other_kinds)
        fl_import_say(out, "%zu rows are neither kernels nor copies: left out", l->other_kinds);
    if (l->ragged)
        fl_import_say(out, "grids in work-items became groups, rounded up in %zu places", l->ragged);
    if (l->early)
        fl_import_say(out, "%zu launches are after their start: taken as at the start", l->early);
    fl_import_torn(out, l->torn);
    fl_import_say(out, "no clocks: kernels are taken at the platform's default (join telemetry for them)");
    if (!out->kernels.has_launches)
        fl_import_say(out, "no launches: gaps before kernels count as host time");
    return fl_import_said(out, d);
}

static fl_status read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    fl_csv_options options = {.trim = true};
    loader *l = calloc(1, sizeof *l);
    if (!l)
        return fl_no_memory(d, path);
    l->g.out = out;
    l->left = fl_left_begin(&l->left);
    fl_progress_start(&l->progress, path, o);
    fl_status status = fl_header_seek(path, is_header,
                                      "one with Kernel_Name, Start_Timestamp and End_Timestamp (or "
                                      "KernelName, BeginNs and EndNs)",
                                      &options.head_lines, d);
    if (!status)
        status = fl_csv_read(path, &options, NULL, on_row, l, d);
    if (!status)
        status = fl_left_end(&l->left, NULL, path, d);
    if (!status)
        status = fl_import_left(out, &l->left, d);
    if (!status && !out->kernels.op_count)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no kernels, expected at least one whole row after the header");
    if (!status)
        status = number_devices(l, path, o->device, d);
    if (!status)
        status = fl_gather_end(&l->g, d);
    if (!status)
        status = add_notes(l, d);
    fl_gather_free(&l->g);
    free(l);
    return status;
}

const fl_reader fl_reader_rocprofv3 = {
    "rocprofv3", "rocprofv3 --kernel-trace CSV, rocprof v1 and v2", "ROCm 4 to 7", FL_GIVES_KERNELS, detect, read};
