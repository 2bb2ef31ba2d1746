/* What a log and a meter's course tell of a sensor, by hand or by a second computation from the definitions in
 * models/fit/fit.h and models/fit/fit.h. */
#include "models/fit/fit.h"
#include "models/fit/inside.h"
#include "models/laws/device.h"
#include "models/math/math.h"
#include "tests/support/exact.h"
#include "tests/support/suite.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static double chance(uint64_t *state) { /* 0..1 */
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

/* ---- refreshes ---- */

typedef struct board {
    const char *what;
    double period_s, phase_s, poll_s, jitter_s;
    int refreshes;
    bool repeats;   /* four of eleven refreshes repeat the value before */
    int late, lost; /* one refresh that comes out 0.3 periods late; every so many readings fail */
} board;

/* The middles of the intervals in which the refreshes lie, on the numbers of the refreshes, by weighted least squares:
 * an interval's deviation goes as its width. The late one lies further than a twentieth of a period from the others'
 * line and does not count. */
static void test_refreshes(void) {
    static const board boards[] = {
        {"each refresh is seen", 0.1, 0.031, 0.011, 0.002, 200, false, 0, 0},
        {"read at a steady rate", 0.1, 0.055, 0.017, 0, 300, false, 0, 0},
        {"some repeat", 0.1, 0.02, 0.012, 0.003, 400, true, 0, 0},
        {"readings fail", 0.2, 0.151, 0.021, 0.001, 200, false, 0, 7},
        {"one comes late", 0.1, 0.031, 0.009, 0.001, 200, false, 60, 0},
        {"a fast one", 0.02, 0.007, 0.003, 0.0005, 500, false, 0, 11},
        {"few", 0.1, 0.04, 0.011, 0.001, 12, false, 0, 0},
    };
    for (size_t b = 0; b < COUNT(boards); b++) {
        const board *d = &boards[b];
        const double first_s = 40, end_s = first_s + d->period_s * d->refreshes;
        const size_t room = (size_t)((end_s - first_s) / d->poll_s) + 2;
        double *time_s = exact(NULL, room * sizeof *time_s), *watts = exact(NULL, room * sizeof *watts);
        uint64_t state = b;
        size_t n = 0;
        double last_w = NAN, last_s = NAN, sw = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
        for (double t = first_s; t < end_s && n < room; t += d->poll_s + d->jitter_s * chance(&state)) {
            int k = (int)floor((t - first_s - d->phase_s) / d->period_s);
            if (d->late && k == d->late && t - first_s - d->phase_s - k * d->period_s < 0.3 * d->period_s)
                k--;
            int step = k; /* of refreshes that repeat the value before, four in eleven, the number stays */
            for (int j = 0; d->repeats && j <= k; j++)
                step -= j * j % 11 < 5 ? 0 : 1;
            const double w = 100 + 37 * step - 50 * floor(0.74 * step);
            time_s[n] = t;
            watts[n] = d->lost && n % (size_t)d->lost == 3 ? (double)NAN : w;
            if (!isnan(watts[n])) {
                if (!isnan(last_w) && last_w != w && (!d->late || k != d->late)) {
                    const double x = k, half = (t - last_s) / 2, weight = 1 / (half * half),
                                 y = (t + last_s) / 2 - first_s;
                    sw += weight;
                    sx += weight * x;
                    sy += weight * y;
                    sxx += weight * x * x;
                    sxy += weight * x * y;
                }
                last_w = w;
                last_s = t;
            }
            n++;
        }
        const double period = (sw * sxy - sx * sy) / (sw * sxx - sx * sx), at = first_s + (sy - period * sx) / sw;
        const double phase = at + period * ceil((first_s - at) / period);
        double got_period = NAN, got_phase = NAN;
        /* a log of exactly its length */
        double *log_s = exact(time_s, n * sizeof *time_s), *log_w = exact(watts, n * sizeof *watts);
        const fl_model_status s = fl_sensor_refreshes(&(fl_sensor_log){log_s, log_w, n}, &got_period, &got_phase);
        FL_CHECK(s == FL_MODEL_OK && fabs(got_period / period - 1) < 1e-9 && fabs(got_phase - phase) < 1e-7 * period,
                 "%s: %s, period %.9f s, expected %.9f, phase %.9f s, expected %.9f", d->what, fl_model_text(s),
                 got_period, period, got_phase, phase);
        free(log_s);
        free(log_w);
        free(time_s);
        free(watts);
    }
}

