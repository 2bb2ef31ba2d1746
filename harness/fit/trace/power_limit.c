/* `foldline fit power-limit`: the control law of a board's power limit, from logs with steps of the limit. */
#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "models/fit/fit.h"
#include "models/math/math.h"
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

#define RECOVER_MS 250 /* no step tells how long the clock rises at each look */

static const fl_command_help help = {
    "fit power-limit", "LOG... [-o WALL.json]",
    "Finds how a board holds its power limit: the law that moves the clock, and how often.",
    "LOG is telemetry with power_w, sm_mhz and power_limit_w, read each 20 ms or more often, while the limit goes down "
    "and up by 5 % or more under a load that reaches it. Several logs of one board count together. While power P is "
    "over the limit L, the board multiplies the clock by (aim L / P)^exponent, at each look. Below, it does so on a "
    "slower grid, by a largest move at most. Overshoot is how far power falls below its later mean after a step down. "
    "The filter is the one with which the law has that overshoot.\n\n"
    "-o writes rows for a platform file, under gpu.wall. Without a step up the grid and the largest move are unknown "
    "and left out."};

typedef struct options {
    fl_texts log;
    const char *out, *format;
    int64_t device;
    double interval_s;
    bool json;
} options;

enum { TIME, WATTS, MHZ, LIMIT, COLUMNS };
static const char *const SIGNAL[COLUMNS] = {[WATTS] = "power_w", [MHZ] = "sm_mhz", [LIMIT] = "power_limit_w"};

static fl_status take_readings(const options *o, const fl_telemetry *t, const char *path, double *column[COLUMNS],
                               fl_limit_log *log, fl_diag *d) {
    size_t at[COLUMNS] = {0};
    for (size_t k = WATTS; k < COLUMNS; k++) {
        while (at[k] < t->signal_count && strcmp(t->signal[at[k]], SIGNAL[k]) != 0)
            at[k]++;
        if (at[k] == t->signal_count)
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no %s, expected power_w, sm_mhz and power_limit_w", SIGNAL[k]);
    }
    int32_t device = o->device >= 0 ? (int32_t)o->device : -1;
    for (size_t k = 0; k < COLUMNS; k++)
        column[k] = fl_must(malloc((t->row_count + 1) * sizeof *column[k]));
    size_t n = 0;
    for (size_t i = 0; i < t->row_count; i++) {
        if (t->device[i] < 0 || (device >= 0 && t->device[i] != device))
            continue;
        const double time = (double)t->t_ns[i] * 1e-9;
        if (n && time <= column[TIME][n - 1])
            continue;
        device = t->device[i];
        column[TIME][n] = time;
        for (size_t k = WATTS; k < COLUMNS; k++)
            column[k][n] = t->value[i * t->signal_count + at[k]];
        n++;
    }
    *log = (fl_limit_log){column[TIME], column[WATTS], column[MHZ], column[LIMIT], n};
    return n ? FL_OK : fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no reading of that GPU");
}

static fl_status read_log(const options *o, const char *path, double *column[COLUMNS], fl_limit_log *log, fl_diag *d) {
    const fl_import_options import = {.interval_s = o->interval_s, .device = -1};
    fl_imported in = {0};
    fl_status s = fl_trace_open(path, o->format, &import, &in, d);
    if (!s && !in.has_telemetry)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no telemetry, expected a log of power, clock and power limit");
    if (!s)
        s = take_readings(o, &in.telemetry, path, column, log, d);
    fl_notes_tell(path, in.note, s ? 0 : in.doubt_count);
    fl_imported_free(&in);
    return s;
}

static fl_status learn(const options *o, fl_limit_learnt *l, fl_diag *d) {
    fl_limit_log *log = fl_must(calloc(o->log.count, sizeof *log));
    double *(*column)[COLUMNS] = fl_must(calloc(o->log.count, sizeof *column));
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < o->log.count; i++)
        s = read_log(o, o->log.item[i], column[i], &log[i], d);
    if (!s) {
        const fl_model_status m = fl_limit_learn(log, o->log.count, l);
        fl_must_have(m != FL_MODEL_NO_MEMORY);
        if (m != FL_MODEL_OK)
            s = fl_fail(
                d, FL_BAD_INPUT, o->log.item[0], 0, 0,
                "no step of the limit that the clock follows, expected a lower limit by 5 %% or more that power "
                "falls to in two moves of the clock, and 0.5 s after it");
    }
    for (size_t i = 0; i < o->log.count; i++)
        for (size_t k = 0; k < COLUMNS; k++)
            free(column[i][k]);
    free(column);
    free(log);
    return s;
}

