/* Two GPUs under tightrope that run the kernels of iterations and meet at a barrier after each, or never meet. It holds
 * the policy to its bound at every barrier, or at the end of every kernel of GPUs that do not meet. */
#pragma once

#include "tests/support/tightrope_world.h"

enum { PAIR = 2, PAIR_KERNELS = 24 };

typedef struct pair_world {
    world gpu[PAIR];                  /* slowdown and power at each clock; unit_s: mean length of a kernel */
    double share[PAIR][PAIR_KERNELS]; /* of a kernel of the iteration, of the mean */
    int kernels;                      /* of an iteration, of each GPU */
    double idle_w, jitter, length_s, bound;
    bool meet;
    const char *trust; /* the parameter; NULL: as it is by default */
    uint64_t seed;
    /* what came out */
    double elapsed_s, work_s, energy_j, worst;
} pair_world;

typedef struct pair_gpu {                 /* its course */
    double left_s, ran_s, done_s, busy_s; /* of the kernel; of the iteration, at the top clock; of all; since util_s */
    double kernels, util_pct;
    int index, clock, asked;
    int64_t arrives_ns;
} pair_gpu;

static inline void pair_kernel(const pair_world *w, pair_gpu *g, int i, fl_random *random) {
    const double z = fmax(-3, fmin(3, fl_random_normal(random)));
    g->left_s = w->gpu[i].unit_s * w->share[i][g->index] * (1 + w->jitter * z);
    g->ran_s += g->left_s;
}

static inline bool pair_waits(const pair_world *w, const pair_gpu *g) { return w->meet && g->index == w->kernels; }

/* A kernel of GPU i has ended: the next one begins, or a barrier is reached. */
static inline void pair_end(pair_world *w, pair_gpu *g, int i, fl_random *random) {
    g[i].kernels++;
    g[i].index++;
    if (!w->meet) {
        g[i].index %= w->kernels;
        g[i].done_s = g[i].ran_s;
        w->worst = fmax(w->worst, w->elapsed_s / g[i].done_s - 1);
        w->work_s = fmin(g[0].done_s, g[1].done_s);
        pair_kernel(w, &g[i], i, random);
    } else if (pair_waits(w, &g[0]) && pair_waits(w, &g[1])) {
        w->work_s += fmax(g[0].ran_s, g[1].ran_s);
        w->worst = fmax(w->worst, w->elapsed_s / w->work_s - 1);
        for (int k = 0; k < PAIR; k++) {
            g[k].index = 0, g[k].ran_s = 0;
            pair_kernel(w, &g[k], k, random);
        }
    } else if (!pair_waits(w, &g[i]))
        pair_kernel(w, &g[i], i, random);
}

/* To the next end of a kernel, arrival of a clock, or `until`. */
static inline void pair_advance(pair_world *w, pair_gpu *g, int64_t *now, int64_t until, fl_random *random) {
    int64_t end = until, finish[PAIR];
    for (int i = 0; i < PAIR; i++) {
        const double slow = w->gpu[i].slowdown[g[i].clock];
        finish[i] = pair_waits(w, &g[i]) ? INT64_MAX : *now + (int64_t)ceil(g[i].left_s * slow * 1e9);
        end = finish[i] < end ? finish[i] : end;
        end = g[i].arrives_ns < end ? g[i].arrives_ns : end;
    }
    const double s = (double)(end - *now) * 1e-9;
    w->elapsed_s += s;
    *now = end;
    for (int i = 0; i < PAIR; i++) {
        const bool runs = finish[i] != INT64_MAX;
        w->energy_j += s * (runs ? w->gpu[i].power_w[g[i].clock] : w->idle_w);
        g[i].busy_s += runs ? s : 0;
        g[i].left_s = runs ? fmax(0, g[i].left_s - s / w->gpu[i].slowdown[g[i].clock]) : 0;
    }
    for (int i = 0; i < PAIR; i++) {
        if (end == g[i].arrives_ns)
            g[i].clock = g[i].asked, g[i].arrives_ns = INT64_MAX;
        if (end == finish[i])
            pair_end(w, g, i, random);
    }
}

