/* The Fourier magnitudes against the sum that defines them, for lengths with all sorts of factors. */
#include "policies/compared/compared.h"
#include "policies/compared/inside.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#include <math.h>

static fl_fft work;

static void test_definition(void) {
    static const uint32_t length[] = {1, 2, 3, 4, 5, 7, 8, 12, 30, 49, 64, 97, 250, 251, 360, 1021};
    for (size_t row = 0; row < sizeof length / sizeof *length; row++) {
        const uint32_t n = length[row];
        double x[1024], got[1024];
        fl_random r = fl_random_seed(5, n);
        for (uint32_t i = 0; i < n; i++)
            x[i] = fl_random_normal(&r);
        fl_fft_magnitude(&work, x, n, got);
        for (uint32_t k = 0; k <= n / 2; k++) {
            double re = 0, im = 0;
            for (uint32_t i = 0; i < n; i++) {
                re += x[i] * cos(6.283185307179586 * i * k / n);
                im -= x[i] * sin(6.283185307179586 * i * k / n);
            }
            /* sums of n terms of order 1: rounding stays far below 1e-9 */
            FL_CHECK(fabs(got[k] - hypot(re, im)) < 1e-9, "n %u, k %u: %g, expected %g", n, k, got[k], hypot(re, im));
        }
    }
}

static void test_in_place(void) {
    double x[60], y[60];
    for (int i = 0; i < 60; i++)
        x[i] = y[i] = 3 + 2 * cos(6.283185307179586 * 7 * i / 60.0);
    fl_fft_magnitude(&work, x, 60, x);
    fl_fft_magnitude(&work, y, 60, y);
    FL_CHECK(fabs(x[0] - 180) < 1e-9 && fabs(x[7] - 60) < 1e-9 && fabs(x[8]) < 1e-9 && x[7] == y[7],
             "mean %g, line %g, beside it %g", x[0], x[7], x[8]);
}

static void test_longest(void) {
    static double x[FL_FFT_MAX];
    for (int i = 0; i < FL_FFT_MAX; i++)
        x[i] = i % 8 == 0;
    fl_fft_magnitude(&work, x, FL_FFT_MAX, x);
    for (int k = 0; k <= FL_FFT_MAX / 2; k++)
        FL_CHECK(fabs(x[k] - (k % (FL_FFT_MAX / 8) ? 0 : FL_FFT_MAX / 8)) < 1e-6, "k %d: %g", k, x[k]);
}

FL_SUITE("fft", {"the sum that defines it", test_definition}, {"in place", test_in_place},
         {"the longest trace", test_longest})
