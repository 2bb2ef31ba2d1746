/* Kernel Tuner's cache: the settings of one kernel, of which a sweep takes one configuration over its clocks.
 *
 * The form: github.com/KernelTuner/kernel_tuner 1.4.0 (2026-06), kernel_tuner/cache and util.py: an object with
 * device_name, kernel_name, problem_size, tune_params_keys, tune_params and cache, whose members are configurations:
 * parameters, time (ms), and what observers add (observers/nvml.py: nvml_power W, nvml_energy J a launch, core_freq and
 * mem_freq MHz; ps_power, ps_energy of a PowerSensor). nvml_gr_clock, nvml_mem_clock (MHz) and nvml_pwr_limit (W) are
 * parameters. A failed configuration has a text in the place of its time, since 1.4 also __error__; old ones 1e20. The
 * file is written by appending: until the run ends, the last two brackets are not there. */
#include "traces/import/inside.h"

#include "traces/import/import.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_ROOM = 400, CELLS = 8 };

static const char *const TARGET[CELLS] = {"workload",    "kernel", "sm_mhz",  "mem_mhz",
                                          "power_cap_w", "time_s", "power_w", "energy_j"};

typedef struct entry { /* of the cache */
    const cJSON *values;
    char *configuration; /* all parameters but the clocks: "block_size_x=128, tile=2" */
    double sm_mhz, time_ms;
} entry;

typedef struct loader {
    const char *path;
    fl_imported *out;
    fl_left_out left;
    entry *entry;
    size_t count, room, configurations, moved;
    char workload[NAME_ROOM], kernel[NAME_ROOM];
    bool told;
} loader;

static bool is_clock(const char *name) {
    return !strcmp(name, "nvml_gr_clock") || !strcmp(name, "nvml_mem_clock") || !strcmp(name, "nvml_pwr_limit");
}

/* The first of the members that is a number. */
static double first_of(const cJSON *values, const char *a, const char *b) {
    const double x = fl_json_member_real(values, a);
    return isnan(x) && b ? fl_json_member_real(values, b) : x;
}

static const char *text_of(const cJSON *item, char number[FL_REAL_TEXT]) {
    const char *text = cJSON_GetStringValue(item);
    return cJSON_IsNumber(item) ? fl_real_text(item->valuedouble, number)
           : text               ? text
           : cJSON_IsTrue(item) ? "true"
                                : "false";
}

/* A size as "4096x4096". */
static void write_size(const cJSON *size, char *text, size_t room) {
    char number[FL_REAL_TEXT];
    const cJSON *item;
    size_t used = 0;
    *text = '\0';
    if (!cJSON_IsArray(size)) {
        if (cJSON_IsNumber(size) || cJSON_IsString(size))
            snprintf(text, room, "%s", text_of(size, number));
        return;
    }
    cJSON_ArrayForEach(item, size) {
        if (used < room)
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? "x" : "", text_of(item, number));
    }
}

static fl_status add_entry(loader *l, const cJSON *values, const cJSON *keys, fl_diag *d) {
    char text[NAME_ROOM] = "", number[FL_REAL_TEXT];
    const cJSON *key;
    size_t used = 0;
    const cJSON *time = cJSON_GetObjectItemCaseSensitive(values, "time");
    const char *error = fl_json_member_text(values, "__error__");
    const double ms = cJSON_IsNumber(time) ? time->valuedouble : (double)NAN;
    if (error || !(ms > 0 && ms < 1e15))
        return fl_left_empty(&l->left, l->path, 0, 0, d, "configuration %.80s has no time%s%.40s",
                             values->string ? values->string : "", error || cJSON_IsString(time) ? ": " : "",
                             error                  ? error
                             : cJSON_IsString(time) ? time->valuestring
                                                    : "");
    cJSON_ArrayForEach(key, keys) {
        const char *name = cJSON_GetStringValue(key);
        const cJSON *value = name ? cJSON_GetObjectItemCaseSensitive(values, name) : NULL;
        if (value && !is_clock(name) && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s=%s", used ? ", " : "", name,
                                     text_of(value, number));
    }
    if (fl_grow(&l->entry, &l->room, l->count + 1, sizeof *l->entry))
        return fl_no_memory(d, l->path);
    entry *e = &l->entry[l->count];
    *e = (entry){.values = values, .configuration = strdup(text), .time_ms = ms};
    e->sm_mhz = first_of(values, "nvml_gr_clock", "core_freq");
    l->count++;
    return e->configuration ? FL_OK : fl_no_memory(d, l->path);
}

