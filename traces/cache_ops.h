/* The ops of a cache file (traces/cache.h): blocks of columns, each as the difference from the block's least in as few
 * bytes as the largest needs. */
#ifndef FL_CACHE_OPS_H
#define FL_CACHE_OPS_H

#include "traces/records.h"

enum { FL_CACHE_BLOCK = 256, FL_CACHE_PART = 256 * FL_CACHE_BLOCK };

size_t fl_cache_ops_room(size_t count); /* the packed size is at most this */
size_t fl_cache_ops_pack(const fl_kernel_trace *t, unsigned char *bytes);
/* Fills ops[0, count) and checks every field against the kinds and waits that *t has already; false where the bytes do
 * not hold so many sound ops, to the last byte. */
bool fl_cache_ops_unpack(const unsigned char *bytes, size_t size, fl_kernel_trace *t, fl_trace_op *ops, size_t count);

#endif
