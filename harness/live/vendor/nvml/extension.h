/* An extra symbol of the simulated NVML library: the switch of the collector in its simulated programs; on hardware the
 * programs carry the collector themselves. It delivers no signal: the host reads all signals by NVML's calls. A real
 * library has no such symbol. Returns FL_NVML_OK or a code of NVML. */
#pragma once

#include <stdint.h>

/* "foldlineSetRecords": kernel records of a GPU, on or off. */
typedef int fl_extension_set_records(uint32_t gpu, double value);
