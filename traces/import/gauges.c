/* Readings by the names that a tool has for them: columns with units, cells with units, and what is no number. */
#include "traces/import/inside.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- units ---- */

/* Of a quantity, which the end of a signal's name tells; the first is the signal's own. */
static const struct {
    const char *ending, *unit;
    double factor;
} UNIT[] = {{"_w", "W", 1},
            {"_w", "mW", 1e-3},
            {"_w", "kW", 1e3},
            {"_w", "uW", 1e-6},
            {"_w", "watts", 1},
            {"_j", "J", 1},
            {"_j", "mJ", 1e-3},
            {"_j", "uJ", 1e-6},
            {"_j", "kJ", 1e3},
            {"_j", "Wh", 3600},
            {"_j", "kWh", 3.6e6},
            {"_mhz", "MHz", 1},
            {"_mhz", "GHz", 1e3},
            {"_mhz", "kHz", 1e-3},
            {"_mhz", "Hz", 1e-6},
            {"_pct", "%", 1},
            {"_pct", "pct", 1},
            {"_pct", "ratio", 100},
            {"_c", "C", 1},
            {"_c",
             "\xc2\xb0"
             "C",
             1},
            {"_c", "degC", 1},
            {"_c", "celsius", 1},
            {"_ns", "ns", 1},
            {"_ns", "us", 1e3},
            {"_ns", "ms", 1e6},
            {"_ns", "s", 1e9},
            {"_s", "s", 1},
            {"_s", "ms", 1e-3},
            {"_s", "us", 1e-6},
            {"_s", "ns", 1e-9},
            {"_s", "seconds", 1}};
enum { UNITS = sizeof UNIT / sizeof *UNIT };

static bool ends(const char *signal, const char *ending) {
    const size_t size = strlen(signal), n = strlen(ending);
    return size > n && !strcmp(signal + size - n, ending);
}

bool fl_unit_find(const char *signal, const char *text, size_t size, double *factor) {
    for (size_t i = 0; i < UNITS; i++)
        if (strlen(UNIT[i].unit) == size && !strncasecmp(text, UNIT[i].unit, size) && ends(signal, UNIT[i].ending) &&
            (size != 2 || text[0] == UNIT[i].unit[0])) { /* mW is no MW */
            *factor = UNIT[i].factor;
            return true;
        }
    return false;
}

static const char *unit_own(const char *signal) {
    for (size_t i = 0; i < UNITS; i++)
        if (ends(signal, UNIT[i].ending))
            return UNIT[i].unit;
    return "no unit";
}

/* "clocks.current.sm [MHz]", "Current Socket Graphics Package Power (W)": the length without the unit, and the unit.
 * The last bracket is that of the unit. */
size_t fl_unit_split(const char *name, size_t size, const char **unit, size_t *unit_size) {
    *unit = NULL;
    *unit_size = 0;
    while (size && name[size - 1] == ' ')
        size--;
    if (!size || !strchr("])", name[size - 1]))
        return size;
    const char open = name[size - 1] == ']' ? '[' : '(';
    size_t at = size;
    while (at && name[at - 1] != open)
        at--;
    if (!at)
        return size;
    *unit = name + at;
    *unit_size = size - 1 - at;
    for (at--; at && name[at - 1] == ' ';)
        at--;
    return at;
}

/* ---- columns ---- */

static fl_status name_unit(const fl_csv_row *row, size_t i, const char *name, const char *unit, size_t size,
                           const char *signal, fl_diag *d) {
    return FL_FIELD_FAIL(d, row, i, "unit of %.60s is '%.*s', expected %s", name, (int)(size < 20 ? size : 20), unit,
                         unit_own(signal));
}

