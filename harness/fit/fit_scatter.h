/* How far measurements scatter by themselves: no law can predict them better. */
#ifndef FL_FIT_SCATTER_H
#define FL_FIT_SCATTER_H

#include "harness/chip/fit_rows.h"

typedef struct fl_fit_scatter {
    double time, power, energy; /* mean absolute scatter, percent; NAN where no workload has five SM clocks */
    size_t rows;
} fl_fit_scatter;

/* About a smooth curve of each workload and memory clock: each row between others is held against a quadratic in ln f
 * through its nearest neighbours, itself left out. Such a difference also holds the neighbours' scatter, by as much as
 * they weigh in the curve, and is taken back by that (Cleveland's local regression). */
fl_fit_scatter fl_fit_scatter_of(const fl_fit_rows *r);

#endif
