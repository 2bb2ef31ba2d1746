/* The windows that Zeus measured, as settings: the limit or clock stands in a window's name.
 *
 * The form: github.com/ml-energy/zeus 0.16.0, zeus/monitor/energy.py, ZeusMonitor(log_file=...): a header
 * start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy,... (of the chosen GPUs), times in s, energies in J.
 * Names are not quoted, so a comma in one adds a field; windows may nest. */
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/import/inside.h"
#include "traces/io/io.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_ROOM = 256, CELLS = 6 };

static const char *const TARGET[CELLS] = {"workload", "sm_mhz", "power_cap_w", "time_s", "power_w", "energy_j"};

typedef struct loader {
    fl_sweep_rows *rows;
    fl_imported *out;
    fl_left_out left;
    size_t width, gpus;
    int64_t torn;
} loader;

static bool is_header(const fl_cells *line) {
    return line->count > 3 && fl_cell_is(line->cell[0], "start_time") && fl_cell_is(line->cell[1], "window_name") &&
           fl_cell_is(line->cell[2], "elapsed_time");
}

static bool detect(const char *path, const char *head, size_t size) {
    (void)path;
    return fl_header_find(head, size, is_header) == 0;
}

static size_t skip_back(const char *name, size_t at) {
    while (at && strchr("_-=: @", name[at - 1]))
        at--;
    return at;
}

/* Where one of the words begins that stands before byte `at`; SIZE_MAX: none does. */
static size_t word_before(const char *name, size_t at, const char *const *word) {
    at = skip_back(name, at);
    for (; *word; word++) {
        const size_t size = strlen(*word);
        if (at >= size && !strncasecmp(name + at - size, *word, size) &&
            (at == size || !isalpha((unsigned char)name[at - size - 1])))
            return at - size;
    }
    return SIZE_MAX;
}

/* Where the unit ends that stands at byte `at`, perhaps behind a separator; SIZE_MAX: none does. */
static size_t unit_end(const char *name, size_t at, const char *const *unit) {
    at += strspn(name + at, "_- ");
    for (; *unit; unit++) {
        const size_t size = strlen(*unit);
        if (!strncasecmp(name + at, *unit, size) && !isalpha((unsigned char)name[at + size]))
            return at + size;
    }
    return SIZE_MAX;
}

/* Takes "150W", "pl150", "power_limit=150", "1410MHz", "sm_1410" out of a name. *limit: it is a power limit. */
static bool take_setting(char *name, double *value, bool *limit) {
    static const char *const before[2][8] = {{"sm", "clock", "clk", "freq", "mhz", NULL},
                                             {"power_limit", "powerlimit", "limit", "pl", "cap", "power", NULL}},
                             *const unit[2][5] = {{"mhz", NULL}, {"watts", "watt", "w", "mw", NULL}};
    for (size_t i = 0, end; name[i]; i = end) {
        end = i + 1;
        if (!isdigit((unsigned char)name[i]))
            continue;
        end = i + strspn(name + i, "0123456789.");
        for (int k = 0; k < 2; k++) {
            const size_t to = unit_end(name, end, unit[k]), from = word_before(name, i, before[k]);
            if (to == SIZE_MAX && (from == SIZE_MAX || unit_end(name, end, unit[!k]) != SIZE_MAX))
                continue;
            *value = strtod(name + i, NULL);
            *limit = k == 1;
            const size_t begin = skip_back(name, from == SIZE_MAX ? i : from), rest = to == SIZE_MAX ? end : to;
            memmove(name + begin, name + rest + (begin ? 0 : strspn(name + rest, "_-=: @")),
                    strlen(name + rest) + 1 - (begin ? 0 : strspn(name + rest, "_-=: @")));
            return true;
        }
    }
    return false;
}

