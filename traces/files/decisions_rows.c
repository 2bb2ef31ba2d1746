/* Rows of a decisions file that are neither host nor GPU: activity records, servers, and steps of engines. */
#include "traces/files/inside.h"

#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- activity records ---- */

/* Offsets from the first of the ten. */
enum { LOST, KIND, NAME_ID, NAME, GRID, BLOCK, GPU, STREAM, START, END };
static const char *const NAMES[FL_KERNEL_COLUMNS] = {"lost",  "kind", "name_id", "name",     "grid",
                                                     "block", "gpu",  "stream",  "start_ns", "end_ns"};

/* ---- adding ---- */

fl_status fl_decisions_add_step(fl_decisions *r, fl_decisions_room *room, size_t step, uint64_t lost) {
    if (fl_grow(&r->lost, &room->lost, step + 1, sizeof *r->lost) ||
        fl_grow(&r->kinds_until, &room->kinds_until, step + 1, sizeof *r->kinds_until) ||
        fl_grow(&r->kernels_until, &room->kernels_until, step + 1, sizeof *r->kernels_until))
        return FL_NO_MEMORY;
    r->lost[step] = lost;
    r->kinds_until[step] = r->kind_count;
    r->kernels_until[step] = r->kernel_count;
    return FL_OK;
}

fl_status fl_decisions_add_kind(fl_decisions *r, fl_decisions_room *room, size_t step, const fl_logged_kind *kind) {
    char *name = strdup(kind->name);
    if (!name || fl_grow(&r->kind, &room->kind, r->kind_count + 1, sizeof *r->kind)) {
        free(name);
        return FL_NO_MEMORY;
    }
    r->kind[r->kind_count] = *kind;
    r->kind[r->kind_count++].name = name;
    r->kinds_until[step] = r->kind_count;
    return FL_OK;
}

fl_status fl_decisions_add_kernel(fl_decisions *r, fl_decisions_room *room, size_t step,
                                  const fl_logged_kernel *kernel) {
    if (fl_grow(&r->kernel, &room->kernel, r->kernel_count + 1, sizeof *r->kernel))
        return FL_NO_MEMORY;
    r->kernel[r->kernel_count++] = *kernel;
    r->kernels_until[step] = r->kernel_count;
    return FL_OK;
}

/* ---- reading ---- */

fl_status fl_kernel_columns_check(const fl_csv_row *header, size_t at, fl_diag *d) {
    for (size_t i = 0; i < FL_KERNEL_COLUMNS; i++) {
        const size_t column = at + i < header->count ? at + i : header->count - 1;
        if (at + i >= header->count)
            return FL_FIELD_FAIL(d, header, column,
                                 "column '%s' is missing, expected it with those of activity records", NAMES[i]);
        if (strcmp(header->field[column].text, NAMES[i]) != 0)
            return FL_FIELD_FAIL(d, header, column, "column %zu is '%.60s', expected '%s'", column + 1,
                                 header->field[column].text, NAMES[i]);
    }
    return FL_OK;
}

bool fl_kernel_row(const fl_csv_row *row) {
    return row->count > 2 && (!strcmp(row->field[2].text, "kind") || !strcmp(row->field[2].text, "kernel"));
}

/* Refuses text in the cells [from, until) of a row that has none there. */
static fl_status fl_cells_empty(const fl_csv_row *row, size_t from, size_t until, fl_diag *d) {
    for (size_t i = from; i < until; i++)
        if (row->field[i].size)
            return FL_FIELD_FAIL(d, row, i, "'%.40s' in a row of device '%.20s', expected nothing here",
                                 row->field[i].text, row->field[2].text);
    return FL_OK;
}

static fl_status read_u32(const fl_csv_row *row, size_t column, const char *name, uint32_t *value, fl_diag *d) {
    int64_t wide = 0;
    fl_status s = fl_field_int(row, column, name, 0, UINT32_MAX, &wide, d);
    *value = (uint32_t)wide;
    return s;
}

/* "128x1x1", each part a whole number without sign. */
static fl_status read_size(const fl_csv_row *row, size_t column, uint32_t *size, fl_diag *d) {
    const char *at = row->field[column].text;
    for (int i = 0; i < 3; i++) {
        char *end = NULL;
        const unsigned long long v = *at >= '0' && *at <= '9' ? strtoull(at, &end, 10) : 0;
        if (!end || v > UINT32_MAX || *end != (i < 2 ? 'x' : '\0'))
            return FL_FIELD_FAIL(d, row, column, "'%.40s', expected three numbers as 128x1x1", row->field[column].text);
        size[i] = (uint32_t)v;
        at = end + 1;
    }
    return FL_OK;
}