/* ---- reports ---- */

static double rounded(double value, double unit) { return round(value / unit) * unit; }

static cJSON *rows_of(const fl_limit_learnt *l) {
    cJSON *root = cJSON_CreateObject(), *gpu = cJSON_AddObjectToObject(root, "gpu"),
          *wall = cJSON_AddObjectToObject(gpu, "wall"), *notes = cJSON_AddObjectToObject(root, "notes");
    fl_json_add_real(wall, "period_ms", rounded(l->period_s * 1e3, 0.1));
    fl_json_add_real(wall, "filter_ms", rounded(l->filter_s * 1e3, 1));
    fl_json_add_real(wall, "exponent", rounded(l->exponent, 0.001));
    fl_json_add_real(wall, "aim", rounded(fmin(l->aim, 1), 0.001));
    if (!isnan(l->rise_s))
        fl_json_add_real(wall, "rise_ms", rounded(l->rise_s * 1e3, 0.1));
    if (!isnan(l->rise_mhz))
        fl_json_add_real(wall, "rise_mhz", l->rise_mhz);
    fl_json_add_real(wall, "recover_ms", RECOVER_MS);
    cJSON_AddStringToObject(notes, "gpu.wall",
                            "fitted: foldline fit power-limit; recover_ms assumed, as on a V100 (v100-300w)");
    return root;
}

static void print_text(const fl_limit_learnt *l, const char *out) {
    printf("steps     %zu down, %zu up\n", l->downs, l->ups);
    printf(
        "over      each %.1f ms the clock is multiplied by (%.3f limit / power)^%.3f; exponents of the %zu moves: %.2f "
        "to %.2f\n",
        l->period_s * 1e3, l->aim, l->exponent, l->moves, l->low, l->high);
    if (isnan(l->rise_s))
        printf("note: rise_ms is unknown: no step up with two moves of the clock\n");
    else
        printf("below     each %.1f ms, by %g MHz at most%s: %zu moves\n", l->rise_s * 1e3, l->rise_mhz,
               l->rise_bound ? "" : " (the law would not have moved further, so the largest move may be higher)",
               l->rises);
    printf("overshoot %.1f %% of a step down, as with a power filter of %.0f ms\n", 100 * l->overshoot,
           l->filter_s * 1e3);
    if (out)
        printf("written: %s\n", out);
}

static void print_json(const fl_limit_learnt *l) {
    cJSON *root = rows_of(l);
    cJSON_AddNumberToObject(root, "steps_down", (double)l->downs);
    cJSON_AddNumberToObject(root, "steps_up", (double)l->ups);
    cJSON_AddNumberToObject(root, "moves_down", (double)l->moves);
    cJSON_AddNumberToObject(root, "moves_up", (double)l->rises);
    fl_json_add_real(root, "exponent_low", l->low);
    fl_json_add_real(root, "exponent_high", l->high);
    fl_json_add_real(root, "overshoot_pct", 100 * l->overshoot);
    cJSON_AddBoolToObject(root, "rise_bound", l->rise_bound);
    fl_json_tell(root);
}

static fl_status write_rows(const char *path, const fl_limit_learnt *l, fl_diag *d) {
    cJSON *rows = rows_of(l);
    const fl_status s = fl_json_write(path, rows, d);
    cJSON_Delete(rows);
    return s;
}

int fl_cmd_fit_power_limit(int argc, char **argv) {
    options o = {.device = -1};
    const fl_option option[] = {
        {"o", "FILE", FL_OPTION_OUTPUT, &o.out, 0, 0, "rows for a platform file", FL_FOR_OUTPUT},
        {"device", "N", FL_OPTION_INT, &o.device, 0, 65535, "the GPU, where a log has several (the first)",
         FL_FOR_INPUT},
        {"format", "NAME", FL_OPTION_TEXT, &o.format, 0, 0, "format, where it is not to be detected", FL_FOR_INPUT},
        FL_INTERVAL_OPTION(&o.interval_s),
        FL_STRICT_OPTION,
        FL_JSON_OPTION(&o.json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &o.log, &status))
        return status;
    fl_diag d = {0};
    fl_limit_learnt l = {0};
    fl_status s = o.log.count ? learn(&o, &l, &d) : fl_refuse(&d, "no log given");
    if (!s && o.out)
        s = write_rows(o.out, &l, &d);
    if (!s && o.json)
        print_json(&l);
    else if (!s)
        print_text(&l, o.out);
    return fl_command_close(help.name, s, &d, option, sizeof option / sizeof *option, &o.log);
}
