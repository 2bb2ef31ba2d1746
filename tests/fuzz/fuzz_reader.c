/* One reader of traces/open/open.h (FL_FUZZ_READER is its name) against bytes that nobody meant, for libFuzzer. It may
 * not crash, hang or leak; refuses with a message and a zeroed struct, or gives a trace that can be written as a
 * canonical file, read again the same, and packed and unpacked as a cache. */
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/inside.h"
#include "traces/open/open.h"
#include "traces/serving/serving.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[256], copy[300];

/* Ends the program in a way that libFuzzer reports. */
static void broken(const char *what, const char *message) {
    fprintf(stderr, "%s: %s (message '%s')\n", FL_FUZZ_READER, what, message);
    abort();
}

static void check_refusal(const fl_imported *x, fl_status status, const fl_diag *d) {
    static const fl_imported zero;
    if (status != FL_BAD_INPUT)
        broken("bad bytes are bad input, nothing else", d->message);
    if (memcmp(x, &zero, sizeof zero) != 0)
        broken("something was left in the struct", d->message);
    if (d->status != status || d->message[0] == '\0')
        broken("no message", d->message);
    for (const char *c = d->message; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            broken("a control character in the message", d->message);
}

static bool same_ops(const fl_kernel_trace *a, const fl_kernel_trace *b) {
    for (size_t i = 0; i < a->op_count; i++) {
        const fl_trace_op *x = &a->ops[i], *y = &b->ops[i];
        if (x->start_ns != y->start_ns || x->end_ns != y->end_ns || x->launch_ns != y->launch_ns ||
            x->bytes != y->bytes || x->device != y->device || x->process != y->process || x->stream != y->stream ||
            x->host_thread != y->host_thread || x->waits_count != y->waits_count || x->type != y->type)
            return false;
    }
    return true;
}

static void check_kernels(const fl_imported *x) {
    fl_kernel_trace back = {0};
    fl_diag d = {0};
    const fl_kernel_trace *t = &x->kernels;
    if (!t->op_count)
        broken("kernels without a kernel", "");
    if (fl_kernels_write(copy, t, &d) || fl_kernels_read(copy, &back, NULL, &d))
        broken("what was read cannot be written and read again", d.message);
    if (back.op_count != t->op_count || back.wait_count != t->wait_count || !same_ops(t, &back))
        broken("comes back changed", "");
    fl_kernel_trace_free(&back);
    unsigned char *packed = malloc(fl_cache_ops_room(t->op_count));
    fl_trace_op *ops = malloc(t->op_count * sizeof *ops);
    if (packed && ops) {
        fl_kernel_trace from_cache = *t;
        from_cache.ops = ops;
        size_t size = fl_cache_ops_pack(t, packed);
        if (!fl_cache_ops_unpack(packed, size, &from_cache, ops, t->op_count) || !same_ops(t, &from_cache))
            broken("does not come out of the cache", "");
    }
    free(packed);
    free(ops);
}

static void check_telemetry(const fl_imported *x) {
    fl_telemetry back = {0};
    fl_diag d = {0};
    if (fl_telemetry_write(copy, &x->telemetry, &d) || fl_telemetry_read(copy, &back, NULL, &d))
        broken("what was read cannot be written and read again", d.message);
    if (back.row_count != x->telemetry.row_count || back.signal_count != x->telemetry.signal_count)
        broken("comes back changed", "");
    fl_telemetry_free(&back);
}

static void check_requests(const fl_imported *x) {
    fl_requests back = {0};
    fl_diag d = {0};
    const fl_requests *r = &x->requests;
    if (fl_requests_write(copy, r, &d) || fl_requests_read(copy, &back, NULL, &d))
        broken("what was read cannot be written and read again", d.message);
    bool same = back.count == r->count;
    for (size_t i = 0; same && i < r->count; i++) {
        const fl_request_row *a = &r->row[i], *b = &back.row[i];
        same = a->t_ns == b->t_ns && a->prompt_tokens == b->prompt_tokens && a->output_tokens == b->output_tokens &&
               a->cached_tokens == b->cached_tokens && !strcmp(r->names[a->model], back.names[b->model]) &&
               !strcmp(r->names[a->class], back.names[b->class]) &&
               (!back.times || !memcmp(&r->times[i], &back.times[i], sizeof *r->times));
    }
    if (!same)
        broken("comes back changed", "");
    fl_requests_free(&back);
}

static void remove_files(void) {
    unlink(path);
    unlink(copy);
}

static bool write_input(const uint8_t *data, size_t size) {
    if (!path[0]) {
        const char *base = getenv("TMPDIR");
        snprintf(path, sizeof path, "%s/fuzz-reader-XXXXXX", base && *base ? base : "/tmp");
        int fd = mkstemp(path);
        if (fd < 0)
            return false;
        close(fd);
        snprintf(copy, sizeof copy, "%s.copy", path);
        atexit(remove_files);
    }
    FILE *f = fopen(path, "wb");
    return f && (fwrite(data, 1, size, f) == size) + (fclose(f) == 0) == 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const fl_import_options o = {.interval_s = 1, .device = -1};
    const fl_reader *reader = NULL;
    fl_diag d = {0};
    fl_imported x;
    if (!write_input(data, size) || fl_reader_find(path, FL_FUZZ_READER, &reader, &d))
        broken("cannot begin", d.message);
    char *head = malloc(size + 1); /* of its size, so that reading beyond it shows */
    if (head && size) {
        memcpy(head, data, size);
        head[size] = '\0'; /* as fl_reader_find gives it */
        reader->detect(path, head, size);
    }
    free(head);
    memset(&x, 0xaa, sizeof x);
    fl_status status = fl_reader_read(reader, path, &o, &x, &d);
    if (status != FL_OK)
        check_refusal(&x, status, &d);
    else if (d.status != FL_OK)
        broken("a diagnostic without a failure", d.message);
    if (status == FL_OK && x.has_kernels)
        check_kernels(&x);
    if (status == FL_OK && x.has_telemetry)
        check_telemetry(&x);
    if (status == FL_OK && x.has_requests)
        check_requests(&x);
    fl_imported_free(&x);
    return 0;
}
