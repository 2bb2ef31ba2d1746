/* Buffers for CUPTI, kept and handed out again. Nothing here waits: it runs in the program's launches.
 *
 * They are small: one is given back when all kernels in it have ended, so its size is how many later kernels a kernel
 * may have to wait for. */
#ifndef FL_LIVE_BUFFERS_H
#define FL_LIVE_BUFFERS_H

#include <stdint.h>

enum { FL_BUFFER_BYTES = 8192 /* 37 kernels */ };

uint8_t *fl_buffer_take(void); /* aligned to 8 bytes; NULL when out of memory */
void fl_buffer_give(uint8_t *buffer);

#endif
