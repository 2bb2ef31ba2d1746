/* One trace of GPOEO: readings from one instant to another, and what they say of power, period and rate of kernels. The
 * windows of its counters and of its watch are such traces, too. */
#pragma once

#include "policies/gpoeo_period.h"

typedef struct fl_gpoeo_trace {
    int64_t begin_ns, end_ns; /* end: as planned */
    int64_t from_ns, last_ns; /* its first and last reading */
    double kernels;           /* recorded ones that ended, since the policy began */
    double from_kernels;      /* of these, at the first reading */
    fl_readings readings;
    fl_gpoeo_work work;
} fl_gpoeo_trace;

void fl_gpoeo_trace_begin(fl_gpoeo_trace *t, int64_t begin_ns, int64_t length_ns);

/* Counts the recorded kernels of that GPU; at every step, before the readings are added. */
void fl_gpoeo_trace_count(fl_gpoeo_trace *t, const fl_sample *sample, uint32_t gpu);

/* Adds the readings of a step; they must be known. */
void fl_gpoeo_trace_read(fl_gpoeo_trace *t, const fl_gpu_sample *s, int64_t now_ns);

double fl_gpoeo_trace_power_w(const fl_gpoeo_trace *t);

/* Time from the end of a kernel to that of the next, on average; NAN: none ended. */
double fl_gpoeo_trace_kernel_s(const fl_gpoeo_trace *t);

/* Looks for the period. 0: the trace was made longer, as no period is stable yet; 1: *p is what there is. */
int fl_gpoeo_trace_period(fl_gpoeo_trace *t, double limit_w, double spread, fl_gpoeo_period *p);
