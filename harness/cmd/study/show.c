/* `foldline show`, `foldline plot` and `foldline report`. */
#include "harness/cmd/study/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "harness/report/page/page.h"
#include "harness/report/picture/picture.h"
#include "harness/study/compare/compare.h"
#include "harness/study/trial/trial.h"
#include "policies/policy.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/open/open.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- `foldline plot` ---- */

static const fl_command_help help = {
    "plot", "KIND INPUT.csv... -o OUTPUT.svg|png|pdf", "Draws a result with gnuplot.",
    "KIND, from the CSV of compare or grid: pareto (energy against slowdown, or latency of requests; front of those "
    "that hold the bound), workloads (every run of every policy), regret, intervals (saving of each policy), ranks, "
    "published (a paper's numbers beside ours), sensitivity (to parameters with several values). From FILE.regret.csv: "
    "regret-curves. From run --timeline: timeline (several files stand over each other, trajectories too), residency "
    "(time at each clock). From a trace: trace. From plan --rows: frontier. From a sweep: locks (and power limits). "
    "With "
    "--platform: models (the laws; of a kinds file, or beside a sweep's points). From run --instructions: gantt (of "
    "one "
    "plan or two). Of servers, from the CSV of compare: serving (J per token against latencies), serving-load; from "
    "run "
    "--served: latencies. Platform and bound come from the record beside the result. A PNG has two pixels for one of "
    "an "
    "SVG, a PDF 100 an inch; the height follows from the contents."};

int fl_cmd_plot(int argc, char **argv) {
    fl_texts rest = {0}, policies = {0};
    const char *output = NULL;
    fl_plot_options o = {.policies = &policies};
    const fl_option option[] = {
        {"platform", "NAME", FL_OPTION_TEXT, &o.platform, 0, 0, "of plot models: whose laws to draw",
         FL_FOR_INPUT | FL_MOST_USED},
        {"policy", "P", FL_OPTION_LIST, &policies, 0, 0, "draws these beside the baselines (may be repeated)",
         FL_FOR_POLICIES | FL_MOST_USED},
        {"title", "TEXT", FL_OPTION_TEXT, &o.title, 0, 0, "in place of the kind's; none leaves out both lines",
         FL_FOR_OUTPUT | FL_MOST_USED},
        {"width", "PX", FL_OPTION_REAL, &o.width, 100, 4000, "of the picture (900)", FL_FOR_OUTPUT | FL_MOST_USED},
        {"font-size", "PX", FL_OPTION_REAL, &o.font, 4, 60, "of labels; marks and lines grow with it (12)",
         FL_FOR_OUTPUT},
        {"o", "FILE", FL_OPTION_OUTPUT, &output, 0, 0, "what to write, by its ending (also .svg.gz); - is SVG",
         FL_FOR_OUTPUT | FL_MOST_USED}};
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, FL_COUNT(option), &rest, &status))
        return status;
    fl_diag d = {0};
    const char *const *const inputs = (const char *const *)rest.item + 1;
    fl_status s = !rest.count ? fl_refuse(&d, "expected KIND INPUT.csv -o OUTPUT, as pareto RESULT.csv -o pareto.svg")
                              : fl_plot_all(rest.item[0], &o, inputs, rest.count - 1, output, &d);
    if (!s && !fl_is_standard(output))
        printf("written: %s\n", output);
    return fl_command_close("plot", s, &d, option, FL_COUNT(option), &rest);
}

/* ---- `foldline report` ---- */

static const fl_command_help report_help = {
    "report", "RESULTS.csv -o report.html [--timeline FILE ...]",
    "Makes one page from a result: policies with 95 % intervals, comparisons in pairs, ranks, figures, and the origin "
    "of the data.",
    "RESULTS.csv is a file that compare or grid wrote. The command also uses the files beside it: "
    "RESULTS.provenance.json, RESULTS.published.json (published and simulated results) and RESULTS.regret.csv (curves "
    "of a distribution replay). The page contains its figures, style and script, so it needs no network. gnuplot draws "
    "the figures, as it does for foldline plot.\n\n"
    "The intervals are a two-level bootstrap over workloads and seeds. The page ranks policies by the objective of the "
    "experiment, and compares them with --reference or else with the best policy that holds all bounds. The bounds are "
    "those of --bound, or else those that the result was made under. Where requests arrive, the page begins with their "
    "latency. Of servers of a language model it shows what policies save against the load. Add ?sort=TABLE,COLUMN or "
    "?theme=dark to the page's address to open it sorted or dark."};

