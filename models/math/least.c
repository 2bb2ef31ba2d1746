#include "models/math/least.h"
#include "models/math/gsl_quiet.h"

#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>

enum { ITERATIONS_MAX = 100 };
#define TOLERANCE 1e-9

typedef struct problem {
    fl_residuals fill;
    void *user;
    double *x, *f; /* copies without strides */
} problem;

static int residuals(const gsl_vector *x, void *user, gsl_vector *f) {
    const problem *p = user;
    for (size_t i = 0; i < x->size; i++)
        p->x[i] = gsl_vector_get(x, i);
    p->fill(p->user, p->x, p->f);
    for (size_t i = 0; i < f->size; i++) {
        if (!isfinite(p->f[i]))
            return GSL_EDOM;
        gsl_vector_set(f, i, p->f[i]);
    }
    return GSL_SUCCESS;
}

fl_model_status fl_least_squares(fl_residuals fill, void *user, double *x, size_t count, size_t n) {
    const gsl_multifit_nlinear_parameters parameters = gsl_multifit_nlinear_default_parameters();
    fl_gsl_quiet();
    gsl_multifit_nlinear_workspace *w = gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &parameters, n, count);
    gsl_vector *copy = gsl_vector_alloc(count), *values = gsl_vector_alloc(n);
    fl_model_status s = w && copy && values ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    if (s == FL_MODEL_OK) {
        problem p = {fill, user, copy->data, values->data};
        gsl_multifit_nlinear_fdf fdf = {.f = residuals, .n = n, .p = count, .params = &p};
        const gsl_vector_view start = gsl_vector_view_array(x, count);
        int why;
        const int begun = gsl_multifit_nlinear_init(&start.vector, &fdf, w);
        const int end =
            begun ? begun : gsl_multifit_nlinear_driver(ITERATIONS_MAX, TOLERANCE, TOLERANCE, 0, NULL, NULL, &why, w);
        /* no progress: it has reached the best point that finite differences can find */
        if (end && end != GSL_EMAXITER && end != GSL_ENOPROG)
            s = FL_MODEL_INVALID;
        const gsl_vector *at = gsl_multifit_nlinear_position(w);
        for (size_t i = 0; s == FL_MODEL_OK && i < count; i++)
            x[i] = gsl_vector_get(at, i);
    }
    gsl_vector_free(copy);
    gsl_vector_free(values);
    gsl_multifit_nlinear_free(w);
    return s;
}
