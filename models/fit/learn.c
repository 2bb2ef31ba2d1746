/* A power sensor from its log, and with a meter beside it. */
#include "models/fit/inside.h"

#include "models/fit/fit.h"
#include "models/laws/device.h"
#include "models/math/math.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NS 1e9
#define MS INT64_C(1000000)
#define REACH_S 0.2         /* search range around the coarse shift, in addition to the delay by window and lag */
#define ALIKE 1.25          /* a fit whose RMS is larger by at most this factor is as good */
#define USED_MAX 20000      /* readings on which windows are tried: the cost is linear in them */
#define CORRELATED_MAX 2000 /* readings on which shifts are tried */
#define SHIFTS_MAX 4000

/* ---- the log alone ---- */

static bool is_multiple(const fl_sensor_log *log, double quantum) {
    for (size_t i = 0; i < log->count; i++) {
        const double n = log->watts[i] / quantum;
        if (!isnan(n) && fabs(n - round(n)) > 1e-4)
            return false;
    }
    return true;
}

static double quantum_of(const fl_sensor_log *log) {
    static const double tried[] = {10, 5, 1, 0.5, 0.1, 0.05, 0.01, 0.005, 0.001};
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
        if (is_multiple(log, tried[i]))
            return tried[i];
    return 0;
}

/* The longest time from one change to the next; both ends are known to within one reading. */
static double longest_hold(const fl_sensor_log *log) {
    double last = NAN, since = NAN, longest = 0;
    for (size_t i = 0; i < log->count; i++) {
        if (isnan(log->watts[i]) || log->watts[i] == last)
            continue;
        if (!isnan(since))
            longest = fmax(longest, log->time_s[i] - since);
        if (!isnan(last))
            since = log->time_s[i];
        last = log->watts[i];
    }
    return longest;
}

fl_model_status fl_sensor_learn(const fl_sensor_log *log, fl_sensor_learnt *out) {
    fl_sensor_learnt o = {0};
    fl_model_status s = fl_sensor_refreshes(log, &o.period_s, &o.phase_s);
    if (s == FL_MODEL_OK)
        s = fl_sensor_step(log, &o.step_w);
    if (s != FL_MODEL_OK)
        return s;
    for (size_t i = 0; i < log->count; i++)
        o.readings += isnan(log->watts[i]) ? 0 : 1;
    o.quantum = quantum_of(log);
    o.held_s = longest_hold(log);
    *out = o;
    return FL_MODEL_OK;
}

/* ---- the two clocks ---- */

static double course_at(const fl_sensor_course *c, double t) {
    if (t < c->time_s[0] || t > c->time_s[c->count - 1])
        return NAN;
    size_t low = 0, high = c->count - 1;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (c->time_s[middle] <= t)
            low = middle;
        else
            high = middle;
    }
    return c->watts[low];
}

/* Pearson's r of every stride-th reading and the course; NaN where they share less than half of the readings. */
static double correlation(const fl_sensor_course *c, const fl_sensor_log *log, size_t stride, double shift,
                          size_t need) {
    double n = 0, sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
    for (size_t i = 0; i < log->count; i += stride) {
        const double x = course_at(c, log->time_s[i] + shift), y = log->watts[i];
        if (isnan(x) || isnan(y))
            continue;
        n++;
        sx += x;
        sy += y;
        sxx += x * x;
        syy += y * y;
        sxy += x * y;
    }
    const double vx = n * sxx - sx * sx, vy = n * syy - sy * sy;
    return n >= (double)need && vx > 0 && vy > 0 ? (n * sxy - sx * sy) / sqrt(vx * vy) : (double)NAN;
}

fl_model_status fl_sensor_shift(const fl_sensor_course *course, const fl_sensor_log *log, double *shift_s, double *r) {
    double period, phase;
    const fl_model_status s = fl_sensor_refreshes(log, &period, &phase);
    if (s != FL_MODEL_OK)
        return s;
    const double first = log->time_s[0], span = log->time_s[log->count - 1] - first, from = course->time_s[0],
                 length = course->time_s[course->count - 1] - from, half = fmin(span, length) / 2;
    const size_t stride = 1 + log->count / CORRELATED_MAX,
                 need = (size_t)(fmin(1, half / span) * (double)log->count / (double)stride * 0.5);
    double low = from - first - span + half, high = from + length - first - half, best = NAN, at = NAN;
    for (double step = fmax(period / 2, (high - low) / SHIFTS_MAX);; step = period / 2) {
        for (double shift = low; shift <= high; shift += step) {
            const double here = correlation(course, log, stride, shift, need);
            if (!(here <= best) && !isnan(here)) {
                best = here;
                at = shift;
            }
        }
        if (isnan(at) || step <= period / 2)
            break;
        low = at - step;
        high = at + step;
    }
    if (isnan(at) || !(best > 0))
        return FL_MODEL_NO_FIT;
    *shift_s = at;
    *r = best;
    return FL_MODEL_OK;
}

/* ---- beside a meter ---- */

typedef struct trial {
    int64_t window_ns, lag_ns;
    double rms;
} trial;

typedef struct trials {
    const fl_sensor_course *course;
    fl_sensor_log log; /* on the meter's clock, except for the remaining shift */
    double *shown_s, shift_s;
    fl_sensor_learnt *out;
    trial tried[96];
    size_t count;
    fl_model_status status; /* FL_MODEL_NO_MEMORY: one could not be tried */
} trials;

