#include "models/laws/stage_law.h"
#include "models/math/gsl_quiet.h"

#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>

#define SHARPNESS 12    /* of the minimum: within 1 % of it a tenth below the wall */
#define LEFT_SD 0.002   /* of what the law leaves, as a share of the time */
#define LEFT_REACH 0.03 /* over how much of the top clock it changes */

double fl_stage_law_at(const fl_stage_time *t, double clock) {
    const double held = pow(pow(clock, -SHARPNESS) + pow(t->wall, -SHARPNESS), -1.0 / SHARPNESS);
    return exp(t->log_t0) * (1 - t->share + t->share * FL_STAGE_F0 / held);
}

static double alike(double a, double b) {
    const double x = (a - b) / LEFT_REACH;
    return LEFT_SD * LEFT_SD * exp(-0.5 * x * x);
}

double fl_stage_time_at(const fl_stage_time *t, double clock) {
    double left = 0;
    for (size_t i = 0; i < t->count; i++)
        left += alike(clock, t->clock[i]) * t->weight[i];
    return fl_stage_law_at(t, clock) * exp(left);
}

static double volts(const fl_stage_power *p, double clock) { return 1 + p->rise * fmax(clock - p->knee, 0); }

double fl_stage_power_at(const fl_stage_power *p, double clock) {
    const double v = volts(p, clock) / volts(p, FL_STAGE_F0);
    return p->s + (1 - p->s) * clock / FL_STAGE_F0 * v * v;
}

/* Gaussian-process regression (Rasmussen and Williams, 2006, Eq. 2.25): weights = (K + sd^2)^-1 residual. */
int fl_stage_time_correct(fl_stage_time *t, const double *clock, const double *log_s, const double *sd, size_t count) {
    fl_gsl_quiet();
    gsl_matrix *k = gsl_matrix_alloc(count, count);
    gsl_vector *left = gsl_vector_alloc(count);
    double *at = malloc(count * sizeof *at), *weight = malloc(count * sizeof *weight);
    int good = k && left && at && weight;
    for (size_t i = 0; good && i < count; i++) {
        at[i] = clock[i];
        gsl_vector_set(left, i, log_s[i] - log(fl_stage_law_at(t, clock[i])));
        for (size_t j = 0; j < count; j++)
            gsl_matrix_set(k, i, j, alike(clock[i], clock[j]) + (i == j ? sd[i] * sd[i] : 0));
    }
    good = good && !gsl_linalg_cholesky_decomp1(k) && !gsl_linalg_cholesky_svx(k, left);
    for (size_t i = 0; good && i < count; i++)
        weight[i] = gsl_vector_get(left, i);
    gsl_matrix_free(k);
    gsl_vector_free(left);
    if (!good) {
        free(at);
        free(weight);
        return -1;
    }
    t->clock = at;
    t->weight = weight;
    t->count = count;
    return 0;
}

void fl_stage_time_free(fl_stage_time *t) {
    free(t->clock);
    free(t->weight);
    t->clock = t->weight = NULL;
    t->count = 0;
}