static inline void pair_sense(const pair_world *w, pair_gpu *g, int64_t now, int64_t *util_ns, fl_gpu_sample *u) {
    const bool fresh = now - *util_ns >= 100000000;
    for (int i = 0; i < PAIR; i++) {
        if (fresh)
            g[i].util_pct = floor(g[i].busy_s / ((double)(now - *util_ns) * 1e-9) * 100 + 0.5), g[i].busy_s = 0;
        u[i] = (fl_gpu_sample){.valid = FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_SM_MHZ) | FL_BIT(FL_GPU_KERNELS) |
                                        FL_BIT(FL_GPU_UTIL_GPU_PCT)};
        u[i].fresh = fresh ? u[i].valid : u[i].valid & ~FL_BIT(FL_GPU_UTIL_GPU_PCT);
        u[i].value[FL_GPU_POWER_W] = pair_waits(w, &g[i]) ? w->idle_w : w->gpu[i].power_w[g[i].clock];
        u[i].value[FL_GPU_SM_MHZ] = world_ladder[g[i].clock];
        u[i].value[FL_GPU_KERNELS] = g[i].kernels;
        u[i].value[FL_GPU_UTIL_GPU_PCT] = g[i].util_pct;
    }
    *util_ns = fresh ? now : *util_ns;
}

static inline void pair_play(pair_world *w) {
    char bound[32];
    snprintf(bound, sizeof bound, "%.17g", w->bound);
    fl_setting setting[] = {{.name = "bound", .text = bound},
                            {.name = "trust", .text = w->trust ? w->trust : "records"}};
    fl_layer layer = {.origin = "test", .setting = setting, .count = FL_COUNT(setting)};
    const fl_gpu_facts one = {.name = "gpu", .sm = {world_ladder, WORLD_CLOCKS}, .power_lag_ns = 1};
    const fl_gpu_facts gpu[PAIR] = {one, one};
    fl_facts facts = {.gpu_count = PAIR, .gpu = gpu, .host = {.name = "host"}};
    fl_instance_options o = {.policy = &fl_policy_tightrope, .facts = &facts, .layer = &layer, .layer_count = 1};
    fl_instance *in;
    fl_diag d = {0};
    fl_random random = fl_random_seed(w->seed, 2);
    pair_gpu g[PAIR] = {{0}};
    int64_t now = 0, util_ns = 0;
    CU_ASSERT_FATAL(fl_instance_open(&in, &o, &d) == FL_OK);
    for (int i = 0; i < PAIR; i++) {
        g[i].clock = g[i].asked = WORLD_CLOCKS - 1;
        g[i].arrives_ns = INT64_MAX;
        pair_kernel(w, &g[i], i, &random);
    }
    for (uint64_t step = 0; w->work_s < w->length_s; step++) {
        fl_gpu_sample u[PAIR];
        pair_sense(w, g, now, &util_ns, u);
        const fl_sample s = {.time_ns = now, .step = step, .gpu_count = PAIR, .gpu = u};
        const fl_decision *decision;
        CU_ASSERT_FATAL(fl_instance_step(in, &s, &decision, &d) == FL_OK);
        for (int i = 0; i < PAIR; i++) {
            if (!decision->gpu[i][FL_SET_SM_MHZ].set)
                continue;
            g[i].asked = (int)((decision->gpu[i][FL_SET_SM_MHZ].value - world_ladder[0]) / 15 + 0.5);
            g[i].arrives_ns = now + (int64_t)(w->gpu[i].arrival_s * 1e9);
        }
        const int64_t until = now + decision->delay_ns;
        while (now < until && w->work_s < w->length_s)
            pair_advance(w, g, &now, until, &random);
    }
    fl_instance_close(in);
}

/* Energy where GPU i keeps clock[i] all along; INFINITY where that breaks the bound. Without jitter. */
static inline double pair_static_j(const pair_world *w, int a, int b) {
    const int clock[PAIR] = {a, b};
    double busy[PAIR] = {0}, top = 0, lasts = 0, energy = 0;
    for (int i = 0; i < PAIR; i++) {
        double sum = 0;
        for (int k = 0; k < w->kernels; k++)
            sum += w->gpu[i].unit_s * w->share[i][k];
        busy[i] = sum * w->gpu[i].slowdown[clock[i]];
        top = fmax(top, sum), lasts = fmax(lasts, busy[i]);
    }
    for (int i = 0; i < PAIR; i++)
        energy += busy[i] * w->gpu[i].power_w[clock[i]] + (lasts - busy[i]) * w->idle_w;
    return lasts <= top * (1 + w->bound) ? energy * w->work_s / top : INFINITY;
}

/* The best pair of clocks, of all pairs. */
static inline double pair_best_j(const pair_world *w) {
    double best = INFINITY;
    for (int a = 0; a < WORLD_CLOCKS; a++)
        for (int b = 0; b < WORLD_CLOCKS; b++)
            best = fmin(best, pair_static_j(w, a, b));
    return best;
}
