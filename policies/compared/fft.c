#include "policies/compared/fft.h"

#include <math.h>

static uint32_t least_factor(uint32_t n) {
    for (uint32_t p = 2; p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

/* Decimation in time (Cooley and Tukey 1965): n samples, every `stride`-th of x, are p interleaved traces; their
 * transforms lie one after the other in out and are put together there. p is the least factor of n, so that a prime
 * length is a plain sum. */
static void transform(fl_fft *w, const double *x, uint32_t n, uint32_t stride, fl_complex *out) {
    if (n == 1) {
        *out = (fl_complex){*x, 0};
        return;
    }
    const uint32_t p = least_factor(n), m = n / p, all = n * stride;
    for (uint32_t r = 0; r < p; r++)
        transform(w, x + (uint64_t)r * stride, m, stride * p, out + (uint64_t)r * m);
    for (uint32_t k = 0; k < m; k++) {
        for (uint32_t q = 0; q < p; q++) {
            fl_complex sum = {0, 0};
            const uint32_t turn = (k + q * m) * stride; /* below all */
            for (uint32_t r = 0, at = 0; r < p; r++, at = at + turn < all ? at + turn : at + turn - all) {
                const fl_complex a = out[r * m + k], b = w->root[at];
                sum.re += a.re * b.re - a.im * b.im;
                sum.im += a.re * b.im + a.im * b.re;
            }
            w->part[q] = sum;
        }
        for (uint32_t q = 0; q < p; q++)
            out[q * m + k] = w->part[q];
    }
}

void fl_fft_magnitude(fl_fft *work, const double *x, uint32_t n, double *magnitude) {
    for (uint32_t i = 0; i < n; i++) {
        const double angle = 6.283185307179586 * i / n; /* both by cos: a compiler joins cos and sin into a call that
                                                           not every libm has */
        work->root[i] = (fl_complex){cos(angle), cos(angle + 1.5707963267948966)};
    }
    transform(work, x, n, 1, work->out);
    for (uint32_t k = 0; k <= n / 2; k++)
        magnitude[k] = hypot(work->out[k].re, work->out[k].im);
}
