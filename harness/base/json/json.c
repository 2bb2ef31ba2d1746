/* Reads JSON with the place of every value, and writes it. */
#include "harness/base/json/json.h"

#include "harness/base/cli/cli.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FL_JSON_SIZE_MAX (16u << 20) /* bytes in one configuration file; larger is refused */

/* ---- writing ---- */

void fl_json_add_real(cJSON *object, const char *key, double value) {
    if (isfinite(value))
        cJSON_AddNumberToObject(object, key, value);
    else
        cJSON_AddNullToObject(object, key);
}

cJSON *fl_json_add_row(cJSON *array) {
    cJSON *row = cJSON_CreateObject();
    cJSON_AddItemToArray(array, row);
    return row;
}

void fl_json_add_texts(cJSON *object, const char *key, char *const *text, size_t count) {
    cJSON *array = cJSON_AddArrayToObject(object, key);
    for (size_t i = 0; i < count; i++)
        cJSON_AddItemToArray(array, cJSON_CreateString(text[i]));
}

void fl_json_add_notes(cJSON *object, void (*put)(const void *of, FILE *out), const void *of) {
    static const char begin[] = "note: ";
    cJSON *array = cJSON_AddArrayToObject(object, "notes");
    fl_text memory;
    FILE *out = fl_text_open(&memory);
    if (out)
        put(of, out);
    char *text = fl_text_close(&memory, NULL), *rest = NULL;
    if (!text)
        fl_memory_lost();
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
        const bool is_note = !strncmp(line, begin, sizeof begin - 1);
        cJSON_AddItemToArray(array, cJSON_CreateString(line + (is_note ? sizeof begin - 1 : 0)));
    }
    free(text);
}

static void add_option(cJSON *object, const fl_option *o) {
    const char *const *text = o->into;
    const fl_texts *list = o->into;
    switch (o->type) {
    case FL_OPTION_FLAG:
        cJSON_AddBoolToObject(object, o->name, *(const bool *)o->into);
        break;
    case FL_OPTION_TEXT:
    case FL_OPTION_CHOICE:
    case FL_OPTION_OUTPUT:
        cJSON_AddItemToObject(object, o->name, *text ? cJSON_CreateString(*text) : cJSON_CreateNull());
        break;
    case FL_OPTION_LIST:
        fl_json_add_texts(object, o->name, (char *const *)list->item, list->count);
        break;
    case FL_OPTION_REAL:
    case FL_OPTION_SHARE:
        fl_json_add_real(object, o->name, *(const double *)o->into);
        break;
    case FL_OPTION_INT:
        cJSON_AddNumberToObject(object, o->name, (double)*(const int64_t *)o->into);
        break;
    }
}

void fl_json_add_options(cJSON *object, const fl_option *option, size_t count) {
    for (size_t i = 0; i < count; i++)
        add_option(object, &option[i]);
}

fl_status fl_json_write(const char *path, const cJSON *tree, fl_diag *d) {
    char *text = fl_json_text(tree, true);
    fl_output *o = text ? fl_output_open(path, d) : NULL;
    fl_status s = !text ? fl_no_memory(d, path) : o ? FL_OK : d ? d->status : FL_IO;
    if (o) {
        fprintf(fl_output_file(o), "%s\n", text);
        s = fl_output_commit(o, d);
    }
    free(text);
    return s;
}

/* ---- rows as a table ---- */

typedef struct columns {
    char **name;
    size_t count, room;
} columns;

/* The column of a key, below the column `outer` of its object; NULL: memory ran out. */
static char *column_of(const char *outer, const char *key) {
    char name[256];
    if (!*outer)
        return strdup(key);
    snprintf(name, sizeof name, !strcmp(key, "value") ? "%s" : "%s_%s", outer, key);
    return strdup(name);
}

/* Adds the columns of an object that are not there yet; with `cell`, also the value of each in this row. */
static bool add_columns(const cJSON *object, const char *outer, columns *c, const cJSON **cell) {
    bool kept = true;
    for (const cJSON *e = object->child; kept && e; e = e->next) {
        char *name = cJSON_IsArray(e) ? NULL : column_of(outer, e->string);
        size_t at = 0;
        if (!(kept = cJSON_IsArray(e) || name))
            break;
        while (name && at < c->count && strcmp(c->name[at], name) != 0)
            at++;
        if (cJSON_IsObject(e)) {
            kept = add_columns(e, name, c, cell);
        } else if (name && cell) {
            cell[at] = e;
        } else if (name && at == c->count && (kept = !fl_grow(&c->name, &c->room, at + 1, sizeof *c->name))) {
            c->name[c->count++] = name;
            name = NULL;
        }
        free(name);
    }
    return kept;
}

