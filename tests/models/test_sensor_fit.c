#include "models/fit/fit.h"
#include "models/fit/inside.h"
#include "models/laws/device.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define MS INT64_C(1000000)
static const uint64_t seed = 515151;

/* ---- a board made up: every time a whole number of ticks of 0.1 ms, so that sums over ticks are its exact means ----
 */

#define TICK_S 1e-4
#define TICKS_PER_SAMPLE 10 /* the meter samples at 1 ms */
#define SAMPLES 16000
#define READINGS_MAX 4000

typedef struct board {
    const char *what;
    int period, phase, window, lag, delay; /* ticks */
    double quantum;
    int poll, jitter; /* ticks: between readings, and how much later one may come */
    int late;         /* ticks: one refresh in 16 comes out so much later; the mean is that of its time */
    int hold;         /* refreshes left out one after the other, twice */
    int clock;        /* ticks: meter clock - log clock */
    int wrong;        /* ticks: a window that this board has not */
} board;

static const board BOARDS[] = {
    {.what = "window of a quarter",
     .period = 1013,
     .phase = 300,
     .window = 250,
     .quantum = 0.01,
     .poll = 140,
     .jitter = 20,
     .clock = 30,
     .wrong = 1000},
    {.what = "window of ten periods",
     .period = 1000,
     .phase = 870,
     .window = 10000,
     .quantum = 0.01,
     .poll = 70,
     .jitter = 10,
     .clock = -200,
     .wrong = 5000},
    {.what = "late refreshes and holds",
     .period = 1000,
     .phase = 410,
     .window = 10000,
     .quantum = 0.01,
     .poll = 70,
     .jitter = 10,
     .late = 400,
     .hold = 8,
     .clock = 100,
     .wrong = 5000},
    {.what = "fast",
     .period = 200,
     .phase = 30,
     .window = 100,
     .quantum = 0.001,
     .poll = 40,
     .jitter = 10,
     .wrong = 500},
    {.what = "lag",
     .period = 1000,
     .phase = 500,
     .window = 1000,
     .lag = 3000,
     .quantum = 0.01,
     .poll = 90,
     .jitter = 15,
     .wrong = 10000},
    {.what = "delay and a coarse quantum",
     .period = 1000,
     .phase = 130,
     .window = 250,
     .delay = 150,
     .quantum = 0.5,
     .poll = 150,
     .jitter = 30,
     .wrong = 1000},
};

#define GAIN 0.95
#define OFFSET (-2.5)

typedef struct recording {
    double meter_s[SAMPLES + 1], meter_w[SAMPLES + 1], read_s[READINGS_MAX], read_w[READINGS_MAX],
        clean_w[READINGS_MAX];
    double shown_s[READINGS_MAX], replay_w[READINGS_MAX];
    fl_sensor_course course;
    fl_sensor_log log;
} recording;

static fl_sensor_spec spec_of(const board *b) {
    return (fl_sensor_spec){.period_ns = b->period * MS / 10,
                            .phase_ns = b->phase * MS / 10,
                            .window_ns = b->window * MS / 10,
                            .lag_ns = b->lag * MS / 10,
                            .delay_ns = b->delay * MS / 10,
                            .quantum = 0,
                            .present = 1};
}

static double mean_of_ticks(const recording *r, int end, int window) {
    double sum = 0;
    for (int t = end - window; t < end; t++)
        sum += r->meter_w[t / TICKS_PER_SAMPLE];
    return sum / window;
}

/* A load from 1.05 s to 7.02 s and a shorter one later, on a meter that is noisy; then the board's log of it, by the
 * definition of a sensor and not by the code under test. Its clean_w is what a perfect one (gain 1, no quantum) shows.
 */