static int by_configuration(const void *a, const void *b) {
    const entry *x = a, *y = b;
    const int order = strcmp(x->configuration, y->configuration);
    return order ? order : (x->sm_mhz > y->sm_mhz) - (x->sm_mhz < y->sm_mhz);
}

/* The configuration of which most settings were measured, and of several the one that is fastest at its highest
 * clock. */
static void choose(const loader *l, size_t *first, size_t *count, size_t *configurations) {
    double best = INFINITY;
    *count = *configurations = 0;
    for (size_t i = 0, next; i < l->count; i = next) {
        double fastest = l->entry[i].time_ms, clock = -1;
        for (next = i; next < l->count && !strcmp(l->entry[next].configuration, l->entry[i].configuration); next++)
            if (!(l->entry[next].sm_mhz < clock)) {
                clock = isnan(l->entry[next].sm_mhz) ? clock : l->entry[next].sm_mhz;
                fastest = l->entry[next].time_ms;
            }
        ++*configurations;
        if (next - i < *count || (next - i == *count && !(fastest < best)))
            continue;
        *first = i;
        *count = next - i;
        best = fastest;
    }
}

static fl_status take(loader *l, fl_sweep_rows *rows, const entry *e, int64_t line, fl_diag *d) {
    const cJSON *v = e->values;
    const double asked = fl_json_member_real(v, "nvml_gr_clock"), ran = fl_json_member_real(v, "core_freq");
    const double number[] = {
        e->sm_mhz,         first_of(v, "nvml_mem_clock", "mem_freq"), fl_json_member_real(v, "nvml_pwr_limit"),
        e->time_ms * 1e-3, first_of(v, "nvml_power", "ps_power"),     first_of(v, "nvml_energy", "ps_energy")};
    char text[6][FL_REAL_TEXT];
    fl_field field[CELLS] = {{l->workload, strlen(l->workload), 1}, {l->kernel, strlen(l->kernel), 1}};
    for (size_t i = 0; i < 6; i++) {
        if (isnan(number[i]))
            text[i][0] = '\0';
        else
            fl_real_text(number[i], text[i]);
        field[2 + i] = (fl_field){text[i], strlen(text[i]), 1};
    }
    l->moved += fabs(asked - ran) > 0.05 * asked;
    const fl_csv_row row = {l->path, line, field, CELLS, false};
    return fl_sweep_rows_take(rows, &row, d);
}

