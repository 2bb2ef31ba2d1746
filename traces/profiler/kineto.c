/* The PyTorch profiler's JSON (Kineto): kernels, copies and fills of the GPUs, the launches, waits and event records of
 * the host. Times are microseconds with a fraction, whatever displayTimeUnit says, counted from baseTimeNanoseconds
 * where that is given. Old files write "Kernel", new ones "kernel"; AMD has no grid and no block. */
#include "traces/profiler/inside.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum category { OTHER, KERNEL, COPY, CALL, SYNC } category;

enum {
    BOARDS_MAX = 1024,
    NUMBER_FROM = 1 << 20
}; /* boards of further processes have numbers from there until the end */

typedef struct board { /* of the rows of a GPU: its number, and pid, which is that number too unless files were merged
                        */
    int64_t pid;
    int32_t device, number;
} board;

typedef struct loader {
    board board[BOARDS_MAX];
    size_t boards, further; /* further: boards whose number another process has */
    const char *path;
    const fl_import_options *o;
    fl_imported *out;
    fl_gather gather;
    fl_left_out left;
    fl_host_log log;
    size_t no_grid, kernels, other_device, long_ids;
} loader;

static category category_of(const char *text) {
    static const struct {
        const char *text;
        category is;
    } KNOWN[] = {{"kernel", KERNEL},           {"Kernel", KERNEL},    {"gpu_memcpy", COPY},
                 {"gpu_memset", COPY},         {"Memcpy", COPY},      {"Memset", COPY},
                 {"cuda_runtime", CALL},       {"cuda_driver", CALL}, {"Runtime", CALL},
                 {"hip_runtime", CALL},        {"xpu_runtime", CALL}, {"cuda_sync", SYNC},
                 {"privateuse1_runtime", CALL}};
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (strcmp(text, KNOWN[i].text) == 0)
            return KNOWN[i].is;
    return OTHER;
}

static uint32_t correlation_of(loader *l, const fl_kineto_event *e) {
    int64_t id = e->known[FL_KINETO_CORRELATION] ? e->number[FL_KINETO_CORRELATION] : 0;
    l->long_ids += id > UINT32_MAX;
    return id > 0 && id <= UINT32_MAX ? (uint32_t)id : 0;
}

/* Ids of the operating system and of drivers need not fit; only which are the same counts. */
static int32_t thread_of(const fl_kineto_event *e) { return (int32_t)(e->number[FL_KINETO_TID] & INT32_MAX); }

static fl_status get_id(const loader *l, const fl_kineto_event *e, fl_kineto_key first, fl_kineto_key second,
                        const char *what, int32_t *id, fl_diag *d) {
    fl_kineto_key k = e->known[first] ? first : second;
    if (!e->known[k])
        return fl_fail(d, FL_BAD_INPUT, l->path, e->line, e->column, "event '%.200s' has no %s", e->name, what);
    if (e->number[k] < 0 || e->number[k] > INT32_MAX) {
        fl_fail(d, FL_BAD_INPUT, l->path, e->line, e->column, "event '%.200s': %s is %" PRId64 ", expected 0 to %d",
                e->name, what, e->number[k], INT32_MAX);
        return fl_of_values(d);
    }
    *id = (int32_t)e->number[k];
    return FL_OK;
}

/* What an event lacks of its times; NULL: nothing. CUPTI writes 0 and 0 for a kernel of which it has none. An end that
 * was never written is 0, so it lies at or before the begin of time. */
static const char *lacks(const fl_kineto_event *e) {
    const int64_t start = e->number[FL_KINETO_TS], length = e->number[FL_KINETO_DUR];
    if (!e->known[FL_KINETO_TS] || !e->known[FL_KINETO_DUR])
        return e->known[FL_KINETO_TS] ? "no dur" : e->known[FL_KINETO_DUR] ? "no ts" : "neither ts nor dur";
    if (!start && !length)
        return "neither ts nor dur (both are 0)";
    return length < 0 && start <= -length ? "no end (it was never written)" : NULL;
}

static fl_status leave(loader *l, const fl_kineto_event *e, fl_diag *d) {
    return fl_left_empty(&l->left, l->path, e->line, e->column, d, "event '%.80s' has %s", e->name, lacks(e));
}

static fl_status get_times(const loader *l, const fl_kineto_event *e, int64_t *start, int64_t *end, fl_diag *d) {
    for (fl_kineto_key k = FL_KINETO_TS; k <= FL_KINETO_DUR; k++)
        if (e->number[k] < 0) {
            fl_fail(d, FL_BAD_INPUT, l->path, e->line, e->column, "event '%.200s': %s is %.6g us, expected at least 0",
                    e->name, k == FL_KINETO_TS ? "ts" : "dur", (double)e->number[k] * 1e-3);
            return fl_of_values(d);
        }
    *start = e->number[FL_KINETO_TS];
    if (*start > INT64_MAX - e->number[FL_KINETO_DUR]) {
        fl_fail(d, FL_BAD_INPUT, l->path, e->line, e->column, "event '%.200s' ends after the year 2262", e->name);
        return fl_of_values(d);
    }
    *end = *start + e->number[FL_KINETO_DUR];
    return FL_OK;
}

