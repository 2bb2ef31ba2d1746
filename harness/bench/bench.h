/* The parts of foldline bench that measure more than the engine alone. Each prints lines through a callback; files go
 * to a folder that the caller has made, and are gone afterwards. */
#ifndef FL_BENCH_H
#define FL_BENCH_H

#include "traces/diag.h"

#include <stddef.h>
#include <time.h>

/* One line of the result: rate in the unit that is named, ratio of what `of` names. */
typedef void (*fl_bench_show)(void *user, const char *what, double rate, const char *unit, double ratio,
                              const char *of);

/* How fast traces load: CSV against libcsv's bare tokenising of the same file, the cache against the CSV, and a
 * profiler's JSON of json_bytes through a pipe, with the memory that takes beyond the records. */
fl_status fl_bench_load(const char *folder, uint64_t rows, int64_t repeat, uint64_t json_bytes, fl_bench_show show,
                        void *user, fl_diag *d);

/* How a grid of `runs` short runs scales: foldline sweep whole, from reading the experiment to the finished file, on 2
 * and on 4 threads against 1: the median over passes of one pass's ratio, as a slow moment of the machine hits few. */
fl_status fl_bench_sweep(const char *folder, size_t runs, int64_t repeat, fl_bench_show show, void *user, fl_diag *d);

static inline double fl_bench_seconds(void) { /* of the clock on the wall */
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Processor time of this thread: what other programs take does not count, so it is steadier where one thread works. */
static inline double fl_bench_cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