static void put_cell(const cJSON *e, FILE *out) {
    char text[32];
    if (cJSON_IsString(e))
        fl_csv_put(out, e->valuestring);
    else if (cJSON_IsBool(e))
        fputc(cJSON_IsTrue(e) ? '1' : '0', out);
    else
        fputs(fl_cell_text(cJSON_IsNumber(e) ? e->valuedouble : NAN, text), out);
}

fl_status fl_json_write_rows(const char *path, const cJSON *rows, fl_diag *d) {
    columns c = {0};
    bool kept = true;
    for (const cJSON *row = rows->child; kept && row; row = row->next)
        kept = add_columns(row, "", &c, NULL);
    const cJSON **cell = kept ? calloc(c.count + 1, sizeof *cell) : NULL;
    fl_output *o = cell ? fl_output_open(path, d) : NULL;
    fl_status s = !cell ? fl_no_memory(d, path) : o ? FL_OK : d->status;
    FILE *out = o ? fl_output_file(o) : NULL;
    for (size_t i = 0; o && i < c.count; i++)
        fprintf(out, "%s%s", i ? "," : "", c.name[i]);
    for (const cJSON *row = o ? rows->child : NULL; kept && row; row = row->next) {
        memset(cell, 0, c.count * sizeof *cell);
        kept = add_columns(row, "", &c, cell);
        fputc('\n', out);
        for (size_t i = 0; i < c.count; i++) {
            if (i)
                fputc(',', out);
            put_cell(cell[i], out);
        }
    }
    if (o)
        fputc('\n', out);
    if (o && !kept) {
        fl_output_abort(o);
        s = fl_no_memory(d, path);
    } else if (o) {
        s = fl_output_commit(o, d);
    }
    for (size_t i = 0; i < c.count; i++)
        free(c.name[i]);
    free(c.name);
    free(cell);
    return s;
}

char *fl_json_text(const cJSON *tree, bool lines) {
    char *text = lines ? cJSON_Print(tree) : cJSON_PrintUnformatted(tree);
    if (!text)
        fl_memory_lost();
    if (!fl_memory_failed())
        return text;
    free(text);
    return NULL;
}

void fl_json_print(const cJSON *tree, FILE *out) {
    char *text = fl_json_text(tree, true);
    if (text)
        fprintf(out, "%s\n", text);
    free(text);
}

void fl_json_tell(cJSON *tree) {
    fl_json_print(tree, stdout);
    cJSON_Delete(tree);
}

/* ---- reading ---- */

#define PARAM_TEXT_MAX 4096 /* of a list parameter in text form */

static void place_of(const char *text, size_t offset, int64_t *line, int64_t *column) {
    *line = *column = 1;
    for (size_t i = 0; i < offset; i++) {
        *column = text[i] == '\n' ? 1 : *column + 1;
        *line += text[i] == '\n';
    }
}

static fl_status fail_at_offset(const char *path, const char *text, size_t offset, const char *reason, fl_diag *d) {
    int64_t line, column;
    place_of(text, offset, &line, &column);
    return fl_fail(d, FL_BAD_INPUT, path, line, column, "%s", reason);
}

/* ---- the place of a value: cJSON stores no positions, so the text of the refused file is scanned once more ---- */

typedef struct search {
    const char *text, *wanted; /* path of the value, as child_of spells it */
    size_t at, best, best_length;
} search;

static void skip_blank(search *s) { s->at += strspn(s->text + s->at, " \t\r\n"); }

/* Skips a JSON string, from its quote to after the closing one. */
static void skip_text(search *s) {
    for (s->at++; s->text[s->at] && s->text[s->at] != '"'; s->at++)
        s->at += s->text[s->at] == '\\' && s->text[s->at + 1];
    s->at += s->text[s->at] == '"';
}

/* Finds the deepest value whose path is a prefix of the wanted one. Of equal paths the last counts, since the second of
 * two equal keys is the mistake. `start`: the position of the key, where there is one. */
