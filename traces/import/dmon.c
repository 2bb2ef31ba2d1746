/* nvidia-smi dmon: columns cut by blanks, a row of names and a row of units that come again with every screen.
 *
 * The form: manual page nvidia-smi(1) of driver 610.43 (May 2026), "Device Monitoring", -s and -o, which says that it
 * may change; columns are therefore found by name. With -o the date (YYYYMMDD) and the time (HH:MM:SS, local) come
 * first; without, there is no time and rows are -d apart, 1 s by default. "-" is a value that the board does not have.
 * --format csv puts commas between. */
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

enum { COLUMNS_MAX = 64, HEADER_MAX = 1024 };

static const fl_gauge GAUGE[] = {
    {"pwr", "power_w", NULL, 0},
    {"pclk", "sm_mhz", NULL, 0},
    {"mclk", "mem_mhz", NULL, 0},
    {"sm", "util_gpu_pct", NULL, 0}, /* nvmlUtilization_t.gpu, in spite of its name */
    {"mem", "util_mem_pct", NULL, 0},
    {"gtemp", "temp_c", NULL, 0},
    {"temp", "temp_c", NULL, 0}, /* drivers before 2019 */
    {"smutil", "sm_active_pct", NULL, 0},
    {"gract", "gpu_clock_busy_pct", NULL, 0},
    {"pviol", "throttle", NULL, FL_HELD_POWER},
    {"tviol", "throttle", NULL, FL_HELD_HEAT},
};

typedef struct loader {
    fl_gauges g;
    fl_progress progress;
    fl_stamps stamps;
    fl_rounds rounds;
    char names[HEADER_MAX]; /* of the header, as its tokens stand, to know it when it comes again */
    char name[COLUMNS_MAX][32];
    size_t count, date, time, gpu; /* SIZE_MAX: no such column */
    bool units;                    /* the row of units was read, or is not there */
    int64_t step_ns, torn;
    int32_t only;
    int64_t given_ns[FL_BOARDS_MAX]; /* the time of a board's last row */
    size_t headers, halved;
} loader;

/* Cuts at blanks and commas; a leading '#' is no part of the first token. */
static size_t split(const char *text, fl_cell *t, size_t room) {
    size_t count = 0;
    text += strspn(text, " \t,");
    text += *text == '#';
    while (count < room) {
        text += strspn(text, " \t,\r");
        if (!*text)
            break;
        t[count] = (fl_cell){text, strcspn(text, " \t,\r")};
        text += t[count++].size;
    }
    return count;
}

/* "# gpu ...", "#Time gpu", "#Date Time gpu", and one name more. */
static bool is_names(const char *line, size_t size) {
    char text[HEADER_MAX];
    fl_cell t[COLUMNS_MAX + 1];
    snprintf(text, sizeof text, "%.*s", (int)(size < HEADER_MAX - 1 ? size : HEADER_MAX - 1), line);
    if (text[strspn(text, " \t")] != '#')
        return false;
    const size_t count = split(text, t, COLUMNS_MAX + 1);
    size_t at = 0;
    while (at < count && at < 2 && (fl_cell_is(t[at], "Date") || fl_cell_is(t[at], "Time")))
        at++;
    return at + 1 < count && fl_cell_is(t[at], "gpu");
}

static bool is_header(const fl_cells *line) {
    const fl_cell *last = &line->cell[line->count - 1];
    return is_names(line->cell[0].text, (size_t)(last->text + last->size - line->cell[0].text));
}

static bool detect(const char *path, const char *head, size_t size) {
    (void)path;
    return fl_header_find(head, size, is_header) >= 0;
}

static fl_csv_row at_token(const fl_csv_row *row, fl_cell t, const char *text, fl_field *field) {
    *field = (fl_field){text, t.size, row->field[0].column + (t.text - row->field[0].text)};
    return (fl_csv_row){row->file, row->line, field, 1, row->torn};
}