int fl_cmd_report(int argc, char **argv) {
    fl_texts rest = {0}, timelines = {0}, instructions = {0}, bounds = {0};
    const char *output = NULL, *about = NULL, *reference = NULL;
    int64_t seed = 1, draws = 0;
    bool no_figures = false;
    const fl_option option[] = {
        {"o", "FILE", FL_OPTION_OUTPUT, &output, 0, 0, "the page to write", FL_FOR_OUTPUT | FL_MOST_USED},
        {"timeline", "FILE", FL_OPTION_LIST, &timelines, 0, 0,
         "of run --timeline: clock, power, residency (may be repeated)", FL_FOR_INPUT | FL_MOST_USED},
        {"instructions", "FILE", FL_OPTION_LIST, &instructions, 0, 0,
         "of run --instructions: what each rank of a pipeline did (a second plan stands below the first)",
         FL_FOR_INPUT},
        {"reference", "POLICY", FL_OPTION_TEXT, &reference, 0, 0, "policy that the others are compared with (the best)",
         FL_FOR_POLICIES | FL_MOST_USED},
        FL_BOUND_OPTION(&bounds),
        {"about", "TEXT", FL_OPTION_TEXT, &about, 0, 0, "the question, as the page's title (that of the experiment)",
         FL_MOST_USED},
        {"no-figures", NULL, FL_OPTION_FLAG, &no_figures, 0, 0, "tables alone: faster, and without gnuplot"},
        {"seed", "N", FL_OPTION_INT, &seed, 0, 1e15, "of the bootstrap (1)"},
        {"draws", "N", FL_OPTION_INT, &draws, 100, 1e6,
         "of the bootstrap (" FL_AS_TEXT(FL_DRAWS_STANDARD) "; " FL_AS_TEXT(FL_DRAWS_GRID) " above " FL_AS_TEXT(
             FL_GRID_POLICIES) " policies)"},
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &report_help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0};
    fl_report_data data = {0};
    const fl_report_options o = {.about = about,
                                 .reference = reference,
                                 .timelines = &timelines,
                                 .instructions = &instructions,
                                 .no_figures = no_figures,
                                 .bootstrap = {.seed = (uint64_t)seed, .draws = (size_t)draws}};
    fl_status s = rest.count != 1 ? fl_refuse(&d, "expected RESULTS.csv -o report.html, see --help")
                  : !output       ? fl_refuse(&d, "no -o FILE given, expected RESULTS.csv -o report.html")
                                  : fl_report_read(rest.item[0], &data, &d);
    if (!s && no_figures && (timelines.count || instructions.count))
        s = fl_refuse(&d, "%s has no effect with --no-figures, expected it without --no-figures",
                      timelines.count ? "--timeline" : "--instructions");
    if (!s)
        s = fl_report_judge(&data, &bounds, &d);
    if (!s)
        s = fl_report_write(&data, &o, output, &d);
    if (!s)
        printf("written: %s\n", output);
    fl_report_free(&data);
    return fl_command_close("report", s, &d, option, sizeof option / sizeof *option, &rest);
}

/* ---- `foldline show` ---- */

static const fl_command_help show_help = {
    "show", "FILE ...",
    "Says what a file is that foldline reads or writes, and shows what is in it: a trace in numbers, anything else as "
    "a "
    "table that fits the terminal.",
    "FILE may be gzipped, and - is the standard input. Of kernels and telemetry, in any format that foldline import "
    "reads, the command prints duration, kernels, gaps, utilisation, power and energy; with X.csv it takes "
    "X.telemetry.csv if that has the same clock. A result, a log of decisions, requests, probes, and what a command "
    "printed with --json are tables; so is a trace with --rows, --columns, --sort or --where. Without these options "
    "the first line says what the file "
    "is, and counts rows and columns. The lines below the "
    "table name the columns that do not fit; "
    "columns with the same value in all rows are dropped first. The width is the terminal's, else $COLUMNS, "
    "else " FL_AS_TEXT(FL_TERMINAL_STANDARD) ", at least " FL_AS_TEXT(
        FL_TERMINAL_LEAST) ". Whole numbers are printed as they are. --where takes < <= > >= = and !=, each condition "
                           "in quotes: --where 'slowdown<0.05' --where 'policy!=assure'."};

