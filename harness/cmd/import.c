/* foldline import: files as other tools write them become canonical ones. */
#include "harness/cmd/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/scene/scene.h"
#include "harness/plan/plan.h"
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"
#include "traces/profiler/profiler.h"
#include "traces/serving/serving.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const fl_command_help help = {
    "import", "FILE... [-o OUT.csv] [--format NAME] [--interval S] [--offset S]",
    "Reads the files of profilers, sensor tools and servers, says what they lack, and writes canonical files.",
    "Kernels go to OUT.csv, telemetry to OUT.telemetry.csv; without -o the command writes nothing. It puts the kernels "
    "and the telemetry of one run on the clock of the kernels. It finds the offset between the two clocks by "
    "correlating power or utilisation with the kernels, unless --offset states it.\n\n"
    "--map turns any table into a sweep, or into telemetry if it names t or gpu. Left of each '=' stands a column of a "
    "sweep (workload, sm_mhz, mem_mhz, power_cap_w, time_s, power_w, energy_j, util_gpu_pct, util_mem_sd, ...) or of "
    "telemetry (t, gpu, power_w, sm_mhz, util_gpu_pct, ...); right of it stands a column of the table, multiplied or "
    "divided by a number if you need it. t may be a date, or s, ms, us or ns since 1970. Fields may be separated by "
    "commas, semicolons or tabs. Names joined by '+' form one "
    "workload name. In a table with one column per clock, "
    "'header' means the clock at the head of a column and 'cells' the values below it (1/cells: a speed).\n\n"
    "Executed plans of clocks (Perseus: N.sched.json with N.prof.json, any number of pairs) become BASE.plans.csv, "
    "BASE.measured.csv and BASE.instructions.csv with -o BASE; foldline fit pipeline reads them. foldline import "
    "--list names the formats that the command detects."};

typedef struct ask {
    fl_texts files, formats;
    const char *output, *map;
    double interval_s, offset_s;
    int64_t device;
    bool json, list;
} ask;

typedef struct done {
    fl_imported run;
    const char *format[2]; /* of the kernels and of the telemetry */
    char *written[2];
    fl_clock_offset offset;
    bool joined, found;
} done;

enum { SHARES = 1000000 };

static void note_share(void *user, double share) { fl_stage_at(*(const fl_stage *)user, (uint64_t)(share * SHARES)); }

/* ---- reading ---- */

static void source_of(fl_head *head, const char *path, const fl_reader *reader) {
    char text[300];
    if (fl_head_get(head, "source"))
        return;
    snprintf(text, sizeof text, "%.200s, imported as %s", basename(path), reader->name);
    for (char *c = text; *c; c++)
        *c = (unsigned char)*c < 0x20 ? '?' : *c;
    fl_must_have(fl_head_set(head, "source", text));
}

/* Kernels are added up over files; telemetry comes from one. */
static fl_status add_import(done *all, fl_imported *one, const char *path, const fl_reader *reader, fl_diag *d) {
    bool several = all->run.has_kernels || all->run.has_telemetry || all->run.has_sweep || all->run.has_requests ||
                   all->run.note_count;
    fl_status s = fl_import_take_notes(&all->run, one, basename(path), d);
    if (!s && one->has_kernels) {
        source_of(&one->kernels.head, path, reader);
        all->format[0] = reader->name;
        if (!all->run.has_kernels) {
            all->run.kernels = one->kernels;
            one->kernels = (fl_kernel_trace){0};
        } else if (!(s = fl_join_append(&all->run, one, d))) {
            s = fl_import_note(&all->run, d, "%s: its kernels are taken to be on the clock of the first file's",
                               basename(path));
        }
        all->run.has_kernels = true;
    }
    if (!s && one->has_telemetry && all->run.has_telemetry)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "a second file of telemetry, expected one per run");
    if (!s && one->has_telemetry) {
        source_of(&one->telemetry.head, path, reader);
        all->format[1] = reader->name;
        all->run.telemetry = one->telemetry;
        one->telemetry = (fl_telemetry){0};
        all->run.has_telemetry = true;
    }
    if (!s && (one->has_sweep || all->run.has_sweep) && several)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "a sweep and other files, expected the sweep alone");
    if (!s && (one->has_requests || all->run.has_requests) && several)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "requests and other files, expected the requests alone");
    if (!s && one->has_requests) {
        source_of(&one->requests.head, path, reader);
        all->format[0] = reader->name;
        all->run.requests = one->requests;
        one->requests = (fl_requests){0};
        all->run.has_requests = true;
    }
    if (!s && one->has_sweep) {
        all->run.sweep = one->sweep;
        one->sweep = (fl_sweep){0};
        all->run.has_sweep = true;
    }
    return s;
}