static fl_status read_kind(const fl_csv_row *row, size_t at, size_t step, fl_decisions *r, fl_decisions_room *room,
                           fl_diag *d) {
    fl_logged_kind k = {.name = (char *)(uintptr_t)row->field[at + NAME].text};
    int64_t index = 0;
    fl_status s = fl_field_int(row, at + KIND, "kind", 0, UINT32_MAX - 1, &index, d);
    if (!s && (size_t)index != r->kind_count)
        s = FL_FIELD_FAIL(d, row, at + KIND, "kind is %lld, expected %zu: they come in order", (long long)index,
                          r->kind_count);
    if (!s)
        s = read_u32(row, at + NAME_ID, "name_id", &k.name_id, d);
    if (!s)
        s = read_size(row, at + GRID, k.grid, d);
    if (!s)
        s = read_size(row, at + BLOCK, k.block, d);
    if (!s)
        s = fl_cells_empty(row, at + GPU, at + FL_KERNEL_COLUMNS, d);
    return !s && fl_decisions_add_kind(r, room, step, &k) ? fl_no_memory(d, row->file) : s;
}

static fl_status read_kernel(const fl_csv_row *row, size_t at, size_t step, fl_decisions *r, fl_decisions_room *room,
                             fl_diag *d) {
    fl_logged_kernel k = {.end_ns = -1};
    fl_status s = read_u32(row, at + KIND, "kind", &k.kind, d);
    if (!s && k.kind >= r->kind_count)
        s = FL_FIELD_FAIL(d, row, at + KIND, "kind %u has no row of device 'kind' above", (unsigned)k.kind);
    if (!s)
        s = fl_cells_empty(row, at + NAME_ID, at + GPU, d);
    if (!s)
        s = read_u32(row, at + GPU, "gpu", &k.gpu, d);
    if (!s && r->gpu_count && k.gpu >= r->gpu_count)
        s = FL_FIELD_FAIL(d, row, at + GPU, "gpu is %u of %u", (unsigned)k.gpu, (unsigned)r->gpu_count);
    if (!s)
        s = read_u32(row, at + STREAM, "stream", &k.stream, d);
    if (!s)
        s = fl_field_int(row, at + START, "start_ns", INT64_MIN, INT64_MAX, &k.start_ns, d);
    if (!s && row->field[at + END].size)
        s = fl_field_int(row, at + END, "end_ns", 0, INT64_MAX, &k.end_ns, d);
    return !s && fl_decisions_add_kernel(r, room, step, &k) ? fl_no_memory(d, row->file) : s;
}

fl_status fl_kernel_row_read(const fl_csv_row *row, size_t at, size_t step, fl_decisions *r, fl_decisions_room *room,
                             fl_diag *d) {
    int64_t t_ns = 0, in_step = 0;
    fl_status s = fl_field_int(row, 0, "step", 0, INT64_MAX, &in_step, d);
    if (!s && (size_t)in_step != step)
        s = FL_FIELD_FAIL(d, row, 0, "step is %lld, expected %zu", (long long)in_step, step);
    if (!s)
        s = fl_field_int(row, 1, "t_ns", 0, INT64_MAX, &t_ns, d);
    if (!s && t_ns != r->t_ns[step])
        s = FL_FIELD_FAIL(d, row, 1, "t_ns is %lld, expected %lld as in the host's row of this step", (long long)t_ns,
                          (long long)r->t_ns[step]);
    if (!s)
        s = fl_cells_empty(row, 3, at + KIND, d);
    if (s)
        return s;
    return !strcmp(row->field[2].text, "kind") ? read_kind(row, at, step, r, room, d)
                                               : read_kernel(row, at, step, r, room, d);
}

fl_status fl_kernel_cells_read(const fl_csv_row *row, size_t at, uint64_t *lost, fl_diag *d) {
    int64_t n = 0;
    fl_status s = fl_cells_empty(row, at + (lost ? 1 : 0), at + FL_KERNEL_COLUMNS, d);
    if (!s && lost && row->field[at].size)
        s = fl_field_int(row, at, "lost", 0, INT64_MAX, &n, d);
    if (!s && lost)
        *lost = (uint64_t)n;
    return s;
}

/* ---- writing ---- */

void fl_put_kernel_names(FILE *file) {
    for (size_t i = 0; i < FL_KERNEL_COLUMNS; i++)
        fprintf(file, ",%s", NAMES[i]);
}

