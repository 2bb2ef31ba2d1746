/* nsys stats -r cuda_kern_exec_trace -f csv: kernels with the calls that launched them.
 *
 * The form: Nsight Systems User Guide 2025.3, "CUDA Kernel Launch & Exec Time Trace" (docs.nvidia.com/nsight-systems,
 * the script reports/cuda_kern_exec_trace.py of the installation): API Start, API Dur, Queue Start, Queue Dur, Kernel
 * Start, Kernel Dur, Total Dur (with their unit), PID, TID, DevId, API Function, GridXYZ, BlockXYZ, Kernel Name. Queue
 * cells are empty where the kernel began before the call returned. A size is one cell of three numbers. It has no
 * streams and no copies. */
#include "traces/profiler/inside.h"

#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { API, START, DURATION, PID, TID, DEVICE, GRID, BLOCK, NAME, COLUMNS };

static const char *const COLUMN[COLUMNS] = {"API Start", "Kernel Start", "Kernel Dur", "PID",        "TID",
                                            "DevId",     "GridXYZ",      "BlockXYZ",   "Kernel Name"};

typedef struct loader {
    fl_gather g;
    fl_left_out left;
    fl_progress progress;
    size_t where[COLUMNS], width;
    int power[3];
    bool inside; /* in the table, not in another report */
    char others[256];
    int64_t header, rest, torn;
    int32_t only;
    size_t early, graphs;
} loader;

static size_t base_size(const char *text) {
    size_t size = strcspn(text, "(");
    while (size && text[size - 1] == ' ')
        size--;
    return size;
}

static bool is_header(const fl_csv_row *row) {
    bool api = false, kernel = false;
    for (size_t i = 0; i < row->count; i++) {
        api |= !strncmp(row->field[i].text, COLUMN[API], strlen(COLUMN[API]));
        kernel |= !strncmp(row->field[i].text, COLUMN[START], strlen(COLUMN[START]));
    }
    return api && kernel;
}

static bool detect(const char *path, const char *head, size_t size) {
    (void)path;
    return fl_nsys_exec_alone(head, size);
}

static fl_status read_header(loader *l, const fl_csv_row *row, fl_diag *d) {
    l->width = row->count;
    l->header = row->line;
    for (size_t c = 0; c < COLUMNS; c++)
        l->where[c] = SIZE_MAX;
    for (size_t i = 0; i < row->count; i++) {
        const char *text = row->field[i].text;
        size_t c = 0;
        while (c < COLUMNS && (strlen(COLUMN[c]) != base_size(text) || strncmp(COLUMN[c], text, base_size(text)) != 0))
            c++;
        if (c == COLUMNS)
            continue;
        l->where[c] = i;
        if (c <= DURATION && (l->power[c] = fl_nsys_unit(text)) < 0)
            return FL_FIELD_FAIL(d, row, i, "column '%.40s' has no known unit, expected (ns), (us), (ms) or (s)", text);
    }
    for (size_t c = 0; c < COLUMNS; c++)
        if (l->where[c] == SIZE_MAX && c != GRID && c != BLOCK)
            return FL_FIELD_FAIL(d, row, row->count - 1, "column '%s' is missing", COLUMN[c]);
    return FL_OK;
}

/* " 148    1    1" */
static fl_status read_size(const loader *l, const fl_csv_row *row, size_t c, uint32_t size[3], fl_diag *d) {
    long long n[3] = {1, 1, 1};
    int end = 0;
    if (l->where[c] == SIZE_MAX || fl_no_value(row->field[l->where[c]].text))
        return FL_OK;
    const char *text = row->field[l->where[c]].text;
    if (sscanf(text, "%10lld%10lld%10lld%n", &n[0], &n[1], &n[2], &end) != 3 || text[end])
        return FL_FIELD_FAIL(d, row, l->where[c], "%s is '%.40s', expected three numbers", COLUMN[c], text);
    for (size_t i = 0; i < 3; i++) {
        if (n[i] < 0 || n[i] > UINT32_MAX)
            return FL_FIELD_WRONG(d, row, l->where[c], "%s is '%.40s', expected sizes", COLUMN[c], text);
        size[i] = (uint32_t)n[i];
    }
    return FL_OK;
}

