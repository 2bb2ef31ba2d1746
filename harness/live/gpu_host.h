/* NVIDIA GPUs through NVML as a back end of the live host: signals, ladders and limits, locked clocks, power limits. */
#ifndef FL_LIVE_GPU_HOST_H
#define FL_LIVE_GPU_HOST_H

#include "harness/live/backend.h"
#include "harness/live/nvml.h"

/* list: indices or UUIDs joined by commas; NULL or "all" = every GPU. FL_HARDWARE where there is no library, no driver
 * or no GPU, or where one of the list does not answer; FL_BAD_INPUT where a name of the list is no GPU's. */
fl_status fl_gpu_host_open(fl_gpus *g, const char *list, fl_diag *d);
/* The same with those of the list that answer, so that one lost GPU does not hold up the others; *missing says what
 * fl_gpu_host_open would have failed with, its status FL_OK where nothing. Fails where none is left. */
fl_status fl_gpu_host_open_working(fl_gpus *g, const char *list, fl_diag *missing, fl_diag *d);

/* Its number in the library, which that in a list need not be. */
uint32_t fl_gpu_host_index(const fl_gpus *g, uint32_t gpu);
/* As an fl_kernels_position (harness/live/kernels.h); gpus: an fl_gpus. */
int fl_gpu_host_position(void *gpus, const char *name, size_t size);

/* For doctor: the library and the handle of a GPU of such a back end. */
const fl_nvml *fl_gpu_host_library(const fl_gpus *g);
fl_nvml_device fl_gpu_host_device(const fl_gpus *g, uint32_t gpu);

#endif
