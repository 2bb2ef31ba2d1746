/* A table of any origin, read through a map from its columns: as a sweep, or for whoever takes its rows. */
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

typedef struct mapper {
    const fl_sweep_map *map;
    fl_row_function take; /* the header first, then each row, with the map's targets as columns */
    void *user;
    fl_map_seen *seen;
    size_t width; /* of the table; 0: no header yet */
    char delimiter;
    bool blanks;  /* fields are cut by any number of blanks */
    bool wide;    /* a column per clock */
    double *head; /* width: the numbers above the columns, NAN = none; of a wide table */
    char (*head_text)[FL_REAL_TEXT];
    char *header; /* its texts, one behind the other */
    size_t header_size;
    fl_map_place place[FL_MAP_TERMS];
    fl_field field[FL_MAP_TERMS]; /* the row as the taker has it */
    char *text[FL_MAP_TERMS];     /* what had to be computed or joined */
    size_t room[FL_MAP_TERMS];
    char *line; /* a line cut by blanks */
    fl_field *cell;
    size_t line_room, cell_room;
    fl_joined joined;
} mapper;

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

/* A time whose unit is known is in "t_s" and so on: of a number that the map scales, in s. */
static const char *time_target(const mapper *m, const fl_csv_row *header, size_t i) {
    static const char *const name[] = {"t_ns", "t_us", "t_ms", "t_s"};
    const fl_map_place *p = &m->place[i];
    const int power =
        p->parts == 1 ? fl_stamps_power(header->field[p->part[0]].text, header->field[p->part[0]].size) : -1;
    return p->scaled ? "t_s" : power >= 0 ? name[power / 3] : "t";
}

static fl_status keep_header(mapper *m, const fl_csv_row *header, fl_diag *d) {
    size_t size = 0;
    for (size_t i = 0; i < header->count; i++)
        size += header->field[i].size + 1;
    m->header = malloc(size);
    if (!m->header)
        return fl_no_memory(d, header->file);
    for (size_t i = 0; i < header->count; i++) {
        memcpy(m->header + m->header_size, header->field[i].text, header->field[i].size + 1);
        m->header_size += header->field[i].size + 1;
    }
    return FL_OK;
}

static bool is_header_again(const mapper *m, const fl_csv_row *row) {
    const char *at = m->header;
    for (size_t i = 0; i < row->count; i++, at += strlen(at) + 1)
        if (at >= m->header + m->header_size || strcmp(at, row->field[i].text) != 0)
            return false;
    return true;
}

static fl_status take_header(mapper *m, const fl_csv_row *header, fl_diag *d) {
    m->width = header->count;
    fl_status s = keep_header(m, header, d);
    for (size_t i = 0; !s && i < m->map->count; i++) {
        const char *target = m->map->term[i].target;
        s = fl_map_find(header, &m->map->term[i], &m->place[i], d);
        if (!s && !strcmp(target, "t"))
            target = time_target(m, header, i);
        m->field[i] = (fl_field){target, strlen(target), 1};
        m->wide |= !s && m->place[i].of != FL_MAP_NAMED;
    }
    if (!s && m->wide)
        s = take_heads(m, header, d);
    const fl_csv_row own = {header->file, header->line, m->field, m->map->count, false};
    return s ? s : m->take(m->user, &own, d);
}

/* ---- a table's rows ---- */

static fl_status keep_text(mapper *m, size_t i, size_t size, fl_diag *d) {
    return fl_grow(&m->text[i], &m->room[i], size + 1, 1) ? fl_no_memory(d, NULL) : FL_OK;
}

static fl_status joined(mapper *m, size_t i, const fl_csv_row *row, fl_diag *d) {
    const fl_map_place *p = &m->place[i];
    size_t size = p->parts - 1, at = 0;
    for (size_t k = 0; k < p->parts; k++)
        size += row->field[p->part[k]].size;
    const fl_status s = keep_text(m, i, size, d);
    for (size_t k = 0; !s && k < p->parts; k++) {
        const fl_field *f = &row->field[p->part[k]];
        if (k)
            m->text[i][at++] = strcmp(m->map->term[i].target, "t") ? '.' : ' ';
        memcpy(m->text[i] + at, f->text, f->size);
        at += f->size;
    }
    if (!s)
        m->text[i][at] = '\0';
    return s;
}

