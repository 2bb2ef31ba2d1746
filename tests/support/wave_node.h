/* GPUs made by hand whose readings come in waves: a program of equal iterations, each first busy, then less so. The
 * length of an iteration follows from the clocks that the policy sets. ODPP looks for it. Clocks: SM 210 to 2055 MHz by
 * 15, memory as on an RTX 3080 Ti. */
#pragma once

#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <math.h>

enum { WAVE_SM = 124, WAVE_MEM = 5, WAVE_GPUS = 2, WAVE_PAST = 16 };

typedef struct wave_gpu {
    double period_s, sm_share,
        mem_share;            /* time of an iteration is period (1 + sm (2055 / f - 1) + mem (9501 / m - 1)) */
    double idle_w, dynamic_w; /* power: idle_w + dynamic_w (f / 2055)^3, the second part 0.4 of it in the
                                 second half of an iteration */
    double sm, mem;           /* as set; FL_DEFAULT */
    double phase;
    uint32_t mean_of; /* the power that is read is the mean of so many steps; 0: of one */
    double past_w[WAVE_PAST];
    uint32_t pasts;
    bool idle, lost;
} wave_gpu;

typedef struct wave_node {
    fl_instance *in;
    fl_gpu_facts gpu_facts[WAVE_GPUS];
    fl_facts facts;
    wave_gpu gpu[WAVE_GPUS];
    fl_gpu_sample sample[WAVE_GPUS];
    fl_sample s;
    const fl_decision *decision;
    int32_t sm[WAVE_SM];
    const fl_policy *policy;
} wave_node;

static const int32_t wave_mem[WAVE_MEM] = {405, 810, 5001, 9251, 9501};

static inline wave_node *wave_open(const fl_policy *policy, uint32_t gpus, const fl_setting *setting, size_t count) {
    wave_node *n = calloc(1, sizeof *n);
    const fl_layer layer = {.origin = "test", .setting = setting, .count = count};
    fl_diag d = {0};
    if (!n)
        exit(1);
    for (int i = 0; i < WAVE_SM; i++)
        n->sm[i] = 210 + 15 * i;
    for (uint32_t i = 0; i < gpus; i++) {
        n->gpu_facts[i] = (fl_gpu_facts){.name = "gpu",
                                         .sm = {n->sm, WAVE_SM},
                                         .mem = {wave_mem, WAVE_MEM},
                                         .default_sm_mhz = 2055,
                                         .default_mem_mhz = 9501,
                                         .power_min_w = 100,
                                         .power_max_w = 380,
                                         .power_default_w = 350};
        n->gpu[i] = (wave_gpu){.period_s = 1, .idle_w = 60, .dynamic_w = 240, .sm = FL_DEFAULT, .mem = FL_DEFAULT};
    }
    n->policy = policy;
    n->facts = (fl_facts){.seed = 1, .gpu_count = gpus, .gpu = n->gpu_facts, .host = {.name = "host"}};
    fl_instance_options o = {.policy = policy, .facts = &n->facts, .layer = &layer, .layer_count = 1};
    if (fl_instance_open(&n->in, &o, &d) != FL_OK) {
        printf("\n    %s\n", d.message);
        exit(1);
    }
    n->s = (fl_sample){.gpu_count = gpus, .gpu = n->sample};
    return n;
}

static inline void wave_close(wave_node *n) {
    fl_instance_close(n->in);
    free(n);
}

static inline double wave_now_s(const wave_node *n) { return (double)n->s.time_ns * 1e-9; }

static inline double wave_slowdown(const wave_gpu *g) {
    const double f = g->sm == FL_DEFAULT ? 2055 : g->sm, m = g->mem == FL_DEFAULT ? 9501 : g->mem;
    return 1 + g->sm_share * (2055 / f - 1) + g->mem_share * (9501 / m - 1);
}

static inline double wave_power(const wave_gpu *g) {
    const double f = (g->sm == FL_DEFAULT ? 2055 : g->sm) / 2055;
    return g->idle ? g->idle_w : g->idle_w + g->dynamic_w * f * f * f * (fmod(g->phase, 1) < 0.5 ? 1 : 0.4);
}

/* What the sensor says. */
static inline double wave_power_read(wave_gpu *g) {
    const uint32_t of = g->mean_of ? g->mean_of : 1;
    double sum = 0;
    g->past_w[g->pasts++ % WAVE_PAST] = wave_power(g);
    for (uint32_t i = 1; i <= of; i++)
        sum += g->past_w[(g->pasts - (i < g->pasts ? i : g->pasts)) % WAVE_PAST];
    return sum / of;
}

static inline void wave_read(wave_node *n, uint32_t i, double seconds) {
    wave_gpu *g = &n->gpu[i];
    fl_gpu_sample *s = &n->sample[i];
    g->phase += g->idle ? 0 : seconds / (g->period_s * wave_slowdown(g));
    const bool busy = fmod(g->phase, 1) < 0.5;
    const double power_w = wave_power_read(g);
    s->valid = s->fresh = g->lost ? 0 : fl_reads_of(n->policy).gpu_needs;
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++)
        s->value[id] = NAN;
    if (g->lost)
        return;
    s->value[FL_GPU_POWER_W] = power_w;
    s->value[FL_GPU_UTIL_GPU_PCT] = g->idle ? 0 : busy ? 90 : 30;
    s->value[FL_GPU_UTIL_MEM_PCT] = g->idle ? 0 : busy ? 40 : 10;
}

static inline void wave_step(wave_node *n) {
    fl_diag d;
    const int64_t before = n->s.time_ns;
    n->s.time_ns += n->s.step ? n->decision->delay_ns : 0;
    for (uint32_t i = 0; i < n->s.gpu_count; i++)
        wave_read(n, i, (double)(n->s.time_ns - before) * 1e-9);
    CU_ASSERT_FATAL(fl_instance_step(n->in, &n->s, &n->decision, &d) == FL_OK);
    n->s.step++;
    for (uint32_t i = 0; i < n->s.gpu_count; i++) {
        double *at[FL_GPU_CONTROL_COUNT] = {[FL_SET_SM_MHZ] = &n->gpu[i].sm, [FL_SET_MEM_MHZ] = &n->gpu[i].mem};
        for (int c = 0; c < FL_GPU_CONTROL_COUNT; c++)
            if (at[c] && n->decision->gpu[i][c].set)
                *at[c] = n->decision->gpu[i][c].value;
    }
}

static inline double wave_probe(const wave_node *n, uint32_t gpu, const char *name) {
    for (uint32_t i = 0; i < n->policy->probe_count; i++)
        if (strcmp(n->policy->probe[i].name, name) == 0)
            return n->decision->probe[i * n->s.gpu_count + gpu];
    FL_CHECK(false, "no probe %s", name);
    return NAN;
}

static inline void wave_until(wave_node *n, double seconds) {
    while (wave_now_s(n) < seconds - 1e-6)
        wave_step(n);
}

/* Steps until the probe has that value; false where it has not within `seconds`. */
static inline bool wave_wait(wave_node *n, const char *name, double value, double seconds) {
    const double end = wave_now_s(n) + seconds;
    do {
        wave_step(n);
        if (wave_probe(n, 0, name) == value)
            return true;
    } while (wave_now_s(n) < end);
    return false;
}
