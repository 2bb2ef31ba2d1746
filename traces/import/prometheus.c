/* DCGM's exporter: the text that it serves, and what a Prometheus server returns of it.
 *
 * The forms: github.com/NVIDIA/dcgm-exporter 4.5.3 to 4.8.2 (internal/pkg/rendermetrics/render_metrics.go,
 * etc/default-counters.csv): NAME{gpu="0",UUID="GPU-...",...} VALUE, without time stamps, and without a line where DCGM
 * has no value. prometheus.io/docs/prometheus/latest/querying/api (version 1 of the API): range and instant queries,
 * times in s since 1970, values as texts. Under MIG several rows share gpu and UUID; those that name an instance
 * (GPU_I_ID) are of a part of the board. */
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

#define SCRAPE_S 30.0 /* the exporter's own interval (--collect-interval) */

#define DEV(name) "DCGM_FI_DEV_" name
#define PROF(name) "DCGM_FI_PROF_" name

static const fl_gauge GAUGE[] = {
    {DEV("POWER_USAGE"), "power_w", NULL, 0},
    {DEV("POWER_USAGE_INSTANT"), "power_instant_w", NULL, 0},
    {DEV("TOTAL_ENERGY_CONSUMPTION"), "energy_j", "mJ", 0},
    {DEV("SM_CLOCK"), "sm_mhz", NULL, 0},
    {DEV("MEM_CLOCK"), "mem_mhz", NULL, 0},
    {DEV("GPU_UTIL"), "util_gpu_pct", NULL, 0},
    {DEV("MEM_COPY_UTIL"), "util_mem_pct", NULL, 0},
    {DEV("GPU_TEMP"), "temp_c", NULL, 0},
    {DEV("ENFORCED_POWER_LIMIT"), "power_limit_w", NULL, 0},
    {DEV("POWER_MGMT_LIMIT"), "power_limit_w", NULL, 0},
    {DEV("CLOCKS_EVENT_REASONS"), "throttle", NULL, FL_GAUGE_MASK},
    {DEV("CLOCK_THROTTLE_REASONS"), "throttle", NULL, FL_GAUGE_MASK},
    {PROF("GR_ENGINE_ACTIVE"), "gpu_clock_busy_pct", "ratio", 0},
    {PROF("SM_ACTIVE"), "sm_active_pct", "ratio", 0},
    {PROF("DRAM_ACTIVE"), "dram_active_pct", "ratio", 0},
};

enum { LABELS_MAX = 32 };

typedef struct loader {
    fl_gauges g;
    fl_points points;
    fl_boards boards;
    const char *file;
    int32_t only;
    uint32_t first[FL_BOARDS_MAX]; /* hash of the MIG instance that came first */
    size_t unnamed, parts, others, series;
    char other[256]; /* names that telemetry has no place for */
    /* of the text form */
    uint64_t (*seen)[FL_BOARDS_MAX / 64]; /* gauges x boards in this scrape */
    int64_t scrape_ns, step_ns;
    size_t scrapes;
    bool timed;
} loader;

static void note_other(loader *l, const char *name) {
    const size_t used = strlen(l->other), size = strlen(name);
    const char *at = strstr(l->other, name);
    while (at && at[size] && at[size] != ',')
        at = strstr(at + 1, name);
    l->others++;
    if (!at && used + size + 3 < sizeof l->other)
        snprintf(l->other + used, sizeof l->other - used, "%s%s", used ? ", " : "", name);
}

/* host: NULL, or the node of a board without a UUID; of an instance (node:port) the node counts, as two exporters on it
 * see the same boards. */
typedef struct series_of {
    const char *gpu, *uuid, *mig, *host;
} series_of;

static size_t node_size(const char *host) {
    const char *port = strrchr(host, ':');
    return port && port[1] && strspn(port + 1, "0123456789") == strlen(port + 1) ? (size_t)(port - host) : strlen(host);
}

/* The board of a series. *whole: false for a reading that is of a part of the board alone, or that another instance
 * gives too. */
