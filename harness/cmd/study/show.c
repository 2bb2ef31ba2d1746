#include "harness/base/cli/command.h"
#include "harness/base/json/json.h"
#include "harness/base/json/json_out.h"
#include "harness/base/cli/terminal.h"
#include "harness/base/cli/commands.h"
#include "harness/report/data/show.h"
#include "harness/study/compare/provenance.h"
#include "traces/io/numbers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const fl_command_help help = {
    "show", "RESULT ...",
    "Prints a result as a table that fits the terminal: the CSV of compare, sweep or merge, decisions, timelines, "
    "telemetry, probes, requests, and what a command printed with --json.",
    "RESULT may be gzipped, and - is the standard input. The lines below the table name the columns that do not fit; "
    "columns with the same value in all rows are dropped first. The width is the terminal's, else $COLUMNS, "
    "else " FL_AS_TEXT(FL_TERMINAL_STANDARD) ", at least " FL_AS_TEXT(
        FL_TERMINAL_LEAST) ". Whole numbers are printed as they are. --where takes < <= > >= = and !=, each condition "
                           "in quotes: --where 'slowdown<0.05' --where 'policy!=assure'."};

typedef struct show_options {
    fl_texts rest, where;
    const char *columns, *sort;
    int64_t rows, digits;
    bool json, head;
} show_options;

/* ---- what stands above the rows, and beside them ---- */

static void put_line(const char *key, const char *value) {
    const int space = 24 - (int)(strlen(key) < 24 ? strlen(key) : 24);
    fl_show_text(key, stdout);
    printf("%*s ", space, "");
    fl_show_text(value, stdout);
    putchar('\n');
}

static void put_record(const cJSON *at, const char *above) {
    for (; at; at = at->next) {
        char key[256];
        snprintf(key, sizeof key, "%s%s%s", above, *above && at->string ? "." : "", at->string ? at->string : "");
        const cJSON *file = cJSON_GetObjectItem(at, "file");
        if (cJSON_IsObject(at) && cJSON_IsString(file)) {
            const char *hash = cJSON_GetStringValue(cJSON_GetObjectItem(at, "sha256"));
            char *text = NULL;
            const bool made = asprintf(&text, "%s  sha256 %.12s", file->valuestring, hash ? hash : "unknown") >= 0;
            put_line(key, made ? text : file->valuestring);
            if (made)
                free(text);
        } else if (cJSON_IsObject(at) || cJSON_IsArray(at)) {
            put_record(at->child, key);
        } else {
            char *text = cJSON_IsString(at) ? NULL : fl_json_text(at, false);
            put_line(key, cJSON_IsString(at) ? at->valuestring : text ? text : "");
            free(text);
        }
    }
}

/* The record that lies beside a result; without one, nothing. */
static fl_status read_record(const char *path, cJSON **record, fl_diag *d) {
    char *beside = fl_is_standard(path) ? NULL : fl_provenance_path(path);
    fl_status s = beside || fl_is_standard(path) ? FL_OK : fl_no_memory(d, path);
    *record = NULL;
    if (!s && beside && strcmp(beside, path) != 0 && !access(beside, F_OK))
        s = fl_json_read(beside, record, d);
    free(beside);
    return s;
}

static void put_head(const fl_show_table *t, const cJSON *record) {
    put_line("file", fl_input_name(t->path));
    if (t->format)
        put_line("format", t->format);
    for (size_t i = 0; i < t->head.count; i++)
        put_line(t->head.entry[i].key, t->head.entry[i].value);
    if (record)
        put_record(record->child, "");
    putchar('\n');
}

/* ---- JSON ---- */

/* JSON is stricter than our own files: no "007", no ".5". */
static const char *json_number(const char *text, double value, char buf[FL_REAL_TEXT]) {
    const char *at = text + (*text == '-');
    const size_t digits = strspn(at, "0123456789");
    const bool strict =
        digits && (digits == 1 || *at != '0') && (at[digits] != '.' || strspn(at + digits + 1, "0123456789"));
    return strict ? text : fl_real_text(value, buf);
}

static void add_cell(cJSON *row, const fl_show_table *t, size_t r, size_t c) {
    const char *text = t->cell[r * t->columns + c];
    char buf[FL_REAL_TEXT];
    double v;
    if (!*text || (t->number[c] && !strcmp(text, "n/a")))
        cJSON_AddNullToObject(row, t->name[c]);
    else if (t->number[c] && fl_real_parse(text, &v) == FL_NUMBER_OK)
        cJSON_AddRawToObject(row, t->name[c], json_number(text, v, buf));
    else
        cJSON_AddStringToObject(row, t->name[c], text);
}

