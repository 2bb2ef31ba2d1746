/* A power sensor learnt from made-up recordings: a course of seeded steps, seen by sensors of known refresh, window,
 * lag, quantum, gain and clock. What is learnt must hold the truth. */
#include "models/fit/fit.h"
#include "models/fit/inside.h"
#include "models/laws/device.h"
#include "models/math/math.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>

#define MS INT64_C(1000000)
enum { SAMPLES = 30000, READINGS = 4000 }; /* 30 s each ms; 28 s each 7 ms */
#define READ_S 0.007
#define FIRST_S 1.2   /* of the log, on the meter's clock */
#define CLOCK_S 321.5 /* the meter's clock less the log's */

typedef struct recording {
    double meter_s[SAMPLES], meter_w[SAMPLES], read_s[READINGS], read_w[READINGS];
} recording;

static double chance(uint64_t *state) { /* 0..1 */
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

static void draw_course(recording *r, uint64_t seed) {
    uint64_t state = seed;
    double watts = 80, left = 0;
    for (int i = 0; i < SAMPLES; i++, left--) {
        if (left <= 0) {
            watts = watts > 150 ? 60 + 40 * chance(&state) : 200 + 80 * chance(&state);
            left = 150 + 900 * chance(&state);
        }
        r->meter_s[i] = i * 1e-3;
        r->meter_w[i] = watts + 2 * chance(&state) - 1;
    }
}

typedef struct board {
    const char *what;
    int64_t refresh_ms, window_ms, lag_ms;
    double quantum, gain, offset, held_s; /* held_s: once, the sensor stands still for so long */
} board;

static void read_board(const board *b, recording *r) {
    const fl_sensor_spec spec = {
        .period_ns = b->refresh_ms * MS, .window_ns = b->window_ms * MS, .lag_ns = b->lag_ms * MS, .present = 1};
    const fl_sensor_course course = {r->meter_s, r->meter_w, SAMPLES};
    for (int i = 0; i < READINGS; i++)
        r->read_s[i] = FIRST_S + i * READ_S;
    FL_CHECK(fl_sensor_replay(&spec, &course, r->read_s, READINGS, r->read_w) == FL_MODEL_OK, "%s", b->what);
    for (int i = 0; i < READINGS; i++) {
        const double at = r->read_s[i] - FIRST_S;
        r->read_w[i] = fl_sensor_quantise(b->gain * r->read_w[i] + b->offset, b->quantum);
        if (b->held_s > 0 && at > 10 && at < 10 + b->held_s)
            r->read_w[i] = r->read_w[i - 1];
        r->read_s[i] -= CLOCK_S;
    }
}

static const board BOARDS[] = {
    {"100 ms, mean of 25", 100, 25, 0, 0.01, 0.95, -2, 0},
    {"100 ms, mean of 100", 100, 100, 0, 0.01, 1, 0, 0},
    {"100 ms, mean of 1000", 100, 1000, 0, 0.1, 1.02, 1, 0},
    {"20 ms, mean of 10", 20, 10, 0, 0.001, 0.97, 0, 0},
    {"100 ms, a lag of 400", 100, 0, 400, 1, 1, 3, 0},
    {"100 ms, holds for 750 ms", 100, 25, 0, 0.01, 0.95, -2, 0.75},
};

static void test_boards(void) {
    recording *r = calloc(1, sizeof *r);
    if (!r)
        exit(1);
    for (size_t i = 0; i < sizeof BOARDS / sizeof *BOARDS; i++) {
        const board *b = &BOARDS[i];
        if (i % 4 > 1 && !fl_nightly()) /* other windows and quanta */
            continue;
        draw_course(r, 1 + i);
        read_board(b, r);
        const fl_sensor_log log = {r->read_s, r->read_w, READINGS};
        const fl_sensor_course course = {r->meter_s, r->meter_w, SAMPLES};
        fl_sensor_learnt l = {0};
        double shift = 0, correlated = 0;
        FL_CHECK(fl_sensor_learn(&log, &l) == FL_MODEL_OK && fabs(l.period_s * 1e3 - (double)b->refresh_ms) < 0.2,
                 "%s: refresh %.3f ms", b->what, 1e3 * l.period_s);
        FL_CHECK(l.quantum == b->quantum, "%s: steps of %g", b->what, l.quantum);
        FL_CHECK(b->held_s <= 0 || (l.held_s >= b->held_s - 0.1 && l.held_s <= b->held_s + 0.25), "%s: held %.3f s",
                 b->what, l.held_s);
        const double back = 1e-3 * ((double)b->window_ms / 2 + (double)b->lag_ms);
        FL_CHECK(fl_sensor_shift(&course, &log, &shift, &correlated) == FL_MODEL_OK &&
                     fabs(shift - CLOCK_S + back) < 0.15 + back / 2,
                 "%s: shift %.3f s, r %.3f", b->what, shift, correlated);
        FL_CHECK(fl_sensor_learn_window(&course, &log, shift, &l) == FL_MODEL_OK, "%s: no window", b->what);
        const double found = 1e-6 * (double)(b->lag_ms ? l.lag_ns : l.window_ns),
                     truth = (double)(b->lag_ms ? b->lag_ms : b->window_ms);
        FL_CHECK((l.lag_ns > 0) == (b->lag_ms > 0) && found > 0.75 * truth && found < 1.35 * truth &&
                     1e-6 * (double)l.low_ns <= truth && truth <= 1e-6 * (double)l.high_ns * 1.0001,
                 "%s: window %.1f ms, lag %.1f ms, %.1f to %.1f fit as well", b->what, 1e-6 * (double)l.window_ns,
                 1e-6 * (double)l.lag_ns, 1e-6 * (double)l.low_ns, 1e-6 * (double)l.high_ns);
        FL_CHECK(l.rms_pct < 1 && l.next_rms_pct > l.rms_pct, "%s: %.3f %%, next %.3f %%", b->what, l.rms_pct,
                 l.next_rms_pct);
        FL_CHECK(fabs(l.match.gain - b->gain) < 0.01 && fabs(l.match.offset - b->offset) < 1.5 &&
                     fabs(l.match.shift_s - CLOCK_S) < 0.02,
                 "%s: gain %.4f, offset %.2f W, shift %.4f s", b->what, l.match.gain, l.match.offset, l.match.shift_s);
    }
    free(r);
}

static void test_refusals(void) {
    recording *r = calloc(1, sizeof *r);
    if (!r)
        exit(1);
    draw_course(r, 7);
    read_board(&BOARDS[0], r);
    const fl_sensor_log log = {r->read_s, r->read_w, READINGS};
    fl_sensor_learnt l = {0}, none = {0};
    double shift, correlated;
    FL_CHECK(fl_sensor_learn(&log, &l) == FL_MODEL_OK, "the log itself");
    for (int i = 0; i < SAMPLES; i++)
        r->meter_w[i] = 100;
    const fl_sensor_course flat = {r->meter_s, r->meter_w, SAMPLES};
    FL_CHECK(fl_sensor_shift(&flat, &log, &shift, &correlated) == FL_MODEL_NO_FIT, "a flat meter has a shift");
    FL_CHECK(fl_sensor_learn_window(&flat, &log, 0, &l) == FL_MODEL_NO_FIT, "a flat meter has a window");
    FL_CHECK(fl_sensor_learn_window(&flat, &log, 0, &none) == FL_MODEL_NO_FIT, "nothing was learnt before");
    for (int i = 0; i < READINGS; i++)
        r->read_w[i] = 100;
    FL_CHECK(fl_sensor_learn(&log, &l) == FL_MODEL_NO_FIT, "a flat log has a refresh");
    free(r);
}

FL_SUITE("sensor_learn", {"boards", test_boards}, {"refusals", test_refusals})
