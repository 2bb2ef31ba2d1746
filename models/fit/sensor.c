/* Refreshes of a power sensor, replays of a meter's course through it, and their match with a log. */
#include "models/fit/inside.h"

#include "models/fit/fit.h"
#include "models/laws/device.h"
#include "models/math/math.h"

#include <gsl/gsl_fit.h>
#include <gsl/gsl_interp.h>
#include <gsl/gsl_math.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define NS 1e9
#define CHANGES_MIN 8 /* fewer tell neither a period nor a line */
#define PAIRS_MIN 8
#define SCAN_STEPS 200 /* of the range of shifts: 1 ms in +-100 ms */
#define GRID_SLACK 1e-9

/* A course with its integral [J] up to each sample, so that the mean over any window is exact and cheap. */
typedef struct integral {
    const fl_sensor_course *course;
    double *joules;
} integral;

/* A refresh happened in (after, until]: the reading before the change and the one that shows it. */
typedef struct change {
    double after, until;
} change;

static bool course_valid(const fl_sensor_course *c) {
    if (!c || !c->time_s || !c->watts || c->count < 2)
        return false;
    for (size_t i = 0; i < c->count; i++)
        if (!isfinite(c->time_s[i]) || !isfinite(c->watts[i]) || (i && !(c->time_s[i] > c->time_s[i - 1])))
            return false;
    return true;
}

static bool log_valid(const fl_sensor_log *log) {
    if (!log || !log->time_s || !log->watts)
        return false;
    for (size_t i = 0; i < log->count; i++)
        if (!isfinite(log->time_s[i]) || isinf(log->watts[i]) || (i && log->time_s[i] < log->time_s[i - 1]))
            return false;
    return true;
}

static bool spec_valid(const fl_sensor_spec *s) {
    return s && s->period_ns >= 0 && s->window_ns >= 0 && s->lag_ns >= 0 && s->delay_ns >= 0 &&
           !(s->lag_ns > 0 && s->period_ns == 0);
}

static fl_model_status integral_make(const fl_sensor_course *course, integral *out) {
    *out = (integral){course, malloc(course->count * sizeof *out->joules)};
    if (!out->joules)
        return FL_MODEL_NO_MEMORY;
    out->joules[0] = 0;
    for (size_t i = 1; i < course->count; i++)
        out->joules[i] = out->joules[i - 1] + course->watts[i - 1] * (course->time_s[i] - course->time_s[i - 1]);
    return FL_MODEL_OK;
}

/* The sample in force at t: the last one at or before it. t lies within the course. */
static size_t sample_at(const fl_sensor_course *c, double t) {
    return gsl_interp_bsearch(c->time_s, t, 0, c->count - 1);
}

static double joules_at(const integral *in, double t) {
    const size_t i = sample_at(in->course, t);
    return in->joules[i] + in->course->watts[i] * (t - in->course->time_s[i]);
}

static bool covered(const fl_sensor_course *c, double from, double to) {
    return from >= c->time_s[0] && to <= c->time_s[c->count - 1];
}

/* Mean over the window that ends at `end`; the value itself for a window of 0; NaN where the course does not cover the
 * window. */
static double mean_before(const integral *in, double end, double window_s) {
    if (!covered(in->course, end - window_s, end))
        return NAN;
    return window_s > 0 ? (joules_at(in, end) - joules_at(in, end - window_s)) / window_s
                        : in->course->watts[sample_at(in->course, end)];
}

static double lagged(const fl_sensor_spec *spec, double shown, double input, double dt_s) {
    return fl_sensor_lag(shown, input, (int64_t)llround(dt_s * NS), spec->lag_ns);
}

/* Advances the shown value from refresh `from` to refresh `to`, through the refreshes between them that no one read. */
static double advance(const fl_sensor_spec *spec, const integral *in, double shown, double from, double to) {
    const double window_s = (double)spec->window_ns / NS, input = mean_before(in, to, window_s);
    if (spec->lag_ns == 0 || isnan(shown) || isnan(input))
        return input;
    const double periods = round((to - from) / ((double)spec->period_ns / NS)), steps = fmax(1, periods);
    const double dt_s = (to - from) / steps;
    for (double k = 1; k < steps; k++)
        shown = lagged(spec, shown, mean_before(in, from + k * dt_s, window_s), dt_s);
    return lagged(spec, shown, input, dt_s);
}

/* The value of the first visible refresh. A lag is followed from eight time constants before it, or from the start of
 * the course. */
