/* What the files of policies/compared share: Fourier magnitudes and means of readings. */
#pragma once

#include "policies/compared/compared.h"
#include "policies/policy.h"

#include <stdint.h>

/* magnitude[k] = |sum over i of x[i] exp(-2 pi j i k / n)|, for k from 0 to n / 2: frequencies k / (n dt). x: n
 * numbers, 1 <= n <= FL_FFT_MAX. The magnitudes may take the place of x. No window, no detrending, no scaling. */
void fl_fft_magnitude(fl_fft *work, const double *x, uint32_t n, double *magnitude);

typedef struct fl_readings_mean {
    double power_w, gpu_pct, mem_pct;
} fl_readings_mean;

/* 1: all three are known and are numbers. */
int fl_readings_known(const fl_gpu_sample *s);

/* Means of the last `seconds`, at least of the last sample; zeros where there is none. */
fl_readings_mean fl_readings_last(const fl_readings *r, double seconds);
