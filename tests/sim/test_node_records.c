/* Kernel records of a node come in the order of their ends; of those that end together, by GPU, stream, start and kind.
 */
#include "policies/policy.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "tests/support/sim_fixture.h"

static int order(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

static int compare(const fl_kernel_record *a, const fl_kernel_record *b) {
    const int by[] = {order(a->end_ns, b->end_ns), order(a->gpu, b->gpu), order(a->stream, b->stream),
                      order(a->start_ns, b->start_ns), order((int64_t)a->kind, (int64_t)b->kind)};
    for (int i = 0; i < 5; i++)
        if (by[i])
            return by[i];
    return 0;
}

/* Two GPUs, two streams each, added in the order of the records or in the opposite one. All their kernels last 1 ms,
 * but for one of 2 ms in each second stream; kernels of no length end where the one before ended. */
static void check_order(bool falling) {
    fx_rig r;
    fx_open(&r, 2);
    const uint32_t late = fx_class(&r, 0, 0, 1, 0, 0, 0.1), early = fx_class(&r, 0, 0, 1, 0, 0, 0.1);
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t s = fx_stream(&r, k % 2 ? 0 : 1, falling ? 9 - (int32_t)k : (int32_t)k);
        fx_op(&r, s, 0, k > 1 ? 2000000 : 1000000, late);
        for (int i = 0; i < 6; i++) {
            fx_op(&r, s, 0, 1000000, i % 2 ? late : early);
            fx_op(&r, s, 0, 0, i % 2 ? early : late);
        }
    }
    fx_finish(&r, 0);
    fl_node *n = fx_node(&r, FL_BIT(FL_GPU_KERNELS), true);
    for (uint32_t i = 0; i < 2; i++)
        fl_node_records(n, i, true);
    size_t all = 0;
    for (int64_t until = 0; until <= 12; until += 6) {
        const fl_kernel_record *record;
        size_t count;
        FX_MUST(fl_node_advance(n, until * FX_MS_PS, d));
        FX_MUST(fl_node_take_records(n, &record, &count, d));
        for (size_t i = 1; i < count; i++)
            FL_CHECK(compare(&record[i - 1], &record[i]) <= 0, "record %zu: end %lld, GPU %u, stream %u, kind %u", i,
                     (long long)record[i].end_ns, (unsigned)record[i].gpu, (unsigned)record[i].stream,
                     (unsigned)record[i].kind);
        all += count;
    }
    FL_CHECK(all == 52, "%zu records", all);
    fl_node_close(n);
    fx_close(&r);
}

static void test_order(void) {
    check_order(false);
    check_order(true);
}

FL_SUITE("node_records", {"order", test_order})
