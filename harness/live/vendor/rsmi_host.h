/* AMD GPUs through ROCm SMI as a back end of the live host: signals, clocks and limits, clock ranges or sets of allowed
 * clocks, power caps. Unproven on hardware. */
#ifndef FL_LIVE_RSMI_HOST_H
#define FL_LIVE_RSMI_HOST_H

#include "harness/live/vendor/backend.h"

#define FL_RSMI_PREFIX "rsmi-" /* of its units */

/* Signals that ROCm SMI has calls for. */
#define FL_RSMI_READS                                                                                                  \
    (FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS) | FL_BIT(FL_GPU_UTIL_GPU_PCT) |       \
     FL_BIT(FL_GPU_UTIL_MEM_PCT) | FL_BIT(FL_GPU_SM_MHZ) | FL_BIT(FL_GPU_MEM_MHZ) | FL_BIT(FL_GPU_TEMP_C))

/* As fl_nvml_host_open. */
fl_status fl_rsmi_host_open(fl_gpus *g, const char *list, fl_diag *missing, fl_diag *d);

#endif
