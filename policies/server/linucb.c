#include "policies/server/linucb.h"

#include <math.h>
#include <string.h>

void fl_linucb_begin(fl_linucb *l, uint32_t arms, double ridge) {
    memset(l, 0, sizeof *l);
    l->arms = arms < FL_LINUCB_ARMS ? arms : FL_LINUCB_ARMS;
    for (uint32_t i = 0; i < l->arms; i++)
        for (int k = 0; k < FL_LINUCB_TERMS; k++)
            l->arm[i].inverse[k][k] = 1 / ridge;
}

static double dot(const double *a, const double *b) {
    double sum = 0;
    for (int i = 0; i < FL_LINUCB_TERMS; i++)
        sum += a[i] * b[i];
    return sum;
}

static void times(const fl_linucb_arm *a, const double *x, double *out) {
    for (int i = 0; i < FL_LINUCB_TERMS; i++)
        out[i] = dot(a->inverse[i], x);
}

/* A + x x' by its inverse: Sherman and Morrison, 1950. */
void fl_linucb_learn(fl_linucb *l, uint32_t arm, const double *x, double reward) {
    fl_linucb_arm *a = &l->arm[arm];
    double ax[FL_LINUCB_TERMS];
    times(a, x, ax);
    const double h = 1 + dot(x, ax);
    for (int i = 0; i < FL_LINUCB_TERMS; i++) {
        for (int k = 0; k <= i; k++)
            a->inverse[i][k] = a->inverse[k][i] = a->inverse[i][k] - ax[i] * ax[k] / h;
        a->b[i] += reward * x[i];
    }
    a->mean += (reward - a->mean) / ++a->pulls;
}

double fl_linucb_bound(const fl_linucb *l, uint32_t arm, const double *x, double alpha) {
    const fl_linucb_arm *a = &l->arm[arm];
    double ax[FL_LINUCB_TERMS];
    times(a, x, ax);
    return dot(a->b, ax) + alpha * sqrt(fmax(0, dot(x, ax)));
}

uint32_t fl_linucb_choose(const fl_linucb *l, const double *x, double alpha) {
    double most = -INFINITY;
    uint32_t found = l->arms - 1;
    for (uint32_t i = l->arms; i-- > 0;) {
        const double bound = l->arm[i].pruned ? -INFINITY : fl_linucb_bound(l, i, x, alpha);
        if (bound > most) {
            most = bound;
            found = i;
        }
    }
    return found;
}