static fl_status take_cache(void *user, const cJSON *value, int64_t line, fl_diag *d) {
    loader *l = user;
    const cJSON *cache = cJSON_GetObjectItemCaseSensitive(value, "cache"), *item,
                *keys = cJSON_GetObjectItemCaseSensitive(value, "tune_params_keys");
    const char *kernel = fl_json_member_text(value, "kernel_name"), *device = fl_json_member_text(value, "device_name");
    char size[128];
    fl_status s = FL_OK;
    size_t first = 0, count = 0, configurations = 0;
    if (l->told)
        return fl_fail(d, FL_BAD_INPUT, l->path, line, 1, "a second cache, expected one in a file");
    l->told = true;
    if (!cJSON_IsObject(cache) || !kernel)
        return fl_fail(d, FL_BAD_INPUT, l->path, line, 1,
                       "no members cache and kernel_name, expected a cache of Kernel Tuner");
    write_size(cJSON_GetObjectItemCaseSensitive(value, "problem_size"), size, sizeof size);
    snprintf(l->kernel, sizeof l->kernel, "%s", kernel);
    snprintf(l->workload, sizeof l->workload, "%.250s%s%s", kernel, *size ? "." : "", size);
    cJSON_ArrayForEach(item, cache) {
        if (!s)
            s = fl_left_row(&l->left, add_entry(l, item, keys, &l->left.own), d);
    }
    if (s)
        return s;
    if (l->count)
        qsort(l->entry, l->count, sizeof *l->entry, by_configuration);
    choose(l, &first, &count, &configurations);
    fl_left_out rest;
    fl_sweep_rows *rows = fl_sweep_rows_open(true, &rest, d);
    if (!rows)
        return FL_NO_MEMORY;
    fl_field head[CELLS];
    for (size_t i = 0; i < CELLS; i++)
        head[i] = (fl_field){TARGET[i], strlen(TARGET[i]), 1};
    const fl_csv_row header = {l->path, line, head, CELLS, false};
    s = fl_sweep_rows_take(rows, &header, d);
    for (size_t i = first; !s && i < first + count; i++) {
        if (isnan(l->entry[i].sm_mhz) && isnan(fl_json_member_real(l->entry[i].values, "nvml_pwr_limit")))
            s = fl_fail(d, FL_BAD_INPUT, l->path, line, 0,
                        "configuration %.80s has no clock, expected a parameter nvml_gr_clock or nvml_pwr_limit, or an "
                        "observer of core_freq",
                        l->entry[i].values->string);
        else
            s = take(l, rows, &l->entry[i], line, d);
    }
    s = fl_sweep_rows_close(rows, l->path, s, &l->out->sweep, d);
    if (!s)
        s = fl_import_left(l->out, &rest, d);
    if (!s && device && *device)
        s = fl_foreign_head(&l->out->sweep.head, "device", device, d);
    if (!s && configurations > 1)
        fl_import_say(l->out,
                      "of %zu configurations that one is taken which was measured at most settings (%zu), and of "
                      "these the fastest at its highest clock: %s",
                      configurations, count, l->entry[first].configuration);
    else if (!s && *l->entry[first].configuration)
        fl_import_say(l->out, "the configuration is %s", l->entry[first].configuration);
    if (!s && l->moved)
        fl_import_doubt(l->out, "%zu settings ran at a clock that is 5 %% or more beside the one asked for (core_freq)",
                        l->moved);
    l->configurations = configurations;
    return s ? s : fl_import_said(l->out, d);
}

static bool detect(const char *path, const char *head, size_t size) {
    (void)path;
    return memmem(head, size, "\"tune_params_keys\"", 18) && memmem(head, size, "\"kernel_name\"", 13);
}

static fl_status read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    loader l = {.path = path, .out = out, .left = fl_left_begin(&l.left)};
    int64_t unfinished = 0;
    (void)o;
    fl_status s = fl_json_each(path, "}}", take_cache, &l, &unfinished, d);
    if (!s)
        s = fl_left_end(&l.left, NULL, path, d);
    if (!s)
        s = fl_import_left(out, &l.left, d);
    if (!s && unfinished)
        fl_import_say(out, "the file is not ended, as of a run that goes on or was stopped");
    if (!s)
        s = fl_import_said(out, d);
    out->has_sweep = !s;
    for (size_t i = 0; i < l.count; i++)
        free(l.entry[i].configuration);
    free(l.entry);
    return s;
}

const fl_reader fl_reader_kernel_tuner = {"kernel-tuner",
                                          "Kernel Tuner's cache (JSON)",
                                          "Kernel Tuner 0.4 to 1.4",
                                          FL_GIVES_SETTINGS | FL_GIVES_CLOCKS | FL_GIVES_POWER | FL_GIVES_ENERGY,
                                          detect,
                                          read};
