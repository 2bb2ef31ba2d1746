/* A lone stream by prefix sums over its ops. The ops' times and energies at a clock are summed once; a stretch between
 * two boundaries is then a difference of two sums, whatever its length. Integers wrap and sums do not depend on their
 * order, so the bits equal those of the scan. Internal to sim/.
 *
 * A table belongs to one stream at one pair of clocks, and all runs share it. The run with which the number of ops
 * scanned there exceeds FL_PREFIX_SCANS times the length of the stream builds it. That many scans cost as much as a
 * table. A single run, with the one at default clocks beside it, builds none. A table is used where a stretch spans
 * more than FL_PREFIX_WORTH ops. */
#pragma once

#include "sim/gpu/prefix_table.h"

struct fl_gpu;
struct fl_lane;
struct fl_sums;

/* Whether tables of sums may advance a lone stream now: it has only kernels, gaps are as recorded, and no one watches
 * single ops. */
bool fl_prefix_applies(const struct fl_gpu *g, const struct fl_lane *l, uint32_t gap_mul);

/* Moves a lane to which fl_prefix_applies, and which stands before an op at t, over whole ops that end by `until`: over
 * all of them where there is a table for its clocks and the stretch is long, else over none. Returns the instant
 * reached. *met: the next op does not end by `until`. */
int64_t fl_prefix_advance(struct fl_gpu *g, struct fl_lane *l, int64_t t, int64_t until, bool *met);

/* The sums of a GPU at a later instant t, if such a lane is all that runs there and nothing changes before. False where
 * tables of sums do not tell them as fast as a stop at t would. busy_only: only busy_ps is wanted, the others are 0. */
bool fl_prefix_foresee(const struct fl_gpu *g, struct fl_lane *l, uint32_t gap_mul, int64_t t, bool busy_only,
                       struct fl_sums *sums);

/* The highest dyn_mw plus base of all jumps of a GPU, or `peak` where that is higher. In mW. */
int64_t fl_prefix_peak_mw(const struct fl_gpu *g, int64_t peak);

/* Converts the jumps of a GPU into residence per class, by a pass over their ops. For callers that need classes. */
void fl_prefix_settle(struct fl_gpu *g);
