/* Small pipelines of random chips, and all that a planner needs of one. */
#pragma once

#include "models/laws/device.h"
#include "policies/random.h"
#include "sim/pipeline/pipeline.h"
#include "traces/pipeline/pipeline.h"
#include "tests/support/sim_fixture.h"

typedef struct fl_pipeline_rig {
    fl_pipeline p;
    fl_pipeline_order o;
    fl_node_spec node;
    fl_plan_program g;
    fl_planner pl;
} fl_pipeline_rig;

typedef struct fl_pipeline_shape {
    fl_pipeline_schedule schedule;
    uint32_t stages, microbatches, chunks, clocks;
} fl_pipeline_shape;

static inline void fl_rig_put(fl_pipeline *p, int32_t rank, fl_pipeline_what what, double mhz, double time_s,
                              double watts) {
    const fl_pipeline_row row = {rank, FL_PIPELINE_ALL, what, mhz, time_s, watts, 0};
    FX_MUST(fl_pipeline_add(p, &row, d));
}

/* Times and powers of a random chip: a share of the time follows the clock, power rises faster than it. */
static inline void fl_rig_put_part(fl_pipeline *p, fl_random *g, int32_t rank, fl_pipeline_what what, double longest,
                                   uint32_t clocks) {
    const double t0 = longest * (0.3 + 0.7 * fl_random_unit(g)), share = 0.3 + 0.7 * fl_random_unit(g),
                 p0 = 150 + 150 * fl_random_unit(g), base = 0.2 + 0.4 * fl_random_unit(g);
    for (uint32_t k = 0; k < clocks; k++) {
        const double mhz = 1000 + 50.0 * k, f = mhz / (1000 + 50.0 * (clocks - 1));
        fl_rig_put(p, rank, what, mhz, t0 * (1 - share + share / f), p0 * (base + (1 - base) * pow(f, 2.5)));
    }
}

static inline void fl_rig_make(fl_pipeline_rig *r, fl_random *g, const fl_pipeline_shape *s) {
    r->p = (fl_pipeline){.schedule = s->schedule,
                         .stages = s->stages,
                         .microbatches = s->microbatches,
                         .chunks = s->chunks,
                         .data_parallel = 1,
                         .tensor_parallel = 1,
                         .ranks = s->stages,
                         .file = strdup("random")};
    for (int32_t rank = 0; rank < (int32_t)s->stages; rank++) {
        fl_rig_put_part(&r->p, g, rank, FL_PIPELINE_FORWARD, 0.02, s->clocks);
        fl_rig_put_part(&r->p, g, rank, FL_PIPELINE_BACKWARD, 0.05, s->clocks);
        fl_rig_put(&r->p, rank, FL_PIPELINE_ACT, NAN, 0.004 * fl_random_unit(g), NAN);
        fl_rig_put(&r->p, rank, FL_PIPELINE_GRAD, NAN, 0.004 * fl_random_unit(g), NAN);
        fl_rig_put(&r->p, rank, FL_PIPELINE_BLOCKED, NAN, NAN, 50 + 40 * fl_random_unit(g));
    }
    fl_rig_put(&r->p, -1, FL_PIPELINE_STEP, NAN, 0.005, NAN);
    FX_MUST(fl_pipeline_finish(&r->p, d));
}

static inline void fl_rig_begin(fl_pipeline_rig *r, uint32_t clocks, const double *limit_w) {
    int32_t mhz[64];
    for (uint32_t k = 0; k < clocks; k++)
        mhz[k] = 1000 + 50 * (int32_t)k;
    FX_MUST(fl_pipeline_schedule_make(&r->p, &r->o, d));
    FX_MUST(fl_pipeline_node(&r->node, r->p.ranks, mhz, clocks, d));
    FX_MUST(fl_plan_program_new(&r->g, &r->p, &r->o, &r->node, limit_w, d));
    FX_MUST(fl_planner_new(&r->pl, &r->g, d));
}

static inline void fl_rig_end(fl_pipeline_rig *r) {
    fl_planner_free(&r->pl);
    fl_plan_program_free(&r->g);
    fl_node_spec_free(&r->node);
    fl_pipeline_order_free(&r->o);
    fl_pipeline_free(&r->p);
}
