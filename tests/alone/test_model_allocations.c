/* The models' own calls where memory runs out: each allocation of a call fails in turn, those of the library beneath it
 * too. The call then says so, and what it had made is freed (the leak checker sees the rest); or it does without, and
 * its result is the same. */
#include "tests/support/fail_alloc.c"

#include "models/chip/chip.h"
#include "models/chip/inside.h"
#include "models/fit/fit.h"
#include "models/fit/inside.h"
#include "models/laws/device.h"
#include "models/math/math.h"
#include "models/unsound/unsound.h"
#include "tests/support/made_up_chip.h"
#include "tests/support/suite.h"

#include <math.h>

typedef fl_model_status scenario(double *result);

/* A workspace of the library of which one part finds no memory is never freed by it, and a call cannot know. Where such
 * calls were tried, no leak is looked for. */
static int leaky;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return leaky; }

static long armed; /* which allocation of the calls under trial is to fail; 0: none */

#define TRY(s, call)                                                                                                   \
    do {                                                                                                               \
        if ((s) == FL_MODEL_OK) {                                                                                      \
            fail_at = armed;                                                                                           \
            (s) = (call);                                                                                              \
            fail_at = -1;                                                                                              \
        }                                                                                                              \
    } while (0)

/* So many allocations of a call fail: the first ones, and others spread over all of them. */
static void each_fails(scenario *run, long tries) {
    double whole = 0, again = 0;
    armed = 0, seen = 0;
    CU_ASSERT_FATAL(run(&whole) == FL_MODEL_OK);
    armed = 0, seen = 0;
    CU_ASSERT_FATAL(run(&again) == FL_MODEL_OK);
    const long count = seen;
    FL_CHECK(count > 0 && whole == again, "%ld allocations, %.17g and %.17g", count, whole, again);
    long refused = 0;
    for (long n = 1; n <= count; n += n < tries / 2 ? 1 : 1 + 2 * count / tries) {
        double result = 0;
        armed = n, seen = 0;
        const fl_model_status s = run(&result);
        refused += s == FL_MODEL_NO_MEMORY;
        FL_CHECK(s == FL_MODEL_NO_MEMORY || (s == FL_MODEL_OK && result == whole), "allocation %ld of %ld: %s, %.17g",
                 n, count, fl_model_text(s), result);
    }
    FL_CHECK(refused > 0, "no failure was told");
}

/* ---- a curve, a hull, a solver ---- */

static fl_model_status curves(double *result) {
    static const double x[] = {1, 2, 3, 5}, y[] = {4, 3, 2.5, 2.2};
    fl_curve *c = NULL, *copy = NULL;
    fl_convex hull = {0};
    fl_model_status s = FL_MODEL_OK;
    TRY(s, fl_curve_new(&c, x, y, 4));
    TRY(s, fl_curve_clone(&copy, c));
    TRY(s, fl_convex_new(&hull, x, y, 4));
    if (s == FL_MODEL_OK) {
        fl_curve_at(copy, 2.5, 0, result);
        *result += fl_convex_at(&hull, 2.5);
    }
    fl_curve_free(c);
    fl_curve_free(copy);
    fl_convex_free(&hull);
    return s;
}

static void line(void *user, const double *x, double *residual) {
    const double *y = user;
    for (int i = 0; i < 4; i++)
        residual[i] = x[0] + x[1] * i - y[i];
}

static fl_model_status solvers(double *result) {
    double y[] = {1, 2.1, 2.9, 4}, x[] = {0.5, 0.5};
    double metric[12], sensitivity[6];
    fl_sensitivity_fit fit;
    for (int i = 0; i < 6; i++) {
        metric[2 * i] = i;
        metric[2 * i + 1] = i * i % 5;
        sensitivity[i] = 0.3 + 0.1 * i - 0.02 * (i * i % 5) + 0.01 * (i % 2);
    }
    fl_model_status s = FL_MODEL_OK;
    TRY(s, fl_least_squares(line, y, x, 2, 4));
    TRY(s, fl_fit_sensitivity_linear(metric, sensitivity, 6, 2, &fit));
    if (s == FL_MODEL_OK)
        *result = x[0] + x[1] + fit.intercept + fit.error[1];
    return s;
}

