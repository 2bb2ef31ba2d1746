/* The ops of a cache file (traces/open/cache.h): blocks of columns. Each value is the difference from the block's minimum,
 * in as few bytes as the largest difference needs. */
#pragma once

#include "traces/io/records.h"

enum { FL_CACHE_BLOCK = 256, FL_CACHE_PART = 256 * FL_CACHE_BLOCK };

size_t fl_cache_ops_room(size_t count); /* the packed size is at most this */
size_t fl_cache_ops_pack(const fl_kernel_trace *t, unsigned char *bytes);
/* Fills ops[0, count) and checks every field against the kinds and waits that *t already has. False where the bytes do
 * not hold exactly this many valid ops. */
bool fl_cache_ops_unpack(const unsigned char *bytes, size_t size, fl_kernel_trace *t, fl_trace_op *ops, size_t count);
