/* A monotone curve through points: measured tables and V(f). Between points Steffen's monotone cubic (GSL), which never
 * overshoots; with two points a line; with one a constant. */
#ifndef FL_CURVE_H
#define FL_CURVE_H

#include "models/status.h"

#include <stddef.h>

typedef struct fl_curve fl_curve;

/* Copies the points; x strictly ascending, all finite. fl_curve_free takes NULL. */
fl_model_status fl_curve_new(fl_curve **out, const double *x, const double *y, size_t count);
void fl_curve_free(fl_curve *c);
fl_model_status fl_curve_clone(fl_curve **out, const fl_curve *c);

/* FL_MODEL_RANGE outside [first x, last x], unless clamp is set: then the end value. Thread-safe: no shared
 * accelerator. */
fl_model_status fl_curve_at(const fl_curve *c, double x, int clamp, double *y);
double fl_curve_first(const fl_curve *c); /* smallest x */
double fl_curve_last(const fl_curve *c);

#endif