static fl_status board_of(loader *l, const series_of *of, const char *name, int64_t line, size_t *board, bool *whole,
                          fl_diag *d) {
    const char *gpu = of->gpu, *uuid = of->uuid, *instance = of->mig;
    char node[256];
    if (!uuid && gpu && of->host) { /* boards of two nodes share their numbers */
        (void)snprintf(node, sizeof node, "%.*s gpu %s", (int)node_size(of->host), of->host, gpu);
        uuid = node;
    }
    const fl_field field = {gpu ? gpu : "", gpu ? strlen(gpu) : 0, 1};
    const fl_csv_row row = {l->file, line, &field, 1, false};
    int64_t index = -1;
    if (!gpu && !uuid)
        return fl_fail(d, FL_BAD_INPUT, l->file, line, 1, "%s has no label gpu, expected the board that it is of",
                       name);
    if (gpu) {
        const fl_status s = fl_foreign_int(&row, 0, "gpu", 0, FL_BOARDS_MAX - 1, &index, d);
        if (s)
            return s;
    }
    const fl_status s = fl_board_of(&l->boards, &row, 0, index, uuid, board, d);
    const uint32_t id = instance && *instance ? fl_hash(instance, strlen(instance)) | 1 : 0;
    if (s)
        return s;
    l->first[*board] = l->first[*board] ? l->first[*board] : id;
    *whole = !id || (id == l->first[*board] && strncmp(name, "DCGM_FI_PROF_", 13) != 0);
    l->parts += !*whole;
    return FL_OK;
}

static fl_status add(loader *l, int64_t line, int64_t t_ns, size_t board, const char *name, const char *text,
                     fl_diag *d) {
    double x;
    if (!strcasecmp(text, "NaN") || (fl_real_parse(text, &x) == FL_NUMBER_OK && fl_dcgm_blank(x)))
        return FL_OK;
    if (l->only >= 0 && (size_t)l->only != board)
        return FL_OK;
    return fl_points_add(&l->points, line, t_ns, board, name, text, NULL, d);
}

static size_t gauge_of(const char *name) {
    size_t k = 0;
    while (k < sizeof GAUGE / sizeof *GAUGE && strcmp(GAUGE[k].name, name) != 0)
        k++;
    return k;
}

/* ---- the exporter's text ---- */

/* NAME{label="value",...} VALUE [TIME in ms] -> its parts, cut in place. False for another line. */
static bool cut_sample(char *text, char **name, char *label[LABELS_MAX], char *value[LABELS_MAX], size_t *labels,
                       char **number, char **time) {
    char *at = text + strspn(text, " \t");
    *name = at;
    *labels = 0;
    at += strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:");
    if (at == *name || *at != '{')
        return false;
    *at++ = '\0';
    while (*at && *at != '}') {
        char *key = at + strspn(at, " ,"), *equals = strchr(key, '=');
        if (*key == '}') {
            at = key;
            break;
        }
        if (!equals || equals[1] != '"')
            return false;
        *equals = '\0';
        char *from = equals + 2, *to = from;
        for (at = from; *at && *at != '"'; at++)
            *to++ = *at == '\\' && at[1] ? *++at : *at;
        if (!*at++)
            return false;
        *to = '\0';
        if (*labels < LABELS_MAX) {
            label[*labels] = key;
            value[(*labels)++] = from;
        }
    }
    if (*at++ != '}')
        return false;
    *number = at + strspn(at, " \t");
    at = *number + strcspn(*number, " \t\r");
    *time = at + strspn(at, " \t\r");
    if (*at)
        *at = '\0';
    (*time)[strcspn(*time, " \t\r")] = '\0';
    return **number != '\0';
}

static bool is_sample(const fl_cells *line) {
    const fl_cell c = line->cell[0];
    return fl_cell_begins(c, "DCGM_FI_") && memchr(c.text, '{', c.size);
}

static bool text_detect(const char *path, const char *head, size_t size) {
    (void)path;
    return fl_header_find(head, size, is_sample) >= 0;
}

/* A series that comes again begins the next scrape. */
static void next_scrape(loader *l, size_t gauge, size_t board) {
    uint64_t *set = &l->seen[gauge][board / 64], bit = UINT64_C(1) << board % 64;
    if (*set & bit) {
        memset(l->seen, 0, sizeof GAUGE / sizeof *GAUGE * sizeof *l->seen);
        l->scrape_ns += l->step_ns;
        l->scrapes++;
    }
    *set |= bit;
}