/* A table of whatever shape, whose columns the user names. */
static fl_status read_mapped(const ask *a, done *all, fl_diag *d) {
    fl_sweep_map map = {0};
    fl_left_out left;
    fl_imported one = {0};
    char text[400];
    if (a->files.count != 1 || a->formats.count)
        return fl_refuse(d, "--map reads one table, expected one file and no --format");
    const char *path = a->files.item[0];
    const fl_import_options o = {.interval_s = a->interval_s, .device = (int32_t)a->device};
    fl_status s = fl_sweep_map_open(a->map, &map, d);
    const bool telemetry = !s && fl_map_is_telemetry(&map);
    if (telemetry)
        s = fl_telemetry_read_mapped(path, &map, &o, &one, d);
    else if (!s)
        s = fl_sweep_read_mapped(path, &map, &one.sweep, &left, d);
    if (!s && !telemetry)
        s = fl_import_left(&one, &left, d);
    if (!s)
        s = fl_import_take_notes(&all->run, &one, basename(path), d);
    all->run.sweep = one.sweep;
    all->run.telemetry = one.telemetry;
    one.sweep = (fl_sweep){0};
    one.telemetry = (fl_telemetry){0};
    fl_imported_free(&one);
    all->run.has_sweep = !s && !telemetry;
    all->run.has_telemetry = !s && telemetry;
    all->format[1] = "--map";
    snprintf(text, sizeof text, "%.140s, imported with --map %.140s", basename(path),
             strchr(a->map, '=') ? a->map : basename(a->map));
    fl_head *head = telemetry ? &all->run.telemetry.head : &all->run.sweep.head;
    if (!s)
        fl_must_have(fl_head_set(head, "source", text));
    fl_sweep_map_free(&map);
    return s;
}

static fl_status read_all(const ask *a, done *all, fl_diag *d) {
    fl_status s = FL_OK;
    if (a->formats.count > 1 && a->formats.count != a->files.count)
        return fl_refuse(d, "%zu formats for %zu files, expected one for all or one for each", a->formats.count,
                         a->files.count);
    if (a->map)
        return read_mapped(a, all, d);
    for (size_t i = 0; !s && i < a->files.count; i++) {
        const char *path = a->files.item[i];
        const char *format = a->formats.count ? a->formats.item[a->formats.count > 1 ? i : 0] : NULL;
        const fl_reader *reader = NULL;
        fl_imported one = {0};
        fl_import_options o = {.interval_s = a->interval_s, .device = (int32_t)a->device};
        fl_stage stage = fl_stage_begin("reading", SHARES);
        if (stage != FL_STAGE_NONE) {
            o.progress = note_share;
            o.user = &stage;
        }
        s = fl_reader_find(path, format, &reader, d);
        if (!s)
            s = fl_reader_read(reader, path, &o, &one, d);
        fl_stage_end(stage);
        if (!s)
            s = add_import(all, &one, path, reader, d);
        fl_imported_free(&one);
    }
    return s;
}

/* ---- joining ---- */

