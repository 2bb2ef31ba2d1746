/* Rows about a pipeline of 8 stages, 256 microbatches, 8,272 instructions and 40 clocks: its iterations on the
 * engine, and planning its clocks. */
#include "harness/base/work/work.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/gpu/gpu.h"
#include "sim/node/node.h"
#include "sim/pipeline/pipeline.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"
#include "tests/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STAGES = 8, MICROBATCHES = 256, CLOCKS = 40, POINTS = 40, PASSES = 200 };
enum { ITERATIONS = 20, PLANS = 500, PLANS_LONG = 10000, ALIKE = 32 /* microbatches in a row at one clock */ };

typedef struct rig {
    fl_pipeline p;
    fl_pipeline_order order;
    fl_node_spec node;
    fl_plan_program g;
} rig;

static fl_status put(rig *r, int32_t rank, fl_pipeline_what what, double mhz, double time_s, double watts, fl_diag *d) {
    const fl_pipeline_row row = {rank, FL_PIPELINE_ALL, what, mhz, time_s, watts, 0};
    return fl_pipeline_add(&r->p, &row, d);
}

/* Stages of unequal length; half of the time follows the clock, and power its 2.5th power. */
static fl_status put_parts(rig *r, const int32_t *mhz, fl_diag *d) {
    fl_status s = FL_OK;
    for (int32_t rank = 0; rank < STAGES; rank++)
        for (int i = 0; !s && i < 2 * CLOCKS; i++) {
            const double f = (double)mhz[i / 2] / mhz[CLOCKS - 1], t = (i % 2 ? 0.1 : 0.04) * (1 - 0.03 * (rank % 3));
            s = put(r, rank, i % 2 ? FL_PIPELINE_BACKWARD : FL_PIPELINE_FORWARD, mhz[i / 2], t * (0.5 + 0.5 / f),
                    80 + 210 * pow(f, 2.5), d);
        }
    return s;
}

static fl_status open_rig(rig *r, fl_diag *d) {
    int32_t mhz[CLOCKS];
    for (int k = 0; k < CLOCKS; k++)
        mhz[k] = 1125 + 15 * k;
    *r = (rig){.p = {.schedule = FL_PIPELINE_1F1B,
                     .stages = STAGES,
                     .microbatches = MICROBATCHES,
                     .chunks = 1,
                     .data_parallel = 1,
                     .tensor_parallel = 1,
                     .ranks = STAGES,
                     .file = strdup("bench")}};
    fl_status s = r->p.file ? put_parts(r, mhz, d) : fl_no_memory(d, "the pipeline");
    if (!s)
        s = put(r, -1, FL_PIPELINE_ACT, NAN, 0.004, NAN, d);
    if (!s)
        s = put(r, -1, FL_PIPELINE_GRAD, NAN, 0.004, NAN, d);
    if (!s)
        s = put(r, -1, FL_PIPELINE_BLOCKED, NAN, NAN, 65, d);
    if (!s)
        s = fl_pipeline_finish(&r->p, d);
    if (!s)
        s = fl_pipeline_schedule_make(&r->p, &r->order, d);
    if (!s)
        s = fl_pipeline_node(&r->node, STAGES, mhz, CLOCKS, d);
    return s ? s : fl_plan_program_new(&r->g, &r->p, &r->order, &r->node, NULL, d);
}

static void close_rig(rig *r) {
    fl_plan_program_free(&r->g);
    fl_node_spec_free(&r->node);
    fl_pipeline_order_free(&r->order);
    fl_pipeline_free(&r->p);
}

/* The time of a whole frontier, per point. */
static fl_status plan(const rig *r, double *point_s, fl_diag *d) {
    fl_planner pl;
    fl_plan_point *point = NULL;
    size_t found = 0;
    const double start = fl_bench_cpu_seconds();
    fl_status s = fl_planner_new(&pl, &r->g, d);
    if (s)
        return s;
    s = fl_plan_frontier(&pl, POINTS, &point, &found, d);
    *point_s = (fl_bench_cpu_seconds() - start) / POINTS;
    for (size_t i = 0; i < found; i++)
        fl_plan_point_free(&point[i]);
    free(point);
    fl_planner_free(&pl);
    return s;
}

/* How many ops per second the search for longest paths handles. */
static fl_status walk(const rig *r, double *rate, fl_diag *d) {
    fl_planner pl;
    fl_status s = fl_planner_new(&pl, &r->g, d);
    if (s)
        return s;
    double sum = 0;
    const double start = fl_bench_cpu_seconds();
    for (int k = 0; k < PASSES; k++)
        sum += fl_critical_ends(&r->g.path, pl.dual.length_s, pl.dual.end_s, pl.dual.before);
    *rate = PASSES * (double)r->g.path.count / (fl_bench_cpu_seconds() - start);
    fl_planner_free(&pl);
    return sum > 0 ? FL_OK : fl_error(d, FL_MODEL_FAULT, "a pipeline without length");
}

/* ---- executing plans ---- */

