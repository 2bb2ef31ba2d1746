#include "harness/fit/trace/meter.h"

#include "traces/io/columns.h"
#include "traces/open/readers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void fl_meter_free(fl_meter *m) {
    free(m->time_s);
    free(m->watts);
    *m = (fl_meter){0};
}

fl_sensor_course fl_meter_course(const fl_meter *m) { return (fl_sensor_course){m->time_s, m->watts, m->count}; }

static fl_status add(fl_meter *m, double time_s, double watts, fl_diag *d) {
    if (fl_grow(&m->time_s, &m->time_room, m->count + 1, sizeof *m->time_s) ||
        fl_grow(&m->watts, &m->watts_room, m->count + 1, sizeof *m->watts))
        return fl_no_memory(d, "the meter's samples");
    m->time_s[m->count] = time_s;
    m->watts[m->count++] = watts;
    return FL_OK;
}

/* ---- a plain CSV ---- */

enum { T_S, T_MS, T_US, T_NS, POWER, COLUMNS };
static const char *const COLUMN[COLUMNS] = {"t_s", "t_ms", "t_us", "t_ns", "power_w"};

typedef struct loader {
    fl_meter *m;
    size_t where[COLUMNS], width, time; /* time: which of the first four it is */
    double first;
} loader;

static fl_status take_header(loader *l, const fl_csv_row *row, fl_diag *d) {
    const fl_status s = fl_columns_find(row, COLUMN, COLUMNS, 0, l->where, d);
    l->width = row->count;
    for (l->time = 0; !s && l->time < POWER && l->where[l->time] == SIZE_MAX;)
        l->time++;
    if (!s && (l->time == POWER || l->where[POWER] == SIZE_MAX))
        return FL_FIELD_FAIL(d, row, row->count - 1, "expected a column of time (t_s, t_ms, t_us or t_ns) and power_w");
    return s;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    static const double unit[] = {1, 1e-3, 1e-6, 1e-9};
    loader *l = user;
    double time = 0, watts = 0;
    if (!l->width)
        return take_header(l, row, d);
    fl_status s = fl_columns_width(row, l->width, d);
    if (!s)
        s = fl_field_real(row, l->where[l->time], COLUMN[l->time], -1e20, 1e20, &time, d);
    if (!s)
        s = fl_field_real_or_nan(row, l->where[POWER], "power_w", -1e6, 1e6, &watts, d);
    if (s || isnan(watts))
        return s;
    l->first = l->m->count ? l->first : time;
    const double at = (time - l->first) * unit[l->time];
    if (l->m->count && at <= l->m->time_s[l->m->count - 1])
        return FL_FIELD_FAIL(d, row, l->where[l->time], "the time does not rise, expected later than the row before");
    return add(l->m, at, watts, d);
}

/* ---- telemetry ---- */

static fl_status from_telemetry(const fl_telemetry *t, const char *path, fl_meter *m, fl_diag *d) {
    static const char *const signal[] = {"node_power_w", "power_w"};
    size_t column = SIZE_MAX;
    for (size_t i = 0; i < 2 && column == SIZE_MAX; i++)
        for (size_t k = 0; k < t->signal_count && column == SIZE_MAX; k++)
            if (!strcmp(t->signal[k], signal[i]))
                column = k;
    if (column == SIZE_MAX)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no power, expected node_power_w or power_w");
    fl_status s = FL_OK;
    int64_t first = 0;
    for (size_t i = 0; !s && i < t->row_count; i++) {
        const double watts = t->value[i * t->signal_count + column];
        if (isnan(watts))
            continue;
        first = m->count ? first : t->t_ns[i];
        const double at = (double)(t->t_ns[i] - first) * 1e-9;
        if (!m->count || at > m->time_s[m->count - 1])
            s = add(m, at, watts, d);
    }
    return s;
}

fl_status fl_meter_read(const char *path, fl_meter *m, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-meter", .head_optional = true};
    const fl_import_options all = {.device = -1};
    const fl_reader *reader = NULL;
    fl_diag ignored = {0};
    fl_imported in = {0};
    fl_head head = {0};
    loader l = {.m = m};
    *m = (fl_meter){0};
    fl_status s;
    if (!fl_reader_find(path, NULL, &reader, &ignored)) {
        s = fl_reader_read(reader, path, &all, &in, d);
        if (!s && !in.has_telemetry)
            s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no telemetry, expected what a power meter recorded");
        if (!s)
            s = from_telemetry(&in.telemetry, path, m, d);
    } else {
        s = fl_csv_read(path, &OPTIONS, &head, on_row, &l, d);
    }
    if (!s && m->count < 2)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "%zu samples of power, expected two or more", m->count);
    fl_imported_free(&in);
    fl_head_free(&head);
    if (s)
        fl_meter_free(m);
    return s;
}