static fl_status join(const ask *a, done *all, fl_diag *d) {
    fl_imported *run = &all->run;
    if (!run->has_kernels || !run->has_telemetry)
        return isnan(a->offset_s) ? FL_OK
                                  : fl_refuse(d, "--offset joins kernels and telemetry, expected files of both");
    fl_status s = fl_join_devices(run, d);
    if (s)
        return s;
    /* A file that carries both has them on one clock. */
    bool one_clock = a->files.count == 1;
    if (isnan(a->offset_s) && !one_clock) {
        s = fl_join_find(&run->kernels, &run->telemetry, &all->offset, d);
        if (!s && !all->offset.sure)
            s = fl_refuse(
                d,
                "the clock offset is uncertain: %.6f s has a correlation of %.2f, the second best has %.2f; expected "
                "--offset S (telemetry time minus kernel time)",
                (double)all->offset.offset_ns * 1e-9, all->offset.r, all->offset.next_r);
        all->found = !s;
    } else {
        all->offset.offset_ns = one_clock && isnan(a->offset_s) ? 0 : (int64_t)llround(a->offset_s * 1e9);
    }
    all->joined = !s;
    return s ? s : fl_join(run, all->offset.offset_ns, d);
}

/* ---- writing ---- */

static char *telemetry_path(const char *output) {
    if (fl_is_standard(output) || fl_name_ends(output, ".telemetry.csv"))
        return fl_must(strdup(output));
    return fl_must_print("%.*s.telemetry.csv%s", (int)fl_stem_length(output, ".csv"), output,
                         fl_gzip_named(output) ? ".gz" : "");
}

static fl_status spare_inputs(const ask *a, const char *path, fl_diag *d) {
    for (size_t i = 0; i < a->files.count; i++)
        if (fl_same_file(path, a->files.item[i]))
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "is an input, expected another file to write");
    return FL_OK;
}

/* A sweep, or requests. */
static fl_status write_table(const ask *a, done *all, fl_diag *d) {
    if (!a->output)
        return FL_OK;
    all->written[0] = fl_must(strdup(a->output));
    fl_status s = spare_inputs(a, a->output, d);
    if (!s)
        s = fl_import_head_left(all->run.has_sweep ? &all->run.sweep.head : &all->run.requests.head, &all->run, NULL,
                                d);
    if (s)
        return s;
    return all->run.has_sweep ? fl_sweep_write(a->output, &all->run.sweep, d)
                              : fl_requests_write(a->output, &all->run.requests, d);
}

static fl_status write_all(const ask *a, done *all, fl_diag *d) {
    if (all->run.has_sweep || all->run.has_requests)
        return write_table(a, all, d);
    if (!a->output)
        return FL_OK;
    if (all->run.has_kernels)
        all->written[0] = fl_must(strdup(a->output));
    if (all->run.has_telemetry)
        all->written[1] = telemetry_path(a->output);
    if (all->written[0] && all->written[1] && !strcmp(all->written[0], all->written[1]))
        return fl_fail(d, FL_BAD_INPUT, a->output, 0, 0,
                       fl_is_standard(a->output)
                           ? "is one file, and kernels and telemetry are two, expected a name for the kernels (OUT.csv)"
                           : "names the telemetry, expected a name for the kernels (OUT.csv)");
    fl_status s = FL_OK;
    for (int i = 0; !s && i < 2; i++)
        s = all->written[i] ? spare_inputs(a, all->written[i], d) : FL_OK;
    if (!s && all->written[0])
        s = fl_import_head_left(&all->run.kernels.head, &all->run, NULL, d);
    if (!s && all->written[1])
        s = fl_import_head_left(&all->run.telemetry.head, &all->run, NULL, d);
    bool existed = all->written[1] && !access(all->written[1], F_OK);
    if (!s && all->written[1])
        s = fl_telemetry_write(all->written[1], &all->run.telemetry, d);
    if (!s && all->written[0] && (s = fl_kernels_write(all->written[0], &all->run.kernels, d)) && all->written[1] &&
        !existed)
        unlink(all->written[1]);
    return s;
}

/* ---- telling ---- */

static size_t kernels_of(const fl_kernel_trace *t) {
    size_t n = 0;
    for (size_t i = 0; i < t->op_count; i++)
        n += t->ops[i].type == FL_OP_KERNEL;
    return n;
}

typedef struct tokens_told {
    uint64_t prompt, output, cached;
    double seconds; /* from the first arrival to the last */
} tokens_told;

