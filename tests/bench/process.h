/* A command of foldline as a process of its own: what a user waits for, start and end included. */
#pragma once

#include "tests/bench/bench.h"

typedef struct fl_bench_cost {
    double cpu_s, wall_s; /* processor time of it and its children */
    double peak_mb;       /* resident, of the largest of them; at least what this process held when it started it */
} fl_bench_cost;

/* argv: of the program, without its name, NULL at the end. Prints nothing. FL_IO where it does not exit with 0,
 * or with 1 for a gate that does not hold: with the command, and the last line that it said. */
fl_status fl_bench_process(const fl_bench *b, const char *const *argv, fl_bench_cost *cost, fl_diag *d);

/* Gives memory back, so that it does not count as the peak of what is started next. */
void fl_bench_shrink(fl_bench *b);

/* A text file of b->folder: its path into `path` (512 bytes), and its content. */
fl_status fl_bench_file(const fl_bench *b, const char *name, const char *text, char *path, fl_diag *d);
