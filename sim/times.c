#include "sim/times.h"

#include "sim/wide.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static double rank_s(const int64_t *ps, size_t count, size_t percent) {
    return fl_seconds(ps[(count * percent + 99) / 100 - 1]);
}

fl_times fl_times_of(int64_t *ps, size_t count) {
    if (!count)
        return (fl_times){0, NAN, NAN, NAN, NAN, NAN, NAN};
    fl_wide sum = 0;
    qsort(ps, count, sizeof *ps, ascending);
    for (size_t i = 0; i < count; i++)
        sum += ps[i];
    return (fl_times){.count = count,
                      .mean_s = (double)sum / (double)count * 1e-12,
                      .p50_s = rank_s(ps, count, 50),
                      .p90_s = rank_s(ps, count, 90),
                      .p95_s = rank_s(ps, count, 95),
                      .p99_s = rank_s(ps, count, 99),
                      .max_s = fl_seconds(ps[count - 1])};
}
