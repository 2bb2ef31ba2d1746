/* `foldline fit trace`: how each kernel depends on the clocks, from recordings of one program at several of them. */
#include "harness/fit/trace/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "fit trace", "RECORDING ... --platform NAME -o KINDS.csv [--sm-mhz F ...]",
    "Makes a kinds file from recordings of one program at two or more SM clocks; a telemetry log alone becomes phases.",
    "Kernels are matched by name, grid and block. Those seen at two clocks or more get terms of their own; others "
    "borrow from their name, or from all (the row '*'); how much of the time each way covers is printed. Clocks come "
    "from the recordings, from telemetry joined to them (foldline import), or from --sm-mhz, once per file in order. "
    "Power: where recordings have telemetry (of X.csv, X.telemetry.csv of the same import), two numbers that scale "
    "every kernel's core and memory activity are fitted to the mean power; else they are assumed to be 1, and the head "
    "says so. The head states the error on clocks and recordings that were left out, where there are enough for that: "
    "three clocks, two recordings.\n\n"
    "A telemetry log without kernels becomes a programs file of phases (-o PHASES.programs.csv and its kinds file): "
    "lengths, clock, utilisation and power are known, how a phase depends on clocks is assumed from its memory "
    "utilisation, and marked so."};

typedef struct job {
    fl_platform platform;
    const fl_device *dev;
    fl_fit_seen seen;
    fl_imported *file; /* count */
    double *sm_mhz;
    size_t count;
    fl_trace_power power;
} job;

static double sharpness(const job *j) { return j->dev->sharpness >= 1 ? j->dev->sharpness : INFINITY; }

/* ---- output ---- */

static void add_kind(const job *j, fl_kinds *k, const char *name, double c, double l) {
    const double p = sharpness(j), m = fl_fit_trace_memory(c, l, p);
    fl_kind_load load = {.name = fl_must(strdup(name)),
                         .tc = c,
                         .tm = m,
                         .tl = l,
                         .sharpness = p,
                         .alpha = j->power.alpha * fl_core_active(c, m, l, p, 1, 1),
                         .beta = j->power.beta * fl_memory_active(c, m, l, p, 1, 1),
                         .sm_demand = NAN,
                         .sm_mhz = j->seen.ref_mhz,
                         .phase = 1,
                         .fold_mhz = j->dev->bandwidth.fold_mhz > 0 ? INFINITY : 0,
                         .host_bound = NAN,
                         .host_alpha = NAN,
                         .host_upc = NAN,
                         .host_gb_s = NAN};
    fl_must_grow(&k->kind, &k->room, k->count + 1, sizeof load);
    k->kind[k->count++] = load;
}

static void set_number(fl_head *h, const char *key, double value) {
    char text[64];
    snprintf(text, sizeof text, "%.4g", value);
    fl_must_have(fl_head_set(h, key, text));
}

static fl_status write_kinds(const job *j, const char *path, fl_diag *d) {
    fl_kinds k = {0};
    const fl_fit_seen *s = &j->seen;
    fl_must_have(fl_head_set(&k.head, "source", "foldline fit trace") &&
                 fl_head_set(&k.head, "device", j->platform.name));
    set_number(&k.head, "covered_own_pct", 100 * s->own_ns / s->total_ns);
    set_number(&k.head, "covered_by_name_pct", 100 * s->named_ns / s->total_ns);
    fl_must_have(fl_head_set(&k.head, "power",
                             j->power.recordings ? "two scales fitted to the recordings' mean power"
                                                 : "assumed: core and memory activity scaled by 1"));
    /* The error that results carry is the error on points that were left out. Where no point could be left out, none is
     * stated: a law with as many terms as points fits them all exactly, and that says nothing about its error. */
    if (!isnan(s->unseen_pct))
        set_number(&k.head, "model_time_mape_pct", s->unseen_pct);
    if (!isnan(j->power.unseen_pct))
        set_number(&k.head, "model_power_mape_pct", j->power.unseen_pct);
    for (size_t i = 0; i < s->name_count; i++)
        if (s->name[i].own_ns > 0)
            add_kind(j, &k, s->name[i].text, s->name[i].c, s->name[i].l);
    add_kind(j, &k, "*", s->any_c, s->any_l);
    const fl_status status = fl_kinds_write(path, &k, d);
    fl_kinds_free(&k);
    return status;
}