static fl_model_status capping(double *result) {
    const double mhz[] = {500, 700, 900}, memory_w[] = {100, 104, 110.2}, compute_w[] = {90, 110, 140};
    double volt[3];
    fl_capping_chip chip;
    fl_model_status s = FL_MODEL_OK;
    TRY(s, fl_fit_capping_chip(mhz, 3, memory_w, compute_w, volt, &chip));
    if (s == FL_MODEL_OK)
        *result = chip.a_w + chip.c_sd_pct + volt[2];
    return s;
}

/* ---- sensors ---- */

enum { SAMPLES = 800, READINGS = 200 };

static fl_model_status sensors(double *result) {
    static double meter_s[SAMPLES], meter_w[SAMPLES], read_s[READINGS], read_w[READINGS], shown_s[READINGS],
        out_w[READINGS];
    for (int i = 0; i < SAMPLES; i++) {
        meter_s[i] = 0.01 * i;
        meter_w[i] = 100 + 60 * sin(0.37 * i * i);
    }
    for (int i = 0; i < READINGS; i++) {
        read_s[i] = 0.6 + 0.03 * i;
        read_w[i] = meter_w[(int)(10 * floor(read_s[i] / 0.1 + 1e-9))];
    }
    const fl_sensor_course course = {meter_s, meter_w, SAMPLES};
    const fl_sensor_log log = {read_s, read_w, READINGS};
    const fl_sensor_spec spec = {.period_ns = 100000000, .present = 1};
    fl_sensor_learnt learnt = {0};
    double shift = 0, r = 0;
    fl_model_status s = FL_MODEL_OK;
    TRY(s, fl_sensor_learn(&log, &learnt));
    TRY(s, fl_sensor_seen(&log, learnt.period_s, learnt.phase_s, shown_s));
    TRY(s, fl_sensor_replay(&spec, &course, read_s, READINGS, out_w));
    TRY(s, fl_sensor_replay_seen(&spec, &course, shown_s, READINGS, 0, out_w));
    TRY(s, fl_sensor_shift(&course, &log, &shift, &r));
    TRY(s, fl_sensor_learn_window(&course, &log, shift, &learnt));
    if (s == FL_MODEL_OK)
        *result = learnt.match.rms + learnt.step_w + r + out_w[READINGS - 1];
    return s;
}

/* ---- sweeps ---- */

enum { LOADS = 5, CLOCKS = 6, MEMS = 2, ROWS = LOADS * CLOCKS * MEMS };

static fl_chip chip, fitted;

/* Workloads that the law describes up to a wave of a per cent. */
static void make_rows(fl_chip_row *row) {
    chip = made_up_chip();
    size_t n = 0;
    for (uint32_t k = 0; k < LOADS; k++)
        for (int m = 0; m < MEMS; m++)
            for (int i = 0; i < CLOCKS; i++, n++) {
                const fl_chip_share share = {
                    .memory = 0.1 + 0.18 * k, .rest = 0.05 + 0.02 * k, .alpha = 0.9 - 0.1 * k, .beta = 0.2 + 0.15 * k};
                const fl_chip_load load = fl_chip_load_of(&share);
                const double f = 500 + 160 * i, mem = m ? 800 : 400;
                const double t = fl_chip_time(&chip, &load, f, mem) * (1 + 0.01 * sin(f / 90 + mem + k));
                const double w = fl_chip_power(&chip, &load, f, mem, t) * (1 + 0.01 * cos(f / 70 + mem + k));
                row[n] = (fl_chip_row){k, f, mem, t, w};
            }
}

