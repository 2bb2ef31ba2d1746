/* Idle power from a log: which readings count, what a clock draws, and the least squares of its parts, held to the
 * conditions that only the best of all parts >= 0 meets. */
#include "models/fit/fit.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "tests/support/exact.h"
#include "tests/support/suite.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Of three readings only the middle one can count: the first has none before it, the last none after. */
static void test_what_counts(void) {
    static const struct {
        const char *what;
        fl_idle_reading before, at, after;
        bool counts;
    } rows[] = {
        {"idle", {0, 50, 900, NAN}, {0, 50, 900, NAN}, {0, 50, 900, NAN}, true},
        {"it was busy before", {90, 200, 900, NAN}, {0, 50, 900, NAN}, {0, 50, 900, NAN}, true},
        {"a monitor's queries after it", {0, 50, 900, NAN}, {0, 50, 900, NAN}, {4.9, 50, 900, NAN}, true},
        {"busy after it", {0, 50, 900, NAN}, {0, 50, 900, NAN}, {5, 50, 900, NAN}, false},
        {"busy", {0, 50, 900, NAN}, {0.5, 50, 900, NAN}, {0, 50, 900, NAN}, false},
        {"utilisation is not known", {0, 50, 900, NAN}, {NAN, 50, 900, NAN}, {0, 50, 900, NAN}, false},
        {"nor that after it", {0, 50, 900, NAN}, {0, 50, 900, NAN}, {NAN, 50, 900, NAN}, false},
        {"the clock has moved", {0, 50, 900, NAN}, {0, 50, 1000, NAN}, {0, 50, 1000, NAN}, false},
        {"it moves after it", {0, 50, 900, NAN}, {0, 50, 900, 1000}, {0, 50, 1000, NAN}, true},
        {"it was set and is there", {0, 50, 900, 1000}, {0, 50, 1000, NAN}, {0, 50, 1000, NAN}, true},
        {"it was set and is not there", {0, 50, 900, 1000}, {0, 50, 950, NAN}, {0, 50, 1000, NAN}, false},
        {"set now, not before", {0, 50, 900, NAN}, {0, 50, 1000, 1000}, {0, 50, 1000, NAN}, false},
        {"less than half a MHz away", {0, 50, 900.4, NAN}, {0, 50, 900, NAN}, {0, 50, 900, NAN}, true},
        {"half a MHz away", {0, 50, 900.5, NAN}, {0, 50, 900, NAN}, {0, 50, 900, NAN}, false},
        {"no power", {0, 50, 900, NAN}, {0, 0, 900, NAN}, {0, 50, 900, NAN}, false},
        {"power is not known", {0, 50, 900, NAN}, {0, NAN, 900, NAN}, {0, 50, 900, NAN}, false},
        {"an infinite power", {0, 50, 900, NAN}, {0, INFINITY, 900, NAN}, {0, 50, 900, NAN}, false},
        {"a power of half a watt", {0, 50, 900, NAN}, {0, 0.5, 900, NAN}, {0, 50, 900, NAN}, true},
        {"no clock", {0, 50, 0, NAN}, {0, 50, 0, NAN}, {0, 50, 0, NAN}, false},
        {"an infinite clock", {0, 50, INFINITY, INFINITY}, {0, 50, INFINITY, NAN}, {0, 50, 900, NAN}, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const fl_idle_reading all[] = {rows[i].before, rows[i].at, rows[i].after};
        for (size_t n = 0; n <= 3; n++) {
            fl_idle_reading *log = exact(all, n * sizeof *log + (n == 0));
            fl_idle_point *point = exact(NULL, n * sizeof *point + (n == 0));
            size_t points = 7;
            const bool counts = n == 3 && rows[i].counts;
            const fl_model_status s = fl_idle_points(log, n, point, &points);
            FL_CHECK(s == (counts ? FL_MODEL_OK : FL_MODEL_NO_FIT) && points == (counts ? 1 : 7),
                     "%s: %zu readings: %s, %zu points", rows[i].what, n, fl_model_text(s), points);
            if (counts)
                FL_CHECK(point[0].sm_mhz == rows[i].at.sm_mhz && point[0].power_w == rows[i].at.power_w &&
                             point[0].readings == 1,
                         "%s: %g MHz, %g W, %zu readings", rows[i].what, point[0].sm_mhz, point[0].power_w,
                         point[0].readings);
            free(log);
            free(point);
        }
    }
}

/* Clocks in ascending order, each with the median of its powers: of an even number the mean of the middle two. */
static void test_medians(void) {
    static const double mhz[] = {900, 900, 900, 900, 600, 600, 600, 1200, 1200, 900, 900},
                        watts[] = {0, 53, 51, 80, 0, 44, 40, 0, 70, 0, 50};
    /* the first of each run at another clock has moved there and does not count */
    static const struct {
        double mhz, watts;
        size_t readings;
    } want[] = {{600, 42, 2}, {900, 52, 4}, {1200, 70, 1}};
    fl_idle_reading *log = exact(NULL, (COUNT(mhz) + 1) * sizeof *log);
    fl_idle_point *point = exact(NULL, (COUNT(mhz) + 1) * sizeof *point);
    size_t points = 0;
    for (size_t i = 0; i < COUNT(mhz); i++)
        log[i] = (fl_idle_reading){0, watts[i], mhz[i], NAN};
    log[COUNT(mhz)] = (fl_idle_reading){0, 50, 300, NAN};
    CU_ASSERT_FATAL(fl_idle_points(log, COUNT(mhz) + 1, point, &points) == FL_MODEL_OK && points == 3);
    for (size_t i = 0; i < 3; i++)
        FL_CHECK(point[i].sm_mhz == want[i].mhz && point[i].power_w == want[i].watts &&
                     point[i].readings == want[i].readings,
                 "point %zu: %g MHz, %g W of %zu", i, point[i].sm_mhz, point[i].power_w, point[i].readings);
    free(log);
    free(point);
}

/* Least squares over parts that may not be negative: at the best ones the sum of squares goes neither way along a part
 * above 0, and only up along one at 0 (Karush, Kuhn and Tucker). */
static void test_best_parts(void) {
    const uint64_t seed = 77;
    fl_random random = fl_random_seed(seed, 0);
    size_t at_zero[3] = {0}, above[3] = {0};
    for (int n = 0; n < 200; n++) {
        const size_t count = 3 + (size_t)fl_random_below(&random, 8);
        const double parts[] = {n % 2 ? 30 : 0, n % 3 ? 15 : 0, n % 5 ? 8 : -3}, scatter = n % 4 ? 2 : 0.01;
        fl_idle_point *point = exact(NULL, count * sizeof *point);
        double *volt = exact(NULL, count * sizeof *volt), *predicted = exact(NULL, count * sizeof *predicted);
        for (size_t i = 0; i < count; i++) {
            const double f = 0.3 + 1.2 * (double)i / (double)count, v = n % 7 ? 1 + 0.3 * f * f : 1;
            volt[i] = v;
            point[i] = (fl_idle_point){
                1000 * f,
                20 + parts[0] + parts[1] * v + parts[2] * v * v * f + scatter * (fl_random_unit(&random) - 0.5), 1};
        }
        fl_idle_clock r = {0};
        CU_ASSERT_FATAL(fl_fit_idle_clock(point, volt, count, &r, predicted) == FL_MODEL_OK);
        const double x[] = {r.fixed_w, r.c_w, r.a0_w};
        double down[3] = {0}, size[3] = {0}, squares = 0, worst = 0;
        for (size_t i = 0; i < count; i++) {
            const double v = volt[i], column[] = {1, v, v * v * point[i].sm_mhz / 1000};
            const double at = x[0] + x[1] * column[1] + x[2] * column[2], e = at - point[i].power_w;
            FL_CHECK(fabs(predicted[i] - at) < 1e-9, "seed %d, case %d: %g W at %zu, expected %g", (int)seed, n,
                     predicted[i], i, at);
            squares += e * e;
            worst = fmax(worst, fabs(e));
            for (int k = 0; k < 3; k++) {
                down[k] += column[k] * e;
                size[k] += column[k] * point[i].power_w;
            }
        }
        for (int k = 0; k < 3; k++) {
            (x[k] > 0 ? above : at_zero)[k]++;
            FL_CHECK(x[k] >= 0 && (x[k] > 0 ? fabs(down[k]) : -down[k]) < 1e-7 * size[k],
                     "seed %d, case %d: part %d of %g W goes down by %g of %g", (int)seed, n, k, x[k], down[k],
                     size[k]);
        }
        FL_CHECK(fabs(r.rms_w - sqrt(squares / (double)count)) < 1e-9 && fabs(r.worst_w - worst) < 1e-9,
                 "seed %d, case %d: rms %g W, worst %g W", (int)seed, n, r.rms_w, r.worst_w);
        FL_CHECK(n % 7 || r.c_w == 0, "seed %d, case %d: V is the same everywhere, C is %g", (int)seed, n, r.c_w);
        free(point);
        free(volt);
        free(predicted);
    }
    for (int k = 0; k < 3; k++)
        FL_CHECK(at_zero[k] > 5 && above[k] > 5, "part %d: %zu times at 0, %zu above", k, at_zero[k], above[k]);
}

static void test_refused(void) {
    static const fl_idle_point good[] = {{500, 40, 1}, {900, 50, 1}, {1300, 65, 1}};
    static const double volt[] = {1, 1.1, 1.3}, bad[] = {0, -1, (double)NAN, INFINITY};
    fl_idle_clock r = {.c_w = 7};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < COUNT(bad); k++)
            for (int column = 0; column < 3; column++) {
                fl_idle_point point[3];
                double v[3];
                memcpy(point, good, sizeof point);
                memcpy(v, volt, sizeof v);
                *(column == 0 ? &point[i].sm_mhz : column == 1 ? &point[i].power_w : &v[i]) = bad[k];
                FL_CHECK(fl_fit_idle_clock(point, v, 3, &r, NULL) == FL_MODEL_INVALID, "%g in column %d of %zu", bad[k],
                         column, i);
            }
    FL_CHECK(fl_fit_idle_clock(good, volt, 2, &r, NULL) == FL_MODEL_NO_FIT && r.c_w == 7, "two points");
    FL_CHECK(fl_fit_idle_clock(good, volt, 3, &r, NULL) == FL_MODEL_OK && r.c_w != 7, "three");
}

FL_SUITE("fit_idle", {"what counts", test_what_counts}, {"medians", test_medians}, {"best parts", test_best_parts},
         {"refused", test_refused})
