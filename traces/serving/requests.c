/* Arrival files and request traces. */
#include "traces/serving/serving.h"

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- arrival files ---- */

#define LAST_NS (INT64_C(26) * 86400 * 1000000000)

static const char *const COLUMN[] = {"t_ns"};

typedef struct loader {
    fl_arrivals a;
    size_t where, width;
} loader;

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    fl_arrivals *a = &l->a;
    if (!l->width) {
        l->width = row->count;
        return fl_columns_find(row, COLUMN, 1, 1, &l->where, d);
    }
    int64_t t;
    fl_status s = fl_columns_width(row, l->width, d);
    if (!s)
        s = fl_field_int(row, l->where, COLUMN[0], 0, LAST_NS, &t, d);
    if (s)
        return s;
    if (a->count && t < a->t_ns[a->count - 1])
        return FL_FIELD_FAIL(d, row, l->where, "t_ns is %" PRId64 " after %" PRId64 ", expected ascending times", t,
                             a->t_ns[a->count - 1]);
    if (fl_grow(&a->t_ns, &a->room, a->count + 1, sizeof *a->t_ns))
        return fl_no_memory(d, row->file);
    a->t_ns[a->count++] = t;
    return FL_OK;
}

fl_status fl_arrivals_read(const char *path, fl_arrivals *a, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-arrivals"};
    loader l = {0};
    fl_status s = fl_csv_read(path, &OPTIONS, &l.a.head, on_row, &l, d);
    if (!s && !l.a.count)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no arrivals, expected at least one row after the header");
    if (s)
        fl_arrivals_free(&l.a);
    *a = l.a;
    return s;
}

void fl_arrivals_free(fl_arrivals *a) {
    fl_head_free(&a->head);
    free(a->t_ns);
    *a = (fl_arrivals){0};
}

/* ---- request traces ---- */

fl_status fl_requests_add(fl_requests *r, const fl_request_row *row, fl_diag *d) {
    if (r->count >= FL_REQUESTS_MOST)
        return fl_fail(d, FL_BAD_INPUT, r->file, row->line, 0, "more than %u requests, expected at most that number",
                       (unsigned)FL_REQUESTS_MOST);
    if (fl_grow(&r->row, &r->room, r->count + 1, sizeof *r->row))
        return fl_no_memory(d, r->file);
    r->row[r->count++] = *row;
    return FL_OK;
}

void fl_requests_free(fl_requests *r) {
    fl_head_free(&r->head);
    for (size_t i = 0; i < r->name_count; i++)
        free(r->names[i]);
    free(r->names);
    free(r->file);
    free(r->row);
    free(r->times);
    *r = (fl_requests){0};
}

int64_t fl_requests_scaled_ns(int64_t t_ns, double scale) {
    const double t = (double)t_ns / scale + 0.5;
    if (scale == 1)
        return t_ns;
    return t < 0x1p63 ? (int64_t)t : INT64_MAX;
}

/* ---- writing ---- */

enum { TIMES = 4 };

static const char *const TIME[TIMES] = {"queued_ns", "scheduled_ns", "first_token_ns", "last_token_ns"};

static int64_t time_of(const fl_request_times *t, int which) {
    const int64_t all[TIMES] = {t->queued_ns, t->scheduled_ns, t->first_token_ns, t->last_token_ns};
    return all[which];
}

static void put_name(FILE *file, const fl_requests *r, uint32_t name) {
    fputc(',', file);
    if (name)
        fl_csv_put(file, r->names[name]);
}

fl_status fl_requests_write(const char *path, const fl_requests *r, fl_diag *d) {
    fl_output *o;
    bool model = false, class = false, cached = false, time[TIMES] = {false};
    const fl_status s = fl_output_begin(path, "foldline-requests", &r->head, &o, d);
    if (s)
        return s;
    for (size_t i = 0; i < r->count; i++) {
        model |= r->row[i].model != 0;
        class |= r->row[i].class != 0;
        cached |= r->row[i].cached_tokens != 0;
        for (int k = 0; r->times && k < TIMES; k++)
            time[k] |= time_of(&r->times[i], k) != INT64_MIN;
    }
    FILE *file = fl_output_file(o);
    fprintf(file, "t_ns,prompt_tokens,output_tokens%s%s%s", model ? ",model" : "", class ? ",class" : "",
            cached ? ",cached_tokens" : "");
    for (int k = 0; k < TIMES; k++)
        if (time[k])
            fprintf(file, ",%s", TIME[k]);
    fputc('\n', file);
    for (size_t i = 0; i < r->count; i++) {
        const fl_request_row *q = &r->row[i];
        fl_put_int(file, q->t_ns);
        fputc(',', file);
        fl_put_int(file, q->prompt_tokens);
        fputc(',', file);
        fl_put_int(file, q->output_tokens);
        if (model)
            put_name(file, r, q->model);
        if (class)
            put_name(file, r, q->class);
        if (cached) {
            fputc(',', file);
            fl_put_int(file, q->cached_tokens);
        }
        for (int k = 0; k < TIMES; k++) {
            const int64_t t = time[k] ? time_of(&r->times[i], k) : INT64_MIN;
            if (time[k])
                fputc(',', file);
            if (t != INT64_MIN)
                fl_put_int(file, t);
        }
        fputc('\n', file);
    }
    return fl_output_commit(o, d);
}

