/* All groups of rows, one after the other. */
#pragma once

#include "tests/bench/bench.h"

/* b->platform, facts, rec and result are made here; fl_bench_free frees them, also after an error. */
fl_status fl_bench_run(fl_bench *b, fl_diag *d);
void fl_bench_free(fl_bench *b);
