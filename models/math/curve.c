#include "models/math/curve.h"
#include "models/math/gsl_quiet.h"

#include <gsl/gsl_interp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fl_curve {
    double *x, *y;
    size_t count;
    gsl_interp *steffen; /* NULL with fewer than three points */
};

fl_model_status fl_curve_new(fl_curve **out, const double *x, const double *y, size_t count) {
    *out = NULL;
    if (count == 0)
        return FL_MODEL_INVALID;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(x[i]) || !isfinite(y[i]) || (i > 0 && !(x[i] > x[i - 1])))
            return FL_MODEL_INVALID;
    fl_curve *c = calloc(1, sizeof *c);
    if (!c)
        return FL_MODEL_NO_MEMORY;
    c->count = count;
    c->x = calloc(count, sizeof *c->x);
    c->y = calloc(count, sizeof *c->y);
    if (!c->x || !c->y)
        goto no_memory;
    memcpy(c->x, x, count * sizeof *x);
    memcpy(c->y, y, count * sizeof *y);
    if (count >= 3) {
        fl_gsl_quiet();
        c->steffen = gsl_interp_alloc(gsl_interp_steffen, count);
        if (!c->steffen)
            goto no_memory;
        if (gsl_interp_init(c->steffen, c->x, c->y, count) != 0) {
            fl_curve_free(c);
            return FL_MODEL_INVALID;
        }
    }
    *out = c;
    return FL_MODEL_OK;

no_memory:
    fl_curve_free(c);
    return FL_MODEL_NO_MEMORY;
}

void fl_curve_free(fl_curve *c) {
    if (!c)
        return;
    if (c->steffen)
        gsl_interp_free(c->steffen);
    free(c->x);
    free(c->y);
    free(c);
}

fl_model_status fl_curve_clone(fl_curve **out, const fl_curve *c) { return fl_curve_new(out, c->x, c->y, c->count); }

double fl_curve_first(const fl_curve *c) { return c->x[0]; }
double fl_curve_last(const fl_curve *c) { return c->x[c->count - 1]; }

fl_model_status fl_curve_at(const fl_curve *c, double x, int clamp, double *y) {
    const double first = c->x[0], last = c->x[c->count - 1];
    if (isnan(x))
        return FL_MODEL_INVALID;
    if ((x < first || x > last) && !clamp)
        return FL_MODEL_RANGE;
    if (x <= first) {
        *y = c->y[0];
    } else if (x >= last) {
        *y = c->y[c->count - 1];
    } else if (c->count == 2) {
        *y = c->y[0] + (c->y[1] - c->y[0]) * ((x - first) / (last - first));
    } else if (gsl_interp_eval_e(c->steffen, c->x, c->y, x, NULL, y) != 0) {
        /* No accelerator: it would be state shared between threads, and a bisection of a few points costs little. */
        return FL_MODEL_INVALID;
    }
    return FL_MODEL_OK;
}

bool fl_curve_has(const fl_curve *c, double x) {
    for (size_t i = 0; i < c->count; i++)
        if (fabs(c->x[i] - x) < 0.5)
            return true;
    return false;
}