static void record(const board *b, recording *r, size_t *readings) {
    fl_random random = fl_random_seed(seed, (uint64_t)(b - BOARDS));
    for (int i = 0; i <= SAMPLES; i++) {
        const bool load = (i >= 1050 && i < 7020) || (i >= 9033 && i < 12480);
        r->meter_s[i] = i * 1e-3;
        r->meter_w[i] = (load ? 200 : 65) + 1e-4 * i + 2 * fl_random_normal(&random);
    }
    size_t n = 0;
    int at = b->phase, out = at + b->delay, k = 0; /* the next refresh and when it is seen */
    double shown = NAN, clean = NAN;
    for (int t = 5; t < SAMPLES * TICKS_PER_SAMPLE && n < READINGS_MAX;
         t += b->poll + (b->jitter ? (int)fl_random_below(&random, (uint64_t)b->jitter) : 0)) {
        while (out <= t) {
            const int refresh = out - b->delay;
            const bool held = b->hold && ((k > 85 && k <= 85 + b->hold) || (k > 130 && k <= 130 + b->hold));
            if (refresh >= b->window && refresh <= SAMPLES * TICKS_PER_SAMPLE && !held) {
                const double mean = mean_of_ticks(r, refresh, b->window);
                clean = isnan(clean) || !b->lag ? mean : mean + (clean - mean) * exp(-(double)b->period / b->lag);
                shown = round((GAIN * clean + OFFSET) / b->quantum) * b->quantum;
            }
            at += b->period;
            out = at + b->delay + (b->late && ++k % 16 == 5 ? b->late : 0);
        }
        r->read_s[n] = (t - b->clock) * TICK_S;
        r->clean_w[n] = clean;
        r->read_w[n] = n % 97 == 50 ? (double)NAN : shown; /* a reading fails now and then */
        n++;
    }
    r->course = (fl_sensor_course){r->meter_s, r->meter_w, SAMPLES + 1};
    r->log = (fl_sensor_log){r->read_s, r->read_w, n};
    *readings = n;
}

static recording *recording_new(void) {
    recording *r = calloc(1, sizeof *r);
    if (!r)
        exit(1);
    return r;
}

static void test_replay(void) {
    recording *r = recording_new();
    for (size_t i = 0; i < COUNT(BOARDS); i++) {
        const board *b = &BOARDS[i];
        if (b->late || b->hold) /* not on the grid */
            continue;
        size_t n;
        record(b, r, &n);
        fl_sensor_spec spec = spec_of(b);
        double *read_s = r->shown_s;
        for (size_t k = 0; k < n; k++)
            read_s[k] = r->read_s[k] + b->clock * TICK_S;
        fl_model_status s = fl_sensor_replay(&spec, &r->course, read_s, n, r->replay_w);
        FL_CHECK(s == FL_MODEL_OK, "%s: %s", b->what, fl_model_text(s));
        size_t wrong = 0, valid = 0;
        for (size_t k = 0; k < n; k++) {
            valid += isnan(r->replay_w[k]) ? 0 : 1;
            wrong += isnan(r->replay_w[k]) != isnan(r->clean_w[k]) || fabs(r->replay_w[k] - r->clean_w[k]) > 1e-6;
        }
        FL_CHECK(wrong == 0 && valid > n / 2, "%s: %zu of %zu readings differ, %zu valid", b->what, wrong, n, valid);
    }
    free(r);
}

static void test_estimate(void) {
    recording *r = recording_new();
    for (size_t i = 0; i < COUNT(BOARDS); i++) {
        const board *b = &BOARDS[i];
        size_t n;
        record(b, r, &n);
        double period = NAN, phase = NAN;
        const fl_model_status s = fl_sensor_refreshes(&r->log, &period, &phase);
        const double true_period = b->period * TICK_S, first = (b->phase + b->delay - b->clock) * TICK_S;
        const double off = remainder(phase - first, true_period);
        FL_CHECK(s == FL_MODEL_OK && fabs(period - true_period) < 2e-3 * true_period, "%s: %s, period %.3f ms", b->what,
                 fl_model_text(s), 1e3 * period);
        FL_CHECK(fabs(off) < b->poll * TICK_S / 2, "%s: phase off by %.3f ms", b->what, 1e3 * off);
        FL_CHECK(phase >= r->read_s[0] && phase < r->read_s[0] + period, "%s: phase %.4f s", b->what, phase);
    }
    free(r);
}

/* Period and phase from the log, then one gain and one offset at the best shift of up to a period; RMS in percent of
 * the step. The same for right and wrong windows. */