static fl_model_status unsound(double *result) {
    static fl_chip_row row[ROWS];
    make_rows(row);
    for (int i = 3; i < ROWS; i += CLOCKS) /* a clock that is wrong everywhere, and a row alone */
        row[i].time_s *= 1.2;
    row[8].time_s *= 1.3;
    fl_unsound u = {0};
    fl_row_curve c = {.n = 1};
    fl_model_status s = FL_MODEL_OK;
    TRY(s, fl_unsound_find(row, ROWS, &u));
    const bool opens = s == FL_MODEL_OK;
    TRY(s, fl_row_curve_open(row, CLOCKS * MEMS, 1, &c));
    FL_CHECK(!opens || s == FL_MODEL_OK || (c.n == 0 && !c.x && !c.known), "a curve that could not be opened is none");
    if (s == FL_MODEL_OK)
        *result = (double)(u.rows + 100 * u.clocks) + u.row[8].time_pct;
    if (u.row)
        fl_unsound_free(&u);
    fl_row_curve_close(&c);
    return s;
}

/* Both parts of a law, of three workloads: what a whole fit does again and again. */
static fl_model_status fits(double *result) {
    static fl_chip_row row[ROWS];
    static fl_chip_span span[3];
    make_rows(row);
    for (size_t k = 0; k < 3; k++)
        span[k] = (fl_chip_span){k * CLOCKS * MEMS, CLOCKS * MEMS};
    fitted = (fl_chip){.sm_ref = 1300, .mem_ref = 800, .sm_min = 500, .mem_min = 400};
    fl_model_status s = FL_MODEL_OK;
    TRY(s, fl_chip_fit_laws(row, span, 3, FL_CHIP_FULL, &fitted));
    if (s == FL_MODEL_OK)
        *result = fitted.a_w + fitted.sharpness + fitted.link_mhz + fitted.time_error.smooth;
    return s;
}

/* Times and powers by the law; every setting counts as measured. */
static const fl_chip *known_chip(void) {
    static fl_chip of;
    if (of.shares)
        return &of;
    of = made_up_chip();
    of.shares = of.workloads = 4;
    for (uint32_t k = 0; k < 4; k++)
        of.share[k] = (fl_chip_share){.memory = 0.2 + 0.2 * k,
                                      .rest = 0.1,
                                      .memory_sd = 0.05,
                                      .rest_sd = 0.04,
                                      .alpha = 0.9 - 0.15 * k,
                                      .beta = 0.2 + 0.15 * k};
    fl_chip_assume_growth(&of);
    of.settings = 4;
    for (uint32_t i = 0; i < 4; i++) {
        of.setting_sm[i] = i % 2 ? 1300 : 500;
        of.setting_mem[i] = i / 2 ? 800 : 400;
    }
    return &of;
}

static fl_model_status predictions(double *result) {
    static fl_chip_row row[ROWS];
    make_rows(row);
    fl_chip_guess guess[ROWS];
    fl_model_status s = FL_MODEL_OK;
    TRY(s, fl_chip_predict(known_chip(), row, 2, row + 2, 6, guess, NULL));
    if (s == FL_MODEL_OK)
        *result = guess[3].time_s + guess[3].power_w;
    return s;
}

static fl_model_status own_laws(double *result) {
    static fl_chip_row row[ROWS];
    make_rows(row);
    static fl_chip own;
    fl_chip_guess guess[ROWS];
    fl_model_status s = FL_MODEL_OK;
    TRY(s, fl_chip_of_rows(row, ROWS, &own));
    TRY(s, fl_chip_predict(&own, row, 2, row + 2, 6, guess, NULL));
    if (s == FL_MODEL_OK)
        *result = isnan(guess[3].time_s) ? 1 : guess[3].time_s;
    return s;
}

static void test_curves(void) { each_fails(curves, 60); }
static void test_sensors(void) { each_fails(sensors, 30); }
static void test_unsound(void) { each_fails(unsound, 60); }
static void test_predictions(void) { each_fails(predictions, 40); }
static void test_own_laws(void) { each_fails(own_laws, 24); }

static void test_solvers(void) {
    leaky = 1;
    each_fails(solvers, 60);
}

static void test_capping(void) {
    leaky = 1;
    each_fails(capping, 60);
}

static void test_fits(void) {
    leaky = 1;
    each_fails(fits, 16);
}

FL_SUITE("model_allocations", {"curves", test_curves}, {"sensors", test_sensors}, {"unsound", test_unsound},
         {"predictions", test_predictions}, {"own laws", test_own_laws}, {"solvers", test_solvers},
         {"capping", test_capping}, {"fits", test_fits})
