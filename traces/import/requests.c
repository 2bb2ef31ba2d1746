/* Requests to servers of language models, as other tools record them: what their readers share, and two tables.
 *
 * Azure's LLM inference traces: github.com/Azure/AzurePublicDataset, AzureLLMInferenceTrace_conv.csv and _code.csv of
 * 2023, _1week.csv of 2024 (CC-BY 4.0; Patel et al., "Splitwise: Efficient generative LLM inference using phase
 * splitting", ISCA 2024): TIMESTAMP,ContextTokens,GeneratedTokens. The time is a UTC date with up to seven digits of a
 * second, or none. Rows without prompt or output tokens have no step to simulate.
 *
 * BurstGPT: github.com/HPMLL/BurstGPT (README of 2024 and 2025): Timestamp in s from midnight of the first day on,
 * Model, Request tokens, Response tokens (0: the request failed), Total tokens, Log Type; releases of 2025 add Session
 * ID and Elapsed time, in s from the request to its last token. */
#include "traces/import/inside.h"

#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAST_NS (INT64_C(26) * 86400 * 1000000000)

/* ---- rows of requests ---- */

fl_status fl_request_rows_begin(fl_request_rows *r, const char *path, fl_imported *out, fl_diag *d) {
    *r = (fl_request_rows){.out = out, .path = path, .left = fl_left_begin(&r->left)};
    out->requests.file = strdup(fl_input_name(path));
    uint32_t none;
    return out->requests.file ? fl_request_rows_name(r, "", &none, d) : fl_no_memory(d, path);
}

fl_status fl_request_rows_name(fl_request_rows *r, const char *text, uint32_t *name, fl_diag *d) {
    fl_requests *q = &r->out->requests;
    *name = fl_intern_text(&r->names, &q->names, &q->name_count, &q->name_room, text, strlen(text));
    return *name == UINT32_MAX ? fl_no_memory(d, r->path) : FL_OK;
}

fl_status fl_request_rows_add(fl_request_rows *r, const fl_request_row *row, const fl_request_times *times,
                              fl_diag *d) {
    static const fl_request_times NONE = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN};
    fl_requests *q = &r->out->requests;
    if (!row->prompt_tokens || !row->output_tokens)
        return fl_left_empty(&r->left, r->path, row->line, row->column ? row->column : 1, d,
                             "the request has no prompt or output tokens, so no step to simulate");
    if (fl_grow(&q->times, &q->times_room, q->count + 1, sizeof *q->times))
        return fl_no_memory(d, r->path);
    q->times[q->count] = times ? *times : NONE;
    r->measured |= times != NULL;
    return fl_requests_add(q, row, d);
}

typedef struct both {
    fl_request_row row;
    fl_request_times times;
    size_t order;
} both;

static int by_time(const void *a, const void *b) {
    const both *x = a, *y = b;
    return x->row.t_ns != y->row.t_ns ? (x->row.t_ns < y->row.t_ns ? -1 : 1)
                                      : (x->order > y->order) - (x->order < y->order);
}

/* For a list that is in another order than that of time. */
static fl_status sort(fl_requests *q, fl_diag *d) {
    both *all = malloc((q->count + 1) * sizeof *all);
    if (!all)
        return fl_no_memory(d, q->file);
    for (size_t i = 0; i < q->count; i++)
        all[i] = (both){q->row[i], q->times[i], i};
    qsort(all, q->count, sizeof *all, by_time);
    for (size_t i = 0; i < q->count; i++) {
        q->row[i] = all[i].row;
        q->times[i] = all[i].times;
    }
    free(all);
    return FL_OK;
}

static void shift(int64_t *t, int64_t by) { *t -= *t == INT64_MIN ? 0 : by; }

/* The first request comes at 0. A trace spans 26 days at most; what comes later is left out, or a contradiction. */
static fl_status count_from_first(fl_request_rows *r, bool may_be_long, fl_diag *d) {
    fl_requests *q = &r->out->requests;
    const int64_t first = q->count ? q->row[0].t_ns : 0;
    size_t kept = 0;
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < q->count; i++) {
        fl_request_times *m = &q->times[i];
        q->row[i].t_ns -= first;
        shift(&m->queued_ns, first);
        shift(&m->scheduled_ns, first);
        shift(&m->first_token_ns, first);
        shift(&m->last_token_ns, first);
        if (q->row[i].t_ns > LAST_NS && !may_be_long) {
            fl_fail(&r->left.own, FL_BAD_INPUT, r->path, q->row[i].line, 1,
                    "the request comes %.4g days after the first, expected at most 26 days after the first",
                    (double)q->row[i].t_ns / 86400e9);
            r->left.rows--; /* it was counted as it came */
            s = fl_left_row(&r->left, fl_of_values(&r->left.own), d);
        }
        if (q->row[i].t_ns > LAST_NS)
            continue;
        q->times[kept] = *m;
        q->row[kept++] = q->row[i];
    }
    if (kept < q->count && may_be_long)
        fl_import_lost(r->out, "%zu of %zu requests come later than 26 days after the first: left out", q->count - kept,
                       q->count);
    q->count = s ? q->count : kept;
    return s;
}

