/* Turns logs of runs at fixed clocks into a sweep, which the other fits read. */
#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "fit logs", "LOG... -o SWEEP.csv [--workload NAME]",
    "Makes a sweep of telemetry logs, each of one run of a program at one pair of clocks.",
    "LOG may be any log that foldline import reads (nvidia-smi, dcgmi, foldline record, foldline run --telemetry). The "
    "head of the log states how long the run took (program: A to B ns); without it, the run lasts from the first to "
    "the last reading with a busy GPU (where utilisation does not tell, of more than a quarter of the way from idle to "
    "load), "
    "exact to half a reading's spacing at either end. The energy comes from the "
    "board's counter. Without a counter it comes from the mean power, less the first two seconds (or a fifth of a "
    "short run), in which a sensor may still average in what came before. The command reports and leaves out a run "
    "whose clocks changed.\n\n"
    "A clock that moves between neighbouring steps counts with its mean. A log without clocks has the clock of its "
    "name "
    "(NAME@1050.csv, name_1050MHz.csv) or of --sm-mhz.\n\n"
    "The workload's name: --workload, else the log's head, else the file's name without the clock and without words "
    "that name a setting (default, locked)."};

typedef struct logs_options {
    const char *out, *workload, *format, *clocks;
    double interval_s;
    int64_t device;
    bool json;
} logs_options;

typedef struct ran { /* the log of a row */
    const char *path;
    bool idle_before, idle_after;
    double limit_w; /* the board's; NAN: not known */
} ran;

typedef struct runs {
    fl_sweep sweep;
    ran *ran; /* of each row of the sweep */
    size_t room;
} runs;

