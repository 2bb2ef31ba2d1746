/* Telemetry files, both ways. */
#include "traces/files/files.h"

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct loader {
    fl_telemetry t;
    size_t width;
    size_t device_room, value_room; /* in rows and values; t.row_room is that of t_ns */
    int64_t *last_ns;               /* of device i - 1: INT64_MIN before its first row */
    size_t last_room;
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
    return fl_columns_names(row, 2, row->count - 2, 0, &l->t.signal, &l->t.signal_count, d);
}

/* Time must not run backwards on any device; devices may stand one after another or mixed. */
static fl_status check_order(loader *l, const fl_csv_row *row, int64_t t_ns, int64_t device, fl_diag *d) {
    size_t at = (size_t)(device + 1);
    size_t before = l->last_room;
    if (fl_grow(&l->last_ns, &l->last_room, at + 1, sizeof *l->last_ns))
        return fl_no_memory(d, row->file);
    for (size_t i = before; i < l->last_room; i++)
        l->last_ns[i] = INT64_MIN;
    if (t_ns < l->last_ns[at])
        return FL_FIELD_FAIL(d, row, 0,
                             "t_ns %lld is before %lld of the device's row above, expected rows in time order",
                             (long long)t_ns, (long long)l->last_ns[at]);
    l->last_ns[at] = t_ns;
    return FL_OK;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (!l->width)
        return read_header(l, row, d);
    fl_telemetry *t = &l->t;
    int64_t t_ns = 0, device = -1;
    fl_status status = fl_columns_width(row, l->width, d);
    if (!status)
        status = fl_field_int(row, 0, "t_ns", 0, INT64_MAX, &t_ns, d);
    if (!status && strcmp(row->field[1].text, "host") != 0)
        status = fl_field_int(row, 1, "device (or 'host')", 0, UINT16_MAX, &device, d);
    if (!status)
        status = check_order(l, row, t_ns, device, d);
    if (status)
        return status;
    size_t n = t->row_count, signals = t->signal_count;
    if (fl_grow(&t->t_ns, &t->row_room, n + 1, sizeof *t->t_ns) ||
        fl_grow(&t->device, &l->device_room, n + 1, sizeof *t->device) ||
        fl_grow(&t->value, &l->value_room, (n + 1) * signals, sizeof *t->value))
        return fl_no_memory(d, row->file);
    t->t_ns[n] = t_ns;
    t->device[n] = (int32_t)device;
    for (size_t i = 0; i < signals && !status; i++)
        status = fl_field_real_or_nan(row, i + 2, t->signal[i], -HUGE_VAL, HUGE_VAL, &t->value[n * signals + i], d);
    t->row_count++;
    return status;
}

fl_status fl_telemetry_read(const char *path, fl_telemetry *t, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-telemetry"};
    loader l = {0};
    fl_status status = fl_csv_read(path, &OPTIONS, &l.t.head, on_row, &l, d);
    if (!status && l.t.row_count == 0)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no readings, expected at least one row after the header");
    free(l.last_ns);
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
