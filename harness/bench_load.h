/* How fast traces load: CSV against libcsv's bare tokenising of the same file, the cache against the CSV, and a
 * profiler's JSON of any size through a pipe, with the memory that takes beyond the records. */
#ifndef FL_BENCH_LOAD_H
#define FL_BENCH_LOAD_H

#include "traces/diag.h"

/* One line of the result: rate in units per second (or bytes), ratio of what `of` names. */
typedef void (*fl_bench_show)(void *user, const char *what, double rate, const char *unit, double ratio,
                              const char *of);

/* Files go to a folder of their own under $TMPDIR, which is removed. json_bytes: of the profiler's file. */
fl_status fl_bench_load(uint64_t rows, int64_t repeat, uint64_t json_bytes, fl_bench_show show, void *user, fl_diag *d);

#endif