static fl_status read_op(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_trace_op op = {.bytes = -1};
    int64_t duration = 0, n[3] = {0};
    uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
    fl_status s = fl_foreign_width(row, l->width, d);
    if (!s && (fl_no_value(row->field[l->where[START]].text) || fl_no_value(row->field[l->where[DURATION]].text)))
        return fl_left_empty(&l->left, row->file, row->line, row->field[l->where[START]].column, d,
                             "Kernel Start or Kernel Dur has no value");
    if (!s)
        s = fl_foreign_ns(row, l->where[START], COLUMN[START], l->power[START], &op.start_ns, d);
    if (!s)
        s = fl_foreign_ns(row, l->where[DURATION], COLUMN[DURATION], l->power[DURATION], &duration, d);
    op.launch_ns = INT64_MIN;
    if (!s && !fl_no_value(row->field[l->where[API]].text))
        s = fl_foreign_ns(row, l->where[API], COLUMN[API], l->power[API], &op.launch_ns, d);
    if (!s && op.start_ns > INT64_MAX - duration)
        return FL_FIELD_WRONG(d, row, l->where[DURATION], "Kernel Start and Kernel Dur are too large to add");
    for (size_t i = 0; i < 3 && !s; i++)
        s = fl_foreign_int(row, l->where[PID + i], COLUMN[PID + i], 0, INT32_MAX, &n[i], d);
    if (!s)
        s = read_size(l, row, GRID, grid, d);
    if (!s)
        s = read_size(l, row, BLOCK, block, d);
    const fl_field *name = s ? NULL : &row->field[l->where[NAME]];
    if (!s && !name->size)
        s = FL_FIELD_FAIL(d, row, l->where[NAME], "Kernel Name is empty, expected a name");
    if (s || (l->only >= 0 && l->only != n[2]))
        return s;
    if (op.launch_ns > op.start_ns) { /* rounded, or two clocks that are not quite one */
        op.launch_ns = op.start_ns;
        l->early++;
    }
    op.end_ns = op.start_ns + duration;
    op.process = (int32_t)n[0];
    op.host_thread = op.launch_ns == INT64_MIN ? -1 : (int32_t)n[1];
    op.device = (int32_t)n[2];
    return fl_gather_op(&l->g, name->text, name->size, grid, block, &op, d);
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    char name[64];
    fl_progress_row(&l->progress, row);
    if (is_header(row)) {
        if (l->width && !l->inside)
            return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1,
                           "a second cuda_kern_exec_trace, the first is in line %lld, expected one recording",
                           (long long)l->header);
        l->inside = true;
        return l->width ? FL_OK : read_header(l, row, d);
    }
    const char first = row->field[0].size ? row->field[0].text[0] : '\0';
    l->inside &= row->torn || row->count == l->width || (first && strchr("0123456789", first));
    if (!l->inside) {
        const size_t used = strlen(l->others);
        l->rest++;
        if (fl_nsys_report_name(row->field[0].text, name) && !strstr(name, "kern_exec_trace") &&
            used + strlen(name) + 3 < sizeof l->others)
            snprintf(l->others + used, sizeof l->others - used, "%s%s", used ? ", " : "", name);
        return FL_OK;
    }
    if (row->torn) {
        l->torn = row->line;
        return FL_OK;
    }
    return fl_left_row(&l->left, read_op(l, row, &l->left.own), d);
}

static fl_status add_notes(const loader *l, fl_diag *d) {
    fl_imported *out = l->g.out;
    if (l->rest)
        fl_import_say(
            out, "the table in line %lld is read; %lld lines are of other reports%s%s%s, or no rows: left out",
            (long long)l->header, (long long)l->rest, *l->others ? " (" : "", l->others, *l->others ? ")" : "");
    if (l->early)
        fl_import_say(out, "%zu launches are after their start: taken as at the start", l->early);
    fl_import_torn(out, l->torn);
    fl_import_say(out, "no streams: kernels that overlap are put on several");
    fl_import_say(out, "no copies, and no waits of the host (nsys export -t sqlite has them)");
    fl_import_say(out, "no clocks: kernels are taken at the platform's default (join telemetry for them)");
    return fl_import_said(out, d);
}

static fl_status read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    fl_csv_options options = {.trim = true};
    loader *l = calloc(1, sizeof *l);
    if (!l)
        return fl_no_memory(d, path);
    l->g.out = out;
    l->left = fl_left_begin(&l->left);
    l->only = o->device;
    fl_progress_start(&l->progress, path, o);
    fl_status s = fl_csv_read(path, &options, NULL, on_row, l, d);
    if (!s)
        s = fl_left_end(&l->left, NULL, path, d);
    if (!s)
        s = fl_import_left(out, &l->left, d);
    if (!s && !out->kernels.op_count)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no kernels, expected at least one whole row after the header");
    if (!s)
        s = fl_gather_end(&l->g, d);
    if (!s)
        s = add_notes(l, d);
    fl_gather_free(&l->g);
    free(l);
    return s;
}

const fl_reader fl_reader_nsys_exec = {"nsys-exec",
                                       "nsys stats -r cuda_kern_exec_trace -f csv",
                                       "Nsight Systems 2023 to 2026",
                                       FL_GIVES_KERNELS | FL_GIVES_LAUNCHES,
                                       detect,
                                       read};
