/* AMD GPUs through ROCm SMI as a back end of the live host: signals, clocks and limits, clock ranges or sets of allowed
 * clocks, power caps. Unproven on hardware. */
#pragma once

#include "harness/live/vendor/backend.h"

/* As fl_nvml_host_open. */
fl_status fl_rsmi_host_open(fl_gpus *g, const char *list, fl_diag *missing, fl_diag *d);