static tokens_told tokens_of(const fl_requests *r) {
    tokens_told t = {.seconds = (double)(r->row[r->count - 1].t_ns - r->row[0].t_ns) * 1e-9};
    for (size_t i = 0; i < r->count; i++) {
        t.prompt += r->row[i].prompt_tokens;
        t.output += r->row[i].output_tokens;
        t.cached += r->row[i].cached_tokens;
    }
    return t;
}

static void print_json(const done *all) {
    const fl_imported *run = &all->run;
    cJSON *root = cJSON_CreateObject();
    if (run->has_kernels) {
        cJSON *k = cJSON_AddObjectToObject(root, "kernels");
        cJSON_AddStringToObject(k, "format", all->format[0]);
        cJSON_AddNumberToObject(k, "ops", (double)run->kernels.op_count);
        cJSON_AddNumberToObject(k, "kernels", (double)kernels_of(&run->kernels));
        cJSON_AddNumberToObject(k, "kinds", (double)run->kernels.kind_count);
        cJSON_AddBoolToObject(k, "launches", run->kernels.has_launches);
        if (all->written[0])
            cJSON_AddStringToObject(k, "file", all->written[0]);
    }
    if (run->has_telemetry) {
        cJSON *t = cJSON_AddObjectToObject(root, "telemetry");
        cJSON_AddStringToObject(t, "format", all->format[1]);
        cJSON_AddNumberToObject(t, "rows", (double)run->telemetry.row_count);
        fl_json_add_texts(t, "signals", run->telemetry.signal, run->telemetry.signal_count);
        if (all->written[1])
            cJSON_AddStringToObject(t, "file", all->written[1]);
    }
    if (run->has_sweep)
        cJSON_AddNumberToObject(root, "settings", (double)run->sweep.row_count);
    if (run->has_requests) {
        const tokens_told t = tokens_of(&run->requests);
        cJSON *r = cJSON_AddObjectToObject(root, "requests");
        cJSON_AddStringToObject(r, "format", all->format[0]);
        cJSON_AddNumberToObject(r, "rows", (double)run->requests.count);
        fl_json_add_real(r, "seconds", t.seconds);
        cJSON_AddNumberToObject(r, "prompt_tokens", (double)t.prompt);
        cJSON_AddNumberToObject(r, "output_tokens", (double)t.output);
        cJSON_AddNumberToObject(r, "cached_tokens", (double)t.cached);
        if (all->written[0])
            cJSON_AddStringToObject(r, "file", all->written[0]);
    }
    if (all->joined) {
        cJSON *o = cJSON_AddObjectToObject(root, "clock_offset");
        fl_json_add_real(o, "s", (double)all->offset.offset_ns * 1e-9);
        cJSON_AddBoolToObject(o, "found", all->found);
        if (all->found) {
            fl_json_add_real(o, "error_s", all->offset.error_ns * 1e-9);
            fl_json_add_real(o, "correlation", all->offset.r);
            fl_json_add_real(o, "next_correlation", all->offset.next_r);
            cJSON_AddStringToObject(o, "signal", all->offset.signal);
        }
    }
    fl_json_add_texts(root, "notes", run->note, run->note_count);
    fl_json_tell(root);
}