/* worth: the factor by which the RMS must fall before this trial replaces the best. */
static void try_one(trials *t, int64_t window_ns, int64_t lag_ns, double worth) {
    const fl_sensor_course *c = t->course;
    const fl_sensor_spec spec = {.period_ns = llround(t->out->period_s * NS),
                                 .phase_ns = llround(fabs(t->out->phase_s) * NS),
                                 .window_ns = window_ns,
                                 .lag_ns = lag_ns,
                                 .present = 1};
    const double reach_s = REACH_S + (double)window_ns / NS / 2 + (double)lag_ns / NS;
    fl_sensor_match m = {0};
    if (t->count == sizeof t->tried / sizeof *t->tried ||
        (double)window_ns / NS > (c->time_s[c->count - 1] - c->time_s[0]) / 4)
        return;
    const fl_model_status s = fl_sensor_align(&spec, c, &t->log, t->shown_s, reach_s, &m);
    if (s == FL_MODEL_NO_MEMORY)
        t->status = s;
    if (s != FL_MODEL_OK)
        return;
    t->tried[t->count++] = (trial){window_ns, lag_ns, m.rms};
    if (t->count > 1 && m.rms >= worth * t->out->match.rms)
        return;
    t->out->window_ns = window_ns;
    t->out->lag_ns = lag_ns;
    t->out->match = m;
    t->out->match.shift_s += t->shift_s;
}

/* Whether a trial is another kind of sensor, or has a window or lag outside the range that fits as well. */
static bool others(const trial *a, const fl_sensor_learnt *o) {
    const int64_t at = o->lag_ns ? a->lag_ns : a->window_ns;
    return (a->lag_ns > 0) != (o->lag_ns > 0) || at < o->low_ns || at > o->high_ns;
}

static void try_all(trials *t) {
    static const int windows[] = {0,   10,  20,  25,  50,   75,   100,  150,  200,  250, 300,
                                  400, 500, 600, 750, 1000, 1250, 1500, 2000, 3000, 4000},
                     lags[] = {25, 50, 100, 150, 200, 300, 400, 600, 800, 1200};
    static const double near[] = {0.8, 0.9, 1.1, 1.25};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        try_one(t, windows[i] * MS, 0, 1);
    for (size_t i = 0; i < sizeof lags / sizeof *lags; i++)
        try_one(t, 0, lags[i] * MS, 1);
    const int64_t window_ns = t->out->window_ns, lag_ns = t->out->lag_ns;
    for (size_t i = 0; t->count && window_ns + lag_ns > 0 && i < sizeof near / sizeof *near; i++)
        try_one(t, llround((double)window_ns * near[i]), llround((double)lag_ns * near[i]), 0.9);
    fl_sensor_learnt *o = t->out;
    o->low_ns = o->high_ns = o->lag_ns ? o->lag_ns : o->window_ns;
    for (size_t i = 0; i < t->count; i++) {
        const trial *a = &t->tried[i];
        if ((a->lag_ns > 0) != (o->lag_ns > 0) || a->rms > ALIKE * o->match.rms)
            continue;
        const int64_t at = o->lag_ns ? a->lag_ns : a->window_ns;
        o->low_ns = at < o->low_ns ? at : o->low_ns;
        o->high_ns = at > o->high_ns ? at : o->high_ns;
    }
    o->next_rms_pct = INFINITY;
    for (size_t i = 0; i < t->count; i++)
        if (others(&t->tried[i], o) && 100 * t->tried[i].rms / o->step_w < o->next_rms_pct) {
            o->next_rms_pct = 100 * t->tried[i].rms / o->step_w;
            o->next_window_ns = t->tried[i].window_ns;
            o->next_lag_ns = t->tried[i].lag_ns;
        }
}

fl_model_status fl_sensor_learn_window(const fl_sensor_course *course, const fl_sensor_log *log, double shift_s,
                                       fl_sensor_learnt *out) {
    if (!course || !log || !out || !(out->step_w > 0))
        return FL_MODEL_NO_FIT;
    /* Uses the middle of a long log: its readings, and when each was shown, on the meter's clock. */
    const size_t used = log->count < USED_MAX ? log->count : USED_MAX, first = (log->count - used) / 2;
    double *buffer = malloc((2 * log->count + 1) * sizeof *buffer);
    if (!buffer)
        return FL_MODEL_NO_MEMORY;
    double *time_s = buffer, *shown_s = buffer + log->count;
    fl_model_status s = fl_sensor_seen(log, out->period_s, out->phase_s, shown_s);
    for (size_t i = 0; i < log->count; i++) {
        time_s[i] = log->time_s[i] + shift_s;
        shown_s[i] += shift_s;
    }
    trials t = {.course = course,
                .log = {time_s + first, log->watts + first, used},
                .shown_s = shown_s + first,
                .shift_s = shift_s,
                .out = out};
    if (s == FL_MODEL_OK) {
        try_all(&t);
        s = t.status;
    }
    if (s == FL_MODEL_OK && !t.count)
        s = FL_MODEL_NO_FIT;
    if (s == FL_MODEL_OK)
        out->rms_pct = 100 * out->match.rms / out->step_w;
    free(buffer);
    return s;
}
