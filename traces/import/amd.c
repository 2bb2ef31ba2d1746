/* amd-smi (monitor, metric) and rocm-smi, as CSV and as JSON.
 *
 * The forms: github.com/ROCm/rocm-systems (2025-08, before that ROCm/amdsmi 2024-10),
 * projects/amdsmi/amdsmi_cli/amdsmi_commands.py and amdsmi_logger.py, change log up to ROCm 10.1: JSON is a list of an
 * object per GPU, perhaps in {"gpu_data": [...]}, with numbers as {"value": 251, "unit": "W"} or "N/A"; CSV has the
 * same leaves, named by their path without its first part (power.socket_power -> socket_power, clock.gfx_0.clk ->
 * gfx_0_clk). `timestamp`, in s since 1970, comes with --watch alone; a partitioned card has a row per `xcp`.
 * projects/rocm-smi-lib/python_smi_tools/rocm_smi.py (2025-08): an object "card0" per GPU, or rows that begin with it;
 * all values are texts; no time. */
#include "traces/import/inside.h"

#include "traces/import/import.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 512, PATH_ROOM = 160 };

/* ROCm 6.2 renamed cur_clk to clk. Of eight clocks of an MI300 that of the first die is taken. */
static const fl_gauge METRIC[] = {{"socket_power", "power_w", NULL, 0},
                                  {"current_socket_power", "power_w", NULL, 0},
                                  {"average_socket_power", "power_w", NULL, 0},
                                  {"current_power", "power_w", NULL, 0},
                                  {"gfx_0_clk", "sm_mhz", NULL, 0},
                                  {"gfx_0_cur_clk", "sm_mhz", NULL, 0},
                                  {"gfx_clk", "sm_mhz", NULL, 0},
                                  {"mem_0_clk", "mem_mhz", NULL, 0},
                                  {"mem_0_cur_clk", "mem_mhz", NULL, 0},
                                  {"gfx_activity", "util_gpu_pct", NULL, 0},
                                  {"umc_activity", "util_mem_pct", NULL, 0},
                                  {"hotspot", "temp_c", NULL, 0},
                                  {"hotspot_temperature", "temp_c", NULL, 0},
                                  {"edge", "temp_c", NULL, 0},
                                  {"total_energy_consumption", "energy_j", NULL, 0},
                                  {"throttle_status", "throttle", NULL, FL_HELD_OTHER}};

static const fl_gauge MONITOR[] = {{"power_usage", "power_w", NULL, 0},
                                   {"gfx_clock", "sm_mhz", NULL, 0},
                                   {"gfx_clk", "sm_mhz", NULL, 0},
                                   {"mem_clock", "mem_mhz", NULL, 0},
                                   {"mem_clk", "mem_mhz", NULL, 0},
                                   {"gfx", "util_gpu_pct", NULL, 0},
                                   {"gfx_util", "util_gpu_pct", NULL, 0},
                                   {"mem", "util_mem_pct", NULL, 0},
                                   {"mem_util", "util_mem_pct", NULL, 0},
                                   {"hotspot_temperature", "temp_c", NULL, 0},
                                   {"pviol", "throttle", NULL, FL_HELD_POWER},
                                   {"tviol", "throttle", NULL, FL_HELD_HEAT}};

static const fl_gauge ROCM[] = {{"Current Socket Graphics Package Power", "power_w", NULL, 0},
                                {"Average Graphics Package Power", "power_w", NULL, 0},
                                {"sclk clock speed:", "sm_mhz", NULL, 0},
                                {"sclk clock level", "sm_mhz", NULL, 0}, /* "1 (1700Mhz)" */
                                {"mclk clock speed:", "mem_mhz", NULL, 0},
                                {"mclk clock level", "mem_mhz", NULL, 0},
                                {"GPU use", "util_gpu_pct", NULL, 0},
                                {"GPU Memory Read/Write Activity", "util_mem_pct", NULL, 0},
                                {"Temperature (Sensor junction)", "temp_c", NULL, 0},
                                {"Temperature (Sensor edge)", "temp_c", NULL, 0},
                                {"Accumulated Energy", "energy_j", "uJ", 0},
                                {"Max Graphics Package Power", "power_limit_w", NULL, 0}};

