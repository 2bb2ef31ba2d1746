/* Every window and lag that is tried, learnt from a sensor that has just it: at each refresh the log shows the exact
 * mean, or lag, of a course of power that differs from sample to sample. Only that trial fits without a residual. */
#include "models/fit/fit.h"
#include "models/fit/inside.h"
#include "models/laws/device.h"
#include "models/math/math.h"
#include "tests/support/exact.h"
#include "tests/support/suite.h"

#include <math.h>

#define MS INT64_C(1000000)
enum { SAMPLES = 1900, SAMPLE_MS = 10, REFRESH_MS = 250, LAG_REFRESH_MS = 100, PHASE_MS = 133, READINGS = 72 };
#define GAIN 0.9
#define OFFSET 7.0

typedef struct recording {
    double *meter_s, *meter_w, *read_s, *read_w;
    fl_sensor_course course;
    fl_sensor_log log;
} recording;

static recording record(void) {
    recording r = {exact(NULL, SAMPLES * sizeof(double)),
                   exact(NULL, SAMPLES * sizeof(double)),
                   exact(NULL, READINGS * sizeof(double)),
                   exact(NULL, READINGS * sizeof(double)),
                   {0},
                   {0}};
    uint64_t state = 7;
    for (int i = 0; i < SAMPLES; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        r.meter_s[i] = i * SAMPLE_MS * 1e-3;
        r.meter_w[i] = 100 + 200 * (double)(state >> 40) / 16777216;
    }
    r.course = (fl_sensor_course){r.meter_s, r.meter_w, SAMPLES};
    r.log = (fl_sensor_log){r.read_s, r.read_w, READINGS};
    return r;
}

static void end(recording *r) {
    free(r->meter_s);
    free(r->meter_w);
    free(r->read_s);
    free(r->read_w);
}

/* The mean of the course over the window before a time, both in ms, millisecond by millisecond. */
static double mean_of(const recording *r, int end_ms, int window_ms) {
    double sum = 0;
    for (int t = end_ms - window_ms; t < end_ms; t++)
        sum += r->meter_w[t / SAMPLE_MS];
    return window_ms ? sum / window_ms : r->meter_w[end_ms / SAMPLE_MS];
}

/* One reading 60 ms after each refresh, on the log's clock: the mean over a window. */
static void read_mean(recording *r, int window_ms, double clock_s) {
    for (int i = 0; i < READINGS; i++) {
        const int at_ms = PHASE_MS + i * REFRESH_MS;
        r->read_s[i] = (at_ms + 60) * 1e-3 - clock_s;
        r->read_w[i] = GAIN * (at_ms >= window_ms ? mean_of(r, at_ms, window_ms) : 0) + OFFSET;
    }
}

/* The same of a lag. It is followed from the first value that counts: one that is seen to appear, and that the course
 * covers at every shift, which may be 200 ms and the lag. It begins settled eight of its times before that one, or
 * where the course begins, and goes on in steps of about a refresh. */
static void read_lag(recording *r, int lag_ms) {
    double shown = NAN;
    int first = 1;
    while (PHASE_MS + first * LAG_REFRESH_MS < 200 + lag_ms)
        first++;
    for (int i = 0; i < READINGS; i++) {
        const double at_ms = PHASE_MS + i * LAG_REFRESH_MS;
        double from = at_ms - LAG_REFRESH_MS, steps = 1;
        if (i == first) {
            from = at_ms > 8 * lag_ms ? at_ms - 8 * lag_ms : 0;
            steps = fmax(1, round((at_ms - from) / LAG_REFRESH_MS));
            shown = mean_of(r, (int)from, 0);
        }
        for (int k = 1; i >= first && k <= steps; k++) {
            const double input = r->meter_w[(int)floor((from + k * (at_ms - from) / steps + 1e-6) / SAMPLE_MS)];
            shown = input + (shown - input) * exp(-(at_ms - from) / steps / lag_ms);
        }
        r->read_s[i] = (at_ms + 60) * 1e-3;
        r->read_w[i] = i >= first ? GAIN * shown + OFFSET : i;
    }
}

static fl_sensor_learnt known(int refresh_ms, double clock_s) {
    return (fl_sensor_learnt){.period_s = refresh_ms * 1e-3, .phase_s = PHASE_MS * 1e-3 - clock_s, .step_w = 50};
}

