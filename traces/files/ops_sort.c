#include "traces/files/ops_sort.h"

#include <stdlib.h>

static int three_way(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int by_time(const void *a, const void *b, void *ops) {
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const fl_trace_op *x = (const fl_trace_op *)ops + i, *y = (const fl_trace_op *)ops + k;
    int order = three_way(x->start_ns, y->start_ns);
    order = order ? order : three_way(x->end_ns, y->end_ns);
    order = order ? order : three_way(x->device, y->device);
    order = order ? order : three_way(x->process, y->process);
    order = order ? order : three_way(x->stream, y->stream);
    return order ? order : three_way(i, k);
}

fl_status fl_ops_sort(fl_kernel_trace *t, fl_diag *d) {
    size_t n = t->op_count;
    uint32_t *from = malloc((n + 1) * sizeof *from); /* by new row: the old one */
    if (!from)
        return fl_no_memory(d, NULL);
    for (size_t i = 0; i < n; i++)
        from[i] = (uint32_t)i;
    if (n)
        qsort_r(from, n, sizeof *from, by_time, t->ops);
    for (size_t i = 0; i < n; i++) { /* each cycle of the permutation once; rows that are in place stay */
        if (from[i] == i)
            continue;
        fl_trace_op first = t->ops[i];
        size_t at = i;
        while (from[at] != i) {
            size_t next = from[at];
            t->ops[at] = t->ops[next];
            from[at] = (uint32_t)at;
            at = next;
        }
        t->ops[at] = first;
        from[at] = (uint32_t)at;
    }
    free(from);
    return FL_OK;
}
