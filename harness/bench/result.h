/* What foldline bench found, for people and for machines, and what of it moved since an earlier run. */
#ifndef FL_BENCH_RESULT_H
#define FL_BENCH_RESULT_H

#include "harness/bench/bench.h"

#include <cjson/cJSON.h>
#include <stdio.h>

typedef struct fl_bench_figure { /* a row that was measured */
    const fl_bench_row *row;
    double value;    /* median of its rounds */
    double noise;    /* half of their range, as a share of the value; NAN of a single round */
    double of_goal;  /* 1 = at its goal or better; below: how near, as a share; NAN: it has none */
    double relative; /* what two runs may be compared by: RATIO and MEMORY as they are; RATE over, TIME times, what the
                        bare loop did per second */
    double step_ns, per_second;
} fl_bench_figure;

/* Those that were measured, in the order of the table; free() by the caller, NULL without memory. */
fl_bench_figure *fl_bench_figures(const fl_bench *b, size_t *count);

void fl_bench_print(const fl_bench_figure *f, size_t count, FILE *out);
/* An array of objects with the keys "key what unit measure value noise relative goal of_goal step_ns kernels_per_s". */
cJSON *fl_bench_json(const fl_bench_figure *f, size_t count);

enum { FL_BENCH_LEAST_PCT = 5 }; /* less than that is never said to have moved */

bool fl_bench_less_is_better(const fl_bench_row *row);

/* The figures of an earlier run (a file of --json), each looked at once; cJSON_Delete by the caller, also after an
 * error. FL_BAD_INPUT where it is none. */
fl_status fl_bench_earlier(const char *path, cJSON **tree, fl_diag *d);

/* Prints each row that moved against that run by more than the noise of both together, and by FL_BENCH_LEAST_PCT at
 * least. *worse: how many became slower or larger. FL_BAD_INPUT where the two have no row in common. */
fl_status fl_bench_against(const fl_bench_figure *f, size_t count, const cJSON *tree, const char *path, size_t *worse,
                           FILE *out, fl_diag *d);

#endif
