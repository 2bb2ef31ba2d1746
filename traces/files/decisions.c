/* Decisions files: header, rows and steps, both ways. */
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

/* ---- writing ---- */

static void put_row(FILE *file, const fl_decisions *r, size_t step, size_t number, size_t row) {
    size_t index = step * (r->gpu_count + 1) + row;
    const double *value = r->value + index * r->signal_count;
    const double *set = r->set + index * r->control_count;
    fl_put_int(file, (int64_t)number);
    fputc(',', file);
    fl_put_int(file, r->t_ns[step]);
    fputc(',', file);
    fl_put_device(file, (int32_t)row - 1);
    for (size_t i = 0; i < r->signal_count; i++) {
        fputc(',', file);
        fl_put_real(file, value[i]);
    }
    fputc(',', file);
    fl_put_fresh(file, (const char *const *)r->signal, value, r->fresh + index * r->signal_count, r->signal_count);
    for (size_t i = 0; i < r->control_count; i++) {
        fputc(',', file);
        if (set[i] == -1)
            fputs("default", file);
        else
            fl_put_real(file, set[i]);
    }
    fputc(',', file);
    if (row == 0 && r->delay_ns[step] >= 0)
        fl_put_int(file, r->delay_ns[step]);
    if (r->has_kernels)
        fl_put_kernel_cells(file, row ? 0 : r->lost[step]);
    if (r->servers.signal)
        fl_put_server_cells(file, r->servers.signal_count);
    fputc('\n', file);
}

static void put_servers(FILE *file, const fl_decisions *r, size_t step, size_t number) {
    const fl_logged_servers *s = &r->servers;
    const fl_server_place at = {.step = number,
                                .t_ns = r->t_ns[step],
                                .between =
                                    r->signal_count + r->control_count + 2 + (r->has_kernels ? FL_KERNEL_COLUMNS : 0),
                                .signal = (const char *const *)s->signal,
                                .signals = s->signal_count};
    for (uint32_t k = 0; k < s->count; k++) {
        const size_t row = step * s->count + k;
        fl_put_server_row(file, &at, k, s->lost[row], s->value + row * s->signal_count,
                          s->fresh + row * s->signal_count);
    }
    for (size_t i = step ? s->batches_until[step - 1] : 0; i < s->batches_until[step]; i++)
        fl_put_batch_row(file, &at, &s->batch[i]);
}

static void put_kernels(FILE *file, const fl_decisions *r, size_t step, size_t number, size_t kinds) {
    const fl_step_place at = {number, r->signal_count + r->control_count + 2,
                              r->servers.signal ? fl_server_column_count(r->servers.signal_count) : 0, r->t_ns[step]};
    for (size_t i = kinds; i < r->kinds_until[step]; i++)
        fl_put_kind_row(file, &at, i, &r->kind[i]);
    for (size_t i = step ? r->kernels_until[step - 1] : 0; i < r->kernels_until[step]; i++)
        fl_put_kernel_row(file, &at, &r->kernel[i]);
}

void fl_decisions_put_names(FILE *file, const fl_decisions *r) {
    fputs("step,t_ns,device", file);
    for (size_t i = 0; i < r->signal_count; i++) {
        fputc(',', file);
        fl_csv_put(file, r->signal[i]);
    }
    fputs(",fresh", file);
    for (size_t i = 0; i < r->control_count; i++)
        fprintf(file, ",set_%s", r->control[i]);
    fputs(",delay_ns", file);
    if (r->has_kernels)
        fl_put_kernel_names(file);
    if (r->servers.signal)
        fl_put_server_names(file, (const char *const *)r->servers.signal, r->servers.signal_count);
    fputc('\n', file);
}

void fl_decisions_put_step(FILE *file, const fl_decisions *r, size_t step, size_t number, size_t kinds) {
    for (size_t row = 0; row <= r->gpu_count; row++) {
        put_row(file, r, step, number, row);
        if (row == 0 && r->has_kernels)
            put_kernels(file, r, step, number, kinds);
        if (row == 0 && r->servers.signal)
            put_servers(file, r, step, number);
    }
}