/* Eight changes tell a period, seven do not, and neither do changes that keep none. */
static void test_few(void) {
    for (int changes = 6; changes <= 10; changes++)
        for (int each = 1; each <= 4; each += 3) { /* readings between two changes */
            const size_t n = (size_t)(changes * each + 1);
            double *time_s = exact(NULL, n * sizeof *time_s), *watts = exact(NULL, n * sizeof *watts);
            for (size_t i = 0; i < n; i++) {
                time_s[i] = 2 + 0.25 / each * (double)i;
                watts[i] = (i + (size_t)each - 1) / (size_t)each % 2 ? 50 : 70;
            }
            double period = NAN, phase = NAN;
            const fl_model_status s = fl_sensor_refreshes(&(fl_sensor_log){time_s, watts, n}, &period, &phase);
            FL_CHECK(s == (changes < 8 ? FL_MODEL_NO_FIT : FL_MODEL_OK), "%d changes: %s", changes, fl_model_text(s));
            /* each lies in the middle between the reading that shows it and the one before */
            if (!s)
                FL_CHECK(fabs(period - 0.25) < 1e-12 && fabs(phase - (2 + 0.125 / each)) < 1e-12,
                         "%d changes: period %g s, phase %g s", changes, period, phase);
            free(time_s);
            free(watts);
        }
    enum { READINGS = 3000 };
    double *time_s = exact(NULL, READINGS * sizeof *time_s), *watts = exact(NULL, READINGS * sizeof *watts);
    for (uint64_t seed = 0; seed < 4; seed++) {
        uint64_t state = seed;
        double period, phase;
        for (int i = 0; i < READINGS; i++) {
            time_s[i] = 0.01 * i + 0.002 * chance(&state);
            watts[i] = i && chance(&state) > 0.1 ? watts[i - 1] : 100 * chance(&state);
        }
        const fl_model_status s = fl_sensor_refreshes(&(fl_sensor_log){time_s, watts, READINGS}, &period, &phase);
        FL_CHECK(s == FL_MODEL_NO_FIT, "seed %d: chance keeps a period of %g s", (int)seed, period);
    }
    free(time_s);
    free(watts);
}

/* A grid at 0.5, 1.5, 2.5 .. s. */
static void test_seen(void) {
    static const struct {
        double t, w, shown;
        const char *what;
    } rows[] = {
        {0.25, 10, NAN, "nothing has changed yet"},
        {0.75, NAN, NAN, "a reading that failed"},
        {1.25, 20, 0.5, "the grid's point between 0.25 and 1.25"},
        {1.5, 20, 0.5, "the same value again"},
        {1.75, 30, 1.5, "the reading before came at the point itself"},
        {2.25, 40, 1.75, "no point between; both are as near: the earlier end"},
        {2.4375, 50, 2.4375, "the next point is nearer"},
        {2.5, 60, 2.5, "at the point"},
        {2.625, 70, 2.5, "from the point on"},
        {2.75, 80, 2.625, "the point before is nearer"},
        {7, 90, 6.5, "the last of five points"},
        {7, NAN, NAN, "failed"},
        {7.25, 90, 6.5, "and again"},
    };
    double *t = exact(NULL, COUNT(rows) * sizeof *t), *w = exact(NULL, COUNT(rows) * sizeof *w),
           *shown = exact(NULL, COUNT(rows) * sizeof *shown);
    for (size_t i = 0; i < COUNT(rows); i++) {
        t[i] = rows[i].t;
        w[i] = rows[i].w;
    }
    for (int k = -3; k <= 3; k += 3) { /* whichever of its points names the grid */
        CU_ASSERT_FATAL(fl_sensor_seen(&(fl_sensor_log){t, w, COUNT(rows)}, 1, 0.5 + k, shown) == FL_MODEL_OK);
        for (size_t i = 0; i < COUNT(rows); i++)
            FL_CHECK(isnan(rows[i].shown) ? isnan(shown[i]) : shown[i] == rows[i].shown, "%s: %g", rows[i].what,
                     shown[i]);
    }
    free(t);
    free(w);
    free(shown);
}

/* The 95th less the 5th percentile: of n values the one at 0.95 (n - 1), joined by lines. */
static void test_step(void) {
    static const struct {
        size_t n, lost;
        double step;
    } rows[] = {{21, 0, 18}, {41, 0, 36}, {11, 0, 9}, {1, 0, 0}, {21, 30, 18}, {2, 0, 0.9}};
    for (size_t k = 0; k < COUNT(rows); k++) {
        const size_t n = rows[k].n + rows[k].lost;
        double *t = exact(NULL, n * sizeof *t), *w = exact(NULL, n * sizeof *w), step = NAN;
        for (size_t i = 0; i < n; i++) {
            t[i] = (double)i;
            w[i] = i < rows[k].n ? (double)(i * 13 % rows[k].n) : (double)NAN; /* 0 .. n - 1 in some order */
        }
        FL_CHECK(fl_sensor_step(&(fl_sensor_log){t, w, n}, &step) == FL_MODEL_OK && fabs(step - rows[k].step) < 1e-12,
                 "%zu values: %g", n, step);
        free(t);
        free(w);
    }
}

