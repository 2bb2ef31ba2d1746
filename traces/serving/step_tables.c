/* Measured times of serving engines: layers, attention, whole steps. */
#include "traces/serving/serving.h"

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS_MOST 16777216.0 /* of a step, a prompt, a context: 2^24 */
#define US_MOST 1e9

enum { COLUMNS_MAX = 7 };

typedef struct loader {
    void *into;
    const char *const *column;
    size_t count, required, where[COLUMNS_MAX], width;
    size_t time; /* which column is the measured time: a run that failed has none, or 0 */
    fl_status (*take)(struct loader *l, const fl_csv_row *row, fl_diag *d);
    fl_left_out left, *to;
} loader;

static fl_status read_row(loader *l, const fl_csv_row *row, fl_diag *d) {
    const fl_status s = fl_columns_width(row, l->width, d);
    const size_t time = l->where[l->time];
    if (!s && (fl_no_value(row->field[time].text) || !strcmp(row->field[time].text, "0")))
        return fl_left_empty(&l->left, row->file, row->line, row->field[time].column, d,
                             "%s is '%.40s', as of a run that failed", l->column[l->time], row->field[time].text);
    return s ? s : l->take(l, row, d);
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (l->width)
        return fl_left_row(&l->left, read_row(l, row, &l->left.own), d);
    l->width = row->count;
    return fl_columns_find(row, l->column, l->count, l->required, l->where, d);
}

/* A table with comments, but no line that names its format. */
static fl_status read_table(const char *path, loader *l, size_t *rows, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-steps", .head_optional = true};
    fl_head head = {0};
    l->left = fl_left_begin(l->to);
    fl_status s = fl_csv_read(path, &OPTIONS, &head, on_row, l, d);
    fl_head_free(&head);
    if (!s)
        s = fl_left_end(&l->left, l->to, path, d);
    if (!s && !*rows)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no rows, expected at least one after the header");
    return s;
}

static fl_status get(const loader *l, const fl_csv_row *row, size_t column, double least, double most, double *value,
                     fl_diag *d) {
    return fl_field_real(row, l->where[column], l->column[column], least, most, value, d);
}

static fl_status get_whole(const loader *l, const fl_csv_row *row, size_t column, int64_t least, double *value,
                           fl_diag *d) {
    int64_t n = 0;
    const fl_status s = fl_field_int(row, l->where[column], l->column[column], least, (int64_t)TOKENS_MOST, &n, d);
    *value = (double)n;
    return s;
}

/* Whether a row has a value in an optional column. */
static bool has(const loader *l, const fl_csv_row *row, size_t column) {
    return l->where[column] != SIZE_MAX && !fl_no_value(row->field[l->where[column]].text);
}

/* The optional columns of layer tables: `column` is the clock, the next one the power. A table with a column of clocks
 * states the clock of every row. */
static fl_status get_state(const loader *l, const fl_csv_row *row, size_t column, double *sm_mhz, double *power_w,
                           fl_diag *d) {
    *power_w = NAN;
    fl_status s = l->where[column] == SIZE_MAX ? FL_OK : get(l, row, column, 1, 1e5, sm_mhz, d);
    if (!s && has(l, row, column + 1))
        s = get(l, row, column + 1, 0, FL_WATTS_MOST, power_w, d);
    return s;
}

/* ---- layers ---- */

static uint32_t layer_index(fl_layers *l, const char *name) {
    for (size_t i = l->name_count; i-- > 0;) /* the layer of the row before comes first */
        if (!strcmp(l->names[i], name))
            return (uint32_t)i;
    if (fl_grow(&l->names, &l->name_room, l->name_count + 1, sizeof *l->names))
        return UINT32_MAX;
    if (!(l->names[l->name_count] = strdup(name)))
        return UINT32_MAX;
    return (uint32_t)l->name_count++;
}

enum { LAYERS_MOST = 256 }; /* names are looked for one after another */

static fl_status take_layer(loader *load, const fl_csv_row *row, fl_diag *d) {
    fl_layers *l = load->into;
    fl_layer_row r = {.line = row->line};
    const fl_field *name = &row->field[load->where[0]];
    if (!name->size)
        return FL_FIELD_FAIL(d, row, load->where[0], "a layer without a name, expected one");
    fl_status s = get_whole(load, row, 1, 1, &r.at, d);
    if (!s)
        s = get(load, row, 2, 1e-6, US_MOST, &r.time_s, d);
    if (!s)
        s = get_state(load, row, 3, &r.sm_mhz, &r.power_w, d);
    if (s)
        return s;
    r.time_s *= 1e-6;
    if ((r.layer = layer_index(l, name->text)) == UINT32_MAX ||
        fl_grow(&l->row, &l->room, l->count + 1, sizeof *l->row))
        return fl_no_memory(d, row->file);
    if (r.layer >= LAYERS_MOST)
        return FL_FIELD_FAIL(d, row, load->where[0], "one layer more than %d, expected fewer", LAYERS_MOST);
    l->row[l->count++] = r;
    return FL_OK;
}

