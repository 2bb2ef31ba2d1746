/* Kernel times at a few clocks: the shares they were made of come back, also from two clocks and with noise. */
#include "models/fit/fit.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#include <math.h>

static double truth(double c, double m, double l, double p, double ref, double f) {
    return 7 * (fl_time_norm(c * ref / f, m, p) + l);
}

static void test_two(void) {
    static const struct {
        double ratio, p, c;
    } row[] = {{1, 9, 0}, {1.5, 9, 1}, {2, 9, 1}, {0.9, 9, 0}, {1.2, INFINITY, 0.8}, {1.2, 1, 0.4}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const fl_kernel_point point[] = {{1000, row[i].ratio * 3, 5}, {1500, 3, 5}};
        fl_kernel_fit k;
        FL_CHECK(fl_fit_kernel(point, 2, row[i].p, &k) == FL_MODEL_OK && fabs(k.c - row[i].c) < 1e-9 && k.l == 0 &&
                     isnan(k.unseen_pct),
                 "row %zu: c %.12g", i, k.c);
        FL_CHECK(fabs(fl_kernel_time(&k, row[i].p, 1) - 1) < 1e-12, "row %zu: %g at the reference", i,
                 fl_kernel_time(&k, row[i].p, 1));
    }
    const double p = 9, c = 0.7, m = pow(1 - pow(c, p), 1 / p);
    const fl_kernel_point point[] = {{900, truth(c, m, 0, p, 1500, 900), 1}, {1500, truth(c, m, 0, p, 1500, 1500), 1}};
    fl_kernel_fit k;
    FL_CHECK(fl_fit_kernel(point, 2, p, &k) == FL_MODEL_OK && fabs(k.c - c) < 1e-9 && fabs(k.m - m) < 1e-9 &&
                 k.mape_pct < 1e-9,
             "c %g, m %g", k.c, k.m);
}

static void test_many(void) {
    static const double shares[][2] = {{1, 0}, {0, 0}, {0.8, 0}, {0.7, 0.3}, {0.95, 0.1}, {0.5, 0.6}};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        const double p = 9, l = shares[i][1], c = shares[i][0] * (1 - l), x = pow(1 - l, p) - pow(c, p),
                     m = x > 0 ? pow(x, 1 / p) : 0;
        fl_kernel_point point[5];
        fl_kernel_fit k;
        for (int j = 0; j < 5; j++)
            point[j] = (fl_kernel_point){600 + 250 * j, truth(c, m, l, p, 1600, 600 + 250 * j), 1};
        FL_CHECK(fl_fit_kernel(point, 5, p, &k) == FL_MODEL_OK && k.mape_pct < 0.05 && k.unseen_pct < 1.5,
                 "shares %zu: %g %% on its points, %g %% unseen", i, k.mape_pct, k.unseen_pct);
        FL_CHECK(fabs(fl_kernel_time(&k, p, 1600.0 / 700) / (truth(c, m, l, p, 1600, 700) / 7) - 1) < 0.005,
                 "shares %zu at 700 MHz", i);
    }
}

static void test_noise(void) { /* 2 % on each mean: the law at a clock between is right to about as much */
    fl_random r = fl_random_seed(5, 5);
    double error = 0, n = 0;
    for (int t = 0; t < 300; t++) {
        const double p = 9, l = 0.3 * fl_random_unit(&r), c = fl_random_unit(&r) * (1 - l),
                     m = pow(pow(1 - l, p) - pow(c, p), 1 / p);
        fl_kernel_point point[4];
        fl_kernel_fit k;
        for (int j = 0; j < 4; j++)
            point[j] = (fl_kernel_point){700 + 300 * j,
                                         truth(c, m, l, p, 1600, 700 + 300 * j) * (1 + 0.02 * fl_random_normal(&r)), 1};
        FL_CHECK(fl_fit_kernel(point, 4, p, &k) == FL_MODEL_OK, "trial %d", t);
        error += fabs(fl_kernel_time(&k, p, 1600.0 / 850) / fl_kernel_time(&k, p, 1) /
                          (truth(c, m, l, p, 1600, 850) / truth(c, m, l, p, 1600, 1600)) -
                      1);
        n++;
    }
    FL_CHECK(error / n < 0.02, "seed 5: mean error %.3g %% at 850 MHz", 100 * error / n);
}

static void test_refusals(void) {
    const fl_kernel_point good[] = {{1000, 2, 1}, {1500, 1, 1}}, zero[] = {{1000, 0, 1}, {1500, 1, 1}},
                          order[] = {{1500, 2, 1}, {1000, 1, 1}}, nan_[] = {{1000, NAN, 1}, {1500, 1, 1}};
    fl_kernel_fit k;
    FL_CHECK(fl_fit_kernel(good, 1, 9, &k) == FL_MODEL_INVALID && fl_fit_kernel(good, 2, 0.5, &k) == FL_MODEL_INVALID &&
                 fl_fit_kernel(zero, 2, 9, &k) == FL_MODEL_INVALID &&
                 fl_fit_kernel(order, 2, 9, &k) == FL_MODEL_INVALID &&
                 fl_fit_kernel(nan_, 2, 9, &k) == FL_MODEL_INVALID,
             "accepted");
}

FL_SUITE("fit_kernel", {"two clocks", test_two}, {"five clocks", test_many}, {"noise", test_noise},
         {"refusals", test_refusals})
