/* Any trace file by its path: the list of readers, the cache, and iteration markers put into a trace. */
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/inside.h"
#include "traces/open/open.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- iteration markers ---- */

fl_status fl_trace_marks_add(fl_trace_marks *m, int64_t time_ns, int32_t device, int32_t process, fl_diag *d) {
    if (fl_grow(&m->mark, &m->room, m->count + 1, sizeof *m->mark))
        return fl_no_memory(d, "the markers");
    m->mark[m->count++] = (fl_trace_mark){time_ns, device, process};
    return FL_OK;
}

void fl_trace_marks_free(fl_trace_marks *m) {
    free(m->mark);
    *m = (fl_trace_marks){0};
}

static int three_way(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int by_lane(const void *a, const void *b) {
    const fl_trace_op *x = a, *y = b;
    int order = three_way(x->device, y->device);
    order = order ? order : three_way(x->process, y->process);
    order = order ? order : three_way(x->stream, y->stream);
    return order ? order : three_way(x->start_ns, y->start_ns);
}

static int by_time(const void *a, const void *b) {
    const fl_trace_mark *x = a, *y = b;
    int order = three_way(x->device, y->device);
    order = order ? order : three_way(x->process, y->process);
    return order ? order : three_way(x->time_ns, y->time_ns);
}

/* The longest run of one stream among the sorted ops of that device and process. */
static const fl_trace_op *busiest(const fl_trace_op *op, size_t count, int32_t device, int32_t process,
                                  size_t *length) {
    const fl_trace_op *best = NULL;
    *length = 0;
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && op[next].device == op[i].device && op[next].process == op[i].process &&
                           op[next].stream == op[i].stream;)
            next++;
        if (op[i].device == device && op[i].process == process && next - i > *length) {
            best = &op[i];
            *length = next - i;
        }
    }
    return best;
}

/* The markers of one device and process into its busiest stream; both are sorted. */
static fl_status place_all(const fl_trace_mark *mark, size_t marks, const fl_trace_op *op, size_t ops, uint32_t kind,
                           fl_kernel_trace *t) {
    fl_status s = FL_OK;
    for (size_t i = 0, k = 0; !s && ops && i < marks; i++) {
        while (k < ops && op[k].start_ns < mark[i].time_ns)
            k++;
        const int64_t ended = k ? op[k - 1].end_ns : INT64_MIN, at = ended > mark[i].time_ns ? ended : mark[i].time_ns;
        s = fl_trace_add_op(t, &(fl_trace_op){.start_ns = at,
                                              .end_ns = at,
                                              .launch_ns = INT64_MIN,
                                              .bytes = -1,
                                              .kind = kind,
                                              .device = mark[i].device,
                                              .process = mark[i].process,
                                              .stream = op->stream,
                                              .host_thread = -1,
                                              .type = FL_OP_ITERATION});
    }
    return s;
}

fl_status fl_trace_marks_place(fl_trace_marks *m, fl_kernel_trace *t, fl_diag *d) {
    static const uint32_t NONE[3] = {0};
    if (!m->count)
        return FL_OK;
    const size_t ops = t->op_count;
    fl_trace_op *sorted = calloc(ops + 1, sizeof *sorted);
    const uint32_t kind = fl_trace_add_kind(t, "[iteration]", NONE, NONE);
    fl_status s = sorted && kind != UINT32_MAX ? FL_OK : FL_NO_MEMORY;
    for (size_t i = 0; !s && i < ops; i++)
        sorted[i] = t->ops[i];
    if (!s)
        qsort(sorted, ops, sizeof *sorted, by_lane);
    qsort(m->mark, m->count, sizeof *m->mark, by_time);
    for (size_t i = 0, next; !s && i < m->count; i = next) {
        const fl_trace_mark *first = &m->mark[i];
        size_t length;
        for (next = i + 1;
             next < m->count && m->mark[next].device == first->device && m->mark[next].process == first->process;)
            next++;
        const fl_trace_op *of = busiest(sorted, ops, first->device, first->process, &length);
        s = place_all(first, next - i, of, length, kind, t);
    }
    free(sorted);
    return s ? fl_no_memory(d, "the markers") : FL_OK;
}

/* How a reader is chosen. */

#define ENTRY(ident) &fl_reader_##ident,