static int by_layer(const void *a, const void *b) {
    const fl_layer_row *x = a, *y = b;
    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    if (x->sm_mhz != y->sm_mhz)
        return x->sm_mhz < y->sm_mhz ? -1 : 1;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static bool same_point(const fl_layer_row *a, const fl_layer_row *b) {
    return a->layer == b->layer && a->sm_mhz == b->sm_mhz && a->at == b->at;
}

fl_status fl_layers_read(const char *path, const char *by, fl_layers *out, fl_left_out *left, fl_diag *d) {
    const char *const column[] = {"layer", by, "time_us", "sm_mhz", "power_w"};
    fl_layers l = {0};
    loader load = {.into = &l, .column = column, .count = 5, .required = 3, .time = 2, .take = take_layer, .to = left};
    fl_status s = read_table(path, &load, &l.count, d);
    if (!s)
        qsort(l.row, l.count, sizeof *l.row, by_layer);
    for (size_t i = 1; !s && i < l.count; i++)
        if (same_point(&l.row[i - 1], &l.row[i]))
            s = fl_fail(d, FL_BAD_INPUT, path, l.row[i].line, 1,
                        "a second row of %s at %g %s, the first is in line %lld, expected one", l.names[l.row[i].layer],
                        l.row[i].at, by, (long long)l.row[i - 1].line);
    if (s)
        fl_layers_free(&l);
    *out = l;
    return s;
}

void fl_layers_free(fl_layers *l) {
    for (size_t i = 0; i < l->name_count; i++)
        free(l->names[i]);
    free(l->names);
    free(l->row);
    *l = (fl_layers){0};
}

const fl_layer_row *fl_layers_find(const fl_layers *l, const char *name, size_t *count) {
    size_t layer = 0, first = 0;
    while (layer < l->name_count && strcmp(l->names[layer], name) != 0)
        layer++;
    while (first < l->count && l->row[first].layer != layer)
        first++;
    size_t end = first;
    while (end < l->count && l->row[end].layer == layer)
        end++;
    *count = end - first;
    return end > first ? &l->row[first] : NULL;
}

/* ---- attention ---- */

static fl_status take_attention(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_attention *a = l->into;
    fl_attention_row r = {0};
    fl_status s = get_whole(l, row, 0, 0, &r.chunk, d);
    if (!s)
        s = get_whole(l, row, 1, 0, &r.kv_chunk, d);
    if (!s)
        s = get_whole(l, row, 2, 0, &r.decodes, d);
    if (!s)
        s = get_whole(l, row, 3, 0, &r.kv_decode, d);
    if (!s)
        s = get(l, row, 4, 1e-6, US_MOST, &r.time_s, d);
    if (!s)
        s = get_state(l, row, 5, &r.sm_mhz, &r.power_w, d);
    if (s)
        return s;
    if ((!r.chunk && !r.decodes) || (!r.chunk && r.kv_chunk) || !r.decodes != !r.kv_decode)
        return FL_FIELD_WRONG(d, row, l->where[0],
                              "no part of a step has these numbers, expected a prompt chunk, decodes with their KV, or "
                              "both");
    r.time_s *= 1e-6;
    if (fl_grow(&a->row, &a->room, a->count + 1, sizeof *a->row))
        return fl_no_memory(d, row->file);
    a->row[a->count++] = r;
    return FL_OK;
}

fl_status fl_attention_read(const char *path, fl_attention *out, fl_left_out *left, fl_diag *d) {
    static const char *const COLUMN[] = {"prefill_chunk", "kv_prefill", "n_decode", "kv_decode",
                                         "time_us",       "sm_mhz",     "power_w"};
    fl_attention a = {0};
    loader load = {
        .into = &a, .column = COLUMN, .count = 7, .required = 5, .time = 4, .take = take_attention, .to = left};
    const fl_status s = read_table(path, &load, &a.count, d);
    if (s)
        fl_attention_free(&a);
    *out = a;
    return s;
}

void fl_attention_free(fl_attention *a) {
    free(a->row);
    *a = (fl_attention){0};
}

/* ---- experts ---- */

static fl_status take_experts(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_expert_rows *e = l->into;
    fl_expert_row r = {0};
    fl_status s = get_whole(l, row, 0, 1, &r.tokens, d);
    if (!s)
        s = get_whole(l, row, 1, 1, &r.experts, d);
    if (!s)
        s = get(l, row, 2, 1e-6, US_MOST, &r.time_s, d);
    if (!s)
        s = get_state(l, row, 3, &r.sm_mhz, &r.power_w, d);
    if (s)
        return s;
    r.time_s *= 1e-6;
    if (r.experts > FL_EXPERTS_MOST)
        return FL_FIELD_FAIL(d, row, l->where[1], "%g experts, expected at most %d", r.experts, FL_EXPERTS_MOST);
    if (fl_grow(&e->row, &e->room, e->count + 1, sizeof *e->row))
        return fl_no_memory(d, row->file);
    e->row[e->count++] = r;
    return FL_OK;
}

static int by_tokens(const void *a, const void *b) {
    const fl_expert_row *x = a, *y = b;
    if (x->sm_mhz != y->sm_mhz)
        return x->sm_mhz < y->sm_mhz ? -1 : 1;
    if (x->tokens != y->tokens)
        return x->tokens < y->tokens ? -1 : 1;
    return x->experts < y->experts ? -1 : x->experts > y->experts;
}

fl_status fl_expert_rows_read(const char *path, fl_expert_rows *out, fl_left_out *left, fl_diag *d) {
    static const char *const COLUMN[] = {"tokens", "activated_experts", "time_us", "sm_mhz", "power_w"};
    fl_expert_rows e = {0};
    loader load = {
        .into = &e, .column = COLUMN, .count = 5, .required = 3, .time = 2, .take = take_experts, .to = left};
    fl_status s = read_table(path, &load, &e.count, d);
    if (!s)
        qsort(e.row, e.count, sizeof *e.row, by_tokens);
    for (size_t i = 1; !s && i < e.count; i++)
        if (!by_tokens(&e.row[i - 1], &e.row[i]))
            s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "two rows of %g tokens and %g experts, expected one",
                        e.row[i].tokens, e.row[i].experts);
    if (s)
        fl_expert_rows_free(&e);
    *out = e;
    return s;
}

