/* Telemetry files, both ways. */
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values that can be ---- */

static const struct {
    const char *name;
    fl_signal_range range;
} RANGE[] = {
    {"power_w", {0, FL_WATTS_MOST}},
    {"power_instant_w", {0, FL_WATTS_MOST}},
    {"power_limit_w", {0, FL_WATTS_MOST}},
    {"node_power_w", {0, 10 * FL_WATTS_MOST}},
    {"energy_j", {0, 1e15}}, /* 3,000 years at 10 kW */
    {"cpu_energy_j", {0, 1e15}},
    {"node_energy_j", {0, 1e15}},
    {"sm_mhz", {0, FL_SM_MHZ_MOST}},
    {"cpu_mhz", {0, FL_SM_MHZ_MOST}},
    {"mem_mhz", {0, FL_MEM_MHZ_MOST}},
    {"temp_c", {-100, 250}},
};

#define PERCENT_MOST 101 /* ratios of counters exceed 1 by some last digits */

fl_signal_range fl_signal_range_of(const char *signal) {
    const size_t size = strlen(signal);
    for (size_t i = 0; i < sizeof RANGE / sizeof *RANGE; i++)
        if (!strcmp(signal, RANGE[i].name))
            return RANGE[i].range;
    if (size > 4 && !strcmp(signal + size - 4, "_pct"))
        return (fl_signal_range){0, PERCENT_MOST};
    return (fl_signal_range){-HUGE_VAL, HUGE_VAL};
}

fl_status fl_signal_check(const fl_csv_row *row, size_t index, const char *what, fl_signal_range range, double value,
                          fl_diag *d) {
    if (isnan(value) || (value >= range.least && value <= range.most && !isinf(value)))
        return FL_OK;
    if (isinf(range.most))
        return FL_FIELD_WRONG(d, row, index, "%s is %g, expected a finite number", what, value);
    return FL_FIELD_WRONG(d, row, index, "%s is %g, expected %g to %g", what, value, range.least, range.most);
}

/* ---- rows ---- */

double *fl_telemetry_row(fl_telemetry_rows *r) {
    if (fl_grow(&r->value, &r->cell_room, r->t->signal_count + 1, sizeof *r->value))
        return NULL;
    for (size_t i = 0; i < r->t->signal_count; i++)
        r->value[i] = NAN;
    return r->value;
}

fl_status fl_telemetry_take(fl_telemetry_rows *r, const fl_csv_row *row, int64_t t_ns, int32_t device, fl_diag *d) {
    fl_telemetry *t = r->t;
    const size_t n = t->row_count, at = (size_t)(device + 1), before = r->last_room;
    if (fl_grow(&t->t_ns, &t->row_room, n + 1, sizeof *t->t_ns) ||
        fl_grow(&t->device, &r->device_room, n + 1, sizeof *t->device) ||
        fl_grow(&t->value, &r->value_room, (n + 1) * t->signal_count, sizeof *t->value) ||
        fl_grow(&r->line, &r->line_room, n + 1, sizeof *r->line) ||
        fl_grow(&r->last_ns, &r->last_room, at + 1, sizeof *r->last_ns))
        return fl_no_memory(d, row->file);
    for (size_t i = before; i < r->last_room; i++)
        r->last_ns[i] = INT64_MIN;
    if (t_ns < r->last_ns[at] && r->left->strict)
        return FL_FIELD_WRONG(d, row, 0,
                              "t_ns %lld is before %lld of the device's row above, expected rows in time order",
                              (long long)t_ns, (long long)r->last_ns[at]);
    r->disorder |= t_ns < r->last_ns[at];
    r->last_ns[at] = t_ns;
    r->line[n] = row->line;
    t->t_ns[n] = t_ns;
    t->device[n] = device;
    memcpy(t->value + n * t->signal_count, r->value, t->signal_count * sizeof *r->value);
    t->row_count++;
    return FL_OK;
}

/* ---- order ---- */

typedef struct step_back { /* where the time first goes back */
    int64_t line;
    double seconds;
} step_back;

/* Marks what is out of order among the rows of one device. Two marked rows in turn tell of a clock that was set back;
 * one alone has a wrong time. */