typedef struct show_options {
    fl_texts rest, where;
    const char *columns, *sort;
    int64_t rows, digits;
    double interval_s;
    bool json, head, no_cache;
} show_options;

/* ---- the head of a table, and its columns ---- */

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
            char *text = fl_must_print("%s  sha256 %.12s", file->valuestring, hash ? hash : "unknown");
            put_line(key, text);
            free(text);
        } else if (cJSON_IsObject(at) || cJSON_IsArray(at)) {
            put_record(at->child, key);
        } else {
            char *text = cJSON_IsString(at) ? NULL : fl_must(fl_json_text(at, false));
            put_line(key, text ? text : at->valuestring);
            free(text);
        }
    }
}

/* The record that lies beside a result; without one, nothing. */
static fl_status read_record(const char *path, cJSON **record, fl_diag *d) {
    char *beside = fl_is_standard(path) ? NULL : fl_provenance_path(path);
    fl_status s = FL_OK;
    *record = NULL;
    if (beside && strcmp(beside, path) != 0 && !access(beside, F_OK))
        s = fl_json_read(beside, record, d);
    free(beside);
    return s;
}

static void put_head(const char *path, const char *format, const fl_head *head, const cJSON *record) {
    put_line("file", fl_input_name(path));
    if (format)
        put_line("format", format);
    for (size_t i = 0; i < head->count; i++)
        put_line(head->entry[i].key, head->entry[i].value);
    if (record)
        put_record(record->child, "");
    putchar('\n');
}

static void add_head(cJSON *o, const fl_head *head) {
    cJSON *list = cJSON_AddObjectToObject(o, "head");
    for (size_t i = 0; i < head->count; i++)
        cJSON_AddStringToObject(list, head->entry[i].key, head->entry[i].value);
}

/* ---- what a table is ---- */

static bool has_column(const fl_show_table *t, const char *name) {
    size_t i = 0;
    while (i < t->columns && strcmp(t->name[i], name) != 0)
        i++;
    return i < t->columns;
}

/* A JSON file without a list of objects: its table has a row for each value. */
static bool is_values(const fl_show_table *t) {
    return t->json && t->columns == 2 && !strcmp(t->name[0], "key") && !strcmp(t->name[1], "value");
}

static bool has_key(const fl_show_table *t, const char *key) {
    bool found = fl_head_get(&t->head, key) != NULL;
    for (size_t i = 0; !found && is_values(t) && i < t->rows; i++)
        found = !strcmp(t->cell[i * t->columns], key);
    return found;
}

static const char *type_name(const fl_show_table *t) {
    static const struct {
        const char *key, *name;
    } json[] = {{"foldline_experiment", "an experiment"},
                {"foldline_baseline", "a baseline"},
                {"foldline_platform", "a platform"},
                {"foldline_board", "a board"},
                {"foldline_published_draws", "published draws"}};
    for (size_t i = 0; t->json && i < FL_COUNT(json); i++)
        if (has_key(t, json[i].key))
            return json[i].name;
    if (has_column(t, "policy") && has_column(t, "energy_j"))
        return "a result";
    fl_diag ignored = {0};
    fl_file_type type;
    const fl_reader *reader = NULL;
    if (t->json)
        return "JSON";
    if (fl_file_type_find(t->path, &type, &ignored))
        return t->format ? t->format : "a table";
    if (type == FL_FILE_RECORDING && !fl_reader_find(t->path, NULL, &reader, &ignored))
        return reader->what;
    return fl_file_type_name(type);
}

