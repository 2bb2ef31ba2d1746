/* Which GPUs the program's driver gives it. Own declarations (CUDA 11.4 and later). */
#ifndef FL_LIVE_CUDA_H
#define FL_LIVE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

enum { FL_CUDA_UUID = 16 };

/* UUID of the GPU that the program has as this number, or of the MIG instance that stands for it (its own, not its
 * GPU's). False: no such GPU, or the driver has not started, or is too old to tell. Never loads a driver: the program
 * did. */
bool fl_cuda_uuid(uint32_t number, uint8_t uuid[FL_CUDA_UUID]);

#endif