static fl_status read_sample(loader *l, char *text, int64_t line, fl_diag *d) {
    char *name, *label[LABELS_MAX], *value[LABELS_MAX], *number, *time;
    series_of of = {0};
    size_t count = 0, board = 0;
    bool whole;
    if (!cut_sample(text, &name, label, value, &count, &number, &time))
        return fl_left_empty(&l->g.r.left, l->file, line, 1, d, "no reading, but '%.120s'", text);
    const size_t gauge = gauge_of(name);
    if (gauge == sizeof GAUGE / sizeof *GAUGE) {
        note_other(l, name);
        return FL_OK;
    }
    for (size_t i = 0; i < count; i++) {
        of.gpu = !strcmp(label[i], "gpu") ? value[i] : of.gpu;
        of.uuid = !strcasecmp(label[i], "uuid") ? value[i] : of.uuid;
        of.mig = !strcmp(label[i], "GPU_I_ID") ? value[i] : of.mig;
        of.host = !strcasecmp(label[i], "hostname") ? value[i] : of.host;
    }
    fl_status s = board_of(l, &of, name, line, &board, &whole, d);
    if (s || !whole)
        return s;
    int64_t ms = -1;
    if (*time && fl_int_parse(time, &ms) == FL_NUMBER_OK && ms >= 0 && ms < INT64_MAX / 1000000) {
        l->timed = true;
        return add(l, line, ms * 1000000, board, name, number, d);
    }
    next_scrape(l, gauge, board);
    return add(l, line, l->scrape_ns, board, name, number, d);
}

static fl_status on_line(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    fl_time t;
    const char *text = row->field[0].text;
    if (*text == '#' || row->torn)
        return row->torn ? fl_left_row(&l->g.r.left,
                                       fl_left_empty(&l->g.r.left, row->file, row->line, 1, &l->g.r.left.own,
                                                     "the last line is not ended and may be cut off"),
                                       d)
                         : FL_OK;
    if (fl_time_parse(text, &t) && !t.of_day) { /* of a loop's own `date` above each scrape */
        memset(l->seen, 0, sizeof GAUGE / sizeof *GAUGE * sizeof *l->seen);
        l->scrape_ns = t.ns;
        l->timed = true;
        return FL_OK;
    }
    char *own = strdup(text);
    const fl_status s = own ? read_sample(l, own, row->line, &l->g.r.left.own) : fl_no_memory(d, row->file);
    free(own);
    return own ? fl_left_row(&l->g.r.left, s, d) : s;
}

/* ---- a Prometheus server's answer ---- */

static fl_status take_value(loader *l, const cJSON *pair, size_t board, const char *name, int64_t line, fl_diag *d) {
    const cJSON *time = cJSON_GetArrayItem(pair, 0), *value = cJSON_GetArrayItem(pair, 1);
    if (!cJSON_IsNumber(time) || !cJSON_IsString(value) || !(time->valuedouble >= 0 && time->valuedouble < 9e9))
        return fl_fail(d, FL_BAD_INPUT, l->file, line, 0, "a value of %s is no pair of a time and a text", name);
    return add(l, line, (int64_t)llround(time->valuedouble * 1e3) * 1000000, board, name, value->valuestring, d);
}

static fl_status take_series(loader *l, const cJSON *series, int64_t line, fl_diag *d) {
    const cJSON *metric = cJSON_GetObjectItemCaseSensitive(series, "metric"),
                *values = cJSON_GetObjectItemCaseSensitive(series, "values"),
                *one = cJSON_GetObjectItemCaseSensitive(series, "value"), *pair;
    const char *name = fl_json_member_text(metric, "__name__");
    series_of of = {fl_json_member_text(metric, "gpu"), fl_json_member_text(metric, "UUID"),
                    fl_json_member_text(metric, "GPU_I_ID"), fl_json_member_text(metric, "Hostname")};
    of.uuid = of.uuid ? of.uuid : fl_json_member_text(metric, "uuid");
    of.host = of.host ? of.host : fl_json_member_text(metric, "hostname");
    of.host = of.host ? of.host : fl_json_member_text(metric, "instance");
    size_t board = 0;
    bool whole;
    l->series++;
    if (!name) {
        l->unnamed++;
        return FL_OK;
    }
    if (gauge_of(name) == sizeof GAUGE / sizeof *GAUGE) {
        note_other(l, name);
        return FL_OK;
    }
    fl_status s = board_of(l, &of, name, line, &board, &whole, d);
    if (s || !whole)
        return s;
    if (one)
        s = fl_left_row(&l->g.r.left, take_value(l, one, board, name, line, &l->g.r.left.own), d);
    cJSON_ArrayForEach(pair, values) {
        if (!s)
            s = fl_left_row(&l->g.r.left, take_value(l, pair, board, name, line, &l->g.r.left.own), d);
    }
    return s;
}

