/* nsys stats -f csv: cuda_gpu_trace (older: gputrace), which has kernels, copies and memory sets in order of start, and
 * cuda_kern_exec_trace, which has kernels with the calls that launched them.
 *
 * The forms: Nsight Systems User Guide 2025.3 (docs.nvidia.com/nsight-systems), the scripts reports/cuda_gpu_trace.py
 * and cuda_kern_exec_trace.py of the installation. The second has API Start, API Dur, Queue Start, Queue Dur, Kernel
 * Start, Kernel Dur, Total Dur (with their unit), PID, TID, DevId, API Function, GridXYZ, BlockXYZ, Kernel Name; a size
 * is one cell of three numbers. It has no streams and no copies. */
#include "traces/profiler/inside.h"

#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { START, DURATION, NAME, DEVICE, GRID, BLOCK = GRID + 3, BYTES = BLOCK + 3, CONTEXT, STREAM, GREEN, LAUNCH };
enum { THREAD = LAUNCH + 1, COLUMNS, REQUIRED = GRID };

/* Of the second report, the context is the process, and GRID and BLOCK are whole sizes. "": it has no such column. */
static const char *const GPU[COLUMNS] = {"Start", "Duration", "Name",  "Device", "GrdX", "GrdY",     "GrdZ", "BlkX",
                                         "BlkY",  "BlkZ",     "Bytes", "Ctx",    "Strm", "GreenCtx", "",     ""};
static const char *const EXEC[COLUMNS] = {
    "Kernel Start", "Kernel Dur", "Kernel Name", "DevId", "GridXYZ", "", "", "BlockXYZ", "", "", "", "PID", "", "",
    "API Start",    "TID"};

typedef struct loader {
    fl_gather g;
    fl_left_out left;
    fl_progress progress;
    enum { OURS, BETWEEN, OTHER } at; /* in the report that is read, after a line that is no row, in another report */
    char source[256];                 /* what the report was made of, in the line above it */
    char others[256];                 /* names of the reports that are not read */
    int64_t header, rest;             /* line of its header; lines of other reports */
    const char *const *column;        /* GPU or EXEC */
    size_t where[COLUMNS], width;
    int power[3]; /* of the units of start, duration and launch: 10^power ns */
    double bytes; /* of one unit of Bytes; NAN: its head names none */
    int32_t only;
    char device_text[128]; /* of the last row */
    int32_t device;
    size_t devices, coarse, green, early;
    int64_t torn;
} loader;

/* "Start (ns)", "Start(nsec)", "Duration (µs)" -> name and unit. The micro sign has two code points. */
static size_t name_size(const char *text) {
    size_t size = strcspn(text, "(");
    while (size && text[size - 1] == ' ')
        size--;
    return size;
}

static bool named(const char *text, size_t size, const char *name) {
    return strlen(name) == size && !strncmp(text, name, size);
}

/* Counts which of the first columns a header has. */
static void see(const char *text, size_t size, const char *const *column, bool seen[REQUIRED]) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(size < 63 ? size : 63), text);
    for (size_t c = 0; c < REQUIRED; c++)
        seen[c] |= named(name, name_size(name), column[c]);
}

static bool has(const fl_cells *line, const char *const *column, size_t count) {
    bool seen[REQUIRED] = {false}, all = true;
    for (size_t i = 0; i < line->count; i++)
        see(line->cell[i].text, line->cell[i].size, column, seen);
    for (size_t c = 0; c < count; c++)
        all &= seen[c];
    return all;
}

/* The header of any trace report. One stream may hold several reports, each below a line that names it. */
static bool is_header(const fl_cells *line) { return has(line, GPU, DEVICE); }
static bool is_gpu_header(const fl_cells *line) { return has(line, GPU, REQUIRED); }
static bool is_exec_header(const fl_cells *line) { return has(line, EXEC, REQUIRED); }

/* That of the report that is read. */
static bool is_ours(const loader *l, const fl_csv_row *row) {
    bool seen[REQUIRED] = {false};
    for (size_t i = 0; i < row->count; i++)
        see(row->field[i].text, row->field[i].size, l->column, seen);
    return seen[START] && seen[DURATION] && seen[NAME] && seen[DEVICE];
}

static bool exec_detect(const char *path, const char *head, size_t size) {
    (void)path;
    return fl_header_find(head, size, is_exec_header) >= 0 && fl_header_find(head, size, is_gpu_header) < 0;
}