/* Where files of several ranks were merged, each may call its GPU 0: their pid tells them apart. */
static void tell_apart(loader *l, const fl_kineto_event *e, int32_t *device) {
    const int64_t pid = e->number[FL_KINETO_PID];
    bool taken = false;
    if (!e->known[FL_KINETO_PID] || !e->known[FL_KINETO_DEVICE])
        return;
    for (size_t i = 0; i < l->boards; i++) {
        if (l->board[i].device == *device && l->board[i].pid == pid) {
            *device = l->board[i].number;
            return;
        }
        taken |= l->board[i].device == *device;
    }
    if (l->boards == BOARDS_MAX)
        return;
    const int32_t number = taken ? NUMBER_FROM + (int32_t)l->further++ : *device;
    l->board[l->boards++] = (board){pid, *device, number};
    *device = number;
}

static fl_status add_op(loader *l, const fl_kineto_event *e, bool kernel, fl_diag *d) {
    fl_trace_op op = {.launch_ns = INT64_MIN, .bytes = -1, .host_thread = -1};
    if (e->wrong_size) {
        fl_fail(d, FL_BAD_INPUT, l->path, e->line, e->column,
                "event '%.200s': a size of its grid or block is out of range, expected 0 to %u", e->name, UINT32_MAX);
        return fl_of_values(d);
    }
    if (!e->has_name || !e->name_size)
        return fl_fail(d, FL_BAD_INPUT, l->path, e->line, e->column, "event without a name, expected that of a kernel");
    if (lacks(e))
        return leave(l, e, d);
    fl_status s = get_times(l, e, &op.start_ns, &op.end_ns, d);
    if (!s)
        s = get_id(l, e, FL_KINETO_DEVICE, FL_KINETO_PID, "device", &op.device, d);
    if (!s)
        s = get_id(l, e, FL_KINETO_STREAM, FL_KINETO_TID, "stream", &op.stream, d);
    if (!s && e->known[FL_KINETO_CONTEXT])
        s = get_id(l, e, FL_KINETO_CONTEXT, FL_KINETO_CONTEXT, "context", &op.process, d);
    if (s)
        return s;
    if (l->o->device >= 0 && op.device != l->o->device) {
        l->other_device++;
        return FL_OK;
    }
    tell_apart(l, e, &op.device);
    op.waits_first = correlation_of(l, e); /* until fl_host_log_join */
    if (e->known[FL_KINETO_BYTES] && e->number[FL_KINETO_BYTES] >= 0)
        op.bytes = e->number[FL_KINETO_BYTES];
    if (kernel) {
        l->kernels++;
        l->no_grid += !e->grid_count;
    }
    static const uint32_t NONE[3] = {0};
    bool brackets = e->name[0] == '[' && e->name[e->name_size - 1] == ']';
    if (kernel && !brackets)
        return fl_gather_op(&l->gather, e->name, e->name_size, e->grid, e->block, &op, d);
    if (!kernel && brackets)
        return fl_gather_op(&l->gather, e->name, e->name_size, NONE, NONE, &op, d);
    /* Brackets are what tells copies from kernels in a trace. */
    char shorter[1024];
    int size = snprintf(shorter, sizeof shorter, kernel ? "kernel %.1000s" : "[%.1000s]", e->name);
    return fl_gather_op(&l->gather, shorter, (size_t)size, kernel ? e->grid : NONE, kernel ? e->block : NONE, &op, d);
}

static fl_status add_call(loader *l, const fl_kineto_event *e, fl_diag *d) {
    fl_call_kind kind = fl_call_kind_of(e->name, e->name_size);
    fl_host_wait w = {.thread = thread_of(e), .correlation = correlation_of(l, e)};
    if (kind == FL_CALL_OTHER)
        return FL_OK;
    const bool launches = kind == FL_CALL_LAUNCH || kind == FL_CALL_COPY || kind == FL_CALL_RECORD;
    const bool waits = kind == FL_CALL_COPY || kind == FL_CALL_WAIT || kind == FL_CALL_WAIT_ALL;
    /* A launch needs no end. */
    if (launches && w.correlation && e->known[FL_KINETO_TS] && e->number[FL_KINETO_TS] > 0 &&
        fl_host_log_call(&l->log, (fl_host_call){e->number[FL_KINETO_TS], w.correlation, w.thread}))
        return fl_no_memory(d, l->path);
    if (!waits || (!w.correlation && kind == FL_CALL_COPY))
        return FL_OK;
    if (lacks(e))
        return leave(l, e, d);
    w.kind = kind == FL_CALL_COPY ? FL_WAIT_COPY : kind == FL_CALL_WAIT ? FL_WAIT_SOME : FL_WAIT_ALL;
    const fl_status s = get_times(l, e, &w.start_ns, &w.end_ns, d);
    return s ? s : !fl_host_log_wait(&l->log, w) ? FL_OK : fl_no_memory(d, l->path);
}

