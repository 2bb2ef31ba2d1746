/* A lone stream by sums over its ops: what a clock makes of them is added up once, and a stretch between two boundaries
 * is then a difference of two sums, whatever its length. Integers wrap and sums do not depend on their order, so the
 * bits are those of the scan. Internal to sim/.
 *
 * A table belongs to one stream at one pair of clocks. It is shared by all runs, built by the run with which as many
 * ops have been scanned there as the stream has, and used where a stretch spans more than FL_PREFIX_WORTH ops. */
#ifndef FL_PREFIX_H
#define FL_PREFIX_H

#include "sim/prefix_table.h"

struct fl_gpu;
struct fl_lane;

/* Whether tables of sums may carry a lone stream now: kernels alone, gaps as recorded, nobody watches single ops. */
bool fl_prefix_applies(const struct fl_gpu *g, const struct fl_lane *l, uint32_t gap_mul);

/* Moves a lane to which fl_prefix_applies, and which stands before an op at t, over whole ops that end by `until`: all
 * of them where there is a table for its clocks and the stretch is long, else none. Returns the instant reached. *met:
 * the next op does not end by `until`. */
int64_t fl_prefix_advance(struct fl_gpu *g, struct fl_lane *l, int64_t t, int64_t until, bool *met);

/* The highest dyn_mw plus base of all jumps of a GPU, or `peak` where that is higher. In mW. */
int64_t fl_prefix_peak_mw(const struct fl_gpu *g, int64_t peak);

/* Turns the jumps of a GPU into residence per class, by passing over their ops. For who asks for classes. */
void fl_prefix_settle(struct fl_gpu *g);

#endif