/* A clock of the meter that is 3 s ahead, and known as such. */
static void test_windows(void) {
    static const int windows[] = {0,   10,  20,  25,  50,   75,   100,  150,  200,  250, 300,
                                  400, 500, 600, 750, 1000, 1250, 1500, 2000, 3000, 4000};
    recording r = record();
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        fl_sensor_learnt l = known(REFRESH_MS, 3);
        read_mean(&r, windows[i], 3);
        CU_ASSERT_FATAL(fl_sensor_learn_window(&r.course, &r.log, 3, &l) == FL_MODEL_OK);
        FL_CHECK(l.window_ns == windows[i] * MS && l.lag_ns == 0, "%d ms: %g ms, lag %g ms", windows[i],
                 1e-6 * (double)l.window_ns, 1e-6 * (double)l.lag_ns);
        FL_CHECK(l.low_ns == l.window_ns && l.high_ns == l.window_ns, "%d ms: %g to %g fit as well", windows[i],
                 1e-6 * (double)l.low_ns, 1e-6 * (double)l.high_ns);
        FL_CHECK(fabs(l.match.gain - GAIN) < 1e-9 && fabs(l.match.offset - OFFSET) < 1e-6 && l.match.rms < 1e-6 &&
                     fabs(l.match.shift_s - 3) < (windows[i] ? 1e-12 : 0.01) &&
                     fabs(l.rms_pct - 100 * l.match.rms / 50) < 1e-9,
                 "%d ms: gain %g, offset %g W, rms %g W, %g %%, shift %g s", windows[i], l.match.gain, l.match.offset,
                 l.match.rms, l.rms_pct, l.match.shift_s);
        /* the windows most like it are a tenth longer and shorter; below 50 ms a sample is as long as they */
        FL_CHECK(windows[i] < 50 || (l.next_lag_ns == 0 && (l.next_window_ns == llround(windows[i] * 0.9e6) ||
                                                            l.next_window_ns == llround(windows[i] * 1.1e6))),
                 "%d ms: next %g ms, lag %g ms", windows[i], 1e-6 * (double)l.next_window_ns,
                 1e-6 * (double)l.next_lag_ns);
    }
    end(&r);
}

static void test_lags(void) {
    static const int lags[] = {25, 50, 100, 150, 200, 300, 400, 600, 800, 1200};
    recording r = record();
    for (size_t i = 0; i < sizeof lags / sizeof *lags; i++) {
        fl_sensor_learnt l = known(LAG_REFRESH_MS, 0);
        read_lag(&r, lags[i]);
        CU_ASSERT_FATAL(fl_sensor_learn_window(&r.course, &r.log, 0, &l) == FL_MODEL_OK);
        FL_CHECK(l.lag_ns == lags[i] * MS && l.window_ns == 0, "lag of %d ms: %g ms, window %g ms", lags[i],
                 1e-6 * (double)l.lag_ns, 1e-6 * (double)l.window_ns);
        FL_CHECK(l.low_ns == l.lag_ns && l.high_ns == l.lag_ns && l.next_window_ns == 0 &&
                     (l.next_lag_ns == llround(lags[i] * 0.9e6) || l.next_lag_ns == llround(lags[i] * 1.1e6)),
                 "lag of %d ms: %g to %g fit as well, next lag %g ms, window %g ms", lags[i], 1e-6 * (double)l.low_ns,
                 1e-6 * (double)l.high_ns, 1e-6 * (double)l.next_lag_ns, 1e-6 * (double)l.next_window_ns);
        FL_CHECK(fabs(l.match.gain - GAIN) < 1e-9 && fabs(l.match.offset - OFFSET) < 1e-6 && l.match.rms < 1e-6 &&
                     fabs(l.match.shift_s) < 0.01,
                 "lag of %d ms: gain %g, offset %g W, rms %g W, shift %g s", lags[i], l.match.gain, l.match.offset,
                 l.match.rms, l.match.shift_s);
    }
    end(&r);
}

/* ---- which others fit as well ---- */

typedef struct attempt {
    int64_t window_ns, lag_ns;
    double rms;
} attempt;

static void attempt_one(const recording *r, const double *shown_s, int refresh_ms, int64_t window_ns, int64_t lag_ns,
                        attempt *list, size_t *count) {
    const fl_sensor_spec spec = {.period_ns = refresh_ms * MS,
                                 .phase_ns = PHASE_MS * MS,
                                 .window_ns = window_ns,
                                 .lag_ns = lag_ns,
                                 .present = 1};
    fl_sensor_match m;
    const double reach_s = 0.2 + 0.5e-9 * (double)window_ns + 1e-9 * (double)lag_ns;
    if (window_ns * 4 <= (SAMPLES - 1) * SAMPLE_MS * MS &&
        fl_sensor_align(&spec, &r->course, &r->log, shown_s, reach_s, &m) == FL_MODEL_OK)
        list[(*count)++] = (attempt){window_ns, lag_ns, m.rms};
}

/* Readings that scatter. The windows and lags within a quarter of the least RMS make the range, of the best one's kind;
 * what lies outside it and fits best is the next. */