static void walk(search *s, const char *path, size_t start, int depth) {
    const size_t n = strlen(path);
    const char after = s->wanted[n];
    const bool leads = n == 0 || after == '\0' || after == '.' || after == '[';
    if (strncmp(path, s->wanted, n) == 0 && leads && n >= s->best_length) {
        s->best = start;
        s->best_length = n;
    }
    const char open = s->text[s->at];
    if (open == '"') {
        skip_text(s);
        return;
    }
    if ((open != '{' && open != '[') || depth > 64) {
        s->at += strcspn(s->text + s->at, ",]} \t\r\n");
        return;
    }
    s->at++;
    for (size_t index = 0;; index++) {
        char below[FL_JSON_PATH_MAX];
        skip_blank(s);
        const size_t key = s->at;
        if (!s->text[key] || s->text[key] == '}' || s->text[key] == ']')
            break;
        if (open == '{') {
            skip_text(s);
            (void)snprintf(below, sizeof below, "%s%s%.*s", path, n ? "." : "", (int)(s->at - key - 2),
                           s->text + key + 1);
            skip_blank(s);
            s->at += s->text[s->at] == ':';
            skip_blank(s);
        } else {
            (void)snprintf(below, sizeof below, "%s[%zu]", path, index);
        }
        walk(s, below, key, depth + 1);
        skip_blank(s);
        if (s->text[s->at] != ',')
            break;
        s->at++;
    }
    s->at += s->text[s->at] == '}' || s->text[s->at] == ']';
}

/* *line and *column are 0 where the file cannot be read again. */
static void find_place(const fl_json *at, int64_t *line, int64_t *column) {
    fl_diag ignored = {0};
    char *text = NULL;
    size_t size = 0;
    *line = *column = 0;
    if (!at->file || fl_gunzip_text(at->file, FL_JSON_SIZE_MAX, &text, &size, &ignored))
        return;
    search s = {.text = text, .wanted = at->path};
    skip_blank(&s);
    walk(&s, "", s.at, 0);
    place_of(text, s.best, line, column);
    free(text);
}

/* cJSON silently uses the first of two equal keys. No one can know which one the user meant. */
static fl_status refuse_twins(const fl_json *at, fl_diag *d) {
    for (fl_json e = fl_json_first(at); e.node; e = fl_json_next(at, &e)) {
        if (cJSON_IsObject(at->node) && cJSON_GetObjectItemCaseSensitive(at->node, e.node->string) != e.node)
            return fl_json_fail(&e, d, "given twice, expected once");
        fl_status s = FL_OK;
        if (cJSON_IsObject(e.node) || cJSON_IsArray(e.node))
            s = refuse_twins(&e, d);
        if (s)
            return s;
    }
    return FL_OK;
}

fl_status fl_json_read_any(const char *path, cJSON **tree, fl_diag *d) {
    char *text = NULL;
    size_t size = 0;
    fl_status s = fl_gunzip_text(path, FL_JSON_SIZE_MAX, &text, &size, d);
    if (s)
        return s;
    const char *nul = memchr(text, '\0', size), *end = text;
    cJSON *root = nul ? NULL : cJSON_ParseWithLengthOpts(text, size + 1, &end, 1);
    if (nul) {
        s = fail_at_offset(path, text, (size_t)(nul - text), "a NUL byte, expected JSON text", d);
    } else if (!root && fl_memory_failed()) {
        s = fl_no_memory(d, path);
    } else if (!root) {
        size_t offset = (size_t)(end - text);
        offset = offset > size ? size : offset;
        s = fail_at_offset(path, text, offset,
                           offset == size ? "the file ends too early, expected more JSON" : "not JSON from here on", d);
    } else {
        const fl_json at = fl_json_root(root, path);
        s = refuse_twins(&at, d);
    }
    free(text);
    if (s) {
        cJSON_Delete(root);
        return s;
    }
    *tree = root;
    return FL_OK;
}

fl_status fl_json_read(const char *path, cJSON **tree, fl_diag *d) {
    cJSON *root = NULL;
    fl_status s = fl_json_read_any(path, &root, d);
    if (s)
        return s;
    const fl_json at = fl_json_root(root, path);
    s = fl_json_object(&at, d);
    if (s)
        cJSON_Delete(root);
    else
        *tree = root;
    return s;
}

fl_json fl_json_root(const cJSON *tree, const char *file) { return (fl_json){.node = tree, .file = file}; }

