#include "sim/base/times.h"

#include "sim/base/wide.h"

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

static int shorter_run(const void *a, const void *b) {
    const int64_t x = ((const fl_time_run *)a)->ps, y = ((const fl_time_run *)b)->ps;
    return x < y ? -1 : x > y;
}

fl_times fl_times_of_runs(fl_time_run *run, size_t count) {
    static const uint64_t percent[] = {50, 90, 95, 99};
    fl_times t = {0, NAN, NAN, NAN, NAN, NAN, NAN};
    double *const rank_s[] = {&t.p50_s, &t.p90_s, &t.p95_s, &t.p99_s};
    fl_wide sum = 0;
    qsort(run, count, sizeof *run, shorter_run);
    for (size_t i = 0; i < count; i++) {
        t.count += run[i].count;
        sum += (fl_wide)run[i].ps * run[i].count;
    }
    uint64_t passed = 0;
    for (size_t i = 0, k = 0; i < count; i++) {
        passed += run[i].count;
        for (; k < 4 && passed >= (t.count * percent[k] + 99) / 100; k++)
            *rank_s[k] = fl_seconds(run[i].ps);
    }
    if (t.count) {
        t.mean_s = (double)sum / (double)t.count * 1e-12;
        t.max_s = fl_seconds(run[count - 1].ps);
    }
    return t;
}