fl_status fl_gauges_add(fl_gauges *g, const fl_csv_row *row, size_t i, const char *name, size_t size, const char *unit,
                        bool used, fl_diag *d) {
    if (fl_grow(&g->column, &g->room, g->count + 1, sizeof *g->column))
        return fl_no_memory(d, row->file);
    fl_gauge_column *c = &g->column[g->count++];
    size_t unit_size = unit ? strlen(unit) : 0;
    *c = (fl_gauge_column){.factor = 1};
    const char *inner = NULL;
    size_t inner_size = 0, whole = size;
    for (size_t k = 0; k < g->rows && !c->of; k++)
        c->of = strlen(g->table[k].name) == size && !strncmp(name, g->table[k].name, size) ? &g->table[k] : NULL;
    if (!c->of) { /* with its unit in brackets */
        size = fl_unit_split(name, size, &inner, &inner_size);
        for (size_t k = 0; k < g->rows && !c->of; k++)
            c->of = strlen(g->table[k].name) == size && !strncmp(name, g->table[k].name, size) ? &g->table[k] : NULL;
    }
    const size_t length = strlen(g->left_out);
    if (!c->of) {
        if (!used && length < sizeof g->left_out - 40)
            snprintf(g->left_out + length, sizeof g->left_out - length, "%s%.*s", length ? ", " : "",
                     (int)(whole < 36 ? whole : 36), name);
        return FL_OK;
    }
    const char *says = inner ? inner : unit_size ? unit : c->of->unit;
    const size_t says_size = inner ? inner_size : says ? strlen(says) : 0;
    c->range = fl_signal_range_of(c->of->signal);
    if (!c->of->bits && says && !fl_unit_find(c->of->signal, says, says_size, &c->factor))
        return name_unit(row, i, c->of->name, says, says_size, c->of->signal, d);
    return FL_OK;
}

/* Of several columns for one signal, the first of the tool's table. */
fl_status fl_gauges_begin(fl_gauges *g, const fl_csv_row *row, fl_diag *d) {
    fl_status status = FL_OK;
    for (size_t i = 0; i < g->count; i++)
        for (size_t k = 0; g->column[i].of && k < g->count; k++) {
            const fl_gauge *mine = g->column[i].of, *other = g->column[k].of;
            if (i != k && other && !strcmp(mine->signal, other->signal) && !(mine->bits && other->bits) &&
                (other < mine || (other == mine && k < i)))
                g->column[i].of = NULL;
        }
    for (size_t i = 0; i < g->count && !status; i++)
        if (g->column[i].of)
            status = fl_readings_signal(&g->r, g->column[i].of->signal, &g->column[i].signal, d);
    if (!status && *g->left_out)
        status = fl_import_note(g->r.out, d, "left out, as telemetry has no place for them: %s", g->left_out);
    if (!status && !g->r.out->telemetry.signal_count)
        return fl_fail(d, FL_BAD_INPUT, row->file, row->line, row->field[0].column,
                       "no column that telemetry has a place for, expected such as %s", g->table[0].name);
    return status;
}

/* ---- cells ---- */

/* "251 W", "(1700Mhz)", "1 (1700Mhz)", "47.0": the number, and its unit or "". */
static void cut_number(const char *cell, char text[FL_CELL_ROOM], char unit[FL_CELL_ROOM]) {
    const char *open = strchr(cell, '(');
    char whole[FL_CELL_ROOM];
    cell = open ? open + 1 : cell;
    cell += strspn(cell, " ");
    snprintf(whole, sizeof whole, "%.*s", (int)strcspn(cell, ")"), cell);
    size_t size = strspn(whole, "+-0123456789.,");
    size += !strncasecmp(whole + size, "inf", 3) ? 3 : 0;
    if (size && (whole[size] == 'e' || whole[size] == 'E') && strspn(whole + size + 1, "+-0123456789"))
        size += 1 + strspn(whole + size + 1, "+-0123456789");
    const char *at = whole + size + strspn(whole + size, " ");
    size_t last = strlen(at);
    while (last && at[last - 1] == ' ')
        last--;
    snprintf(unit, FL_CELL_ROOM, "%.*s", size ? (int)last : 0, at);
    snprintf(text, FL_CELL_ROOM, "%.*s", size && (*unit || open) ? (int)size : (int)strlen(whole), whole);
}

fl_status fl_cell_read(const fl_csv_row *row, size_t i, const char *cell, const char *what, const char *signal,
                       double factor, double *value, fl_diag *d) {
    char text[FL_CELL_ROOM], unit[FL_CELL_ROOM];
    double x;
    if (fl_no_value(cell) || !strncasecmp(cell, "N/A", 3))
        return FL_OK;
    cut_number(cell, text, unit);
    if (*unit && !fl_unit_find(signal, unit, strlen(unit), &factor))
        return fl_real_parse(text, &x) == FL_NUMBER_OK && !isdigit((unsigned char)*unit)
                   ? name_unit(row, i, what, unit, strlen(unit), signal, d)
                   : fl_foreign_real(row, i, cell, what, &x, d);
    const fl_status status = fl_foreign_real(row, i, text, what, &x, d);
    if (!status)
        *value = x * factor;
    return status;
}