static bool detect(const char *path, const char *head, size_t size) {
    return fl_header_find(head, size, is_header) >= 0 && !exec_detect(path, head, size);
}

static int unit_of(const char *text) {
    static const struct {
        const char *name;
        int power;
    } UNIT[] = {{"ns", 0},    {"nsec", 0}, {"us", 3},   {"usec", 3}, {"\xc2\xb5s", 3}, {"\xce\xbcs", 3},
                {"\xb5s", 3}, {"ms", 6},   {"msec", 6}, {"s", 9},    {"sec", 9}};
    const char *open = strchr(text, '(');
    const size_t size = open ? strcspn(open + 1, ")") : 0;
    for (size_t u = 0; open && u < sizeof UNIT / sizeof *UNIT; u++)
        if (named(open + 1, size, UNIT[u].name))
            return UNIT[u].power;
    return -1;
}

static fl_status read_unit(const fl_csv_row *row, size_t i, int *power, fl_diag *d) {
    const char *text = row->field[i].text;
    *power = unit_of(text);
    return *power >= 0
               ? FL_OK
               : FL_FIELD_FAIL(d, row, i, "column '%.40s' has no known unit, expected (ns), (us), (ms) or (s)", text);
}

static fl_status read_bytes_unit(const fl_csv_row *row, size_t i, double *bytes, fl_diag *d) {
    static const struct {
        const char *name;
        double bytes;
    } UNIT[] = {{"B", 1},    {"bytes", 1},     {"KB", 1e3},      {"kB", 1e3},     {"MB", 1e6},
                {"GB", 1e9}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
    const char *text = row->field[i].text, *open = strchr(text, '(');
    size_t size = open ? strcspn(open + 1, ")") : 0;
    if (!open) { /* which matters only where there is a number below it */
        *bytes = (double)NAN;
        return FL_OK;
    }
    for (size_t u = 0; u < sizeof UNIT / sizeof *UNIT; u++)
        if (named(open + 1, size, UNIT[u].name)) {
            *bytes = UNIT[u].bytes;
            return FL_OK;
        }
    return FL_FIELD_FAIL(d, row, i, "column '%.40s' has no known unit, expected (B), (KB), (MB) or (MiB)", text);
}

static fl_status read_header(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_status status = fl_header_commas(row, d);
    l->width = row->count;
    for (size_t c = 0; c < COLUMNS; c++)
        l->where[c] = SIZE_MAX;
    for (size_t i = 0; i < row->count && !status; i++) {
        const char *text = row->field[i].text;
        size_t size = name_size(text), c = 0;
        while (c < COLUMNS && !named(text, size, l->column[c]) && !(c == BYTES && named(text, size, "Size")))
            c++;
        if (c == COLUMNS || !size)
            continue;
        if (l->where[c] != SIZE_MAX)
            return FL_FIELD_FAIL(d, row, i, "column '%s' is given twice, expected once", l->column[c]);
        l->where[c] = i;
        if (c == START || c == DURATION || c == LAUNCH)
            status = read_unit(row, i, &l->power[c == LAUNCH ? 2 : c], d);
        if (c == BYTES)
            status = read_bytes_unit(row, i, &l->bytes, d);
    }
    for (size_t c = 0; c < REQUIRED && !status; c++)
        if (l->where[c] == SIZE_MAX)
            status = FL_FIELD_FAIL(d, row, row->count - 1, "column '%s' is missing", l->column[c]);
    return status;
}

static bool present(const loader *l, const fl_csv_row *row, size_t c) {
    return l->where[c] != SIZE_MAX && row->field[l->where[c]].size > 0 && !fl_no_value(row->field[l->where[c]].text);
}

/* "NVIDIA GeForce RTX 5090 (0)": the number in the last brackets; the name goes to the head. */
static fl_status read_device(loader *l, const fl_csv_row *row, fl_diag *d) {
    const fl_field *f = &row->field[l->where[DEVICE]];
    int64_t number = 0;
    if (l->column == EXEC) {
        const fl_status s = fl_foreign_int(row, l->where[DEVICE], EXEC[DEVICE], 0, 99999, &number, d);
        l->device = (int32_t)number;
        return s;
    }
    if (!strcmp(f->text, l->device_text) && l->devices)
        return FL_OK;
    const char *open = strrchr(f->text, '(');
    int64_t device = 0;
    size_t digits = open ? strspn(open + 1, "0123456789") : 0;
    if (!digits || digits > 5 || strcmp(open + 1 + digits, ")") != 0)
        return FL_FIELD_FAIL(d, row, l->where[DEVICE],
                             "device is '%.60s', expected a name and its number, such as 'NVIDIA A100 (0)'", f->text);
    for (size_t i = 0; i < digits; i++)
        device = device * 10 + (open[1 + i] - '0');
    l->device = (int32_t)device;
    l->devices++;
    snprintf(l->device_text, sizeof l->device_text, "%s", f->text);
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)(open - f->text < 127 ? open - f->text : 127), f->text);
    return fl_foreign_head(&l->g.out->kernels.head, "device", name, d);
}