/* What the reader would refuse must not get into a file. */
static fl_status check_writable(const char *path, const fl_decisions *r, fl_diag *d) {
    size_t rows = r->step_count * (r->gpu_count + 1);
    for (size_t i = 0; i < rows * r->control_count; i++)
        if (!isnan(r->set[i]) && r->set[i] != -1 && !(r->set[i] >= 0 && r->set[i] < HUGE_VAL))
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                           "step %zu sets %s to %g, expected a number of at least 0 or default",
                           i / r->control_count / (r->gpu_count + 1), r->control[i % r->control_count], r->set[i]);
    for (size_t i = 0; i < rows * r->signal_count; i++)
        if (isinf(r->value[i]))
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "step %zu has an infinite %s, expected a number",
                           i / r->signal_count / (r->gpu_count + 1), r->signal[i % r->signal_count]);
    return FL_OK;
}

fl_status fl_decisions_write(const char *path, const fl_decisions *r, fl_diag *d) {
    fl_status status = check_writable(path, r, d);
    if (status)
        return status;
    fl_output *o;
    status = fl_output_begin(path, "foldline-decisions", &r->head, &o, d);
    if (status)
        return status;
    FILE *file = fl_output_file(o);
    fl_decisions_put_names(file, r);
    for (size_t step = 0; step < r->step_count; step++)
        fl_decisions_put_step(file, r, step, step, step && r->has_kernels ? r->kinds_until[step - 1] : 0);
    return fl_output_commit(o, d);
}

/* ---- reading ---- */

typedef struct loader {
    fl_decisions r;
    size_t width;
    size_t fresh_at;   /* column of "fresh"; the set_ columns follow */
    size_t delay_at;   /* column of "delay_ns"; those of activity records may follow */
    size_t servers_at; /* first column of servers; 0: there are none */
    fl_decisions_room room;
    fl_servers_room servers_room;
    size_t row; /* rows of the step that is being read, 0 between steps */
    int64_t step_line, last_line;
    bool gpus_known; /* from the head or from the first step */
} loader;

fl_status fl_decisions_grow(fl_decisions *r, fl_decisions_room *room, size_t steps, size_t gpus) {
    size_t rows = 0, values = 0, sets = 0;
    /* One item more than needed, so that no array is NULL where a policy has no signals or no controls. */
    if (__builtin_mul_overflow(steps, gpus + 1, &rows) || __builtin_mul_overflow(rows, r->signal_count, &values) ||
        __builtin_mul_overflow(rows, r->control_count, &sets))
        return FL_NO_MEMORY;
    if (fl_grow(&r->t_ns, &room->t_ns, steps, sizeof *r->t_ns) ||
        fl_grow(&r->delay_ns, &room->delay_ns, steps, sizeof *r->delay_ns) ||
        fl_grow(&r->line, &room->line, steps, sizeof *r->line) ||
        fl_grow(&r->value, &room->value, values + 1, sizeof *r->value) ||
        fl_grow(&r->fresh, &room->fresh, values + 1, sizeof *r->fresh) ||
        fl_grow(&r->set, &room->set, sets + 1, sizeof *r->set))
        return FL_NO_MEMORY;
    return FL_OK;
}

/* ---- header ---- */

static fl_status expect(const fl_csv_row *row, size_t i, const char *name, fl_diag *d) {
    if (i < row->count && strcmp(row->field[i].text, name) == 0)
        return FL_OK;
    return FL_FIELD_FAIL(d, row, i < row->count ? i : row->count - 1, "column %zu is '%.60s', expected '%s'", i + 1,
                         i < row->count ? row->field[i].text : "", name);
}