static void put_type(const fl_show_table *t) {
    const size_t columns = t->columns;
    printf("%s: %zu %s%s", type_name(t), t->rows, is_values(t) ? "value" : "row", t->rows == 1 ? "" : "s");
    if (!is_values(t))
        printf(", %zu column%s", columns, columns == 1 ? "" : "s");
    putchar('\n');
    const char *left = fl_head_get(&t->head, FL_LEFT_KEY);
    if (left) {
        fputs("note: when it was made, ", stdout);
        fl_show_text(left, stdout);
        putchar('\n');
    }
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
    cJSON_AddStringToObject(o, "type", type_name(t));
    cJSON_AddItemToObject(o, "format", t->format ? cJSON_CreateString(t->format) : cJSON_CreateNull());
    add_head(o, &t->head);
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
    char *text = fl_must(fl_json_text(tree, true));
    for (const char *at = text; *at;) {
        const bool control = (unsigned char)*at < 0x80 || (at[0] == '\xc2' && ((unsigned char)at[1] & 0xc0) == 0x80);
        const size_t n = control ? (unsigned char)*at < 0x80 ? 1 : 2 : fl_utf8(at, strnlen(at, 4));
        fwrite(n ? at : unknown, 1, n ? n : sizeof unknown - 1, stdout);
        at += n ? n : 1;
    }
    putchar('\n');
    free(text);
}

/* ---- the command ---- */

static bool picks(const show_options *o) { return o->columns || o->sort || o->where.count || o->rows >= 0; }

/* Read a file as a table. A file of no known type whose name promises no table gets the list of formats as its error,
 * which helps more than the place where its first row ends. */
static fl_status read_table(const char *path, fl_show_table *t, fl_diag *d) {
    fl_file_type type;
    fl_diag unknown = {0};
    const fl_status s = fl_show_read(path, t, d);
    if (s == FL_BAD_INPUT && !fl_is_standard(path) && !fl_name_ends(path, ".csv") && !fl_name_ends(path, ".json") &&
        fl_file_type_find(path, &type, &unknown) == FL_BAD_INPUT)
        *d = unknown;
    return s;
}

/* Write another tool's settings or requests as a canonical file, and name it in *as; NULL: path is no such file. */
static fl_status make_canonical(const char *path, char **as, fl_diag *d) {
    const fl_reader *reader = NULL;
    fl_diag ignored = {0};
    fl_imported in = {0};
    *as = NULL;
    if (fl_is_standard(path) || fl_reader_find(path, NULL, &reader, &ignored) ||
        !(reader->gives & (FL_GIVES_SETTINGS | FL_GIVES_REQUESTS)) || reader == &fl_reader_sweep ||
        reader == &fl_reader_requests)
        return FL_OK;
    fl_status s = fl_reader_read(reader, path, NULL, &in, d);
    for (size_t i = 0; !s && i < in.note_count; i++)
        fl_terminal_say(stderr, "note: %s: %s", basename(path), in.note[i]);
    const char *folder = getenv("TMPDIR");
    char *name = fl_must_print("%s/foldline-show-XXXXXX", folder && *folder ? folder : "/tmp");
    const int fd = s ? -1 : mkstemp(name);
    if (!s && fd < 0)
        s = fl_fail(d, FL_IO, name, 0, 0, "cannot be created: %s", fl_reason(errno));
    if (fd >= 0)
        close(fd);
    if (!s)
        s = in.has_sweep ? fl_sweep_write(name, &in.sweep, d) : fl_requests_write(name, &in.requests, d);
    fl_imported_free(&in);
    if (s && fd >= 0)
        unlink(name);
    if (s)
        free(name);
    else
        *as = name;
    return s;
}

static fl_status show(const char *path, const show_options *o, cJSON *all, fl_diag *d) {
    fl_show_table t = {0};
    char *as = NULL;
    fl_show_look look = {.rows = (size_t)(o->rows >= 0 ? o->rows
                                          : o->json    ? 0
                                                       : FL_SHOW_ROWS),
                         .digits = (int)o->digits,
                         .width = fl_terminal_width(stdout)};
    cJSON *record = NULL;
    fl_status s = make_canonical(path, &as, d);
    if (!s)
        s = read_table(as ? as : path, &t, d);
    t.path = path;
    if (as)
        unlink(as);
    free(as);
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
            put_head(path, t.format, &t.head, record);
        if (!picks(o))
            put_type(&t);
        fl_show_print(&t, &look, stdout);
    }
    cJSON_Delete(record);
    free(look.column);
    fl_show_free(&t);
    return s;
}