/* Prints the fit also where path is NULL, as its file could not be written. */
static void print(const job *j, const char *path) {
    const fl_fit_seen *s = &j->seen;
    size_t own = 0;
    for (size_t i = 0; i < s->kernel_count; i++)
        own += s->kernel[i].fitted;
    printf("%zu of %zu kernel classes at two clocks or more: %.1f %% of the time\n", own, s->kernel_count,
           100 * s->own_ns / s->total_ns);
    printf("borrowed from kernels of the same name: %.1f %%; from all: %.1f %%\n", 100 * s->named_ns / s->total_ns,
           100 * (s->total_ns - s->own_ns - s->named_ns) / s->total_ns);
    printf("mean error in time: %.2f %% on the clocks fitted", s->mape_pct);
    if (isnan(s->unseen_pct))
        printf("; with two clocks, no clock is left to test on\n");
    else
        printf(", %.2f %% on a clock left out\n", s->unseen_pct);
    const fl_trace_power *w = &j->power;
    if (!w->recordings) {
        printf("power: assumed, since no telemetry comes with the kernels\n");
    } else {
        printf("power: core x %.3g, memory x %.3g, mean error %.2f %% on %zu recordings", w->alpha, w->beta,
               w->mape_pct, w->recordings);
        if (isnan(w->unseen_pct))
            printf("; with one recording, none is left to test on\n");
        else
            printf(", %.2f %% on one left out\n", w->unseen_pct);
    }
    if (isnan(s->unseen_pct) || isnan(w->unseen_pct))
        printf("note: the error of the %s is unknown, so the file does not state it: give compare --model-error %s\n",
               !isnan(w->unseen_pct)   ? "times"
               : !isnan(s->unseen_pct) ? "powers"
                                       : "times and powers",
               !isnan(w->unseen_pct)   ? "--time-error"
               : !isnan(s->unseen_pct) ? "--power-error"
                                       : "--time-error and --power-error");
    if (path)
        printf("written: %s\n", path);
}

static void print_json(const job *j, const char *path) {
    const fl_fit_seen *s = &j->seen;
    cJSON *root = cJSON_CreateObject(), *power;
    size_t own = 0;
    for (size_t i = 0; i < s->kernel_count; i++)
        own += s->kernel[i].fitted;
    cJSON_AddNumberToObject(root, "kinds", (double)s->kernel_count);
    cJSON_AddNumberToObject(root, "kinds_at_two_clocks", (double)own);
    fl_json_add_real(root, "own_pct", 100 * s->own_ns / s->total_ns);
    fl_json_add_real(root, "by_name_pct", 100 * s->named_ns / s->total_ns);
    fl_json_add_real(root, "time_error_pct", s->mape_pct);
    fl_json_add_real(root, "time_error_left_out_pct", s->unseen_pct);
    cJSON_AddItemToObject(root, "power", power = j->power.recordings ? cJSON_CreateObject() : cJSON_CreateNull());
    if (j->power.recordings) {
        fl_json_add_real(power, "core", j->power.alpha);
        fl_json_add_real(power, "memory", j->power.beta);
        fl_json_add_real(power, "error_pct", j->power.mape_pct);
        fl_json_add_real(power, "error_left_out_pct", j->power.unseen_pct);
        cJSON_AddNumberToObject(power, "recordings", (double)j->power.recordings);
    }
    if (path)
        cJSON_AddStringToObject(root, "file", path);
    fl_json_tell(root);
}

static fl_status open_files(job *j, const fl_texts *paths, const char *format, const fl_texts *clocks, fl_diag *d) {
    fl_status s = FL_OK;
    j->file = fl_must(calloc(paths->count + 1, sizeof *j->file));
    j->sm_mhz = fl_must(calloc(paths->count + 1, sizeof *j->sm_mhz));
    if (clocks->count && clocks->count != paths->count)
        s = fl_refuse(d, "--sm-mhz %zu times for %zu recordings, expected one for each", clocks->count, paths->count);
    for (size_t i = 0; !s && i < paths->count; i++, j->count += !s) {
        char *end = NULL;
        if (clocks->count) {
            j->sm_mhz[i] = strtod(clocks->item[i], &end);
            if (end == clocks->item[i] || *end || !(j->sm_mhz[i] > 0))
                return fl_refuse(d, "--sm-mhz '%s', expected a clock in MHz", clocks->item[i]);
        }
        s = fl_trace_open(paths->item[i], format, NULL, &j->file[i], d);
        if (!s)
            s = fl_trace_beside(paths->item[i], &j->file[i], d);
    }
    return s;
}

