/* A seeded half of the workloads of a sweep. */
#pragma once

#include "harness/chip/rows.h"

/* half[i]: whether the device is fitted to entity i. All halves are equally likely. */
void fl_fit_draw_half(const fl_fit_rows *r, uint64_t seed, uint64_t split, bool *half);
