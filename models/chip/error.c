/* How measurements scatter about the law: maximum likelihood of a Gaussian process with independent scatter, over a
 * grid of its few constants. The workloads' residuals are independent of each other. */
#include "models/chip/parts.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>

#define LEAST 1e-3     /* scatter: no meter repeats better */
#define FREE_LEAST 6.0 /* fewer degrees of freedom than this: the errors are assumed */
#define ROWS_MAX 40    /* per workload: more are thinned, because a Cholesky decomposition takes long */

typedef struct sample {
    const fl_chip_row *row;
    const double *r;
    size_t index[ROWS_MAX], count;
    double grow; /* correction for the numbers that were fitted to these rows */
} sample;

/* Log likelihood, with the overall scale profiled out: *scale2 is its best value. */
static double likelihood(const sample *s, size_t spans, const fl_chip_error *shape, double limit, double *scale2) {
    double squares = 0, half_log = 0, a[ROWS_MAX * ROWS_MAX], x[ROWS_MAX];
    size_t total = 0;
    for (size_t k = 0; k < spans; k++) {
        const size_t n = s[k].count;
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j <= i; j++)
                a[i * n + j] = fl_chip_covariance(shape, &s[k].row[s[k].index[i]], &s[k].row[s[k].index[j]]);
            a[i * n + i] += shape->scatter * shape->scatter;
            x[i] = s[k].grow *
                   fmax(-limit, fmin(limit, s[k].r[s[k].index[i]])); /* single outliers must not set the scale */
        }
        if (!fl_chip_cholesky(a, n))
            return -(double)INFINITY;
        fl_chip_lower_solve(a, n, x);
        for (size_t i = 0; i < n; i++) {
            squares += x[i] * x[i];
            half_log += log(a[i * n + i]);
        }
        total += n;
    }
    *scale2 = squares / (double)total;
    return -0.5 * (double)total * log(*scale2) - half_log;
}

fl_model_status fl_chip_fit_error(const fl_chip_row *row, const double *r, const fl_chip_span *span, size_t spans,
                                  double parts, fl_chip_error *e) {
    static const double part[] = {0, 0.3, 0.5, 0.7, 0.85, 0.95}; /* smooth share of the variance */
    static const double length[] = {0.05, 0.1, 0.2, 0.4, 0.8};
    sample *s = calloc(spans + 1, sizeof *s);
    size_t total = 0;
    for (size_t k = 0; k < spans; k++)
        total += span[k].count;
    double *size = malloc((total + 1) * sizeof *size), top = -(double)INFINITY;
    if ((double)total - parts * (double)spans < FREE_LEAST) {
        *e = (fl_chip_error){.scatter = 0.005, .smooth = 0.01, .length_sm = 0.2, .length_mem = 0.4};
        free(s);
        free(size);
        return FL_MODEL_OK;
    }
    if (!s || !size) {
        free(s);
        free(size);
        return FL_MODEL_NO_MEMORY;
    }
    size_t used = 0, n = 0;
    for (size_t k = 0; k < spans; k++) {
        const size_t stride = span[k].count / ROWS_MAX + 1;
        const double n_rows = (double)span[k].count;
        s[used] = (sample){.row = row, .r = r, .grow = sqrt(n_rows / fmax(1, n_rows - parts))};
        for (size_t i = 0; i < span[k].count; i += stride)
            if (!isnan(r[span[k].first + i])) {
                s[used].index[s[used].count++] = span[k].first + i;
                size[n++] = fabs(r[span[k].first + i]);
            }
        used += s[used].count > 0;
    }
    fl_model_status status = n > 0 ? FL_MODEL_OK : FL_MODEL_NO_FIT;
    if (status == FL_MODEL_OK) {
        gsl_sort(size, 1, n);
        const double limit = fmax(5 * 1.4826 * size[n / 2], 1e-9);
        int many_mem = 0;
        for (size_t i = 1; i < total && !many_mem; i++)
            many_mem = fabs(row[i].mem_mhz - row[0].mem_mhz) > 0.5;
        for (size_t p = 0; p < sizeof part / sizeof *part; p++)
            for (size_t i = 0; i < (p ? sizeof length / sizeof *length : 1); i++)
                for (size_t j = 0; j < (p && many_mem ? sizeof length / sizeof *length : 1); j++) {
                    double scale2 = 0;
                    const fl_chip_error shape = {.scatter = sqrt(1 - part[p]),
                                                 .smooth = sqrt(part[p]),
                                                 .length_sm = length[i],
                                                 .length_mem = many_mem ? length[j] : 1};
                    const double l = likelihood(s, used, &shape, limit, &scale2);
                    if (l > top) {
                        const double scale = sqrt(scale2);
                        top = l;
                        *e = shape;
                        e->scatter *= scale;
                        e->smooth *= scale;
                    }
                }
        e->scatter = fmax(LEAST, e->scatter);
        if (!isfinite(top))
            status = FL_MODEL_NO_FIT;
    }
    free(s);
    free(size);
    return status;
}

fl_model_status fl_chip_robust_pct(const double *r, size_t count, double *pct, size_t *beyond) {
    double *size = malloc((count + 1) * sizeof *size);
    size_t n = 0;
    if (!size)
        return FL_MODEL_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        if (!isnan(r[i]))
            size[n++] = fabs(r[i]);
    gsl_sort(size, 1, n);
    *pct = n ? 100 * 1.4826 * size[n / 2] : NAN;
    *beyond = 0;
    for (size_t i = 0; i < n; i++)
        *beyond += 100 * size[i] > fmax(6 * *pct, 3);
    free(size);
    return FL_MODEL_OK;
}