static void test_range(void) {
    static const int windows[] = {0,   10,  20,  25,  50,   75,   100,  150,  200,  250, 300,
                                  400, 500, 600, 750, 1000, 1250, 1500, 2000, 3000, 4000},
                     lags[] = {25, 50, 100, 150, 200, 300, 400, 600, 800, 1200};
    static const struct {
        int window_ms, lag_ms;
        double scatter_w;
    } boards[] = {{100, 0, 6}, {500, 0, 3}, {1100, 0, 6}, {2700, 0, 2}, {0, 0, 20}, {0, 200, 6}, {0, 900, 3}};
    recording r = record();
    for (size_t b = 0; b < sizeof boards / sizeof *boards; b++) {
        const int refresh_ms = boards[b].lag_ms ? LAG_REFRESH_MS : REFRESH_MS;
        double *shown_s = exact(NULL, READINGS * sizeof *shown_s);
        attempt list[40];
        size_t count = 0, best = 0;
        if (boards[b].lag_ms)
            read_lag(&r, boards[b].lag_ms);
        else
            read_mean(&r, boards[b].window_ms, 0);
        for (int i = 0; i < READINGS; i++)
            r.read_w[i] += boards[b].scatter_w * sin(17.0 * i * i);
        CU_ASSERT_FATAL(fl_sensor_seen(&r.log, refresh_ms * 1e-3, PHASE_MS * 1e-3, shown_s) == FL_MODEL_OK);
        for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
            attempt_one(&r, shown_s, refresh_ms, windows[i] * MS, 0, list, &count);
        for (size_t i = 0; i < sizeof lags / sizeof *lags; i++)
            attempt_one(&r, shown_s, refresh_ms, 0, lags[i] * MS, list, &count);
        for (size_t i = 1; i < count; i++)
            best = list[i].rms < list[best].rms ? i : best;
        const attempt centre = list[best];
        for (int k = 0; centre.window_ns + centre.lag_ns > 0 && k < 4; k++) {
            static const double factor[] = {0.8, 0.9, 1.1, 1.25};
            attempt_one(&r, shown_s, refresh_ms, llround(factor[k] * (double)centre.window_ns),
                        llround(factor[k] * (double)centre.lag_ns), list, &count);
            if (list[count - 1].rms < 0.9 * list[best].rms) /* one that is not in the table must be better by a tenth */
                best = count - 1;
        }
        const bool lag = list[best].lag_ns > 0;
        int64_t low = INT64_MAX, high = 0;
        for (size_t i = 0; i < count; i++)
            if ((list[i].lag_ns > 0) == lag && list[i].rms <= 1.25 * list[best].rms) {
                const int64_t at = list[i].lag_ns + list[i].window_ns;
                low = at < low ? at : low;
                high = at > high ? at : high;
            }
        attempt next = {0, 0, INFINITY};
        for (size_t i = 0; i < count; i++) {
            const int64_t at = lag ? list[i].lag_ns : list[i].window_ns;
            if (((list[i].lag_ns > 0) != lag || at < low || at > high) && list[i].rms < next.rms)
                next = list[i];
        }
        fl_sensor_learnt l = known(refresh_ms, 0);
        CU_ASSERT_FATAL(fl_sensor_learn_window(&r.course, &r.log, 0, &l) == FL_MODEL_OK);
        FL_CHECK(l.window_ns == list[best].window_ns && l.lag_ns == list[best].lag_ns &&
                     fabs(l.match.rms / list[best].rms - 1) < 1e-9,
                 "board %zu: window %g ms, lag %g ms", b, 1e-6 * (double)l.window_ns, 1e-6 * (double)l.lag_ns);
        FL_CHECK(l.low_ns == low && l.high_ns == high, "board %zu: %g to %g, expected %g to %g", b,
                 1e-6 * (double)l.low_ns, 1e-6 * (double)l.high_ns, 1e-6 * (double)low, 1e-6 * (double)high);
        FL_CHECK(l.next_window_ns == next.window_ns && l.next_lag_ns == next.lag_ns &&
                     fabs(l.next_rms_pct / (100 * next.rms / 50) - 1) < 1e-9,
                 "board %zu: next %g ms, lag %g ms, %g %%, expected %g ms, lag %g ms, %g %%", b,
                 1e-6 * (double)l.next_window_ns, 1e-6 * (double)l.next_lag_ns, l.next_rms_pct,
                 1e-6 * (double)next.window_ns, 1e-6 * (double)next.lag_ns, 100 * next.rms / 50);
        free(shown_s);
    }
    end(&r);
}

FL_SUITE("sensor_learn_windows", {"windows", test_windows}, {"lags", test_lags}, {"range", test_range})