static cJSON *table_json(const fl_show_table *t, const fl_show_look *look, cJSON *record) {
    cJSON *o = cJSON_CreateObject(), *list;
    cJSON_AddStringToObject(o, "file", fl_input_name(t->path));
    cJSON_AddItemToObject(o, "format", t->format ? cJSON_CreateString(t->format) : cJSON_CreateNull());
    list = cJSON_AddObjectToObject(o, "head");
    for (size_t i = 0; i < t->head.count; i++)
        cJSON_AddStringToObject(list, t->head.entry[i].key, t->head.entry[i].value);
    list = cJSON_AddArrayToObject(o, "rows");
    for (size_t i = 0; i < t->shown && (!look->rows || i < look->rows); i++) {
        cJSON *row = fl_json_add_row(list);
        for (size_t k = 0; k < (look->column ? look->columns : t->columns); k++)
            add_cell(row, t, t->order[i], look->column ? look->column[k] : k);
    }
    if (record)
        cJSON_AddItemToObject(o, "provenance", record);
    return o;
}

/* JSON is UTF-8: of a result in another code, U+FFFD stands for each byte that is none. Only texts hold such bytes. */
static void print_json(const cJSON *tree) {
    static const char unknown[] = "\xef\xbf\xbd";
    char *text = fl_json_text(tree, true);
    for (const char *at = text; at && *at;) {
        const bool control = (unsigned char)*at < 0x80 || (at[0] == '\xc2' && ((unsigned char)at[1] & 0xc0) == 0x80);
        const size_t n = control ? (unsigned char)*at < 0x80 ? 1 : 2 : fl_utf8(at, strnlen(at, 4));
        fwrite(n ? at : unknown, 1, n ? n : sizeof unknown - 1, stdout);
        at += n ? n : 1;
    }
    if (text)
        putchar('\n');
    free(text);
}

/* ---- the command ---- */

static fl_status show(const char *path, const show_options *o, cJSON *all, fl_diag *d) {
    fl_show_table t;
    fl_show_look look = {.rows = (size_t)(o->rows >= 0 ? o->rows
                                          : o->json    ? 0
                                                       : FL_SHOW_ROWS),
                         .digits = (int)o->digits,
                         .width = fl_terminal_width(stdout)};
    cJSON *record = NULL;
    fl_status s = fl_show_read(path, &t, d);
    for (size_t i = 0; !s && i < o->where.count; i++)
        s = fl_show_where(&t, o->where.item[i], d);
    if (!s && o->sort)
        s = fl_show_sort(&t, o->sort, d);
    if (!s && o->columns)
        s = fl_show_columns(&t, o->columns, &look, d);
    if (!s && o->head)
        s = read_record(path, &record, d);
    if (!s && o->json) {
        cJSON_AddItemToArray(all, table_json(&t, &look, record));
        record = NULL;
    } else if (!s) {
        if (o->head)
            put_head(&t, record);
        s = fl_show_print(&t, &look, stdout, d);
    }
    cJSON_Delete(record);
    free(look.column);
    fl_show_free(&t);
    return s;
}

int fl_cmd_show(int argc, char **argv) {
    show_options o = {.rows = -1, .digits = FL_SHOW_DIGITS};
    const fl_option option[] = {
        {"columns", "A,B", FL_OPTION_TEXT, &o.columns, 0, 0, "these columns, in this order, however wide"},
        {"sort", "COLUMN", FL_OPTION_TEXT, &o.sort, 0, 0, "by this column, upwards; -COLUMN downwards"},
        {"where", "CONDITION", FL_OPTION_LIST, &o.where, 0, 0, "rows where it holds (may be repeated: all of them)"},
        {"rows", "N", FL_OPTION_INT, &o.rows, 0, 1e15, "the first N rows, 0 for all (" FL_AS_TEXT(FL_SHOW_ROWS) ")"},
        {"digits", "N", FL_OPTION_INT, &o.digits, 1, 17, "significant digits (" FL_AS_TEXT(FL_SHOW_DIGITS) ")"},
        {"head", NULL, FL_OPTION_FLAG, &o.head, 0, 0, "what the file says of itself, and its provenance, above"},
        {"json", NULL, FL_OPTION_FLAG, &o.json, 0, 0, "prints the rows as JSON (all of them, in full)"},
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, FL_COUNT(option), &o.rest, &status))
        return status;
    fl_diag d = {0};
    cJSON *root = cJSON_CreateObject(), *all = cJSON_AddArrayToObject(root, "results");
    fl_status s = o.rest.count ? FL_OK : fl_refuse(&d, "expected RESULT ..., see --help");
    for (size_t i = 0; !s && i < o.rest.count; i++) {
        if (o.rest.count > 1 && !o.json && !o.head)
            printf("%s%s\n", i ? "\n" : "", fl_input_name(o.rest.item[i]));
        else if (i && !o.json)
            putchar('\n');
        s = show(o.rest.item[i], &o, all, &d);
    }
    if (!s && o.json)
        print_json(root);
    cJSON_Delete(root);
    return fl_command_close("show", s, &d, option, FL_COUNT(option), &o.rest);
}