/* Say what concerns the user of the sweep too: its head keeps it (FL_LEFT_KEY). */
static void say(fl_sweep *s, const char *path, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(fl_sweep *s, const char *path, const char *format, ...) {
    va_list list;
    char *text = NULL;
    va_start(list, format);
    fl_must_have(vasprintf(&text, format, list) >= 0);
    va_end(list);
    const char *before = fl_head_get(&s->head, FL_LEFT_KEY);
    char *all = fl_must_print("%s%s%s: %s", before ? before : "", before ? "; " : "", basename(path), text);
    fl_must_have(fl_head_set(&s->head, FL_LEFT_KEY, all));
    fl_ticker_clear();
    fl_terminal_say(stderr, "note: %s: %s", path, text);
    free(all);
    free(text);
}

static char *name_of(const logs_options *o, const fl_telemetry *t, const char *path, const fl_log_run *run) {
    return fl_must(o->workload ? strdup(o->workload) : fl_log_program(path, &t->head, run, false));
}

static fl_status add_run(runs *all, const logs_options *o, const char *path, double sm_mhz, const fl_telemetry *t,
                         fl_diag *d) {
    fl_log_run run;
    fl_log_ends ends;
    fl_sweep *s = &all->sweep;
    const fl_status status = fl_log_run_find(path, t, o->device, sm_mhz, &run, &ends, d);
    if (status)
        return status;
    if (!run.steady) {
        say(s, path, FL_LOG_CHANGED "; left out", FL_LOG_CHANGE(&run));
        return FL_OK;
    }
    if (!ends.whole)
        say(s, path, "the GPU does not idle before and after the run, which may be longer");
    if (ends.idle_s > 0)
        say(s, path, FL_LOG_IDLES, ends.idle_s, ends.idle_at_s);
    if (!isnan(ends.above_w))
        say(s, path, FL_LOG_BY_POWER, ends.above_w);
    if (fl_accounts_differ(ends.counter_w, ends.sensor_w))
        say(s, path, FL_LOG_ACCOUNTS, ends.counter_w, ends.sensor_w);
    if (run.sm_low_mhz < run.sm_high_mhz) {
        fl_ticker_clear();
        fl_terminal_say(stderr, "note: %s: " FL_LOG_WANDERS, path, run.sm_low_mhz, run.sm_high_mhz, run.sm_mhz);
    }
    fl_must_grow(&s->names, &s->name_room, s->name_count + 1, sizeof *s->names);
    fl_must_grow(&s->rows, &s->row_room, s->row_count + 1, sizeof *s->rows);
    fl_must_grow(&all->ran, &all->room, s->row_count + 1, sizeof *all->ran);
    all->ran[s->row_count] = (ran){path, ends.idle_before, ends.idle_after, run.limit_w};
    s->names[s->name_count] = name_of(o, t, path, &run);
    s->rows[s->row_count++] = (fl_sweep_row){.workload = (uint32_t)s->name_count++,
                                             .sm_mhz = run.sm_mhz,
                                             .mem_mhz = run.mem_mhz,
                                             .power_cap_w = NAN,
                                             .time_s = run.time_s,
                                             .power_w = run.power_w,
                                             .energy_j = run.power_w * run.time_s,
                                             .energy_cv = NAN,
                                             .ratio = NAN,
                                             .ratio_cv = NAN};
    return FL_OK;
}

/* Leaves out a run that the log does not have whole: it ends (or begins) under load where another log of the program is
 * idle there, as advise judges too. */
static void leave_cut(runs *all) {
    fl_sweep *s = &all->sweep;
    size_t kept = 0;
    for (size_t i = 0; i < s->row_count; i++)
        for (size_t k = 0; k < s->row_count && all->ran[i].path; k++) {
            const ran *a = &all->ran[i], *b = &all->ran[k];
            const bool before = b->idle_before && !a->idle_before, after = b->idle_after && !a->idle_after;
            if ((!before && !after) || strcmp(s->names[s->rows[i].workload], s->names[s->rows[k].workload]) != 0)
                continue;
            say(s, a->path,
                "the log %s under load, while another of the program %s idle: it does not have the whole "
                "run; left out",
                after ? "ends" : "begins", after ? "ends" : "begins");
            all->ran[i].path = NULL;
        }
    for (size_t i = 0; i < s->row_count; i++)
        if (all->ran[i].path) {
            all->ran[kept] = all->ran[i];
            s->rows[kept++] = s->rows[i];
        }
    s->row_count = kept;
}

/* Gives each row the power limit that may have bound it, as advise does. */
static void set_limits(runs *all) {
    fl_sweep *s = &all->sweep;
    for (size_t i = 0; i < s->row_count; i++) {
        double highest = 0;
        for (size_t k = 0; k < s->row_count; k++)
            if (!strcmp(s->names[s->rows[i].workload], s->names[s->rows[k].workload]))
                highest = fmax(highest, isnan(all->ran[k].limit_w) ? 0 : all->ran[k].limit_w);
        s->rows[i].power_cap_w = fl_log_limit(all->ran[i].limit_w, s->rows[i].power_w, highest);
    }
}

static fl_status read_all(runs *all, const logs_options *o, const fl_texts *logs, fl_diag *d) {
    const fl_import_options how = {.interval_s = o->interval_s, .device = (int32_t)o->device};
    fl_sweep *s = &all->sweep;
    double *mhz = fl_must(calloc(logs->count, sizeof *mhz));
    fl_status status = fl_log_clocks(o->clocks, logs->count, mhz, d);
    fl_must_grow(&s->names, &s->name_room, 1, sizeof *s->names);
    s->names[0] = fl_must(strdup(""));
    s->name_count = 1; /* name 0 is the kernel of every row */
    for (size_t i = 0; !status && i < logs->count; i++) {
        fl_imported in = {0};
        status = fl_log_open(logs->item[i], o->format, &how, &in, d);
        if (!status && !in.has_telemetry)
            status = fl_fail(d, FL_BAD_INPUT, logs->item[i], 0, 0, "no telemetry, expected a log of clocks and power");
        if (!status)
            status = add_run(all, o, logs->item[i], mhz[i], &in.telemetry, d);
        if (!status)
            status = fl_import_head_left(&s->head, &in, basename(logs->item[i]), d);
        fl_notes_tell(logs->item[i], in.note, status ? 0 : in.note_count);
        fl_imported_free(&in);
    }
    free(mhz);
    if (status)
        return status;
    leave_cut(all);
    set_limits(all);
    if (s->row_count == 0)
        return fl_fail(d, FL_BAD_INPUT, logs->item[0], 0, 0, "no run at steady clocks");
    fl_must_have(fl_head_set(&s->head, "source", "foldline fit logs"));
    return FL_OK;
}

/* Say which clocks were not those that were set. A sweep too small to be judged says nothing. */
static void tell_clocks(const char *path) {
    const fl_texts file = {.item = &path, .count = 1}, only = {0};
    fl_fit_rows r = {0};
    fl_diag ignored = {0};
    if (!fl_fit_rows_read(&file, &only, &r, &ignored) && !fl_fit_drop_unsound(&r, &ignored))
        for (size_t i = 0; i < r.clocks; i++) {
            fl_ticker_clear();
            fl_terminal_say(stderr,
                            "note: %s: runs at %g MHz in fact ran at about %.0f MHz, by the times of %u workload%s; "
                            "fits that read this sweep take them at that clock",
                            path, r.clock[i].sm_mhz, r.clock[i].ran_mhz, r.clock[i].workloads,
                            r.clock[i].workloads > 1 ? "s" : "");
        }
    fl_fit_rows_free(&r);
}

static void print_json(const fl_sweep *s, size_t logs, const char *out) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "logs", (double)logs);
    cJSON_AddStringToObject(root, "file", out);
    cJSON *rows = cJSON_AddArrayToObject(root, "rows");
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        cJSON *row = fl_json_add_row(rows);
        cJSON_AddStringToObject(row, "workload", s->names[r->workload]);
        fl_json_add_real(row, "sm_mhz", r->sm_mhz);
        fl_json_add_real(row, "mem_mhz", r->mem_mhz);
        fl_json_add_real(row, "power_cap_w", r->power_cap_w);
        fl_json_add_real(row, "time_s", r->time_s);
        fl_json_add_real(row, "power_w", r->power_w);
        fl_json_add_real(row, "energy_j", r->energy_j);
    }
    fl_json_tell(root);
}