static fl_status take_answer(void *user, const cJSON *value, int64_t line, fl_diag *d) {
    loader *l = user;
    const char *status = fl_json_member_text(value, "status"), *error = fl_json_member_text(value, "error");
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(value, "data"), *series,
                *result = cJSON_GetObjectItemCaseSensitive(data, "result");
    if (status && strcmp(status, "success") != 0)
        return fl_fail(d, FL_BAD_INPUT, l->file, line, 0, "the query failed: %s: %s",
                       fl_json_member_text(value, "errorType") ? fl_json_member_text(value, "errorType") : status,
                       error ? error : "no reason is given");
    if (!cJSON_IsArray(result))
        return fl_fail(d, FL_BAD_INPUT, l->file, line, 0,
                       "no list data.result, expected the answer of query_range to metrics of DCGM");
    fl_status s = FL_OK;
    cJSON_ArrayForEach(series, result) {
        if (!s)
            s = take_series(l, series, line, d);
    }
    return s;
}

static bool json_detect(const char *path, const char *head, size_t size) {
    (void)path;
    return memmem(head, size, "\"resultType\"", 12) && memmem(head, size, "\"metric\"", 8);
}

/* ---- both ---- */

static fl_status finish(loader *l, bool text, bool given, fl_diag *d) {
    fl_imported *out = l->g.r.out;
    if (!l->points.count)
        return fl_fail(d, FL_BAD_INPUT, l->file, 0, 0,
                       "no reading of a metric of DCGM, expected such as DCGM_FI_DEV_POWER_USAGE%s",
                       l->unnamed ? "; series without a name are results of rate() or avg()" : "");
    l->g.r.left.rows -=
        l->g.r.left.rows - l->g.r.left.empty.count - l->g.r.left.wrong.count; /* of rows, not readings */
    fl_status s = fl_points_end(&l->points, d);
    if (!s)
        s = fl_readings_end(&l->g.r, l->file, d);
    if (s)
        return s;
    if (text && !l->timed)
        fl_import_say(out, "no time stamps: %zu scrapes are taken %g s apart, %s", l->scrapes + 1,
                      (double)l->step_ns * 1e-9,
                      given ? "as given" : "the exporter's own interval (--interval S says another, in s)");
    if (!text)
        fl_import_say(out, "each value is the last that was scraped before its time: equal ones may be one reading");
    fl_boards_say(&l->boards, out);
    if (l->others)
        fl_import_say(out, "left out, as telemetry has no place for them: %s", l->other);
    if (l->unnamed)
        fl_import_say(out, "%zu of %zu series have no name, as results of rate() or avg(): left out", l->unnamed,
                      l->series);
    if (l->parts)
        fl_import_say(out, "%zu readings are of MIG instances, not of a board: left out", l->parts);
    fl_import_say(out, "no kernels: readings only");
    return fl_import_said(out, d);
}

static fl_status read(const char *path, const fl_import_options *o, bool text, fl_imported *out, fl_diag *d) {
    loader *l = calloc(1, sizeof *l);
    const bool given = o->interval_s > 0;
    fl_status s = FL_OK;
    if (!l || !(l->seen = calloc(sizeof GAUGE / sizeof *GAUGE, sizeof *l->seen))) {
        free(l);
        return fl_no_memory(d, path);
    }
    l->file = path;
    l->only = o->device;
    l->g.table = GAUGE;
    l->g.rows = sizeof GAUGE / sizeof *GAUGE;
    l->points = (fl_points){.g = &l->g, .file = path};
    l->step_ns = (int64_t)llround((given ? o->interval_s : SCRAPE_S) * 1e9);
    fl_readings_begin(&l->g.r, out);
    s = text ? fl_lines_read(path, on_line, l, d) : fl_json_each(path, NULL, take_answer, l, NULL, d);
    if (!s)
        s = finish(l, text, given, d);
    fl_points_free(&l->points);
    fl_boards_free(&l->boards);
    fl_gauges_free(&l->g);
    free(l->seen);
    free(l);
    return s;
}

static fl_status text_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    return read(path, o, true, out, d);
}

static fl_status json_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    return read(path, o, false, out, d);
}

#define GIVES FL_GIVES_READINGS | FL_GIVES_CLOCKS | FL_GIVES_POWER | FL_GIVES_ENERGY | FL_GIVES_USE

const fl_reader fl_reader_dcgm_exporter = {"dcgm-exporter",
                                           "what DCGM's exporter serves (/metrics), one scrape or several",
                                           "dcgm-exporter 2 to 4.8",
                                           GIVES,
                                           text_detect,
                                           text_read};
const fl_reader fl_reader_prometheus = {"prometheus",
                                        "a Prometheus server's answer (query_range) to metrics of DCGM",
                                        "Prometheus API 1, dcgm-exporter 2 to 4.8",
                                        GIVES | FL_GIVES_TIMES,
                                        json_detect,
                                        json_read};
