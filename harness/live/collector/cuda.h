/* The GPUs that the program's driver gives it. Own declarations (CUDA 11.4 and later). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { FL_CUDA_UUID = 16 };

/* UUID of the GPU that has this number in the program, or of the MIG instance with this number (the instance's own, not
 * its GPU's). False: there is no such GPU, the driver has not started, or it is too old to have the call. Never loads a
 * driver: the program has done that. */
bool fl_cuda_uuid(uint32_t number, uint8_t uuid[FL_CUDA_UUID]);
/* The program's number of the GPU that this thread uses; UINT32_MAX where it uses none yet. */
uint32_t fl_cuda_current(void);
