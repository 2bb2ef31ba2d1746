/* NVIDIA GPUs through NVML as a back end of the live host: signals, ladders and limits, locked clocks, power limits. */
#ifndef FL_LIVE_NVML_HOST_H
#define FL_LIVE_NVML_HOST_H

#include "harness/live/vendor/backend.h"

/* list: indices or UUIDs joined by commas; NULL or "all" = every GPU. FL_HARDWARE where there is no library, no driver
 * or no GPU, or where one of the list does not answer; FL_BAD_INPUT where a name of the list is no GPU's. With missing,
 * those that answer are opened, and it says what was left out (fl_gpus_gather). */
fl_status fl_nvml_host_open(fl_gpus *g, const char *list, fl_diag *missing, fl_diag *d);

#endif
