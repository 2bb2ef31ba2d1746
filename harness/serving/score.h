/* How far predictions lie from measurements: relative errors, collected one by one. */
#pragma once

#include "traces/io/diag.h"

typedef struct fl_serving_errors {
    double *error; /* predicted / measured - 1 */
    size_t count, room;
} fl_serving_errors;

typedef struct fl_serving_spread {   /* in percent; NAN of no errors */
    double mean, median, p95, worst; /* of the absolute values */
    double bias;                     /* mean of the errors with their sign */
} fl_serving_spread;

/* FL_NO_MEMORY. */
fl_status fl_serving_errors_add(fl_serving_errors *e, double predicted, double measured, fl_diag *d);
/* Sorts them. */
fl_serving_spread fl_serving_errors_spread(fl_serving_errors *e);
void fl_serving_errors_free(fl_serving_errors *e);