static fl_status mark(fl_telemetry_rows *r, int32_t device, const char *path, bool *out, step_back *first, fl_diag *d) {
    fl_telemetry *t = r->t;
    size_t count = 0, before = SIZE_MAX;
    step_back own = {0};
    int64_t *t_ns = malloc((t->row_count + 1) * sizeof *t_ns);
    bool *of = malloc((t->row_count + 1) * sizeof *of), set_back = false;
    for (size_t i = 0; t_ns && i < t->row_count; i++)
        if (t->device[i] == device)
            t_ns[count++] = t->t_ns[i];
    const size_t wrong = t_ns && of ? fl_disorder(t_ns, count, of) : SIZE_MAX;
    count = 0;
    for (size_t i = 0; wrong != SIZE_MAX && i < t->row_count; i++) {
        if (t->device[i] != device)
            continue;
        out[i] = of[count++];
        set_back |= out[i] && before != SIZE_MAX && out[before];
        if (!own.line && before != SIZE_MAX && t->t_ns[i] < t->t_ns[before])
            own = (step_back){r->line[i], (double)(t->t_ns[before] - t->t_ns[i]) * 1e-9};
        before = i;
    }
    if (own.line && (!first->line || own.line < first->line))
        *first = own;
    if (set_back && !t->back_line) {
        t->back_line = own.line;
        t->back_column = 1;
        t->back_s = own.seconds;
    }
    free(t_ns);
    free(of);
    return wrong == SIZE_MAX ? fl_no_memory(d, path) : FL_OK;
}

static fl_status leave_disorder(fl_telemetry_rows *r, const char *path, fl_diag *d) {
    fl_telemetry *t = r->t;
    const size_t width = t->signal_count;
    size_t kept = 0;
    int64_t line = -1;
    step_back first = {0};
    bool *out = calloc(t->row_count + 1, sizeof *out);
    fl_status status = out ? FL_OK : fl_no_memory(d, path);
    for (size_t v = 0; !status && v < r->last_room; v++)
        if (r->last_ns[v] != INT64_MIN)
            status = mark(r, (int32_t)v - 1, path, out, &first, d);
    for (size_t i = 0; !status && i < t->row_count; i++) {
        if (out[i] && r->line[i] == line) /* a further device of the same row */
            continue;
        if (out[i]) {
            line = r->line[i];
            fl_fail(
                &r->left->own, FL_BAD_INPUT, path, first.line, 1,
                "the time stamp is %.4g s earlier than the one before (was the clock set back?), expected rows in time "
                "order",
                first.seconds);
            r->left->rows--; /* it was counted as it came */
            status = fl_left_row(r->left, fl_of_values(&r->left->own), d);
            continue;
        }
        t->t_ns[kept] = t->t_ns[i];
        t->device[kept] = t->device[i];
        r->line[kept] = r->line[i];
        memmove(t->value + kept * width, t->value + i * width, width * sizeof *t->value);
        kept++;
    }
    t->row_count = status ? t->row_count : kept;
    free(out);
    return status;
}

fl_status fl_telemetry_end(fl_telemetry_rows *r, const char *path, fl_left_out *to, fl_diag *d) {
    const fl_status status = r->disorder ? leave_disorder(r, path, d) : FL_OK;
    return status ? status : fl_left_end(r->left, to, path, d);
}

void fl_telemetry_rows_free(fl_telemetry_rows *r) {
    free(r->value);
    free(r->line);
    free(r->last_ns);
    memset(r, 0, sizeof *r);
}

/* ---- files ---- */

typedef struct loader {
    fl_telemetry t;
    fl_telemetry_rows rows;
    fl_left_out left;
    fl_signal_range *range; /* of each signal */
    size_t width;
} loader;

static fl_status read_header(loader *l, const fl_csv_row *row, fl_diag *d) {
    static const char *const FIRST[] = {"t_ns", "device"};
    for (size_t i = 0; i < 2; i++)
        if (i >= row->count || strcmp(row->field[i].text, FIRST[i]) != 0)
            return FL_FIELD_FAIL(d, row, i < row->count ? i : row->count - 1,
                                 "column %zu is '%.60s', expected 't_ns,device' and then signals", i + 1,
                                 i < row->count ? row->field[i].text : "");
    if (row->count < 3)
        return FL_FIELD_FAIL(d, row, 1, "no signal columns, expected at least one after t_ns and device");
    l->width = row->count;
    if (!(l->range = calloc(row->count, sizeof *l->range)))
        return fl_no_memory(d, row->file);
    for (size_t i = 2; i < row->count; i++)
        if (!strcmp(row->field[i].text, FIRST[0]) || !strcmp(row->field[i].text, FIRST[1]))
            return FL_FIELD_FAIL(d, row, i, "column '%s' is given twice, expected once", row->field[i].text);
    for (size_t i = 2; i < row->count; i++)
        l->range[i - 2] = fl_signal_range_of(row->field[i].text);
    return fl_columns_names(row, 2, row->count - 2, 0, &l->t.signal, &l->t.signal_count, d);
}