/* ---- a log beside a course ---- */

enum { SAMPLES = 640 };     /* of 1/64 s each: 10 s */
#define SAMPLE_S (1.0 / 64) /* so that all times are exact */

static void draw_course(double *time_s, double *watts) {
    uint64_t state = 3;
    for (int i = 0; i < SAMPLES; i++) {
        time_s[i] = i * SAMPLE_S;
        watts[i] = 50 + 200 * chance(&state);
    }
}

/* Readings of the mean over a quarter of a second, each half a second, on a clock that is a shift behind the meter's.
 * The residual is orthogonal to a line by construction: it is what is left after a line is taken out of it. */
static void test_align(void) {
    static const struct {
        double shift_s, reach_s, gain, offset, scatter_w;
        int readings;
        size_t
            used; /* readings whose window is covered at both ends of the range: 0.25 s + reach before, reach after */
    } rows[] = {
        {0.125, 0.25, 0.9, -3, 0, 19, 19}, {-0.25, 0.5, 1.1, 5, 0, 19, 17},
        {0, 0.5, 1, 0, 0, 19, 17},         {0, 0, 0.9, -3, 4, 19, 19},
        {0, 0, 1, 0, 0, 19, 19},           {0.25, 0.25, 1, 2, 0, 12, 12},
        {0, 0, 1, 2, 0.5, 12, 12},         {0, 31 * SAMPLE_S, 1, 2, 0, 19, 18},
        {0, 0.25, 1, 2, 0, 9, 9},          {0, 0.25, 1, 2, 0, 8, 8},
        {0, 0.25, 1, 2, 0, 7, 0},
    };
    double *meter_s = exact(NULL, SAMPLES * sizeof *meter_s), *meter_w = exact(NULL, SAMPLES * sizeof *meter_w);
    draw_course(meter_s, meter_w);
    const fl_sensor_course course = {meter_s, meter_w, SAMPLES};
    for (size_t k = 0; k < COUNT(rows); k++) {
        const size_t n = (size_t)rows[k].readings;
        double *t = exact(NULL, n * sizeof *t), *w = exact(NULL, n * sizeof *w), *x = exact(NULL, n * sizeof *x);
        double *e = exact(NULL, n * sizeof *e), m = 0, sx = 0, sxx = 0, se = 0, sxe = 0, squares = 0;
        for (size_t i = 0; i < n; i++) {
            t[i] = 0.5 + 0.5 * (double)i;
            const int end = (int)((t[i] + rows[k].shift_s) / SAMPLE_S);
            for (int j = end - 16; j < end; j++)
                x[i] += (j >= 0 && j < SAMPLES ? meter_w[j] : 0) / 16;
            e[i] = rows[k].scatter_w * sin(7.0 * (double)(i * i));
            if (t[i] - rows[k].reach_s - 0.25 < 0 || t[i] + rows[k].reach_s > meter_s[SAMPLES - 1])
                continue;
            m++;
            sx += x[i];
            sxx += x[i] * x[i];
            se += e[i];
            sxe += x[i] * e[i];
        }
        const double slope = (m * sxe - sx * se) / (m * sxx - sx * sx), level = (se - slope * sx) / m;
        for (size_t i = 0; i < n; i++) {
            e[i] -= level + slope * x[i];
            if (!(t[i] - rows[k].reach_s - 0.25 < 0 || t[i] + rows[k].reach_s > meter_s[SAMPLES - 1]))
                squares += e[i] * e[i];
            w[i] = rows[k].gain * x[i] + rows[k].offset + e[i];
        }
        const fl_sensor_spec spec = {.period_ns = 500000000, .window_ns = 250000000, .present = 1};
        fl_sensor_match got = {.gain = 7};
        const fl_model_status s = fl_sensor_align(&spec, &course, &(fl_sensor_log){t, w, n}, t, rows[k].reach_s, &got);
        if (!rows[k].used)
            FL_CHECK(s == FL_MODEL_NO_FIT && got.gain == 7, "row %zu: %s, %zu readings", k, fl_model_text(s), got.used);
        else
            FL_CHECK(s == FL_MODEL_OK && got.used == rows[k].used && (double)got.used == m &&
                         fabs(got.shift_s - rows[k].shift_s) < 1e-12 && fabs(got.gain - rows[k].gain) < 1e-9 &&
                         fabs(got.offset - rows[k].offset) < 1e-7 && fabs(got.rms - sqrt(squares / m)) < 1e-9,
                     "row %zu: %s, %zu readings, shift %g s, gain %g, offset %g W, rms %g W of %g", k, fl_model_text(s),
                     got.used, got.shift_s, got.gain, got.offset, got.rms, sqrt(squares / m));
        free(t);
        free(w);
        free(x);
        free(e);
    }
    free(meter_s);
    free(meter_w);
}

