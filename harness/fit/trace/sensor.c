/* `foldline fit sensor`: refresh, window and gain of a power sensor. */
#include "harness/fit/trace/inside.h"

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

/* ---- meter ---- */

void fl_meter_free(fl_meter *m) {
    free(m->time_s);
    free(m->watts);
    *m = (fl_meter){0};
}

static fl_sensor_course fl_meter_course(const fl_meter *m) { return (fl_sensor_course){m->time_s, m->watts, m->count}; }

static void add(fl_meter *m, double time_s, double watts) {
    fl_must_grow(&m->time_s, &m->time_room, m->count + 1, sizeof *m->time_s);
    fl_must_grow(&m->watts, &m->watts_room, m->count + 1, sizeof *m->watts);
    m->time_s[m->count] = time_s;
    m->watts[m->count++] = watts;
}

/* ---- a plain CSV ---- */

enum { T_S, T_MS, T_US, T_NS, POWER, COLUMNS };
static const char *const COLUMN[COLUMNS] = {"t_s", "t_ms", "t_us", "t_ns", "power_w"};

typedef struct loader {
    fl_left_out left;
    fl_meter *m;
    size_t where[COLUMNS], width, time; /* time: which of the first four it is */
    double first;
} loader;

static fl_status take_header(loader *l, const fl_csv_row *row, fl_diag *d) {
    const fl_status s = fl_columns_find(row, COLUMN, COLUMNS, 0, l->where, d);
    l->width = row->count;
    for (l->time = 0; !s && l->time < POWER && l->where[l->time] == SIZE_MAX;)
        l->time++;
    if (!s && (l->time == POWER || l->where[POWER] == SIZE_MAX))
        return FL_FIELD_FAIL(d, row, row->count - 1, "expected a column of time (t_s, t_ms, t_us or t_ns) and power_w");
    return s;
}

static fl_status read_row(loader *l, const fl_csv_row *row, fl_diag *d) {
    static const double unit[] = {1, 1e-3, 1e-6, 1e-9};
    double time = 0, watts = 0;
    fl_status s = fl_columns_width(row, l->width, d);
    if (!s && (fl_no_value(row->field[l->where[l->time]].text) || fl_no_value(row->field[l->where[POWER]].text)))
        return fl_left_empty(&l->left, row->file, row->line, 1, d, "the time or the power has no value");
    if (!s)
        s = fl_field_real(row, l->where[l->time], COLUMN[l->time], -1e20, 1e20, &time, d);
    if (!s)
        s = fl_field_real(row, l->where[POWER], "power_w", -1e6, 1e6, &watts, d);
    if (s)
        return s;
    l->first = l->m->count ? l->first : time;
    const double at = (time - l->first) * unit[l->time];
    if (l->m->count && at <= l->m->time_s[l->m->count - 1])
        return FL_FIELD_WRONG(d, row, l->where[l->time], "the time does not rise, expected later than the row before");
    add(l->m, at, watts);
    return FL_OK;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    return l->width ? fl_left_row(&l->left, read_row(l, row, &l->left.own), d) : take_header(l, row, d);
}

/* ---- pauses ---- */

/* Keeps the longest stretch without a pause: across one, no value stood still and no mean is known. Returns its length.
 */
static size_t keep_longest(const char *path, double *time, double *watts, size_t count) {
    double *room = fl_must(malloc((count + 1) * sizeof *room));
    const double usual = fl_usual_spacing(time, count, room),
                 longest = usual > 0 ? FL_PAUSE_SPACINGS * usual : INFINITY;
    size_t from = 0, best = 0, best_from = 0, stretches = 0;
    free(room);
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && time[i + 1] - time[i] <= longest)
            continue;
        if (i + 1 - from > best) {
            best = i + 1 - from;
            best_from = from;
        }
        from = i + 1;
        stretches++;
    }
    if (stretches > 1) {
        fl_ticker_clear();
        fl_terminal_say(stderr, "note: %s: %zu pauses: the longest stretch without one is used, %zu of %zu readings",
                        basename(path), stretches - 1, best, count);
    }
    const double first = best ? time[best_from] : 0;
    for (size_t i = 0; i < best; i++) {
        time[i] = time[best_from + i] - first;
        watts[i] = watts[best_from + i];
    }
    return best;
}

/* ---- telemetry ---- */