static fl_status read_row(loader *l, const fl_csv_row *row, fl_diag *d) {
    const fl_telemetry *t = &l->t;
    int64_t t_ns = 0, device = -1;
    double *value = fl_telemetry_row(&l->rows);
    fl_status status = value ? fl_columns_width(row, l->width, d) : fl_no_memory(d, row->file);
    if (!status && (fl_no_value(row->field[0].text) || fl_no_value(row->field[1].text)))
        return fl_left_empty(&l->left, row->file, row->line, 1, d, "t_ns or device is '%.40s'",
                             row->field[fl_no_value(row->field[0].text) ? 0 : 1].text);
    if (!status)
        status = fl_field_int(row, 0, "t_ns", 0, INT64_MAX, &t_ns, d);
    if (!status && strcmp(row->field[1].text, "host") != 0)
        status = fl_field_int(row, 1, "device (or 'host')", 0, UINT16_MAX, &device, d);
    for (size_t i = 0; i < t->signal_count && !status; i++) {
        if (fl_no_value(row->field[i + 2].text))
            continue;
        status = fl_field_real(row, i + 2, t->signal[i], -HUGE_VAL, HUGE_VAL, &value[i], d);
        if (!status)
            status = fl_signal_check(row, i + 2, t->signal[i], l->range[i], value[i], d);
    }
    return status ? status : fl_telemetry_take(&l->rows, row, t_ns, (int32_t)device, d);
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    return l->width ? fl_left_row(&l->left, read_row(l, row, &l->left.own), d) : read_header(l, row, d);
}

fl_status fl_telemetry_read(const char *path, fl_telemetry *t, fl_left_out *left, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-telemetry"};
    loader l = {.left = fl_left_begin(left)};
    l.rows = (fl_telemetry_rows){.t = &l.t, .left = &l.left};
    fl_status status = fl_csv_read(path, &OPTIONS, &l.t.head, on_row, &l, d);
    fl_left_earlier(&l.left, fl_head_get(&l.t.head, FL_LEFT_KEY));
    if (!status)
        status = fl_telemetry_end(&l.rows, path, left, d);
    if (!status && l.t.row_count == 0)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no readings, expected at least one row after the header");
    fl_telemetry_rows_free(&l.rows);
    free(l.range);
    if (status)
        fl_telemetry_free(&l.t);
    *t = l.t;
    return status;
}

fl_status fl_telemetry_write(const char *path, const fl_telemetry *t, fl_diag *d) {
    fl_output *o;
    fl_status status = fl_output_begin(path, "foldline-telemetry", &t->head, &o, d);
    if (status)
        return status;
    FILE *file = fl_output_file(o);
    fputs("t_ns,device", file);
    for (size_t i = 0; i < t->signal_count; i++) {
        fputc(',', file);
        fl_csv_put(file, t->signal[i]);
    }
    fputc('\n', file);
    for (size_t n = 0; n < t->row_count; n++) {
        fl_put_int(file, t->t_ns[n]);
        fputc(',', file);
        fl_put_device(file, t->device[n]);
        for (size_t i = 0; i < t->signal_count; i++) {
            fputc(',', file);
            fl_put_real(file, t->value[n * t->signal_count + i]);
        }
        fputc('\n', file);
    }
    return fl_output_commit(o, d);
}

/* ---- target files: the power that a node is to draw over time ---- */

#define WATTS_MOST 1e7 /* as the option --gpu-budget */

enum { T_NS, WATTS, COLUMNS };
static const char *const COLUMN[COLUMNS] = {"t_ns", "watts"};

typedef struct target_loader {
    fl_target t;
    size_t where[COLUMNS], width;
} target_loader;

static fl_status on_target(void *user, const fl_csv_row *row, fl_diag *d) {
    target_loader *l = user;
    fl_target *t = &l->t;
    if (!l->width) {
        l->width = row->count;
        return fl_columns_find(row, COLUMN, COLUMNS, COLUMNS, l->where, d);
    }
    int64_t at = 0;
    double watts = 0;
    fl_status s = fl_columns_width(row, l->width, d);
    if (!s)
        s = fl_field_int(row, l->where[T_NS], COLUMN[T_NS], 0, INT64_MAX, &at, d);
    if (!s)
        s = fl_field_real(row, l->where[WATTS], COLUMN[WATTS], 0, WATTS_MOST, &watts, d);
    if (s)
        return s;
    if (t->count && at <= t->t_ns[t->count - 1])
        return FL_FIELD_FAIL(d, row, l->where[T_NS], "t_ns is %" PRId64 " after %" PRId64 ", expected a later time", at,
                             t->t_ns[t->count - 1]);
    if (fl_grow(&t->t_ns, &t->room, t->count + 1, sizeof *t->t_ns) ||
        fl_grow(&t->watts, &t->watts_room, t->count + 1, sizeof *t->watts))
        return fl_no_memory(d, row->file);
    t->t_ns[t->count] = at;
    t->watts[t->count++] = watts;
    return FL_OK;
}

fl_status fl_target_read(const char *path, fl_target *t, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-target", .head_optional = true};
    target_loader l = {0};
    fl_status s = fl_csv_read(path, &OPTIONS, &l.t.head, on_target, &l, d);
    if (!s && !l.t.count)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no target, expected at least one row after the header");
    if (s)
        fl_target_free(&l.t);
    *t = l.t;
    return s;
}
