/* The log of Zeus' power monitor.
 *
 * The forms: github.com/ml-energy/zeus, zeus/monitor/power.py before commit 5642d2f (2023-08 to 2025-07, versions 0.7
 * to 0.12): no header, a row "TIME,POWER,POWER,..." with the time in s since 1970 and the power in W of each chosen
 * GPU. zeus/utils/metric.py of the same versions also reads the log of the monitor before it, one file per GPU: columns
 * Time (a date) and Power in mW, whose last line may be cut off. Version 0.16 writes no file. */
#include "traces/import/inside.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct loader {
    fl_readings r;
    fl_stamps stamps;
    size_t power, width;
    int32_t only;
    bool old;
    int64_t torn;
} loader;

static bool is_old(const fl_cells *line) {
    return line->count == 2 && fl_cell_is(line->cell[0], "Time") && fl_cell_is(line->cell[1], "Power");
}

static bool number(fl_cell c, double least, double most) {
    char text[64];
    double x;
    snprintf(text, sizeof text, "%.*s", (int)(c.size < 63 ? c.size : 63), c.text);
    return fl_real_parse(text, &x) == FL_NUMBER_OK && x >= least && x <= most;
}

/* A time between 2020 and 2040, with a fraction, and powers. */
static bool is_row(const fl_cells *line) {
    bool all =
        line->count > 1 && number(line->cell[0], 1.57e9, 2.21e9) && memchr(line->cell[0].text, '.', line->cell[0].size);
    for (size_t i = 1; all && i < line->count; i++)
        all = number(line->cell[i], 0, FL_WATTS_MOST);
    return all;
}

static bool detect(const char *path, const char *head, size_t size) {
    (void)path;
    const char *end = memchr(head, '\n', size);
    const size_t first = end ? (size_t)(end - head) : size;
    return fl_header_find(head, size, is_old) == 0 ||
           (fl_header_find(head, size, is_row) == 0 && !memchr(head, ';', first) && memchr(head, ',', first));
}

static fl_status read_row(loader *l, const fl_csv_row *row, fl_diag *d) {
    int64_t ns = 0;
    fl_status s = fl_foreign_width(row, l->width, d);
    if (!s)
        s = fl_stamp_read(&l->stamps, row, 0, "the time", 0, &ns, d);
    for (size_t i = 1; i < row->count && !s; i++) {
        if (l->only >= 0 && (size_t)l->only != i - 1)
            continue;
        double *value = fl_telemetry_row(&l->r.rows);
        if (!value)
            return fl_no_memory(d, row->file);
        s = fl_cell_read(row, i, row->field[i].text, "the power", "power_w", l->old ? 1e-3 : 1, &value[l->power], d);
        if (!s)
            s = fl_signal_check(row, i, "the power", fl_signal_range_of("power_w"), value[l->power], d);
        if (!s)
            s = fl_readings_take(&l->r, row, ns, (int32_t)i - 1, d);
    }
    return s;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (!l->width) {
        l->width = row->count;
        l->old = !strcmp(row->field[0].text, "Time");
        const fl_status s = fl_readings_signal(&l->r, "power_w", &l->power, d);
        if (s || l->old)
            return s;
    }
    if (row->torn) {
        l->torn = row->line;
        return FL_OK;
    }
    return fl_left_row(&l->r.left, read_row(l, row, &l->r.left.own), d);
}

static fl_status read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true};
    loader *l = calloc(1, sizeof *l);
    if (!l)
        return fl_no_memory(d, path);
    l->only = o->device;
    fl_readings_begin(&l->r, out);
    fl_stamps_begin(&l->stamps, -1);
    fl_status s = fl_csv_read(path, &OPTIONS, NULL, on_row, l, d);
    if (!s)
        s = fl_readings_end(&l->r, path, d);
    if (!s) {
        if (l->width > 2)
            fl_import_say(out, "GPUs are numbered as they were chosen, from 0: the file has no numbers");
        if (l->stamps.local)
            fl_stamps_say(&l->stamps, out);
        fl_import_torn(out, l->torn);
        fl_import_say(out, "no kernels: readings only");
        s = fl_import_said(out, d);
    }
    fl_readings_free(&l->r);
    free(l);
    return s;
}

const fl_reader fl_reader_zeus_power = {"zeus-power",
                                        "log of Zeus' PowerMonitor (time, power of each GPU)",
                                        "Zeus 0.3 to 0.12",
                                        FL_GIVES_READINGS | FL_GIVES_TIMES | FL_GIVES_POWER,
                                        detect,
                                        read};