static void fl_put_commas(FILE *file, size_t count) {
    for (size_t i = 0; i < count; i++)
        fputc(',', file);
}

void fl_put_kernel_cells(FILE *file, uint64_t lost) {
    fputc(',', file);
    if (lost)
        fl_put_int(file, (int64_t)lost);
    fl_put_commas(file, FL_KERNEL_COLUMNS - 1);
}

static void begin_row(FILE *file, const fl_step_place *at, const char *device, size_t kind) {
    fl_put_int(file, (int64_t)at->step);
    fputc(',', file);
    fl_put_int(file, at->t_ns);
    fprintf(file, ",%s", device);
    fl_put_commas(file, at->between + 2); /* and `lost` */
    fl_put_int(file, (int64_t)kind);
}

void fl_put_kind_row(FILE *file, const fl_step_place *at, size_t index, const fl_logged_kind *kind) {
    const uint32_t *g = kind->grid, *b = kind->block;
    begin_row(file, at, "kind", index);
    fprintf(file, ",%u,", (unsigned)kind->name_id);
    fl_csv_put(file, kind->name);
    fprintf(file, ",%ux%ux%u,%ux%ux%u,,,,", (unsigned)g[0], (unsigned)g[1], (unsigned)g[2], (unsigned)b[0],
            (unsigned)b[1], (unsigned)b[2]);
    fl_put_commas(file, at->behind);
    fputc('\n', file);
}

void fl_put_kernel_row(FILE *file, const fl_step_place *at, const fl_logged_kernel *kernel) {
    begin_row(file, at, "kernel", kernel->kind);
    fprintf(file, ",,,,,%u,%u,", (unsigned)kernel->gpu, (unsigned)kernel->stream);
    fl_put_int(file, kernel->start_ns);
    fputc(',', file);
    if (kernel->end_ns >= 0)
        fl_put_int(file, kernel->end_ns);
    fl_put_commas(file, at->behind);
    fputc('\n', file);
}

/* ---- servers ---- */

/* server, batches_lost, server_fresh, the signals, and: */
enum { SERVER, SERVERS_LOST, FRESH, SIGNALS, BATCH_COLUMNS = 6 };
static const char *const FIRST[SIGNALS] = {"server", "batches_lost", "server_fresh"};
static const char *const LAST[BATCH_COLUMNS] = {"batch_start_ns", "batch_end_ns",    "batch_prompt_tokens",
                                                "batch_prompts",  "batch_sequences", "batch_kv_tokens"};

size_t fl_server_column_count(size_t signals) { return SIGNALS + signals + BATCH_COLUMNS; }

/* ---- adding ---- */

fl_status fl_servers_add(fl_logged_servers *s, fl_servers_room *room, const double *value, const bool *fresh,
                         uint64_t lost) {
    const size_t rows = s->rows + 1;
    if (fl_grow(&s->value, &room->value, rows * s->signal_count + 1, sizeof *s->value) ||
        fl_grow(&s->fresh, &room->fresh, rows * s->signal_count + 1, sizeof *s->fresh) ||
        fl_grow(&s->lost, &room->lost, rows, sizeof *s->lost))
        return FL_NO_MEMORY;
    if (s->signal_count) {
        memcpy(s->value + s->rows * s->signal_count, value, s->signal_count * sizeof *value);
        memcpy(s->fresh + s->rows * s->signal_count, fresh, s->signal_count * sizeof *fresh);
    }
    s->lost[s->rows++] = lost;
    return FL_OK;
}

fl_status fl_servers_add_batch(fl_logged_servers *s, fl_servers_room *room, const fl_logged_batch *batch) {
    if (fl_grow(&s->batch, &room->batch, s->batch_count + 1, sizeof *s->batch))
        return FL_NO_MEMORY;
    s->batch[s->batch_count++] = *batch;
    return FL_OK;
}

fl_status fl_servers_end_step(fl_logged_servers *s, fl_servers_room *room) {
    if (fl_grow(&s->batches_until, &room->until, s->steps + 1, sizeof *s->batches_until))
        return FL_NO_MEMORY;
    if (!s->steps)
        s->count = (uint32_t)s->rows;
    s->batches_until[s->steps++] = s->batch_count;
    return FL_OK;
}

/* ---- reading ---- */

bool fl_server_columns(const fl_csv_row *header, size_t at) {
    return at < header->count && !strcmp(header->field[at].text, FIRST[SERVER]);
}

