/* Frequency sensitivity against counters. */
#include "models/fit/fit.h"

#include "models/math/math.h"

#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stddef.h>

#define TELLS_APART 1e-6 /* relative singular value */

double fl_sensitivity(double low_mhz, double low_s, double high_mhz, double high_s) {
    if (!(low_mhz > 0) || !(high_mhz > 0) || !(low_s > 0) || !(high_s > 0) || !(high_mhz > low_mhz))
        return (double)NAN;
    return (low_s / high_s - 1) / (high_mhz / low_mhz - 1);
}

typedef struct moments {
    double mean, deviation;
} moments;

static moments moments_of(const double *v, size_t count, size_t stride) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++)
        sum += v[i * stride];
    const double mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (v[i * stride] - mean) * (v[i * stride] - mean);
    const double deviation = sqrt(squares / (double)count);
    /* Rounding must not make a constant metric appear to vary. */
    return (moments){mean, deviation > 1e-12 * fabs(mean) ? deviation : 0};
}

typedef struct problem {
    const double *metric, *sensitivity;
    size_t count, metrics;
    moments x[FL_SENSITIVITY_METRICS_MAX], y;
    size_t column[FL_SENSITIVITY_METRICS_MAX], columns; /* the metrics that vary */
    gsl_matrix *u, *v;
    gsl_vector *s;
} problem;

static double standard(const problem *q, size_t row, size_t metric) {
    return (q->metric[row * q->metrics + metric] - q->x[metric].mean) / q->x[metric].deviation;
}

static fl_model_status decompose(problem *q) {
    q->u = gsl_matrix_alloc(q->count, q->columns);
    q->v = gsl_matrix_alloc(q->columns, q->columns);
    q->s = gsl_vector_alloc(q->columns);
    fl_model_status status = q->u && q->v && q->s ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    for (size_t i = 0; !status && i < q->count; i++)
        for (size_t k = 0; k < q->columns; k++)
            gsl_matrix_set(q->u, i, k, standard(q, i, q->column[k]) / sqrt((double)q->count));
    /* One-sided Jacobi allocates nothing. gsl_linalg_SV_decomp does, and crashes where it finds no memory. */
    if (!status && gsl_linalg_SV_decomp_jacobi(q->u, q->v, q->s))
        status = FL_MODEL_NO_FIT;
    return status;
}

/* The regression at one point. */
static double predicted_at(const fl_sensitivity_fit *fit, const double *metric) {
    double y = fit->intercept;
    for (size_t m = 0; m < fit->metrics; m++)
        y += fit->weight[m] * metric[m];
    return y;
}

/* Weights, and the diagonal of the inverse correlation matrix, over the directions that the data distinguish. */
static void solve(const problem *q, fl_sensitivity_fit *fit) {
    double smallest = gsl_vector_get(q->s, 0);
    const double largest = smallest;
    for (size_t k = 0; k < q->columns; k++) {
        const double sv = gsl_vector_get(q->s, k);
        smallest = fmin(smallest, sv);
        if (!(sv > TELLS_APART * largest)) {
            for (size_t m = 0; m < q->columns; m++)
                if (fabs(gsl_matrix_get(q->v, m, k)) > 1e-3)
                    fit->inflation[q->column[m]] = (double)INFINITY;
            continue;
        }
        fit->rank++;
        double along = 0;
        for (size_t i = 0; i < q->count; i++)
            along += gsl_matrix_get(q->u, i, k) * (q->sensitivity[i] - q->y.mean) / sqrt((double)q->count);
        for (size_t m = 0; m < q->columns; m++) {
            const double v = gsl_matrix_get(q->v, m, k);
            fit->weight[q->column[m]] += v * along / sv;
            fit->inflation[q->column[m]] += v * v / (sv * sv);
        }
    }
    fit->condition = smallest > 0 ? largest / smallest : (double)INFINITY;
}

static void describe(const problem *q, fl_sensitivity_fit *fit) {
    double left = 0;
    fit->intercept = q->y.mean;
    for (size_t m = 0; m < q->metrics; m++) {
        double together = 0;
        const double deviation = q->x[m].deviation;
        fit->spread[m] = deviation;
        for (size_t i = 0; deviation > 0 && i < q->count; i++)
            together += standard(q, i, m) * (q->sensitivity[i] - q->y.mean) / (double)q->count;
        fit->correlation[m] = deviation > 0 ? together / q->y.deviation : (double)NAN;
        fit->weight[m] = deviation > 0 ? fit->weight[m] / deviation : 0;
        fit->intercept -= fit->weight[m] * q->x[m].mean;
    }
    for (size_t i = 0; i < q->count; i++) {
        const double r = q->sensitivity[i] - predicted_at(fit, q->metric + i * q->metrics);
        left += r * r;
    }
    const double n = (double)q->count, spare = n - (double)fit->rank - 1;
    fit->rms = sqrt(left / n);
    fit->multiple = sqrt(fmax(0, 1 - left / n / (q->y.deviation * q->y.deviation)));
    for (size_t m = 0; m < q->metrics; m++) {
        const double deviation = q->x[m].deviation;
        fit->error[m] = spare > 0 && isfinite(fit->inflation[m])
                            ? sqrt(left / spare * fit->inflation[m] / n) / deviation
                            : (double)NAN;
    }
}

fl_model_status fl_fit_sensitivity_linear(const double *metric, const double *sensitivity, size_t count, size_t metrics,
                                          fl_sensitivity_fit *fit) {
    problem q = {.metric = metric, .sensitivity = sensitivity, .count = count, .metrics = metrics};
    *fit = (fl_sensitivity_fit){.count = count, .metrics = metrics, .condition = (double)INFINITY};
    if (metrics < 1 || metrics > FL_SENSITIVITY_METRICS_MAX)
        return FL_MODEL_INVALID;
    if (count < metrics + 1)
        return FL_MODEL_NO_FIT;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(sensitivity[i]))
            return FL_MODEL_INVALID;
    for (size_t i = 0; i < count * metrics; i++)
        if (!isfinite(metric[i]))
            return FL_MODEL_INVALID;
    fl_gsl_quiet();
    q.y = moments_of(sensitivity, count, 1);
    if (!(q.y.deviation > 0))
        return FL_MODEL_NO_FIT;
    for (size_t m = 0; m < metrics; m++) {
        q.x[m] = moments_of(metric + m, count, metrics);
        if (q.x[m].deviation > 0)
            q.column[q.columns++] = m;
        else
            fit->inflation[m] = (double)INFINITY;
    }
    fl_model_status status = q.columns ? decompose(&q) : FL_MODEL_OK;
    if (!status && q.columns)
        solve(&q, fit);
    if (!status)
        describe(&q, fit);
    gsl_matrix_free(q.u);
    gsl_matrix_free(q.v);
    gsl_vector_free(q.s);
    return status;
}
