/* UUIDs of the simulated GPUs: NVML's calls tell them, and so do the rings of kernel records. */
#ifndef FL_EMULATE_UUID_H
#define FL_EMULATE_UUID_H

#include "harness/live/collector/ring.h"

static inline void fl_emulated_uuid(uint64_t seed, uint32_t gpu, uint8_t uuid[FL_RING_UUID]) {
    const uint8_t bytes[FL_RING_UUID] = {0xf0,
                                         0x1d,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0x40,
                                         0,
                                         0x80,
                                         0,
                                         (uint8_t)(seed >> 8),
                                         (uint8_t)seed,
                                         (uint8_t)(gpu >> 24),
                                         (uint8_t)(gpu >> 16),
                                         (uint8_t)(gpu >> 8),
                                         (uint8_t)gpu};
    for (int i = 0; i < FL_RING_UUID; i++)
        uuid[i] = bytes[i];
}

#endif
