/* dcgmi dmon -e ...: columns cut by blanks, no time stamps, a sparse row of units below the header. */
#include "traces/import/inside.h"

#include "traces/import/import.h"
#include "traces/io/io.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 64, GPUS_MAX = FL_BOARDS_MAX, HEADER_MAX = 1024 };

#define RATIO "ratio"
#define DEFAULT_DELAY_S 1.0 /* of dcgmi dmon where no -d is given */

/* Field tags of DCGM (dcgm_fields.c, shortName), with the unit that their row says. Ratios run from 0 to 1. */
static const fl_gauge GAUGE[] = {{"POWER", "power_w", "W", 0},
                                 {"TOTEC", "energy_j", "mJ", 0},
                                 {"SMCLK", "sm_mhz", NULL, 0},
                                 {"MMCLK", "mem_mhz", NULL, 0},
                                 {"GPUTL", "util_gpu_pct", NULL, 0},
                                 {"MCUTL", "util_mem_pct", NULL, 0},
                                 {"TMPTR", "temp_c", "C", 0},
                                 {"SMACT", "sm_active_pct", RATIO, 0},
                                 {"DRAMA", "dram_active_pct", RATIO, 0},
                                 {"GRACT", "gpu_clock_busy_pct", RATIO, 0},
                                 {"PMLMT", "power_limit_w", "W", 0},
                                 {"EPLMT", "power_limit_w", "W", 0},
                                 {"DVCCTR", "throttle", NULL, FL_GAUGE_MASK}};

typedef struct token {
    const char *text;
    size_t size;
} token;

typedef struct loader {
    fl_gauges g;
    fl_progress progress;
    char header[HEADER_MAX];       /* as it stands, to know it when it comes again */
    size_t count, at[COLUMNS_MAX]; /* at: byte at which the column's name begins */
    fl_rounds rounds;
    int64_t step_ns;
    int32_t only;
    size_t others, headers;
    int64_t first_other, torn;
} loader;

static bool is_header(const fl_cells *line) {
    fl_cell c = line->cell[0];
    if (!c.size || *c.text != '#')
        return false;
    for (c.text++, c.size--; c.size && *c.text == ' '; c.size--)
        c.text++;
    return fl_cell_begins(c, "Entity") && (c.size == 6 || c.text[6] == ' ');
}

static bool detect(const char *path, const char *head, size_t size) {
    (void)path;
    return fl_header_find(head, size, is_header) >= 0;
}

static size_t split_tokens(const char *text, token *t, size_t room) {
    size_t count = 0;
    while (count < room) {
        text += strspn(text, " \t");
        if (!*text)
            break;
        t[count] = (token){text, strcspn(text, " \t")};
        text += t[count++].size;
    }
    return count;
}

static bool token_is(token t, const char *text) { return strlen(text) == t.size && !strncasecmp(t.text, text, t.size); }

static fl_status fail_at(const fl_csv_row *row, const char *at, fl_diag *d, const char *what) {
    return fl_fail(d, FL_BAD_INPUT, row->file, row->line, row->field[0].column + (at - row->field[0].text), "%s", what);
}

static fl_status read_header(loader *l, const fl_csv_row *row, fl_diag *d) {
    const char *text = row->field[0].text;
    if (row->field[0].size >= HEADER_MAX)
        return fail_at(row, text, d, "the header is longer than 1023 bytes");
    snprintf(l->header, sizeof l->header, "%s", text);
    token t[COLUMNS_MAX + 2];
    size_t count = split_tokens(text, t, COLUMNS_MAX + 2),
           first = count && t[0].size == 1 ? 2 : 1; /* "#Entity" or "# Entity" */
    if (count <= first)
        return fail_at(row, text + strlen(text), d, "no columns after '#Entity', expected such as POWER and SMCLK");
    if (count - first > COLUMNS_MAX)
        return fail_at(row, t[COLUMNS_MAX].text, d, "more than 64 columns");
    fl_status status = FL_OK;
    l->count = count - first;
    for (size_t i = 0; i < l->count && !status; i++) {
        char name[32];
        const token c = t[first + i];
        l->at[i] = (size_t)(c.text - text);
        snprintf(name, sizeof name, "%.*s", (int)(c.size < 31 ? c.size : 31), c.text);
        for (char *at = name; *at; at++)
            *at = (char)toupper((unsigned char)*at);
        status = fl_gauges_add(&l->g, row, 0, name, strlen(name), NULL, false, d);
    }
    const fl_field place = {t[first].text, t[first].size, row->field[0].column + (t[first].text - text)};
    const fl_csv_row one = {row->file, row->line, &place, 1, false};
    return status ? status : fl_gauges_begin(&l->g, &one, d);
}