/* " 148    1    1" */
static fl_status read_size(const loader *l, const fl_csv_row *row, size_t c, uint32_t size[3], fl_diag *d) {
    long long n[3] = {1, 1, 1};
    int end = 0;
    const char *text = present(l, row, c) ? row->field[l->where[c]].text : "1 1 1";
    if (sscanf(text, "%10lld%10lld%10lld%n", &n[0], &n[1], &n[2], &end) != 3 || text[end])
        return FL_FIELD_FAIL(d, row, l->where[c], "%s is '%.40s', expected three numbers", EXEC[c], text);
    for (size_t i = 0; i < 3; i++) {
        if (n[i] < 0 || n[i] > UINT32_MAX)
            return FL_FIELD_WRONG(d, row, l->where[c], "%s is '%.40s', expected sizes", EXEC[c], text);
        size[i] = (uint32_t)n[i];
    }
    return FL_OK;
}

static fl_status read_sizes(const loader *l, const fl_csv_row *row, bool kernel, uint32_t size[6], fl_diag *d) {
    for (size_t i = 0; i < 6; i++) {
        int64_t n = 0;
        if (present(l, row, GRID + i)) {
            fl_status status = fl_foreign_int(row, l->where[GRID + i], GPU[GRID + i], 0, UINT32_MAX, &n, d);
            if (status)
                return status;
        } else if (kernel && l->where[GRID + i] != SIZE_MAX) {
            return FL_FIELD_FAIL(d, row, l->where[GRID + i],
                                 "%s is empty, expected a number for a kernel (names of copies stand in [brackets])",
                                 GPU[GRID + i]);
        }
        size[i] = (uint32_t)n;
    }
    return FL_OK;
}

static fl_status read_bytes(loader *l, const fl_csv_row *row, int64_t *bytes, fl_diag *d) {
    double value = 0;
    size_t i = l->where[BYTES];
    fl_status status = fl_foreign_real(row, i, row->field[i].text, GPU[BYTES], &value, d);
    if (status)
        return status;
    if (isnan(l->bytes) && value > 0)
        return FL_FIELD_FAIL(d, row, i, "Bytes is '%.40s' and its column names no unit, expected Bytes (MB) or such",
                             row->field[i].text);
    value *= isnan(l->bytes) ? 0 : l->bytes;
    if (!(value >= 0 && value < 9e18))
        return FL_FIELD_WRONG(d, row, i, "Bytes is '%.40s', expected a size", row->field[i].text);
    *bytes = value > 0 ? (int64_t)llround(value) : -1; /* 0.000 MB is something below the last digit */
    l->coarse += l->bytes > 1;
    return FL_OK;
}