fl_status fl_server_columns_read(const fl_csv_row *header, size_t at, fl_logged_servers *s, fl_diag *d) {
    const size_t end = header->count, least = SIGNALS + BATCH_COLUMNS;
    if (end - at < least)
        return FL_FIELD_FAIL(d, header, end - 1, "%zu columns of servers, expected %zu or more", end - at, least);
    for (size_t i = 0; i < SIGNALS; i++)
        if (strcmp(header->field[at + i].text, FIRST[i]) != 0)
            return FL_FIELD_FAIL(d, header, at + i, "column %zu is '%.60s', expected '%s'", at + i + 1,
                                 header->field[at + i].text, FIRST[i]);
    for (size_t i = 0; i < BATCH_COLUMNS; i++) {
        const size_t column = end - BATCH_COLUMNS + i;
        if (strcmp(header->field[column].text, LAST[i]) != 0)
            return FL_FIELD_FAIL(d, header, column, "column %zu is '%.60s', expected '%s'", column + 1,
                                 header->field[column].text, LAST[i]);
    }
    return fl_columns_names(header, at + SIGNALS, end - at - least, 0, &s->signal, &s->signal_count, d);
}

bool fl_server_row(const fl_csv_row *row) {
    return row->count > 2 && (!strcmp(row->field[2].text, "server") || !strcmp(row->field[2].text, "batch"));
}

static fl_status mark_fresh(const fl_csv_row *row, size_t column, const fl_logged_servers *s, const double *value,
                            bool *fresh, fl_diag *d) {
    const char *text = row->field[column].text;
    const bool all = !strcmp(text, "*");
    for (size_t i = 0; i < s->signal_count; i++)
        fresh[i] = all && !isnan(value[i]);
    for (size_t size = 0; !all && *text; text += size + (text[size] == '+')) {
        size_t i = 0;
        size = strcspn(text, "+");
        while (i < s->signal_count && (strncmp(s->signal[i], text, size) != 0 || s->signal[i][size]))
            i++;
        if (i == s->signal_count || isnan(value[i]))
            return FL_FIELD_FAIL(d, row, column,
                                 "server_fresh names '%.*s', expected signals of this row joined by '+'",
                                 size < 60 ? (int)size : 60, text);
        fresh[i] = true;
    }
    return FL_OK;
}

static fl_status read_server(const fl_csv_row *row, size_t at, fl_logged_servers *s, fl_servers_room *room,
                             fl_diag *d) {
    int64_t server = 0, lost = -1;
    const size_t here = s->rows - s->steps * s->count;
    double *value = calloc(s->signal_count + 1, sizeof *value);
    bool *fresh = calloc(s->signal_count + 1, sizeof *fresh);
    fl_status status = value && fresh ? FL_OK : fl_no_memory(d, row->file);
    if (!status)
        status = fl_field_int(row, at + SERVER, "server", 0, UINT16_MAX, &server, d);
    if (!status && (size_t)server != here)
        status = FL_FIELD_FAIL(d, row, at + SERVER, "server is %lld, expected %zu", (long long)server, here);
    if (!status && row->field[at + SERVERS_LOST].size)
        status = fl_field_int(row, at + SERVERS_LOST, "batches_lost", 0, INT64_MAX, &lost, d);
    for (size_t i = 0; !status && i < s->signal_count; i++)
        status = fl_field_real_or_nan(row, at + SIGNALS + i, s->signal[i], -HUGE_VAL, HUGE_VAL, &value[i], d);
    if (!status)
        status = mark_fresh(row, at + FRESH, s, value, fresh, d);
    if (!status)
        status = fl_cells_empty(row, at + SIGNALS + s->signal_count, row->count, d);
    if (!status && fl_servers_add(s, room, value, fresh, lost < 0 ? FL_STEPS_UNTOLD : (uint64_t)lost))
        status = fl_no_memory(d, row->file);
    free(value);
    free(fresh);
    return status;
}

static fl_status read_batch(const fl_csv_row *row, size_t at, fl_logged_servers *s, fl_servers_room *room, fl_diag *d) {
    const size_t first = at + SIGNALS + s->signal_count;
    int64_t v[BATCH_COLUMNS] = {0}, server = 0;
    fl_status status = fl_field_int(row, at + SERVER, "server", 0, UINT16_MAX, &server, d);
    if (!status)
        status = fl_cells_empty(row, at + SERVERS_LOST, first, d);
    for (size_t i = 0; !status && i < BATCH_COLUMNS; i++)
        status = fl_field_int(row, first + i, LAST[i], i < 2 ? INT64_MIN : 0, i < 2 || i == 5 ? INT64_MAX : UINT32_MAX,
                              &v[i], d);
    if (!status && (size_t)server >= s->rows - s->steps * s->count)
        status = FL_FIELD_FAIL(d, row, at + SERVER, "server %lld has no row of device 'server' in this step",
                               (long long)server);
    const fl_logged_batch b = {v[0],           v[1],           (uint32_t)server, (uint32_t)v[2],
                               (uint32_t)v[3], (uint32_t)v[4], (uint64_t)v[5]};
    return !status && fl_servers_add_batch(s, room, &b) ? fl_no_memory(d, row->file) : status;
}