/* Below the header: a unit stands about where its column's name begins. */
static fl_status read_units(const loader *l, const fl_csv_row *row, fl_diag *d) {
    token t[COLUMNS_MAX + 1];
    const char *text = row->field[0].text;
    size_t count = split_tokens(text, t, COLUMNS_MAX + 1);
    for (size_t k = 1; k < count; k++) {
        size_t at = (size_t)(t[k].text - text), near = 0;
        for (size_t i = 1; i < l->count; i++)
            if (llabs((long long)l->at[i] - (long long)at) < llabs((long long)l->at[near] - (long long)at))
                near = i;
        const fl_gauge *of = l->g.column[near].of;
        const char *expected = of && of->unit && strcmp(of->unit, RATIO) != 0 ? of->unit : NULL;
        if (expected && !token_is(t[k], expected)) {
            char what[160];
            snprintf(what, sizeof what, "unit of %s is '%.*s', expected %s", of->name,
                     (int)(t[k].size < 20 ? t[k].size : 20), t[k].text, expected);
            return fail_at(row, t[k].text, d, what);
        }
    }
    return FL_OK;
}

static fl_status read_value(loader *l, const fl_csv_row *row, token t, size_t column, double *value, fl_diag *d) {
    char text[64];
    double x;
    snprintf(text, sizeof text, "%.*s", (int)(t.size < 63 ? t.size : 63), t.text);
    if (fl_real_parse(text, &x) == FL_NUMBER_OK && fl_dcgm_blank(x))
        return FL_OK;
    fl_field place = {text, t.size, row->field[0].column + (t.text - row->field[0].text)};
    const fl_csv_row one = {row->file, row->line, &place, 1, row->torn};
    return fl_gauges_cell(&l->g, &one, 0, column, text, value, d);
}

