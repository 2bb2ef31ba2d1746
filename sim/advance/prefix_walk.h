/* Adds the ops after a row of a table of prefix sums, one by one or eight at a time, with the same sums. Internal to
 * sim/. */
#pragma once

#include "sim/advance/prefix_walk_inside.h"

/* Adds ops to a place while they end by t_ps on the table's own time, and before op `stop`. Sums beyond `depth`
 * stay as they are. Uses vector registers where the CPU has AVX-512. */
void fl_prefix_walk(fl_prefix_place *at, uint64_t stop, uint64_t t_ps, fl_prefix_depth depth);
