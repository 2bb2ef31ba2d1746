/* Magnitudes of the discrete Fourier transform of a trace, of any length: what ODPP looks for periods in. */
#pragma once

#include <stdint.h>

#define FL_FFT_MAX 4096 /* samples */

typedef struct fl_complex {
    double re, im;
} fl_complex;

typedef struct fl_fft { /* scratch; its content means nothing before and after a call */
    fl_complex root[FL_FFT_MAX], out[FL_FFT_MAX], part[FL_FFT_MAX];
} fl_fft;

/* magnitude[k] = |sum over i of x[i] exp(-2 pi j i k / n)|, for k from 0 to n / 2: frequencies k / (n dt). x: n
 * numbers, 1 <= n <= FL_FFT_MAX. The magnitudes may take the place of x. No window, no detrending, no scaling. */
void fl_fft_magnitude(fl_fft *work, const double *x, uint32_t n, double *magnitude);
