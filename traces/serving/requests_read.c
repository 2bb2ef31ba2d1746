#include "traces/io/columns.h"
#include "traces/io/intern.h"
#include "traces/serving/requests.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LAST_NS (INT64_C(26) * 86400 * 1000000000)

enum { T, PROMPT, OUTPUT, REQUIRED };
enum { MODEL = REQUIRED, CLASS, CACHED, QUEUED, SCHEDULED, FIRST, LAST, COLUMNS };

static const char *const COLUMN[COLUMNS] = {"t_ns",           "prompt_tokens", "output_tokens", "model",
                                            "class",          "cached_tokens", "queued_ns",     "scheduled_ns",
                                            "first_token_ns", "last_token_ns"};

typedef struct loader {
    fl_requests r;
    size_t where[COLUMNS], width;
    bool measured; /* there is a column of a measured run */
    fl_intern names;
} loader;

static fl_status on_header(loader *l, const fl_csv_row *row, fl_diag *d) {
    const fl_status s = fl_columns_find(row, COLUMN, COLUMNS, REQUIRED, l->where, d);
    l->width = row->count;
    for (size_t c = QUEUED; !s && c <= LAST; c++)
        l->measured |= l->where[c] != SIZE_MAX;
    return s;
}

static fl_status read_tokens(const loader *l, const fl_csv_row *row, size_t column, int64_t least, int64_t most,
                             uint32_t *tokens, fl_diag *d) {
    int64_t n = 0;
    const fl_status s = fl_field_int(row, l->where[column], COLUMN[column], least, most, &n, d);
    *tokens = (uint32_t)n;
    return s;
}

static fl_status read_name(loader *l, const fl_csv_row *row, size_t column, uint32_t *name, fl_diag *d) {
    *name = 0;
    if (l->where[column] == SIZE_MAX)
        return FL_OK;
    const fl_field *f = &row->field[l->where[column]];
    *name = fl_intern_text(&l->names, &l->r.names, &l->r.name_count, &l->r.name_room, f->text, f->size);
    return *name == UINT32_MAX ? fl_no_memory(d, row->file) : FL_OK;
}

/* Times of a measured run ascend from the arrival on; an empty one is not known. */
static fl_status read_times(loader *l, const fl_csv_row *row, int64_t arrival_ns, fl_diag *d) {
    fl_request_times t = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN};
    int64_t *const into[] = {&t.queued_ns, &t.scheduled_ns, &t.first_token_ns, &t.last_token_ns};
    int64_t before = arrival_ns;
    const char *name = COLUMN[T];
    for (size_t c = QUEUED; c <= LAST; c++) {
        const size_t at = l->where[c];
        if (at == SIZE_MAX || !row->field[at].size)
            continue;
        const fl_status s = fl_field_int(row, at, COLUMN[c], 0, INT64_MAX, into[c - QUEUED], d);
        if (s)
            return s;
        if (*into[c - QUEUED] < before)
            return FL_FIELD_FAIL(d, row, at, "%s is %" PRId64 ", expected at least %s, %" PRId64, COLUMN[c],
                                 *into[c - QUEUED], name, before);
        before = *into[c - QUEUED];
        name = COLUMN[c];
    }
    if (fl_grow(&l->r.times, &l->r.times_room, l->r.count + 1, sizeof t))
        return fl_no_memory(d, row->file);
    l->r.times[l->r.count] = t;
    return FL_OK;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    fl_requests *r = &l->r;
    if (!l->width)
        return on_header(l, row, d);
    fl_request_row q = {.line = row->line < UINT32_MAX ? (uint32_t)row->line : 0};
    fl_status s = fl_columns_width(row, l->width, d);
    if (!s)
        s = fl_field_int(row, l->where[T], COLUMN[T], 0, LAST_NS, &q.t_ns, d);
    if (!s)
        s = read_tokens(l, row, PROMPT, 1, FL_REQUEST_TOKENS_MOST, &q.prompt_tokens, d);
    if (!s)
        s = read_tokens(l, row, OUTPUT, 1, FL_REQUEST_TOKENS_MOST, &q.output_tokens, d);
    if (!s && l->where[CACHED] != SIZE_MAX && row->field[l->where[CACHED]].size)
        s = read_tokens(l, row, CACHED, 0, q.prompt_tokens, &q.cached_tokens, d);
    if (!s)
        s = read_name(l, row, MODEL, &q.model, d);
    if (!s)
        s = read_name(l, row, CLASS, &q.class, d);
    if (s)
        return s;
    if (r->count && q.t_ns < r->row[r->count - 1].t_ns)
        return FL_FIELD_FAIL(d, row, l->where[T], "t_ns is %" PRId64 " after %" PRId64 ", expected ascending times",
                             q.t_ns, r->row[r->count - 1].t_ns);
    q.column = (uint32_t)row->field[l->where[PROMPT]].column;
    s = l->measured ? read_times(l, row, q.t_ns, d) : FL_OK;
    return s ? s : fl_requests_add(r, &q, d);
}

fl_status fl_requests_read(const char *path, fl_requests *r, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-requests", .head_optional = true};
    loader l = {0};
    fl_status s = (l.r.file = strdup(fl_input_name(path))) ? FL_OK : fl_no_memory(d, path);
    if (!s && fl_intern_text(&l.names, &l.r.names, &l.r.name_count, &l.r.name_room, "", 0) == UINT32_MAX)
        s = fl_no_memory(d, path);
    if (!s)
        s = fl_csv_read(path, &OPTIONS, &l.r.head, on_row, &l, d);
    if (!s && !l.r.count)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no requests, expected at least one row after the header");
    fl_intern_free(&l.names);
    if (s)
        fl_requests_free(&l.r);
    *r = l.r;
    return s;
}
