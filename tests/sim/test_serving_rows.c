/* A step as a kernel of its GPUs: how long it may take, and what a rank draws that waits for a slower one. The law is
 * in round numbers: 1 ms of the host, and of each token 10 us at 1 GHz. */
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/serving/inside.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "tests/support/serving_fixture.h"

enum { RANKS = 2 };

typedef struct rig {
    fx_rig fx;
    fl_step_law law;
    fl_serving_server server;
    fl_serving_setup setup;
    fl_row row;
    fl_row_parts parts;
    fl_clock_rates rates[RANKS];
    fl_gpu gpu[RANKS];
    fl_step_rank rank[RANKS];
    fl_engine e;
    fl_engines v;
} rig;

static void rig_open(rig *r) {
    *r = (rig){.law = sx_law(), .row = {.mul = FL_MUL_ONE}, .parts = {.sm_mw = 100000, .memory_mw = 50000}};
    fx_open(&r->fx, RANKS);
    r->law.weights_s = 4e-3;
    r->server = (fl_serving_server){.law = &r->law, .gpu_count = RANKS};
    for (int i = 0; i < RANKS; i++) {
        r->rates[i] = (fl_clock_rates){.row = &r->row, .parts = &r->parts};
        r->gpu[i] = (fl_gpu){.dev = r->fx.spec.device, .mem = 1, .rates = &r->rates[i]};
        r->rank[i].g = &r->gpu[i];
    }
    r->e = (fl_engine){.s = &r->server, .rank = r->rank};
    r->v = (fl_engines){.u = &r->setup, .engine = &r->e};
    fl_step_add_prompt(&r->e.shape, 1000, 0);
}

static void rig_close(rig *r) {
    fl_workload_free(r->fx.w);
    fl_node_spec_free(&r->fx.spec);
}

static fl_step_point law_at(const rig *r, uint32_t sm) {
    fl_step_point p;
    CU_ASSERT_FATAL(fl_step_at(&r->law, &r->e.shape, r->fx.spec.device->sm_mhz[sm], 1, &p) == FL_MODEL_OK);
    return p;
}

/* From none to 25 hours: a step that an error of the model shrinks to nothing takes a picosecond, so that time goes on,
 * and a longer one than that is refused. */
static void test_length(void) {
    static const struct {
        double s, mul; /* mul: times as long, by its row */
        int64_t ps;    /* 0: refused */
    } rows[] = {{1e-3, 0, 1},
                {1e-13, 1, 1},
                {1e-12, 1, 1},
                {2e-12, 1, 2},
                {2e-12, 2, 4},
                {90000, 1, INT64_C(90000000000000000)},
                {45000, 2, INT64_C(90000000000000000)},
                {90000.001, 1, 0},
                {50000, 2, 0},
                {1e9, 1, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r;
        rig_open(&r);
        r.law = fl_step_law_none();
        r.law.host_s = rows[i].s;
        r.row.mul = (uint32_t)(rows[i].mul * FL_MUL_ONE);
        r.law.sm_count = 1;
        r.law.sm_mhz[0] = r.law.ref_sm_mhz = 1000;
        const bool paced = fl_step_pace(&r.v, &r.e);
        FL_CHECK(paced == (rows[i].ps > 0), "%g s: paced %d", rows[i].s, paced);
        FL_CHECK(paced ? r.e.length_ps == rows[i].ps && !r.v.status
                       : r.v.status == FL_MODEL_FAULT && r.v.model == FL_MODEL_OVERFLOW,
                 "%g s: %lld ps, status %d", rows[i].s, (long long)r.e.length_ps, r.v.status);
        /* never 0, so that shares of a step can be told from it */
        const int64_t alone = fl_step_alone_ps(&r.e, &r.e.shape);
        FL_CHECK(alone == (paced ? rows[i].ps : 1), "%g s: %lld ps alone", rows[i].s, (long long)alone);
        rig_close(&r);
    }
}

/* A rank that would be faster than the other waits for it, and moves no more bytes for that; one that would be slower
 * waits for none. Its own present clock does not count. */
static void test_foretold(void) {
    static const struct {
        uint32_t now, would, other; /* 500 MHz and 100 more each */
    } rows[] = {{0, 10, 5}, {0, 10, 10}, {0, 5, 10}, {10, 0, 5}, {10, 5, 0}, {5, 5, 5}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int mine = 0; mine < RANKS; mine++) {
            rig r;
            rig_open(&r);
            r.gpu[mine].sm = rows[i].now;
            r.gpu[!mine].sm = rows[i].other;
            CU_ASSERT_FATAL(fl_step_pace(&r.v, &r.e));
            const fl_step_point p = law_at(&r, rows[i].would), q = law_at(&r, rows[i].other);
            const double share = p.time_s / fmax(p.time_s, q.time_s);
            const int64_t mw = fl_step_predict_mw(&r.v, &r.e, &r.rank[mine], rows[i].would, &r.rates[mine]),
                          want = lround(p.compute * r.parts.sm_mw) + lround(p.memory * share * r.parts.memory_mw);
            FL_CHECK(llabs(mw - want) <= 1, "row %zu, rank %d: %lld mW, by hand %lld", i, mine, (long long)mw,
                     (long long)want);
            rig_close(&r);
        }
}

FL_SUITE("serving_rows", {"length", test_length}, {"foretold", test_foretold})