fl_status fl_json_fail(const fl_json *at, fl_diag *d, const char *format, ...) {
    char reason[768];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    int64_t line, column;
    find_place(at, &line, &column);
    return fl_fail(d, FL_BAD_INPUT, at->file, line, column, "%s%s%s", at->path, *at->path ? ": " : "", reason);
}

/* Adds `text` to a path of `used` bytes and returns how long the path is then. */
static size_t add_text(char *path, size_t used, size_t most, const char *text) {
    while (used < most && *text)
        path[used++] = *text++;
    return used;
}

/* Copies by hand: it runs for every value of every file, and printf would take most of the time of reading them. */
static fl_json child_of(const fl_json *parent, const cJSON *node, const char *key, size_t index) {
    fl_json c;
    enum { MOST = sizeof c.path - 1, MOST_OF_PARENT = sizeof c.path - 64 };
    c.node = node;
    c.file = parent->file;
    /* A path that is too long is truncated; it only serves diagnostics. */
    size_t used = add_text(c.path, 0, MOST_OF_PARENT, parent->path);
    if (key) {
        used = add_text(c.path, used, MOST, used ? "." : "");
        used = add_text(c.path, used, MOST, key);
    } else {
        used += (size_t)snprintf(c.path + used, sizeof c.path - used, "[%zu]", index);
    }
    c.path[used] = '\0';
    return c;
}

const char *fl_json_type(const cJSON *n) {
    return !n                  ? "missing"
           : cJSON_IsNumber(n) ? "a number"
           : cJSON_IsString(n) ? "a text"
           : cJSON_IsBool(n)   ? "true or false"
           : cJSON_IsArray(n)  ? "a list"
           : cJSON_IsObject(n) ? "an object"
                               : "null";
}

fl_status fl_json_unknown(const fl_json *at, const char *const *known, size_t count, fl_diag *d) {
    const char *near = fl_nearest(at->node->string, known, count);
    if (near)
        return fl_json_fail(at, d, "unknown key, expected \"%s\"?", near);
    char list[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", known[i]);
    return fl_json_fail(at, d, "unknown key, expected one of: %s", list);
}

fl_status fl_json_known(const fl_json *object, const char *const *known, size_t count, fl_diag *d) {
    for (fl_json e = fl_json_first(object); e.node; e = fl_json_next(object, &e)) {
        bool found = false;
        for (size_t i = 0; i < count && !found; i++)
            found = strcmp(known[i], e.node->string) == 0;
        if (!found)
            return fl_json_unknown(&e, known, count, d);
    }
    return FL_OK;
}

bool fl_json_has(const fl_json *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object->node, key) != NULL;
}

fl_status fl_json_get(const fl_json *object, const char *key, fl_json *value, fl_diag *d) {
    *value = child_of(object, cJSON_GetObjectItemCaseSensitive(object->node, key), key, 0);
    return value->node ? FL_OK : fl_json_fail(value, d, "missing");
}

fl_status fl_json_object(const fl_json *at, fl_diag *d) {
    return cJSON_IsObject(at->node) ? FL_OK : fl_json_fail(at, d, "%s, expected an object", fl_json_type(at->node));
}

fl_status fl_json_get_object(const fl_json *object, const char *key, fl_json *value, fl_diag *d) {
    fl_status s = fl_json_get(object, key, value, d);
    return s ? s : fl_json_object(value, d);
}

fl_status fl_json_get_array(const fl_json *object, const char *key, fl_json *value, fl_diag *d) {
    fl_status s = fl_json_get(object, key, value, d);
    if (!s && !cJSON_IsArray(value->node))
        s = fl_json_fail(value, d, "%s, expected a list", fl_json_type(value->node));
    return s;
}

fl_status fl_json_real(const fl_json *at, double min, double max, double *value, fl_diag *d) {
    if (!cJSON_IsNumber(at->node))
        return fl_json_fail(at, d, "%s, expected a number", fl_json_type(at->node));
    const double v = at->node->valuedouble;
    if (isfinite(v) && v >= min && v <= max) {
        *value = v;
        return FL_OK;
    }
    char have[40], low[40], high[40];
    fl_real_text(v, have);
    fl_real_text(min, low);
    fl_real_text(max, high);
    if (isinf(max))
        return fl_json_fail(at, d, "%s, expected a finite number >= %s", have, low);
    return fl_json_fail(at, d, "%s, expected a number in %s..%s", have, low, high);
}