fl_status fl_request_rows_end(fl_request_rows *r, bool sorted, bool may_be_long, fl_diag *d) {
    fl_requests *q = &r->out->requests;
    fl_status s = sorted ? fl_requests_order(q, &r->left, d) : sort(q, d);
    if (!s)
        s = count_from_first(r, may_be_long, d);
    if (!s)
        s = fl_left_end(&r->left, NULL, r->path, d);
    if (!s)
        s = fl_import_left(r->out, &r->left, d);
    if (!s && !q->count)
        s = fl_fail(d, FL_BAD_INPUT, r->path, 0, 0, "no requests with tokens, expected at least one");
    if (!s && !r->measured) {
        free(q->times);
        q->times = NULL;
        q->times_room = 0;
    }
    r->out->has_requests = !s;
    return s;
}

void fl_request_rows_free(fl_request_rows *r) { fl_intern_free(&r->names); }

/* ---- tables ---- */

enum { T, PROMPT, OUTPUT, REQUIRED, MODEL = REQUIRED, TYPE, ELAPSED, COLUMNS };

static const char *const AZURE[COLUMNS] = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"};
static const char *const BURST[COLUMNS] = {"Timestamp", "Request tokens", "Response tokens",
                                           "Model",     "Log Type",       "Elapsed time"};

typedef struct loader {
    fl_request_rows r;
    fl_progress progress;
    const char *const *column;
    size_t where[COLUMNS], width;
    int64_t torn;
} loader;

static bool has_columns(const fl_cells *line, const char *const *column) {
    return fl_cells_have(line, column[T]) && fl_cells_have(line, column[PROMPT]) && fl_cells_have(line, column[OUTPUT]);
}

static bool azure_header(const fl_cells *line) { return has_columns(line, AZURE) && line->count == REQUIRED; }
static bool burst_header(const fl_cells *line) { return has_columns(line, BURST); }

static fl_status read_tokens(const loader *l, const fl_csv_row *row, size_t c, uint32_t *tokens, fl_diag *d) {
    int64_t n = 0;
    const char *text = row->field[l->where[c]].text, *point = strchr(text, '.');
    if (l->column == BURST && point && point[1 + strspn(point + 1, "0")] == '\0') { /* some releases write "12.0" */
        const char digits[] = {'0', '\0'};
        char whole[24];
        snprintf(whole, sizeof whole, "%.*s", (int)(point - text < 23 ? point - text : 23), text);
        const fl_field field = {*whole ? whole : digits, strlen(whole), row->field[l->where[c]].column};
        const fl_csv_row one = {row->file, row->line, &field, 1, false};
        const fl_status s = fl_field_int(&one, 0, l->column[c], 0, FL_REQUEST_TOKENS_MOST, &n, d);
        *tokens = (uint32_t)n;
        return s;
    }
    const fl_status s = fl_field_int(row, l->where[c], l->column[c], 0, FL_REQUEST_TOKENS_MOST, &n, d);
    *tokens = (uint32_t)n;
    return s;
}

static fl_status read_time(const loader *l, const fl_csv_row *row, int64_t *ns, fl_diag *d) {
    const char *text = row->field[l->where[T]].text;
    fl_time at;
    if (l->column == BURST)
        return fl_foreign_ns(row, l->where[T], BURST[T], 9, ns, d);
    if (!fl_time_parse(text, &at) || at.of_day)
        return FL_FIELD_FAIL(d, row, l->where[T],
                             "TIMESTAMP is '%.40s', expected a time such as 2023-11-16 18:15:46.6805900", text);
    *ns = at.ns;
    return FL_OK;
}