static fl_status from_telemetry(const fl_telemetry *t, const char *path, fl_meter *m, fl_diag *d) {
    static const char *const signal[] = {"node_power_w", "power_w"};
    size_t column = SIZE_MAX;
    for (size_t i = 0; i < 2 && column == SIZE_MAX; i++)
        for (size_t k = 0; k < t->signal_count && column == SIZE_MAX; k++)
            if (!strcmp(t->signal[k], signal[i]))
                column = k;
    if (column == SIZE_MAX)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no power, expected node_power_w or power_w");
    int64_t first = 0;
    for (size_t i = 0; i < t->row_count; i++) {
        const double watts = t->value[i * t->signal_count + column];
        if (isnan(watts))
            continue;
        first = m->count ? first : t->t_ns[i];
        const double at = (double)(t->t_ns[i] - first) * 1e-9;
        if (!m->count || at > m->time_s[m->count - 1])
            add(m, at, watts);
    }
    return FL_OK;
}

fl_status fl_meter_read(const char *path, fl_meter *m, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-meter", .head_optional = true};
    const fl_import_options all = {.device = -1};
    const fl_reader *reader = NULL;
    fl_diag ignored = {0};
    fl_imported in = {0};
    fl_head head = {0};
    loader l = {.m = m, .left = fl_left_begin(&l.left)};
    *m = (fl_meter){0};
    fl_status s;
    if (!fl_reader_find(path, NULL, &reader, &ignored)) {
        s = fl_reader_read(reader, path, &all, &in, d);
        fl_notes_tell(path, in.note, s ? 0 : in.doubt_count);
        if (!s && !in.has_telemetry)
            s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no telemetry, expected what a power meter recorded");
        if (!s)
            s = from_telemetry(&in.telemetry, path, m, d);
    } else {
        s = fl_csv_read(path, &OPTIONS, &head, on_row, &l, d);
        if (!s)
            s = fl_left_end(&l.left, NULL, path, d);
        if (!s)
            fl_left_tell(path, &l.left);
    }
    if (!s)
        m->count = keep_longest(path, m->time_s, m->watts, m->count);
    if (!s && m->count < 2)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "%zu samples of power, expected two or more", m->count);
    fl_imported_free(&in);
    fl_head_free(&head);
    if (s)
        fl_meter_free(m);
    return s;
}

/* Learns a board's power sensor from its log and from the recording of an external meter. */

static const fl_command_help help = {
    "fit sensor", "LOG [--meter METER] [-o SENSORS.json]",
    "Identifies a power sensor: how often it refreshes, its resolution, and the window over which it averages.",
    "LOG holds readings of the board (nvidia-smi at its shortest interval, foldline record) while the power goes up "
    "and down some ten times. The log alone tells the refresh period, the resolution and how long a value may stand "
    "still. Averaging window, lag and gain also need a METER over the same time: a CSV with t_s, t_ms, t_us or t_ns "
    "and power_w, or any telemetry that foldline import reads. The two clocks need not agree: the command finds the "
    "shift by correlation.\n\n"
    "-o writes rows for a platform file, under gpu.sensors. The command only prints gain and offset: a platform's "
    "sensors have neither."};

typedef struct options {
    fl_texts log;
    const char *meter, *out, *signal, *format;
    int64_t device;
    double interval_s;
    bool json;
} options;

typedef struct readings { /* one signal of one GPU */
    double *time_s, *watts;
    size_t count;
    const char *name;
    int32_t device;
} readings;

typedef struct learnt {
    fl_sensor_learnt s;
    bool metered, found; /* found: the meter revealed the window */
    double r;            /* correlation at the shift */
} learnt;

/* ---- reading ---- */

static size_t column_of(const fl_telemetry *t, const char *name) {
    for (size_t i = 0; i < t->signal_count; i++)
        if (!strcmp(t->signal[i], name))
            return i;
    return SIZE_MAX;
}

