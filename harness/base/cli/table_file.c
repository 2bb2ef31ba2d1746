#include "harness/base/cli/table_file.h"

#include "traces/io/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 64 };

typedef struct loader {
    const fl_param *row;
    char *names; /* owns the text of name[] */
    const char *name[COLUMNS_MAX];
    size_t where[COLUMNS_MAX], columns, width; /* column 0 is the key where keyed */
    bool keyed, headed;
    double *cell;
    char **key;
    size_t rows, cell_room, key_room;
} loader;

static fl_status header(loader *l, const fl_csv_row *r, fl_diag *d) {
    l->width = r->count;
    for (size_t c = 0; c < l->columns; c++) {
        size_t i = 0;
        while (i < r->count && strcmp(r->field[i].text, l->name[c]))
            i++;
        if (i == r->count)
            return fl_fail(d, FL_BAD_INPUT, r->file, r->line, 1, "no column '%s' for parameter '%s', expected %s",
                           l->name[c], l->row->name, l->row->choices);
        l->where[c] = i;
    }
    l->headed = true;
    return FL_OK;
}

static fl_status read_row(void *user, const fl_csv_row *r, fl_diag *d) {
    loader *l = user;
    if (!l->headed)
        return header(l, r, d);
    if (r->count != l->width)
        return fl_fail(d, FL_BAD_INPUT, r->file, r->line, 1, "row has %zu fields, expected %zu", r->count, l->width);
    size_t numbers = l->columns - l->keyed;
    if (fl_grow(&l->cell, &l->cell_room, (l->rows + 1) * numbers + 1, sizeof *l->cell) ||
        fl_grow(&l->key, &l->key_room, l->rows + 1, sizeof *l->key))
        return fl_no_memory(d, NULL);
    l->key[l->rows] = l->keyed ? strdup(r->field[l->where[0]].text) : NULL;
    for (size_t c = 0; c < numbers; c++) {
        fl_status s = fl_field_real(r, l->where[c + l->keyed], l->name[c + l->keyed], -HUGE_VAL, HUGE_VAL,
                                    &l->cell[l->rows * numbers + c], d);
        if (s) {
            free(l->key[l->rows]);
            return s;
        }
    }
    l->rows++;
    return FL_OK;
}

fl_status fl_table_file_read(const char *path, const fl_param *row, fl_table *t, fl_diag *d) {
    loader l = {.row = row, .names = strdup(row->choices ? row->choices : "")};
    *t = (fl_table){0};
    if (!l.names)
        return fl_no_memory(d, NULL);
    char *text = l.names, *save = NULL;
    if ((l.keyed = !strncmp(text, "key:", 4)))
        text += 4;
    for (char *p = strtok_r(text, "|", &save); p && l.columns < COLUMNS_MAX; p = strtok_r(NULL, "|", &save))
        l.name[l.columns++] = p;
    fl_csv_options options = {.trim = true};
    fl_status s = fl_csv_read(path, &options, NULL, read_row, &l, d);
    if (!s && !l.rows)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no row for parameter '%s', expected at least one", row->name);
    *t = (fl_table){.cell = l.cell,
                    .key = l.keyed ? (const char *const *)l.key : NULL,
                    .row_count = (uint32_t)l.rows,
                    .column_count = (uint32_t)(l.columns - l.keyed)};
    if (!l.keyed)
        free(l.key);
    free(l.names);
    if (s)
        fl_table_file_free(t);
    return s;
}

void fl_table_file_free(fl_table *t) {
    for (uint32_t i = 0; t->key && i < t->row_count; i++)
        free((char *)(uintptr_t)t->key[i]);
    free((char **)(uintptr_t)t->key);
    free((double *)(uintptr_t)t->cell);
    *t = (fl_table){0};
}
