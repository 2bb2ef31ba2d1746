#include "tests/bench/all.h"

#include <stdlib.h>

fl_status fl_bench_run(fl_bench *b, fl_diag *d) {
    fl_status (*const group[])(fl_bench *, fl_diag *) = {
        fl_bench_one_stream, fl_bench_grid,    fl_bench_features, fl_bench_streams, fl_bench_threads,
        fl_bench_draws,      fl_bench_serving, fl_bench_pipeline, fl_bench_load,    fl_bench_commands};
    size_t rows = 0;
    while (*fl_bench_rows[rows].key)
        rows++;
    b->result = calloc(rows + 1, sizeof *b->result);
    fl_status s = b->result ? fl_platform_open("generic", 1, &b->platform, d) : fl_no_memory(d, NULL);
    if (!s)
        s = fl_facts_make(&b->platform.node, 1, &b->facts, d);
    for (size_t i = 0; !s && i < sizeof group / sizeof *group; i++)
        s = group[i](b, d);
    return s;
}

void fl_bench_free(fl_bench *b) {
    for (size_t i = 0; b->result && *fl_bench_rows[i].key; i++)
        free(b->result[i].value);
    free(b->result);
    free(b->rec);
    fl_facts_free(&b->facts);
    fl_platform_free(&b->platform);
}
