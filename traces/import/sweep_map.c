/* A sweep from a table of any origin, by a map from its columns. */
#include "traces/import/inside.h"

#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the map ---- */

void fl_sweep_map_free(fl_sweep_map *m) {
    for (size_t i = 0; i < m->count; i++) {
        free(m->term[i].target);
        free(m->term[i].source);
    }
    m->count = 0;
}

static char *trimmed(const char *text, size_t size) {
    while (size && *text == ' ')
        text++, size--;
    while (size && text[size - 1] == ' ')
        size--;
    return strndup(text, size);
}

static fl_status add(fl_sweep_map *m, const char *target, size_t target_size, const char *source, size_t source_size,
                     fl_diag *d) {
    if (m->count == FL_MAP_TERMS)
        return fl_refuse(d, "more than %d terms in the map", FL_MAP_TERMS);
    fl_map_term *t = &m->term[m->count];
    *t = (fl_map_term){trimmed(target, target_size), trimmed(source, source_size)};
    m->count++;
    if (!t->target || !t->source)
        return fl_no_memory(d, NULL);
    if (!*t->target || !*t->source)
        return fl_refuse(d, "'%.*s=%.*s' in the map, expected a term such as sm_mhz=COLUMN", (int)target_size, target,
                         (int)source_size, source);
    for (size_t i = 0; i + 1 < m->count; i++)
        if (!strcmp(m->term[i].target, t->target))
            return fl_refuse(d, "%s twice in the map, expected once", t->target);
    return FL_OK;
}

fl_status fl_sweep_map_add(fl_sweep_map *m, const char *target, const char *source, fl_diag *d) {
    return add(m, target, strlen(target), source, strlen(source), d);
}

/* The comma that ends a term; one between single quotes does not. */
static const char *term_end(const char *text) {
    bool quoted = false;
    for (; *text && (quoted || *text != ','); text++)
        quoted ^= *text == '\'';
    return text;
}

fl_status fl_sweep_map_parse(const char *text, fl_sweep_map *m, fl_diag *d) {
    fl_status s = FL_OK;
    *m = (fl_sweep_map){0};
    for (const char *at = text, *end; !s; at = end + 1) {
        end = term_end(at);
        const char *equals = memchr(at, '=', (size_t)(end - at));
        s = equals ? add(m, at, (size_t)(equals - at), equals + 1, (size_t)(end - equals - 1), d)
                   : fl_refuse(d, "'%.*s' in the map, expected a term such as sm_mhz=COLUMN", (int)(end - at), at);
        if (!*end)
            break;
    }
    if (s)
        fl_sweep_map_free(m);
    return s;
}

/* ---- a table's columns ---- */

typedef struct place {                /* where one column of the sweep comes from */
    size_t part[FL_MAP_PARTS], parts; /* columns of the table; none: a constant */
    double number;                    /* that they are multiplied or divided by, or the constant */
    bool scaled, divided, inverted;   /* inverted: one over it */
    enum { NAMED, HEADER, CELLS } of; /* HEADER, CELLS: of each column that a number heads */
} place;

typedef struct mapper {
    const fl_sweep_map *map;
    fl_sweep_rows *rows;
    size_t width; /* of the table; 0: no header yet */
    char delimiter;
    bool wide;    /* a column per clock */
    double *head; /* width: the numbers above the columns, NAN = none; of a wide table */
    char (*head_text)[FL_REAL_TEXT];
    place place[FL_MAP_TERMS];
    fl_field field[FL_MAP_TERMS]; /* the row as a sweep has it */
    char *text[FL_MAP_TERMS];     /* what had to be computed or joined */
    size_t room[FL_MAP_TERMS];
} mapper;

static size_t column_of(const fl_csv_row *header, const char *name, size_t size) {
    if (size >= 2 && *name == '\'' && name[size - 1] == '\'') /* quoted, as a name with a comma must be */
        name++, size -= 2;
    for (size_t i = 0; i < header->count; i++)
        if (header->field[i].size == size && !memcmp(header->field[i].text, name, size))
            return i;
    return SIZE_MAX;
}