static fl_status add_sync(loader *l, const fl_kineto_event *e, fl_diag *d) {
    static const char *const KIND[] = {[FL_SYNC_CONTEXT] = "Context Sync",
                                       [FL_SYNC_STREAM] = "Stream Sync",
                                       [FL_SYNC_EVENT] = "Event Sync",
                                       [FL_SYNC_STREAM_WAIT] = "Stream Wait Event"};
    uint8_t kind = 0;
    while (kind <= FL_SYNC_STREAM_WAIT && strcmp(e->sync, KIND[kind]) != 0)
        kind++;
    uint32_t id = correlation_of(l, e);
    if (kind > FL_SYNC_STREAM_WAIT || !id || !e->known[FL_KINETO_TS])
        return FL_OK;
    const int64_t *n = e->number;
    int64_t on = e->known[FL_KINETO_WAIT_STREAM] ? n[FL_KINETO_WAIT_STREAM] : -1, record = n[FL_KINETO_WAIT_RECORD];
    if (n[FL_KINETO_DEVICE] < 0 || n[FL_KINETO_DEVICE] > INT32_MAX || n[FL_KINETO_STREAM] > INT32_MAX ||
        n[FL_KINETO_CONTEXT] < 0 || n[FL_KINETO_CONTEXT] > INT32_MAX || on > INT32_MAX || record > UINT32_MAX)
        return FL_OK;
    fl_sync_detail s = {.ns = n[FL_KINETO_TS],
                        .correlation = id,
                        .record = record > 0 ? (uint32_t)record : 0,
                        .device = (int32_t)n[FL_KINETO_DEVICE],
                        .process = (int32_t)n[FL_KINETO_CONTEXT],
                        .stream = (int32_t)n[FL_KINETO_STREAM],
                        .on = on < 0 ? -1 : (int32_t)on,
                        .kind = kind};
    return !fl_host_log_detail(&l->log, s) ? FL_OK : fl_no_memory(d, l->path);
}

static fl_status on_event(void *user, const fl_kineto_event *e, fl_diag *d) {
    loader *l = user;
    if (e->phase != 'X') /* a complete event: it has a length */
        return FL_OK;
    switch (category_of(e->category)) {
    case KERNEL:
        return fl_left_row(&l->left, add_op(l, e, true, &l->left.own), d);
    case COPY:
        return fl_left_row(&l->left, add_op(l, e, false, &l->left.own), d);
    case CALL:
        return fl_left_row(&l->left, add_call(l, e, &l->left.own), d);
    case SYNC:
        return add_sync(l, e, d);
    default:
        return FL_OK;
    }
}

/* ---- the whole ---- */

static fl_status add_base(loader *l, int64_t base, fl_diag *d) {
    fl_kernel_trace *t = &l->out->kernels;
    for (size_t i = 0; i < t->op_count; i++) {
        fl_trace_op *op = &t->ops[i];
        if (op->end_ns > INT64_MAX - base)
            return fl_fail(d, FL_BAD_INPUT, l->path, 0, 0,
                           "baseTimeNanoseconds %" PRId64 " puts an event after the year 2262", base);
        op->start_ns += base;
        op->end_ns += base;
        op->launch_ns += op->launch_ns == INT64_MIN ? 0 : base;
    }
    return FL_OK;
}

static fl_status note_what_is_missing(const loader *l, const fl_kineto_file *file, fl_diag *d) {
    const int64_t base = file->base_ns;
    if (file->slashes)
        fl_import_say(l->out, "%zu backslashes in texts are not escaped, as torch on Windows writes them: read as '/'",
                      file->slashes);
    if (file->unknown)
        fl_import_say(l->out, "%zu numbers are nan or inf: taken as not known", file->unknown);
    if (file->open_end)
        fl_import_say(l->out, "the list of events has no end: the last ones may be missing");
    fl_import_say(l->out, "no clocks: kernels are taken at the platform's default (join telemetry for them)");
    if (base)
        fl_import_say(l->out, "times are nanoseconds since 1970: baseTimeNanoseconds %" PRId64 " was added", base);
    if (l->no_grid)
        fl_import_say(l->out, "%zu of %zu kernels have no grid and block: taken to fill the device", l->no_grid,
                      l->kernels);
    if (l->long_ids)
        fl_import_say(l->out, "%zu correlation ids have more than 32 bits: not joined", l->long_ids);
    if (l->other_device)
        fl_import_say(l->out, "%zu ops of other devices left out, as asked", l->other_device);
    return fl_import_said(l->out, d);
}

