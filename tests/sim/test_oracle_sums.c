/* The lengths behind the oracles, class by class, against one op after the other: streams of less than a block, of a
 * block to the op, and of several; ops around the longest of 32 bits among them. */
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/oracle/inside.h"
#include "sim/workload/workload.h"
#include "tests/support/sim_fixture.h"

#include <string.h>

enum { KINDS = 3, CLOCKS = 11 };

static const uint64_t seed = 103;

typedef struct rig {
    fx_rig fx;
    const fl_clock_rates *at[CLOCKS]; /* 500 to 1500 MHz by 100 */
} rig;

static void open_rig(rig *r) {
    fx_open(&r->fx, 1);
    fx_class(&r->fx, 1, 0, 0, 1, 0, 0.1);
    fx_class(&r->fx, 1, 2, 0, 1, 0, 0.1);
    fx_class(&r->fx, 3, 0, 1, 1, 0, 0.1);
}

static void finish(rig *r) {
    fx_finish(&r->fx, 1);
    for (uint32_t c = 0; c < CLOCKS; c++)
        r->at[c] = fx_rates(&r->fx, 500 + 100 * c, 800);
}

/* The sums of copies of the streams whose records end where the memory does: nothing behind them is read. */
static void sum_up(const rig *r, fl_class_sums *sum) {
    fl_workload w = *r->fx.w;
    w.stream = fx_alloc(w.stream_count, sizeof *w.stream);
    for (uint32_t i = 0; i < w.stream_count; i++) {
        fl_stream *s = &w.stream[i];
        *s = r->fx.w->stream[i];
        s->rec = fx_alloc(s->count, sizeof *s->rec);
        memcpy(s->rec, r->fx.w->stream[i].rec, s->count * sizeof *s->rec);
    }
    FX_MUST(fl_class_sums_make(&w, r->at, CLOCKS, sum, d));
    for (uint32_t i = 0; i < w.stream_count; i++)
        free(w.stream[i].rec);
    free(w.stream);
}

static void check(const rig *r, const char *what, long long count) {
    fl_class_sums sum;
    sum_up(r, &sum);
    fl_wide ps[KINDS][CLOCKS] = {{0}}, gap_ps[KINDS] = {0};
    uint64_t worked[KINDS] = {0};
    for (uint32_t i = 0; i < r->fx.w->stream_count; i++)
        for (uint64_t k = 0; k < r->fx.w->stream[i].count; k++) {
            int64_t gap_ns, work_ns;
            uint32_t id;
            fl_workload_op(&r->fx.w->stream[i], k, &gap_ns, &work_ns, &id);
            for (size_t c = 0; c < CLOCKS; c++)
                ps[id][c] += fl_length_ps(work_ns, r->at[c]->row[id].mul);
            gap_ps[id] += gap_ns * FL_PS_PER_NS;
            worked[id] += work_ns > 0;
        }
    for (uint32_t k = 0; k < KINDS; k++) {
        FL_CHECK(sum.gap_ps[k] == gap_ps[k] && sum.worked[k] == worked[k], "%s, %lld: host time and ops of kind %u",
                 what, count, k);
        for (size_t c = 0; c < CLOCKS; c++)
            FL_CHECK(sum.ps[k * CLOCKS + c] == ps[k][c], "%s, %lld: kind %u at clock %zu: %.17g ps, expected %.17g",
                     what, count, k, c, fx_f(sum.ps[k * CLOCKS + c]), fx_f(ps[k][c]));
    }
    fl_class_sums_free(&sum);
}

static void test_blocks(void) {
    static const int counts[] = {1,
                                 2,
                                 100,
                                 FL_OP_BLOCK_MAX - 1,
                                 FL_OP_BLOCK_MAX,
                                 FL_OP_BLOCK_MAX + 1,
                                 2 * FL_OP_BLOCK_MAX,
                                 2 * FL_OP_BLOCK_MAX + 3};
    printf(" seed %llu ", (unsigned long long)seed);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        fl_random g = fl_random_seed(seed, i);
        rig r;
        open_rig(&r);
        for (int streams = 0; streams < 2; streams++) {
            const uint32_t s = fx_stream(&r.fx, 0, streams);
            for (int k = 0; k < (streams ? 5 : counts[i]); k++)
                fx_op(&r.fx, s, (int64_t)fl_random_below(&g, 50), (int64_t)fl_random_below(&g, 200000),
                      (uint32_t)fl_random_below(&g, KINDS));
        }
        finish(&r);
        check(&r, "ops of two streams", counts[i]);
        fx_close(&r.fx);
    }
}

/* One op of such a length between two of other lengths of its kind, whose low bits differ. */
static void test_long_ops(void) {
    static const int64_t work_ns[] = {0,
                                      1,
                                      65535,
                                      65536,
                                      UINT32_MAX - INT64_C(1),
                                      UINT32_MAX,
                                      INT64_C(1) << 32,
                                      (INT64_C(1) << 32) + 1,
                                      INT64_C(86400000000000)};
    for (size_t i = 0; i < sizeof work_ns / sizeof *work_ns; i++) {
        rig r;
        open_rig(&r);
        const uint32_t s = fx_stream(&r.fx, 0, 0);
        for (uint32_t kind = 0; kind < KINDS; kind++) {
            fx_op(&r.fx, s, 3, 70001, kind);
            fx_op(&r.fx, s, 5, work_ns[i], kind);
            fx_op(&r.fx, s, 0, 12345, kind);
        }
        finish(&r);
        check(&r, "ns of one op", (long long)work_ns[i]);
        fx_close(&r.fx);
    }
}

FL_SUITE("oracle_sums", {"blocks", test_blocks}, {"long ops", test_long_ops})
