/* Logs of runs at fixed clocks as a sweep, which the other fits read. */
#include "harness/base/command.h"
#include "harness/fit/fit.h"
#include "traces/tables.h"
#include "traces/trace_open.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "fit logs", "LOG... -o SWEEP.csv [--workload NAME]",
    "Makes a sweep of telemetry logs, each of one run of a program at one pair of clocks.",
    "Any log that foldline import reads will do (nvidia-smi, dcgmi, foldline record, foldline run --telemetry). How "
    "long\n"
    "the run took: as the log's head says (program: A to B ns), else from the first to the last reading with a busy "
    "GPU,\n"
    "to half a reading's spacing at either end. Energy: by the board's counter where it has one, else the mean of its\n"
    "power readings without the first two seconds (a fifth of a short run), which a sensor may still average with what "
    "was\n"
    "before. A run whose clocks changed is left out, and said to be.\n"
    "\n"
    "The workload's name: --workload, else the log's head, else the file's name up to the first '.' or '@'."};

#define STEADY 0.9 /* share of the readings that must show the median clock */
#define SETTLE_S 2.0
#define SETTLE_SHARE 0.2

typedef struct logs_options {
    const char *out, *workload, *format;
    double interval_s;
    int64_t device;
} logs_options;

typedef struct run_seen { /* one device's rows within the run */
    const fl_telemetry *t;
    size_t *row, count;
    double from_s, to_s;
} run_seen;

static double value_at(const fl_telemetry *t, size_t row, const char *signal) {
    for (size_t k = 0; k < t->signal_count; k++)
        if (!strcmp(t->signal[k], signal))
            return t->value[row * t->signal_count + k];
    return NAN;
}

static double seconds(const run_seen *r, size_t i) { return (double)r->t->t_ns[r->row[i]] * 1e-9; }

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* When the run was: its rows stay. FL_BAD_INPUT where the GPU was never busy. */
static fl_status find_run(run_seen *r, const char *path, fl_diag *d) {
    const char *program = fl_head_get(&r->t->head, "program");
    long long from = 0, to = 0;
    size_t first = SIZE_MAX, last = 0;
    if (program && sscanf(program, "%lld to %lld ns", &from, &to) == 2 && to > from) {
        r->from_s = (double)from * 1e-9;
        r->to_s = (double)to * 1e-9;
    } else {
        for (size_t i = 0; i < r->count; i++) {
            const double busy = value_at(r->t, r->row[i], "util_gpu_pct");
            if (isnan(busy) || busy <= 0)
                continue;
            first = first == SIZE_MAX ? i : first;
            last = i;
        }
        if (first == SIZE_MAX || last == first)
            return fl_fail(
                d, FL_BAD_INPUT, path, 0, 0,
                "no reading with a busy GPU, expected util_gpu_pct or a head that says when the program ran");
        r->from_s = first ? 0.5 * (seconds(r, first - 1) + seconds(r, first)) : seconds(r, first);
        r->to_s = last + 1 < r->count ? 0.5 * (seconds(r, last) + seconds(r, last + 1)) : seconds(r, last);
    }
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++)
        if (seconds(r, i) >= r->from_s && seconds(r, i) <= r->to_s)
            r->row[n++] = r->row[i];
    r->count = n;
    return n >= 3 ? FL_OK
                  : fl_fail(d, FL_BAD_INPUT, path, 0, 0, "%zu readings during the run, expected three or more", n);
}

/* Median of a clock; *steady: whether it held. NAN where the log does not know it. */
static double clock_of(const run_seen *r, const char *signal, double *room, bool *steady) {
    size_t n = 0, same = 0;
    for (size_t i = 0; i < r->count; i++) {
        const double f = value_at(r->t, r->row[i], signal);
        if (f > 0 && seconds(r, i) > r->from_s) /* at the very start the clock may not be set yet */
            room[n++] = f;
    }
    if (n == 0)
        return NAN;
    qsort(room, n, sizeof *room, ascending);
    const double median = room[n / 2];
    for (size_t i = 0; i < n; i++)
        same += fabs(room[i] - median) < 1.5;
    *steady = *steady && (double)same >= STEADY * (double)n;
    return median;
}

/* Mean power by the energy counter, between the first and the last reading that shows a new value; NAN where there is
 * none or it went back. */
static double counter_power(const run_seen *r) {
    double first_j = NAN, first_s = 0, last_j = NAN, last_s = 0, before = NAN;
    for (size_t i = 0; i < r->count; i++) {
        const double e = value_at(r->t, r->row[i], "energy_j");
        if (isnan(e))
            continue;
        if (e < before)
            return NAN;
        if (e > before) {
            if (isnan(first_j)) {
                first_j = e;
                first_s = seconds(r, i);
            }
            last_j = e;
            last_s = seconds(r, i);
        }
        before = e;
    }
    return last_s - first_s > 0.5 * (r->to_s - r->from_s) ? (last_j - first_j) / (last_s - first_s) : (double)NAN;
}

