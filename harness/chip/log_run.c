/* The run in a log: its span, clocks, power and activity. */
#include "harness/chip/chip.h"
#include "harness/chip/inside.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the run in a log ---- */

#define STEADY 0.9 /* share of the readings that show the median clock where it stands still ... */
#define NEAR 0.75  /* ... and, where it moves between neighbouring steps, lie within WANDER of the median */
#define WANDER 0.1 /* a step is 1 % of the clock on most boards; at its power limit an H200 moves within 10 % */
#define DRIFT 0.06 /* the medians of both halves of such a run differ by less; a clock that was set anew moves them */
#define SETTLE_S 2.0
#define SETTLE_SHARE 0.2
#define PAUSE_SHARE 0.05 /* a shorter pause leaves the run's length known well enough */

/* A desktop may show some utilisation while no program runs, and a log may show none at all. Where the power has two
 * levels, it then tells when the program ran. */
#define BACKGROUND 10 /* percent; a lower utilisation is no proof of work ... */
#define REST 2        /* ... unless this many readings of 0 stand before and after the run */
/* An idle GPU draws less than this share of its power under load. Idle boards draw 0.06 to 0.26 of their limit
 * (models/platforms). */
#define LEVELS 0.5
/* The share of the way from idle to load above which a program runs. Calibrated: at 0.5 a phase that draws less than
 * half of another was cut off, as the decoding after a prefill. */
#define RUNS_FROM 0.25
/* The share of a run's readings above that. If fewer are, these readings are bursts of a program on its low level. */
#define MOSTLY 0.5

#define HUNG 0.5         /* share of a run's readings that a sensor may repeat to the last digit ... */
#define HUNG_UTILITIES 3 /* ... while the utilisation takes fewer values than these */

