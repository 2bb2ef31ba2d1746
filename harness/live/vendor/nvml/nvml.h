/* MODULE harness/live/vendor/nvml */
#pragma once

#include "harness/live/vendor/vendor.h"
#include "traces/io/io.h"

/* The back ends: NVIDIA GPUs through NVML (signals, ladders and limits, locked clocks, power limits), AMD GPUs through
 * ROCm SMI (signals, clocks and limits, clock ranges or sets of allowed clocks, power caps), Intel GPUs through Level
 * Zero's Sysman (signals, ladders and limits, clock ranges, sustained power limits). The last two are unproven on
 * hardware. list: as for fl_gpus_listed. FL_HARDWARE: no library, no driver or no GPU, or a GPU of the list does not
 * answer. FL_BAD_INPUT: a name of the list matches no GPU. With missing, the GPUs that answer are opened, and *missing
 * says which were left out (fl_gpus_gather). */
fl_status fl_nvml_host_open(fl_gpus *g, const char *list, fl_diag *missing, fl_diag *d);
