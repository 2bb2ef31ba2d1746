/* Tables from files. */
#include "harness/report/data/data.h"

#include "harness/base/json/json.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fl_status no_memory(const fl_show_table *t, fl_diag *d) { return fl_no_memory(d, t->path); }

static fl_status add_column(fl_show_table *t, const char *name, fl_diag *d) {
    if (fl_grow(&t->name, &t->name_room, t->columns + 1, sizeof *t->name) ||
        fl_grow(&t->number, &t->number_room, t->columns + 1, sizeof *t->number) ||
        !(t->name[t->columns] = strdup(name)))
        return no_memory(t, d);
    t->number[t->columns++] = true;
    return FL_OK;
}

/* text: malloc'd, or NULL where memory ran out; the function takes it over. The cells of a row come one after the
 * other. */
static fl_status add_cell(fl_show_table *t, size_t index, char *text, fl_diag *d) {
    if (!text || fl_grow(&t->cell, &t->cell_room, index + 1, sizeof *t->cell)) {
        free(text);
        return no_memory(t, d);
    }
    t->cell[index] = text;
    return FL_OK;
}

static size_t column_of(const fl_show_table *t, const char *name) {
    size_t i = 0;
    while (i < t->columns && strcmp(t->name[i], name) != 0)
        i++;
    return i;
}

/* ---- CSV ---- */

/* Rows in JSON have named values, and a user names columns too, so no two columns may have the same name. */
static fl_status add_named(fl_show_table *t, const char *name, fl_diag *d) {
    char *other = NULL;
    const char *free_one = name;
    for (size_t k = 2; column_of(t, free_one) < t->columns; k++) {
        free(other);
        if (asprintf(&other, "%s.%zu", name, k) < 0)
            return no_memory(t, d);
        free_one = other;
    }
    const fl_status s = add_column(t, free_one, d);
    free(other);
    return s;
}

typedef struct loader {
    fl_show_table *t;
    size_t cells;
} loader;

static fl_status read_row(void *user, const fl_csv_row *r, fl_diag *d) {
    loader *l = user;
    fl_show_table *t = l->t;
    fl_status s = FL_OK;
    if (!t->columns) {
        for (size_t i = 0; !s && i < r->count; i++)
            s = add_named(t, r->field[i].text, d);
        return s;
    }
    if (r->count != t->columns)
        return fl_fail(d, FL_BAD_INPUT, r->file, r->line, 1, "row has %zu fields%s, expected %zu as the header has",
                       r->count, r->torn ? " and no end" : "", t->columns);
    for (size_t i = 0; !s && i < r->count; i++)
        if (!(s = add_cell(t, l->cells, strdup(r->field[i].text), d)))
            l->cells++;
    t->rows += !s;
    return s;
}

/* The format in "# foldline-telemetry 1", as the file states it. */
static char *format_of(const char *head, size_t size) {
    size_t at = 2, end;
    if (size < 3 || head[0] != '#' || head[1] != ' ')
        return NULL;
    for (end = at; end < size && (isalnum((unsigned char)head[end]) || head[end] == '-'); end++) {
    }
    return end > at && end + 2 < size && !memcmp(head + end, " 1", 2) && isspace((unsigned char)head[end + 2])
               ? strndup(head + at, end - at)
               : NULL;
}

static fl_status read_csv(fl_show_table *t, const char *head, size_t size, fl_diag *d) {
    loader l = {.t = t};
    t->format = format_of(head, size);
    const fl_csv_options o = {.trim = true, .format = t->format ? t->format : "csv", .head_optional = !t->format};
    fl_status s = fl_csv_read(t->path, &o, &t->head, read_row, &l, d);
    while (s && l.cells > t->rows * t->columns) /* the cells of an incomplete row */
        free(t->cell[--l.cells]);
    return s;
}

/* ---- JSON ---- */

/* A value as a cell; a value that contains others becomes one line. malloc'd, NULL when out of memory. */
static char *cell_of(const cJSON *value) {
    char number[FL_REAL_TEXT];
    if (!value || cJSON_IsNull(value))
        return strdup("");
    if (cJSON_IsString(value))
        return strdup(value->valuestring);
    if (cJSON_IsNumber(value))
        return strdup(fl_real_text(value->valuedouble, number));
    return fl_json_text(value, false);
}

/* Whether the value is a list of objects only. */
static bool is_table(const cJSON *value) {
    const cJSON *at;
    cJSON_ArrayForEach(at, value) if (!cJSON_IsObject(at)) return false;
    return cJSON_IsArray(value) && value->child;
}

/* "rows", or the longest list of objects if it is the main part of the object: longer than the other values beside it.
 */
static const cJSON *find_table(const cJSON *root) {
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(root, "rows"), *at;
    int most = 0;
    if (is_table(found))
        return found;
    found = NULL;
    cJSON_ArrayForEach(at, root) most += !is_table(at);
    cJSON_ArrayForEach(at, root) {
        const int n = is_table(at) ? cJSON_GetArraySize(at) : 0;
        if (n > most) {
            found = at;
            most = n;
        }
    }
    return found;
}