void fl_expert_rows_free(fl_expert_rows *r) {
    free(r->row);
    *r = (fl_expert_rows){0};
}

/* ---- whole steps ---- */

enum { PHASE, SM_MHZ, BATCH, TOKENS, CONTEXT, TIME_S, POWER_W };

static fl_status take_step(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_step_rows *rows = l->into;
    fl_step_row_measured r = {.power_w = NAN, .line = row->line};
    const char *phase = row->field[l->where[PHASE]].text;
    r.prefill = !strcmp(phase, "prefill");
    if (!r.prefill && strcmp(phase, "decode") != 0)
        return FL_FIELD_FAIL(d, row, l->where[PHASE], "phase is '%.60s', expected prefill or decode", phase);
    fl_status s = get(l, row, SM_MHZ, 1, 1e5, &r.sm_mhz, d);
    if (!s)
        s = get_whole(l, row, BATCH, 1, &r.batch, d);
    if (!s)
        s = get_whole(l, row, TOKENS, 1, &r.tokens, d);
    if (!s)
        s = get_whole(l, row, CONTEXT, 0, &r.context, d);
    if (!s)
        s = get(l, row, TIME_S, 1e-9, 1e6, &r.time_s, d);
    if (!s && has(l, row, POWER_W))
        s = fl_field_real(row, l->where[POWER_W], "power_w", 0, FL_WATTS_MOST, &r.power_w, d);
    if (s)
        return s;
    if (r.prefill && r.batch != 1)
        return FL_FIELD_WRONG(d, row, l->where[BATCH], "a prefill of %g prompts, expected one prompt", r.batch);
    if (!r.prefill && r.tokens != r.batch)
        return FL_FIELD_WRONG(d, row, l->where[TOKENS], "%g tokens of a decode of %g sequences, expected one for each",
                              r.tokens, r.batch);
    if (fl_grow(&rows->row, &rows->room, rows->count + 1, sizeof *rows->row))
        return fl_no_memory(d, row->file);
    rows->row[rows->count++] = r;
    return FL_OK;
}

fl_status fl_step_rows_read(const char *path, fl_step_rows *out, fl_left_out *left, fl_diag *d) {
    static const char *const COLUMN[] = {"phase", "sm_mhz", "batch", "tokens", "context_tokens", "time_s", "power_w"};
    fl_step_rows r = {0};
    loader load = {
        .into = &r, .column = COLUMN, .count = 7, .required = 6, .time = TIME_S, .take = take_step, .to = left};
    const fl_status s = read_table(path, &load, &r.count, d);
    if (s)
        fl_step_rows_free(&r);
    *out = r;
    return s;
}

void fl_step_rows_free(fl_step_rows *r) {
    free(r->row);
    *r = (fl_step_rows){0};
}
