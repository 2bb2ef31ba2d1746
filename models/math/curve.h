/* A monotone curve through points, for measured tables and V(f). It is Steffen's monotone cubic (GSL), which never
 * overshoots; through two points it is a line, through one a constant. */
#pragma once

#include "models/math/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct fl_curve fl_curve;

/* Copies the points. x ascends strictly, and all values are finite. fl_curve_free accepts NULL. */
fl_model_status fl_curve_new(fl_curve **out, const double *x, const double *y, size_t count);
void fl_curve_free(fl_curve *c);
fl_model_status fl_curve_clone(fl_curve **out, const fl_curve *c);

/* Value at x. Outside [first x, last x]: FL_MODEL_RANGE, or the end value if clamp is set. Thread-safe: it uses no
 * shared accelerator. */
fl_model_status fl_curve_at(const fl_curve *c, double x, int clamp, double *y);
double fl_curve_first(const fl_curve *c); /* smallest x */
double fl_curve_last(const fl_curve *c);
bool fl_curve_has(const fl_curve *c, double x); /* a point within 0.5 of x: between points the curve is a guess */