static fl_status read_window(loader *l, const fl_csv_row *row, fl_diag *d) {
    char name[NAME_ROOM] = "";
    double sum = 0, seconds = 0, value = NAN;
    bool limit = false;
    if (row->count < l->width)
        return fl_columns_width(row, l->width, d);
    const size_t last = row->count - 1 - l->gpus; /* of the elapsed time; a name may have commas */
    for (size_t i = 1, used = 0; i < last && used < sizeof name; i++)
        used += (size_t)snprintf(name + used, sizeof name - used, "%s%s", i > 1 ? "," : "", row->field[i].text);
    for (size_t i = last; i < row->count; i++) {
        double x = 0;
        if (fl_no_value(row->field[i].text))
            return fl_left_empty(&l->left, row->file, row->line, row->field[i].column, d, "the window has no %s",
                                 i == last ? "time" : "energy");
        const fl_status s =
            fl_foreign_real(row, i, row->field[i].text, i == last ? "elapsed_time" : "the energy", &x, d);
        if (s)
            return s;
        if (i == last)
            seconds = x;
        else
            sum += x;
    }
    if (!take_setting(name, &value, &limit))
        return fl_left_empty(&l->left, row->file, row->line, row->field[1].column, d,
                             "window '%.80s' names no limit and no clock", row->field[1].text);
    if (limit && value >= 10000) /* NVML's own unit */
        value *= 1e-3;
    char text[3][FL_REAL_TEXT];
    fl_real_text(value, text[0]);
    fl_real_text(seconds, text[1]);
    fl_real_text(sum, text[2]);
    const char *cell[CELLS] = {
        *name ? name : "window", limit ? "" : text[0], limit ? text[0] : "", text[1], "", text[2]};
    fl_field field[CELLS];
    for (size_t i = 0; i < CELLS; i++)
        field[i] = (fl_field){cell[i], strlen(cell[i]), row->field[i < 2 ? 1 : last].column};
    const fl_csv_row own = {row->file, row->line, field, CELLS, false};
    return fl_sweep_rows_take(l->rows, &own, d);
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (l->width && row->torn) {
        l->torn = row->line;
        return FL_OK;
    }
    if (l->width && !strcmp(row->field[0].text, "start_time")) /* a second run of the program appended */
        return FL_OK;
    if (l->width)
        return fl_left_row(&l->left, read_window(l, row, &l->left.own), d);
    fl_field field[CELLS];
    l->width = row->count;
    for (size_t i = 3; i < row->count; i++)
        l->gpus += !strncmp(row->field[i].text, "gpu", 3) && strstr(row->field[i].text, "_energy");
    if (!l->gpus || l->gpus + 3 != row->count)
        return FL_FIELD_FAIL(d, row, row->count - 1,
                             "column '%.40s', expected gpu0_energy and such behind elapsed_time",
                             row->field[row->count - 1].text);
    for (size_t i = 0; i < CELLS; i++)
        field[i] = (fl_field){TARGET[i], strlen(TARGET[i]), 1};
    const fl_csv_row own = {row->file, row->line, field, CELLS, false};
    return fl_sweep_rows_take(l->rows, &own, d);
}

static fl_status read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true};
    fl_left_out rest;
    loader l = {.out = out, .left = fl_left_begin(&l.left), .rows = fl_sweep_rows_open(false, &rest, d)};
    (void)o;
    if (!l.rows)
        return FL_NO_MEMORY;
    fl_status s = fl_csv_read(path, &OPTIONS, NULL, on_row, &l, d);
    if (!s)
        s = fl_left_end(&l.left, NULL, path, d);
    s = fl_sweep_rows_close(l.rows, path, s, &out->sweep, d);
    if (!s)
        s = fl_import_left(out, &l.left, d);
    if (!s)
        s = fl_import_left(out, &rest, d);
    out->has_sweep = !s;
    if (s)
        return s;
    fl_import_torn(out, l.torn);
    if (l.gpus > 1)
        fl_import_say(out, "the energies of %zu GPUs are added up; a limit is that of each", l.gpus);
    fl_import_say(out, "limits and clocks are taken from the windows' names; windows that lie in others count too");
    return fl_import_said(out, d);
}

const fl_reader fl_reader_zeus_windows = {"zeus-windows",
                                          "windows that ZeusMonitor logged, with limits in their names",
                                          "Zeus 0.3 to 0.16",
                                          FL_GIVES_SETTINGS | FL_GIVES_POWER | FL_GIVES_ENERGY,
                                          detect,
                                          read};

/* ---- Zeus' power monitor ---- */

/* The log of Zeus' power monitor.  The forms: github.com/ml-energy/zeus, zeus/monitor/power.py before commit 5642d2f
 * (2023-08 to 2025-07, versions 0.7 to 0.12): no header, a row "TIME,POWER,POWER,..." with the time in s since 1970 and
 * the power in W of each chosen GPU. zeus/utils/metric.py of the same versions also reads the log of the monitor before
 * it, one file per GPU: columns Time (a date) and Power in mW, whose last line may be cut off. Version 0.16 writes no
 * file. */

typedef struct power_loader {
    fl_readings r;
    fl_stamps stamps;
    size_t power, width;
    int32_t only;
    bool old;
    int64_t torn;
} power_loader;

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

static bool detect_power(const char *path, const char *head, size_t size) {
    (void)path;
    const char *end = memchr(head, '\n', size);
    const size_t first = end ? (size_t)(end - head) : size;
    return fl_header_find(head, size, is_old) == 0 ||
           (fl_header_find(head, size, is_row) == 0 && !memchr(head, ';', first) && memchr(head, ',', first));
}

static fl_status read_row(power_loader *l, const fl_csv_row *row, fl_diag *d) {
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

static fl_status on_power(void *user, const fl_csv_row *row, fl_diag *d) {
    power_loader *l = user;
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

static fl_status read_power(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true};
    power_loader *l = calloc(1, sizeof *l);
    if (!l)
        return fl_no_memory(d, path);
    l->only = o->device;
    fl_readings_begin(&l->r, out);
    fl_stamps_begin(&l->stamps, -1);
    fl_status s = fl_csv_read(path, &OPTIONS, NULL, on_power, l, d);
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

const fl_reader fl_reader_zeus_power = {"zeus-power",       "log of Zeus' PowerMonitor (time, power of each GPU)",
                                        "Zeus 0.3 to 0.12", FL_GIVES_READINGS | FL_GIVES_TIMES | FL_GIVES_POWER,
                                        detect_power,       read_power};