/* Numbers by which DCGM says that a field has no value (dcgm_structs.h), should a tool pass them on. */
bool fl_dcgm_blank(double x) {
    return (x >= 2147483632.0 && x <= 2147483647.0) || (x >= 140737488355328.0 && x < 140737488355344.0) ||
           x >= 9.2233720368547e18;
}

/* Read a cell of a column that is carried; *value stays where it has none. */
static fl_status gauges_value(const fl_gauge_column *c, const fl_csv_row *row, size_t i, const char *cell,
                              double *value, fl_diag *d) {
    if (fl_no_value(cell) || !strncasecmp(cell, "N/A", 3))
        return FL_OK;
    if (!c->of->bits)
        return fl_cell_read(row, i, cell, c->of->name, c->of->signal, c->factor, value, d);
    const bool is_mask = c->of->bits == FL_GAUGE_MASK;
    char *end;
    const unsigned long long mask = strtoull(cell, &end, 0);
    double x = NAN;
    if (is_mask && isdigit((unsigned char)*cell) && !*end) {
        *value = fl_held_by(mask);
        return FL_OK;
    }
    if (is_mask && fl_real_parse(cell, &x) == FL_NUMBER_OK && x >= 0 && x < 0x1p63) {
        *value = fl_held_by((unsigned long long)x);
        return FL_OK;
    }
    if (is_mask)
        return FL_FIELD_FAIL(d, row, i, "%s is '%.40s', expected a mask such as 0x0000000000000004", c->of->name, cell);
    const bool on = !strcmp(cell, "Active") || !strcmp(cell, "THROTTLED");
    if (on || !strcmp(cell, "Not Active") || !strcmp(cell, "UNTHROTTLED")) {
        *value = on ? c->of->bits : 0;
        return FL_OK;
    }
    if (isalpha((unsigned char)*cell))
        return FL_FIELD_FAIL(d, row, i, "%s is '%.40s', expected Active or Not Active", c->of->name, cell);
    const fl_status s = fl_cell_read(row, i, cell, c->of->name, "_pct", 1, &x, d);
    if (!s && !isnan(x))
        *value = x > 0 ? (double)c->of->bits : 0;
    return s;
}

fl_status fl_gauges_cell(fl_gauges *g, const fl_csv_row *row, size_t i, size_t column, const char *cell, double *value,
                         fl_diag *d) {
    const fl_gauge_column *c = &g->column[column];
    double x = NAN;
    if (!c->of)
        return FL_OK;
    fl_status status = gauges_value(c, row, i, cell, &x, d);
    if (!status)
        status = fl_signal_check(row, i, c->of->name, c->range, x, d);
    if (status || isnan(x))
        return status;
    double *to = &value[c->signal];
    *to = c->of->bits && !isnan(*to) ? (double)((unsigned)*to | (unsigned)x) : x;
    return FL_OK;
}

void fl_gauges_free(fl_gauges *g) {
    fl_readings_free(&g->r);
    free(g->column);
}

/* ---- boards ---- */

fl_status fl_board_of(fl_boards *b, const fl_csv_row *row, size_t i, int64_t index, const char *name, size_t *board,
                      fl_diag *d) {
    size_t at = index < 0 ? FL_BOARDS_MAX : (size_t)index;
    *board = at;
    if (!name || (at < FL_BOARDS_MAX && b->name[at] && !strcmp(b->name[at], name)))
        return FL_OK;
    if (at == FL_BOARDS_MAX || b->name[at])
        for (at = 0; at < FL_BOARDS_MAX && (!b->name[at] || strcmp(b->name[at], name) != 0);)
            at++;
    for (size_t k = 0; at == FL_BOARDS_MAX && k < FL_BOARDS_MAX; k++)
        at = b->name[k] ? at : k;
    if (at == FL_BOARDS_MAX)
        return FL_FIELD_FAIL(d, row, i, "more than %d boards", FL_BOARDS_MAX);
    *board = at;
    if (b->name[at])
        return FL_OK;
    b->moved += index >= 0 && at != (size_t)index;
    b->name[at] = strdup(name);
    return b->name[at] ? FL_OK : fl_no_memory(d, row->file);
}