static double sensor_power(const run_seen *r) {
    const double after = r->from_s + fmin(SETTLE_S, SETTLE_SHARE * (r->to_s - r->from_s));
    double sum = 0, n = 0;
    for (size_t i = 0; i < r->count; i++) {
        const double w = value_at(r->t, r->row[i], "power_w");
        if (w > 0 && seconds(r, i) > after) {
            sum += w;
            n++;
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}

static fl_status pick_rows(run_seen *r, const logs_options *o, const char *path, fl_diag *d) {
    int32_t device = (int32_t)o->device;
    for (size_t i = 0; i < r->t->row_count; i++) {
        const int32_t is = r->t->device[i];
        if (is < 0 || (o->device >= 0 && is != device))
            continue;
        if (device >= 0 && is != device)
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "readings of several GPUs, expected --device N");
        device = is;
        r->row[r->count++] = i;
    }
    return r->count ? FL_OK : fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no readings of that GPU");
}

static char *name_of(const logs_options *o, const fl_telemetry *t, const char *path) {
    const char *head = fl_head_get(&t->head, "workload"), *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    return o->workload ? strdup(o->workload) : head ? strdup(head) : strndup(base, strcspn(base, ".@"));
}

static fl_status add_run(fl_sweep *s, const logs_options *o, const char *path, const fl_telemetry *t, fl_diag *d) {
    run_seen r = {.t = t, .row = malloc((t->row_count + 1) * sizeof *r.row)};
    double *room = malloc((t->row_count + 1) * sizeof *room);
    fl_status status = r.row && room ? pick_rows(&r, o, path, d) : fl_no_memory(d, "the logs");
    if (!status)
        status = find_run(&r, path, d);
    if (!status) {
        bool steady = true;
        const double sm = clock_of(&r, "sm_mhz", room, &steady), mem = clock_of(&r, "mem_mhz", room, &steady);
        double watts = counter_power(&r);
        if (isnan(watts))
            watts = sensor_power(&r);
        const double took = r.to_s - r.from_s;
        if (isnan(sm))
            status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no sm_mhz, expected the SM clock of the run");
        else if (isnan(watts))
            status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "neither power_w nor energy_j during the run");
        else if (!steady)
            fprintf(stderr, "note: %s: the clocks changed during the run; left out\n", path);
        else if (fl_grow(&s->names, &s->name_room, s->name_count + 1, sizeof *s->names) ||
                 fl_grow(&s->rows, &s->row_room, s->row_count + 1, sizeof *s->rows) ||
                 !(s->names[s->name_count] = name_of(o, t, path)))
            status = fl_no_memory(d, "the logs");
        else
            s->rows[s->row_count++] = (fl_sweep_row){.workload = (uint32_t)s->name_count++,
                                                     .sm_mhz = sm,
                                                     .mem_mhz = mem,
                                                     .power_cap_w = NAN,
                                                     .time_s = took,
                                                     .power_w = watts,
                                                     .energy_j = watts * took,
                                                     .energy_cv = NAN,
                                                     .ratio = NAN,
                                                     .ratio_cv = NAN};
    }
    free(r.row);
    free(room);
    return status;
}

static fl_status read_all(fl_sweep *s, const logs_options *o, const fl_texts *logs, fl_diag *d) {
    const fl_import_options how = {.interval_s = o->interval_s, .device = (int32_t)o->device};
    if (fl_grow(&s->names, &s->name_room, 1, sizeof *s->names) || !(s->names[0] = strdup("")))
        return fl_no_memory(d, "the logs");
    s->name_count = 1; /* the kernel of every row */
    for (size_t i = 0; i < logs->count; i++) {
        fl_imported in = {0};
        fl_status status = fl_trace_open(logs->item[i], o->format, &how, &in, d);
        if (!status && !in.has_telemetry)
            status = fl_fail(d, FL_BAD_INPUT, logs->item[i], 0, 0, "no telemetry, expected a log of clocks and power");
        if (!status)
            status = add_run(s, o, logs->item[i], &in.telemetry, d);
        for (size_t k = 0; !status && k < in.note_count; k++)
            fprintf(stderr, "note: %s: %s\n", logs->item[i], in.note[k]);
        fl_imported_free(&in);
        if (status)
            return status;
    }
    if (s->row_count == 0)
        return fl_fail(d, FL_BAD_INPUT, logs->item[0], 0, 0, "no run at steady clocks");
    return fl_head_set(&s->head, "source", "foldline fit logs") ? FL_OK : fl_no_memory(d, "the logs");
}

int fl_cmd_fit_logs(int argc, char **argv) {
    logs_options o = {.device = -1};
    fl_texts logs = {0};
    const fl_option option[] = {
        {"o", "FILE", FL_OPTION_OUTPUT, &o.out, 0, 0, "the sweep to write"},
        {"workload", "NAME", FL_OPTION_TEXT, &o.workload, 0, 0, "what ran in all these logs"},
        {"device", "N", FL_OPTION_INT, &o.device, 0, 65535, "the GPU, where a log has several"},
        {"format", "NAME", FL_OPTION_TEXT, &o.format, 0, 0, "format, where it is not to be detected"},
        {"interval", "S", FL_OPTION_REAL, &o.interval_s, 1e-6, 1e6, "of rows without time stamps (dcgmi dmon -d)"},
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &logs, &status))
        return status;
    fl_diag d = {0};
    fl_sweep sweep = {0};
    fl_status s = FL_OK;
    if (!logs.count)
        s = fl_refuse(&d, "no log given");
    else if (!o.out)
        s = fl_refuse(&d, "nowhere to write, expected -o FILE");
    if (!s)
        s = read_all(&sweep, &o, &logs, &d);
    if (!s)
        s = fl_sweep_write(o.out, &sweep, &d);
    if (s)
        status = fl_command_fail(help.name, &d);
    else
        printf("%zu of %zu runs; written: %s\n", sweep.row_count, logs.count, o.out);
    fl_sweep_free(&sweep);
    fl_texts_free(&logs);
    return status;
}