static fl_status read_header(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_decisions *r = &l->r;
    static const char *const FIRST[] = {"step", "t_ns", "device"};
    for (size_t i = 0; i < 3; i++)
        if (expect(row, i, FIRST[i], d))
            return FL_BAD_INPUT;
    size_t fresh = 3;
    while (fresh < row->count && strcmp(row->field[fresh].text, "fresh") != 0)
        fresh++;
    if (fresh == row->count)
        return FL_FIELD_FAIL(d, row, row->count - 1, "column 'fresh' is missing, expected it after the signals");
    size_t delay = fresh + 1;
    while (delay < row->count && strcmp(row->field[delay].text, "delay_ns") != 0)
        delay++;
    if (fresh == row->count - 1)
        return FL_FIELD_FAIL(d, row, fresh, "column 'delay_ns' is missing, expected it last");
    if (delay == row->count && expect(row, row->count - 1, "delay_ns", d))
        return FL_BAD_INPUT;
    r->has_kernels = delay + 1 < row->count && !fl_server_columns(row, delay + 1);
    if (r->has_kernels && fl_kernel_columns_check(row, delay + 1, d))
        return FL_BAD_INPUT;
    const size_t more = delay + 1 + (r->has_kernels ? FL_KERNEL_COLUMNS : 0);
    if (more < row->count && !fl_server_columns(row, more))
        return FL_FIELD_FAIL(d, row, more, "column '%.60s' after 'end_ns', expected no more", row->field[more].text);
    l->servers_at = more < row->count ? more : 0;
    if (l->servers_at && fl_server_columns_read(row, more, &r->servers, d))
        return d ? d->status : FL_BAD_INPUT;
    for (size_t i = fresh + 1; i < delay; i++)
        if (strncmp(row->field[i].text, "set_", 4) != 0)
            return FL_FIELD_FAIL(d, row, i, "column '%.60s' after 'fresh', expected set_ and the name of a control",
                                 row->field[i].text);
    l->width = row->count;
    l->fresh_at = fresh;
    l->delay_at = delay;
    fl_status status = fl_columns_names(row, 3, fresh - 3, 0, &r->signal, &r->signal_count, d);
    if (!status)
        status = fl_columns_names(row, fresh + 1, delay - fresh - 1, 4, &r->control, &r->control_count, d);
    const char *gpus = fl_head_get(&r->head, "gpus");
    if (!status && gpus) {
        char *end;
        unsigned long n = strtoul(gpus, &end, 10);
        if (*end || n < 1 || n > UINT16_MAX)
            return fl_fail(d, FL_BAD_INPUT, row->file, fl_head_line(&r->head, "gpus"), 0,
                           "'gpus: %.40s' in the head, expected a number from 1 to %d", gpus, UINT16_MAX);
        r->gpu_count = (uint32_t)n;
        l->gpus_known = true;
    }
    return status;
}

/* ---- rows ---- */

static fl_status mark_fresh(const fl_decisions *r, const fl_csv_row *row, size_t column, const double *value,
                            bool *fresh, fl_diag *d) {
    const char *text = row->field[column].text;
    bool all = strcmp(text, "*") == 0;
    for (size_t i = 0; i < r->signal_count; i++)
        fresh[i] = all && !isnan(value[i]);
    while (!all && *text) {
        size_t size = strcspn(text, "+"), i = 0;
        while (i < r->signal_count && (strncmp(r->signal[i], text, size) != 0 || r->signal[i][size]))
            i++;
        if (i == r->signal_count)
            return FL_FIELD_FAIL(d, row, column, "fresh names '%.*s', expected names of signal columns joined by '+'",
                                 size < 60 ? (int)size : 60, text);
        if (isnan(value[i]))
            return FL_FIELD_FAIL(d, row, column, "fresh names '%.60s', which has no value in this row", r->signal[i]);
        fresh[i] = true;
        text += size;
        if (*text == '+' && *++text == '\0')
            return FL_FIELD_FAIL(d, row, column, "fresh ends with '+', expected the name of a signal");
    }
    return FL_OK;
}