static double first_value(const fl_sensor_spec *spec, const integral *in, double refresh) {
    const double window_s = (double)spec->window_ns / NS,
                 from = fmax(in->course->time_s[0] + window_s, refresh - 8 * (double)spec->lag_ns / NS);
    return from < refresh ? advance(spec, in, mean_before(in, from, window_s), from, refresh)
                          : mean_before(in, refresh, window_s);
}

static void replay_seen(const fl_sensor_spec *spec, const integral *in, const double *shown_s, size_t count,
                        double shift_s, double *out_w) {
    const double add = shift_s - (double)spec->delay_ns / NS;
    double last = NAN, value = NAN;
    for (size_t i = 0; i < count; i++) {
        const bool seen = spec->present && isfinite(shown_s[i]);
        const double refresh = shown_s[i] + add;
        if (seen && !(refresh <= last)) { /* also true where there is no last one */
            value = isnan(last) ? first_value(spec, in, refresh) : advance(spec, in, value, last, refresh);
            last = refresh;
        }
        out_w[i] = seen ? fl_sensor_quantise(value, spec->quantum) : (double)NAN;
    }
}

fl_model_status fl_sensor_replay_seen(const fl_sensor_spec *spec, const fl_sensor_course *course, const double *shown_s,
                                      size_t count, double shift_s, double *out_w) {
    if (!spec_valid(spec) || !course_valid(course) || !shown_s || !out_w || !isfinite(shift_s))
        return FL_MODEL_INVALID;
    integral in;
    const fl_model_status s = integral_make(course, &in);
    if (s == FL_MODEL_OK)
        replay_seen(spec, &in, shown_s, count, shift_s, out_w);
    free(in.joules);
    return s;
}

/* The grid's lag begins at the first refresh whose window the course covers. */
static double first_complete(const fl_sensor_spec *spec, const fl_sensor_course *course) {
    const double period = (double)spec->period_ns / NS, phase = (double)spec->phase_ns / NS;
    const double earliest = course->time_s[0] + (double)spec->window_ns / NS;
    return phase + period * fmax(0, ceil((earliest - phase) / period - GRID_SLACK));
}

fl_model_status fl_sensor_replay(const fl_sensor_spec *spec, const fl_sensor_course *course, const double *read_s,
                                 size_t count, double *out_w) {
    if (!spec_valid(spec) || !course_valid(course) || !read_s || !out_w)
        return FL_MODEL_INVALID;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(read_s[i]))
            return FL_MODEL_INVALID;
    integral in;
    const fl_model_status s = integral_make(course, &in);
    if (s != FL_MODEL_OK)
        return s;
    const double period = (double)spec->period_ns / NS, phase = (double)spec->phase_ns / NS;
    const double delay = (double)spec->delay_ns / NS;
    const double start = spec->period_ns ? first_complete(spec, course) : 0;
    double last = NAN, value = NAN;
    for (size_t i = 0; i < count; i++) {
        const double k = spec->period_ns ? floor((read_s[i] - delay - phase) / period + GRID_SLACK) : 0;
        const double refresh = spec->period_ns ? phase + k * period : read_s[i] - delay;
        if (!spec->present || k < 0 || (spec->lag_ns && refresh < start - GRID_SLACK)) {
            out_w[i] = NAN;
            continue;
        }
        if (spec->lag_ns && !(refresh >= last)) { /* the first reading, or one before the last: start again */
            last = start;
            value = mean_before(&in, start, (double)spec->window_ns / NS);
        }
        if (refresh != last)
            value = advance(spec, &in, value, last, refresh);
        last = refresh;
        out_w[i] = fl_sensor_quantise(value, spec->quantum);
    }
    free(in.joules);
    return FL_MODEL_OK;
}

/* Writes the changes of the log into at[], which has room for log->count. Returns their number. */
static size_t changes_of(const fl_sensor_log *log, change *at) {
    size_t count = 0;
    double last = NAN, when = NAN;
    for (size_t i = 0; i < log->count; i++) {
        if (isnan(log->watts[i]))
            continue;
        if (!isnan(last) && log->watts[i] != last)
            at[count++] = (change){when, log->time_s[i]};
        last = log->watts[i];
        when = log->time_s[i];
    }
    return count;
}

/* How well the changes keep a period, 1 = exactly, over blocks of span_s, each with its own phase. */
static double concentration(const change *at, size_t count, double period, double span_s) {
    double sum = 0;
    for (size_t i = 0; i < count;) {
        const double from = at[i].until;
        double x = 0, y = 0;
        for (; i < count && at[i].until - from <= span_s; i++) {
            const double angle = 2 * M_PI * (at[i].until - from) / period;
            x += cos(angle);
            y += sin(angle);
        }
        sum += hypot(x, y);
    }
    return sum / (double)count;
}

