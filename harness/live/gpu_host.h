/* NVIDIA GPUs through NVML as a back end of the live host: signals, ladders and limits, locked clocks, power limits. */
#ifndef FL_LIVE_GPU_HOST_H
#define FL_LIVE_GPU_HOST_H

#include "harness/live/backend.h"
#include "harness/live/nvml.h"

/* list: indices or UUIDs joined by commas; NULL or "all" = every GPU. FL_HARDWARE where there is no library, no driver
 * or no GPU; FL_BAD_INPUT where the list names none. */
fl_status fl_gpu_host_open(fl_gpus *g, const char *list, fl_diag *d);

/* For doctor: the library and the handle of a GPU of such a back end. */
const fl_nvml *fl_gpu_host_library(const fl_gpus *g);
fl_nvml_device fl_gpu_host_device(const fl_gpus *g, uint32_t gpu);

#endif
