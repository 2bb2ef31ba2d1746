/* When a table of prefix sums is built. Internal to sim/. */
#pragma once

#include "sim/gpu/gpu.h"

/* Reports that this many ops of a stream to which fl_prefix_applies were scanned in one stretch at the current clocks.
 * Builds the table where that makes it due. */
void fl_prefix_scanned(fl_gpu *g, const fl_stream *s, uint64_t ops);
