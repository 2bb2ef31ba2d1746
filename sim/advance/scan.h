/* Advancing a lone stream: nothing can disturb it between two boundaries. Internal to sim/. */
#pragma once

#include "sim/gpu/lane.h"

/* Advances to `until`, or to the end of the stream; returns the instant reached. Charges into g->window; the caller
 * charges the rest up to that instant. */
int64_t fl_scan_advance(fl_gpu *g, fl_lane *lane, int64_t until, uint32_t gap_mul);
/* The CPU changed to another clock: rescales the rest of a gap. */
void fl_scan_rescale_host(fl_lane *lane, uint32_t mul_before, uint32_t mul_after);
/* Call it after fl_gpu_clock: rescales the rest of a kernel. */
void fl_scan_rescale(fl_gpu *g, fl_lane *lane, const fl_clock_rates *before);