static fl_status take_readings(const options *o, const fl_telemetry *t, const char *path, readings *r, fl_diag *d) {
    const size_t column = column_of(t, r->name);
    if (column == SIZE_MAX)
        return fl_fail_unknown(d, path, "signal", r->name, (const char *const *)t->signal, t->signal_count);
    r->time_s = fl_must(malloc((t->row_count + 1) * sizeof *r->time_s));
    r->watts = fl_must(malloc((t->row_count + 1) * sizeof *r->watts));
    r->device = -1;
    int64_t first = 0;
    for (size_t i = 0; i < t->row_count; i++) {
        if (t->device[i] < 0 || (o->device >= 0 && t->device[i] != o->device) ||
            (r->device >= 0 && t->device[i] != r->device))
            continue;
        r->device = t->device[i];
        first = r->count ? first : t->t_ns[i];
        r->time_s[r->count] = (double)(t->t_ns[i] - first) * 1e-9;
        r->watts[r->count++] = t->value[i * t->signal_count + column];
    }
    if (!r->count)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no reading of that GPU");
    r->count = keep_longest(path, r->time_s, r->watts, r->count);
    return FL_OK;
}

static fl_status read_log(const options *o, const char *path, readings *r, fl_diag *d) {
    const fl_import_options import = {.interval_s = o->interval_s, .device = -1};
    fl_imported in = {0};
    fl_status s = fl_trace_open(path, o->format, &import, &in, d);
    if (!s && !in.has_telemetry)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no telemetry, expected a log of power readings");
    if (!s)
        s = take_readings(o, &in.telemetry, path, r, d);
    fl_notes_tell(path, in.note, s ? 0 : in.doubt_count);
    fl_imported_free(&in);
    return s;
}

/* ---- learning ---- */

static fl_status beside_meter(const char *path, const fl_sensor_log *log, learnt *l, fl_diag *d) {
    fl_meter meter;
    double shift = 0;
    fl_status s = fl_meter_read(path, &meter, d);
    if (s)
        return s;
    const fl_sensor_course course = fl_meter_course(&meter);
    fl_model_status m = fl_sensor_shift(&course, log, &shift, &l->r);
    if (m == FL_MODEL_OK)
        m = fl_sensor_learn_window(&course, log, shift, &l->s);
    fl_meter_free(&meter);
    fl_must_have(m != FL_MODEL_NO_MEMORY);
    l->metered = true;
    l->found = m == FL_MODEL_OK;
    return m == FL_MODEL_OK ? FL_OK
                            : fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                                      "the meter does not follow the log (%s), expected both over the same time with "
                                      "the power going up and down",
                                      fl_model_text(m));
}

static fl_status learn(const options *o, const readings *r, const char *path, learnt *l, fl_diag *d) {
    const fl_sensor_log log = {r->time_s, r->watts, r->count};
    const fl_model_status m = fl_sensor_learn(&log, &l->s);
    fl_must_have(m != FL_MODEL_NO_MEMORY);
    if (m != FL_MODEL_OK)
        return fl_fail(
            d, FL_BAD_INPUT, path, 0, 0,
            "%s shows no regular refresh period, expected readings more frequent than the sensor's refreshes and at "
            "least 8 changes",
            r->name);
    return o->meter ? beside_meter(o->meter, &log, l, d) : FL_OK;
}

/* ---- reports ---- */

static cJSON *rows_of(const learnt *l, const char *signal) {
    cJSON *root = cJSON_CreateObject(), *gpu = cJSON_AddObjectToObject(root, "gpu"),
          *sensors = cJSON_AddObjectToObject(gpu, "sensors"),
          *row = cJSON_AddObjectToObject(sensors, !strcmp(signal, "power_instant_w") ? "power_instant" : "power");
    fl_json_add_real(row, "refresh_ms", round(l->s.period_s * 1e4) / 10);
    if (l->found && l->s.window_ns)
        fl_json_add_real(row, "window_ms", (double)l->s.window_ns * 1e-6);
    if (l->found && l->s.lag_ns)
        fl_json_add_real(row, "lag_ms", (double)l->s.lag_ns * 1e-6);
    if (l->s.quantum > 0)
        fl_json_add_real(row, "quantum", l->s.quantum);
    return root;
}

static void print_kind(int64_t window_ns, int64_t lag_ns) {
    if (lag_ns)
        printf("a lag of %.4g ms", (double)lag_ns * 1e-6);
    else if (window_ns)
        printf("the mean of %.4g ms", (double)window_ns * 1e-6);
    else
        printf("the value at the instant");
}

