/* What a set of durations looks like: mean, percentiles, longest. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct fl_times { /* in s; all NAN where there are none */
    uint64_t count;
    double mean_s, p50_s, p90_s, p95_s, p99_s, max_s;
} fl_times;

/* Of `count` durations in ps, which it sorts. A percentile is the least duration that at least so many percent do not
 * exceed (nearest rank): one of the durations itself. */
fl_times fl_times_of(int64_t *ps, size_t count);

typedef struct fl_time_run { /* `count` durations of `ps` each */
    int64_t ps;
    uint64_t count;
} fl_time_run;

/* The same of runs of equal durations, which it sorts. */
fl_times fl_times_of_runs(fl_time_run *run, size_t count);
