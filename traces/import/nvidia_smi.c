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

typedef struct unit {
    const char *name;
    double factor;
} unit;

typedef struct quantity { /* what a query field becomes; the first unit is the one that nounits means */
    const char *field, *signal;
    unit unit[4];
    unsigned bits; /* "Active" sets these bits of the signal, and further columns may set others */
} quantity;

#define MHZ                                                                                                            \
    {"MHz", 1}, {"GHz", 1e3}, {"kHz", 1e-3}, { "Hz", 1e-6 }
#define WATT                                                                                                           \
    {"W", 1}, {"mW", 1e-3}, { "kW", 1e3 }
#define PERCENT                                                                                                        \
    { "%", 1 }
#define NANOSECONDS                                                                                                    \
    {"us", 1e3}, {"ms", 1e6}, { "ns", 1 }
/* The driver's name for a reason changed with release 535. */
#define HELD(reason, bits)                                                                                             \
    {"clocks_event_reasons." reason, "throttle", {{"", 1}}, bits}, {                                                   \
        "clocks_throttle_reasons." reason, "throttle", {{"", 1}}, bits                                                 \
    }

/* clang-format off */
static const quantity QUANTITY[] = {
    {"power.draw", "power_w", {WATT}, 0},
    {"power.draw.average", "power_w", {WATT}, 0}, /* where power.draw itself is not asked for */
    {"power.draw.instant", "power_instant_w", {WATT}, 0},
    {"clocks.current.sm", "sm_mhz", {MHZ}, 0},
    {"clocks.sm", "sm_mhz", {MHZ}, 0},
    {"clocks.current.graphics", "sm_mhz", {MHZ}, 0},
    {"clocks.gr", "sm_mhz", {MHZ}, 0},
    {"clocks.current.memory", "mem_mhz", {MHZ}, 0},
    {"clocks.mem", "mem_mhz", {MHZ}, 0},
    {"utilization.gpu", "util_gpu_pct", {PERCENT}, 0},
    {"utilization.memory", "util_mem_pct", {PERCENT}, 0},
    {"temperature.gpu", "temp_c", {{"C", 1}}, 0},
    {"power.limit", "power_limit_w", {WATT}, 0},
    {"enforced.power.limit", "power_limit_w", {WATT}, 0},
    {"clocks_event_reasons_counters.sw_power_cap", "power_violation_ns", {NANOSECONDS}, 0},
    {"clocks_event_reasons_counters.sw_thermal_slowdown", "thermal_violation_ns", {NANOSECONDS}, 0},
    {"clocks_event_reasons.active", "throttle", {{"", 1}}, 0}, /* a mask, which holds all that follow */
    {"clocks_throttle_reasons.active", "throttle", {{"", 1}}, 0},
    HELD("sw_power_cap", FL_HELD_POWER),
    HELD("hw_power_brake_slowdown", FL_HELD_POWER),
    HELD("sw_thermal_slowdown", FL_HELD_HEAT),
    HELD("hw_thermal_slowdown", FL_HELD_HEAT),
    HELD("gpu_idle", FL_HELD_IDLE),
    HELD("hw_slowdown", FL_HELD_OTHER),
    HELD("sync_boost", FL_HELD_OTHER),
};
/* clang-format on */
enum { QUANTITIES = sizeof QUANTITY / sizeof *QUANTITY };

/* Columns that tell boards apart, the best first. */
static const char *const BOARD[] = {"index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", "gpu_serial"};

typedef struct column {
    const quantity *q; /* NULL: not carried */
    size_t signal;
    double factor; /* of the header's unit */
    fl_signal_range range;
} column;