/* ---- reading ---- */

enum { T, PROMPT, OUTPUT, REQUIRED };
enum { MODEL = REQUIRED, CLASS, CACHED, QUEUED, SCHEDULED, FIRST, LAST, COLUMNS };

static const char *const REQUESTS_READ_COLUMN[COLUMNS] = {
    "t_ns",          "prompt_tokens", "output_tokens", "model",          "class",
    "cached_tokens", "queued_ns",     "scheduled_ns",  "first_token_ns", "last_token_ns"};

typedef struct request_loader {
    fl_requests r;
    fl_left_out left;
    size_t where[COLUMNS], width;
    bool measured; /* there is a column of a measured run */
    fl_intern names;
} request_loader;

static fl_status on_header(request_loader *l, const fl_csv_row *row, fl_diag *d) {
    const fl_status s = fl_columns_find(row, REQUESTS_READ_COLUMN, COLUMNS, REQUIRED, l->where, d);
    l->width = row->count;
    for (size_t c = QUEUED; !s && c <= LAST; c++)
        l->measured |= l->where[c] != SIZE_MAX;
    return s;
}

static fl_status read_tokens(const request_loader *l, const fl_csv_row *row, size_t column, int64_t least, int64_t most,
                             uint32_t *tokens, fl_diag *d) {
    int64_t n = 0;
    const fl_status s = fl_field_int(row, l->where[column], REQUESTS_READ_COLUMN[column], least, most, &n, d);
    *tokens = (uint32_t)n;
    return s;
}

static fl_status read_name(request_loader *l, const fl_csv_row *row, size_t column, uint32_t *name, fl_diag *d) {
    *name = 0;
    if (l->where[column] == SIZE_MAX)
        return FL_OK;
    const fl_field *f = &row->field[l->where[column]];
    *name = fl_intern_text(&l->names, &l->r.names, &l->r.name_count, &l->r.name_room, f->text, f->size);
    return *name == UINT32_MAX ? fl_no_memory(d, row->file) : FL_OK;
}

/* Times of a measured run ascend from the arrival on; an empty one is not known. */
static fl_status read_times(request_loader *l, const fl_csv_row *row, int64_t arrival_ns, fl_diag *d) {
    fl_request_times t = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN};
    int64_t *const into[] = {&t.queued_ns, &t.scheduled_ns, &t.first_token_ns, &t.last_token_ns};
    int64_t before = arrival_ns;
    const char *name = REQUESTS_READ_COLUMN[T];
    for (size_t c = QUEUED; c <= LAST; c++) {
        const size_t at = l->where[c];
        if (at == SIZE_MAX || !row->field[at].size)
            continue;
        const fl_status s = fl_field_int(row, at, REQUESTS_READ_COLUMN[c], 0, INT64_MAX, into[c - QUEUED], d);
        if (s)
            return s;
        if (*into[c - QUEUED] < before)
            return FL_FIELD_WRONG(d, row, at, "%s is %" PRId64 ", expected at least %s, %" PRId64,
                                  REQUESTS_READ_COLUMN[c], *into[c - QUEUED], name, before);
        before = *into[c - QUEUED];
        name = REQUESTS_READ_COLUMN[c];
    }
    if (fl_grow(&l->r.times, &l->r.times_room, l->r.count + 1, sizeof t))
        return fl_no_memory(d, row->file);
    l->r.times[l->r.count] = t;
    return FL_OK;
}

/* The column without which a request is none: it has no time, or failed without tokens. SIZE_MAX: the row has all. */
static size_t lacks(const request_loader *l, const fl_csv_row *row) {
    for (size_t c = T; c < REQUIRED; c++) {
        const char *text = row->field[l->where[c]].text;
        if (fl_no_value(text) || (c != T && !strcmp(text, "0")))
            return l->where[c];
    }
    return SIZE_MAX;
}

