/* nvidia-smi --query-gpu=... --format=csv, with or without nounits: readings of boards over time. */
#include "traces/import/inside.h"

#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 256 };

/* The driver's name for a reason changed with release 535. */
#define HELD(reason, bits)                                                                                             \
    {"clocks_event_reasons." reason, "throttle", NULL, bits}, {                                                        \
        "clocks_throttle_reasons." reason, "throttle", NULL, bits                                                      \
    }

/* clang-format off */
static const fl_gauge GAUGE[] = {
    {"power.draw", "power_w", NULL, 0},
    {"power.draw.average", "power_w", NULL, 0}, /* where power.draw itself is not asked for */
    {"power.draw.instant", "power_instant_w", NULL, 0},
    {"clocks.current.sm", "sm_mhz", NULL, 0},
    {"clocks.sm", "sm_mhz", NULL, 0},
    {"clocks.current.graphics", "sm_mhz", NULL, 0},
    {"clocks.gr", "sm_mhz", NULL, 0},
    {"clocks.current.memory", "mem_mhz", NULL, 0},
    {"clocks.mem", "mem_mhz", NULL, 0},
    {"utilization.gpu", "util_gpu_pct", NULL, 0},
    {"utilization.memory", "util_mem_pct", NULL, 0},
    {"temperature.gpu", "temp_c", NULL, 0},
    {"power.limit", "power_limit_w", NULL, 0},
    {"enforced.power.limit", "power_limit_w", NULL, 0},
    {"clocks_event_reasons_counters.sw_power_cap", "power_violation_ns", "us", 0},
    {"clocks_event_reasons_counters.sw_thermal_slowdown", "thermal_violation_ns", "us", 0},
    HELD("active", FL_GAUGE_MASK), /* holds all that follow */
    HELD("sw_power_cap", FL_HELD_POWER),
    HELD("hw_power_brake_slowdown", FL_HELD_POWER),
    HELD("sw_thermal_slowdown", FL_HELD_HEAT),
    HELD("hw_thermal_slowdown", FL_HELD_HEAT),
    HELD("gpu_idle", FL_HELD_IDLE),
    HELD("hw_slowdown", FL_HELD_OTHER),
    HELD("sync_boost", FL_HELD_OTHER),
};
/* clang-format on */
enum { GAUGES = sizeof GAUGE / sizeof *GAUGE };

/* Columns that tell boards apart, the best first. */
static const char *const BOARD[] = {"index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", "gpu_serial"};

typedef struct loader {
    fl_gauges g;
    fl_progress progress;
    const fl_import_options *o;
    size_t width, time, board, name; /* SIZE_MAX: no such column */
    size_t second;                   /* beside the index: a column that tells boards of one index apart */
    fl_boards boards;
    fl_stamps stamps;
    fl_joined joined;
    size_t same_time, headers;
    int64_t torn;
    bool named;
} loader;

/* ---- header ---- */

/* "clocks.current.sm [MHz]" without its unit. */
static size_t base_size(const char *text, size_t size) {
    const char *unit;
    size_t unit_size;
    return fl_unit_split(text, size, &unit, &unit_size);
}

static bool same_field(const char *text, size_t size, const char *field) {
    return strlen(field) == size && strncmp(text, field, size) == 0;
}

static bool is_header(const fl_cells *line) {
    bool known = false;
    for (size_t i = 0; i < line->count; i++) {
        const char *text = line->cell[i].text;
        size_t size = base_size(text, line->cell[i].size);
        if (size == 0)
            return false;
        for (size_t k = 0; k < size; k++)
            if (!islower((unsigned char)text[k]) && !isdigit((unsigned char)text[k]) && !strchr("._", text[k]))
                return false;
        for (size_t q = 0; q < GAUGES; q++)
            known |= same_field(text, size, GAUGE[q].name);
    }
    return known;
}

/* A row as --format=csv,noheader leaves it. */
static bool is_row(const fl_cells *line) {
    char time[32];
    fl_time t;
    snprintf(time, sizeof time, "%.*s", (int)(line->cell[0].size < 31 ? line->cell[0].size : 31), line->cell[0].text);
    return line->count > 1 && strchr(time, '/') && strchr(time, '.') && fl_time_parse(time, &t);
}

static bool detect(const char *path, const char *head, size_t size) {
    (void)path;
    return fl_header_find(head, size, is_header) >= 0 || fl_header_find(head, size, is_row) == 0;
}