static fl_status read_names(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_cell t[COLUMNS_MAX + 1];
    l->count = split(row->field[0].text, t, COLUMNS_MAX + 1);
    if (l->count > COLUMNS_MAX)
        return FL_FIELD_FAIL(d, row, 0, "more than %d columns", COLUMNS_MAX);
    snprintf(l->names, sizeof l->names, "%s", row->field[0].text);
    l->date = l->time = l->gpu = SIZE_MAX;
    for (size_t i = 0; i < l->count; i++) {
        snprintf(l->name[i], sizeof l->name[i], "%.*s", (int)(t[i].size < 31 ? t[i].size : 31), t[i].text);
        l->date = fl_cell_is(t[i], "Date") ? i : l->date;
        l->time = fl_cell_is(t[i], "Time") ? i : l->time;
        l->gpu = fl_cell_is(t[i], "gpu") ? i : l->gpu;
    }
    return FL_OK;
}

/* The row of units stands below that of the names, with as many tokens. NULL: there is none. */
static fl_status add_columns(loader *l, const fl_csv_row *row, bool units, fl_diag *d) {
    fl_cell t[COLUMNS_MAX + 1];
    const size_t count = units ? split(row->field[0].text, t, COLUMNS_MAX + 1) : 0;
    fl_status s = FL_OK;
    l->units = true;
    for (size_t i = 0; i < l->count && !s; i++) {
        char unit[16] = "";
        if (count == l->count)
            snprintf(unit, sizeof unit, "%.*s", (int)(t[i].size < 15 ? t[i].size : 15), t[i].text);
        s = fl_gauges_add(&l->g, row, 0, l->name[i], strlen(l->name[i]), *unit ? unit : NULL,
                          i == l->date || i == l->time || i == l->gpu, d);
    }
    return s ? s : fl_gauges_begin(&l->g, row, d);
}

static fl_status read_time(loader *l, const fl_csv_row *row, const fl_cell *t, size_t gpu, int64_t *ns, fl_diag *d) {
    if (l->time == SIZE_MAX && l->date == SIZE_MAX) {
        *ns = fl_round_of(&l->rounds, gpu) * l->step_ns;
        return FL_OK;
    }
    char text[80];
    fl_field field;
    const size_t first = l->date == SIZE_MAX ? l->time : l->date;
    const char *clock = l->time == SIZE_MAX ? "00:00:00" : t[l->time].text;
    if (l->date == SIZE_MAX)
        snprintf(text, sizeof text, "%.*s", (int)(t[first].size < 40 ? t[first].size : 40), t[first].text);
    else
        snprintf(text, sizeof text, "%.*s %.*s", (int)(t[first].size < 30 ? t[first].size : 30), t[first].text,
                 l->time == SIZE_MAX ? 8 : (int)(t[l->time].size < 30 ? t[l->time].size : 30), clock);
    const fl_csv_row one = at_token(row, t[first], text, &field);
    const fl_status s = fl_stamp_read(&l->stamps, &one, 0, "the time", gpu, ns, d);
    if (!s && l->time == SIZE_MAX) /* a date alone: rounds within the day */
        *ns += fl_round_of(&l->rounds, gpu) * l->step_ns;
    /* Whole seconds: a round that took a little less than one has the stamp of the round before. */
    int64_t *last = &l->given_ns[gpu];
    const int64_t second = INT64_C(1000000000);
    if (!s && l->time != SIZE_MAX && *last && *ns == *last - *last % second) {
        *ns = *last + (*ns + second - *last) / 2;
        l->halved++;
    }
    *last = s ? *last : *ns;
    return s;
}