static fl_status read_request(request_loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_requests *r = &l->r;
    fl_request_row q = {.line = row->line < UINT32_MAX ? (uint32_t)row->line : 0};
    fl_status s = fl_columns_width(row, l->width, d);
    const size_t empty = s || l->left.strict ? SIZE_MAX : lacks(l, row); /* else the checks below say it */
    if (empty != SIZE_MAX)
        return fl_left_empty(&l->left, row->file, row->line, row->field[empty].column, d,
                             "a time or number of tokens is '%.40s', as of a request that failed",
                             row->field[empty].text);
    if (!s)
        s = fl_field_int(row, l->where[T], REQUESTS_READ_COLUMN[T], 0, LAST_NS, &q.t_ns, d);
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
    if (l->left.strict && r->count && q.t_ns < r->row[r->count - 1].t_ns)
        return FL_FIELD_FAIL(d, row, l->where[T], "t_ns is %" PRId64 " after %" PRId64 ", expected ascending times",
                             q.t_ns, r->row[r->count - 1].t_ns);
    q.column = (uint32_t)row->field[l->where[PROMPT]].column;
    s = l->measured ? read_times(l, row, q.t_ns, d) : FL_OK;
    return s ? s : fl_requests_add(r, &q, d);
}

static fl_status on_request_row(void *user, const fl_csv_row *row, fl_diag *d) {
    request_loader *l = user;
    return l->width ? fl_left_row(&l->left, read_request(l, row, &l->left.own), d) : on_header(l, row, d);
}

fl_status fl_requests_order(fl_requests *r, fl_left_out *left, fl_diag *d) {
    int64_t *t_ns = malloc((r->count + 1) * sizeof *t_ns);
    bool *out = malloc((r->count + 1) * sizeof *out), disorder = false;
    fl_status s = t_ns && out ? FL_OK : fl_no_memory(d, r->file);
    for (size_t i = 0; !s && i < r->count; i++) {
        t_ns[i] = r->row[i].t_ns;
        disorder |= i && t_ns[i] < t_ns[i - 1];
    }
    if (!s && disorder && fl_disorder(t_ns, r->count, out) == SIZE_MAX)
        s = fl_no_memory(d, r->file);
    size_t kept = 0;
    for (size_t i = 0; !s && disorder && i < r->count; i++) {
        if (out[i]) {
            fl_fail(&left->own, FL_BAD_INPUT, r->file, r->row[i].line, 0,
                    "the time of the request is out of order, expected ascending times");
            left->rows--; /* it was counted as it came */
            s = fl_left_row(left, fl_of_values(&left->own), d);
            continue;
        }
        if (r->times)
            r->times[kept] = r->times[i];
        r->row[kept++] = r->row[i];
    }
    r->count = disorder && !s ? kept : r->count;
    free(t_ns);
    free(out);
    return s;
}

#define LATE_REQUESTS 10 /* of fewer, the first may well come later than the others take together */
#define LATE_NS INT64_C(1000000000)

/* Time before the first request counts as time of the run. */
static void doubt_late(const fl_requests *r, fl_left_out *left) {
    const int64_t first = r->count ? r->row[0].t_ns : 0, span = r->count ? r->row[r->count - 1].t_ns - first : 0;
    if (r->count >= LATE_REQUESTS && first > LATE_NS && first > span)
        fl_left_doubt(
            left, r->row[0].line,
            "the first request arrives at %.6g s, and the last %.6g s later: the time before counts, with its "
            "idle energy; expected t_ns from the begin of the run",
            (double)first * 1e-9, (double)span * 1e-9);
}

fl_status fl_requests_read(const char *path, fl_requests *r, fl_left_out *left, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-requests", .head_optional = true};
    request_loader l = {.left = fl_left_begin(left)};
    fl_status s = (l.r.file = strdup(fl_input_name(path))) ? FL_OK : fl_no_memory(d, path);
    if (!s && fl_intern_text(&l.names, &l.r.names, &l.r.name_count, &l.r.name_room, "", 0) == UINT32_MAX)
        s = fl_no_memory(d, path);
    if (!s)
        s = fl_csv_read(path, &OPTIONS, &l.r.head, on_request_row, &l, d);
    if (!s)
        s = fl_requests_order(&l.r, &l.left, d);
    if (!s)
        doubt_late(&l.r, &l.left);
    fl_left_earlier(&l.left, fl_head_get(&l.r.head, FL_LEFT_KEY));
    if (!s)
        s = fl_left_end(&l.left, left, path, d);
    if (!s && !l.r.count)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no requests, expected at least one row after the header");
    fl_intern_free(&l.names);
    if (s)
        fl_requests_free(&l.r);
    *r = l.r;
    return s;
}