/* "300 W": the number in the unit of the target. */
static bool with_unit(const char *text, const char *target, double *value) {
    const size_t size = strspn(text, "+-0123456789.eE"), unit = size + strspn(text + size, " ");
    char number[FL_CELL_ROOM];
    double factor;
    snprintf(number, sizeof number, "%.*s", (int)(size < FL_CELL_ROOM - 1 ? size : FL_CELL_ROOM - 1), text);
    if (fl_real_parse(number, value) != FL_NUMBER_OK ||
        !fl_unit_find(target, text + unit, strlen(text + unit), &factor))
        return false;
    *value *= factor;
    return true;
}

/* The number itself where it is one; else the text as it stands, which the taker's own checks refuse or know. text:
 * what stands there; NULL = a constant. */
static fl_status computed(mapper *m, size_t i, const char *text, fl_diag *d) {
    const fl_map_place *p = &m->place[i];
    double value = p->number;
    const bool plain = text && fl_real_parse(text, &value) == FL_NUMBER_OK;
    if (text && !plain && !with_unit(text, m->map->term[i].target, &value)) {
        const fl_status s = keep_text(m, i, strlen(text), d);
        if (!s)
            memcpy(m->text[i], text, strlen(text) + 1);
        return s;
    }
    if (text && p->scaled)
        value = p->divided ? value / p->number : value * p->number;
    else if (plain)
        value *= p->unit;
    if (p->inverted && value > 0)
        value = 1 / value; /* a speed of 0 is a run that failed */
    const fl_status s = keep_text(m, i, FL_REAL_TEXT, d);
    if (!s)
        fl_real_text(value, m->text[i]);
    return s;
}

static fl_status constant(mapper *m, size_t i, fl_diag *d) {
    const fl_status s = keep_text(m, i, m->place[i].text_size, d);
    if (!s)
        snprintf(m->text[i], m->place[i].text_size + 1, "%s", m->place[i].text);
    return s;
}

/* Whether a cell is taken as it stands: a plain number without a unit, or a text. */
static bool as_it_stands(const mapper *m, size_t i, const fl_field *f) {
    const fl_map_place *p = &m->place[i];
    double number;
    return p->parts == 1 && !p->scaled && !p->inverted && fabs(p->unit - 1) <= 0 &&
           (fl_map_is_text(m->map->term[i].target) || fl_real_parse(f->text, &number) == FL_NUMBER_OK);
}

/* One setting of the row: of a wide table, that of column `clock`. */
static fl_status take_setting(mapper *m, const fl_csv_row *row, size_t clock, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < m->map->count; i++) {
        const fl_map_place *p = &m->place[i];
        const size_t at = p->of == FL_MAP_NAMED ? p->part[0] : clock;
        const fl_field *f = p->parts || p->of != FL_MAP_NAMED ? &row->field[at] : NULL;
        if (f && as_it_stands(m, i, f)) {
            m->field[i] = *f;
            continue;
        }
        s = p->text        ? constant(m, i, d)
            : p->parts > 1 ? joined(m, i, row, d)
                           : computed(m, i,
                                      p->of == FL_MAP_HEADER ? m->head_text[at]
                                      : f                    ? f->text
                                                             : NULL,
                                      d);
        if (!s)
            m->field[i] = (fl_field){m->text[i], strlen(m->text[i]), f ? f->column : 1};
    }
    const fl_csv_row own = {row->file, row->line, m->field, m->map->count, row->torn};
    return s ? s : m->take(m->user, &own, d);
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

/* Cuts a line at blanks, into cells of the mapper. */
static fl_status cut_blanks(mapper *m, const fl_csv_row *row, fl_csv_row *out, fl_diag *d) {
    const fl_field *f = &row->field[0];
    size_t count = 0;
    if (fl_grow(&m->line, &m->line_room, f->size + 1, 1) ||
        fl_grow(&m->cell, &m->cell_room, f->size / 2 + 1, sizeof *m->cell))
        return fl_no_memory(d, row->file);
    memcpy(m->line, f->text, f->size + 1);
    for (char *at = m->line; *(at += strspn(at, " \t"));) {
        const size_t size = strcspn(at, " \t");
        m->cell[count++] = (fl_field){at, size, f->column + (at - m->line)};
        at += size;
        if (*at)
            *at++ = '\0';
    }
    *out = (fl_csv_row){row->file, row->line, m->cell, count, row->torn};
    return FL_OK;
}

