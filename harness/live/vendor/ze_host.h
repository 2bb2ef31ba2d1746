/* Intel GPUs through Level Zero's Sysman as a back end of the live host: signals, ladders and limits, clock ranges,
 * sustained power limits. Unproven on hardware. */
#ifndef FL_LIVE_ZE_HOST_H
#define FL_LIVE_ZE_HOST_H

#include "harness/live/vendor/backend.h"

#define FL_ZE_PREFIX "ze-" /* of its units */

/* Signals that Sysman has calls for. */
#define FL_ZE_READS                                                                                                    \
    (FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS) | FL_BIT(FL_GPU_UTIL_GPU_PCT) |       \
     FL_BIT(FL_GPU_COMPUTE_NS) | FL_BIT(FL_GPU_COPY_NS) | FL_BIT(FL_GPU_DRAM_BYTES) | FL_BIT(FL_GPU_SM_MHZ) |          \
     FL_BIT(FL_GPU_MEM_MHZ) | FL_BIT(FL_GPU_TEMP_C) | FL_BIT(FL_GPU_THROTTLE))

/* As fl_nvml_host_open. */
fl_status fl_ze_host_open(fl_gpus *g, const char *list, fl_diag *missing, fl_diag *d);

#endif