const fl_reader *const fl_readers[] = {FL_READERS(ENTRY)};
const size_t fl_readers_count = sizeof fl_readers / sizeof *fl_readers;

enum { READERS_MAX = sizeof fl_readers / sizeof *fl_readers };

/* Read the first bytes, unpacked where the file is gzipped, into head (FL_HEAD + 1 bytes), and a 0 behind them. */
static fl_status head_read(const char *path, char *head, size_t *size, fl_diag *d) {
    fl_gunzip *g = fl_gunzip_open(path, d);
    *size = 0;
    fl_status s = g ? fl_gunzip_read(g, head, FL_HEAD, size, d) : d ? d->status : FL_BAD_INPUT;
    fl_gunzip_close(g);
    head[*size] = '\0';
    return s || *size ? s : fl_fail(d, FL_BAD_INPUT, path, 0, 0, "the file is empty");
}

static void list_names(char *text, size_t room) {
    size_t used = 0;
    for (size_t i = 0; i < fl_readers_count && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", i ? ", " : "", fl_readers[i]->name);
}

static fl_status by_name(const char *name, const fl_reader **reader, fl_diag *d) {
    const char *names[READERS_MAX];
    for (size_t i = 0; i < fl_readers_count; i++) {
        names[i] = fl_readers[i]->name;
        if (strcmp(names[i], name) == 0) {
            *reader = fl_readers[i];
            return FL_OK;
        }
    }
    const char *near = fl_nearest(name, names, fl_readers_count);
    if (near)
        return fl_refuse(d, "unknown format '%.60s', did you mean '%s'?", name, near);
    char list[700];
    list_names(list, sizeof list);
    return fl_refuse(d, "unknown format '%.60s', expected one of %s", name, list);
}

/* What can be said of a file that nobody knows. */
static fl_status unknown(const char *path, const char *head, size_t size, fl_diag *d) {
    static const char OURS[] = "# foldline-";
    if (size >= 2 && (!memcmp(head, "\xff\xfe", 2) || !memcmp(head, "\xfe\xff", 2)))
        return fl_fail(d, FL_BAD_INPUT, path, 1, 1,
                       "the text is UTF-16, expected UTF-8 (PowerShell's '>' writes UTF-16: iconv -f UTF-16 -t UTF-8)");
    if (size >= 3 && !memcmp(head, "\xef\xbb\xbf", 3)) {
        head += 3;
        size -= 3;
    }
    if (size > sizeof OURS && !memcmp(head, OURS, sizeof OURS - 1)) {
        size_t end = 2;
        while (end < size && end < 60 && head[end] != '\n' && head[end] != '\r')
            end++;
        return fl_fail(d, FL_BAD_INPUT, path, 1, 1,
                       "the file says that it is '%.*s', expected 'foldline-kernels 1' or 'foldline-telemetry 1'",
                       (int)(end - 2), head + 2);
    }
    char list[700];
    list_names(list, sizeof list);
    return fl_fail(d, FL_BAD_INPUT, path, 1, 1,
                   "not recognised, expected one of %s (--format says which), or '# foldline-kernels 1' first; "
                   "import --map names the columns of any table",
                   list);
}

/* Find the first reader that detects the file. FL_BAD_INPUT with a list of the formats where none does. */
static fl_status reader_of(const char *path, const char *head, size_t size, const fl_reader **reader, fl_diag *d) {
    for (size_t i = 0; i < fl_readers_count; i++)
        if (fl_readers[i]->detect(path, head, size)) {
            *reader = fl_readers[i];
            return FL_OK;
        }
    return unknown(path, head, size, d);
}

fl_status fl_reader_find(const char *path, const char *name, const fl_reader **reader, fl_diag *d) {
    *reader = NULL;
    if (name)
        return by_name(name, reader, d);
    char head[FL_HEAD + 1];
    size_t size = 0;
    const fl_status status = head_read(path, head, &size, d);
    return status ? status : reader_of(path, head, size, reader, d);
}

const char *fl_reader_missing(const fl_reader *reader) {
    const bool sqlite = reader == &fl_reader_nsys_sqlite || reader == &fl_reader_rocpd;
    return sqlite && !FL_HAS_SQLITE ? "SQLite" : reader == &fl_reader_kineto && !FL_HAS_YAJL ? "YAJL" : NULL;
}

/* Read another tool's file that gives such data. *is: it is one; else nothing was read. */
static fl_status read_other(const char *path, unsigned gives, bool *is, fl_imported *in, fl_left_out *left,
                            fl_diag *d) {
    const fl_reader *reader = NULL;
    fl_diag ignored;
    *in = (fl_imported){0};
    *is = !fl_is_standard(path) && !fl_reader_find(path, NULL, &reader, &ignored) && (reader->gives & gives) &&
          reader != &fl_reader_sweep && reader != &fl_reader_requests;
    fl_status s = *is ? fl_reader_read(reader, path, NULL, in, d) : FL_OK;
    if (s || !*is)
        return s;
    fl_left_out own = fl_left_begin(left);
    for (size_t i = 0; i < in->doubt_count; i++) {
        const size_t used = strlen(own.earlier);
        snprintf(own.earlier + used, sizeof own.earlier - used, "%s%s", used ? "; " : "", in->note[i]);
    }
    if (left)
        *left = own;
    return FL_OK;
}

fl_status fl_sweep_open(const char *path, bool times, fl_sweep *s, fl_left_out *left, fl_diag *d) {
    fl_imported in;
    bool is;
    fl_status status = read_other(path, FL_GIVES_SETTINGS, &is, &in, left, d);
    *s = in.sweep;
    in.sweep = (fl_sweep){0};
    fl_imported_free(&in);
    for (size_t i = 0; !status && is && !times && i < s->row_count; i++)
        if (isnan(s->rows[i].power_w) && isnan(s->rows[i].energy_j))
            status = fl_fail(d, FL_BAD_INPUT, path, s->rows[i].line, 0,
                             "the setting has no power, expected power or energy of each");
    if (status)
        fl_sweep_free(s);
    return status || is ? status : times ? fl_sweep_read_times(path, s, left, d) : fl_sweep_read(path, s, left, d);
}

fl_status fl_requests_open(const char *path, fl_requests *r, fl_left_out *left, fl_diag *d) {
    fl_imported in;
    bool is;
    const fl_status status = read_other(path, FL_GIVES_REQUESTS, &is, &in, left, d);
    *r = in.requests;
    in.requests = (fl_requests){0};
    fl_imported_free(&in);
    return status || is ? status : fl_requests_read(path, r, left, d);
}

/* ---- opening ---- */

/* A database may have changes in a log beside it. */
static bool stands_alone(const char *path) {
    char *beside;
    if (asprintf(&beside, "%s-wal", path) < 0)
        return false;
    bool alone = access(beside, F_OK) != 0;
    free(beside);
    return alone;
}

static _Atomic bool keeps = true;

void fl_trace_keep(bool keep) { keeps = keep; }

/* True where a file is large enough, and of a kind, for a cache beside it, and the setting allows it. */
static bool may_keep(const char *path) {
    fl_cache_stamp now;
    return keeps && !fl_is_standard(path) && fl_cache_stamp_of(path, &now) && now.size >= FL_CACHE_FROM &&
           stands_alone(path);
}

/* Reads the file itself. What is kept must be what was read: the file must not have changed meanwhile, and where its
 * times cannot tell that yet, its bytes are compared. */
static fl_status read_source(const fl_reader *reader, const char *path, const fl_import_options *o, fl_imported *out,
                             fl_cache_key *key, bool *known, fl_diag *d) {
    fl_cache_stamp before, after;
    fl_cache_key first;
    *known = fl_cache_stamp_of(path, &before) && (before.settled || fl_cache_key_make(path, reader->name, o, &first));
    const fl_status status = fl_reader_read(reader, path, o, out, d);
    *known = *known && !status && !out->has_sweep && !out->has_requests &&
             fl_cache_key_make(path, reader->name, o, key) && fl_cache_stamp_of(path, &after) &&
             fl_cache_same_stamp(&before, &after) &&
             (before.settled || memcmp(first.hash, key->hash, sizeof key->hash) == 0);
    if (*known)
        key->stamp = before;
    return status;
}

fl_status fl_trace_open_key(const char *path, const char *format, const fl_import_options *o, fl_imported *out,
                            fl_cache_key *key, bool *known, fl_diag *d) {
    static const fl_import_options ALL = {.device = -1};
    const fl_reader *reader;
    *out = (fl_imported){0};
    *known = false;
    fl_status status = fl_reader_find(path, format, &reader, d);
    if (status)
        return status;
    o = o ? o : &ALL;
    char *cache = NULL;
    if (!may_keep(path) || asprintf(&cache, "%s" FL_CACHE_SUFFIX, path) < 0)
        return fl_reader_read(reader, path, o, out, d);
    *known = fl_cache_load_key(cache, path, reader->name, o, out, key);
    if (!*known) {
        struct stat s;
        status = read_source(reader, path, o, out, key, known, d);
        if (!status && *known && stat(path, &s) == 0)
            (void)fl_cache_save(cache, key, out, s.st_mode);
    }
    free(cache);
    return status;
}

fl_status fl_trace_open(const char *path, const char *format, const fl_import_options *o, fl_imported *out,
                        fl_diag *d) {
    fl_cache_key key;
    bool known;
    return fl_trace_open_key(path, format, o, out, &key, &known, d);
}

/* ---- what a file is, by its first bytes ---- */

/* A row for each type: what a message calls it, and the name in the first line of its files. */
static const struct {
    const char *name, *format;
} types[FL_FILE_TYPES] = {
    [FL_FILE_RECORDING] = {"a recording", NULL},
    [FL_FILE_SWEEP] = {"a sweep", "foldline-sweep"},
    [FL_FILE_PROGRAMS] = {"programs", "foldline-programs"},
    [FL_FILE_PIPELINE] = {"a pipeline", "foldline-pipeline"},
    [FL_FILE_SERVING] = {"a server", "foldline-serving"},
    [FL_FILE_REQUESTS] = {"requests", "foldline-requests"},
    [FL_FILE_KINDS] = {"kernel classes", "foldline-kinds"},
    [FL_FILE_PLAN] = {"a plan", "foldline-plan"},
    [FL_FILE_ARRIVALS] = {"arrivals", "foldline-arrivals"},
    [FL_FILE_LOG] = {"a log of decisions", "foldline-decisions"},
    [FL_FILE_EXPERIMENT] = {"an experiment", NULL},
    [FL_FILE_RESULT] = {"a result", NULL},
};

const char *fl_file_type_name(fl_file_type type) { return types[type].name; }

/* "# foldline-NAME 1" */
static bool says(const char *head, size_t size, const char *format) {
    const size_t n = format ? strlen(format) : 0;
    return n && size > n + 2 && !memcmp(head, "# ", 2) && !memcmp(head + 2, format, n) && head[2 + n] == ' ';
}

static fl_file_type type_of(const fl_reader *reader) {
    if (reader->gives & FL_GIVES_SETTINGS)
        return FL_FILE_SWEEP;
    return reader->gives & FL_GIVES_REQUESTS ? FL_FILE_REQUESTS : FL_FILE_RECORDING;
}

fl_status fl_file_type_find(const char *path, fl_file_type *type, fl_diag *d) {
    static const char KEY[] = "\"foldline_experiment\"", RESULT[] = "workload,policy,energy_j,";
    char head[FL_HEAD + 1];
    size_t size = 0;
    const fl_reader *reader = NULL;
    *type = FL_FILE_RECORDING;
    fl_status s = head_read(path, head, &size, d);
    if (s)
        return s;
    for (size_t i = 0; i < FL_FILE_TYPES; i++)
        if (says(head, size, types[i].format)) {
            *type = (fl_file_type)i;
            return FL_OK;
        }
    if (memmem(head, size, KEY, sizeof KEY - 1)) {
        *type = FL_FILE_EXPERIMENT;
        return FL_OK;
    }
    if (size >= sizeof RESULT - 1 && !memcmp(head, RESULT, sizeof RESULT - 1)) {
        *type = FL_FILE_RESULT;
        return FL_OK;
    }
    s = reader_of(path, head, size, &reader, d);
    if (!s)
        *type = type_of(reader);
    else if (s == FL_BAD_INPUT && fl_name_ends(path, ".json")) { /* its reader says what is wrong with it */
        *type = FL_FILE_EXPERIMENT;
        s = FL_OK;
    }
    return s;
}

bool fl_file_is(const char *path, fl_file_type type) {
    fl_file_type found;
    fl_diag ignored = {0};
    return !fl_file_type_find(path, &found, &ignored) && found == type;
}