typedef struct run_seen { /* one device's rows within the run */
    const fl_telemetry *t;
    int64_t asked; /* the device that the user named; below 0: none */
    size_t *row, count;
    double from_s, to_s;
    bool stated;     /* by the log's head */
    bool used;       /* the log has utilisation */
    bool background; /* it does not tell when the program ran */
    double level_w;  /* between idle and load; NAN = the power has no two levels */
    fl_log_ends ends;
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

/* Whether readings of utilisation within the run show no work, where there are other GPUs: one of those ran the
 * program. The only GPU of a log ran it, and its utilisation is rounded. */
static bool is_idle(const run_seen *r) {
    bool known = false, others = r->asked >= 0;
    for (size_t i = 0; i < r->t->row_count; i++)
        others |= r->t->device[i] >= 0 && r->t->device[i] != r->t->device[r->row[0]];
    for (size_t i = 0; i < r->count; i++) {
        const double busy = value_at(r->t, r->row[i], "util_gpu_pct");
        known |= !isnan(busy);
        if (busy > 0)
            return false;
    }
    return known && others;
}

static double power_at(const run_seen *r, size_t i) {
    const double w = value_at(r->t, r->row[i], "power_w");
    return isnan(w) ? value_at(r->t, r->row[i], "power_instant_w") : w;
}

/* The power above which the program runs; NAN where the readings do not show both idle and load. A single lowest or
 * highest reading does not count. */
static double level_of(const run_seen *r, double *room) {
    size_t n = 0, low = 0, above = 0, span = 0;
    for (size_t i = 0; i < r->count; i++) {
        const double w = power_at(r, i);
        if (w > 0)
            room[n++] = w;
    }
    if (n < 5)
        return NAN;
    qsort(room, n, sizeof *room, ascending);
    while (low < n && LEVELS * room[low] <= room[1])
        low++;
    if (n - low < 2)
        return NAN;
    const double level_w = room[1] + RUNS_FROM * (room[low + (n - low) / 2] - room[1]);
    for (size_t i = 0, since = 0; i < r->count; i++) {
        const double w = power_at(r, i);
        since += above && w > 0;
        if (w >= level_w) {
            above++;
            span = since;
        }
    }
    return (double)above >= MOSTLY * (double)(span + 1) ? level_w : (double)NAN;
}

/* Whether a reading shows that the program runs, and whether it shows that it does not. */
static bool works(const run_seen *r, size_t i) {
    const double busy = value_at(r->t, r->row[i], "util_gpu_pct");
    if (isnan(busy))
        return !r->used && (isnan(r->level_w) || power_at(r, i) >= r->level_w);
    return busy > 0 && !(r->background && busy <= BACKGROUND && power_at(r, i) < r->level_w);
}

static bool idles(const run_seen *r, size_t i) {
    const double busy = value_at(r->t, r->row[i], "util_gpu_pct");
    if (isnan(busy))
        return !r->used && power_at(r, i) < r->level_w;
    return busy <= 0 || (r->background && busy <= BACKGROUND && power_at(r, i) < r->level_w);
}

/* Looks at utilisation and power. Where the log's head states the run, nothing is to be found. */
static void look(run_seen *r, double *room) {
    size_t first = SIZE_MAX, last = 0, known = 0;
    for (size_t i = 0; i < r->count; i++) {
        const double busy = value_at(r->t, r->row[i], "util_gpu_pct");
        if (busy > 0) {
            first = first == SIZE_MAX ? known : first;
            last = known;
        }
        known += isnan(busy) ? 0 : 1;
    }
    r->used = known > 0;
    r->background = first < REST || known - last <= REST;
    r->level_w = fl_head_get(&r->t->head, "program") ? (double)NAN : level_of(r, room);
}

/* Finds the time span of the run and keeps its rows. FL_BAD_INPUT where the GPU was never busy. */
static fl_status find_run(run_seen *r, const char *path, fl_diag *d) {
    const char *program = fl_head_get(&r->t->head, "program");
    long long from = 0, to = 0;
    size_t first = SIZE_MAX, last = 0;
    if (program && sscanf(program, "%lld to %lld ns", &from, &to) == 2 && to > from) {
        r->from_s = (double)from * 1e-9;
        r->to_s = (double)to * 1e-9;
        r->stated = true;
        r->ends = (fl_log_ends){.whole = true, .above_w = NAN};
    } else {
        for (size_t i = 0; i < r->count; i++) {
            if (!works(r, i))
                continue;
            first = first == SIZE_MAX ? i : first;
            last = i;
        }
        double above_w = NAN;
        for (size_t i = 0; first != SIZE_MAX && i < r->count; i++)
            if ((i < first || i > last) && (!r->used || value_at(r->t, r->row[i], "util_gpu_pct") > 0))
                above_w = r->level_w;
        if (first == SIZE_MAX || last == first)
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                           "no reading of a busy GPU, expected two readings with util_gpu_pct above 0, or a head that "
                           "says when the program ran");
        r->from_s = first ? 0.5 * (seconds(r, first - 1) + seconds(r, first)) : seconds(r, first);
        r->to_s = last + 1 < r->count ? 0.5 * (seconds(r, last) + seconds(r, last + 1)) : seconds(r, last);
        r->ends = (fl_log_ends){.whole = first > 0 && last + 1 < r->count,
                                .idle_before = first > 0,
                                .idle_after = last + 1 < r->count,
                                .above_w = above_w,
                                .error_s = seconds(r, first) - r->from_s + r->to_s - seconds(r, last)};
    }
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++)
        if (seconds(r, i) >= r->from_s && seconds(r, i) <= r->to_s)
            r->row[n++] = r->row[i];
    r->count = n;
    if (n >= 3 && is_idle(r))
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                       "GPU %d was idle during the run that the head states, expected the GPU that ran the program",
                       r->t->device[r->row[0]]);
    return n >= 3 ? FL_OK
                  : fl_fail(d, FL_BAD_INPUT, path, 0, 0, "%zu readings during the run, expected three or more", n);
}