static fl_status read_request(loader *l, const fl_csv_row *row, fl_diag *d) {
    const fl_requests *all = &l->r.out->requests;
    fl_request_row q = {.line = row->line < UINT32_MAX ? (uint32_t)row->line : 0,
                        .column = (uint32_t)row->field[l->where[PROMPT]].column};
    fl_request_times m = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN};
    int64_t elapsed = 0;
    for (size_t c = 0; c < REQUIRED; c++)
        if (fl_no_value(row->field[l->where[c]].text))
            return fl_left_empty(&l->r.left, row->file, row->line, 1, d, "a cell of the request has no value");
    fl_status s = read_time(l, row, &q.t_ns, d);
    if (!s)
        s = read_tokens(l, row, PROMPT, &q.prompt_tokens, d);
    if (!s)
        s = read_tokens(l, row, OUTPUT, &q.output_tokens, d);
    if (!s && l->r.left.strict && all->count && q.t_ns < all->row[all->count - 1].t_ns)
        s = FL_FIELD_FAIL(d, row, l->where[T], "%s is '%.40s', before that of the row above, expected ascending times",
                          l->column[T], row->field[l->where[T]].text);
    if (!s && l->where[MODEL] != SIZE_MAX)
        s = fl_request_rows_name(&l->r, row->field[l->where[MODEL]].text, &q.model, d);
    if (!s && l->where[TYPE] != SIZE_MAX)
        s = fl_request_rows_name(&l->r, row->field[l->where[TYPE]].text, &q.class, d);
    if (!s && l->where[ELAPSED] != SIZE_MAX && !fl_no_value(row->field[l->where[ELAPSED]].text))
        s = fl_foreign_ns(row, l->where[ELAPSED], l->column[ELAPSED], 9, &elapsed, d);
    const bool measured = elapsed > 0 && elapsed < INT64_MAX - q.t_ns;
    m.last_token_ns = measured ? q.t_ns + elapsed : INT64_MIN;
    return s ? s : fl_request_rows_add(&l->r, &q, measured ? &m : NULL, d);
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    fl_progress_row(&l->progress, row);
    if (l->width) {
        l->torn = row->torn && l->column == BURST ? row->line : 0;
        const fl_status s = l->torn ? FL_OK : fl_foreign_width(row, l->width, d);
        return s || l->torn ? s : fl_left_row(&l->r.left, read_request(l, row, &l->r.left.own), d);
    }
    l->width = row->count;
    if (l->column == AZURE) {
        for (size_t c = REQUIRED; c < COLUMNS; c++)
            l->where[c] = SIZE_MAX;
        return fl_columns_find(row, AZURE, REQUIRED, REQUIRED, l->where, d);
    }
    for (size_t c = 0; c < COLUMNS; c++) {
        l->where[c] = SIZE_MAX;
        for (size_t i = 0; i < row->count; i++)
            l->where[c] = strcmp(row->field[i].text, l->column[c]) ? l->where[c] : i;
        if (c < REQUIRED && l->where[c] == SIZE_MAX)
            return FL_FIELD_FAIL(d, row, row->count - 1, "column '%s' is missing", l->column[c]);
    }
    return FL_OK;
}

static fl_status read(const char *path, const char *const *column, const fl_import_options *o, fl_imported *out,
                      fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true};
    loader *l = calloc(1, sizeof *l);
    if (!l)
        return fl_no_memory(d, path);
    l->column = column;
    fl_progress_start(&l->progress, path, o);
    fl_status s = fl_request_rows_begin(&l->r, path, out, d);
    if (!s)
        s = fl_csv_read(path, &OPTIONS, NULL, on_row, l, d);
    if (!s)
        s = fl_request_rows_end(&l->r, true, column == BURST, d);
    if (!s) {
        fl_import_torn(out, l->torn);
        fl_import_say(out, "%sthe rate is that of the whole service, not of one server (--scale)",
                      l->r.measured ? "" : "no latencies, and ");
        s = fl_import_said(out, d);
    }
    fl_request_rows_free(&l->r);
    free(l);
    return s;
}

static bool azure_detect(const char *path, const char *head, size_t size) {
    (void)path;
    return fl_header_find(head, size, azure_header) == 0;
}

static bool burst_detect(const char *path, const char *head, size_t size) {
    (void)path;
    return fl_header_find(head, size, burst_header) == 0;
}

static fl_status azure_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    return read(path, AZURE, o, out, d);
}

static fl_status burst_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    return read(path, BURST, o, out, d);
}

const fl_reader fl_reader_azure_llm = {"azure-llm",
                                       "requests of Azure's LLM inference traces",
                                       "Azure LLM inference traces, 2023 and 2024",
                                       FL_GIVES_REQUESTS,
                                       azure_detect,
                                       azure_read};
const fl_reader fl_reader_burstgpt = {
    "burstgpt", "requests of BurstGPT", "BurstGPT 1.0 to 2.0", FL_GIVES_REQUESTS | FL_GIVES_LATENCIES, burst_detect,
    burst_read};
