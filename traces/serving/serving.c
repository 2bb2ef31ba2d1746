/* Serving files, both ways. */
#include "traces/serving/serving.h"

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char *const fl_serving_what_name[FL_SERVING_WHATS];

#define ROW_NAME(name, standard, least, most) #name,
const char *const fl_serving_what_name[FL_SERVING_WHATS] = {FL_SERVING_NUMBERS_ALL(ROW_NAME) "by_tokens",
                                                            "by_sequence",
                                                            "by_decodes",
                                                            "by_decodes_beside",
                                                            "by_chunk",
                                                            "by_experts",
                                                            "clock"};

#define ROW_RANGE(name, standard, least, most) {standard, least, most},
static const struct { double standard, least, most; } RANGE[FL_SERVING_NUMBERS] = {FL_SERVING_NUMBERS_ALL(ROW_RANGE)};

enum { WHAT, AT, KV, VALUE, COLUMNS };
static const char *const COLUMN[COLUMNS] = {"what", "at", "kv", "value"};

typedef struct loader {
    fl_serving s;
    const char *path;
    size_t where[COLUMNS], width;
    int64_t line[FL_SERVING_NUMBERS]; /* where a number stands; 0 = nowhere yet */
} loader;

void fl_serving_init(fl_serving *s) {
    *s = (fl_serving){.tensor_parallel = 1,
                      .max_seqs = 256,
                      .token_budget = 2048,
                      .block_tokens = 16,
                      .chunked_prefill = true,
                      .prefix_cache = true,
                      .async_scheduling = true};
    for (size_t i = 0; i < FL_SERVING_NUMBERS; i++)
        s->number[i] = RANGE[i].standard;
}

/* ---- the head ---- */

/* standard < 0: it must be stated. */
static fl_status head_count(const fl_serving *s, const char *path, const char *key, int64_t standard, int64_t least,
                            int64_t most, uint64_t *value, fl_diag *d) {
    const char *text = fl_head_get(&s->head, key);
    int64_t n = standard;
    if (!text && standard < 0)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "head: no %s, expected '# %s: N'", key, key);
    if (text && (fl_int_parse(text, &n) != FL_NUMBER_OK || n < least || n > most))
        return fl_fail(d, FL_BAD_INPUT, path, fl_head_line(&s->head, key), 0,
                       "%s is '%.100s', expected %" PRId64 " to %" PRId64, key, text, least, most);
    *value = (uint64_t)n;
    return FL_OK;
}

static fl_status head_yes(const fl_serving *s, const char *path, const char *key, bool *value, fl_diag *d) {
    const char *text = fl_head_get(&s->head, key);
    *value = !text || !strcmp(text, "yes");
    if (*value || !strcmp(text, "no"))
        return FL_OK;
    return fl_fail(d, FL_BAD_INPUT, path, fl_head_line(&s->head, key), 0, "%s is '%.100s', expected yes or no", key,
                   text);
}

static fl_status read_head(fl_serving *s, const char *path, fl_diag *d) {
    uint64_t gpus = 0, seqs = 0, budget = 0, block = 0;
    fl_status status = head_count(s, path, "tensor_parallel", 1, 1, FL_SERVING_GPUS_MAX, &gpus, d);
    if (!status)
        status = head_count(s, path, "max_seqs", -1, 1, 1000000, &seqs, d);
    if (!status)
        status = head_count(s, path, "token_budget", -1, 1, 1 << 24, &budget, d);
    if (!status)
        status = head_count(s, path, "block_tokens", -1, 1, 1 << 20, &block, d);
    if (!status)
        status = head_count(s, path, "kv_blocks", 0, 0, INT64_C(1) << 40, &s->kv_blocks, d);
    if (!status)
        status = head_count(s, path, "max_model_len", 0, 0, INT64_C(1) << 40, &s->max_model_len, d);
    if (!status)
        status = head_yes(s, path, "chunked_prefill", &s->chunked_prefill, d);
    if (!status)
        status = head_yes(s, path, "prefix_cache", &s->prefix_cache, d);
    if (!status)
        status = head_yes(s, path, "async_scheduling", &s->async_scheduling, d);
    s->tensor_parallel = (uint32_t)gpus;
    s->max_seqs = (uint32_t)seqs;
    s->token_budget = (uint32_t)budget;
    s->block_tokens = (uint32_t)block;
    return status;
}

/* ---- rows ---- */

static bool is_grid(size_t what) { return what >= FL_SERVING_BY_DECODES && what <= FL_SERVING_BY_EXPERTS; }