int fl_cmd_fit_logs(int argc, char **argv) {
    logs_options o = {.device = -1};
    fl_texts logs = {0};
    const fl_option option[] = {
        {"o", "FILE", FL_OPTION_OUTPUT, &o.out, 0, 0, "the sweep to write", FL_FOR_OUTPUT},
        {"workload", "NAME", FL_OPTION_TEXT, &o.workload, 0, 0, "what ran in all these logs", FL_FOR_INPUT},
        {"sm-mhz", "MHZ", FL_OPTION_TEXT, &o.clocks, 0, 0,
         "SM clock of logs that state none: one, or one for each (1050,1410)", FL_FOR_INPUT},
        {"device", "N", FL_OPTION_INT, &o.device, 0, 65535, "the GPU, where a log has several", FL_FOR_INPUT},
        {"format", "NAME", FL_OPTION_TEXT, &o.format, 0, 0, "format, where it is not to be detected", FL_FOR_INPUT},
        FL_INTERVAL_OPTION(&o.interval_s),
        FL_STRICT_OPTION,
        FL_JSON_OPTION(&o.json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &logs, &status))
        return status;
    fl_diag d = {0};
    runs all = {0};
    fl_sweep *const sweep = &all.sweep;
    fl_status s = FL_OK;
    if (!logs.count)
        s = fl_refuse(&d, "no log given");
    else if (!o.out)
        s = fl_refuse(&d, "nowhere to write, expected -o FILE");
    if (!s)
        s = read_all(&all, &o, &logs, &d);
    if (!s)
        s = fl_sweep_write(o.out, sweep, &d);
    if (!s)
        tell_clocks(o.out);
    if (!s && o.json)
        print_json(sweep, logs.count, o.out);
    else if (!s)
        printf("%zu of %zu runs; written: %s\n", sweep->row_count, logs.count, o.out);
    fl_sweep_free(sweep);
    free(all.ran);
    return fl_command_close(help.name, s, &d, option, sizeof option / sizeof *option, &logs);
}
