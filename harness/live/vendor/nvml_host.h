/* NVIDIA GPUs through NVML as a back end of the live host: signals, ladders and limits, locked clocks, power limits. */
#pragma once

#include "harness/live/vendor/backend.h"

/* list: indices or UUIDs joined by commas; NULL or "all" = every GPU. FL_HARDWARE: no library, no driver or no GPU, or
 * a GPU of the list does not answer. FL_BAD_INPUT: a name of the list matches no GPU. With missing, the GPUs that
 * answer are opened, and *missing says which were left out (fl_gpus_gather). */
fl_status fl_nvml_host_open(fl_gpus *g, const char *list, fl_diag *missing, fl_diag *d);
