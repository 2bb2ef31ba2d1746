/* A workload's time or power as a smooth function of its clocks, from its own rows alone. */
#include "models/chip/chip.h"

#include "models/math/math.h"

#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>

#define LEVEL 3.0 /* nothing is known of the level */
#define SLOPE 2.0 /* of ln T and ln P against ln f: the slopes of a law lie within -1 and 2 */
#define AMPLITUDE 0.1
#define LENGTH 0.3 /* in ln clock: how far a bend of the curve reaches */
#define ROWS_LEAST 3
#define STEP 0.01 /* in ln f, for slopes */

static double covariance(double xa, double za, double xb, double zb) {
    const double dx = (xa - xb) / LENGTH, dz = (za - zb) / LENGTH;
    return LEVEL * LEVEL + SLOPE * SLOPE * (xa * xb + za * zb) +
           AMPLITUDE * AMPLITUDE * exp(-0.5 * (dx * dx + dz * dz));
}

static void set_weights(fl_row_curve *c) {
    for (size_t i = 0; i < c->n; i++) {
        c->weight[i] = 0;
        for (size_t j = 0; c->used[i] && j < c->n; j++)
            c->weight[i] += c->used[j] ? c->inverse[i * c->n + j] * c->y[j] : 0;
    }
}

static fl_model_status invert(fl_row_curve *c) {
    const size_t n = c->n;
    fl_gsl_quiet();
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            const int both = c->used[i] && c->used[j];
            double k = both ? covariance(c->x[i], c->z[i], c->x[j], c->z[j]) : 0;
            if (i == j)
                k = both ? k + c->noise * c->noise : 1; /* a row that is not in use stands alone */
            c->inverse[i * n + j] = k;
        }
    gsl_matrix_view m = gsl_matrix_view_array(c->inverse, n, n);
    if (gsl_linalg_cholesky_decomp1(&m.matrix) != 0 || gsl_linalg_cholesky_invert(&m.matrix) != 0)
        return FL_MODEL_NO_FIT;
    set_weights(c);
    return FL_MODEL_OK;
}

fl_model_status fl_row_curve_open(const fl_chip_row *row, size_t n, int power, fl_row_curve *curve) {
    fl_row_curve c = {.n = n, .noise = power ? FL_ROW_NOISE_POWER : FL_ROW_NOISE_TIME};
    double told = 0;
    c.x = calloc(4 * n + n * n + 1, sizeof *c.x);
    c.known = calloc(2 * n + 1, 1);
    if (!c.x || !c.known) {
        fl_row_curve_close(&c);
        *curve = c;
        return FL_MODEL_NO_MEMORY;
    }
    c.used = c.known + n;
    c.z = c.x + n;
    c.y = c.z + n;
    c.weight = c.y + n;
    c.inverse = c.weight + n;
    for (size_t i = 0; i < n; i++) {
        const double value = power ? row[i].power_w : row[i].time_s;
        c.known[i] = c.used[i] = value > 0;
        if (!c.used[i])
            continue;
        told++;
        c.x_mean += c.x[i] = log(row[i].sm_mhz);
        c.z_mean += c.z[i] = log(row[i].mem_mhz);
        c.y_mean += c.y[i] = log(value);
    }
    c.x_mean /= fmax(1, told);
    c.z_mean /= fmax(1, told);
    c.y_mean /= fmax(1, told);
    for (size_t i = 0; i < n; i++)
        if (c.used[i]) {
            c.x[i] -= c.x_mean;
            c.z[i] -= c.z_mean;
            c.y[i] -= c.y_mean;
        }
    const fl_model_status s = told >= ROWS_LEAST ? invert(&c) : FL_MODEL_NO_FIT;
    if (s != FL_MODEL_OK)
        fl_row_curve_close(&c);
    *curve = c;
    return s;
}

void fl_row_curve_close(fl_row_curve *curve) {
    free(curve->x);
    free(curve->known);
    *curve = (fl_row_curve){0};
}

void fl_row_curve_off(const fl_row_curve *c, size_t i, double *off, double *sd) {
    *off = *sd = NAN;
    if (!c->n || !c->known[i])
        return;
    const double own = c->inverse[i * c->n + i];
    *off = c->weight[i] / own;
    *sd = sqrt(1 / own);
    if (c->used[i])
        return;
    double variance = covariance(c->x[i], c->z[i], c->x[i], c->z[i]) + c->noise * c->noise;
    *off = c->y[i];
    for (size_t j = 0; j < c->n; j++) {
        const double to_j = c->used[j] ? covariance(c->x[i], c->z[i], c->x[j], c->z[j]) : 0;
        *off -= to_j * c->weight[j];
        for (size_t k = 0; c->used[j] && k < c->n; k++)
            if (c->used[k])
                variance -= to_j * c->inverse[j * c->n + k] * covariance(c->x[i], c->z[i], c->x[k], c->z[k]);
    }
    *sd = sqrt(fmax(variance, c->noise * c->noise));
}

/* Without row i the inverse is A_jk - A_ji A_ik / A_ii. */
void fl_row_curve_drop(fl_row_curve *c, size_t i) {
    const size_t n = c->n;
    if (!n || !c->used[i])
        return;
    const double own = c->inverse[i * n + i];
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; j != i && k < n; k++)
            if (k != i)
                c->inverse[j * n + k] -= c->inverse[j * n + i] * c->inverse[i * n + k] / own;
    for (size_t j = 0; j < n; j++)
        c->inverse[j * n + i] = c->inverse[i * n + j] = 0;
    c->inverse[i * n + i] = 1;
    c->used[i] = 0;
    set_weights(c);
}

fl_model_status fl_row_curve_admit(fl_row_curve *c, size_t i) {
    if (!c->n || !c->known[i] || c->used[i])
        return FL_MODEL_OK;
    c->used[i] = 1;
    return invert(c);
}

double fl_row_curve_at(const fl_row_curve *c, size_t without, double sm_mhz, double mem_mhz) {
    const size_t n = c->n;
    const double x = log(sm_mhz) - c->x_mean, z = log(mem_mhz) - c->z_mean;
    const int leave = without < n && c->used[without];
    const double share = leave ? c->weight[without] / c->inverse[without * n + without] : 0;
    double sum = n ? c->y_mean : (double)NAN;
    for (size_t j = 0; j < n; j++)
        if (c->used[j] && j != without) {
            const double weight = c->weight[j] - (leave ? c->inverse[j * n + without] * share : 0);
            sum += weight * covariance(x, z, c->x[j], c->z[j]);
        }
    return sum;
}

double fl_row_curve_slope(const fl_row_curve *c, size_t without, double sm_mhz, double mem_mhz) {
    return (fl_row_curve_at(c, without, sm_mhz * exp(STEP), mem_mhz) -
            fl_row_curve_at(c, without, sm_mhz * exp(-STEP), mem_mhz)) /
           (2 * STEP);
}
