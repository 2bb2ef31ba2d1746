/* One GPU that runs units of work under tightrope: a slowdown and a power for each clock, a clock that arrives late, a
 * power sensor that lags, units that vary. It holds the policy to its bound at the end of every unit. */
#pragma once

#include "policies/random.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <math.h>

extern const fl_policy fl_policy_tightrope;

enum { WORLD_CLOCKS = 61, WORLD_RECORDS = 4096 }; /* 600..1500 by 15 */

typedef struct world {
    double slowdown[WORLD_CLOCKS], power_w[WORLD_CLOCKS];
    double unit_s, jitter, lag_s, arrival_s; /* unit_s: of work at the top clock; arrival_s: from a set to the clock */
    double length_s;                         /* of all work at the top clock */
    double bound;
    double turn_s, turned_unit_s; /* > 0: after so much work the kernels are others, slowed by all of top / f */
    bool records, counter, util;
    const char *trust; /* the parameter; NULL: as it is by default */
    uint64_t seed;
    /* what came out */
    double elapsed_s, work_s, energy_j;
    double worst, worst_at_s; /* most that elapsed time passed work by, at the end of a unit, relative; when */
    double references;
} world;

static int32_t world_ladder[WORLD_CLOCKS];

static inline void world_law(world *w, double q, double p, double fixed_w, double swing_w) {
    for (int i = 0; i < WORLD_CLOCKS; i++) {
        world_ladder[i] = 600 + 15 * i;
        const double x = 1500.0 / world_ladder[i], v = 1 + 0.4 * fmax(0, world_ladder[i] - 900) / 600.0;
        w->slowdown[i] = pow(1 + q * (pow(x, p) - 1), 1 / p);
        w->power_w[i] = fixed_w + swing_w * v * v / 1.96 / x;
    }
}

typedef struct world_run { /* its course */
    fl_random random;
    fl_kernel_record record[WORLD_RECORDS];
    size_t records;
    int64_t now_ns, began_ns, arrives_ns, shown_ns;
    double left_s, unit_s; /* of the unit that runs, at the top clock: what is left, and all of it */
    double shown_w;
    int clock, asked;
    double kernels;
} world_run;

static inline bool world_turned(const world *w) { return w->turn_s > 0 && w->work_s >= w->turn_s; }

static inline void world_unit(const world *w, world_run *r) {
    const double z = fmax(-3, fmin(3, fl_random_normal(&r->random)));
    r->left_s = r->unit_s = (world_turned(w) ? w->turned_unit_s : w->unit_s) * (1 + w->jitter * z);
    r->began_ns = r->now_ns;
}

/* To the end of the unit, the arrival of the clock, or `until`, whichever is first. */
static inline void world_advance(world *w, world_run *r, int64_t until) {
    const bool turned = world_turned(w);
    const double slow =
        turned ? (double)world_ladder[WORLD_CLOCKS - 1] / world_ladder[r->clock] : w->slowdown[r->clock];
    int64_t end = r->now_ns + (int64_t)ceil(r->left_s * slow * 1e9);
    const bool finishes = end <= until && end <= r->arrives_ns;
    end = finishes ? end : r->arrives_ns < until ? r->arrives_ns : until;
    const double s = (double)(end - r->now_ns) * 1e-9;
    w->elapsed_s += s;
    w->energy_j += s * w->power_w[r->clock];
    r->left_s = finishes ? 0 : fmax(0, r->left_s - s / slow);
    r->shown_w = w->lag_s > 0 ? w->power_w[r->clock] + (r->shown_w - w->power_w[r->clock]) * exp(-s / w->lag_s)
                              : w->power_w[r->clock];
    r->now_ns = end;
    if (r->now_ns == r->arrives_ns)
        r->clock = r->asked, r->arrives_ns = INT64_MAX;
    if (!finishes)
        return;
    r->kernels++;
    w->work_s += r->unit_s;
    if (w->elapsed_s / w->work_s - 1 > w->worst)
        w->worst = w->elapsed_s / w->work_s - 1, w->worst_at_s = w->elapsed_s;
    if (w->records && r->records < WORLD_RECORDS)
        r->record[r->records++] = (fl_kernel_record){.kind = turned, .start_ns = r->began_ns, .end_ns = r->now_ns};
    world_unit(w, r);
}