/* ---- the shift between two clocks ---- */

/* Pearson's r of the readings and the course, each less its mean; readings outside of the course do not count. */
static double pearson(const fl_sensor_course *c, const fl_sensor_log *log, double shift) {
    double n = 0, mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < log->count; i++) {
            const double t = log->time_s[i] + shift, y = log->watts[i];
            if (t < c->time_s[0] || t > c->time_s[c->count - 1] || isnan(y))
                continue;
            size_t k = c->count - 1;
            while (c->time_s[k] > t)
                k--;
            if (k == c->count - 1)
                k--; /* the last sample only ends the course */
            const double x = c->watts[k];
            if (pass == 0) {
                n++;
                mx += x;
                my += y;
                continue;
            }
            xx += (x - mx / n) * (x - mx / n);
            yy += (y - my / n) * (y - my / n);
            xy += (x - mx / n) * (y - my / n);
        }
    }
    return xy / sqrt(xx * yy);
}

/* The log lies within the course, the course within the log, or each overlaps the other by two thirds. */
static void test_shift(void) {
    static const struct {
        double from_s, length_s, clock_s; /* of the log, on the meter's clock; meter's clock less the log's */
    } rows[] = {{1, 8, 100}, {0, 9.9, -37.5}, {-2, 14, 12}, {3.3, 9.9, 5}, {-3.3, 9.9, 0}, {4, 4, 1000}};
    double *meter_s = exact(NULL, SAMPLES * sizeof *meter_s), *meter_w = exact(NULL, SAMPLES * sizeof *meter_w);
    uint64_t state = 11;
    double watts = 70;
    for (int i = 0; i < SAMPLES; i++) {
        if (chance(&state) < 0.05) /* loads that last a third of a second in the mean */
            watts = 50 + 200 * chance(&state);
        meter_s[i] = i * SAMPLE_S;
        meter_w[i] = watts + chance(&state);
    }
    const fl_sensor_course course = {meter_s, meter_w, SAMPLES};
    for (size_t k = 0; k < COUNT(rows); k++) {
        const double period = 0.1, read_s = 0.025;
        const size_t n = (size_t)(rows[k].length_s / read_s);
        double *t = exact(NULL, n * sizeof *t), *w = exact(NULL, n * sizeof *w);
        for (size_t i = 0; i < n; i++) {
            const double at = rows[k].from_s + read_s * (double)i + 0.004, shown = period * floor(at / period);
            const int sample = (int)floor(shown / SAMPLE_S);
            t[i] = at - rows[k].clock_s;
            /* beyond the course it draws something else */
            w[i] =
                sample >= 0 && sample < SAMPLES ? 0.9 * meter_w[sample] - 3 + 0.01 * shown : 90 + 60 * sin(9 * shown);
            if (i % 50 == 17)
                w[i] = NAN;
        }
        const fl_sensor_log log = {t, w, n};
        double shift = NAN, r = NAN;
        const fl_model_status s = fl_sensor_shift(&course, &log, &shift, &r);
        /* a reading shows what was up to a refresh before */
        FL_CHECK(s == FL_MODEL_OK && shift > rows[k].clock_s - 1.5 * period && shift < rows[k].clock_s + period / 2,
                 "row %zu: %s, shift %g s", k, fl_model_text(s), shift);
        const double here = pearson(&course, &log, shift);
        FL_CHECK(fabs(r - here) < 1e-9, "row %zu: r %.12f, expected %.12f", k, r, here);
        for (int step = -4; step <= 4; step++) {
            const double there = pearson(&course, &log, shift + step * period / 2);
            FL_CHECK(there <= here + 1e-3, "row %zu: r %g, %g half refreshes beside it %g", k, here, (double)step,
                     there);
        }
        free(t);
        free(w);
    }
    free(meter_s);
    free(meter_w);
}

FL_SUITE("sensor_fit_by_hand", {"refreshes", test_refreshes}, {"few changes", test_few}, {"seen", test_seen},
         {"step", test_step}, {"align", test_align}, {"shift", test_shift})
