/* The covariance of a least-squares solution, safe where any allocation may fail: gsl_multifit_nlinear_covar does not
 * check its own allocations. */
#pragma once

#include "models/math/status.h"

#include <gsl/gsl_matrix.h>

/* Computes (J^T J)^-1 of a Jacobian with at least as many rows as columns, by QR with column pivoting. covariance is
 * columns x columns. Where columns depend on others, their rows and columns of the result are 0. Returns
 * FL_MODEL_NO_MEMORY or FL_MODEL_OK. */
fl_model_status fl_covariance(const gsl_matrix *jacobian, gsl_matrix *covariance);
