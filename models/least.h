/* Least squares with priors: the smallest sum of squares of what `residuals` fills. A prior is a residual like any
 * other: (parameter - what is expected) / its spread. Levenberg-Marquardt (GSL), slopes by finite differences, so
 * parameters should be of the order of one. */
#ifndef FL_LEAST_H
#define FL_LEAST_H

#include "models/status.h"

#include <stddef.h>

typedef void (*fl_residuals)(void *user, const double *x, double *residual);

/* x: count parameters, the start and then the end. residuals: how many, at least count. FL_MODEL_NO_MEMORY, or
 * FL_MODEL_INVALID where they are not finite. */
fl_model_status fl_least_squares(fl_residuals fill, void *user, double *x, size_t count, size_t residuals);

#endif
