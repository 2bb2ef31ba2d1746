/* A trace of what NVML tells of one GPU: power and the two utilisations, sample by sample. ODPP looks at nothing
 * else while it looks for a period. */
#pragma once

#include "policies/compared/fft.h"
#include "policies/policy.h"

typedef struct fl_readings {
    int64_t first_ns, last_ns;
    uint32_t count;
    float power_w[FL_FFT_MAX], gpu_pct[FL_FFT_MAX], mem_pct[FL_FFT_MAX];
} fl_readings;

typedef struct fl_readings_mean {
    double power_w, gpu_pct, mem_pct;
} fl_readings_mean;

#define FL_READINGS_NEEDS (FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_UTIL_GPU_PCT) | FL_BIT(FL_GPU_UTIL_MEM_PCT))

/* 1: all three are known and are numbers. */
int fl_readings_known(const fl_gpu_sample *s);

/* Adds one sample; nothing where one of the three is not known, or where the trace is full. */
void fl_readings_add(fl_readings *r, const fl_gpu_sample *s, int64_t now_ns);

/* Return the seconds that all samples cover; 0 for fewer than two. */
double fl_readings_length_s(const fl_readings *r);

/* Means of the last `seconds`, at least of the last sample; zeros where there is none. */
fl_readings_mean fl_readings_last(const fl_readings *r, double seconds);

/* The board's power limit as the paper's machines have it: the default one; else the most that is known; 0: none. */
double fl_readings_limit_w(const fl_gpu_facts *f);
