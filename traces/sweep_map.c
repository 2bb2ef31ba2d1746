#include "traces/sweep_map.h"

#include "traces/columns.h"
#include "traces/numbers.h"
#include "traces/sweep_rows.h"

#include <math.h>
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
        return fl_refuse(d, "'%.*s=%.*s' in the map, expected such as sm_mhz=COLUMN", (int)target_size, target,
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
                   : fl_refuse(d, "'%.*s' in the map, expected such as sm_mhz=COLUMN", (int)(end - at), at);
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
    bool scaled, divided;
} place;

typedef struct mapper {
    const fl_sweep_map *map;
    fl_sweep_rows *rows;
    size_t width; /* of the table; 0: no header yet */
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
            return fl_refuse(d, "%s is joined of more than %d columns", t->target, FL_MAP_PARTS);
        p->part[p->parts++] = column;
        at += size + (at[size] == '+');
    }
    return FL_OK;
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
    if (fl_real_parse(t->source, &p->number) == FL_NUMBER_OK)
        return FL_OK;
    const size_t name = scaled_name(t->source, p), size = name ? name : strlen(t->source),
                 column = column_of(header, t->source, size);
    if (column == SIZE_MAX)
        return unknown_column(header, t, t->source, size, d);
    p->part[p->parts++] = column;
    return FL_OK;
}

static fl_status take_header(mapper *m, const fl_csv_row *header, fl_diag *d) {
    fl_status s = FL_OK;
    m->width = header->count;
    for (size_t i = 0; !s && i < m->map->count; i++) {
        const char *target = m->map->term[i].target;
        m->field[i] = (fl_field){target, strlen(target), 1};
        s = find_place(header, &m->map->term[i], &m->place[i], d);
    }
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

/* The number itself where it is one; else the text as it stands, which the sweep's own checks refuse or know. */
static fl_status computed(mapper *m, size_t i, const fl_csv_row *row, fl_diag *d) {
    const place *p = &m->place[i];
    const char *text = p->parts ? row->field[p->part[0]].text : "";
    double value = p->number;
    if (p->parts && fl_real_parse(text, &value) != FL_NUMBER_OK) {
        const fl_status s = keep_text(m, i, strlen(text), d);
        if (!s)
            memcpy(m->text[i], text, strlen(text) + 1);
        return s;
    }
    if (p->parts)
        value = p->divided ? value / p->number : value * p->number;
    const fl_status s = keep_text(m, i, FL_REAL_TEXT, d);
    if (!s)
        fl_real_text(value, m->text[i]);
    return s;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    mapper *m = user;
    if (!m->width)
        return take_header(m, row, d);
    fl_status s = fl_columns_width(row, m->width, d);
    for (size_t i = 0; !s && i < m->map->count; i++) {
        const place *p = &m->place[i];
        const int64_t column = p->parts ? row->field[p->part[0]].column : 1;
        if (p->parts == 1 && !p->scaled) {
            m->field[i] = row->field[p->part[0]];
            continue;
        }
        s = p->parts > 1 ? joined(m, i, row, d) : computed(m, i, row, d);
        if (!s)
            m->field[i] = (fl_field){m->text[i], strlen(m->text[i]), column};
    }
    const fl_csv_row own = {row->file, row->line, m->field, m->map->count, row->torn};
    return s ? s : fl_sweep_rows_take(m->rows, &own, d);
}

fl_status fl_sweep_read_mapped(const char *path, const fl_sweep_map *map, fl_sweep *s, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true};
    *s = (fl_sweep){0};
    mapper m = {.map = map, .rows = fl_sweep_rows_open(false, d)};
    if (!m.rows)
        return FL_NO_MEMORY;
    const fl_status status = fl_csv_read(path, &OPTIONS, NULL, on_row, &m, d);
    for (size_t i = 0; i < FL_MAP_TERMS; i++)
        free(m.text[i]);
    return fl_sweep_rows_close(m.rows, path, status, s, d);
}
