#include "traces/files/decisions_servers.h"

#include "traces/io/columns.h"
#include "traces/files/decisions_kernels.h"
#include "traces/io/writing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* server, batches_lost, server_fresh, the signals, and: */
enum { SERVER, LOST, FRESH, SIGNALS, BATCH_COLUMNS = 6 };
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
    if (!status && row->field[at + LOST].size)
        status = fl_field_int(row, at + LOST, "batches_lost", 0, INT64_MAX, &lost, d);
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
        status = fl_cells_empty(row, at + LOST, first, d);
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

static void begin_row(FILE *file, const fl_server_place *at, const char *device, size_t server) {
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
    begin_row(file, at, "server", server);
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
    begin_row(file, at, "batch", b->server);
    fl_put_commas(file, 1 + at->signals);
    for (size_t i = 0; i < BATCH_COLUMNS; i++) {
        fputc(',', file);
        fl_put_int(file, v[i]);
    }
    fputc('\n', file);
}