typedef struct loader {
    fl_gauges g;
    fl_points points;
    fl_stamps stamps;
    fl_rounds rounds;
    const char *file;
    bool rocm, monitor;
    int32_t only;
    int64_t step_ns, torn;
    size_t width, gpu, time, part; /* of CSV; SIZE_MAX: no such column */
    char *header;                  /* its first cell */
    size_t headers, parts, others;
    int64_t stamp_ns; /* of an object that wraps those of the GPUs; -1: none */
    char names[COLUMNS_MAX][48];
} loader;

static bool in_table(const fl_gauge *table, size_t rows, const char *text, size_t size) {
    const char *unit;
    size_t unit_size;
    const size_t base = fl_unit_split(text, size, &unit, &unit_size);
    for (size_t i = 0; i < rows; i++)
        if ((strlen(table[i].name) == base || strlen(table[i].name) == size) &&
            !strncmp(table[i].name, text, strlen(table[i].name)))
            return true;
    return false;
}

#define IN_TABLE(table, text, size) in_table(table, sizeof(table) / sizeof *(table), text, size)

static void choose(loader *l, bool monitor) {
    l->monitor = monitor;
    l->g.table = l->rocm ? ROCM : monitor ? MONITOR : METRIC;
    l->g.rows = l->rocm   ? sizeof ROCM / sizeof *ROCM
                : monitor ? sizeof MONITOR / sizeof *MONITOR
                          : sizeof METRIC / sizeof *METRIC;
}

/* "0", "card0". */
static fl_status gpu_of(const loader *l, const char *text, int64_t line, size_t *gpu, fl_diag *d) {
    const char *at = l->rocm && !strncmp(text, "card", 4) ? text + 4 : text;
    const fl_field field = {at, strlen(at), 1};
    const fl_csv_row row = {l->file, line, &field, 1, false};
    int64_t n = 0;
    const fl_status s = fl_foreign_int(&row, 0, l->rocm ? "the card" : "gpu", 0, FL_BOARDS_MAX - 1, &n, d);
    *gpu = (size_t)n;
    return s;
}

/* The library's numbers for "not available", and a clock's level, which is no number of MHz. */
static bool is_missing(const loader *l, const char *name, const char *text) {
    return !strcmp(text, "65535") || !strcmp(text, "4294967295") ||
           (l->rocm && strstr(name, "clk clock") && !strcasestr(text, "mhz"));
}

/* ---- CSV ---- */

static bool amd_header(const fl_cells *line) {
    bool known = false;
    for (size_t i = 0; i < line->count; i++)
        known |= IN_TABLE(METRIC, line->cell[i].text, line->cell[i].size) ||
                 IN_TABLE(MONITOR, line->cell[i].text, line->cell[i].size);
    return known && line->count > 1 && fl_cells_have(line, "gpu") &&
           (fl_cell_is(line->cell[0], "gpu") || fl_cell_is(line->cell[0], "timestamp"));
}

static bool rocm_header(const fl_cells *line) {
    bool known = false;
    for (size_t i = 1; i < line->count; i++)
        known |= IN_TABLE(ROCM, line->cell[i].text, line->cell[i].size);
    return known && fl_cell_is(line->cell[0], "device");
}

static fl_status read_header(loader *l, const fl_csv_row *row, fl_diag *d) {
    bool monitor = false;
    if (row->count > COLUMNS_MAX)
        return FL_FIELD_FAIL(d, row, COLUMNS_MAX, "the header has %zu columns, expected at most %d", row->count,
                             COLUMNS_MAX);
    l->width = row->count;
    l->gpu = l->time = l->part = SIZE_MAX;
    l->header = strdup(row->field[0].text);
    if (!l->header)
        return fl_no_memory(d, row->file);
    for (size_t i = 0; i < row->count; i++) {
        const char *name = row->field[i].text;
        snprintf(l->names[i], sizeof l->names[i], "%s", name);
        l->gpu = !strcmp(name, l->rocm ? "device" : "gpu") ? i : l->gpu;
        l->time = !strcmp(name, "timestamp") ? i : l->time;
        l->part = !strcmp(name, "xcp") ? i : l->part;
        monitor |= !strcmp(name, "power_usage") || !strcmp(name, "gfx") || !strcmp(name, "gfx_clock");
    }
    choose(l, monitor);
    fl_status s = FL_OK;
    for (size_t i = 0; i < row->count && !s; i++)
        s = fl_gauges_add(&l->g, row, i, row->field[i].text, row->field[i].size, NULL,
                          i == l->gpu || i == l->time || i == l->part, d);
    return s ? s : fl_gauges_begin(&l->g, row, d);
}