/* The first guess is good to some 20 %: the lower quartile of the times between changes. Missing changes, which make
 * some times longer, do not affect it. Each doubling of the blocks then narrows the search, since a peak is about
 * period^2/span wide. */
static double period_of(const change *at, size_t count, double *gap) {
    for (size_t i = 1; i < count; i++)
        gap[i - 1] = at[i].until - at[i - 1].until;
    gsl_sort(gap, 1, count - 1);
    double period = gsl_stats_quantile_from_sorted_data(gap, 1, count - 1, 0.25);
    const double total = at[count - 1].until - at[0].until;
    double reach = 0.25 * period;
    for (double span = 8 * period; period > 0; span *= 2) {
        const double step = period * period / span / 8;
        double best = -1, found = period;
        for (double p = period - reach; p <= period + reach; p += step) {
            const double c = concentration(at, count, p, span);
            if (c > best) {
                best = c;
                found = p;
            }
        }
        period = found;
        if (span >= total)
            return best > 0.5 ? period : 0;
        reach = period * period / span;
    }
    return 0;
}

/* One pass of weighted least squares of the middles on whole numbers of periods; the middle of an interval has a
 * deviation of its width/sqrt(12). Changes further than `trim` periods beyond their interval do not count. */
static bool refine(const change *at, size_t count, double trim, double *buffer, double *period, double *phase) {
    double *k = buffer, *weight = buffer + count, *middle = buffer + 2 * count;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const double m = (at[i].after + at[i].until) / 2, half = (at[i].until - at[i].after) / 2;
        const double whole = round((m - *phase) / *period);
        if (!(half > 0) || fabs(m - *phase - whole * *period) > half + trim * *period)
            continue;
        k[n] = whole;
        middle[n] = m;
        weight[n++] = 1 / (half * half);
    }
    double c0, c1, v00, v01, v11, chi;
    if (n < CHANGES_MIN || gsl_fit_wlinear(k, 1, weight, 1, middle, 1, n, &c0, &c1, &v00, &v01, &v11, &chi) ||
        !(c1 > 0))
        return false;
    *period = c1;
    *phase = c0;
    return true;
}

fl_model_status fl_sensor_refreshes(const fl_sensor_log *log, double *period_s, double *phase_s) {
    if (!log_valid(log) || !period_s || !phase_s)
        return FL_MODEL_INVALID;
    fl_gsl_quiet();
    if (log->count <= CHANGES_MIN)
        return FL_MODEL_NO_FIT;
    change *at = malloc(log->count * sizeof *at);
    double *buffer = malloc(3 * log->count * sizeof *buffer);
    fl_model_status s = !at || !buffer ? FL_MODEL_NO_MEMORY : FL_MODEL_OK;
    const size_t count = s == FL_MODEL_OK ? changes_of(log, at) : 0;
    if (s == FL_MODEL_OK) {
        double period = count < CHANGES_MIN ? 0 : period_of(at, count, buffer), x = 0, y = 0;
        for (size_t i = 0; period > 0 && i < count; i++) {
            const double angle = M_PI * (at[i].after + at[i].until - 2 * log->time_s[0]) / period;
            x += cos(angle);
            y += sin(angle);
        }
        double phase = log->time_s[0] + period * atan2(y, x) / (2 * M_PI);
        if (period > 0 && refine(at, count, 1, buffer, &period, &phase) &&
            refine(at, count, 0.05, buffer, &period, &phase)) {
            *period_s = period;
            *phase_s = phase + period * ceil((log->time_s[0] - phase) / period);
        } else
            s = FL_MODEL_NO_FIT;
    }
    free(at);
    free(buffer);
    return s;
}

/* The grid point nearest to the interval, preferring the last one at or before `until`, and limited to the interval. */
static double refresh_in(double after, double until, double period, double phase) {
    const double point = phase + period * floor((until - phase) / period);
    if (point >= after)
        return point;
    return point + period - until < after - point ? until : after;
}

