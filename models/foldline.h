/* The fold line (GEEPAFS Eq. 1): bandwidth utilisation against clock as two segments with a1 > a2 >= 0. It is what a
 * policy fits and a summary of data; the simulator is never judged by it. */
#ifndef FL_FOLDLINE_H
#define FL_FOLDLINE_H

#include "models/status.h"

#include <stddef.h>

typedef struct fl_foldline {
    double a1, b1, a2, b2; /* u = a1 f + b1 up to turn, a2 f + b2 above; % and MHz */
    double turn;           /* where the two lines cross; INFINITY = a single line (a1, b1) */
    double error;          /* residual sum of squares */
} fl_foldline;

/* Least squares over every fold with at least two distinct clocks on each side; a single line where no fold with
 * a1 > a2 >= 0 that crosses between its sides is better. count >= 2 points, clocks ascending, duplicates allowed. */
fl_model_status fl_foldline_fit(const double *mhz, const double *utilisation, size_t count, fl_foldline *out);
double fl_foldline_at(const fl_foldline *l, double mhz);

#endif
