#include "harness/study/compare/result_tables.h"
#include "harness/study/compare/published_inside.h"

#include "harness/base/json/json_out.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct table { /* selections side by side */
    const char *title;
    fl_json columns, rows; /* objects by name */
    selection *cell;       /* count: row by row */
    double *value;
    size_t count;
    cJSON *merged; /* what the cells borrow from */
} table;

struct fl_result_tables {
    table *table;
    size_t count;
};

/* Sets a key of the cell. "+KEY" puts its text behind the one that KEY has so far. */
static bool set_key(cJSON *all, const cJSON *given) {
    const bool behind = given->string[0] == '+' && cJSON_IsString(given);
    const char *key = given->string + behind;
    const char *first = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(all, key));
    const size_t size = behind ? (first ? strlen(first) : 0) + strlen(given->valuestring) + 1 : 0;
    char *text = behind ? malloc(size) : NULL;
    if (behind && !text)
        return false;
    if (behind)
        snprintf(text, size, "%s%s", first ? first : "", given->valuestring);
    cJSON *value = behind ? cJSON_CreateString(text) : cJSON_Duplicate(given, true);
    free(text);
    cJSON_DeleteItemFromObjectCaseSensitive(all, key);
    return cJSON_AddItemToObject(all, key, value);
}

/* The cell's selection: what the table says of each, with the column's and then the row's keys over it, and at last
 * those with a '+'. Kept in t->merged, which the selection borrows from. */
static fl_status read_cell(table *t, const fl_json *each, const fl_json *column, const fl_json *row,
                           const fl_texts *policies, selection *cell, fl_diag *d) {
    const fl_json *from[] = {each, column, row, each, column, row};
    cJSON *all = cJSON_CreateObject();
    if (!cJSON_AddItemToArray(t->merged, all))
        return fl_no_memory(d, "the tables");
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        for (fl_json e = from[i]->node ? fl_json_first(from[i]) : (fl_json){0}; e.node; e = fl_json_next(from[i], &e))
            if ((e.node->string[0] == '+') == (i >= 3) && !set_key(all, e.node))
                return fl_no_memory(d, "the tables");
    fl_json at = *row;
    at.node = all;
    return fl_published_selection(&at, policies, cell, d);
}

static fl_status read_table(const fl_json *at, const fl_texts *policies, table *t, fl_diag *d) {
    fl_json each = {0};
    size_t n = 0;
    fl_status s = fl_json_object(at, d);
    if (s || (s = fl_json_get_text(at, "title", &t->title, d)) ||
        (s = fl_json_get_object(at, "columns", &t->columns, d)) || (s = fl_json_get_object(at, "rows", &t->rows, d)) ||
        (fl_json_has(at, "each") && (s = fl_json_get_object(at, "each", &each, d))))
        return s;
    const size_t cells = fl_json_count(&t->columns) * fl_json_count(&t->rows);
    if (!cells)
        return fl_json_fail(at, d, "a table without rows or columns, expected both");
    t->cell = calloc(cells, sizeof *t->cell);
    t->value = malloc(cells * sizeof *t->value);
    t->merged = cJSON_CreateArray();
    if (!t->cell || !t->value || !t->merged)
        return fl_no_memory(d, "the tables");
    for (fl_json r = fl_json_first(&t->rows); r.node; r = fl_json_next(&t->rows, &r))
        for (fl_json c = fl_json_first(&t->columns); c.node; c = fl_json_next(&t->columns, &c)) {
            t->value[n] = NAN;
            if ((s = fl_json_object(&r, d)) || (s = fl_json_object(&c, d)) ||
                (s = read_cell(t, &each, &c, &r, policies, &t->cell[n], d)))
                return s;
            n++;
        }
    t->count = n;
    return FL_OK;
}

fl_status fl_result_tables_open(const fl_experiment *e, const fl_texts *policies, fl_result_tables **out, fl_diag *d) {
    fl_json list;
    *out = NULL;
    if (!e->tree)
        return FL_OK;
    const fl_json root = fl_json_root(e->tree, e->path);
    if (!fl_json_has(&root, "tables"))
        return FL_OK;
    fl_status s = fl_json_get_array(&root, "tables", &list, d);
    fl_result_tables *t = s ? NULL : calloc(1, sizeof *t);
    if (t)
        t->table = calloc(fl_json_count(&list) + 1, sizeof *t->table);
    if (!s && (!t || !t->table))
        s = fl_no_memory(d, "the tables");
    for (fl_json at = s ? (fl_json){0} : fl_json_first(&list); !s && at.node; at = fl_json_next(&list, &at))
        s = read_table(&at, policies, &t->table[t->count++], d);
    if (s)
        fl_result_tables_free(t);
    else
        *out = t;
    return s;
}

void fl_result_tables_free(fl_result_tables *t) {
    for (size_t i = 0; t && i < t->count; i++) {
        free(t->table[i].cell);
        free(t->table[i].value);
        cJSON_Delete(t->table[i].merged);
    }
    if (t)
        free(t->table);
    free(t);
}

fl_status fl_result_tables_solve(fl_result_tables *all, const fl_comparison *c, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; i < all->count; i++)
        for (size_t k = 0; !s && k < all->table[i].count; k++)
            s = fl_published_value(&all->table[i].cell[k], c, &all->table[i].value[k], d);
    return s;
}

void fl_result_tables_print(const fl_result_tables *all, FILE *out) {
    for (size_t i = 0; i < all->count; i++) {
        const table *t = &all->table[i];
        fl_grid g = fl_grid_headed(&t->title, 1);
        size_t n = 0;
        g.columns = 1 + fl_json_count(&t->columns);
        for (fl_json c = fl_json_first(&t->columns); c.node; c = fl_json_next(&t->columns, &c))
            fl_grid_add(&g, "%s", c.node->string);
        for (fl_json r = fl_json_first(&t->rows); r.node; r = fl_json_next(&t->rows, &r)) {
            fl_grid_add(&g, "%s", r.node->string);
            for (size_t k = 1; k < g.columns; k++, n++)
                if (isnan(t->value[n]))
                    fl_grid_add(&g, "-");
                else
                    fl_grid_add(&g, "%.5g", t->value[n]);
        }
        fl_grid_print(&g, 1, out);
        fputc('\n', out);
    }
}

cJSON *fl_result_tables_json(const fl_result_tables *all) {
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < all->count; i++) {
        const table *t = &all->table[i];
        cJSON *o = fl_json_add_row(list);
        size_t n = 0;
        cJSON_AddStringToObject(o, "title", t->title);
        cJSON *rows = cJSON_AddObjectToObject(o, "rows");
        for (fl_json r = fl_json_first(&t->rows); r.node; r = fl_json_next(&t->rows, &r)) {
            cJSON *row = cJSON_AddObjectToObject(rows, r.node->string);
            for (fl_json c = fl_json_first(&t->columns); c.node; c = fl_json_next(&t->columns, &c))
                fl_json_add_real(row, c.node->string, t->value[n++]);
        }
    }
    return list;
}