/* Mends a row that has a field too many: a time that the separator cuts, or the index that pandas prints without a
 * name above it. */
static const fl_csv_row *mend(mapper *m, const fl_csv_row *row, fl_csv_row *own) {
    if (m->blanks && row->count == m->width + 2) { /* both */
        *own = (fl_csv_row){row->file, row->line, row->field + 1, row->count - 1, row->torn};
        row = own;
    }
    for (size_t i = 0; i < m->map->count; i++)
        if (!strcmp(m->map->term[i].target, "t") && m->place[i].parts == 1 &&
            fl_time_join(row, m->place[i].part[0], m->blanks ? ' ' : m->delimiter, &m->joined))
            return &m->joined.row;
    if (!m->blanks || row == own)
        return row;
    *own = (fl_csv_row){row->file, row->line, row->field + 1, row->count - 1, row->torn};
    return own;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    mapper *m = user;
    fl_csv_row cut, own;
    fl_field first[FL_JOINED_MAX];
    fl_status s = FL_OK;
    const char *text = row->field[0].text + strspn(row->field[0].text, " ");
    if (m->delimiter != ',')
        take_decimal_commas(row);
    if (m->width && *text == '#') {
        m->seen->comments++;
        return FL_OK;
    }
    if (!m->width && *text == '#' && m->blanks) { /* "# time power", as numpy heads its tables */
        const size_t skip = (size_t)(text - row->field[0].text) + 1;
        first[0] = (fl_field){text + 1, row->field[0].size - skip, row->field[0].column + (int64_t)skip};
        own = (fl_csv_row){row->file, row->line, first, 1, row->torn};
        row = &own;
    } else if (!m->width && *text == '#' && row->count <= FL_JOINED_MAX) {
        const char *name = text + 1 + strspn(text + 1, " ");
        memcpy(first, row->field, row->count * sizeof *first);
        first[0] = (fl_field){name, row->field[0].size - (size_t)(name - row->field[0].text), row->field[0].column};
        own = (fl_csv_row){row->file, row->line, first, row->count, row->torn};
        row = &own;
    }
    if (m->blanks && (s = cut_blanks(m, row, &cut, d)))
        return s;
    row = m->blanks ? &cut : row;
    if (!m->width)
        return take_header(m, row, d);
    if (m->width == row->count && is_header_again(m, row)) {
        m->seen->headers++;
        return FL_OK;
    }
    if (row->count > m->width && row->count <= m->width + 2)
        row = mend(m, row, &own);
    if (row->torn && m->seen->drop_torn) {
        m->seen->torn = row->line;
        return FL_OK;
    }
    s = fl_columns_width(row, m->width, d);
    if (!s && !m->wide)
        return take_setting(m, row, 0, d);
    for (size_t i = 0; !s && i < m->width; i++)
        if (!isnan(m->head[i]))
            s = take_setting(m, row, i, d);
    return s;
}

/* ---- finding the table ---- */

enum { LINES = 256, LINE_ROOM = 16384, CELLS_MAX = 1024 };

/* Whether a line, cut so, has every column that the map names. delimiter ' ': any number of blanks. */
static bool is_head(const fl_sweep_map *map, char *line, char delimiter) {
    fl_field cell[CELLS_MAX];
    size_t count = 0;
    line += strspn(line, " \t");
    line += *line == '#';
    for (char *at = line; count < CELLS_MAX;) {
        at += strspn(at, delimiter == '\t' ? " " : " \t");
        const bool quoted = *at == '"';
        at += quoted;
        char *end = quoted ? strchrnul(at, '"') : delimiter == ' ' ? at + strcspn(at, " \t") : strchrnul(at, delimiter);
        char *next = quoted && *end ? strchrnul(end, delimiter) : end;
        const bool more = *next != '\0';
        *end = '\0';
        size_t size = strlen(at);
        while (size && (at[size - 1] == ' ' || at[size - 1] == '\t'))
            at[--size] = '\0';
        cell[count++] = (fl_field){at, size, 1};
        if (!more)
            break;
        at = next + 1;
    }
    const fl_csv_row header = {"", 1, cell, count, false};
    bool named = false;
    for (size_t i = 0; i < map->count; i++) {
        fl_map_place p;
        fl_diag ignored;
        if (fl_map_find(&header, &map->term[i], &p, &ignored))
            return false;
        named |= p.parts > 0;
    }
    return named;
}

