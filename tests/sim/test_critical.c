/* The critical path: by hand, and against the engine on random pipelines. */
#include "models/laws/device.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/node/node.h"
#include "sim/pipeline/pipeline.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"
#include "tests/support/sim_fixture.h"

/* Two streams: a (3), b after a's first (2), a's second (4) after b: 3 + 2 + 4, and c (1) beside. */
static void test_by_hand(void) {
    fx_rig r;
    fx_open(&r, 2);
    const uint32_t k = fx_light(&r), x = fx_stream(&r, 0, 0), y = fx_stream(&r, 1, 0);
    fx_op(&r, x, 0, 1, k);
    fx_op(&r, x, 0, 1, k);
    fx_wait(&r, x, y, 1);
    fx_op(&r, y, 0, 1, k);
    fx_wait(&r, y, x, 1);
    fx_op(&r, y, 0, 1, k);
    fx_finish(&r, 1);
    fl_critical c;
    FX_MUST(fl_critical_new(&c, r.w, d));
    const double length[] = {3, 4, 2, 1};
    double end[4];
    uint32_t before[4];
    FL_CHECK(fl_critical_ends(&c, length, end, before) == 9, "the last ends at 9");
    FL_CHECK(end[0] == 3 && end[1] == 9 && end[2] == 5 && end[3] == 6, "%g %g %g %g", end[0], end[1], end[2], end[3]);
    FL_CHECK(before[0] == FL_NONE && before[1] == 2 && before[2] == 0 && before[3] == 2, "what each follows");
    fl_critical_free(&c);
    fx_close(&r);
}

static void test_stuck(void) {
    fx_rig r;
    fx_open(&r, 1);
    const uint32_t k = fx_light(&r), x = fx_stream(&r, 0, 0), y = fx_stream(&r, 0, 1);
    fx_op(&r, x, 0, 1, k);
    fx_wait(&r, x, y, 1);
    fx_op(&r, y, 0, 1, k);
    fx_wait(&r, y, x, 1);
    fx_finish(&r, 1);
    fl_critical c;
    fl_diag d = {0};
    FL_CHECK(fl_critical_new(&c, r.w, &d) == FL_BAD_INPUT && strstr(d.message, "for ever"), "'%s'", d.message);
    fx_close(&r);
}

static void put(fl_pipeline *p, int32_t rank, fl_pipeline_what what, double mhz, double time_s, double watts) {
    const fl_pipeline_row row = {rank, FL_PIPELINE_ALL, what, mhz, time_s, watts, 0};
    FX_MUST(fl_pipeline_add(p, &row, d));
}

static void random_pipeline(fl_random *g, fl_pipeline *p) {
    *p = (fl_pipeline){.schedule = (fl_pipeline_schedule)fl_random_below(g, 3),
                       .stages = 2 + (uint32_t)fl_random_below(g, 3),
                       .chunks = 1,
                       .data_parallel = 1,
                       .tensor_parallel = 1,
                       .file = strdup("random")};
    p->ranks = p->stages;
    p->microbatches = p->stages * (1 + (uint32_t)fl_random_below(g, 4));
    if (p->schedule == FL_PIPELINE_INTERLEAVED)
        p->chunks = 1 + (uint32_t)fl_random_below(g, 3);
    for (int32_t rank = 0; rank < (int32_t)p->ranks; rank++) {
        put(p, rank, FL_PIPELINE_FORWARD, 1000, 0.001 + 0.01 * fl_random_unit(g), 100);
        put(p, rank, FL_PIPELINE_BACKWARD, 1000, 0.001 + 0.03 * fl_random_unit(g), 100);
        put(p, rank, FL_PIPELINE_ACT, NAN, 0.004 * fl_random_unit(g), NAN);
        put(p, rank, FL_PIPELINE_GRAD, NAN, 0.004 * fl_random_unit(g), NAN);
        put(p, rank, FL_PIPELINE_LOAD, NAN, 0.002 * fl_random_unit(g), NAN);
    }
    put(p, 0, FL_PIPELINE_LOAD_IN_RECV, NAN, 0.001, NAN);
    put(p, 1, FL_PIPELINE_LOAD_IN_RECV, NAN, 0.002, NAN);
    put(p, -1, FL_PIPELINE_STEP, NAN, 0.005, NAN);
    put(p, -1, FL_PIPELINE_BLOCKED, NAN, NAN, 60);
    FX_MUST(fl_pipeline_finish(p, d));
}

static void test_engine(void) {
    fl_random g = fl_random_seed(23, 1);
    for (int n = 0; n < 60; n++) {
        fl_pipeline p;
        fl_pipeline_order o;
        fx_rig r;
        random_pipeline(&g, &p);
        fx_open(&r, p.ranks);
        fl_workload_free(r.w);
        FX_MUST(fl_pipeline_schedule_make(&p, &o, d));
        FX_MUST(fl_build_pipeline(&r.w, "random", &p, &o, &r.spec, 2, NULL, NULL, d));
        FX_MUST(fl_rates_new(&r.rates, r.w, &r.spec, d));
        fl_critical c;
        FX_MUST(fl_critical_new(&c, r.w, d));
        double *length = fx_alloc(c.count, sizeof *length), *end = fx_alloc(c.count, sizeof *end);
        for (uint32_t s = 0; s < r.w->stream_count; s++)
            for (uint64_t i = 0; i < r.w->stream[s].count; i++) {
                int64_t gap_ns, work_ns;
                uint32_t class_id;
                fl_workload_op(&r.w->stream[s], i, &gap_ns, &work_ns, &class_id);
                length[c.first[s] + i] = (double)work_ns * 1e-9;
            }
        const double last = fl_critical_ends(&c, length, end, NULL);
        fl_node *node = fx_node(&r, 0, false);
        fx_to_end(node);
        const double seconds = fl_seconds(fl_node_now(node));
        FL_CHECK(fx_near(last, seconds, 1e-9), "pipeline %d: %.12g s, the engine %.12g", n, last, seconds);
        fl_node_close(node);
        free(length);
        free(end);
        fl_critical_free(&c);
        fl_pipeline_order_free(&o);
        fl_pipeline_free(&p);
        fl_rates_free(r.rates);
        fl_workload_free(r.w);
        fl_node_spec_free(&r.spec);
    }
}

FL_SUITE("critical", {"by hand", test_by_hand}, {"stuck", test_stuck}, {"against the engine", test_engine})