static fl_status read_op(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_trace_op op = {.launch_ns = INT64_MIN, .bytes = -1, .host_thread = -1};
    const fl_field *name = &row->field[row->count > l->where[NAME] ? l->where[NAME] : 0];
    int64_t duration = 0, context = 0, stream = 0, thread = -1;
    uint32_t size[6];
    fl_status status = fl_foreign_width(row, l->width, d);
    if (!status && (fl_no_value(row->field[l->where[START]].text) || fl_no_value(row->field[l->where[DURATION]].text)))
        return fl_left_empty(&l->left, row->file, row->line, row->field[l->where[START]].column, d,
                             "Start or Duration has no value");
    if (!status)
        status = fl_foreign_ns(row, l->where[START], "Start", l->power[START], &op.start_ns, d);
    if (!status)
        status = fl_foreign_ns(row, l->where[DURATION], "Duration", l->power[DURATION], &duration, d);
    if (!status && !op.start_ns && !duration) /* CUPTI's way to say that it has no times */
        return fl_left_empty(&l->left, row->file, row->line, row->field[l->where[START]].column, d,
                             "Start and Duration are 0, as of a kernel without times");
    if (!status && op.start_ns > INT64_MAX - duration)
        status = FL_FIELD_WRONG(d, row, l->where[DURATION], "Start and Duration are too large to add");
    if (!status && name->size == 0)
        status = FL_FIELD_FAIL(d, row, l->where[NAME], "Name is empty, expected that of a kernel or copy");
    if (!status)
        status = read_device(l, row, d);
    if (!status)
        status = l->column == EXEC
                     ? read_size(l, row, GRID, size, d)
                     : read_sizes(l, row, !(name->text[0] == '[' && name->text[name->size - 1] == ']'), size, d);
    if (!status && l->column == EXEC)
        status = read_size(l, row, BLOCK, size + 3, d);
    if (!status && present(l, row, LAUNCH))
        status = fl_foreign_ns(row, l->where[LAUNCH], EXEC[LAUNCH], l->power[2], &op.launch_ns, d);
    if (!status && present(l, row, THREAD))
        status = fl_foreign_int(row, l->where[THREAD], EXEC[THREAD], 0, INT32_MAX, &thread, d);
    if (!status && present(l, row, BYTES))
        status = read_bytes(l, row, &op.bytes, d);
    if (!status && present(l, row, CONTEXT))
        status = fl_foreign_int(row, l->where[CONTEXT], l->column[CONTEXT], 0, INT32_MAX, &context, d);
    if (!status && present(l, row, STREAM))
        status = fl_foreign_int(row, l->where[STREAM], "Strm", 0, INT32_MAX, &stream, d);
    if (status || (l->only >= 0 && l->only != l->device))
        return status;
    l->green += present(l, row, GREEN);
    if (op.launch_ns > op.start_ns) { /* rounded */
        op.launch_ns = op.start_ns;
        l->early++;
    }
    op.host_thread = op.launch_ns == INT64_MIN ? -1 : (int32_t)thread;
    op.end_ns = op.start_ns + duration;
    op.device = l->device;
    op.process = (int32_t)context;
    op.stream = (int32_t)stream;
    return fl_gather_op(&l->g, name->text, name->size, size, size + 3, &op, d);
}

/* "Processing [r.sqlite] with [.../reports/cuda_api_trace.py]...", " ** CUDA API Summary (cuda_api_sum):": the name of
 * the report below such a line. */
static bool report_name(const char *text, char name[64]) {
    const char *with = strstr(text, "] with ["), *open = strrchr(text, '(');
    const char *from = with ? with + 8 : strstr(text, "**") && open ? open + 1 : NULL;
    if (!from)
        return false;
    size_t size = strcspn(from, with ? "]" : ")");
    for (size_t i = size; with && i-- > 0;)
        if (from[i] == '/' || from[i] == '\\') {
            size -= i + 1;
            from += i + 1;
            break;
        }
    size -= size > 3 && !strncmp(from + size - 3, ".py", 3) ? 3 : 0;
    snprintf(name, 64, "%.*s", (int)(size < 63 ? size : 63), from);
    return size > 0;
}

/* A line between reports, which says of what the next one is made. */
static void take_source(loader *l, const char *text) {
    char name[64] = "";
    const size_t used = strlen(l->others);
    const bool other = report_name(text, name);
    if (strncmp(text, "Processing [", 12) == 0)
        snprintf(l->source, sizeof l->source, "%.*s", (int)strcspn(text + 12, "]"), text + 12);
    const bool own = l->column == EXEC ? strstr(name, "kern_exec_trace") != NULL
                                       : strstr(name, "gpu_trace") != NULL || strstr(name, "gputrace") != NULL;
    if (other && !own && used + strlen(name) + 3 < sizeof l->others)
        snprintf(l->others + used, sizeof l->others - used, "%s%s", used ? ", " : "", name);
}

