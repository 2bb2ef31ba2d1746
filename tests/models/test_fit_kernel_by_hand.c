/* A kernel's law from two and three clocks, put together from its closed form. */
#include "models/fit/fit.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#include <math.h>

static const uint64_t seed = 23;

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(1, fabs(b)); }

/* c of ((c k)^p + 1 - c^p)^(1/p) = r, for r from 1 to k. */
static double share(double r, double k, double p) {
    if (isinf(p))
        return r <= 1 ? 0 : fmin(1, r / k);
    return r <= 1 ? 0 : r >= k ? 1 : pow((pow(r, p) - 1) / (pow(k, p) - 1), 1 / p);
}

static double law(double c, double k, double p) {
    if (isinf(p))
        return fmax(1, c * k);
    return pow(pow(c * k, p) + 1 - pow(c, p), 1 / p);
}

/* The time at x MHz by the law through two points, whose level is the weighted least squares of relative errors. */
static double by_two(const fl_kernel_point *low, const fl_kernel_point *high, double p, double x) {
    const double c = share(low->time / high->time, high->sm_mhz / low->sm_mhz, p),
                 s = law(c, high->sm_mhz / low->sm_mhz, p) / low->time, t = 1 / high->time,
                 level = (low->weight * s + high->weight * t) / (low->weight * s * s + high->weight * t * t);
    return level * law(c, high->sm_mhz / x, p);
}

/* With one of three points left out, the law through the two others tells it. */
static void test_left_out(void) {
    static const double sharp[] = {1, 3, 9, INFINITY};
    fl_random r = fl_random_seed(seed, 1);
    printf(" seed %llu ", (unsigned long long)seed);
    for (int n = 0; n < 40; n++) {
        const double p = sharp[n % 4];
        fl_kernel_point point[3];
        for (int i = 0; i < 3; i++)
            point[i] = (fl_kernel_point){600 + 300 * i + 50 * fl_random_unit(&r),
                                         (3 - 0.6 * i) * (1 + 0.3 * fl_random_unit(&r)), 1 + 20 * fl_random_unit(&r)};
        fl_kernel_fit k;
        CU_ASSERT_FATAL(fl_fit_kernel(point, 3, p, &k) == FL_MODEL_OK);
        double sum = 0;
        for (int i = 0; i < 3; i++) {
            const int low = i ? 0 : 1, high = i == 2 ? 1 : 2;
            sum += fabs(by_two(&point[low], &point[high], p, point[i].sm_mhz) / point[i].time - 1);
        }
        FL_CHECK(near(k.unseen_pct, 100 * sum / 3), "case %d, p %g: %.9g %%, not %.9g", n, p, k.unseen_pct,
                 100 * sum / 3);
        fl_kernel_fit two;
        CU_ASSERT_FATAL(fl_fit_kernel(point, 2, p, &two) == FL_MODEL_OK);
        const double c = share(point[0].time / point[1].time, point[1].sm_mhz / point[0].sm_mhz, p);
        double off = 0;
        for (int i = 0; i < 2; i++)
            off += fabs(by_two(&point[0], &point[1], p, point[i].sm_mhz) / point[i].time - 1);
        FL_CHECK(near(two.c, c) && two.l == 0 && near(two.mape_pct, 100 * off / 2), "case %d: c %g, %g %%", n, two.c,
                 two.mape_pct);
        FL_CHECK(isinf(p) || near(pow(two.c, p) + pow(two.m, p), 1), "case %d: %g at the reference", n, two.m);
    }
}

/* The fit of three points is the best of its law: no c and l near it have less weighted squares of relative errors. */
static void test_best(void) {
    fl_random r = fl_random_seed(seed, 2);
    for (int n = 0; n < 12; n++) {
        fl_kernel_point point[4];
        for (int i = 0; i < 4; i++)
            point[i] = (fl_kernel_point){600 + 250 * i, (3 - 0.5 * i) * (1 + 0.1 * fl_random_unit(&r)),
                                         1 + 9 * fl_random_unit(&r)};
        const double p = n % 3 ? 4 : INFINITY;
        fl_kernel_fit k;
        CU_ASSERT_FATAL(fl_fit_kernel(point, 4, p, &k) == FL_MODEL_OK);
        double is = 0, least = INFINITY;
        for (int trial = 0; trial <= 2000; trial++) {
            const bool fitted = trial == 2000;
            const double l = fitted ? k.l : 0.95 * fl_random_unit(&r), c = fitted ? k.c : (1 - l) * fl_random_unit(&r),
                         m = fitted     ? k.m
                             : isinf(p) ? 1 - l
                                        : pow(pow(1 - l, p) - pow(c, p), 1 / p);
            double top = 0, bottom = 0, rest = 0, off = 0, x[4];
            for (int i = 0; i < 4; i++) {
                const double core = c * 1350 / point[i].sm_mhz;
                x[i] = ((isinf(p) ? fmax(core, m) : pow(pow(core, p) + pow(m, p), 1 / p)) + l) / point[i].time;
                top += point[i].weight * x[i];
                bottom += point[i].weight * x[i] * x[i];
            }
            for (int i = 0; i < 4; i++) {
                rest += point[i].weight * pow(1 - top / bottom * x[i], 2);
                off += fabs(top / bottom * x[i] - 1);
            }
            if (!fitted)
                least = fmin(least, rest);
            is = rest;
            if (fitted)
                FL_CHECK(near(k.mape_pct, 100 * off / 4), "case %d: %g %%, not %g", n, k.mape_pct, 100 * off / 4);
        }
        FL_CHECK(is <= least, "case %d: squares of %.9g, another has %.9g", n, is, least);
    }
}

FL_SUITE("fit_kernel_by_hand", {"one left out", test_left_out}, {"the best", test_best})