void fl_boards_say(const fl_boards *b, fl_imported *out) {
    if (b->moved)
        fl_import_doubt(out,
                        "boards of several nodes have the same index: told apart by uuid, bus, serial number or host");
}

void fl_boards_free(fl_boards *b) {
    for (size_t i = 0; i < FL_BOARDS_MAX; i++)
        free(b->name[i]);
}

/* ---- readings that come one by one ---- */

fl_status fl_points_add(fl_points *p, int64_t line, int64_t t_ns, size_t device, const char *name, const char *text,
                        const char *unit, fl_diag *d) {
    fl_gauges *g = p->g;
    const fl_field field = {text, strlen(text), 1};
    const fl_csv_row row = {p->file, line, &field, 1, false};
    size_t c = 0;
    while (c < g->count && !(g->column[c].of && !strcmp(g->column[c].of->name, name)))
        c++;
    for (size_t k = 0; c == g->count && k < g->rows; k++)
        if (!strcmp(g->table[k].name, name)) {
            const fl_status s = fl_gauges_add(g, &row, 0, name, strlen(name), unit, true, d);
            if (s)
                return s;
            break;
        }
    if (c == g->count) /* not carried */
        return FL_OK;
    const fl_gauge *of = g->column[c].of;
    double value = NAN;
    fl_status s = gauges_value(&g->column[c], &row, 0, text, &value, d);
    if (!s)
        s = fl_signal_check(&row, 0, of->name, g->column[c].range, value, d);
    if (s || isnan(value))
        return s;
    if (fl_grow(&p->point, &p->room, p->count + 1, sizeof *p->point))
        return fl_no_memory(d, p->file);
    p->point[p->count] = (fl_point){t_ns, line, p->count, value, (uint32_t)c, (int32_t)device};
    p->count++;
    return FL_OK;
}

static int by_time(const void *a, const void *b) {
    const fl_point *x = a, *y = b;
    return x->t_ns != y->t_ns       ? (x->t_ns < y->t_ns ? -1 : 1)
           : x->device != y->device ? (x->device < y->device ? -1 : 1)
                                    : (x->order > y->order) - (x->order < y->order);
}

fl_status fl_points_end(fl_points *p, fl_diag *d) {
    fl_gauges *g = p->g;
    const fl_field none = {"", 0, 1};
    const fl_csv_row head = {p->file, 0, &none, 1, false};
    fl_status s = fl_gauges_begin(g, &head, d);
    if (p->count)
        qsort(p->point, p->count, sizeof *p->point, by_time);
    for (size_t i = 0, next; !s && i < p->count; i = next) {
        const fl_csv_row row = {p->file, p->point[i].line, &none, 1, false};
        double *value = fl_telemetry_row(&g->r.rows);
        if (!value)
            return fl_no_memory(d, p->file);
        bool any = false;
        for (next = i;
             next < p->count && p->point[next].t_ns == p->point[i].t_ns && p->point[next].device == p->point[i].device;
             next++) {
            const fl_gauge_column *c = &g->column[p->point[next].column];
            double *to = c->of ? &value[c->signal] : NULL;
            if (to && c->of->bits)
                *to = (double)((isnan(*to) ? 0 : (unsigned)*to) | (unsigned)p->point[next].value);
            else if (to && isnan(*to)) /* the first: what follows is of a part of the board */
                *to = p->point[next].value;
            any |= to != NULL;
        }
        if (any)
            s = fl_left_row(&g->r.left,
                            fl_readings_take(&g->r, &row, p->point[i].t_ns, p->point[i].device, &g->r.left.own), d);
    }
    return s;
}

void fl_points_free(fl_points *p) { free(p->point); }

/* ---- rounds of rows without times ---- */

int64_t fl_round_of(fl_rounds *r, size_t gpu) {
    if (r->seen[gpu] || !r->begun) {
        memset(r->seen, 0, sizeof r->seen);
        r->round += r->begun;
        r->begun = true;
    }
    r->seen[gpu] = true;
    return r->round;
}
