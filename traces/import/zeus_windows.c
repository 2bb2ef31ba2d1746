/* The windows that Zeus measured, as settings: the limit or clock stands in a window's name.
 *
 * The form: github.com/ml-energy/zeus 0.16.0, zeus/monitor/energy.py, ZeusMonitor(log_file=...): a header
 * start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy,... (of the chosen GPUs), times in s, energies in J.
 * Names are not quoted, so a comma in one adds a field; windows may nest. */
#include "traces/import/inside.h"

#include "traces/import/import.h"
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
