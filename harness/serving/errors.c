/* Errors of predictions. */
#include "harness/serving/inside.h"

#include "harness/base/work/work.h"

#include <math.h>
#include <stdlib.h>

void fl_serving_errors_add(fl_serving_errors *e, double predicted, double measured) {
    fl_must_grow(&e->error, &e->room, e->count + 1, sizeof *e->error);
    e->error[e->count++] = predicted / measured - 1;
}

static int by_size(const void *a, const void *b) {
    const double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
    return x < y ? -1 : x > y;
}

fl_serving_spread fl_serving_errors_spread(fl_serving_errors *e) {
    fl_serving_spread s = {NAN, NAN, NAN, NAN, NAN};
    double sum = 0, sign = 0;
    const size_t n = e->count;
    if (!n)
        return s;
    qsort(e->error, n, sizeof *e->error, by_size);
    for (size_t i = 0; i < n; i++) {
        sum += fabs(e->error[i]);
        sign += e->error[i];
    }
    s.mean = 100 * sum / (double)n;
    s.bias = 100 * sign / (double)n;
    s.median = 50 * (fabs(e->error[(n - 1) / 2]) + fabs(e->error[n / 2]));
    s.p95 = 100 * fabs(e->error[(19 * n + 19) / 20 - 1]);
    s.worst = 100 * fabs(e->error[n - 1]);
    return s;
}

void fl_serving_errors_free(fl_serving_errors *e) {
    free(e->error);
    *e = (fl_serving_errors){0};
}