static fl_status read_row(loader *l, const fl_csv_row *row, const fl_cell *t, size_t count, fl_diag *d) {
    char text[FL_CELL_ROOM];
    fl_field field;
    if (count != l->count)
        return FL_FIELD_FAIL(d, row, 0, "row has %zu values, expected %zu", count, l->count);
    snprintf(text, sizeof text, "%.*s", (int)(t[l->gpu].size < 63 ? t[l->gpu].size : 63), t[l->gpu].text);
    const fl_csv_row index = at_token(row, t[l->gpu], text, &field);
    int64_t gpu = 0, ns = 0;
    fl_status s = fl_foreign_int(&index, 0, "gpu", 0, FL_BOARDS_MAX - 1, &gpu, d);
    if (!s)
        s = read_time(l, row, t, (size_t)gpu, &ns, d);
    if (s || (l->only >= 0 && l->only != gpu))
        return s;
    double *value = fl_telemetry_row(&l->g.r.rows);
    s = value ? FL_OK : fl_no_memory(d, row->file);
    for (size_t i = 0; i < count && !s; i++) {
        snprintf(text, sizeof text, "%.*s", (int)(t[i].size < 63 ? t[i].size : 63), t[i].text);
        const fl_csv_row one = at_token(row, t[i], text, &field);
        s = fl_gauges_cell(&l->g, &one, 0, i, text, value, d);
    }
    return s ? s : fl_readings_take(&l->g.r, row, ns, (int32_t)gpu, d);
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    const char *text = row->field[0].text;
    fl_progress_row(&l->progress, row);
    if (!l->count)
        return read_names(l, row, d);
    fl_cell t[COLUMNS_MAX + 1];
    const size_t count = split(text, t, COLUMNS_MAX + 1);
    const bool marked = text[strspn(text, " \t")] == '#';
    if (!l->units) {
        const fl_status s = add_columns(l, row, marked, d);
        if (s || marked)
            return s;
    }
    if (row->torn) {
        l->torn = row->line;
        return FL_OK;
    }
    if (marked && is_names(text, strlen(text)) && strcmp(text, l->names) != 0)
        return FL_FIELD_FAIL(d, row, 0, "the header changes within the file, expected the same columns throughout");
    if (marked) {
        l->headers += is_names(text, strlen(text));
        return FL_OK;
    }
    if (!count || !isdigit((unsigned char)*t[0].text)) /* what the driver or a shell says in between */
        return fl_left_row(
            &l->g.r.left,
            fl_left_empty(&l->g.r.left, row->file, row->line, 1, &l->g.r.left.own, "no reading, but '%.120s'", text),
            d);
    return fl_left_row(&l->g.r.left, read_row(l, row, t, count, &l->g.r.left.own), d);
}

static fl_status add_notes(loader *l, bool given, fl_diag *d) {
    fl_imported *out = l->g.r.out;
    if (l->time == SIZE_MAX)
        fl_import_say(out, "no time stamps: rounds are taken %g s apart, %s", (double)l->step_ns * 1e-9,
                      given ? "as given" : "dmon's default (--interval S says what -d was, in s; -o DT writes times)");
    fl_stamps_say(&l->stamps, out);
    if (l->halved)
        fl_import_say(out, "%zu rows have the whole second of their GPU's row before: taken halfway to the next",
                      l->halved);
    if (l->headers)
        fl_import_say(out, "the header is repeated %zu times: left out", l->headers);
    fl_import_torn(out, l->torn);
    fl_import_say(out, "no kernels: readings only");
    return fl_import_said(out, d);
}

static fl_status read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    fl_csv_options options = {.delimiter = '\x01'}; /* whole lines: columns are cut by blanks */
    loader *l = calloc(1, sizeof *l);
    if (!l)
        return fl_no_memory(d, path);
    const bool given = o->interval_s > 0;
    l->g.table = GAUGE;
    l->g.rows = sizeof GAUGE / sizeof *GAUGE;
    fl_readings_begin(&l->g.r, out);
    fl_stamps_begin(&l->stamps, -1);
    l->only = o->device;
    l->step_ns = given ? (int64_t)llround(o->interval_s * 1e9) : INT64_C(1000000000);
    fl_progress_start(&l->progress, path, o);
    fl_status s = fl_header_seek(path, is_header, "'# gpu' and the columns' names", &options.head_lines, d);
    if (!s)
        s = fl_csv_read(path, &options, NULL, on_row, l, d);
    if (!s)
        s = fl_readings_end(&l->g.r, path, d);
    if (!s)
        s = add_notes(l, given, d);
    fl_gauges_free(&l->g);
    free(l);
    return s;
}

const fl_reader fl_reader_dmon = {"nvidia-smi-dmon",
                                  "nvidia-smi dmon, any -s and -o",
                                  "drivers 361 to 610",
                                  FL_GIVES_READINGS | FL_GIVES_TIMES | FL_GIVES_CLOCKS | FL_GIVES_POWER | FL_GIVES_USE,
                                  detect,
                                  read};
