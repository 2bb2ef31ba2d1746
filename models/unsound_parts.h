/* What models/unsound*.c share; nothing for others. */
#ifndef FL_UNSOUND_PARTS_H
#define FL_UNSOUND_PARTS_H

#include "models/row_curve.h"
#include "models/unsound.h"

#define FL_UNSOUND_ROWS 5   /* of a workload, at least, to be looked at */
#define FL_UNSOUND_SDS 6.0  /* off by so many deviations, as fl_chip_robust_pct counts rows far off */
#define FL_UNSOUND_FAR 0.03 /* and by this share: as there */

/* d ln T / d ln f below this: -1 is all that the SM clock can do, the rest is room for scatter. */
#define FL_UNSOUND_STEEPEST (-1.2)

/* One workload's rows and their curves; the rows' clocks are as found so far. */
typedef struct fl_unsound_load {
    size_t first, count;
    fl_row_curve time, power; /* n 0: not told */
} fl_unsound_load;

typedef struct fl_unsound_search {
    const fl_chip_row *row;
    size_t count;
    fl_unsound_load *load;
    size_t loads;
    fl_unsound *found;
    double *room, *second; /* count */
} fl_unsound_search;

/* Median, and 1.4826 times the median distance from it. x is changed. n >= 1. */
double fl_unsound_middle(double *x, size_t n, double *spread);

/* Opens a workload's curves anew, without the rows that are found to be unsound. */
fl_model_status fl_unsound_open(const fl_unsound_search *s, fl_unsound_load *load);
void fl_unsound_close(fl_unsound_load *load);

/* Finds the clocks that are wrong in all workloads; the curves are those without them then. */
fl_model_status fl_unsound_clocks(fl_unsound_search *s);

#endif
