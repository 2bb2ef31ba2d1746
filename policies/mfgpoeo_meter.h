/* MF-GPOEO, means of signals over one measurement or one execution vector. Energy comes from the counter where there is
 * one; unknown readings enter nothing. */
#ifndef FL_MFGPOEO_METER_H
#define FL_MFGPOEO_METER_H

#include "policies/policy.h"

enum { FL_MFG_POWER, FL_MFG_UTIL_GPU, FL_MFG_UTIL_MEM, FL_MFG_SM, FL_MFG_MEM, FL_MFG_MEANS };

typedef struct fl_mfg_meter { /* all zero: begun */
    double sum[FL_MFG_MEANS];
    uint64_t count[FL_MFG_MEANS];
    double energy_j, energy_ns; /* by the counter, between its refreshes in this interval */
    double last_j, last_ns;     /* the refresh before */
    uint64_t counting;          /* 1: last_j is known and lies in this interval */
} fl_mfg_meter;

void fl_mfg_meter_add(fl_mfg_meter *m, const fl_gpu_sample *g, int64_t time_ns);

/* What is added next is not joined to what was before: the time between does not count. */
void fl_mfg_meter_pause(fl_mfg_meter *m);

/* Mean, power in W; NAN where nothing is known. */
double fl_mfg_meter_mean(const fl_mfg_meter *m, int which);

#endif
