/* What tests/bench found, for people and for machines, and what of it moved since an earlier run. */
#pragma once

#include "tests/bench/bench.h"

#include <cjson/cJSON.h>
#include <stdio.h>

typedef struct fl_bench_figure { /* a row that was measured */
    const fl_bench_row *row;
    double value;   /* median of its rounds */
    double noise;   /* half of their range, as a share of the value; NAN of a single round */
    double of_goal; /* 1 = at its goal or better; below: how near, as a share; NAN: it has none */
    /* What two runs may be compared by: RATIO and MEMORY as they are; of RATE and TIME the best round, which a busy
     * machine changes least, over or times what the bare loop did per second in its best. */
    double relative;
    bool brief; /* its rounds are too short to be sure of */
    double step_ns, per_second;
} fl_bench_figure;

/* Those that were measured, in the order of the table; free() by the caller, NULL without memory. */
fl_bench_figure *fl_bench_figures(const fl_bench *b, size_t *count);

void fl_bench_print(const fl_bench_figure *f, size_t count, FILE *out);
/* An array of objects with the keys "key what unit measure value noise relative goal of_goal step_ns kernels_per_s". */
cJSON *fl_bench_json(const fl_bench_figure *f, size_t count);

/* Less than that is never said to have moved; of a row whose rounds are brief, where one interruption is a good part of
 * a round, the second. */
enum { FL_BENCH_LEAST_PCT = 5, FL_BENCH_LEAST_BRIEF_PCT = 50 };

bool fl_bench_less_is_better(const fl_bench_row *row);

/* The figures of an earlier run (a file of --json), each looked at once; cJSON_Delete by the caller, also after an
 * error. FL_BAD_INPUT where it is none. */
fl_status fl_bench_earlier(const char *path, cJSON **tree, fl_diag *d);

/* Prints each row that moved against that run by more than the noise of both together, and by FL_BENCH_LEAST_PCT (of
 * brief rows, FL_BENCH_LEAST_BRIEF_PCT) at least. *worse: how many became slower or larger. FL_BAD_INPUT where the two
 * have no row in common. */
fl_status fl_bench_against(const fl_bench_figure *f, size_t count, const cJSON *tree, const char *path, size_t *worse,
                           FILE *out, fl_diag *d);