/* What happened while the log paused is not known: the run may have ended, and another one begun. Where the
 * head states the run's length, that does not matter. */
static fl_status check_pauses(run_seen *r, double *time, double *room, const char *path, fl_diag *d) {
    size_t longest = 0;
    double pause_s = 0;
    for (size_t i = 0; i < r->count; i++) {
        time[i] = seconds(r, i);
        if (i && time[i] - time[i - 1] > pause_s) {
            longest = i - 1;
            pause_s = time[i] - time[i - 1];
        }
    }
    const double at_s = time[longest] - r->from_s, usual_s = FL_PAUSE_SPACINGS * fl_usual_spacing(time, r->count, room),
                 least_s = fmax(usual_s, PAUSE_SHARE * (r->to_s - r->from_s));
    for (size_t i = 0, end; !r->stated && i < r->count; i = end) {
        for (end = i; end < r->count && idles(r, end);)
            end++;
        if (end > i && end < r->count && time[end] - time[i] > fmax(least_s, r->ends.idle_s)) {
            r->ends.idle_s = time[end] - time[i];
            r->ends.idle_at_s = time[i] - r->from_s;
        }
        end += end == i;
    }
    if (r->stated || pause_s <= least_s)
        return FL_OK;
    return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                   "no readings for %.4g s, %.4g s after the run's begin, expected the log of one run without a pause",
                   pause_s, at_s);
}

/* A clock or limit of the run, and the span of all but the lowest and the highest 5 % of its readings. NAN where the
 * log does not contain it. *steady: false where it changed. */
static double clock_of(const run_seen *r, const char *signal, double *room, bool *steady, double *low, double *high) {
    size_t n = 0, same = 0, near = 0;
    double sum = 0, count = 0;
    *low = *high = NAN;
    for (size_t i = 0; i < r->count; i++) {
        const double f = value_at(r->t, r->row[i], signal);
        /* at the very start the clock may not be set yet; a GPU that idles may lower it */
        if (f > 0 && seconds(r, i) > r->from_s && !idles(r, i))
            room[n++] = f;
    }
    if (n == 0)
        return NAN;
    qsort(room, n / 2, sizeof *room, ascending);
    qsort(room + n / 2, n - n / 2, sizeof *room, ascending);
    const double drift = n > 1 ? fabs(room[n / 4] - room[n / 2 + (n - n / 2) / 2]) : 0;
    qsort(room, n, sizeof *room, ascending);
    const double median = *low = *high = room[n / 2];
    for (size_t i = 0; i < n; i++) {
        same += fabs(room[i] - median) < 1.5;
        near += fabs(room[i] - median) <= WANDER * median;
    }
    if ((double)same >= STEADY * (double)n)
        return median;
    const size_t cut = (size_t)((1 - STEADY) / 2 * (double)n);
    *low = room[cut];
    *high = room[n - 1 - cut];
    for (size_t i = cut; i < n - cut; i++) {
        sum += room[i];
        count++;
    }
    /* without utilisation, readings far away may be those of an idle GPU */
    *steady = *steady && (double)near >= (r->used ? NEAR : STEADY) * (double)n && drift <= DRIFT * median;
    return round(sum / count);
}

/* Mean power by the energy counter, between the first and the last reading that shows a new value; NAN where there is
 * no counter or it went backwards. */
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