/* "GPU 0  85  20.9 ...": a GPU that comes again begins the next round. */
static fl_status read_row(loader *l, const fl_csv_row *row, const token *t, size_t count, fl_diag *d) {
    int64_t gpu = 0;
    size_t first = 2;
    const char *end = t[0].text + t[0].size;
    const char *number = t[1].text;
    size_t size = t[1].size;
    if (t[0].size > 3) { /* "GPU0", "GPU-0" */
        number = t[0].text + 3 + (t[0].text[3] == '-' || t[0].text[3] == ':');
        size = (size_t)(end - number);
        first = 1;
    }
    bool whole = size > 0 && size < 5 && (first == 1 || count > 1);
    for (size_t i = 0; whole && i < size; i++) {
        whole = isdigit((unsigned char)number[i]);
        gpu = gpu * 10 + (number[i] - '0');
    }
    if (!whole || gpu >= GPUS_MAX)
        return fail_at(row, number, d, "no number of the GPU, expected such as 'GPU 0'");
    if (count - first != l->count) {
        char what[120];
        snprintf(what, sizeof what, "row has %zu values, expected %zu (blanks or commas within numbers?)",
                 count - first, l->count);
        return fail_at(row, t[count - 1].text, d, what);
    }
    const int64_t round = fl_round_of(&l->rounds, (size_t)gpu);
    if (l->only >= 0 && l->only != gpu)
        return FL_OK;
    double *value = fl_telemetry_row(&l->g.r.rows);
    fl_status status = value ? FL_OK : fl_no_memory(d, row->file);
    for (size_t i = 0; i < l->count && !status; i++)
        status = read_value(l, row, t[first + i], i, value, d);
    return status ? status : fl_readings_take(&l->g.r, row, round * l->step_ns, (int32_t)gpu, d);
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    fl_progress_row(&l->progress, row);
    if (!l->count)
        return read_header(l, row, d);
    if (row->torn) {
        l->torn = row->line;
        return FL_OK;
    }
    if (!strcmp(row->field[0].text, l->header)) {
        l->headers++;
        return FL_OK;
    }
    token t[COLUMNS_MAX + 3];
    size_t count = split_tokens(row->field[0].text, t, COLUMNS_MAX + 3);
    if (count && token_is(t[0], "ID"))
        return read_units(l, row, d);
    bool gpu =
        count && t[0].size >= 3 && !strncmp(t[0].text, "GPU", 3) &&
        (t[0].size == 3 || isdigit((unsigned char)t[0].text[3]) ||
         ((t[0].text[3] == '-' || t[0].text[3] == ':') && t[0].size > 4 && isdigit((unsigned char)t[0].text[4])));
    if (gpu)
        return fl_left_row(&l->g.r.left, read_row(l, row, t, count, &l->g.r.left.own), d);
    if (count && *t[0].text == '#' && (token_is(t[0], "#Entity") || (count > 1 && token_is(t[1], "Entity"))))
        return fail_at(row, t[0].text, d, "the header changes within the file, expected the same columns throughout");
    /* MIG instances (GPU-I, GPU-CI), switches and links, and what else dcgmi says. */
    l->first_other = l->others++ ? l->first_other : row->line;
    return FL_OK;
}

static fl_status add_notes(const loader *l, bool given, fl_diag *d) {
    fl_imported *out = l->g.r.out;
    double seconds = (double)l->step_ns * 1e-9;
    fl_import_say(out, "no time stamps: rounds are taken %g s apart, %s", seconds,
                  given ? "as given" : "dcgmi's default (--interval S says what -d was, in s)");
    if (l->headers)
        fl_import_say(out, "the header is repeated %zu times: left out", l->headers);
    if (l->others)
        fl_import_say(out, "%zu lines are not about whole GPUs (the first is line %lld): left out", l->others,
                      (long long)l->first_other);
    fl_import_torn(out, l->torn);
    fl_import_say(out, "no kernels: readings only");
    return fl_import_said(out, d);
}

static fl_status read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    fl_csv_options options = {.delimiter = '\x01'}; /* whole lines: columns are cut by blanks */
    loader *l = calloc(1, sizeof *l);
    if (!l)
        return fl_no_memory(d, path);
    const bool given = o->interval_s > 0;
    l->g.table = GAUGE;
    l->g.rows = sizeof GAUGE / sizeof *GAUGE;
    fl_readings_begin(&l->g.r, out);
    l->only = o->device;
    l->step_ns = (int64_t)llround((given ? o->interval_s : DEFAULT_DELAY_S) * 1e9);
    fl_progress_start(&l->progress, path, o);
    fl_status status = fl_header_seek(path, is_header, "'#Entity' and the columns' names", &options.head_lines, d);
    if (!status)
        status = fl_csv_read(path, &options, NULL, on_row, l, d);
    if (!status)
        status = fl_readings_end(&l->g.r, path, d);
    if (!status)
        status = add_notes(l, given, d);
    fl_gauges_free(&l->g);
    free(l);
    return status;
}

const fl_reader fl_reader_dcgmi = {
    "dcgmi",         "dcgmi dmon",
    "DCGM 1.7 to 4", FL_GIVES_READINGS | FL_GIVES_CLOCKS | FL_GIVES_POWER | FL_GIVES_ENERGY | FL_GIVES_USE,
    detect,          read};