static bool fit(const fl_sensor_course *course, const fl_sensor_log *log, fl_sensor_spec spec, double *shown_s,
                fl_sensor_match *m, double *percent, double *period_s) {
    double phase = 0, step = 0;
    if (fl_sensor_refreshes(log, period_s, &phase) != FL_MODEL_OK ||
        fl_sensor_seen(log, *period_s, phase, shown_s) != FL_MODEL_OK || fl_sensor_step(log, &step) != FL_MODEL_OK)
        return false;
    spec.period_ns = llround(*period_s * 1e9);
    spec.phase_ns = llround(phase * 1e9);
    if (fl_sensor_align(&spec, course, log, shown_s, *period_s, m) != FL_MODEL_OK)
        return false;
    *percent = 100 * m->rms / step;
    return true;
}

static void test_match(void) {
    recording *r = recording_new();
    for (size_t i = 0; i < COUNT(BOARDS); i++) {
        const board *b = &BOARDS[i];
        size_t n;
        record(b, r, &n);
        fl_sensor_spec spec = spec_of(b);
        fl_sensor_match right = {0}, wrong = {0};
        double right_pct = NAN, wrong_pct = NAN, period = NAN;
        const bool fitted = fit(&r->course, &r->log, spec, r->shown_s, &right, &right_pct, &period);
        FL_CHECK(fitted && right_pct <= 1, "%s: RMS %.3f %%", b->what, right_pct);
        FL_CHECK(fabs(right.gain - GAIN) < 0.005 && fabs(right.offset - OFFSET) < 0.5, "%s: gain %.4f, offset %.3f W",
                 b->what, right.gain, right.offset);
        FL_CHECK(fabs(right.shift_s - b->clock * TICK_S) < b->poll * TICK_S, "%s: shift %.2f ms", b->what,
                 1e3 * right.shift_s);
        spec.window_ns = b->wrong * MS / 10;
        const bool tried = fit(&r->course, &r->log, spec, r->shown_s, &wrong, &wrong_pct, &period);
        FL_CHECK(tried && wrong_pct >= 3 * right_pct, "%s: wrong window %.3f %%, right %.3f %%", b->what, wrong_pct,
                 right_pct);
    }
    free(r);
}

/* A shift in a wide range is found to better than the first steps of the search (5 ms). */
static void test_shift(void) {
    static const double shifts[] = {-0.4321, -0.0123, 0, 0.0077, 0.3456};
    recording *r = recording_new();
    const board *b = &BOARDS[0];
    size_t n;
    record(b, r, &n);
    const fl_sensor_spec spec = spec_of(b);
    for (size_t i = 0; i < COUNT(shifts); i++) {
        fl_sensor_match m = {0};
        for (size_t k = 0; k < n; k++)
            r->shown_s[k] = r->read_s[k];
        fl_model_status s = fl_sensor_replay_seen(&spec, &r->course, r->shown_s, n, shifts[i], r->read_w);
        if (s == FL_MODEL_OK)
            s = fl_sensor_align(&spec, &r->course, &r->log, r->shown_s, 0.5, &m);
        FL_CHECK(s == FL_MODEL_OK && fabs(m.shift_s - shifts[i]) < 2e-4, "%s, shift %.5f s, expected %.5f",
                 fl_model_text(s), m.shift_s, shifts[i]);
    }
    free(r);
}