fl_status fl_serving_add_point(fl_serving_points *p, double at, double kv, double value, fl_diag *d) {
    if (fl_grow(&p->at, &p->at_room, p->count + 1, sizeof *p->at) ||
        fl_grow(&p->kv, &p->kv_room, p->count + 1, sizeof *p->kv) ||
        fl_grow(&p->value, &p->value_room, p->count + 1, sizeof *p->value))
        return fl_no_memory(d, "the tables of a serving file");
    p->at[p->count] = at;
    p->kv[p->count] = kv;
    p->value[p->count++] = value;
    return FL_OK;
}

static fl_status expect_nothing(const loader *l, const fl_csv_row *row, size_t column, size_t what, fl_diag *d) {
    const fl_field *field = &row->field[l->where[column]];
    if (!field->size)
        return FL_OK;
    return FL_FIELD_FAIL(d, row, l->where[column], "%s of %s is '%.60s', expected nothing", COLUMN[column],
                         fl_serving_what_name[what], field->text);
}

static fl_status on_point(loader *l, const fl_csv_row *row, size_t what, fl_diag *d) {
    fl_serving_points *p = &l->s.table[what - FL_SERVING_NUMBERS];
    double at = 0, kv = 0, value = 0;
    fl_status s = fl_field_real(row, l->where[AT], "at", 1, 1e9, &at, d);
    if (!s && is_grid(what))
        s = fl_field_real(row, l->where[KV], "kv", 0, 1e9, &kv, d);
    else if (!s)
        s = expect_nothing(l, row, KV, what, d);
    if (!s)
        s = fl_field_real(row, l->where[VALUE], "value", 1e-12, 1e3, &value, d);
    if (s)
        return s;
    const size_t last = p->count - 1;
    if (p->count && (at < p->at[last] || (at == p->at[last] && kv <= p->kv[last])))
        return FL_FIELD_FAIL(d, row, l->where[AT], "at is '%.60s' after %g, expected ascending points",
                             row->field[l->where[AT]].text, p->at[last]);
    if (p->count == FL_SERVING_POINTS_MAX)
        return FL_FIELD_FAIL(d, row, l->where[WHAT], "one point more than %d of a table, expected fewer",
                             FL_SERVING_POINTS_MAX);
    return fl_serving_add_point(p, at, kv, value, d);
}

static fl_status on_clock(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_serving *s = &l->s;
    double mhz = 0;
    const fl_status status = fl_field_real(row, l->where[VALUE], "value", 1, 1e5, &mhz, d);
    if (status)
        return status;
    if (s->sm_count && mhz <= s->sm_mhz[s->sm_count - 1])
        return FL_FIELD_FAIL(d, row, l->where[VALUE], "a clock of %g MHz after %g, expected ascending clocks", mhz,
                             s->sm_mhz[s->sm_count - 1]);
    if (s->sm_count == FL_SERVING_CLOCKS_MAX)
        return FL_FIELD_FAIL(d, row, l->where[VALUE], "one clock more than %d, expected fewer", FL_SERVING_CLOCKS_MAX);
    s->sm_mhz[s->sm_count++] = mhz;
    return FL_OK;
}

static bool is_whole(size_t what) {
    return what == FL_SERVING_reduces || what == FL_SERVING_graph_tokens || what == FL_SERVING_exchanges ||
           what == FL_SERVING_replicas || what == FL_SERVING_expert_seed ||
           (what >= FL_SERVING_experts && what <= FL_SERVING_expert_slices);
}

static fl_status on_number(loader *l, const fl_csv_row *row, size_t what, fl_diag *d) {
    if (l->line[what])
        return FL_FIELD_FAIL(d, row, l->where[WHAT], "%s stands in line %" PRId64 " already, expected it once",
                             fl_serving_what_name[what], l->line[what]);
    l->line[what] = row->line;
    fl_status s = fl_field_real(row, l->where[VALUE], fl_serving_what_name[what], RANGE[what].least, RANGE[what].most,
                                &l->s.number[what], d);
    if (!s && is_whole(what) && l->s.number[what] != (double)(uint32_t)l->s.number[what])
        s = FL_FIELD_FAIL(d, row, l->where[VALUE], "%s is '%.60s', expected a whole number", fl_serving_what_name[what],
                          row->field[l->where[VALUE]].text);
    return s;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (!l->width) {
        l->width = row->count;
        fl_status s = fl_columns_find(row, COLUMN, COLUMNS, COLUMNS, l->where, d);
        return s ? s : read_head(&l->s, l->path, d);
    }
    fl_status s = fl_columns_width(row, l->width, d);
    if (s)
        return s;
    const fl_field *name = &row->field[l->where[WHAT]];
    size_t what = 0;
    while (what < FL_SERVING_WHATS && strcmp(name->text, fl_serving_what_name[what]) != 0)
        what++;
    if (what == FL_SERVING_WHATS) {
        s = fl_fail_unknown(d, row->file, "what", name->text, fl_serving_what_name, FL_SERVING_WHATS);
        if (d)
            d->line = row->line, d->column = name->column;
        return s;
    }
    if (what >= FL_SERVING_NUMBERS && what < FL_SERVING_CLOCK)
        return on_point(l, row, what, d);
    s = expect_nothing(l, row, AT, what, d);
    if (!s)
        s = expect_nothing(l, row, KV, what, d);
    if (s)
        return s;
    return what == FL_SERVING_CLOCK ? on_clock(l, row, d) : on_number(l, row, what, d);
}

