#include "models/foldline.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#include <math.h>

static bool near(double a, double b) { return fabs(a - b) < 1e-7 * fmax(1, fabs(b)); }

static void test_exact_fold(void) {
    const double mhz[] = {800, 900, 1000, 1100, 1300, 1500};
    double u[6];
    for (int i = 0; i < 6; i++)
        u[i] = mhz[i] <= 1000 ? 0.08 * mhz[i] - 10 : 70 + 0.01 * (mhz[i] - 1000);
    fl_foldline l;
    FL_CHECK(fl_foldline_fit(mhz, u, 6, &l) == FL_MODEL_OK, "fit");
    FL_CHECK(near(l.a1, 0.08) && near(l.b1, -10) && near(l.a2, 0.01) && near(l.b2, 60) && near(l.turn, 1000),
             "%g %g %g %g turn %g", l.a1, l.b1, l.a2, l.b2, l.turn);
    FL_CHECK(l.error < 1e-12, "error %g", l.error);
    for (int i = 0; i < 6; i++)
        FL_CHECK(near(fl_foldline_at(&l, mhz[i]), u[i]), "at %g: %g", mhz[i], fl_foldline_at(&l, mhz[i]));
    FL_CHECK(near(fl_foldline_at(&l, 700), 46) && near(fl_foldline_at(&l, 2000), 80), "beyond the points");
}

static void test_single(void) {
    static const struct {
        double mhz[6], u[6];
        size_t count;
        double a, b, error;
        const char *what;
    } rows[] = {
        {{1, 2}, {3, 5}, 2, 2, 1, 0, "two points"},
        {{1, 2, 3, 4}, {2, 4, 6, 8}, 4, 2, 0, 0, "a straight line needs no fold"},
        {{1, 2, 3, 4}, {0, 1, 4, 7}, 4, 2.4, -3, 1.2, "slope grows: convex is no fold"},
        {{1, 2, 3, 4}, {0, 4, 6, 4}, 4, 1.4, 0, 9.2, "falls above the fold: a2 < 0 is no fold"},
        {{1, 2, 3}, {0, 2, 2}, 3, 1, -2.0 / 3, 2.0 / 3, "too few points for a fold"},
        {{1, 1, 1, 2, 2, 2}, {1, 2, 3, 3, 4, 5}, 6, 2, 0, 4, "two clocks, repeated"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_foldline l;
        FL_CHECK(fl_foldline_fit(rows[i].mhz, rows[i].u, rows[i].count, &l) == FL_MODEL_OK, "%s", rows[i].what);
        FL_CHECK(isinf(l.turn), "%s: turn %g", rows[i].what, l.turn);
        FL_CHECK(near(l.a1, rows[i].a) && near(l.b1, rows[i].b) && near(l.error, rows[i].error), "%s: %g %g error %g",
                 rows[i].what, l.a1, l.b1, l.error);
        FL_CHECK(near(fl_foldline_at(&l, 10), 10 * rows[i].a + rows[i].b), "%s: value", rows[i].what);
    }
}

/* Lines that cross outside the gap between their points contradict the fold that made them. */
static void test_crossing(void) {
    const double mhz[] = {1, 2, 3, 4}, u[] = {0, 2, 10, 11};
    fl_foldline l;
    FL_CHECK(fl_foldline_fit(mhz, u, 4, &l) == FL_MODEL_OK && isinf(l.turn), "turn %g", l.turn);
}

/* A probe reads each clock twice. */
static void test_repeats(void) {
    const double mhz[] = {800, 800, 900, 900, 1100, 1100, 1300, 1300}, u[] = {49, 51, 59, 61, 69, 71, 71, 73};
    fl_foldline l;
    FL_CHECK(fl_foldline_fit(mhz, u, 8, &l) == FL_MODEL_OK, "fit");
    FL_CHECK(near(l.a1, 0.1) && near(l.a2, 0.01) && near(l.error, 8), "%g %g error %g", l.a1, l.a2, l.error);
    FL_CHECK(l.turn >= 900 && l.turn <= 1100, "turn %g", l.turn);
}

static void test_refused(void) {
    const double same[] = {5, 5, 5}, falls[] = {3, 2, 1}, hole[] = {1, NAN, 3}, u[] = {1, 2, 3};
    fl_foldline l;
    FL_CHECK(fl_foldline_fit(same, u, 3, &l) == FL_MODEL_NO_FIT, "one clock only");
    FL_CHECK(fl_foldline_fit(falls, u, 3, &l) == FL_MODEL_INVALID, "clocks fall");
    FL_CHECK(fl_foldline_fit(hole, u, 3, &l) == FL_MODEL_INVALID, "a hole");
    FL_CHECK(fl_foldline_fit(u, hole, 3, &l) == FL_MODEL_INVALID, "a hole in the values");
    FL_CHECK(fl_foldline_fit(u, u, 1, &l) == FL_MODEL_INVALID, "one point");
}

/* Never worse than the single line, and always of the shape that GEEPAFS Eq. 1 asks for. */
static void test_shape(void) {
    const uint64_t seed = 77;
    printf(" seed %llu ", (unsigned long long)seed);
    fl_random random = fl_random_seed(seed, 0);
    int folds = 0;
    for (int c = 0; c < 5000; c++) {
        double mhz[12], u[12], mean = 0, spread = 0;
        const size_t n = 2 + fl_random_below(&random, 11);
        for (size_t i = 0; i < n; i++) {
            mhz[i] = 800 + 50 * (double)i;
            u[i] = fmin(60, 0.07 * mhz[i] - 10) + 8 * fl_random_normal(&random);
            mean += u[i] / (double)n;
        }
        for (size_t i = 0; i < n; i++)
            spread += (u[i] - mean) * (u[i] - mean);
        fl_foldline l;
        FL_CHECK(fl_foldline_fit(mhz, u, n, &l) == FL_MODEL_OK, "case %d", c);
        FL_CHECK(l.error <= spread + 1e-9, "case %d: %g over %g", c, l.error, spread);
        if (isinf(l.turn))
            continue;
        folds++;
        FL_CHECK(l.a1 > l.a2 && l.a2 >= 0 && l.turn > mhz[0] && l.turn < mhz[n - 1], "case %d: %g %g %g", c, l.a1, l.a2,
                 l.turn);
        FL_CHECK(near(l.a1 * l.turn + l.b1, l.a2 * l.turn + l.b2), "case %d: the lines do not meet", c);
    }
    FL_CHECK(folds > 500 && folds < 5000, "%d folds of 5000", folds);
}

FL_SUITE("foldline", {"exact fold", test_exact_fold}, {"single line", test_single}, {"crossing", test_crossing},
         {"repeats", test_repeats}, {"refused", test_refused}, {"shape", test_shape})
