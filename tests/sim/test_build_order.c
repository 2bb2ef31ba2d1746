/* The order in which ops of a trace are built: by device, process and stream, and in each by start, end and place in
 * the file, against a sort of all of them. */
#include "policies/random.h"
#include "sim/workload/inside.h"
#include "traces/io/records.h"
#include "tests/support/sim_fixture.h"

#include <stdlib.h>

static const uint64_t seed = 12;
static const fl_trace_op *sorted_ops;

static int64_t key(const fl_trace_op *op, int k) {
    const int64_t keys[] = {op->device, op->process, op->stream, op->start_ns, op->end_ns};
    return keys[k];
}

static int by_all(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    for (int k = 0; k < 5; k++)
        if (key(&sorted_ops[x], k) != key(&sorted_ops[y], k))
            return key(&sorted_ops[x], k) < key(&sorted_ops[y], k) ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void check(const char *what, fl_trace_op *ops, size_t count) {
    uint32_t *order = fx_alloc(count, sizeof *order), *want = fx_alloc(count, sizeof *want);
    size_t n = 0, found = 99;
    for (uint32_t i = 0; i < count; i++)
        if (ops[i].type != FL_OP_SYNC)
            want[n++] = i;
    sorted_ops = ops;
    qsort(want, n, sizeof *want, by_all);
    const fl_kernel_trace t = {.ops = ops, .op_count = count};
    fl_builder b = {.t = &t, .order = order};
    FX_MUST(fl_builder_order(&b, &found, d));
    FL_CHECK(found == n, "%s: %zu of %zu ops", what, found, n);
    for (size_t i = 0; i < n && i < found; i++)
        FL_CHECK(order[i] == want[i], "%s: op %u at place %zu, expected %u", what, order[i], i, want[i]);
    free(order);
    free(want);
}

static void test_by_hand(void) {
    fl_trace_op rows[] = {
        {.start_ns = 5, .end_ns = 9, .device = 1},
        {.start_ns = 5, .end_ns = 8, .device = 1}, /* ends before the one above, which begins with it */
        {.start_ns = 7, .end_ns = 9, .device = 0, .stream = 7},
        {.start_ns = 1, .end_ns = 2, .device = 0, .process = -1},
        {.start_ns = 0, .end_ns = 1, .device = 0, .type = FL_OP_SYNC},
        {.start_ns = 5, .end_ns = 8, .device = 1}, /* as the second */
        {.start_ns = 6, .end_ns = 6, .device = 0, .stream = 7},
        {.start_ns = 3, .end_ns = 4, .device = 0, .stream = -2},
    };
    check("by hand", rows, sizeof rows / sizeof *rows);
    check("none", rows, 0);
    check("one", rows, 1);
}

static void test_random(void) {
    fl_random g = fl_random_seed(seed, 1);
    printf(" seed %llu ", (unsigned long long)seed);
    for (int n = 0; n < 200; n++) {
        fl_trace_op ops[40];
        const size_t count = fl_random_below(&g, 41);
        const bool ordered = n % 3 == 0; /* as a profiler writes it: no lane needs a sort */
        int64_t now = 0;
        for (size_t i = 0; i < count; i++) {
            now = ordered ? now + (int64_t)fl_random_below(&g, 2) : (int64_t)fl_random_below(&g, 6);
            ops[i] = (fl_trace_op){.start_ns = now,
                                   .end_ns = now + (ordered ? 3 : (int64_t)fl_random_below(&g, 3)),
                                   .device = (int32_t)fl_random_below(&g, 3) - 1,
                                   .process = (int32_t)fl_random_below(&g, 2),
                                   .stream = (int32_t)fl_random_below(&g, 3),
                                   .type = fl_random_below(&g, 8) ? FL_OP_KERNEL : FL_OP_SYNC};
        }
        check(ordered ? "in order" : "in any order", ops, count);
    }
}

FL_SUITE("build_order", {"by hand", test_by_hand}, {"random", test_random})
