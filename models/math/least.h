/* Least squares with priors: it minimises the sum of squares of the values that `residuals` fills. A prior is a
 * residual like any other: (parameter - expected value) / its spread. The method is Levenberg-Marquardt (GSL) with
 * slopes by finite differences, so parameters should be of the order of one. */
#pragma once

#include "models/math/status.h"

#include <stddef.h>

typedef void (*fl_residuals)(void *user, const double *x, double *residual);

/* x: count parameters, the start on entry and the solution on return. residuals: how many, at least count. Returns
 * FL_MODEL_NO_MEMORY, or FL_MODEL_INVALID where the residuals are not finite. */
fl_model_status fl_least_squares(fl_residuals fill, void *user, double *x, size_t count, size_t residuals);