/* What a reader can see of a ramp, by hand: refreshes at 0.5, 1.5, 2.5 ... s of the mean of 1 s before. */
static void test_edges(void) {
    static const double t[] = {0, 1, 2, 3, 4}, w[] = {10, 20, 40, 80, 80};
    static const fl_sensor_course course = {t, w, COUNT(t)};
    static const struct {
        fl_sensor_spec spec;
        double read, expected;
        const char *what;
    } rows[] = {
#define SPEC .period_ns = 1000 * MS, .phase_ns = 500 * MS, .window_ns = 1000 * MS, .present = 1
        {{SPEC}, 0.4, NAN, "before the first refresh"},
        {{SPEC}, 0.6, NAN, "the window begins before the course"},
        {{SPEC}, 1.5, 15, "at the refresh"},
        {{SPEC}, 2.4, 15, "just before the next"},
        {{SPEC}, 2.5, 30, "the next"},
        {{SPEC}, 3.9, 60, "the last"},
        {{SPEC}, 4.6, NAN, "the course ends before the refresh"},
        {{SPEC, .delay_ns = 200 * MS}, 1.6, NAN, "not out yet"},
        {{SPEC, .delay_ns = 200 * MS}, 1.7, 15, "out"},
        {{SPEC, .quantum = 7}, 1.5, 14, "quantised"},
        {{SPEC, .lag_ns = 1000 * MS}, 2.5, 24.481808382, "15, then 1 - 1/e of the way to 30"},
        {{SPEC, .lag_ns = 1000 * MS}, 3.5, 46.933587516, "and of the way to 60, though nobody read at 2.5"},
        {{.period_ns = 0, .window_ns = 0, .present = 1}, 2.3, 40, "as it is"},
        {{.period_ns = 1000 * MS, .window_ns = 1000 * MS}, 2.3, NAN, "no such sensor"},
#undef SPEC
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        double out = -1;
        const fl_model_status s = fl_sensor_replay(&rows[i].spec, &course, &rows[i].read, 1, &out);
        FL_CHECK(s == FL_MODEL_OK && (isnan(rows[i].expected) ? isnan(out) : fabs(out - rows[i].expected) < 1e-6),
                 "%s: %s, %g, expected %g", rows[i].what, fl_model_text(s), out, rows[i].expected);
    }
}

