/* The markers of the programs whose kernel records a host takes (kernel_feed.h). */
#pragma once

#include "harness/live/records/counts.h"
#include "harness/live/records/marks.h"

#include <stdbool.h>

/* Markers of these names count as iterations. `all`: programs give the others too, as fl_marks_text tells them. To be
 * said before the first call of fl_kernels_take; the names stay the caller's. */
void fl_kernels_iterations(fl_kernels *k, const char *const *name, size_t count, bool all);
/* Iterations of that GPU, as of the last take. False where no name counts. */
bool fl_kernels_iterated(const fl_kernels *k, uint32_t gpu, uint64_t *count);
/* The markers, with the iterations that came with the last take: times are as in its records, and negative before. */
const fl_marks *fl_kernels_marks(const fl_kernels *k);
/* Has programs wake fl_kernels_await at such a marker, by a FIFO in the folder. */
fl_status fl_kernels_wakes(fl_kernels *k, fl_diag *d);
/* Waits until then (CLOCK_MONOTONIC), for at most a second, or for a signal; *marked: an iteration came that the last
 * take did not have. Ends at once where one did. */
fl_status fl_kernels_await(fl_kernels *k, int64_t until_ns, bool *marked, fl_diag *d);