/* Gives boards of further processes the next numbers. Their correlation ids may be those of other ranks. */
static void number_boards(loader *l) {
    fl_kernel_trace *t = &l->out->kernels;
    int32_t next = 0;
    for (size_t i = 0; i < l->boards; i++)
        next = l->board[i].number < NUMBER_FROM && l->board[i].number >= next ? l->board[i].number + 1 : next;
    for (size_t i = 0; l->further && i < l->boards; i++)
        if (l->board[i].number >= NUMBER_FROM)
            fl_import_say(l->out,
                          "device %d of process %lld is another GPU than that of the process before: numbered %d",
                          l->board[i].device, (long long)l->board[i].pid, next + l->board[i].number - NUMBER_FROM);
    for (size_t i = 0; l->further && i < t->op_count; i++) {
        t->ops[i].waits_first = 0;
        if (t->ops[i].device >= NUMBER_FROM)
            t->ops[i].device += next - NUMBER_FROM;
    }
    if (!l->further)
        return;
    fl_host_log_free(&l->log);
    l->log = (fl_host_log){0};
    fl_import_say(l->out,
                  "several processes in one file: launches are not joined, since their ids are of each process");
}

static fl_status finish_ops(loader *l, const fl_kineto_file *file, fl_diag *d) {
    fl_kernel_trace *t = &l->out->kernels;
    const fl_status left = fl_left_end(&l->left, NULL, l->path, d);
    if (left || (fl_import_left(l->out, &l->left, d)))
        return left ? left : FL_NO_MEMORY;
    if (!t->op_count && l->other_device)
        return fl_fail(d, FL_BAD_INPUT, l->path, 0, 0, "all %zu kernels and copies are of other devices than %d",
                       l->other_device, l->o->device);
    if (!t->op_count)
        return fl_fail(d, FL_BAD_INPUT, l->path, 0, 0,
                       "no kernels and no copies among the events, expected a recording of the GPU");
    number_boards(l);
    fl_status s = l->gather.disorder ? fl_ops_sort(t, d) : FL_OK;
    l->gather.disorder = false; /* no order to be noted: nobody expects one of this format */
    if (!s)
        s = fl_gather_end(&l->gather, d);
    if (!s)
        s = fl_host_log_join(&l->log, l->out, d);
    if (!s && file->base_ns)
        s = add_base(l, file->base_ns, d);
    for (size_t i = 0; !s && i < file->device_count; i++)
        if (file->device[i].id == t->ops[0].device && file->device[i].name[0])
            s = fl_foreign_head(&t->head, "device", file->device[i].name, d);
    if (!s && file->has_rank && !l->further)
        s = fl_import_rank(l->out, file->rank, d);
    return s ? s : note_what_is_missing(l, file, d);
}

static fl_status read_kineto(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    loader *l = calloc(1, sizeof *l);
    fl_kineto_file file;
    if (!l)
        return fl_no_memory(d, path);
    l->path = path;
    l->o = o;
    l->out = out;
    l->left = fl_left_begin(&l->left);
    l->gather.out = out;
    const fl_kineto_reader r = {.event = on_event, .user = l, .progress = o->progress, .progress_user = o->user};
    fl_status status = fl_kineto_events(path, &r, &file, d);
    if (!status)
        status = finish_ops(l, &file, d);
    fl_gather_free(&l->gather);
    fl_host_log_free(&l->log);
    free(l);
    return status;
}

static bool detect_kineto(const char *path, const char *head, size_t size) {
    (void)path;
    if (!head || !size)
        return false;
    size_t at = size >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (at < size && memchr(" \t\r\n", head[at], 4))
        at++;
    if (at == size || (head[at] != '{' && head[at] != '['))
        return false;
    const char *text = head + at;
    size -= at;
    return memmem(text, size, "\"traceEvents\"", 13) || memmem(text, size, "\"schemaVersion\"", 15) ||
           (memmem(text, size, "\"ph\"", 4) && memmem(text, size, "\"ts\"", 4));
}

const fl_reader fl_reader_kineto = {"kineto",
                                    "PyTorch profiler (Kineto) JSON, also gzipped",
                                    "PyTorch 1.8 to 2.12, CUDA and ROCm",
                                    FL_GIVES_KERNELS | FL_GIVES_LAUNCHES,
                                    detect_kineto,
                                    read_kineto};
