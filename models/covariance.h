/* The covariance of a least-squares solution, where any allocation may fail: gsl_multifit_nlinear_covar looks at none of
 * its own. */
#ifndef FL_COVARIANCE_H
#define FL_COVARIANCE_H

#include "models/status.h"

#include <gsl/gsl_matrix.h>

/* (J^T J)^-1 of a Jacobian with at least as many rows as columns, by QR with column pivoting; into covariance, columns
 * x columns. Where columns depend on others, their rows and columns of it are 0. FL_MODEL_NO_MEMORY, else FL_MODEL_OK. */
fl_model_status fl_covariance(const gsl_matrix *jacobian, gsl_matrix *covariance);

#endif