/* Begins a table of kernels, or finds its header again. */
static fl_status begin(loader *l, const fl_csv_row *row, fl_diag *d) {
    if (l->width && l->at != OURS)
        return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1,
                       "a second report on GPUs%s%s, the first is in line %lld, expected one recording",
                       *l->source ? " of " : "", l->source, (long long)l->header);
    l->at = OURS;
    if (l->width)
        return FL_OK;
    l->header = row->line;
    return read_header(l, row, d);
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    const char first = row->field[0].size ? row->field[0].text[0] : '\0';
    const bool numbers = !first || strchr("0123456789+-.", first); /* rows begin with a time */
    fl_progress_row(&l->progress, row);
    if (is_ours(l, row))
        return begin(l, row, d);
    if (!l->width && !l->rest && fl_header_commas(row, d))
        return FL_BAD_INPUT;
    if (!l->width || (!numbers && !row->torn && row->count != l->width))
        l->at = row->count > 2 || l->at == OTHER ? OTHER : BETWEEN; /* a header has several names */
    else if (l->at == BETWEEN && numbers && row->count == l->width)
        l->at = OURS; /* after a line of other text, no header came */
    if (l->at != OURS) {
        l->rest++;
        take_source(l, row->field[0].text);
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
    if (l->devices > 1 && l->only < 0)
        fl_import_say(out, "several devices: the head names the first");
    if (l->coarse)
        fl_import_say(out, "bytes of copies are rounded to the digits of their column; 0 is not known");
    if (l->where[GRID] == SIZE_MAX)
        fl_import_say(out, "no grids: kernels are taken to fill the device");
    if (l->green)
        fl_import_say(out, "%zu ops ran in green contexts, which had part of the SMs: not carried", l->green);
    fl_import_torn(out, l->torn);
    fl_import_say(out, "no clocks: kernels are taken at the platform's default (join telemetry for them)");
    if (l->early)
        fl_import_say(out, "%zu launches are after their start: taken as at the start", l->early);
    fl_import_say(out, l->column == EXEC ? "no streams: kernels that overlap are put on several"
                                         : "no launches: gaps before kernels count as host time");
    fl_import_say(out, l->column == EXEC ? "no copies, and no waits of the host (nsys export -t sqlite has them)"
                                         : "no process numbers: contexts stand for them");
    return fl_import_said(out, d);
}

static fl_status read_report(const char *path, const char *const *column, const fl_import_options *o, fl_imported *out,
                             fl_diag *d) {
    fl_csv_options options = {.trim = true};
    loader *l = calloc(1, sizeof *l);
    if (!l)
        return fl_no_memory(d, path);
    l->column = column;
    l->g.out = out;
    l->left = fl_left_begin(&l->left);
    l->only = o->device;
    fl_progress_start(&l->progress, path, o);
    fl_status status = FL_OK;
    if (column == GPU)
        status = fl_header_seek(path, is_header, "one of cuda_gpu_trace, such as 'Start (ns),Duration (ns),...,Name'",
                                &options.head_lines, d);
    if (!status)
        status = fl_csv_read(path, &options, NULL, on_row, l, d);
    if (!status && !l->width)
        status = fl_fail(d, FL_BAD_INPUT, path, options.head_lines + 1, 1,
                         "the report has no column Device, as one on calls of the host, expected one on GPUs "
                         "(nsys stats -r cuda_gpu_trace)");
    if (!status)
        status = fl_left_end(&l->left, NULL, path, d);
    if (!status)
        status = fl_import_left(out, &l->left, d);
    if (!status && !out->kernels.op_count)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no kernels, expected at least one whole row after the header");
    if (!status)
        status = fl_gather_end(&l->g, d);
    if (!status)
        status = add_notes(l, d);
    fl_gather_free(&l->g);
    free(l);
    return status;
}

static fl_status read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    return read_report(path, GPU, o, out, d);
}

static fl_status exec_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    return read_report(path, EXEC, o, out, d);
}

const fl_reader fl_reader_nsys_csv = {
    "nsys-csv", "nsys stats -r cuda_gpu_trace -f csv", "Nsight Systems 2020 to 2026", FL_GIVES_KERNELS, detect, read};
const fl_reader fl_reader_nsys_exec = {"nsys-exec",
                                       "nsys stats -r cuda_kern_exec_trace -f csv",
                                       "Nsight Systems 2023 to 2026",
                                       FL_GIVES_KERNELS | FL_GIVES_LAUNCHES,
                                       exec_detect,
                                       exec_read};