/* Rows of the further partitions of a card have no power, and would follow the first as the next round. */
static bool is_first_part(const char *part) { return !*part || !strcmp(part, "0") || fl_no_value(part); }

static fl_status read_row(loader *l, const fl_csv_row *row, fl_diag *d) {
    size_t gpu = 0;
    int64_t ns = 0;
    fl_status s = fl_foreign_width(row, l->width, d);
    if (s)
        return s;
    if (l->part != SIZE_MAX && !is_first_part(row->field[l->part].text)) {
        l->parts++;
        return FL_OK;
    }
    s = gpu_of(l, row->field[l->gpu].text, row->line, &gpu, d);
    if (!s && l->time == SIZE_MAX)
        ns = fl_round_of(&l->rounds, gpu) * l->step_ns;
    else if (!s)
        s = fl_stamp_read(&l->stamps, row, l->time, "timestamp", gpu, &ns, d);
    if (s || (l->only >= 0 && (size_t)l->only != gpu))
        return s;
    double *value = fl_telemetry_row(&l->g.r.rows);
    s = value ? FL_OK : fl_no_memory(d, row->file);
    for (size_t i = 0; i < l->width && !s; i++)
        if (!is_missing(l, l->names[i], row->field[i].text))
            s = fl_gauges_cell(&l->g, row, i, i, row->field[i].text, value, d);
    return s ? s : fl_readings_take(&l->g.r, row, ns, (int32_t)gpu, d);
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (!l->width)
        return read_header(l, row, d);
    if (row->torn) {
        l->torn = row->line;
        return FL_OK;
    }
    const char *first = row->field[0].text;
    if (!strcmp(first, l->header)) {
        bool same = row->count == l->width;
        for (size_t i = 0; same && i < row->count; i++)
            same = !strncmp(l->names[i], row->field[i].text, sizeof l->names[i] - 1);
        l->headers += same;
        return same ? FL_OK
                    : FL_FIELD_FAIL(d, row, 0,
                                    "the header changes within the file, expected the same columns throughout");
    }
    /* What the tool says in between, and the block of the system below the cards. */
    if (row->count != l->width && (l->rocm ? strncmp(first, "card", 4) != 0 : !isdigit((unsigned char)*first))) {
        l->others++;
        return FL_OK;
    }
    return fl_left_row(&l->g.r.left, read_row(l, row, &l->g.r.left.own), d);
}

/* ---- JSON ---- */

/* Adds the leaves of an object. path: the names down to it; of it, what stands behind the first is the leaf's name. */
static fl_status add_leaves(loader *l, const cJSON *object, const char *path, int depth, int64_t line, int64_t ns,
                            size_t gpu, fl_diag *d) {
    const cJSON *item;
    fl_status s = FL_OK;
    cJSON_ArrayForEach(item, object) {
        char name[PATH_ROOM], number[FL_REAL_TEXT];
        if (s || !item->string || depth > 8)
            continue;
        snprintf(name, sizeof name, "%s%s%s", depth > 1 ? path : "", depth > 1 ? "_" : "", item->string);
        const cJSON *inner = cJSON_GetObjectItemCaseSensitive(item, "value"), *leaf = inner ? inner : item;
        if (cJSON_IsObject(item) && !inner) {
            s = add_leaves(l, item, depth ? name : "", depth + 1, line, ns, gpu, d);
            continue;
        }
        const char *text = cJSON_IsNumber(leaf) ? fl_real_text(leaf->valuedouble, number) : cJSON_GetStringValue(leaf);
        const char *unit = inner ? fl_json_member_text(item, "unit") : NULL;
        if (!text || is_missing(l, name, text))
            continue;
        const char *at = name;
        size_t base = strlen(name), unit_size;
        const char *own;
        if (l->rocm && (base = fl_unit_split(name, base, &own, &unit_size)) < strlen(name)) {
            name[base + strspn(name + base, " ") + unit_size + 1] = '\0'; /* the unit, ended */
            unit = own;
            name[base] = '\0';
        }
        s = fl_points_add(&l->points, line, ns, gpu, at, text, unit && *unit ? unit : NULL, d);
    }
    return s;
}

