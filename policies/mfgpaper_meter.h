/* MF-GPOEO, means of signals over one measurement or one execution vector. Energy comes from the counter where there is
 * one; unknown readings enter nothing. */
#pragma once

#include "policies/policy.h"

enum { FL_MFP_POWER, FL_MFP_UTIL_GPU, FL_MFP_UTIL_MEM, FL_MFP_SM, FL_MFP_MEM, FL_MFP_MEANS };

typedef struct fl_mfp_meter { /* all zero: begun */
    double sum[FL_MFP_MEANS];
    uint64_t count[FL_MFP_MEANS];
    double energy_j, energy_ns; /* by the counter, between its refreshes in this interval */
    double last_j, last_ns;     /* the refresh before */
    uint64_t counting;          /* 1: last_j is known and lies in this interval */
} fl_mfp_meter;

void fl_mfp_meter_add(fl_mfp_meter *m, const fl_gpu_sample *g, int64_t time_ns);

/* What is added next is not joined to what was before: the time between does not count. */
void fl_mfp_meter_pause(fl_mfp_meter *m);

/* Mean, power in W; NAN where nothing is known. */
double fl_mfp_meter_mean(const fl_mfp_meter *m, int which);