/* Notes what the reading of a recording left open, and that a log among kernels has no effect here. */
static void tell_notes(const char *path, const fl_imported *f, bool kernels, FILE *out) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < f->note_count; i++)
        fprintf(out, "note: %s: %s\n", name, f->note[i]);
    if (kernels && !f->has_kernels)
        fprintf(out, "note: %s: left out, since it has no kernels and no file of kernels belongs to it\n", name);
}

int fl_cmd_fit_trace(int argc, char **argv) {
    fl_texts paths = {0}, clocks = {0};
    const char *platform = NULL, *out = NULL, *format = NULL;
    int64_t device = -1;
    bool json = false, no_cache = false;
    const fl_option option[] = {
        {"platform", "NAME", FL_OPTION_TEXT, &platform, 0, 0, "the GPU that it was recorded on", FL_FOR_MACHINE},
        {"o", "FILE", FL_OPTION_OUTPUT, &out, 0, 0, "the kinds file (or programs file of phases) to write",
         FL_FOR_OUTPUT},
        {"sm-mhz", "F", FL_OPTION_LIST, &clocks, 0, 0,
         "SM clock of a recording that does not say, once per file in order", FL_FOR_INPUT},
        {"format", "NAME", FL_OPTION_TEXT, &format, 0, 0, "format of the recordings (detected)", FL_FOR_INPUT},
        {"device", "N", FL_OPTION_INT, &device, 0, 100000,
         "GPU whose log becomes phases (the one with the lowest index)", FL_FOR_INPUT},
        FL_CACHE_OPTION(&no_cache),
        FL_STRICT_OPTION,
        FL_JSON_OPTION(&json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &paths, &status))
        return status;
    fl_trace_keep(!no_cache);
    fl_diag d = {0};
    job j = {0};
    size_t kernels = 0;
    fl_status s = paths.count && out && platform
                      ? FL_OK
                      : fl_refuse(&d, "expected recordings, --platform NAME and -o FILE, see --help");
    if (!s)
        s = fl_platform_open(platform, 0, &j.platform, &d);
    if (!s) {
        j.dev = &j.platform.node.device[j.platform.node.gpu[0]];
        s = open_files(&j, &paths, format, &clocks, &d);
    }
    for (size_t i = 0; i < j.count; i++)
        kernels += j.file[i].has_kernels;
    for (size_t i = 0; !s && i < j.count; i++)
        tell_notes(paths.item[i], &j.file[i], kernels > 0, json ? stderr : stdout);
    if (!s && !kernels) {
        s = paths.count == 1 ? fl_fit_phases(&j.file[0].telemetry, (int32_t)device, j.dev, paths.item[0], out, json, &d)
                             : fl_refuse(&d, "several logs without kernels, expected one log to find phases in");
    } else if (!s && device >= 0) {
        s = fl_refuse(&d, "--device chooses a GPU of a log and has no effect on kernels, expected it without");
    } else if (!s) {
        for (size_t i = 0; !s && i < j.count; i++)
            if (j.file[i].has_kernels)
                s = fl_seen_add(&j.seen, paths.item[i], &j.file[i].kernels, j.sm_mhz[i], &d);
        if (!s)
            s = fl_seen_fit(&j.seen, sharpness(&j), &d);
        if (!s) {
            j.power = fl_fit_trace_power(j.dev, &j.seen, sharpness(&j), j.file, j.sm_mhz, j.count);
            s = write_kinds(&j, out, &d);
        }
        if ((!s || s == FL_IO) && json)
            print_json(&j, s ? NULL : out);
        else if (!s || s == FL_IO)
            print(&j, s ? NULL : out);
    }
    for (size_t i = 0; i < j.count; i++)
        fl_imported_free(&j.file[i]);
    free(j.file);
    free(j.sm_mhz);
    fl_seen_free(&j.seen);
    fl_platform_free(&j.platform);
    return fl_command_close(help.name, s, &d, option, sizeof option / sizeof *option, &paths);
}