/* Powers, energies, clocks and shares are not negative. A temperature may be, and so may a signal of another name. */
static double least_of(const char *signal) {
    static const char *const unit[] = {"_w", "_j", "_mhz", "_pct"};
    const size_t size = strlen(signal);
    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++) {
        const size_t end = strlen(unit[i]);
        if (size > end && !strcmp(signal + size - end, unit[i]))
            return 0;
    }
    return -HUGE_VAL;
}

static fl_status read_values(loader *l, const fl_csv_row *row, size_t index, fl_diag *d) {
    fl_decisions *r = &l->r;
    double *value = r->value + index * r->signal_count;
    double *set = r->set + index * r->control_count;
    fl_status status = FL_OK;
    for (size_t i = 0; i < r->signal_count && !status; i++)
        status = fl_field_real_or_nan(row, i + 3, r->signal[i], least_of(r->signal[i]), HUGE_VAL, &value[i], d);
    if (!status && r->signal_count)
        status = mark_fresh(r, row, l->fresh_at, value, r->fresh + index * r->signal_count, d);
    for (size_t i = 0; i < r->control_count && !status; i++) {
        size_t column = l->fresh_at + 1 + i;
        if (strcmp(row->field[column].text, "default") == 0)
            set[i] = -1;
        else
            status = fl_field_real_or_nan(row, column, r->control[i], 0, HUGE_VAL, &set[i], d);
    }
    return status;
}

/* Where the row must stand: step after step, in each the host and then the GPUs from 0. */
static fl_status read_place(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_decisions *r = &l->r;
    int64_t step = 0, device = -1, t_ns = 0;
    fl_status status = fl_field_int(row, 0, "step", 0, INT64_MAX, &step, d);
    if (!status)
        status = fl_field_int(row, 1, "t_ns", 0, INT64_MAX, &t_ns, d);
    bool host = strcmp(row->field[2].text, "host") == 0;
    if (!status && !host)
        status = fl_field_int(row, 2, "device (or 'host')", 0, UINT16_MAX, &device, d);
    if (status)
        return status;
    if (host && l->row && !l->gpus_known) { /* the first step ends here */
        if (l->row == 1)
            return FL_FIELD_FAIL(d, row, 2, "the step before has no GPU row, expected at least one after 'host'");
        r->gpu_count = (uint32_t)l->row - 1;
        l->gpus_known = true;
        l->row = 0;
        r->step_count++;
    }
    size_t now = r->step_count;
    if (l->row == 0 && !host)
        return FL_FIELD_FAIL(d, row, 2, "device %lld, expected 'host' first in step %zu", (long long)device, now);
    if (l->row && (host || (size_t)device != l->row - 1))
        return FL_FIELD_FAIL(d, row, 2, "device '%.40s', expected %zu in step %zu", row->field[2].text, l->row - 1,
                             now);
    if ((uint64_t)step != now)
        return FL_FIELD_FAIL(d, row, 0, "step is %lld, expected %zu", (long long)step, now);
    if (l->row && t_ns != r->t_ns[now])
        return FL_FIELD_FAIL(d, row, 1, "t_ns is %lld, expected %lld as in the host's row of this step",
                             (long long)t_ns, (long long)r->t_ns[now]);
    if (!l->row && now && t_ns < r->t_ns[now - 1])
        return FL_FIELD_FAIL(d, row, 1, "t_ns %lld is before %lld of the step above", (long long)t_ns,
                             (long long)r->t_ns[now - 1]);
    if (fl_decisions_grow(r, &l->room, now + 1, l->gpus_known ? r->gpu_count : l->row))
        return fl_no_memory(d, row->file);
    r->t_ns[now] = t_ns;
    return FL_OK;
}

