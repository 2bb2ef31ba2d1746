/* Our own files among the others, so that a command takes any of them by one way. */
#include "traces/import/import.h"

#include "traces/import/foreign.h"
#include "traces/io/gunzip.h"
#include "traces/files/kernels.h"
#include "traces/files/tables.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    fl_status status = fl_kernels_read(path, &out->kernels, d);
    if (!status)
        status = check_end(path, d);
    out->has_kernels = !status;
    return status;
}

static bool detect_telemetry(const char *path, const char *head, size_t size) {
    (void)path;
    return begins(head, size, "# foldline-telemetry ");
}

static fl_status read_telemetry(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    (void)o;
    fl_status status = fl_telemetry_read(path, &out->telemetry, d);
    if (!status)
        status = check_end(path, d);
    out->has_telemetry = !status;
    return status;
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
    const fl_status status = fl_sweep_read(path, &out->sweep, d);
    out->has_sweep = !status;
    return status;
}

static fl_status read_requests(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    (void)o;
    fl_status status = fl_requests_read(path, &out->requests, d);
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

const fl_reader fl_reader_kernels = {"foldline-kernels", "canonical kernel trace", detect_kernels, read_kernels};
const fl_reader fl_reader_telemetry = {"foldline-telemetry", "canonical telemetry", detect_telemetry, read_telemetry};
const fl_reader fl_reader_sweep = {"sweep", "table of measured settings", detect_sweep, read_sweep};
const fl_reader fl_reader_requests = {"foldline-requests", "requests to a server of language models", detect_requests,
                                      read_requests};