fl_status fl_server_row_read(const fl_csv_row *row, size_t at, fl_logged_servers *s, fl_servers_room *room,
                             fl_diag *d) {
    fl_status status = fl_cells_empty(row, 3, at, d);
    if (status)
        return status;
    return !strcmp(row->field[2].text, "server") ? read_server(row, at, s, room, d) : read_batch(row, at, s, room, d);
}

fl_status fl_server_cells_read(const fl_csv_row *row, size_t at, const fl_logged_servers *s, fl_diag *d) {
    return fl_cells_empty(row, at, at + fl_server_column_count(s->signal_count), d);
}

fl_status fl_server_step_read(const fl_csv_row *row, fl_logged_servers *s, fl_servers_room *room, fl_diag *d) {
    const size_t here = s->rows - s->steps * s->count;
    if (s->steps && here != s->count)
        return FL_FIELD_FAIL(d, row, 2, "the step has %zu rows of servers, expected %u as the first has", here,
                             (unsigned)s->count);
    return fl_servers_end_step(s, room) ? fl_no_memory(d, row->file) : FL_OK;
}

/* ---- writing ---- */

void fl_put_server_names(FILE *file, const char *const *signal, size_t count) {
    for (size_t i = 0; i < SIGNALS; i++)
        fprintf(file, ",%s", FIRST[i]);
    for (size_t i = 0; i < count; i++) {
        fputc(',', file);
        fl_csv_put(file, signal[i]);
    }
    for (size_t i = 0; i < BATCH_COLUMNS; i++)
        fprintf(file, ",%s", LAST[i]);
}

void fl_put_server_cells(FILE *file, size_t signals) { fl_put_commas(file, fl_server_column_count(signals)); }

static void begin_server_row(FILE *file, const fl_server_place *at, const char *device, size_t server) {
    fl_put_int(file, (int64_t)at->step);
    fputc(',', file);
    fl_put_int(file, at->t_ns);
    fprintf(file, ",%s", device);
    fl_put_commas(file, at->between + 1);
    fl_put_int(file, (int64_t)server);
    fputc(',', file);
}

void fl_put_fresh(FILE *file, const char *const *signal, const double *value, const bool *fresh, size_t signals) {
    size_t valid = 0, marked = 0;
    for (size_t i = 0; i < signals; i++) {
        valid += isnan(value[i]) ? 0 : 1;
        marked += fresh[i] && !isnan(value[i]) ? 1 : 0;
    }
    if (marked && marked == valid) {
        fputc('*', file);
        return;
    }
    const char *joint = "";
    for (size_t i = 0; i < signals; i++)
        if (fresh[i] && !isnan(value[i])) {
            fprintf(file, "%s%s", joint, signal[i]);
            joint = "+";
        }
}

void fl_put_server_row(FILE *file, const fl_server_place *at, size_t server, uint64_t lost, const double *value,
                       const bool *fresh) {
    begin_server_row(file, at, "server", server);
    if (lost != FL_STEPS_UNTOLD)
        fl_put_int(file, (int64_t)lost);
    fputc(',', file);
    fl_put_fresh(file, at->signal, value, fresh, at->signals);
    for (size_t i = 0; i < at->signals; i++) {
        fputc(',', file);
        fl_put_real(file, value[i]);
    }
    fl_put_commas(file, BATCH_COLUMNS);
    fputc('\n', file);
}

void fl_put_batch_row(FILE *file, const fl_server_place *at, const fl_logged_batch *b) {
    const int64_t v[BATCH_COLUMNS] = {b->start_ns, b->end_ns,           b->prompt_tokens,
                                      b->prompts,  b->decode_sequences, (int64_t)b->kv_tokens};
    begin_server_row(file, at, "batch", b->server);
    fl_put_commas(file, 1 + at->signals);
    for (size_t i = 0; i < BATCH_COLUMNS; i++) {
        fputc(',', file);
        fl_put_int(file, v[i]);
    }
    fputc('\n', file);
}
