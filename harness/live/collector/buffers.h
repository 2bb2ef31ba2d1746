/* A pool of buffers for CUPTI. Nothing here waits, because it runs inside the program's launches.
 *
 * The buffers are small. CUPTI returns a buffer when all kernels in it have ended, so the size limits how many later
 * kernels a kernel may have to wait for. */
#pragma once

#include <stdint.h>

enum { FL_BUFFER_BYTES = 8192 /* 37 kernels */ };

uint8_t *fl_buffer_take(void); /* aligned to 8 bytes; NULL when out of memory */
void fl_buffer_give(uint8_t *buffer);