static fl_status unknown_column(const fl_csv_row *header, const fl_map_term *t, const char *name, size_t size,
                                fl_diag *d) {
    const char *candidate[256];
    char text[128];
    size_t count = 0;
    for (; count < header->count && count < 256; count++)
        candidate[count] = header->field[count].text;
    snprintf(text, sizeof text, "%.*s", (int)(size < 127 ? size : 127), name);
    const char *near = fl_nearest(text, candidate, count);
    return fl_fail(d, FL_BAD_INPUT, header->file, header->line, 1, "no column '%s' for %s%s%s%s", text, t->target,
                   near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* "time/1000": the name ends at the last sign, and a number follows. Size of the name; 0 where it is not so. */
static size_t scaled_name(const char *source, place *p) {
    for (size_t i = strlen(source); i-- > 1;) {
        if (source[i] != '/' && source[i] != '*')
            continue;
        const char *text = source + i + 1 + strspn(source + i + 1, " ");
        if (fl_real_parse(text, &p->number) != FL_NUMBER_OK || !(p->number > 0))
            return 0;
        p->scaled = true;
        p->divided = source[i] == '/';
        while (i && source[i - 1] == ' ')
            i--;
        return i;
    }
    return 0;
}

static fl_status find_joined(const fl_csv_row *header, const fl_map_term *t, place *p, fl_diag *d) {
    for (const char *at = t->source; *at;) {
        const size_t size = strcspn(at, "+"), column = column_of(header, at, size);
        if (column == SIZE_MAX)
            return unknown_column(header, t, at, size, d);
        if (p->parts == FL_MAP_PARTS)
            return fl_refuse(d, "%s joins more than %d columns", t->target, FL_MAP_PARTS);
        p->part[p->parts++] = column;
        at += size + (at[size] == '+');
    }
    return FL_OK;
}

/* "cells", "1/cells", "cells/1000", "header": of a wide table. */
static bool is_wide_place(const char *source, place *p) {
    const bool inverted = !strncmp(source, "1/", 2);
    place found = {.inverted = inverted};
    const char *name = source + (inverted ? 2 : 0);
    const size_t scaled = inverted ? 0 : scaled_name(name, &found), size = scaled ? scaled : strlen(name);
    if (size == 6 && !strncmp(name, "header", size))
        found.of = HEADER;
    else if (size == 5 && !strncmp(name, "cells", size))
        found.of = CELLS;
    else
        return false;
    *p = found;
    return true;
}

static fl_status find_place(const fl_csv_row *header, const fl_map_term *t, place *p, fl_diag *d) {
    const bool is_text = !strcmp(t->target, "workload") || !strcmp(t->target, "kernel");
    const size_t whole = column_of(header, t->source, strlen(t->source));
    *p = (place){0};
    if (whole != SIZE_MAX) {
        p->part[p->parts++] = whole;
        return FL_OK;
    }
    if (is_text)
        return find_joined(header, t, p, d);
    if (fl_real_parse(t->source, &p->number) == FL_NUMBER_OK || is_wide_place(t->source, p))
        return FL_OK;
    p->inverted = !strncmp(t->source, "1/", 2);
    const char *source = t->source + (p->inverted ? 2 : 0);
    const size_t name = p->inverted ? 0 : scaled_name(source, p), size = name ? name : strlen(source),
                 column = column_of(header, source, size);
    if (column == SIZE_MAX)
        return unknown_column(header, t, source, size, d);
    p->part[p->parts++] = column;
    return FL_OK;
}

/* The numbers above the columns of a wide table. */
static fl_status take_heads(mapper *m, const fl_csv_row *header, fl_diag *d) {
    size_t found = 0;
    m->head = calloc(m->width, sizeof *m->head);
    m->head_text = calloc(m->width, sizeof *m->head_text);
    if (!m->head || !m->head_text)
        return fl_no_memory(d, header->file);
    for (size_t i = 0; i < m->width; i++) {
        if (fl_real_parse(header->field[i].text, &m->head[i]) != FL_NUMBER_OK) {
            m->head[i] = NAN;
            continue;
        }
        for (size_t k = 0; k < i; k++)
            if (m->head[k] == m->head[i])
                return FL_FIELD_FAIL(d, header, i, "column '%s' is given twice, expected each clock once",
                                     header->field[i].text);
        fl_real_text(m->head[i], m->head_text[i]);
        found++;
    }
    return found ? FL_OK
                 : fl_fail(d, FL_BAD_INPUT, header->file, header->line, 1,
                           "no column is headed by a number, expected one per clock, as header and cells say");
}

static fl_status take_header(mapper *m, const fl_csv_row *header, fl_diag *d) {
    fl_status s = FL_OK;
    const char *other = header->count == 1 && m->delimiter == ',' ? strpbrk(header->field[0].text, ";\t") : NULL;
    if (other) { /* read once more, cut there */
        m->delimiter = *other;
        return FL_BAD_INPUT;
    }
    m->width = header->count;
    for (size_t i = 0; !s && i < m->map->count; i++) {
        const char *target = m->map->term[i].target;
        m->field[i] = (fl_field){target, strlen(target), 1};
        s = find_place(header, &m->map->term[i], &m->place[i], d);
        m->wide |= !s && m->place[i].of != NAMED;
    }
    if (!s && m->wide)
        s = take_heads(m, header, d);
    const fl_csv_row own = {header->file, header->line, m->field, m->map->count, false};
    return s ? s : fl_sweep_rows_take(m->rows, &own, d);
}

/* ---- a table's rows ---- */

static fl_status keep_text(mapper *m, size_t i, size_t size, fl_diag *d) {
    return fl_grow(&m->text[i], &m->room[i], size + 1, 1) ? fl_no_memory(d, NULL) : FL_OK;
}

static fl_status joined(mapper *m, size_t i, const fl_csv_row *row, fl_diag *d) {
    const place *p = &m->place[i];
    size_t size = p->parts - 1, at = 0;
    for (size_t k = 0; k < p->parts; k++)
        size += row->field[p->part[k]].size;
    const fl_status s = keep_text(m, i, size, d);
    for (size_t k = 0; !s && k < p->parts; k++) {
        const fl_field *f = &row->field[p->part[k]];
        if (k)
            m->text[i][at++] = '.';
        memcpy(m->text[i] + at, f->text, f->size);
        at += f->size;
    }
    if (!s)
        m->text[i][at] = '\0';
    return s;
}

/* The number itself where it is one; else the text as it stands, which the sweep's own checks refuse or know. text:
 * what stands there; NULL = a constant. */
static fl_status computed(mapper *m, size_t i, const char *text, fl_diag *d) {
    const place *p = &m->place[i];
    double value = p->number;
    if (text && fl_real_parse(text, &value) != FL_NUMBER_OK) {
        const fl_status s = keep_text(m, i, strlen(text), d);
        if (!s)
            memcpy(m->text[i], text, strlen(text) + 1);
        return s;
    }
    if (text && p->scaled)
        value = p->divided ? value / p->number : value * p->number;
    if (p->inverted && value > 0)
        value = 1 / value; /* a speed of 0 is a run that failed */
    const fl_status s = keep_text(m, i, FL_REAL_TEXT, d);
    if (!s)
        fl_real_text(value, m->text[i]);
    return s;
}

/* One setting of the row: of a wide table, that of column `clock`. */
static fl_status take_setting(mapper *m, const fl_csv_row *row, size_t clock, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < m->map->count; i++) {
        const place *p = &m->place[i];
        const size_t at = p->of == NAMED ? p->part[0] : clock;
        const fl_field *f = p->parts || p->of != NAMED ? &row->field[at] : NULL;
        if (p->parts == 1 && !p->scaled && !p->inverted) {
            m->field[i] = *f;
            continue;
        }
        s = p->parts > 1 ? joined(m, i, row, d)
                         : computed(m, i,
                                    p->of == HEADER ? m->head_text[at]
                                    : f             ? f->text
                                                    : NULL,
                                    d);
        if (!s)
            m->field[i] = (fl_field){m->text[i], strlen(m->text[i]), f ? f->column : 1};
    }
    const fl_csv_row own = {row->file, row->line, m->field, m->map->count, row->torn};
    return s ? s : fl_sweep_rows_take(m->rows, &own, d);
}

/* "1,30" becomes "1.30", in the reader's own text. */
static void take_decimal_commas(const fl_csv_row *row) {
    for (size_t i = 0; i < row->count; i++) {
        const char *text = row->field[i].text, *comma = strchr(text, ',');
        if (!comma || comma == text || !comma[1] || strchr(comma + 1, ',') ||
            strspn(text, "+-0123456789,eE") != row->field[i].size)
            continue;
        char *own;
        memcpy(&own, &row->field[i].text, sizeof own);
        own[comma - text] = '.';
    }
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    mapper *m = user;
    if (m->delimiter != ',')
        take_decimal_commas(row);
    if (!m->width)
        return take_header(m, row, d);
    fl_status s = fl_columns_width(row, m->width, d);
    if (!s && !m->wide)
        return take_setting(m, row, 0, d);
    for (size_t i = 0; !s && i < m->width; i++)
        if (!isnan(m->head[i]))
            s = take_setting(m, row, i, d);
    return s;
}

/* A table of a spreadsheet has the separator of its locale, and then perhaps a decimal comma. */
static fl_status read_cut(const char *path, const fl_sweep_map *map, bool times, char *delimiter, fl_sweep *s,
                          fl_left_out *left, fl_diag *d) {
    const fl_csv_options options = {.trim = true, .delimiter = *delimiter};
    *s = (fl_sweep){0};
    mapper m = {.map = map, .rows = fl_sweep_rows_open(times, left, d), .delimiter = *delimiter};
    if (!m.rows)
        return FL_NO_MEMORY;
    const fl_status status = fl_csv_read(path, &options, NULL, on_row, &m, d);
    for (size_t i = 0; i < FL_MAP_TERMS; i++)
        free(m.text[i]);
    free(m.head);
    free(m.head_text);
    *delimiter = m.delimiter;
    return fl_sweep_rows_close(m.rows, path, status, s, d);
}

static fl_status read_mapped(const char *path, const fl_sweep_map *map, bool times, fl_sweep *s, fl_left_out *left,
                             fl_diag *d) {
    char delimiter = ',';
    const fl_status status = read_cut(path, map, times, &delimiter, s, left, d);
    return status && delimiter != ',' ? read_cut(path, map, times, &delimiter, s, left, d) : status;
}

fl_status fl_sweep_read_mapped(const char *path, const fl_sweep_map *map, fl_sweep *s, fl_left_out *left, fl_diag *d) {
    return read_mapped(path, map, false, s, left, d);
}

fl_status fl_sweep_read_mapped_times(const char *path, const fl_sweep_map *map, fl_sweep *s, fl_left_out *left,
                                     fl_diag *d) {
    return read_mapped(path, map, true, s, left, d);
}
