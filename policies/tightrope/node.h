/* Several GPUs that may wait for each other: whose clock it was that slowed them all.
 *
 * Every GPU's progress is held against its own pace of the time when all of them ran at the top clock. Where GPUs meet
 * at barriers they all progress alike, as the slowest of them does: a GPU that waits loses nothing by a lower clock,
 * and its progress shows that, without a word about barriers. What must be told apart is who made the others wait. */
#pragma once

#include <stdint.h>

typedef struct fl_tightrope_member { /* one GPU in a window */
    double seen;                     /* slowdown of its progress; NAN: not known */
    double noise;                    /* relative standard error of that */
    double own;                      /* what its clock took from it before; NAN: this clock was not tried */
    double busy;                     /* share of the window in which a kernel ran; NAN: not known */
    int32_t top;                     /* it ran at the top clock */
} fl_tightrope_member;

/* The slowdown that the GPU's own clock makes. It is at most what was seen, now or before. Where the others explain
 * what was seen, the part in which this one was less busy than they was waiting; where neither explains it, the busiest
 * did it. */
double fl_tightrope_own(const fl_tightrope_member *member, uint32_t count, uint32_t i);

/* The pace of GPU i is none that the clocks, as they were seen so far, can have: off by more than that. */
int fl_tightrope_unexplained(const fl_tightrope_member *member, uint32_t count, uint32_t i, double drift);
