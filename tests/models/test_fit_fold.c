/* The fold line comes back from times at a few clocks; noise, leaving points out and refusals. */
#include "models/fit/fit.h"
#include "models/laws/device.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#include <math.h>

static size_t points_of(const fl_fold_line *b, fl_kernel_point *point, double from, double to, double step) {
    size_t n = 0;
    for (double f = from; f <= to; f += step)
        point[n++] = (fl_kernel_point){f, 3 / fl_fold_line_at(b, f), 1};
    return n;
}

static void test_exact(void) {
    static const fl_fold_line row[] = {{900, 1, 0.1}, {1000, 0.8, 0}, {1130, 1, 0.4}, {700, 0.3, 0.3}, {800, 0, 0}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_kernel_point point[32];
        fl_fold_line_fit fit;
        const size_t n = points_of(&row[i], point, 600, 1500, 100);
        FL_CHECK(fl_fit_fold_line(point, n, &fit) == FL_MODEL_OK && fit.mape_pct < 1e-9 && fit.unseen_pct < 12,
                 "row %zu: error %g %%, unseen %g %%", i, fit.mape_pct, fit.unseen_pct);
        if (row[i].low > row[i].high) /* otherwise every place is the fold */
            FL_CHECK(fabs(fit.line.fold_mhz - row[i].fold_mhz) < 1e-6 && fabs(fit.line.low - row[i].low) < 1e-9 &&
                         fabs(fit.line.high - row[i].high) < 1e-9,
                     "row %zu: fold %.9g MHz, slopes %.9g and %.9g", i, fit.line.fold_mhz, fit.line.low, fit.line.high);
        for (double f = 620; f < 1500; f += 70) {
            const double is = fl_fold_line_at(&fit.line, f) / fl_fold_line_at(&fit.line, 600),
                         was = fl_fold_line_at(&row[i], f) / fl_fold_line_at(&row[i], 600);
            FL_CHECK(fabs(is / was - 1) < 1e-9, "row %zu, %g MHz: %.12g, expected %.12g", i, f, is, was);
        }
    }
}

/* The least squares is the best of all folds: a scan over folds and slopes finds nothing better. */
static void test_best(void) {
    fl_random r = fl_random_seed(7, 1);
    for (int t = 0; t < 40; t++) {
        const fl_fold_line b = {700 + 600 * fl_random_unit(&r), 0.4 + 0.6 * fl_random_unit(&r),
                                0.4 * fl_random_unit(&r)};
        fl_kernel_point point[32];
        fl_fold_line_fit fit;
        const size_t n = points_of(&b, point, 600, 1500, 100);
        for (size_t i = 0; i < n; i++)
            point[i].time *= 1 + 0.03 * fl_random_normal(&r);
        FL_CHECK(fl_fit_fold_line(point, n, &fit) == FL_MODEL_OK && fit.line.low >= fit.line.high && fit.line.high >= 0,
                 "trial %d", t);
        double found = 0, least = HUGE_VAL;
        for (int pass = 0; pass < 2; pass++)
            for (double fold = pass ? 600 : 1500; fold <= 1500; fold += 20)
                for (double low = 0; low < 1.4; low += 0.05)
                    for (double high = 0; high <= low; high += 0.05) {
                        const fl_fold_line x = pass ? (fl_fold_line){fold, low, high} : fit.line;
                        double top = 0, bottom = 0, cost = 0;
                        for (size_t i = 0; i < n; i++) { /* the best level */
                            const double y = fl_fold_line_at(&x, point[i].sm_mhz) * point[i].time;
                            top += y;
                            bottom += y * y;
                        }
                        for (size_t i = 0; i < n; i++) {
                            const double e = top / bottom * fl_fold_line_at(&x, point[i].sm_mhz) * point[i].time - 1;
                            cost += e * e;
                        }
                        if (pass)
                            least = fmin(least, cost);
                        else
                            found = cost;
                    }
        FL_CHECK(found <= least * (1 + 1e-9), "seed 7, trial %d: %.6g, a scan has %.6g", t, found, least);
    }
}

static void test_refusals(void) {
    const fl_kernel_point good[] = {{900, 3, 1}, {1000, 2, 1}, {1500, 1, 1}},
                          zero[] = {{900, 0, 1}, {1000, 2, 1}, {1500, 1, 1}},
                          order[] = {{1000, 3, 1}, {900, 2, 1}, {1500, 1, 1}},
                          falls[] = {{900, 1, 1}, {1000, 2, 1}, {1500, 3, 1}};
    fl_fold_line_fit k;
    FL_CHECK(fl_fit_fold_line(good, 2, &k) == FL_MODEL_INVALID && fl_fit_fold_line(zero, 3, &k) == FL_MODEL_INVALID &&
                 fl_fit_fold_line(order, 3, &k) == FL_MODEL_INVALID,
             "accepted");
    FL_CHECK(fl_fit_fold_line(good, 3, &k) == FL_MODEL_OK && isnan(k.unseen_pct), "three points leave none out");
    FL_CHECK(fl_fit_fold_line(falls, 3, &k) == FL_MODEL_OK && k.line.low == 0 && k.line.high == 0,
             "slower at a higher clock: slopes %g, %g", k.line.low, k.line.high);
}

FL_SUITE("fit_fold", {"exact", test_exact}, {"best", test_best}, {"refusals", test_refusals})
