/* The regression of sensitivities, against ordinary least squares by its normal equations: weights, standard errors,
 * variance inflation and the multiple correlation as textbooks define them. */
#include "models/fit/fit.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#include <math.h>

enum { POINTS = 12, METRICS = 3, TERMS = METRICS + 1 };
static const uint64_t seed = 17;

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(1, fabs(b)); }

/* a := a^-1, by Gauss and Jordan. */
static void invert(double a[TERMS][TERMS], size_t n) {
    for (size_t p = 0; p < n; p++) {
        const double d = a[p][p];
        a[p][p] = 1;
        for (size_t j = 0; j < n; j++)
            a[p][j] /= d;
        for (size_t i = 0; i < n; i++) {
            const double f = a[i][p];
            if (i == p)
                continue;
            a[i][p] = 0;
            for (size_t j = 0; j < n; j++)
                a[i][j] -= f * a[p][j];
        }
    }
}

static double mean_of(const double *v, size_t stride) {
    double sum = 0;
    for (size_t i = 0; i < POINTS; i++)
        sum += v[i * stride] / POINTS;
    return sum;
}

static double together(const double *a, size_t a_stride, const double *b, size_t b_stride) {
    const double x = mean_of(a, a_stride), y = mean_of(b, b_stride);
    double sum = 0;
    for (size_t i = 0; i < POINTS; i++)
        sum += (a[i * a_stride] - x) * (b[i * b_stride] - y) / POINTS;
    return sum;
}

static void test_least_squares(void) {
    fl_random r = fl_random_seed(seed, 1);
    printf(" seed %llu ", (unsigned long long)seed);
    for (int round = 0; round < 5; round++) {
        double metric[POINTS * METRICS], y[POINTS], normal[TERMS][TERMS] = {{0}}, right[TERMS] = {0}, weight[TERMS];
        for (size_t i = 0; i < POINTS; i++) {
            double *m = metric + i * METRICS;
            m[0] = 5 + fl_random_normal(&r);
            m[1] = 100 * fl_random_unit(&r) + 10 * m[0];
            m[2] = 1e-3 * fl_random_normal(&r);
            y[i] = 0.3 + 0.1 * m[0] - 0.002 * m[1] + 50 * m[2] + 0.05 * fl_random_normal(&r);
        }
        for (size_t i = 0; i < POINTS; i++) {
            const double term[TERMS] = {1, metric[i * METRICS], metric[i * METRICS + 1], metric[i * METRICS + 2]};
            for (size_t a = 0; a < TERMS; a++) {
                right[a] += term[a] * y[i];
                for (size_t b = 0; b < TERMS; b++)
                    normal[a][b] += term[a] * term[b];
            }
        }
        invert(normal, TERMS);
        for (size_t a = 0; a < TERMS; a++) {
            weight[a] = 0;
            for (size_t b = 0; b < TERMS; b++)
                weight[a] += normal[a][b] * right[b];
        }
        double left = 0;
        for (size_t i = 0; i < POINTS; i++) {
            double e = y[i] - weight[0];
            for (size_t m = 0; m < METRICS; m++)
                e -= weight[m + 1] * metric[i * METRICS + m];
            left += e * e;
        }
        fl_sensitivity_fit fit;
        CU_ASSERT_FATAL(fl_fit_sensitivity_linear(metric, y, POINTS, METRICS, &fit) == FL_MODEL_OK);
        FL_CHECK(near(fit.intercept, weight[0]) && fit.rank == METRICS && fit.count == POINTS, "intercept %g, not %g",
                 fit.intercept, weight[0]);
        FL_CHECK(near(fit.rms, sqrt(left / POINTS)), "rms %g, not %g", fit.rms, sqrt(left / POINTS));
        const double multiple = sqrt(1 - left / POINTS / together(y, 1, y, 1));
        FL_CHECK(near(fit.multiple, multiple), "multiple correlation %g, not %g", fit.multiple, multiple);
        double correlation[TERMS][TERMS];
        for (size_t a = 0; a < METRICS; a++)
            for (size_t b = 0; b < METRICS; b++)
                correlation[a][b] = together(metric + a, METRICS, metric + b, METRICS) /
                                    sqrt(together(metric + a, METRICS, metric + a, METRICS) *
                                         together(metric + b, METRICS, metric + b, METRICS));
        invert(correlation, METRICS);
        for (size_t m = 0; m < METRICS; m++) {
            const double spread = sqrt(together(metric + m, METRICS, metric + m, METRICS)),
                         error = sqrt(left / (POINTS - TERMS) * normal[m + 1][m + 1]),
                         alone = together(metric + m, METRICS, y, 1) / spread / sqrt(together(y, 1, y, 1));
            FL_CHECK(near(fit.weight[m], weight[m + 1]), "weight %zu: %g, not %g", m, fit.weight[m], weight[m + 1]);
            FL_CHECK(near(fit.error[m] / fit.weight[m], error / fit.weight[m]), "error %zu: %g, not %g", m,
                     fit.error[m], error);
            FL_CHECK(near(fit.spread[m] / spread, 1) && near(fit.correlation[m], alone), "metric %zu: %g and %g", m,
                     fit.spread[m], fit.correlation[m]);
            FL_CHECK(near(fit.inflation[m], correlation[m][m]), "inflation %zu: %g, not %g", m, fit.inflation[m],
                     correlation[m][m]);
        }
    }
}

/* Two standardised metrics of correlation r have singular values sqrt(1 + r) and sqrt(1 - r). */
static void test_condition(void) {
    static const double metric[] = {-2, -2, -1, 1, 0, 0, 1, -1, 2, 2}, y[] = {0, 1, 2, 4, 3};
    const double r = 0.6; /* (4 - 1 - 1 + 4) / 10 */
    fl_sensitivity_fit fit;
    CU_ASSERT_FATAL(fl_fit_sensitivity_linear(metric, y, 5, 2, &fit) == FL_MODEL_OK);
    FL_CHECK(near(fit.condition, sqrt((1 + r) / (1 - r))) && near(fit.inflation[0], 1 / (1 - r * r)), "condition %g",
             fit.condition);
    CU_ASSERT_FATAL(fl_fit_sensitivity_linear(metric, y, 3, 2, &fit) == FL_MODEL_OK);
    FL_CHECK(isnan(fit.error[0]) && isnan(fit.error[1]) && fit.rms < 1e-9, "three points are met by any plane");
    CU_ASSERT(fl_fit_sensitivity_linear(metric, y, 2, 2, &fit) == FL_MODEL_NO_FIT);
    static const double flat[] = {1, 1, 1, 1, 1}, odd[] = {0, 1, INFINITY, 4, 3}, gap[] = {1, 2, NAN, 4, 5};
    CU_ASSERT(fl_fit_sensitivity_linear(metric, flat, 5, 2, &fit) == FL_MODEL_NO_FIT);
    CU_ASSERT(fl_fit_sensitivity_linear(metric, odd, 5, 2, &fit) == FL_MODEL_INVALID);
    CU_ASSERT(fl_fit_sensitivity_linear(gap, y, 5, 1, &fit) == FL_MODEL_INVALID);
    CU_ASSERT(fl_fit_sensitivity_linear(metric, y, 5, 0, &fit) == FL_MODEL_INVALID);
    CU_ASSERT(fl_fit_sensitivity_linear(metric, y, 99, FL_SENSITIVITY_METRICS_MAX + 1, &fit) == FL_MODEL_INVALID);
}

FL_SUITE("fit_sensitivity_by_hand", {"least squares", test_least_squares}, {"condition", test_condition})