static inline void world_play(world *w) {
    char bound[32];
    snprintf(bound, sizeof bound, "%.17g", w->bound);
    fl_setting setting[] = {{.name = "bound", .text = bound},
                            {.name = "trust", .text = w->trust ? w->trust : "records"}};
    fl_layer layer = {.origin = "test", .setting = setting, .count = FL_COUNT(setting)};
    fl_gpu_facts gpu = {
        .name = "gpu", .sm = {world_ladder, WORLD_CLOCKS}, .power_lag_ns = 1 + (int64_t)(3e9 * w->lag_s)};
    fl_facts facts = {.gpu_count = 1, .gpu = &gpu, .host = {.name = "host"}};
    fl_instance_options o = {.policy = &fl_policy_tightrope, .facts = &facts, .layer = &layer, .layer_count = 1};
    fl_instance *in;
    fl_diag d = {0};
    CU_ASSERT_FATAL(fl_instance_open(&in, &o, &d) == FL_OK);
    world_run *r = calloc(1, sizeof *r);
    CU_ASSERT_FATAL(r != NULL);
    const fl_kernel_kind kind[] = {{.name = "unit", .grid = {1, 1, 1}, .block = {1, 1, 1}},
                                   {.name = "turned", .grid = {1, 1, 1}, .block = {1, 1, 1}}};
    r->random = fl_random_seed(w->seed, 1);
    r->clock = r->asked = WORLD_CLOCKS - 1;
    r->arrives_ns = INT64_MAX;
    world_unit(w, r);
    for (uint64_t step = 0; w->work_s < w->length_s; step++) {
        fl_gpu_sample g = {.valid = FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_SM_MHZ)};
        g.valid |= w->counter ? FL_BIT(FL_GPU_KERNELS) : 0;
        g.valid |= w->util ? FL_BIT(FL_GPU_UTIL_MEM_PCT) : 0;
        g.fresh = g.valid;
        g.value[FL_GPU_UTIL_MEM_PCT] = world_turned(w) ? 40 : 40 / w->slowdown[r->clock];
        g.value[FL_GPU_POWER_W] = r->shown_w;
        g.value[FL_GPU_SM_MHZ] = world_ladder[r->clock];
        g.value[FL_GPU_KERNELS] = r->kernels;
        fl_sample s = {.time_ns = r->now_ns, .step = step, .gpu_count = 1, .gpu = &g, .kind = kind, .kind_count = 2};
        s.record = r->record, s.record_count = r->records;
        const fl_decision *decision;
        CU_ASSERT_FATAL(fl_instance_step(in, &s, &decision, &d) == FL_OK);
        r->records = 0;
        if (decision->gpu[0][FL_SET_SM_MHZ].set) {
            for (int i = 0; i < WORLD_CLOCKS; i++)
                r->asked = world_ladder[i] == decision->gpu[0][FL_SET_SM_MHZ].value ? i : r->asked;
            r->arrives_ns = r->now_ns + (int64_t)(w->arrival_s * 1e9);
        }
        const int64_t until = r->now_ns + decision->delay_ns;
        while (r->now_ns < until && w->work_s < w->length_s)
            world_advance(w, r, until);
    }
    free(r);
    fl_instance_close(in);
}

/* Energy of the clock that holds the bound with the least, all along. */
static inline double world_static_j(const world *w) {
    double best = INFINITY;
    for (int i = 0; i < WORLD_CLOCKS; i++)
        if (w->slowdown[i] <= 1 + w->bound)
            best = fmin(best, w->work_s * w->slowdown[i] * w->power_w[i]);
    return best;
}
