/* The map from the columns of a table of any origin, and where its terms find them. */
#include "traces/import/inside.h"

#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

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

static size_t column_of(const fl_csv_row *header, const char *name, size_t size) {
    if (size >= 2 && *name == '\'' && name[size - 1] == '\'') /* quoted, as a name with a comma must be */
        name++, size -= 2;
    for (size_t i = 0; i < header->count; i++)
        if (header->field[i].size == size && !memcmp(header->field[i].text, name, size))
            return i;
    for (size_t i = 0; i < header->count; i++) { /* without its unit */
        const char *unit;
        size_t unit_size;
        if (fl_unit_split(header->field[i].text, header->field[i].size, &unit, &unit_size) == size && unit &&
            !memcmp(header->field[i].text, name, size))
            return i;
    }
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
    if (!near && column_of(header, t->target, strlen(t->target)) != SIZE_MAX)
        return fl_fail(d, FL_BAD_INPUT, header->file, header->line, 1,
                       "no column '%s' for %s, which is a column itself: expected %s=%s", text, t->target, text,
                       t->target);
    return fl_fail(d, FL_BAD_INPUT, header->file, header->line, 1, "no column '%s' for %s%s%s%s", text, t->target,
                   near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* "time/1000": the name ends at the last sign, and a number follows. Size of the name; 0 where it is not so. */
static size_t scaled_name(const char *source, fl_map_place *p) {
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

static fl_status find_joined(const fl_csv_row *header, const fl_map_term *t, fl_map_place *p, fl_diag *d) {
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
static bool is_wide_place(const char *source, fl_map_place *p) {
    const bool inverted = !strncmp(source, "1/", 2);
    fl_map_place found = {.inverted = inverted};
    const char *name = source + (inverted ? 2 : 0);
    const size_t scaled = inverted ? 0 : scaled_name(name, &found), size = scaled ? scaled : strlen(name);
    if (size == 6 && !strncmp(name, "header", size))
        found.of = FL_MAP_HEADER;
    else if (size == 5 && !strncmp(name, "cells", size))
        found.of = FL_MAP_CELLS;
    else
        return false;
    found.unit = 1;
    *p = found;
    return true;
}

/* Whether a target is taken as it stands: a name, a board or a time. Such columns may be joined by '+'. */
bool fl_map_is_text(const char *target) {
    static const char *const name[] = {"workload", "kernel", "gpu", "device", "t"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (!strcmp(target, name[i]))
            return true;
    return false;
}

/* The unit that the column's name ends in. */
static void find_unit(const fl_csv_row *header, const fl_map_term *t, fl_map_place *p) {
    const char *unit;
    size_t size;
    const fl_field *f = &header->field[p->part[0]];
    fl_unit_split(f->text, f->size, &unit, &size);
    if (!unit || !fl_unit_find(t->target, unit, size, &p->unit))
        p->unit = 1;
}

fl_status fl_map_find(const fl_csv_row *header, const fl_map_term *t, fl_map_place *p, fl_diag *d) {
    const size_t size_all = strlen(t->source), whole = column_of(header, t->source, size_all);
    *p = (fl_map_place){.unit = 1};
    if (whole != SIZE_MAX) {
        p->part[p->parts++] = whole;
        find_unit(header, t, p);
        return FL_OK;
    }
    if (size_all >= 2 && *t->source == '\'' && t->source[size_all - 1] == '\'' &&
        !memchr(t->source + 1, '\'', size_all - 2)) {
        p->text = t->source + 1;
        p->text_size = size_all - 2;
        return FL_OK;
    }
    fl_map_place scaled = {0};
    const size_t time_size = !strcmp(t->target, "t") ? scaled_name(t->source, &scaled) : 0;
    if (fl_map_is_text(t->target) && !time_size &&
        (strchr(t->source, '+') || fl_real_parse(t->source, &p->number) != FL_NUMBER_OK))
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