static bool has_member(const cJSON *object, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(object, name) != NULL;
}

static fl_status take_gpu(loader *l, const cJSON *object, const char *gpu_text, int64_t line, fl_diag *d) {
    char number[FL_REAL_TEXT];
    const cJSON *part = cJSON_GetObjectItemCaseSensitive(object, "xcp"),
                *index = cJSON_GetObjectItemCaseSensitive(object, "gpu");
    const double stamp = fl_json_member_real(object, "timestamp");
    size_t gpu = 0;
    if (cJSON_IsNumber(part) && part->valuedouble > 0) {
        l->parts++;
        return FL_OK;
    }
    if (!gpu_text)
        gpu_text = cJSON_IsNumber(index) ? fl_real_text(index->valuedouble, number) : cJSON_GetStringValue(index);
    if (!gpu_text)
        return fl_fail(d, FL_BAD_INPUT, l->file, line, 0,
                       "an object has no member gpu, expected the number of its GPU");
    fl_status s = gpu_of(l, gpu_text, line, &gpu, d);
    if (s || (l->only >= 0 && (size_t)l->only != gpu))
        return s;
    if (!l->g.table)
        choose(l, has_member(object, "power_usage") || has_member(object, "gfx") || has_member(object, "gfx_clock"));
    int64_t ns = l->stamp_ns;
    if (stamp >= 0 && stamp < 9e9)
        ns = (int64_t)llround(stamp * 1e3) * 1000000;
    l->stamps.numbers += ns >= 0;
    if (ns < 0)
        ns = fl_round_of(&l->rounds, gpu) * l->step_ns;
    return add_leaves(l, object, "", l->rocm || l->monitor ? 1 : 0, line, ns, gpu, d);
}

static fl_status take_value(void *user, const cJSON *value, int64_t line, fl_diag *d) {
    loader *l = user;
    const cJSON *item;
    fl_status s = FL_OK;
    if (l->rocm) {
        cJSON_ArrayForEach(item, value) {
            if (!s && item->string && !strncmp(item->string, "card", 4) && isdigit((unsigned char)item->string[4]))
                s = fl_left_row(&l->g.r.left, take_gpu(l, item, item->string, line, &l->g.r.left.own), d);
        }
        return s;
    }
    const cJSON *inner = cJSON_GetObjectItemCaseSensitive(value, "gpu_data");
    const double stamp = cJSON_IsObject(value) ? fl_json_member_real(value, "timestamp") : (double)NAN;
    if (inner)
        l->stamp_ns = stamp >= 0 && stamp < 9e9 ? (int64_t)llround(stamp * 1e3) * 1000000 : -1;
    if (!inner && cJSON_IsObject(value))
        return fl_left_row(&l->g.r.left, take_gpu(l, value, NULL, line, &l->g.r.left.own), d);
    const cJSON *list = inner ? inner : value;
    cJSON_ArrayForEach(item, list) {
        if (!s && (cJSON_IsArray(item) || has_member(item, "gpu_data")))
            s = take_value(l, item, line, d);
        else if (!s)
            s = fl_left_row(&l->g.r.left, take_gpu(l, item, NULL, line, &l->g.r.left.own), d);
    }
    return s;
}

/* ---- both ---- */

