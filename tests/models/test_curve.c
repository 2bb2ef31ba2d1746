#include "models/laws/device.h"
#include "models/math/math.h"
#include "tests/support/suite.h"

#include <math.h>
#include <pthread.h>

static fl_curve *curve_of(const double *x, const double *y, size_t count) {
    fl_curve *c = NULL;
    FL_CHECK(fl_curve_new(&c, x, y, count) == FL_MODEL_OK, "%zu points", count);
    return c;
}

static double at(const fl_curve *c, double x) {
    double y = NAN;
    FL_CHECK(fl_curve_at(c, x, 0, &y) == FL_MODEL_OK, "at %g", x);
    return y;
}

static void test_points(void) {
    const double x[] = {135, 855, 1050, 1245, 1440}, y[] = {1, 1, 1.06, 1.2, 1.33};
    for (size_t n = 1; n <= 5; n++) {
        fl_curve *c = curve_of(x, y, n);
        for (size_t i = 0; i < n; i++)
            FL_CHECK(fabs(at(c, x[i]) - y[i]) < 1e-15, "%zu points: %g at %g", n, at(c, x[i]), x[i]);
        FL_CHECK(fabs(fl_curve_first(c) - x[0]) + fabs(fl_curve_last(c) - x[n - 1]) < 1e-15, "ends");
        fl_curve_free(c);
    }
    fl_curve_free(NULL);
}

static void test_line(void) {
    const double x[] = {100, 300}, y[] = {10, 20};
    fl_curve *c = curve_of(x, y, 2);
    FL_CHECK(fabs(at(c, 150) - 12.5) < 1e-14, "%g", at(c, 150));
    fl_curve_free(c);
}

/* A flat floor stays flat, a rise stays a rise: what a plain cubic spline would not keep. */
static void test_monotone(void) {
    const double x[] = {135, 700, 855, 900, 1440}, y[] = {1, 1, 1, 2, 2.01};
    fl_curve *c = curve_of(x, y, 5);
    double before = 0;
    for (double f = 135; f <= 1440; f += 1) {
        const double v = at(c, f);
        FL_CHECK(v >= before, "falls at %g MHz", f);
        FL_CHECK(f > 855 || fabs(v - 1) < 1e-12, "%.17g at %g MHz, below the knee", v, f);
        FL_CHECK(v <= 2.01 + 1e-12, "overshoots at %g MHz", f);
        before = v;
    }
    fl_curve_free(c);
}

static void test_range(void) {
    const double x[] = {1, 2, 3}, y[] = {5, 6, 7};
    fl_curve *c = curve_of(x, y, 3);
    double v = -1;
    FL_CHECK(fl_curve_at(c, 0.999, 0, &v) == FL_MODEL_RANGE, "below");
    FL_CHECK(fl_curve_at(c, 3.001, 0, &v) == FL_MODEL_RANGE, "above");
    FL_CHECK(fl_curve_at(c, NAN, 1, &v) == FL_MODEL_INVALID, "NaN");
    FL_CHECK(v < 0, "a refusal writes nothing");
    FL_CHECK(fl_curve_at(c, 0, 1, &v) == FL_MODEL_OK && fabs(v - 5) < 1e-15, "clamped below");
    FL_CHECK(fl_curve_at(c, 9, 1, &v) == FL_MODEL_OK && fabs(v - 7) < 1e-15, "clamped above");
    fl_curve_free(c);
}

static void test_bad(void) {
    const double good[] = {1, 2, 3}, twice[] = {1, 2, 2}, falls[] = {1, 3, 2}, holes[] = {1, NAN, 3};
    const double far_off[] = {1, 2, INFINITY};
    const double *const bad_x[] = {twice, falls, holes, far_off};
    fl_curve *c = NULL;
    for (size_t i = 0; i < 4; i++)
        FL_CHECK(fl_curve_new(&c, bad_x[i], good, 3) == FL_MODEL_INVALID && !c, "row %zu", i);
    FL_CHECK(fl_curve_new(&c, good, holes, 3) == FL_MODEL_INVALID, "a hole in y");
    FL_CHECK(fl_curve_new(&c, twice + 1, good, 2) == FL_MODEL_INVALID, "two points at one clock");
    FL_CHECK(fl_curve_new(&c, good, good, 0) == FL_MODEL_INVALID, "no points");
}

static void *walk(void *user) {
    const fl_curve *c = user;
    long wrong = 0;
    for (int i = 0; i < 200000; i++) {
        double y = 0;
        const double x = (i * 7919) % 1000;
        wrong += fl_curve_at(c, x, 0, &y) != FL_MODEL_OK || fabs(y - 2 * x) > 1e-9;
    }
    return (void *)wrong;
}

static void test_threads(void) {
    double x[1001], y[1001];
    for (int i = 0; i <= 1000; i++) {
        x[i] = i;
        y[i] = 2 * i;
    }
    fl_curve *c = curve_of(x, y, 1001);
    pthread_t thread[4];
    int started = 0;
    while (started < 4 && pthread_create(&thread[started], NULL, walk, c) == 0)
        started++;
    FL_CHECK(started == 4, "%d threads", started);
    for (int i = 0; i < started; i++) {
        void *wrong = NULL;
        pthread_join(thread[i], &wrong);
        FL_CHECK(!wrong, "thread %d: %ld wrong values", i, (long)wrong);
    }
    fl_curve_free(c);
}

static void test_ladder(void) {
    const int32_t ladder[] = {135, 142, 150, 157};
    static const struct {
        double mhz;
        int index;
    } rows[] = {{135, 0}, {142, 1}, {157, 3}, {134, -1}, {158, -1}, {150.5, -1}, {NAN, -1}, {-1, -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        FL_CHECK(fl_ladder_index(ladder, 4, rows[i].mhz) == rows[i].index, "%g: %d", rows[i].mhz,
                 fl_ladder_index(ladder, 4, rows[i].mhz));
    FL_CHECK(fl_ladder_index(NULL, 0, 135) == -1, "an empty ladder");
}

static void test_sensor(void) {
    static const struct {
        double value, quantum, want;
    } rows[] = {{2.4, 1, 2},
                {2.5, 1, 3},
                {-2.5, 1, -2},
                {99.5, 1, 100},
                {7.3, 0, 7.3},
                {7.3, 0.25, 7.25},
                {0.49999999999999994, 1, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        FL_CHECK(fabs(fl_sensor_quantise(rows[i].value, rows[i].quantum) - rows[i].want) < 1e-15, "row %zu: %g", i,
                 fl_sensor_quantise(rows[i].value, rows[i].quantum));
    FL_CHECK(fabs(fl_sensor_lag(50, 150, 100, 100) - (150 - 100 * exp(-1))) < 1e-12, "one time constant");
    FL_CHECK(fabs(fl_sensor_lag(50, 150, 15, 0) - 150) < 1e-15, "no lag");
    FL_CHECK(fabs(fl_sensor_lag(50, 50, 15, 100) - 50) < 1e-15, "at rest");
    /* Two refreshes of 10 ms are one of 20 ms. */
    const double two = fl_sensor_lag(fl_sensor_lag(0, 80, 10, 70), 80, 10, 70);
    FL_CHECK(fabs(two - fl_sensor_lag(0, 80, 20, 70)) < 1e-12, "%g", two);
}

FL_SUITE("curve", {"points", test_points}, {"line", test_line}, {"monotone", test_monotone}, {"range", test_range},
         {"bad", test_bad}, {"threads", test_threads}, {"ladder", test_ladder}, {"sensor", test_sensor})
