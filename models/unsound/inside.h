/* What the files of models/unsound share: limits, workloads with their curves, and the search. */
#pragma once

#include "models/chip/chip.h"
#include "models/math/math.h"
#include "models/unsound/unsound.h"

#include <stddef.h>

#define FL_UNSOUND_SDS 6.0  /* off by this many deviations, the limit of fl_chip_robust_pct */
#define FL_UNSOUND_FAR 0.03 /* and by this share, also the limit of fl_chip_robust_pct */

/* -1 is the most that the SM clock can cause; the rest leaves room for scatter */
#define FL_UNSOUND_STEEPEST (-1.2)

/* One workload's rows and their curves; the rows have the clocks found so far. */
typedef struct fl_unsound_load {
    size_t first, count;
    fl_row_curve time, power; /* n 0: no curve */
} fl_unsound_load;

typedef struct fl_unsound_search {
    const fl_chip_row *row;
    size_t count;
    fl_unsound_load *load;
    size_t loads;
    fl_unsound *found;
    double *room, *second; /* count */
} fl_unsound_search;

/* Median, and 1.4826 times the median distance from it. The function reorders x. n >= 1. */
double fl_unsound_middle(double *x, size_t n, double *spread);

/* Opens a workload's curves again, without the rows found to be unsound. */
fl_model_status fl_unsound_open(const fl_unsound_search *s, fl_unsound_load *load);
void fl_unsound_close(fl_unsound_load *load);

/* Finds the clocks that are wrong in all workloads and opens the curves again without their rows. */
fl_model_status fl_unsound_clocks(fl_unsound_search *s);