static bool is_json(const char *head, size_t size) {
    size_t at = size >= 3 && !memcmp(head, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (at < size && head[at] != '{' && head[at] != '[') { /* below what the tool says first */
        const char *end = memchr(head + at, '\n', size - at);
        at = end ? (size_t)(end - head) + 1 : size;
    }
    return at < size;
}

static bool amd_detect(const char *path, const char *head, size_t size) {
    (void)path;
    if (!is_json(head, size))
        return fl_header_find(head, size, amd_header) >= 0;
    return memmem(head, size, "\"gpu\"", 5) &&
           (memmem(head, size, "\"power_usage\"", 13) || memmem(head, size, "\"gfx_clock\"", 11) ||
            memmem(head, size, "\"socket_power\"", 14) || memmem(head, size, "\"gfx_0\"", 7) ||
            memmem(head, size, "\"gfx_activity\"", 14) || memmem(head, size, "\"total_energy_consumption\"", 26));
}

static bool rocm_detect(const char *path, const char *head, size_t size) {
    (void)path;
    if (!is_json(head, size))
        return fl_header_find(head, size, rocm_header) >= 0;
    const char *at = memmem(head, size, "\"card", 5);
    return at && (size_t)(at - head) + 8 < size && isdigit((unsigned char)at[5]) && !memmem(head, size, "\"ph\"", 4);
}

static fl_status add_notes(loader *l, bool given, bool timed, fl_diag *d) {
    fl_imported *out = l->g.r.out;
    if (!timed)
        fl_import_say(out, "no time stamps: rounds are taken %g s apart, %s", (double)l->step_ns * 1e-9,
                      given ? "as given" : "which the file does not say (--interval S)");
    if (l->headers)
        fl_import_say(out, "the header is repeated %zu times: left out", l->headers);
    if (l->parts)
        fl_import_say(out, "%zu rows are of further partitions of a card, without a power of their own: left out",
                      l->parts);
    if (l->others)
        fl_import_say(out, "%zu lines are not about single GPUs: left out", l->others);
    fl_import_torn(out, l->torn);
    fl_import_say(out, "no kernels: readings only");
    return fl_import_said(out, d);
}

static fl_status read(const char *path, const fl_import_options *o, bool rocm, fl_imported *out, fl_diag *d) {
    char head[4096];
    size_t size = 0;
    fl_gunzip *g = fl_gunzip_open(path, d);
    fl_status s = g ? fl_gunzip_read(g, head, sizeof head, &size, d) : d ? d->status : FL_BAD_INPUT;
    fl_gunzip_close(g);
    loader *l = s ? NULL : calloc(1, sizeof *l);
    if (s || !l)
        return s ? s : fl_no_memory(d, path);
    const bool given = o->interval_s > 0, json = is_json(head, size);
    fl_csv_options options = {.trim = true};
    l->file = path;
    l->rocm = rocm;
    l->only = o->device;
    l->stamp_ns = -1;
    l->step_ns = given ? (int64_t)llround(o->interval_s * 1e9) : INT64_C(1000000000);
    l->points = (fl_points){.g = &l->g, .file = path};
    if (rocm)
        choose(l, false);
    fl_readings_begin(&l->g.r, out);
    fl_stamps_begin(&l->stamps, 9);
    if (!json)
        s = fl_header_seek(path, rocm ? rocm_header : amd_header, "the names that --csv writes", &options.head_lines,
                           d);
    if (!s)
        s = json ? fl_json_each(path, NULL, take_value, l, &l->torn, d)
                 : fl_csv_read(path, &options, NULL, on_row, l, d);
    if (!s && json && !l->points.count)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no reading that telemetry has a place for, expected such as %s",
                    rocm ? ROCM[0].name : METRIC[0].name);
    if (!s && json)
        s = fl_points_end(&l->points, d);
    if (!s)
        s = fl_readings_end(&l->g.r, path, d);
    if (!s)
        s = add_notes(l, given, json ? l->stamps.numbers > 0 : l->time != SIZE_MAX, d);
    fl_points_free(&l->points);
    fl_gauges_free(&l->g);
    free(l->header);
    free(l);
    return s;
}

static fl_status amd_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    return read(path, o, false, out, d);
}

static fl_status rocm_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    return read(path, o, true, out, d);
}

#define GIVES FL_GIVES_READINGS | FL_GIVES_CLOCKS | FL_GIVES_POWER | FL_GIVES_ENERGY | FL_GIVES_USE

const fl_reader fl_reader_amd_smi = {"amd-smi",       "amd-smi monitor or metric, --csv or --json",
                                     "ROCm 6.0 to 7", GIVES | FL_GIVES_TIMES,
                                     amd_detect,      amd_read};
const fl_reader fl_reader_rocm_smi = {"rocm-smi", "rocm-smi --csv or --json", "ROCm 4 to 7", GIVES, rocm_detect,
                                      rocm_read};