static void test_refusals(void) {
    static const double t[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, back[] = {0, 1, 1, 0};
    static const double w[] = {1, 2, 1, 2, 1, 2, 1, 2, 1, 2}, flat[10], bad[] = {1, NAN, 1, 1};
    const fl_sensor_course good = {t, w, 10}, backward = {back, w, 4}, holes = {t, bad, 4}, point = {t, w, 1};
    const fl_sensor_log log = {t, w, 10}, same = {t, flat, 10}, unordered = {back, w, 4}, empty = {t, w, 0};
    const fl_sensor_spec spec = {.period_ns = MS, .present = 1}, lag = {.lag_ns = MS, .present = 1};
    const fl_sensor_spec negative = {.window_ns = -1, .present = 1};
    double out[10], a, b;
    fl_sensor_match m;
    const struct {
        fl_model_status got, expected;
        const char *what;
    } rows[] = {
        {fl_sensor_replay(&spec, &backward, t, 1, out), FL_MODEL_INVALID, "meter time goes back"},
        {fl_sensor_replay(&spec, &holes, t, 1, out), FL_MODEL_INVALID, "meter without a value"},
        {fl_sensor_replay(&spec, &point, t, 1, out), FL_MODEL_INVALID, "one sample"},
        {fl_sensor_replay(&lag, &good, t, 1, out), FL_MODEL_INVALID, "lag without refreshes"},
        {fl_sensor_replay(&negative, &good, t, 1, out), FL_MODEL_INVALID, "negative window"},
        {fl_sensor_replay(&spec, &good, bad, 2, out), FL_MODEL_INVALID, "reading at no time"},
        {fl_sensor_refreshes(&unordered, &a, &b), FL_MODEL_INVALID, "log time goes back"},
        {fl_sensor_refreshes(&same, &a, &b), FL_MODEL_NO_FIT, "nothing changes"},
        {fl_sensor_refreshes(&empty, &a, &b), FL_MODEL_NO_FIT, "empty log"},
        {fl_sensor_seen(&log, 0, 0, out), FL_MODEL_INVALID, "no period"},
        {fl_sensor_align(&spec, &good, &log, t, -1, &m), FL_MODEL_INVALID, "negative range"},
        {fl_sensor_align(&spec, &good, &log, t, 100, &m), FL_MODEL_NO_FIT, "range beyond the course"},
        {fl_sensor_step(&empty, &a), FL_MODEL_NO_FIT, "no step"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        FL_CHECK(rows[i].got == rows[i].expected, "%s: %s", rows[i].what, fl_model_text(rows[i].got));
}

/* ---- real boards beside a meter ---- */

#define UTC_OFFSET_S 3600 /* of the boards' logs */

typedef struct series {
    double *time_s, *watts;
    size_t count, room_t, room_w;
    const char *column; /* of the log; NULL: the meter */
    size_t time_at, value_at, columns;
    double epoch_s; /* of time 0 */
} series;

static fl_status append(series *s, double time_s, double watts, fl_diag *d) {
    if (fl_grow(&s->time_s, &s->room_t, s->count + 1, sizeof *s->time_s) != FL_OK ||
        fl_grow(&s->watts, &s->room_w, s->count + 1, sizeof *s->watts) != FL_OK)
        return fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "no memory");
    s->time_s[s->count] = time_s;
    s->watts[s->count++] = watts;
    return FL_OK;
}

static fl_status meter_row(void *user, const fl_csv_row *row, fl_diag *d) {
    series *s = user;
    double t_ms, watts;
    if (row->line == 1) {
        const char *colon = strrchr(row->field[0].text, ':');
        s->epoch_s = colon ? strtod(colon + 1, NULL) / 1e3 : 0;
        return s->epoch_s > 0 ? FL_OK : fl_fail(d, FL_BAD_INPUT, row->file, 1, 1, "no epoch of t=0");
    }
    if (row->line == 2)
        return FL_OK;
    fl_status status = fl_field_real(row, 0, "t_ms", 0, 1e12, &t_ms, d);
    if (status == FL_OK)
        status = fl_field_real(row, 1, "power_w", -1e6, 1e6, &watts, d);
    return status == FL_OK ? append(s, t_ms / 1e3, watts, d) : status;
}

/* Days since 1970-01-01 of a Gregorian date, from March as the year's first month. */
static int64_t days_of(int64_t year, int64_t month, int64_t day) {
    const int64_t y = month > 2 ? year : year - 1, m = (month + 9) % 12;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static fl_status log_row(void *user, const fl_csv_row *row, fl_diag *d) {
    series *s = user;
    if (row->line == 1) {
        s->time_at = s->value_at = s->columns = row->count;
        for (size_t i = 0; i < row->count; i++) {
            if (strcmp(row->field[i].text, "timestamp") == 0)
                s->time_at = i;
            if (strcmp(row->field[i].text, s->column) == 0)
                s->value_at = i;
        }
        const bool found = s->time_at < row->count && s->value_at < row->count;
        return found ? FL_OK : fl_fail(d, FL_BAD_INPUT, row->file, 1, 1, "no column %s", s->column);
    }
    if (row->count != s->columns) /* a last line cut off */
        return row->torn ? FL_OK : fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1, "columns are missing");
    int year, month, day, hour, minute;
    double second;
    if (sscanf(row->field[s->time_at].text, "%d/%d/%d %d:%d:%lf", &year, &month, &day, &hour, &minute, &second) != 6)
        return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1, "no time stamp");
    const double epoch_s = (double)(days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 - UTC_OFFSET_S);
    double watts = NAN;
    if (row->field[s->value_at].text[0] != '[') { /* [N/A] and its like: no value */
        const fl_status status = fl_field_real_or_nan(row, s->value_at, s->column, -1e6, 1e6, &watts, d);
        if (status != FL_OK)
            return status;
    }
    return append(s, epoch_s - s->epoch_s + second, watts, d);
}

static void series_free(series *s) {
    free(s->time_s);
    free(s->watts);
}

/* For the record, not a check: the RMS in percent with every refresh on the grid, though a board may have held one. */
static double grid_percent(const fl_sensor_course *course, const fl_sensor_log *log, const fl_sensor_spec *spec) {
    double period = 0, phase = 0, step = 0, percent = NAN, *shown_s = calloc(log->count + 1, sizeof *shown_s);
    fl_sensor_match m = {0};
    if (shown_s && fl_sensor_refreshes(log, &period, &phase) == FL_MODEL_OK &&
        fl_sensor_step(log, &step) == FL_MODEL_OK) {
        for (size_t i = 0; i < log->count; i++)
            shown_s[i] = phase + period * floor((log->time_s[i] - phase) / period);
        if (fl_sensor_align(spec, course, log, shown_s, period, &m) == FL_MODEL_OK)
            percent = 100 * m.rms / step;
    }
    free(shown_s);
    return percent;
}

/* The best RMS of each window, in percent of the step of the log, each with its own gain, offset and shift. */
static void test_boards(void) {
    static const struct {
        const char *board, *column;
        int window_ms, wrong_ms;
        double period_ms, tolerance_ms;
    } rows[] = {
        {"a100_tr", "power.draw [W]", 25, 100, 101.3, 0.2},
        {"3090_tr", "power.draw [W]", 1000, 500, 100, 0.5},
        {"3090_tr", "power.draw.instant [W]", 100, 200, 100, 0.5},
    };
    const char *folder = getenv("FOLDLINE_DATA");
    for (size_t i = 0; i < COUNT(rows); i++) {
        char meter_path[1024], log_path[1024];
        snprintf(meter_path, sizeof meter_path, "%s/sensors/%s-meter.csv", folder ? folder : "", rows[i].board);
        snprintf(log_path, sizeof log_path, "%s/sensors/%s-gpudata.csv", folder ? folder : "", rows[i].board);
        FILE *f = folder ? fopen(meter_path, "r") : NULL;
        if (!f) {
            printf("\n    skipped: %s, %s (set FOLDLINE_DATA)", rows[i].board, rows[i].column);
            continue;
        }
        fclose(f);
        fl_diag d = {0};
        char text[1600];
        series meter = {0}, log = {.column = rows[i].column};
        fl_status status = fl_csv_read(meter_path, &(fl_csv_options){.trim = true}, NULL, meter_row, &meter, &d);
        log.epoch_s = meter.epoch_s;
        if (status == FL_OK)
            status = fl_csv_read(log_path, &(fl_csv_options){.trim = true}, NULL, log_row, &log, &d);
        double *shown_s = calloc(log.count + 1, sizeof *shown_s);
        FL_CHECK(status == FL_OK && shown_s, "%s", fl_diag_text(&d, text, sizeof text));
        if (status == FL_OK && shown_s) {
            const fl_sensor_course course = {meter.time_s, meter.watts, meter.count};
            const fl_sensor_log seen = {log.time_s, log.watts, log.count};
            fl_sensor_spec spec = {.window_ns = rows[i].window_ms * MS, .present = 1};
            fl_sensor_match right = {0}, wrong = {0};
            double right_pct = NAN, wrong_pct = NAN, period = NAN;
            const bool fitted = fit(&course, &seen, spec, shown_s, &right, &right_pct, &period);
            const double grid_pct = grid_percent(&course, &seen, &spec);
            spec.window_ns = rows[i].wrong_ms * MS;
            const bool tried = fit(&course, &seen, spec, shown_s, &wrong, &wrong_pct, &period);
            printf("\n    %s, %s: period %.3f ms; %d ms: %.3f %% of the step (gain %.4f, offset %.2f W, shift %.1f ms, "
                   "%zu readings), %.3f %% on the grid; %d ms: %.3f %% (shift %.1f ms)",
                   rows[i].board, rows[i].column, 1e3 * period, rows[i].window_ms, right_pct, right.gain, right.offset,
                   1e3 * right.shift_s, right.used, grid_pct, rows[i].wrong_ms, wrong_pct, 1e3 * wrong.shift_s);
            FL_CHECK(fitted && tried, "%s: no fit", rows[i].board);
            FL_CHECK(fabs(1e3 * period - rows[i].period_ms) <= rows[i].tolerance_ms, "%s: period %.3f ms",
                     rows[i].board, 1e3 * period);
            FL_CHECK(right_pct <= 1, "%s: RMS %.3f %%", rows[i].board, right_pct);
            FL_CHECK(wrong_pct >= 3 * right_pct, "%s: wrong window only %.2f times worse", rows[i].board,
                     wrong_pct / right_pct);
        }
        free(shown_s);
        series_free(&meter);
        series_free(&log);
    }
}

FL_SUITE("sensor_fit", {"edges", test_edges}, {"replay", test_replay}, {"estimate", test_estimate},
         {"match", test_match}, {"shift", test_shift}, {"refusals", test_refusals}, {"boards", test_boards})
