/* Intel GPUs through Level Zero's Sysman as a back end of the live host: signals, ladders and limits, clock ranges,
 * sustained power limits. Unproven on hardware. */
#pragma once

#include "harness/live/vendor/backend.h"

/* As fl_nvml_host_open. */
fl_status fl_ze_host_open(fl_gpus *g, const char *list, fl_diag *missing, fl_diag *d);