/* Finds the header and how its fields are cut: the first line that has the map's columns. Where there is none, the
 * first line is taken, whose columns the error then names. */
static fl_status find_table(mapper *m, const char *path, int *skip, fl_diag *d) {
    static const char CUT[] = ",;\t ";
    enum { HEAD = 64 << 10 };
    char *head = malloc(HEAD + 1), *line = malloc(LINE_ROOM);
    size_t size = 0;
    fl_gunzip *g = head && line ? fl_gunzip_open(path, d) : NULL;
    fl_status s = !head || !line ? fl_no_memory(d, path)
                  : g            ? fl_gunzip_read(g, head, HEAD, &size, d)
                  : d            ? d->status
                                 : FL_BAD_INPUT;
    fl_gunzip_close(g);
    *skip = 0;
    m->delimiter = '\0';
    size_t at = size >= 3 && !memcmp(head, "\xef\xbb\xbf", 3) ? 3 : 0;
    for (int n = 0; !s && n < LINES && at < size && !m->delimiter; n++) {
        const char *newline = memchr(head + at, '\n', size - at);
        size_t length = newline ? (size_t)(newline - head) - at : size - at;
        length -= length && head[at + length - 1] == '\r';
        const size_t kept = length < LINE_ROOM - 1 ? length : LINE_ROOM - 1;
        for (size_t k = 0; k < 4 && !m->delimiter; k++) {
            memcpy(line, head + at, kept);
            line[kept] = '\0';
            if (!memchr(line, '\0', kept) && is_head(m->map, line, CUT[k])) {
                m->delimiter = CUT[k];
                *skip = n;
            }
        }
        at = newline ? (size_t)(newline - head) + 1 : size;
    }
    if (!s && !m->delimiter) {
        const char *end = memchr(head, '\n', size);
        const size_t first = end ? (size_t)(end - head) : size;
        m->delimiter = memchr(head, ',', first)    ? ','
                       : memchr(head, ';', first)  ? ';'
                       : memchr(head, '\t', first) ? '\t'
                                                   : ',';
    }
    m->blanks = m->delimiter == ' ';
    free(head);
    free(line);
    return s;
}

fl_status fl_map_read(const char *path, const fl_sweep_map *map, fl_row_function take, void *user, fl_map_seen *seen,
                      fl_diag *d) {
    mapper *m = calloc(1, sizeof *m);
    if (!m)
        return fl_no_memory(d, path);
    *m = (mapper){.map = map, .take = take, .user = user, .seen = seen};
    fl_csv_options options = {.trim = true};
    fl_status s = find_table(m, path, &options.head_lines, d);
    options.delimiter = m->blanks ? '\x01' : m->delimiter;
    if (!s)
        s = fl_csv_read(path, &options, NULL, on_row, m, d);
    for (size_t i = 0; i < FL_MAP_TERMS; i++)
        free(m->text[i]);
    free(m->head);
    free(m->head_text);
    free(m->header);
    free(m->line);
    free(m->cell);
    free(m);
    return s;
}

/* ---- as a sweep ---- */

static fl_status take_sweep(void *user, const fl_csv_row *row, fl_diag *d) { return fl_sweep_rows_take(user, row, d); }

static fl_status read_mapped(const char *path, const fl_sweep_map *map, bool times, fl_sweep *s, fl_left_out *left,
                             fl_diag *d) {
    fl_map_seen seen = {0};
    *s = (fl_sweep){0};
    fl_sweep_rows *rows = fl_sweep_rows_open(times, left, d);
    if (!rows)
        return FL_NO_MEMORY;
    const fl_status status = fl_map_read(path, map, take_sweep, rows, &seen, d);
    return fl_sweep_rows_close(rows, path, status, s, d);
}

fl_status fl_sweep_read_mapped(const char *path, const fl_sweep_map *map, fl_sweep *s, fl_left_out *left, fl_diag *d) {
    return read_mapped(path, map, false, s, left, d);
}

fl_status fl_sweep_read_mapped_times(const char *path, const fl_sweep_map *map, fl_sweep *s, fl_left_out *left,
                                     fl_diag *d) {
    return read_mapped(path, map, true, s, left, d);
}
