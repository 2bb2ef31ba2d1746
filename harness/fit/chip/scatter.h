/* How far measurements scatter by themselves: no law can predict them better than that. */
#pragma once

#include "harness/chip/rows.h"

typedef struct fl_fit_scatter {
    double time, power, energy; /* mean absolute scatter, percent; NAN where no workload has five SM clocks */
    size_t rows;
} fl_fit_scatter;

/* Scatter about a smooth curve of each workload and memory clock. Each inner row is compared with a quadratic in ln f
 * through its nearest neighbours, without the row itself. The difference also contains the neighbours' scatter, by
 * their weights in the curve; the function corrects for that (Cleveland's local regression). */
fl_fit_scatter fl_fit_scatter_of(const fl_fit_rows *r);