static double sensor_power(const run_seen *r, const char *signal) {
    const double after = r->from_s + fmin(SETTLE_S, SETTLE_SHARE * (r->to_s - r->from_s));
    double sum = 0, n = 0;
    for (size_t i = 0; i < r->count; i++) {
        const double w = value_at(r->t, r->row[i], signal);
        if (w > 0 && seconds(r, i) > after) {
            sum += w;
            n++;
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* Whether the readings of the power are the same to the last digit for most of the run, while the utilisation changes.
 */
static bool is_hung(const run_seen *r, const char *signal, size_t *from, size_t *to) {
    size_t first = 0, n = 0, most = 0;
    double before = NAN;
    for (size_t i = 0; i < r->count; i++) {
        const double w = value_at(r->t, r->row[i], signal);
        if (isnan(w))
            continue;
        if (!(fabs(w - before) <= 0)) {
            first = i;
            n = 0;
        }
        before = w;
        if (++n > most) {
            most = n;
            *from = first;
            *to = i;
        }
    }
    double seen[HUNG_UTILITIES];
    size_t values = 0;
    for (size_t i = *from; most > 0 && values < HUNG_UTILITIES && i <= *to; i++) {
        const double busy = value_at(r->t, r->row[i], "util_gpu_pct");
        size_t k = 0;
        while (k < values && fabs(seen[k] - busy) > 0)
            k++;
        if (k == values && !isnan(busy))
            seen[values++] = busy;
    }
    return (double)most > HUNG * (double)r->count && values == HUNG_UTILITIES;
}

static fl_status check_sensor(const run_seen *r, const char *signal, const char *path, fl_diag *d) {
    size_t from = 0, to = 0;
    if (!is_hung(r, signal, &from, &to))
        return FL_OK;
    return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                   "%s is %g in all readings of %.4g of the %.4g s of the run, while the utilisation changes, as of a "
                   "sensor that hangs: expected readings that change",
                   signal, value_at(r->t, r->row[from], signal), seconds(r, to) - seconds(r, from),
                   r->to_s - r->from_s);
}

/* Mean of the readings in percent, as a share; NAN where there are none. */
static double mean_share(const run_seen *r, const char *signal) {
    double sum = 0, n = 0;
    for (size_t i = 0; i < r->count; i++) {
        const double x = value_at(r->t, r->row[i], signal);
        if (x >= 0 && x <= 100) {
            sum += x / 100;
            n++;
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* The log's GPUs stand in the message, up to its room. */
static fl_status no_gpu(const fl_telemetry *t, int64_t asked, const char *path, fl_diag *d) {
    char list[64] = "";
    int size = 0;
    for (int32_t least = -1, next = INT32_MAX; size < (int)sizeof list - 12; least = next, next = INT32_MAX) {
        for (size_t i = 0; i < t->row_count; i++)
            next = t->device[i] > least && t->device[i] < next ? t->device[i] : next;
        if (next == INT32_MAX)
            break;
        size += snprintf(list + size, sizeof list - (size_t)size, "%s%d", size ? ", " : "", next);
    }
    return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no readings of GPU %lld, expected --device with one of %s",
                   (long long)asked, size ? list : "none");
}

static bool has_device(const fl_telemetry *t, int32_t device) {
    for (size_t i = 0; i < t->row_count; i++)
        if (t->device[i] == device)
            return true;
    return false;
}

static fl_status pick_rows(run_seen *r, int64_t asked, const char *path, fl_diag *d) {
    int32_t device = (int32_t)asked;
    for (size_t i = 0; i < r->t->row_count; i++) {
        const int32_t is = r->t->device[i];
        if (is < 0 || (asked >= 0 && is != device))
            continue;
        if (device >= 0 && is != device)
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "readings of several GPUs, expected --device N");
        device = is;
        r->row[r->count++] = i;
    }
    return r->count    ? FL_OK
           : asked < 0 ? fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no readings of a GPU")
                       : no_gpu(r->t, asked, path, d);
}

/* Boards without a column that tells them apart would count as one, of their mean power: every row has a twin. */
static fl_status check_boards(const run_seen *r, const char *path, fl_diag *d) {
    const fl_telemetry *t = r->t;
    if (t->back_line)
        return fl_fail(
            d, FL_BAD_INPUT, path, t->back_line, t->back_column,
            "the time stamp is %.4g s earlier than the one before, so that the run's length is not known (was "
            "the clock set back?): expected a log whose time goes forward",
            t->back_s);
    return fl_telemetry_interleaves(t, r->row, r->count)
               ? fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                         "readings some ms apart go back and forth between levels, as of several GPUs in one log, "
                         "expected a column that tells them apart (index), or one GPU")
               : FL_OK;
}

fl_status fl_log_open(const char *path, const char *format, const fl_import_options *how, fl_imported *in, fl_diag *d) {
    const fl_import_options all = {.interval_s = how->interval_s, .device = -1};
    fl_imported whole = {0};
    fl_diag other = {0};
    const fl_status s = fl_trace_open(path, format, how, in, d);
    if (s != FL_BAD_INPUT || how->device < 0 || !strcmp(path, "-"))
        return s;
    if (!fl_trace_open(path, format, &all, &whole, &other) && whole.has_telemetry && !whole.has_kernels &&
        !has_device(&whole.telemetry, how->device))
        (void)no_gpu(&whole.telemetry, how->device, path, d);
    fl_imported_free(&whole);
    return s;
}

double fl_log_limit(double limit_w, double power_w, double highest_w) {
    return limit_w < highest_w && power_w >= FL_CAP_CREST_LEAST * limit_w ? limit_w : (double)NAN;
}

fl_status fl_log_run_find(const char *path, const fl_telemetry *t, int64_t device, double sm_mhz, fl_log_run *out,
                          fl_log_ends *ends, fl_diag *d) {
    run_seen r = {.t = t, .asked = device, .row = malloc((t->row_count + 1) * sizeof *r.row)};
    double *room = malloc((t->row_count + 1) * sizeof *room), *time = malloc((t->row_count + 1) * sizeof *time);
    fl_status status = r.row && room && time ? pick_rows(&r, device, path, d) : fl_no_memory(d, "the logs");
    if (!status) {
        look(&r, room);
        status = find_run(&r, path, d);
    }
    if (!status)
        status = check_boards(&r, path, d);
    if (!status)
        status = check_pauses(&r, time, room, path, d);
    if (!status) {
        fl_log_run run = {.steady = true, .time_s = r.to_s - r.from_s};
        double low, high;
        run.sm_mhz = clock_of(&r, "sm_mhz", room, &run.steady, &run.sm_low_mhz, &run.sm_high_mhz);
        run.sm_steady = run.steady;
        run.mem_mhz = clock_of(&r, "mem_mhz", room, &run.steady, &run.mem_low_mhz, &run.mem_high_mhz);
        if (isnan(run.sm_mhz)) {
            run.sm_mhz = run.sm_low_mhz = run.sm_high_mhz = isnan(sm_mhz) ? fl_log_named_mhz(path) : sm_mhz;
            run.sm_stated = true;
        }
        run.busy = mean_share(&r, "util_gpu_pct");
        bool held = true;
        run.limit_w = clock_of(&r, "power_limit_w", room, &held, &low, &high);
        const char *sensor = NULL;
        run.power_w = r.ends.counter_w = counter_power(&r);
        r.ends.sensor_w = sensor_power(&r, "power_w");
        if (isnan(r.ends.sensor_w))
            r.ends.sensor_w = sensor_power(&r, "power_instant_w");
        if (isnan(run.power_w))
            run.power_w = sensor_power(&r, sensor = "power_w");
        if (isnan(run.power_w))
            run.power_w = sensor_power(&r, sensor = "power_instant_w");
        if (sensor)
            status = check_sensor(&r, sensor, path, d);
        if (status)
            ;
        else if (isnan(run.sm_mhz))
            status = fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                             "no sm_mhz, expected the SM clock of the run: in the log, in the file's name "
                             "(NAME@1050.csv), or by --sm-mhz");
        else if (isnan(run.power_w))
            status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "neither power_w nor energy_j during the run");
        *out = run;
        if (ends)
            *ends = r.ends;
    }
    free(r.row);
    free(room);
    free(time);
    return status;
}