/* The columns are the keys of all rows, in the order of their first appearance. */
static fl_status read_rows(fl_show_table *t, const cJSON *list, fl_diag *d) {
    const cJSON *row, *at;
    fl_status s = FL_OK;
    size_t cells = 0;
    cJSON_ArrayForEach(row, list) {
        size_t next = 0; /* rows are nearly always alike, so the search starts at the key's place in the last row */
        cJSON_ArrayForEach(at, row) {
            if (next >= t->columns || strcmp(t->name[next], at->string) != 0)
                next = column_of(t, at->string);
            if (next++ == t->columns && (s = add_column(t, at->string, d)))
                return s;
        }
    }
    cJSON_ArrayForEach(row, list) {
        at = row->child;
        for (size_t c = 0; c < t->columns; c++) {
            const bool here = at && !strcmp(at->string, t->name[c]);
            const cJSON *value = here ? at : cJSON_GetObjectItemCaseSensitive(row, t->name[c]);
            at = here ? at->next : at;
            if ((s = add_cell(t, cells, cell_of(value), d))) {
                while (cells > t->rows * t->columns)
                    free(t->cell[--cells]);
                return s;
            }
            cells++;
        }
        t->rows++;
    }
    return s;
}

typedef fl_status (*put_value)(fl_show_table *t, const char *key, const cJSON *value, fl_diag *d);

static fl_status put_head(fl_show_table *t, const char *key, const cJSON *value, fl_diag *d) {
    char *text = cell_of(value);
    const bool put = text && fl_head_set(&t->head, key, text);
    free(text);
    return put ? FL_OK : no_memory(t, d);
}

static fl_status put_row(fl_show_table *t, const char *key, const cJSON *value, fl_diag *d) {
    fl_status s = add_cell(t, 2 * t->rows, strdup(key), d);
    if (!s && (s = add_cell(t, 2 * t->rows + 1, cell_of(value), d)))
        free(t->cell[2 * t->rows]);
    t->rows += !s;
    return s;
}

/* Every value that contains no object, by its dotted key. */
static fl_status put_all(fl_show_table *t, const cJSON *object, const char *above, const cJSON *but, put_value put,
                         int depth, fl_diag *d) {
    const cJSON *at;
    fl_status s = FL_OK;
    cJSON_ArrayForEach(at, object) {
        char key[FL_JSON_PATH_MAX];
        snprintf(key, sizeof key, "%s%s%s", above, *above ? "." : "", at->string ? at->string : "");
        if (at == but || s)
            continue;
        s = cJSON_IsObject(at) && at->child && depth < 16 ? put_all(t, at, key, but, put, depth + 1, d)
                                                          : put(t, key, at, d);
    }
    return s;
}

static fl_status read_json(fl_show_table *t, fl_diag *d) {
    cJSON *tree = NULL;
    fl_status s = fl_json_read_any(t->path, &tree, d);
    const bool is_list = !s && cJSON_IsArray(tree);
    const cJSON *list = s || is_list ? NULL : find_table(tree);
    if (is_list && !is_table(tree)) {
        const fl_json at = fl_json_root(tree, t->path);
        s = fl_json_fail(&at, d, "not only objects in the list, expected an object or a list of objects");
    } else if (is_list)
        s = read_rows(t, tree, d);
    else if (!s && list && !(s = read_rows(t, list, d)))
        s = put_all(t, tree, "", list, put_head, 0, d);
    else if (!s && !(s = add_column(t, "key", d)) && !(s = add_column(t, "value", d)))
        s = put_all(t, tree, "", NULL, put_row, 0, d);
    cJSON_Delete(tree);
    return s;
}

/* ---- either form ---- */

static void tell_numbers(fl_show_table *t) {
    for (size_t i = 0; i < t->rows * t->columns; i++) {
        double v;
        if (*t->cell[i] && strcmp(t->cell[i], "n/a") != 0 && fl_real_parse(t->cell[i], &v) != FL_NUMBER_OK)
            t->number[i % t->columns] = false;
    }
    for (size_t c = 0; c < t->columns; c++) { /* an empty column is not numeric */
        size_t i = 0;
        while (i < t->rows && !*t->cell[i * t->columns + c])
            i++;
        t->number[c] = t->number[c] && i < t->rows;
    }
}

fl_status fl_show_read(const char *path, fl_show_table *t, fl_diag *d) {
    char head[128];
    size_t size = 0;
    *t = (fl_show_table){.path = path};
    fl_gunzip *g = fl_gunzip_open(path, d);
    fl_status s = g ? fl_gunzip_read(g, head, sizeof head, &size, d) : d->status;
    fl_gunzip_close(g);
    size_t at = size >= 3 && !memcmp(head, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (at < size && isspace((unsigned char)head[at]))
        at++;
    if (!s)
        s = at < size && (head[at] == '{' || head[at] == '[') ? read_json(t, d) : read_csv(t, head, size, d);
    if (!s && !(t->order = malloc((t->rows + 1) * sizeof *t->order)))
        s = no_memory(t, d);
    for (size_t i = 0; !s && i < t->rows; i++)
        t->order[t->shown++] = i;
    if (s)
        fl_show_free(t);
    else
        tell_numbers(t);
    return s;
}

void fl_show_free(fl_show_table *t) {
    for (size_t i = 0; i < t->rows * t->columns; i++)
        free(t->cell[i]);
    for (size_t i = 0; i < t->columns; i++)
        free(t->name[i]);
    fl_head_free(&t->head);
    free(t->format);
    free(t->name);
    free(t->number);
    free(t->cell);
    free(t->order);
    *t = (fl_show_table){0};
}