/* Print the summary of kernels or telemetry, unless the user asks for rows. *is: the file is such a trace. */
static fl_status show_trace(const char *path, const show_options *o, cJSON *all, bool *is, fl_diag *d) {
    const fl_reader *reader = NULL;
    fl_diag ignored = {0};
    fl_imported run = {0};
    const fl_import_options how = {.interval_s = o->interval_s, .device = -1};
    *is = false;
    if (picks(o) || fl_is_standard(path) || fl_reader_find(path, NULL, &reader, &ignored))
        return FL_OK;
    fl_status s = fl_trace_open(path, reader->name, &how, &run, d);
    *is = s || run.has_kernels || run.has_telemetry;
    if (!s && *is)
        s = fl_trace_beside(path, &run, d);
    if (!s && *is) {
        const fl_head *head = run.has_kernels ? &run.kernels.head : &run.telemetry.head;
        cJSON *row = o->json ? fl_json_add_row(all) : NULL;
        if (row) {
            cJSON_AddStringToObject(row, "file", path);
            cJSON_AddStringToObject(row, "format", reader->name);
            if (o->head)
                add_head(row, head);
        } else {
            if (o->head)
                put_head(path, NULL, head, NULL);
            printf("format      %s: %s\n", reader->name, reader->what);
        }
        s = fl_show_trace(&run, row, d);
    }
    fl_imported_free(&run);
    return s;
}

int fl_cmd_show(int argc, char **argv) {
    show_options o = {.rows = -1, .digits = FL_SHOW_DIGITS};
    const fl_option option[] = {
        {"columns", "A,B", FL_OPTION_TEXT, &o.columns, 0, 0, "these columns, in this order, however wide",
         FL_FOR_OUTPUT},
        {"sort", "COLUMN", FL_OPTION_TEXT, &o.sort, 0, 0, "by this column, upwards; -COLUMN downwards"},
        {"where", "CONDITION", FL_OPTION_LIST, &o.where, 0, 0, "rows where it holds (may be repeated: all of them)"},
        {"rows", "N", FL_OPTION_INT, &o.rows, 0, 1e15, "the first N rows, 0 for all (" FL_AS_TEXT(FL_SHOW_ROWS) ")",
         FL_FOR_OUTPUT},
        {"digits", "N", FL_OPTION_INT, &o.digits, 1, 17, "significant digits (" FL_AS_TEXT(FL_SHOW_DIGITS) ")",
         FL_FOR_OUTPUT},
        {"head", NULL, FL_OPTION_FLAG, &o.head, 0, 0, "what the file says of itself, and its provenance, above",
         FL_FOR_OUTPUT},
        FL_INTERVAL_OPTION(&o.interval_s),
        FL_CACHE_OPTION(&o.no_cache),
        FL_STRICT_OPTION,
        FL_JSON_OPTION(&o.json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &show_help, option, FL_COUNT(option), &o.rest, &status))
        return status;
    fl_diag d = {0};
    cJSON *root = cJSON_CreateObject(), *all = cJSON_AddArrayToObject(root, "results");
    fl_status s = o.rest.count ? FL_OK : fl_refuse(&d, "expected FILE ..., see --help");
    fl_trace_keep(!o.no_cache);
    for (size_t i = 0; !s && i < o.rest.count; i++) {
        if (o.rest.count > 1 && !o.json && !o.head)
            printf("%s%s\n", i ? "\n" : "", fl_input_name(o.rest.item[i]));
        else if (i && !o.json)
            putchar('\n');
        bool is_trace = false;
        s = show_trace(o.rest.item[i], &o, all, &is_trace, &d);
        if (!s && !is_trace)
            s = show(o.rest.item[i], &o, all, &d);
    }
    if (!s && o.json)
        print_json(root);
    cJSON_Delete(root);
    return fl_command_close("show", s, &d, option, FL_COUNT(option), &o.rest);
}
