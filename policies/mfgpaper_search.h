/* MF-GPOEO, what of the search is arithmetic: memory clocks to try, where the SM search starts, bound and objective. */
#pragma once

#include "policies/mfgpaper_gpu.h"

/* Index of a clock of the ladder, FL_MFP_DEFAULT where it is none. */
int32_t fl_mfp_ladder_index(fl_ladder l, double mhz);

/* Memory clocks to try after `mem` (FL_MFP_DEFAULT at first): the next lower candidate, or FL_MFP_DEFAULT. */
int32_t fl_mfp_next_memory(const fl_mfp_params *p, const fl_gpu_facts *facts, int32_t mem);

/* Gear at which the SM search starts; achieved_mhz: mean clock of the default, NAN where unknown; low: a low memory
 * clock was chosen, at this share of the bound. */
int32_t fl_mfp_start_gear(const fl_mfp_params *p, const fl_gpu_facts *facts, double achieved_mhz, int low,
                          double bound_share);

/* Con_perf less what measuring costs. */
double fl_mfp_bound(const fl_mfp_params *p, double kernels_per_s);

double fl_mfp_objective(int64_t objective, double power_w, double index);
