#include "models/math/covariance.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_linalg.h>

typedef struct space {
    gsl_matrix *r;
    gsl_vector *tau, *norm;
    gsl_permutation *order;
} space;

/* J P = Q R, so the inverse is P R^-1 R^-T P^T: of the leading part of R that has an inverse. */
static void invert(const space *s, gsl_matrix *covariance) {
    const size_t n = covariance->size1;
    size_t rank = 0;
    while (rank < n && gsl_matrix_get(s->r, rank, rank) != 0)
        rank++;
    gsl_matrix_set_zero(covariance);
    if (!rank)
        return;
    gsl_matrix_view part = gsl_matrix_submatrix(s->r, 0, 0, rank, rank);
    gsl_linalg_tri_invert(CblasUpper, CblasNonUnit, &part.matrix);
    for (size_t i = 0; i < rank; i++)
        for (size_t k = 0; k <= i; k++) {
            double sum = 0;
            for (size_t at = i; at < rank; at++)
                sum += gsl_matrix_get(s->r, i, at) * gsl_matrix_get(s->r, k, at);
            const size_t row = gsl_permutation_get(s->order, i), column = gsl_permutation_get(s->order, k);
            gsl_matrix_set(covariance, row, column, sum);
            gsl_matrix_set(covariance, column, row, sum);
        }
}

fl_model_status fl_covariance(const gsl_matrix *jacobian, gsl_matrix *covariance) {
    const size_t n = jacobian->size2;
    int sign = 0;
    space s = {gsl_matrix_alloc(jacobian->size1, n), gsl_vector_alloc(n), gsl_vector_alloc(n),
               gsl_permutation_alloc(n)};
    const fl_model_status status = s.r && s.tau && s.norm && s.order ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    if (status == FL_MODEL_OK) {
        gsl_matrix_memcpy(s.r, jacobian);
        gsl_linalg_QRPT_decomp(s.r, s.tau, s.order, &sign, s.norm);
        invert(&s, covariance);
    }
    gsl_matrix_free(s.r);
    gsl_vector_free(s.tau);
    gsl_vector_free(s.norm);
    gsl_permutation_free(s.order);
    return status;
}