fl_status fl_serving_read(const char *path, fl_serving *s, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-serving"};
    loader l = {.path = path};
    fl_serving_init(&l.s);
    fl_status status = fl_csv_read(path, &OPTIONS, &l.s.head, on_row, &l, d);
    bool tables = false;
    for (size_t i = 0; i < FL_SERVING_TABLES; i++)
        tables = tables || l.s.table[i].count;
    if (!status && tables && !(l.s.number[FL_SERVING_ref_sm_mhz] > 0))
        status =
            fl_fail(d, FL_BAD_INPUT, path, 0, 0, "points without ref_sm_mhz, expected the clock that they hold at");
    if (!status && !l.s.table[0].count && !(l.s.number[FL_SERVING_token] > 0))
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                         "a step's tokens cost no time, expected points of by_tokens or a number 'token'");
    if (!status && !(l.s.file = strdup(path)))
        status = fl_no_memory(d, path);
    if (status)
        fl_serving_free(&l.s);
    *s = l.s;
    return status;
}

/* ---- writing ---- */

static bool set_count(fl_head *h, const char *key, uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return fl_head_set(h, key, text);
}

static void put_row(FILE *file, size_t what, double at, double kv, double value) {
    fprintf(file, "%s,", fl_serving_what_name[what]);
    if (at > 0)
        fl_put_real(file, at);
    fputc(',', file);
    if (is_grid(what))
        fl_put_real(file, kv);
    fputc(',', file);
    fl_put_real(file, value);
    fputc('\n', file);
}

static void put_points(FILE *file, size_t what, const fl_serving_points *p) {
    for (size_t i = 0; i < p->count; i++)
        put_row(file, what, p->at[i], p->kv[i], p->value[i]);
}

fl_status fl_serving_write(const char *path, fl_serving *s, fl_diag *d) {
    fl_output *o;
    const bool good =
        set_count(&s->head, "tensor_parallel", s->tensor_parallel) && set_count(&s->head, "max_seqs", s->max_seqs) &&
        set_count(&s->head, "token_budget", s->token_budget) && set_count(&s->head, "block_tokens", s->block_tokens) &&
        set_count(&s->head, "kv_blocks", s->kv_blocks) && set_count(&s->head, "max_model_len", s->max_model_len) &&
        fl_head_set(&s->head, "chunked_prefill", s->chunked_prefill ? "yes" : "no") &&
        fl_head_set(&s->head, "prefix_cache", s->prefix_cache ? "yes" : "no") &&
        fl_head_set(&s->head, "async_scheduling", s->async_scheduling ? "yes" : "no");
    fl_status status = good ? fl_output_begin(path, "foldline-serving", &s->head, &o, d) : fl_no_memory(d, path);
    if (status)
        return status;
    FILE *file = fl_output_file(o);
    fputs("what,at,kv,value\n", file);
    for (size_t i = 0; i < FL_SERVING_NUMBERS; i++)
        if (s->number[i] != RANGE[i].standard)
            put_row(file, i, 0, 0, s->number[i]);
    for (uint32_t i = 0; i < s->sm_count; i++)
        put_row(file, FL_SERVING_CLOCK, 0, 0, s->sm_mhz[i]);
    for (size_t i = 0; i < FL_SERVING_TABLES; i++)
        put_points(file, FL_SERVING_NUMBERS + i, &s->table[i]);
    return fl_output_commit(o, d);
}

static void points_free(fl_serving_points *p) {
    free(p->at);
    free(p->kv);
    free(p->value);
}

void fl_serving_free(fl_serving *s) {
    fl_head_free(&s->head);
    free(s->file);
    for (size_t i = 0; i < FL_SERVING_TABLES; i++)
        points_free(&s->table[i]);
    *s = (fl_serving){0};
}