static void print_text(const learnt *l, const readings *r) {
    const fl_sensor_learnt *s = &l->s;
    printf("sensor    %s of GPU %d: %zu readings over %.1f s, low to high %.1f W\n", r->name, (int)r->device,
           s->readings, r->time_s[r->count - 1], s->step_w);
    printf("refresh   %.1f ms; a value stood for up to %.0f ms\n", 1e3 * s->period_s, 1e3 * s->held_s);
    if (s->quantum > 0)
        printf("steps     %g W\n", s->quantum);
    if (l->found) {
        printf("shows     ");
        print_kind(s->window_ns, s->lag_ns);
        if (s->low_ns < s->high_ns)
            printf(" (%.4g to %.4g ms fit as well)", (double)s->low_ns * 1e-6, (double)s->high_ns * 1e-6);
        printf(": %.2f %% of low to high off the meter; next best, ", s->rms_pct);
        print_kind(s->next_window_ns, s->next_lag_ns);
        printf(": %.2f %%\n", s->next_rms_pct);
        printf("gain      %.4f of the meter's watts and %+.2f W; the meter's clock is %+.4f s from the log's\n",
               s->match.gain, s->match.offset, s->match.shift_s);
    } else {
        printf("note: window, lag and gain are unknown: a log alone does not determine them (--meter does)\n");
    }
}

static void print_json(const learnt *l, const readings *r) {
    const fl_sensor_learnt *s = &l->s;
    cJSON *root = rows_of(l, r->name);
    cJSON_AddStringToObject(root, "signal", r->name);
    cJSON_AddNumberToObject(root, "device", r->device);
    cJSON_AddNumberToObject(root, "readings", (double)s->readings);
    fl_json_add_real(root, "held_ms", 1e3 * s->held_s);
    fl_json_add_real(root, "step_w", s->step_w);
    if (l->found) {
        fl_json_add_real(root, "rms_pct", s->rms_pct);
        fl_json_add_real(root, "low_ms", (double)s->low_ns * 1e-6);
        fl_json_add_real(root, "high_ms", (double)s->high_ns * 1e-6);
        fl_json_add_real(root, "next_window_ms", (double)s->next_window_ns * 1e-6);
        fl_json_add_real(root, "next_lag_ms", (double)s->next_lag_ns * 1e-6);
        fl_json_add_real(root, "next_rms_pct", s->next_rms_pct);
        fl_json_add_real(root, "gain", s->match.gain);
        fl_json_add_real(root, "offset_w", s->match.offset);
        fl_json_add_real(root, "shift_s", s->match.shift_s);
        fl_json_add_real(root, "correlation", l->r);
    }
    fl_json_tell(root);
}

static fl_status write_rows(const options *o, const learnt *l, const readings *r, fl_diag *d) {
    cJSON *rows = rows_of(l, r->name);
    const fl_status s = fl_json_write(o->out, rows, d);
    cJSON_Delete(rows);
    return s;
}

int fl_cmd_fit_sensor(int argc, char **argv) {
    options o = {.device = -1, .signal = "power_w"};
    const fl_option option[] = {
        {"meter", "METER", FL_OPTION_TEXT, &o.meter, 0, 0, "what an external power meter saw over the same time",
         FL_FOR_INPUT},
        {"signal", "NAME", FL_OPTION_TEXT, &o.signal, 0, 0, "which readings (power_w; power_instant_w)", FL_FOR_INPUT},
        {"device", "N", FL_OPTION_INT, &o.device, 0, 65535, "the GPU, where the log has several (the first)",
         FL_FOR_INPUT},
        {"format", "NAME", FL_OPTION_TEXT, &o.format, 0, 0, "format of the log, where it is not to be detected",
         FL_FOR_INPUT},
        FL_INTERVAL_OPTION(&o.interval_s),
        {"o", "FILE", FL_OPTION_OUTPUT, &o.out, 0, 0, "rows for a platform file", FL_FOR_OUTPUT},
        FL_STRICT_OPTION,
        FL_JSON_OPTION(&o.json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &o.log, &status))
        return status;
    fl_diag d = {0};
    readings r = {.name = o.signal};
    learnt l = {0};
    fl_status s = o.log.count == 1 ? read_log(&o, o.log.item[0], &r, &d) : fl_refuse(&d, "expected one log");
    if (!s)
        s = learn(&o, &r, o.log.item[0], &l, &d);
    if (!s && o.json)
        print_json(&l, &r);
    else if (!s)
        print_text(&l, &r);
    if (!s && o.out && !(s = write_rows(&o, &l, &r, &d)) && !o.json)
        printf("written: %s\n", o.out);
    free(r.time_s);
    free(r.watts);
    return fl_command_close(help.name, s, &d, option, sizeof option / sizeof *option, &o.log);
}
