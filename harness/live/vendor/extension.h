/* What a simulated NVML library may offer beside the vendor's calls, for hosts that know it: signals that NVML has no
 * call for, and which of them refreshed. A real library has none of these symbols. Return FL_NVML_OK or a code of
 * NVML. */
#ifndef FL_LIVE_EXTENSION_H
#define FL_LIVE_EXTENSION_H

#include "policies/policy.h"

/* "foldlineReadNode": all GPUs (gpus entries, by index) and the host as they stand now, raw; returns when reading them
 * has taken its time. */
typedef int fl_extension_read_node(fl_gpu_sample *gpu, uint32_t gpus, fl_host_sample *host);
/* "foldlineSetHost": a host control (FL_SET_HOST_...), and records of a GPU by "foldlineSetRecords". */
typedef int fl_extension_set_host(int control, double value);
typedef int fl_extension_set_records(uint32_t gpu, double value);

#endif