static fl_status read_header(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_status status = fl_header_commas(row, d);
    if (status)
        return status;
    if (row->count > COLUMNS_MAX)
        return FL_FIELD_FAIL(d, row, COLUMNS_MAX, "the header has %zu columns, expected at most %d", row->count,
                             COLUMNS_MAX);
    l->width = row->count;
    l->time = l->board = l->name = l->second = SIZE_MAX;
    size_t best_board = sizeof BOARD / sizeof *BOARD, best_second = best_board;
    for (size_t i = 0; i < row->count && !status; i++) {
        const char *text = row->field[i].text;
        const size_t size = base_size(text, row->field[i].size);
        const bool time = same_field(text, size, "timestamp"),
                   name = same_field(text, size, "name") || same_field(text, size, "gpu_name");
        bool used = time || name;
        l->time = time ? i : l->time;
        l->name = name ? i : l->name;
        for (size_t b = 0; b < sizeof BOARD / sizeof *BOARD; b++)
            if (same_field(text, size, BOARD[b])) {
                used = true;
                l->second = b && b < best_second ? i : l->second;
                best_second = b && b < best_second ? b : best_second;
                l->board = b < best_board ? i : l->board;
                best_board = b < best_board ? b : best_board;
            }
        status = fl_gauges_add(&l->g, row, i, text, row->field[i].size, NULL, used, d);
    }
    l->named = l->board != SIZE_MAX && best_board > 0;
    if (!status)
        status = fl_gauges_begin(&l->g, row, d);
    for (size_t i = 0; i < row->count && !status; i++)
        if (l->g.column[i].of &&
            (strstr(l->g.column[i].of->name, "graphics") || !strcmp(l->g.column[i].of->name, "clocks.gr")))
            status = fl_import_note(l->g.r.out, d, "no clock of the SMs: that of the graphics domain is taken for it");
    if (!status && l->time == SIZE_MAX && !(l->o->interval_s > 0))
        status =
            FL_FIELD_FAIL(d, row, 0, "no column timestamp, expected one, or the interval of the rows (--interval S)");
    return status;
}

/* ---- rows ---- */

static fl_status read_time(loader *l, const fl_csv_row *row, size_t board, int64_t *ns, fl_diag *d) {
    int64_t *last = &l->stamps.last_ns[board];
    if (l->time == SIZE_MAX) {
        *ns = *last + (*last < 0 ? 1 : (int64_t)llround(l->o->interval_s * 1e9));
        *last = *ns;
        return FL_OK;
    }
    const int64_t before = *last;
    const fl_status s = fl_stamp_read(&l->stamps, row, l->time, "timestamp", board, ns, d);
    l->same_time += !s && l->board == SIZE_MAX && *ns == before;
    return s;
}

static fl_status read_board(loader *l, const fl_csv_row *row, size_t *board, fl_diag *d) {
    *board = 0;
    if (l->board == SIZE_MAX)
        return FL_OK;
    if (l->named)
        return fl_board_of(&l->boards, row, l->board, -1, row->field[l->board].text, board, d);
    int64_t index = 0;
    const fl_status status = fl_foreign_int(row, l->board, "index", 0, FL_BOARDS_MAX - 1, &index, d);
    const bool second = l->second != SIZE_MAX && !fl_no_value(row->field[l->second].text);
    return status ? status
                  : fl_board_of(&l->boards, row, l->board, index, second ? row->field[l->second].text : NULL, board, d);
}