fl_status fl_json_int(const fl_json *at, int64_t min, int64_t max, int64_t *value, fl_diag *d) {
    double v = 0;
    fl_status s = fl_json_real(at, (double)min, (double)max, &v, d);
    if (!s && (v < trunc(v) || v > trunc(v)))
        s = fl_json_fail(at, d, "%g, expected a whole number", v);
    if (!s)
        *value = (int64_t)v;
    return s;
}

fl_status fl_json_get_real(const fl_json *object, const char *key, double min, double max, double *value, fl_diag *d) {
    fl_json v;
    fl_status s = fl_json_get(object, key, &v, d);
    return s ? s : fl_json_real(&v, min, max, value, d);
}

fl_status fl_json_get_int(const fl_json *object, const char *key, int64_t min, int64_t max, int64_t *value,
                          fl_diag *d) {
    fl_json v;
    fl_status s = fl_json_get(object, key, &v, d);
    return s ? s : fl_json_int(&v, min, max, value, d);
}

fl_status fl_json_get_bool(const fl_json *object, const char *key, bool *value, fl_diag *d) {
    fl_json v;
    fl_status s = fl_json_get(object, key, &v, d);
    if (!s && !cJSON_IsBool(v.node))
        s = fl_json_fail(&v, d, "%s, expected true or false", fl_json_type(v.node));
    if (!s)
        *value = cJSON_IsTrue(v.node);
    return s;
}

fl_status fl_json_get_text(const fl_json *object, const char *key, const char **value, fl_diag *d) {
    fl_json v;
    fl_status s = fl_json_get(object, key, &v, d);
    if (!s && !cJSON_IsString(v.node))
        s = fl_json_fail(&v, d, "%s, expected a text", fl_json_type(v.node));
    if (!s && !*v.node->valuestring)
        s = fl_json_fail(&v, d, "empty, expected a text");
    if (!s)
        *value = v.node->valuestring;
    return s;
}

static fl_json entry_of(const fl_json *parent, const cJSON *node, size_t index) {
    if (!node) /* the end: no one asks for its path */
        return (fl_json){.file = parent->file};
    return child_of(parent, node, node && cJSON_IsObject(parent->node) ? node->string : NULL, index);
}

fl_json fl_json_first(const fl_json *parent) { return entry_of(parent, parent->node ? parent->node->child : NULL, 0); }

fl_json fl_json_next(const fl_json *parent, const fl_json *entry) {
    size_t index = 0;
    if (cJSON_IsArray(parent->node)) { /* only the path contains the index */
        const char *bracket = strrchr(entry->path, '[');
        index = bracket ? strtoul(bracket + 1, NULL, 10) + 1 : 0;
    }
    return entry_of(parent, entry->node->next, index);
}

size_t fl_json_count(const fl_json *parent) { return (size_t)cJSON_GetArraySize(parent->node); }

fl_status fl_json_param_text(const fl_json *at, char **text, fl_diag *d) {
    char buf[PARAM_TEXT_MAX] = "", number[40];
    const char *source = buf;
    if (cJSON_IsString(at->node)) {
        source = at->node->valuestring;
    } else if (cJSON_IsBool(at->node)) {
        source = cJSON_IsTrue(at->node) ? "1" : "0";
    } else if (cJSON_IsNumber(at->node)) {
        source = fl_real_text(at->node->valuedouble, buf);
    } else if (cJSON_IsArray(at->node) && at->node->child) {
        size_t used = 0;
        for (fl_json e = fl_json_first(at); e.node; e = fl_json_next(at, &e)) {
            double v = 0;
            fl_status s = fl_json_real(&e, -HUGE_VAL, HUGE_VAL, &v, d);
            if (s)
                return s;
            fl_real_text(v, number);
            const int n = snprintf(buf + used, sizeof buf - used, "%s%s", used ? "/" : "", number);
            used += (size_t)n;
            if (used >= sizeof buf)
                return fl_json_fail(at, d, "a list beyond %d characters, expected a shorter one", PARAM_TEXT_MAX);
        }
    } else {
        return fl_json_fail(at, d, "%s, expected a number, a text, true, false or a list of numbers",
                            at->node && at->node->child ? "an object" : fl_json_type(at->node));
    }
    *text = strdup(source);
    return *text ? FL_OK : fl_no_memory(d, at->file);
}
