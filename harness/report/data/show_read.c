/* Tables from files. */
#include "harness/report/data/data.h"

#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_column(fl_show_table *t, const char *name) {
    fl_must_grow(&t->name, &t->name_room, t->columns + 1, sizeof *t->name);
    fl_must_grow(&t->number, &t->number_room, t->columns + 1, sizeof *t->number);
    t->name[t->columns] = fl_must(strdup(name));
    t->number[t->columns++] = true;
}

/* text: malloc'd; the function takes it over. The cells of a row come one after the other. */
static void add_cell(fl_show_table *t, size_t index, char *text) {
    fl_must_grow(&t->cell, &t->cell_room, index + 1, sizeof *t->cell);
    t->cell[index] = text;
}

static size_t column_of(const fl_show_table *t, const char *name) {
    size_t i = 0;
    while (i < t->columns && strcmp(t->name[i], name) != 0)
        i++;
    return i;
}

/* ---- CSV ---- */

/* Rows in JSON have named values, and a user names columns too, so no two columns may have the same name. */
static void add_named(fl_show_table *t, const char *name) {
    char *other = NULL;
    const char *free_one = name;
    for (size_t k = 2; column_of(t, free_one) < t->columns; k++) {
        free(other);
        free_one = other = fl_must_print("%s.%zu", name, k);
    }
    add_column(t, free_one);
    free(other);
}

static fl_status read_row(void *user, const fl_csv_row *r, fl_diag *d) {
    fl_show_table *t = user;
    if (!t->columns) {
        for (size_t i = 0; i < r->count; i++)
            add_named(t, r->field[i].text);
        return FL_OK;
    }
    if (r->count != t->columns)
        return fl_fail(d, FL_BAD_INPUT, r->file, r->line, 1, "row has %zu fields%s, expected %zu as the header has",
                       r->count, r->torn ? " and no end" : "", t->columns);
    for (size_t i = 0; i < r->count; i++)
        add_cell(t, t->rows * t->columns + i, fl_must(strdup(r->field[i].text)));
    t->rows++;
    return FL_OK;
}

/* The format in "# foldline-telemetry 1", as the file states it. */
static char *format_of(const char *head, size_t size) {
    size_t at = 2, end;
    if (size < 3 || head[0] != '#' || head[1] != ' ')
        return NULL;
    for (end = at; end < size && (isalnum((unsigned char)head[end]) || head[end] == '-'); end++) {
    }
    return end > at && end + 2 < size && !memcmp(head + end, " 1", 2) && isspace((unsigned char)head[end + 2])
               ? fl_must(strndup(head + at, end - at))
               : NULL;
}

static fl_status read_csv(fl_show_table *t, const char *head, size_t size, fl_diag *d) {
    t->format = format_of(head, size);
    const fl_csv_options o = {.trim = true, .format = t->format ? t->format : "csv", .head_optional = !t->format};
    return fl_csv_read(t->path, &o, &t->head, read_row, t, d);
}

/* ---- JSON ---- */

/* A value as a cell; a value that contains others becomes one line. malloc'd. */
static char *cell_of(const cJSON *value) {
    char number[FL_REAL_TEXT];
    if (!value || cJSON_IsNull(value))
        return fl_must(strdup(""));
    if (cJSON_IsString(value))
        return fl_must(strdup(value->valuestring));
    if (cJSON_IsNumber(value))
        return fl_must(strdup(fl_real_text(value->valuedouble, number)));
    return fl_must(fl_json_text(value, false));
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
static void read_rows(fl_show_table *t, const cJSON *list) {
    const cJSON *row, *at;
    cJSON_ArrayForEach(row, list) {
        size_t next = 0; /* rows are nearly always alike, so the search starts at the key's place in the last row */
        cJSON_ArrayForEach(at, row) {
            if (next >= t->columns || strcmp(t->name[next], at->string) != 0)
                next = column_of(t, at->string);
            if (next++ == t->columns)
                add_column(t, at->string);
        }
    }
    cJSON_ArrayForEach(row, list) {
        at = row->child;
        for (size_t c = 0; c < t->columns; c++) {
            const bool here = at && !strcmp(at->string, t->name[c]);
            const cJSON *value = here ? at : cJSON_GetObjectItemCaseSensitive(row, t->name[c]);
            at = here ? at->next : at;
            add_cell(t, t->rows * t->columns + c, cell_of(value));
        }
        t->rows++;
    }
}

typedef void (*put_value)(fl_show_table *t, const char *key, const cJSON *value);

static void put_head(fl_show_table *t, const char *key, const cJSON *value) {
    char *text = cell_of(value);
    fl_must_have(fl_head_set(&t->head, key, text));
    free(text);
}

static void put_row(fl_show_table *t, const char *key, const cJSON *value) {
    add_cell(t, 2 * t->rows, fl_must(strdup(key)));
    add_cell(t, 2 * t->rows++ + 1, cell_of(value));
}

/* Every value that contains no object, by its dotted key. */
static void put_all(fl_show_table *t, const cJSON *object, const char *above, const cJSON *but, put_value put,
                    int depth) {
    const cJSON *at;
    cJSON_ArrayForEach(at, object) {
        char key[FL_JSON_PATH_MAX];
        snprintf(key, sizeof key, "%s%s%s", above, *above ? "." : "", at->string ? at->string : "");
        if (at == but)
            continue;
        if (cJSON_IsObject(at) && at->child && depth < 16)
            put_all(t, at, key, but, put, depth + 1);
        else
            put(t, key, at);
    }
}

static fl_status read_json(fl_show_table *t, fl_diag *d) {
    cJSON *tree = NULL;
    t->json = true;
    fl_status s = fl_json_read_any(t->path, &tree, d);
    const bool is_list = !s && cJSON_IsArray(tree);
    const cJSON *list = s || is_list ? NULL : find_table(tree);
    if (is_list && !is_table(tree)) {
        const fl_json at = fl_json_root(tree, t->path);
        s = fl_json_fail(&at, d, "not only objects in the list, expected an object or a list of objects");
    } else if (is_list) {
        read_rows(t, tree);
    } else if (list) {
        read_rows(t, list);
        put_all(t, tree, "", list, put_head, 0);
    } else if (!s) {
        add_column(t, "key");
        add_column(t, "value");
        put_all(t, tree, "", NULL, put_row, 0);
    }
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
    if (s) {
        fl_show_free(t);
        return s;
    }
    t->order = fl_must(malloc((t->rows + 1) * sizeof *t->order));
    while (t->shown < t->rows) {
        t->order[t->shown] = t->shown;
        t->shown++;
    }
    tell_numbers(t);
    return FL_OK;
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