/* Makes a different plan for each seed. */
static fl_status draw_plan(const rig *r, uint64_t seed, fl_pipeline_clocks *c, fl_diag *d) {
    const fl_device *dev = &r->node.device[0];
    fl_status s = fl_pipeline_clocks_new(&r->p, c, d);
    for (uint32_t k = 0; !s && k < STAGES * 2; k++)
        for (uint32_t m = 0; m < MICROBATCHES; m += ALIKE) {
            const double mhz = dev->sm_mhz[fl_bench_bits(&seed) % CLOCKS];
            for (uint32_t i = m; i < m + ALIKE; i++)
                *fl_pipeline_clock(c, k / 2, k % 2, 0, i) = mhz;
        }
    return s;
}

static size_t instructions(const rig *r) {
    size_t n = 0;
    for (uint32_t stage = 0; stage < STAGES; stage++)
        n += r->order.stage[stage].count;
    return n;
}

static fl_status run_iterations(fl_bench *b, const rig *r, fl_workload *w, fl_rates *rates, double bare, fl_diag *d) {
    fl_facts facts = {0};
    const fl_run_options o = {.w = w, .rates = rates, .spec = &r->node, .facts = &facts};
    const double start = fl_bench_cpu_seconds();
    fl_status s = FL_OK;
    for (int i = 0; !s && i < ITERATIONS; i++) {
        fl_run_result result;
        s = fl_run(&o, &result, d);
        fl_run_result_free(&result);
    }
    if (s)
        return s;
    const double took = (fl_bench_cpu_seconds() - start) / ITERATIONS, rate = (double)instructions(r) / took;
    if (fl_bench_wants(b, "plan.iteration"))
        fl_bench_take(b, "plan.iteration", rate / bare)->per_second = rate;
    if (fl_bench_wants(b, "plan.iteration_ms"))
        fl_bench_take(b, "plan.iteration_ms", 1e3 * took);
    return FL_OK;
}

/* Runs an iteration of a plan that is already built. */
static fl_status iterate(fl_bench *b, const rig *r, double bare, fl_diag *d) {
    fl_pipeline_clocks c;
    fl_workload *w = NULL;
    fl_rates *rates = NULL;
    fl_status s = draw_plan(r, 1, &c, d);
    if (!s)
        s = fl_build_pipeline(&w, "bench", &r->p, &r->order, &r->node, 1, &c, NULL, d);
    if (!s)
        s = fl_rates_new(&rates, w, &r->node, d);
    if (!s)
        s = run_iterations(b, r, w, rates, bare, d);
    fl_rates_free(rates);
    fl_workload_free(w);
    fl_pipeline_clocks_free(&c);
    return s;
}

/* One plan, from its clocks to its seconds and joules. */
static fl_status execute(void *user, size_t i, fl_diag *d) {
    const rig *r = user;
    fl_pipeline_clocks c;
    double seconds = 0, joules = 0;
    fl_status s = draw_plan(r, i, &c, d);
    if (!s)
        s = fl_pipeline_run(&r->p, &r->order, &r->node, &c, &seconds, &joules, d);
    fl_pipeline_clocks_free(&c);
    return s;
}

static fl_status execute_some(fl_bench *b, rig *r, fl_diag *d) {
    fl_status s = FL_OK;
    const double start = fl_bench_cpu_seconds();
    for (size_t i = 0; !s && i < ITERATIONS; i++)
        s = execute(r, i, d);
    if (!s)
        fl_bench_take(b, "plan.execute", 1e3 * (fl_bench_cpu_seconds() - start) / ITERATIONS);
    return s;
}

static fl_status execute_all(fl_bench *b, rig *r, const char *key, size_t plans, fl_diag *d) {
    const double start = fl_bench_seconds();
    const fl_status s = fl_pool_run(execute, r, plans, 2, NULL, d);
    if (!s)
        fl_bench_take(b, key, fl_bench_seconds() - start);
    return s;
}

/* ---- all rows ---- */

fl_status fl_bench_pipeline(fl_bench *b, fl_diag *d) {
    const bool one = fl_bench_wants(b, "plan.iteration") || fl_bench_wants(b, "plan.iteration_ms");
    const bool each = fl_bench_wants(b, "plan.execute"), some = fl_bench_wants(b, "plan.executed");
    const bool all = b->thorough && fl_bench_wants(b, "plan.executed_10k");
    const bool points = fl_bench_wants(b, "plan.point"), paths = fl_bench_wants(b, "plan.path");
    rig r = {0};
    if (!points && !paths && !one && !each && !some && !all)
        return FL_OK;
    fl_status s = open_rig(&r, d);
    for (int64_t n = 0; !s && n < b->repeat; n++) {
        const double bare = fl_bench_bare(b);
        double point_s = 0, rate = 0;
        if (one)
            s = iterate(b, &r, bare, d);
        if (!s && each)
            s = execute_some(b, &r, d);
        if (!s && some)
            s = execute_all(b, &r, "plan.executed", PLANS, d);
        if (s)
            break;
        if (points && !(s = plan(&r, &point_s, d)))
            fl_bench_take(b, "plan.point", 1e3 * point_s);
        if (!s && paths && !(s = walk(&r, &rate, d)))
            fl_bench_take(b, "plan.path", rate / bare)->per_second = rate;
    }
    if (!s && all)
        s = execute_all(b, &r, "plan.executed_10k", PLANS_LONG, d);
    close_rig(&r);
    return s;
}
