/* The points of time and energy that some price on time selects: the lower convex hull. Internal to sim/. */
#pragma once

#include "sim/base/wide.h"

#include <stddef.h>
#include <stdint.h>

typedef struct fl_hull_point {
    int64_t ps;
    fl_wide fj;
    uint32_t choice;
} fl_hull_point;

/* Moves the points of the hull to the front, the fastest first, each slower and cheaper than the one before. Returns
 * how many. Of equal points the lowest choice stays. */
size_t fl_hull(fl_hull_point *p, size_t count);