typedef struct loader {
    fl_readings r;
    fl_progress progress;
    const fl_import_options *o;
    column column[COLUMNS_MAX];
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
    const char *bracket = memchr(text, '[', size);
    size = bracket ? (size_t)(bracket - text) : size;
    while (size && text[size - 1] == ' ')
        size--;
    return size;
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
        for (size_t q = 0; q < QUANTITIES; q++)
            known |= same_field(text, size, QUANTITY[q].field);
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

static fl_status read_unit(const fl_csv_row *row, size_t i, const quantity *q, const char *text, double *factor,
                           fl_diag *d) {
    size_t size = strcspn(text, "]");
    for (size_t u = 0; u < sizeof q->unit / sizeof *q->unit && q->unit[u].name; u++)
        if (strlen(q->unit[u].name) == size && !strncasecmp(text, q->unit[u].name, size) &&
            (size != 2 || text[0] == q->unit[u].name[0])) { /* mW is no MW */
            *factor = q->unit[u].factor;
            return FL_OK;
        }
    return FL_FIELD_FAIL(d, row, i, "unit of %s is '%.*s', expected %s", q->field, (int)(size < 20 ? size : 20), text,
                         q->unit[0].name);
}

/* Which fields go to which signal: of several for one signal, the first of the table. */
static fl_status read_header(loader *l, const fl_csv_row *row, fl_diag *d) {
    const quantity *of[COLUMNS_MAX] = {0};
    fl_status status = fl_header_commas(row, d);
    if (status)
        return status;
    if (row->count > COLUMNS_MAX)
        return FL_FIELD_FAIL(d, row, COLUMNS_MAX, "the header has %zu columns, expected at most %d", row->count,
                             COLUMNS_MAX);
    l->width = row->count;
    l->time = l->board = l->name = l->second = SIZE_MAX;
    size_t best_board = sizeof BOARD / sizeof *BOARD, best_second = best_board;
    char left_out[256] = "";
    for (size_t i = 0; i < row->count; i++) {
        const char *text = row->field[i].text;
        size_t size = base_size(text, row->field[i].size);
        for (size_t q = 0; q < QUANTITIES && !of[i]; q++)
            of[i] = same_field(text, size, QUANTITY[q].field) ? &QUANTITY[q] : NULL;
        bool used = of[i] || same_field(text, size, "timestamp") || same_field(text, size, "name") ||
                    same_field(text, size, "gpu_name");
        if (same_field(text, size, "timestamp"))
            l->time = i;
        if (same_field(text, size, "name") || same_field(text, size, "gpu_name"))
            l->name = i;
        for (size_t b = 0; b < sizeof BOARD / sizeof *BOARD; b++)
            if (same_field(text, size, BOARD[b])) {
                used = true;
                l->second = b && b < best_second ? i : l->second;
                best_second = b && b < best_second ? b : best_second;
                l->board = b < best_board ? i : l->board;
                best_board = b < best_board ? b : best_board;
            }
        size_t length = strlen(left_out);
        if (!used)
            snprintf(left_out + length, sizeof left_out - length, "%s%.*s", length ? ", " : "", (int)size, text);
    }
    l->named = l->board != SIZE_MAX && best_board > 0;
    for (size_t i = 0; i < row->count && !status; i++) {
        for (size_t k = 0; of[i] && k < row->count; k++)
            if (k != i && of[k] && !strcmp(of[i]->signal, of[k]->signal) && !(of[i]->bits && of[k]->bits) &&
                (of[k] < of[i] || (of[k] == of[i] && k < i)))
                of[i] = NULL;
        if (!of[i])
            continue;
        const char *bracket = strchr(row->field[i].text, '[');
        l->column[i] = (column){of[i], 0, of[i]->unit[0].factor, fl_signal_range_of(of[i]->signal)};
        if (bracket)
            status = read_unit(row, i, of[i], bracket + 1, &l->column[i].factor, d);
        if (!status)
            status = fl_readings_signal(&l->r, of[i]->signal, &l->column[i].signal, d);
        if (!status && (strstr(of[i]->field, "graphics") || !strcmp(of[i]->field, "clocks.gr")))
            status = fl_import_note(l->r.out, d, "no clock of the SMs: that of the graphics domain is taken for it");
    }
    if (!status && left_out[0])
        status = fl_import_note(l->r.out, d, "left out, as telemetry has no place for them: %s", left_out);
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

/* "Active", "Not Active", or the mask of all reasons, such as 0x0000000000000004. */
static fl_status read_reasons(const quantity *q, const fl_csv_row *row, size_t i, double *value, fl_diag *d) {
    const char *text = row->field[i].text;
    char *end;
    const unsigned long long mask = strtoull(text, &end, 0);
    if (q->bits && strcmp(text, "Active") != 0 && strcmp(text, "Not Active") != 0)
        return FL_FIELD_FAIL(d, row, i, "%s is '%.40s', expected Active or Not Active", q->field, text);
    if (!q->bits && (!isdigit((unsigned char)*text) || *end))
        return FL_FIELD_FAIL(d, row, i, "%s is '%.40s', expected a mask such as 0x0000000000000004", q->field, text);
    *value = q->bits ? (isnan(*value) ? 0 : (unsigned)*value) | (*text == 'A' ? q->bits : 0) : fl_held_by(mask);
    return FL_OK;
}

/* "65.91 W", "85 %", "1410 MHz" or plain numbers. */
static fl_status read_cell(const column *c, const fl_csv_row *row, size_t i, double *value, fl_diag *d) {
    char text[64];
    if (fl_no_value(row->field[i].text))
        return FL_OK;
    if (!strcmp(c->q->signal, "throttle"))
        return read_reasons(c->q, row, i, value, d);
    snprintf(text, sizeof text, "%s", row->field[i].text);
    char *blank = strchr(text, ' ');
    double factor = c->factor;
    fl_status status = FL_OK;
    if (blank) {
        *blank = '\0';
        status = read_unit(row, i, c->q, blank + 1 + strspn(blank + 1, " "), &factor, d);
    }
    if (!status)
        status = fl_foreign_real(row, i, text, c->q->field, value, d);
    *value *= factor;
    return status ? status : fl_signal_check(row, i, c->q->field, c->range, *value, d);
}

/* A lost GPU has a row in which every cell is [Unknown Error]. */
static fl_status read_row(loader *l, const fl_csv_row *row, fl_diag *d) {
    size_t board = 0;
    int64_t ns = 0;
    double *value = fl_telemetry_row(&l->r.rows);
    fl_status status = value ? fl_foreign_width(row, l->width, d) : fl_no_memory(d, row->file);
    const size_t place[] = {l->time, l->board};
    for (size_t k = 0; !status && k < 2; k++)
        if (place[k] != SIZE_MAX && fl_no_value(row->field[place[k]].text))
            return fl_left_empty(&l->r.left, row->file, row->line, row->field[place[k]].column, d, "%s is '%.40s'",
                                 k ? BOARD[0] : "timestamp", row->field[place[k]].text);
    if (!status)
        status = read_board(l, row, &board, d);
    if (!status && l->o->device >= 0 && (size_t)l->o->device != board)
        return FL_OK;
    if (!status)
        status = read_time(l, row, board, &ns, d);
    for (size_t i = 0; i < l->width && !status; i++)
        if (l->column[i].q)
            status = read_cell(&l->column[i], row, i, &value[l->column[i].signal], d);
    const char *name = l->name == SIZE_MAX ? NULL : row->field[l->name].text;
    if (!status && name && !fl_no_value(name))
        status = fl_foreign_head(&l->r.out->telemetry.head, "device", name, d);
    return status ? status : fl_readings_take(&l->r, row, ns, (int32_t)board, d);
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
    const fl_status s = other ? fl_left_empty(&l->r.left, row->file, row->line, 1, &l->r.left.own,
                                              "no reading, but '%.120s'", row->field[0].text)
                              : read_row(l, row, &l->r.left.own);
    return fl_left_row(&l->r.left, s, d);
}

static fl_status add_notes(loader *l, fl_diag *d) {
    fl_imported *out = l->r.out;
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
    const fl_telemetry *t = &l->r.out->telemetry;
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
    fl_readings_begin(&l->r, out);
    fl_stamps_begin(&l->stamps, -1);
    fl_progress_start(&l->progress, path, o);
    fl_status status = fl_header_seek(path, is_header,
                                      "the names that were queried, such as 'timestamp, power.draw [W]' (no noheader)",
                                      &options.head_lines, d);
    if (!status)
        status = fl_csv_read(path, &options, NULL, on_row, l, d);
    if (!status)
        status = fl_readings_end(&l->r, path, d);
    if (!status)
        status = check_boards(l, path, d);
    if (!status && options.head_lines)
        status = fl_import_note(out, d, "%d lines above the header: left out", options.head_lines);
    if (!status)
        status = add_notes(l, d);
    fl_boards_free(&l->boards);
    fl_readings_free(&l->r);
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
