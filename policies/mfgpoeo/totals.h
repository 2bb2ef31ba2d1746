/* MF-GPOEO as released, totals of a window: its length, kernels, and what the library's samples add up to. */
#pragma once

#include "policies/policy.h"

enum { FL_MFG_POWER, FL_MFG_SM, FL_MFG_MEM, FL_MFG_UTIL_GPU, FL_MFG_UTIL_MEM, FL_MFG_MEANS };

typedef struct fl_mfg_totals { /* all zero: nothing measured */
    double seconds, kernels, samples;
    double sum[FL_MFG_MEANS];
} fl_mfg_totals;

/* One reading. Only those count in which all five signals are known and the GPU was busy; power in whole watts. */
void fl_mfg_sample(fl_mfg_totals *t, const fl_gpu_sample *g);

/* *old becomes now + d old. */
void fl_mfg_totals_merge(fl_mfg_totals *old, const fl_mfg_totals *now, double d);

/* Mean over the samples; 0 without any. */
double fl_mfg_mean_of(const fl_mfg_totals *t, int which);

/* How far two GPU utilisations are from each other: |a - b| / (a + b); 0 where both are 0. */
double fl_mfg_apart(double a, double b);