/* A lost GPU has a row in which every cell is [Unknown Error]. */
static fl_status read_row(loader *l, const fl_csv_row *row, fl_diag *d) {
    size_t board = 0;
    int64_t ns = 0;
    double *value = fl_telemetry_row(&l->g.r.rows);
    fl_status status = value ? fl_foreign_width(row, l->width, d) : fl_no_memory(d, row->file);
    const size_t place[] = {l->time, l->board};
    for (size_t k = 0; !status && k < 2; k++)
        if (place[k] != SIZE_MAX && fl_no_value(row->field[place[k]].text))
            return fl_left_empty(&l->g.r.left, row->file, row->line, row->field[place[k]].column, d, "%s is '%.40s'",
                                 k ? BOARD[0] : "timestamp", row->field[place[k]].text);
    if (!status)
        status = read_board(l, row, &board, d);
    if (!status && l->o->device >= 0 && (size_t)l->o->device != board)
        return FL_OK;
    if (!status)
        status = read_time(l, row, board, &ns, d);
    for (size_t i = 0; i < l->width && !status; i++)
        status = fl_gauges_cell(&l->g, row, i, i, row->field[i].text, value, d);
    const char *name = l->name == SIZE_MAX ? NULL : row->field[l->name].text;
    if (!status && name && !fl_no_value(name))
        status = fl_foreign_head(&l->g.r.out->telemetry.head, "device", name, d);
    return status ? status : fl_readings_take(&l->g.r, row, ns, (int32_t)board, d);
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    fl_progress_row(&l->progress, row);
    if (!l->width)
        return read_header(l, row, d);
    if (row->torn) {
        l->torn = row->line;
        return FL_OK;
    }
    fl_time t;
    if (row->count == l->width + 1 && l->time != SIZE_MAX && fl_time_join(row, l->time, ',', &l->joined))
        row = &l->joined.row;
    if (row->count == l->width && l->time != SIZE_MAX && !strcmp(row->field[l->time].text, "timestamp")) {
        l->headers++;
        return FL_OK;
    }
    /* What the driver or a shell says in between is a line without a time. */
    const bool other =
        row->count != l->width && (l->time != 0 ? row->count == 1 : !fl_time_parse(row->field[0].text, &t));
    const fl_status s = other ? fl_left_empty(&l->g.r.left, row->file, row->line, 1, &l->g.r.left.own,
                                              "no reading, but '%.120s'", row->field[0].text)
                              : read_row(l, row, &l->g.r.left.own);
    return fl_left_row(&l->g.r.left, s, d);
}

static fl_status add_notes(loader *l, fl_diag *d) {
    fl_imported *out = l->g.r.out;
    if (l->time == SIZE_MAX)
        fl_import_say(out, "no time stamps: rows are taken %g s apart, as given", l->o->interval_s);
    else
        fl_stamps_say(&l->stamps, out);
    if (l->named)
        fl_import_say(out, "no column index: boards are numbered as they come, by %s", "their name or bus");
    fl_boards_say(&l->boards, out);
    if (l->headers)
        fl_import_say(out, "the header is repeated %zu times: left out", l->headers);
    fl_import_torn(out, l->torn);
    fl_import_say(out, "no kernels: readings only");
    return fl_import_said(out, d);
}

/* Rows of several boards that no column names would count as one board of their mean power. */
static fl_status check_boards(const loader *l, const char *path, fl_diag *d) {
    const fl_telemetry *t = &l->g.r.out->telemetry;
    if (l->board != SIZE_MAX)
        return FL_OK;
    if (3 * l->same_time >= t->row_count)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                       "%zu of %zu readings have the time of the one before, as of several GPUs in one log, expected "
                       "a column that tells them apart (--query-gpu=index,...), or one GPU",
                       l->same_time, t->row_count);
    return FL_OK;
}

static fl_status read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    fl_csv_options options = {.trim = true};
    loader *l = calloc(1, sizeof *l);
    if (!l)
        return fl_no_memory(d, path);
    l->o = o;
    l->g.table = GAUGE;
    l->g.rows = GAUGES;
    fl_readings_begin(&l->g.r, out);
    fl_stamps_begin(&l->stamps, -1);
    fl_progress_start(&l->progress, path, o);
    fl_status status = fl_header_seek(path, is_header,
                                      "the names that were queried, such as 'timestamp, power.draw [W]' (no noheader)",
                                      &options.head_lines, d);
    if (!status)
        status = fl_csv_read(path, &options, NULL, on_row, l, d);
    if (!status)
        status = fl_readings_end(&l->g.r, path, d);
    if (!status)
        status = check_boards(l, path, d);
    if (!status && options.head_lines)
        status = fl_import_note(out, d, "%d lines above the header: left out", options.head_lines);
    if (!status)
        status = add_notes(l, d);
    fl_boards_free(&l->boards);
    fl_gauges_free(&l->g);
    free(l);
    return status;
}

const fl_reader fl_reader_nvidia_smi = {"nvidia-smi",
                                        "nvidia-smi --query-gpu --format=csv",
                                        "drivers 400 to 610",
                                        FL_GIVES_READINGS | FL_GIVES_TIMES | FL_GIVES_CLOCKS | FL_GIVES_POWER |
                                            FL_GIVES_USE,
                                        detect,
                                        read};