fl_model_status fl_sensor_seen(const fl_sensor_log *log, double period_s, double phase_s, double *shown_s) {
    if (!log_valid(log) || !shown_s || !(period_s > 0) || !isfinite(period_s) || !isfinite(phase_s))
        return FL_MODEL_INVALID;
    double last = NAN, when = NAN, shown = NAN;
    for (size_t i = 0; i < log->count; i++) {
        shown_s[i] = NAN;
        if (isnan(log->watts[i]))
            continue;
        if (!isnan(last) && log->watts[i] != last)
            shown = refresh_in(when, log->time_s[i], period_s, phase_s);
        shown_s[i] = shown;
        last = log->watts[i];
        when = log->time_s[i];
    }
    return FL_MODEL_OK;
}

/* x, y: room for count. */
static fl_model_status match(const double *replayed, const double *logged, size_t count, double *x, double *y,
                             fl_sensor_match *out) {
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(replayed[i]) && isfinite(logged[i])) {
            x[n] = replayed[i];
            y[n++] = logged[i];
        }
    double offset, gain, v00, v01, v11, squares;
    if (n < PAIRS_MIN || !(gsl_stats_max(x, 1, n) > gsl_stats_min(x, 1, n)) ||
        gsl_fit_linear(x, 1, y, 1, n, &offset, &gain, &v00, &v01, &v11, &squares) || !isfinite(gain))
        return FL_MODEL_NO_FIT;
    *out = (fl_sensor_match){.gain = gain, .offset = offset, .rms = sqrt(squares / (double)n), .used = n};
    return FL_MODEL_OK;
}

fl_model_status fl_sensor_align(const fl_sensor_spec *spec, const fl_sensor_course *course, const fl_sensor_log *log,
                                const double *shown_s, double max_shift_s, fl_sensor_match *out) {
    if (!spec_valid(spec) || !course_valid(course) || !log_valid(log) || !shown_s || !out || !(max_shift_s >= 0) ||
        !isfinite(max_shift_s))
        return FL_MODEL_INVALID;
    fl_gsl_quiet();
    const size_t m = log->count;
    integral in;
    double *buffer = malloc((4 * m + 1) * sizeof *buffer);
    fl_model_status s = integral_make(course, &in);
    if (s == FL_MODEL_OK && !buffer)
        s = FL_MODEL_NO_MEMORY;
    if (s == FL_MODEL_OK) {
        double *shown = buffer, *replayed = buffer + m, *x = buffer + 2 * m, *y = buffer + 3 * m;
        const double before_s = max_shift_s + (double)spec->window_ns / NS;
        for (size_t i = 0; i < m; i++) {
            const double refresh = shown_s[i] - (double)spec->delay_ns / NS;
            shown[i] = covered(course, refresh - before_s, refresh + max_shift_s) ? shown_s[i] : (double)NAN;
        }
        fl_sensor_match best = {.rms = INFINITY};
        s = FL_MODEL_NO_FIT;
        /* Two passes: over the whole range, then between the neighbours of the best shift. The RMS is not smooth in the
         * shift (there are many readings but few refreshes), so no method that needs a slope would work. */
        double centre = 0, reach = max_shift_s;
        for (int pass = 0; pass < 2; pass++) {
            for (int i = 0; i <= SCAN_STEPS; i++) {
                const double shift = centre + reach * (2.0 * i / SCAN_STEPS - 1);
                if (fabs(shift) > max_shift_s)
                    continue;
                fl_sensor_match at = {0};
                replay_seen(spec, &in, shown, m, shift, replayed);
                if (match(replayed, log->watts, m, x, y, &at) == FL_MODEL_OK && at.rms < best.rms) {
                    best = at;
                    best.shift_s = shift;
                    s = FL_MODEL_OK;
                }
            }
            centre = best.shift_s;
            reach *= 2.0 / SCAN_STEPS;
        }
        if (s == FL_MODEL_OK)
            *out = best;
    }
    free(buffer);
    free(in.joules);
    return s;
}

fl_model_status fl_sensor_step(const fl_sensor_log *log, double *step_w) {
    if (!log_valid(log) || !step_w)
        return FL_MODEL_INVALID;
    double *w = malloc((log->count + 1) * sizeof *w);
    if (!w)
        return FL_MODEL_NO_MEMORY;
    size_t n = 0;
    for (size_t i = 0; i < log->count; i++)
        if (!isnan(log->watts[i]))
            w[n++] = log->watts[i];
    if (n) {
        gsl_sort(w, 1, n);
        *step_w =
            gsl_stats_quantile_from_sorted_data(w, 1, n, 0.95) - gsl_stats_quantile_from_sorted_data(w, 1, n, 0.05);
    }
    free(w);
    return n ? FL_MODEL_OK : FL_MODEL_NO_FIT;
}