static fl_status read_row(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_decisions *r = &l->r;
    fl_status status = fl_columns_width(row, l->width, d);
    if (!status)
        status = read_place(l, row, d);
    if (status)
        return status;
    size_t now = r->step_count, delay = l->delay_at;
    uint64_t lost = 0;
    if (r->has_kernels)
        status = fl_kernel_cells_read(row, delay + 1, l->row ? NULL : &lost, d);
    if (!status && l->servers_at)
        status = fl_server_cells_read(row, l->servers_at, &r->servers, d);
    if (!status && l->servers_at && l->row == 1) /* the first GPU's: those of servers are over */
        status = fl_server_step_read(row, &r->servers, &l->servers_room, d);
    if (!status && r->has_kernels && !l->row && fl_decisions_add_step(r, &l->room, now, lost))
        status = fl_no_memory(d, row->file);
    if (status)
        return status;
    size_t index = l->gpus_known ? now * (r->gpu_count + 1) + l->row : l->row;
    status = read_values(l, row, index, d);
    if (l->row == 0) {
        r->line[now] = row->line;
        r->delay_ns[now] = -1;
        if (!status && row->field[delay].size)
            status = fl_field_int(row, delay, "delay_ns", 0, INT64_MAX, &r->delay_ns[now], d);
    } else if (!status && row->field[delay].size) {
        status = FL_FIELD_FAIL(d, row, delay, "delay_ns is '%.40s' in a GPU's row, expected it in the host's only",
                               row->field[delay].text);
    }
    return status;
}

/* Of the step whose host's row stands above. */
static fl_status read_server_row(loader *l, const fl_csv_row *row, fl_diag *d) {
    const size_t now = l->r.step_count;
    int64_t step = 0, t_ns = 0;
    fl_status s = fl_field_int(row, 0, "step", 0, INT64_MAX, &step, d);
    if (!s)
        s = fl_field_int(row, 1, "t_ns", 0, INT64_MAX, &t_ns, d);
    if (!s && ((size_t)step != now || t_ns != l->r.t_ns[now]))
        s = FL_FIELD_FAIL(d, row, 0, "step and t_ns are not those of the host's row of step %zu", now);
    return s ? s : fl_server_row_read(row, l->servers_at, &l->r.servers, &l->servers_room, d);
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (!l->width)
        return read_header(l, row, d);
    l->last_line = row->line;
    size_t steps = l->r.step_count;
    fl_diag own = {.status = FL_OK};
    const bool kernel = l->r.has_kernels && l->row == 1 && row->count == l->width && fl_kernel_row(row);
    const bool server = l->servers_at && l->row == 1 && row->count == l->width && fl_server_row(row);
    fl_status status = kernel   ? fl_kernel_row_read(row, l->delay_at + 1, steps, &l->r, &l->room, &own)
                       : server ? read_server_row(l, row, &own)
                                : read_row(l, row, &own);
    if (status == FL_BAD_INPUT && row->torn && row->count <= l->width) {
        l->r.torn_line = row->line;
        /* A torn host row ends the first step too, though it may be too short to say so. */
        if (!l->gpus_known && l->row > 1 && strcmp(row->field[0].text, "0") != 0 && l->r.step_count == steps) {
            l->r.gpu_count = (uint32_t)l->row - 1;
            l->gpus_known = true;
            l->r.step_count++;
        }
        l->row = 0;
        return FL_OK; /* and nothing is said in *d */
    }
    if (status && d)
        *d = own;
    if (status || kernel || server)
        return status;
    l->row++;
    if (l->gpus_known && l->row == (size_t)l->r.gpu_count + 1) {
        l->row = 0;
        l->r.step_count++;
    }
    return FL_OK;
}

fl_status fl_decisions_read(const char *path, fl_decisions *r, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-decisions"};
    loader l = {0};
    fl_status status = fl_csv_read(path, &OPTIONS, &l.r.head, on_row, &l, d);
    if (!status && !l.gpus_known && l.row > 1) { /* one step only, ended by the file */
        l.r.gpu_count = (uint32_t)l.row - 1;
        l.r.step_count++;
        l.row = 0;
    }
    if (!status && l.row)
        l.r.torn_line = l.last_line;
    if (!status && l.r.step_count == 0)
        status = fl_fail(d, FL_BAD_INPUT, path, l.last_line, 0,
                         "no complete step, expected the row of the host and one for each GPU");
    if (status)
        fl_decisions_free(&l.r);
    *r = l.r;
    return status;
}