static void print_text(const done *all) {
    const fl_imported *run = &all->run;
    for (size_t i = 0; i < run->doubt_count; i++)
        printf("note: %s\n", run->note[i]);
    if (run->has_kernels)
        printf("kernels     %zu kernels and %zu other ops of %zu kernel classes, from %s\n", kernels_of(&run->kernels),
               run->kernels.op_count - kernels_of(&run->kernels), run->kernels.kind_count, all->format[0]);
    if (run->has_telemetry) {
        printf("telemetry   %zu rows, from %s:", run->telemetry.row_count, all->format[1]);
        for (size_t i = 0; i < run->telemetry.signal_count; i++)
            printf(" %s", run->telemetry.signal[i]);
        fputc('\n', stdout);
    }
    if (run->has_sweep)
        printf("sweep       %zu measured settings, for other commands\n", run->sweep.row_count);
    if (run->has_requests) {
        const tokens_told t = tokens_of(&run->requests);
        const double n = (double)run->requests.count;
        printf(
            "requests    %zu over %.1f s, from %s: %.0f prompt and %.0f output tokens each on average, %.1f %% of the "
            "prompts' shared with earlier ones\n",
            run->requests.count, t.seconds, all->format[0], (double)t.prompt / n, (double)t.output / n,
            100 * (double)t.cached / (double)t.prompt);
    }
    if (all->found)
        printf(
            "offset      telemetry time = kernel time %+.6f s, about %.2g s to either side (correlation %.2f with %s; "
            "next best %.2f); sensors that\n            average or come late shift it by up to their delay\n",
            (double)all->offset.offset_ns * 1e-9, all->offset.error_ns * 1e-9, all->offset.r, all->offset.signal,
            all->offset.next_r);
    else if (all->joined)
        printf("offset      telemetry time = kernel time %+.6f s\n", (double)all->offset.offset_ns * 1e-9);
    for (size_t i = run->doubt_count; i < run->note_count; i++)
        printf("note: %s\n", run->note[i]);
    for (int i = 0; i < 2; i++)
        if (all->written[i])
            printf("written: %s\n", all->written[i]);
    if (!all->written[0] && !all->written[1])
        printf("nothing was written, since there is no -o OUT.csv\n");
}

static int list_formats(bool json) {
    const fl_page page = {.out = stdout, .width = fl_terminal_width(stdout)};
    if (json)
        fl_formats_tell();
    else
        fl_formats_print(&page);
    return FL_EXIT_OK;
}

int fl_cmd_import(int argc, char **argv) {
    ask a = {.offset_s = NAN, .device = -1};
    const fl_option option[] = {
        {"o", "FILE", FL_OPTION_OUTPUT, &a.output, 0, 0,
         "what to write; telemetry goes to FILE's name with .telemetry.csv", FL_FOR_OUTPUT},
        {"format", "NAME", FL_OPTION_LIST, &a.formats, 0, 0, "format, where it is not to be detected (or one per file)",
         FL_FOR_INPUT},
        FL_INTERVAL_OPTION(&a.interval_s),
        {"offset", "S", FL_OPTION_REAL, &a.offset_s, -4e9, 4e9,
         "telemetry time less kernel time, instead of finding it", FL_FOR_INPUT},
        {"map", "MAP|FILE.json", FL_OPTION_TEXT, &a.map, 0, 0,
         "a table of any shape: 'sm_mhz=COLUMN,time_s=COLUMN/1000,...' makes a sweep, "
         "'t=COLUMN,gpu=COLUMN,power_w=...' "
         "telemetry; or an object of such pairs",
         FL_FOR_INPUT},
        {"device", "N", FL_OPTION_INT, &a.device, 0, 1023, "only this device", FL_FOR_INPUT},
        {"list", NULL, FL_OPTION_FLAG, &a.list, 0, 0, "print the formats: tool and versions, what each gives and lacks",
         FL_FOR_OUTPUT},
        FL_STRICT_OPTION,
        FL_JSON_OPTION(&a.json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &a.files, &status))
        return status;
    fl_diag d = {0};
    done all = {0};
    const bool executed = fl_import_is_executed(&a.files);
    if (a.list && !a.files.count) {
        fl_command_end(option, sizeof option / sizeof *option, &a.files);
        return list_formats(a.json);
    }
    fl_status s = executed        ? fl_import_executed(&a.files, a.output, a.json, &d)
                  : a.files.count ? read_all(&a, &all, &d)
                                  : fl_refuse(&d, "no file given, expected one or more, see --help");
    if (!s && !executed)
        s = join(&a, &all, &d);
    if (!s && !executed)
        s = write_all(&a, &all, &d);
    if (!s && !executed && a.json)
        print_json(&all);
    else if (!s && !executed)
        print_text(&all);
    fl_imported_free(&all.run);
    free(all.written[0]);
    free(all.written[1]);
    return fl_command_close("import", s, &d, option, sizeof option / sizeof *option, &a.files);
}
