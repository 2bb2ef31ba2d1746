/* A GPU made by hand under MF-GPOEO: kernels of known lengths, one after the other, whose times follow the
 * clocks that the policy sets; readings that a test may take away. Clocks: SM 210..2055 by 15, memory as on an RTX 3080
 * Ti. */
#pragma once

#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <math.h>

extern const fl_policy fl_policy_mfgpoeo;

enum { MX_GPUS = 2, MX_RECORDS = 4096, MX_SM = 124, MX_MEM = 5 };

typedef struct mx_kernel { /* of one iteration */
    uint32_t kind, stream;
    double us, gap_us; /* at the default clocks */
} mx_kernel;

typedef struct mx_gpu {
    const mx_kernel *kernel; /* kernel_count; 0 = idle */
    uint32_t kernel_count, next;
    double sm_share, mem_share; /* time = us (1 + sm_share (2055 / f - 1) + mem_share (9501 / m - 1)) */
    double util_gpu, util_mem, dynamic_w;
    double stretch;          /* of all kernel times */
    double reach_mhz;        /* the SM clock that the board gets to at most */
    double sm, mem, limit_w; /* as set; FL_DEFAULT */
    double records;
    int64_t t_ns; /* end of the last kernel */
    double joules, kernels;
    bool lost, no_power;
} mx_gpu;

typedef struct mx_node {
    fl_instance *in;
    fl_gpu_facts gpu_facts[MX_GPUS];
    fl_facts facts;
    mx_gpu gpu[MX_GPUS];
    fl_gpu_sample sample[MX_GPUS];
    fl_kernel_record record[MX_GPUS * MX_RECORDS];
    fl_kernel_kind kind[64];
    fl_sample s;
    const fl_decision *decision;
    int32_t sm[MX_SM];
    const fl_policy *policy;
} mx_node;

static const int32_t mx_mem[MX_MEM] = {405, 810, 5001, 9251, 9501};

/* settings: pairs of name and text, ended by NULL. */
static inline mx_node *mx_open(const fl_policy *policy, uint32_t gpus, const char *const *settings) {
    mx_node *n = calloc(1, sizeof *n);
    fl_setting setting[16];
    fl_layer layer = {.origin = "test", .setting = setting};
    fl_diag d = {0};
    if (!n)
        exit(1);
    for (; settings && *settings; settings += 2)
        setting[layer.count++] = (fl_setting){.name = settings[0], .text = settings[1]};
    for (int i = 0; i < MX_SM; i++)
        n->sm[i] = 210 + 15 * i;
    for (uint32_t i = 0; i < 64; i++)
        n->kind[i] = (fl_kernel_kind){.name = "k", .name_id = i, .grid = {40 * (i + 1), 1, 1}, .block = {256, 1, 1}};
    for (uint32_t i = 0; i < gpus; i++) {
        n->gpu_facts[i] = (fl_gpu_facts){.name = "gpu",
                                         .sm = {n->sm, MX_SM},
                                         .mem = {mx_mem, MX_MEM},
                                         .default_sm_mhz = 2055,
                                         .default_mem_mhz = 9501,
                                         .power_min_w = 100,
                                         .power_max_w = 380,
                                         .power_default_w = 350,
                                         .sm_count = 80,
                                         .cores_per_sm = 128};
        n->gpu[i] = (mx_gpu){.sm = FL_DEFAULT,
                             .mem = FL_DEFAULT,
                             .limit_w = FL_DEFAULT,
                             .records = 1,
                             .dynamic_w = 200,
                             .util_gpu = 100,
                             .util_mem = 30,
                             .stretch = 1,
                             .reach_mhz = 2055};
    }
    n->policy = policy;
    n->facts = (fl_facts){.seed = 1, .gpu_count = gpus, .gpu = n->gpu_facts, .host = {.name = "host"}};
    fl_instance_options o = {.policy = policy, .facts = &n->facts, .layer = &layer, .layer_count = 1};
    if (fl_instance_open(&n->in, &o, &d) != FL_OK) {
        printf("\n    %s\n", d.message);
        exit(1);
    }
    n->s = (fl_sample){.gpu_count = gpus, .gpu = n->sample, .kind = n->kind, .kind_count = 64};
    return n;
}

static inline void mx_close(mx_node *n) {
    fl_instance_close(n->in);
    free(n);
}

static inline double mx_clock(double set, double standard) { return set == FL_DEFAULT ? standard : set; }

static inline double mx_slowdown(const mx_gpu *g) {
    const double f = mx_clock(g->sm, 2055), m = mx_clock(g->mem, 9501);
    return g->stretch * (1 + g->sm_share * (2055 / f - 1) + g->mem_share * (9501 / m - 1));
}

/* 40 W, 60 W of memory, the dynamic part by the cube of the SM clock; not above the limit. */
static inline double mx_power(const mx_gpu *g) {
    const double f = mx_clock(g->sm, 2055) / 2055, m = mx_clock(g->mem, 9501) / 9501;
    return fmin(40 + 60 * m + g->dynamic_w * f * f * f, mx_clock(g->limit_w, 350));
}

/* Kernels that end before `until`. */
static inline void mx_run(mx_node *n, uint32_t i, int64_t until) {
    mx_gpu *g = &n->gpu[i];
    const double slow = mx_slowdown(g);
    if (!g->kernel_count)
        g->t_ns = until;
    while (g->kernel_count) {
        const mx_kernel *k = &g->kernel[g->next % g->kernel_count];
        const int64_t start = g->t_ns + (int64_t)(k->gap_us * 1e3), end = start + (int64_t)(k->us * slow * 1e3);
        if (end > until)
            return;
        g->t_ns = end;
        g->next++;
        g->kernels++;
        if (g->records > 0 && n->s.record_count < MX_GPUS * MX_RECORDS)
            n->record[n->s.record_count++] =
                (fl_kernel_record){.start_ns = start, .end_ns = end, .kind = k->kind, .stream = k->stream, .gpu = i};
    }
}

static inline void mx_read(mx_node *n, uint32_t i, double seconds) {
    mx_gpu *g = &n->gpu[i];
    fl_gpu_sample *s = &n->sample[i];
    const double power = g->kernel_count ? mx_power(g) : 30;
    g->joules += power * seconds;
    s->valid = s->fresh = g->lost ? 0 : fl_reads_of(n->policy).gpu_needs;
    if (g->no_power)
        s->valid &= ~(FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS));
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++)
        s->value[id] = NAN;
    if (g->lost)
        return;
    s->value[FL_GPU_POWER_W] = power;
    s->value[FL_GPU_ENERGY_J] = g->joules;
    s->value[FL_GPU_ENERGY_NS] = (double)n->s.time_ns;
    s->value[FL_GPU_UTIL_GPU_PCT] = g->kernel_count ? g->util_gpu : 0;
    s->value[FL_GPU_UTIL_MEM_PCT] = g->kernel_count ? g->util_mem : 0;
    s->value[FL_GPU_SM_MHZ] = fmin(mx_clock(g->sm, 2055), g->reach_mhz);
    s->value[FL_GPU_MEM_MHZ] = mx_clock(g->mem, 9501);
    s->value[FL_GPU_KERNELS] = g->kernels;
}

static inline double mx_set(const mx_node *n, uint32_t i, int control) {
    const fl_decided *d = &n->decision->gpu[i][control];
    return d->set ? d->value : 0;
}

/* One step of the policy, and what it set. */
static inline void mx_step(mx_node *n) {
    fl_diag d;
    const int64_t before = n->s.time_ns;
    n->s.time_ns += n->s.step ? n->decision->delay_ns : 0;
    n->s.record_count = 0;
    for (uint32_t i = 0; i < n->s.gpu_count; i++) {
        mx_run(n, i, n->s.time_ns);
        mx_read(n, i, (double)(n->s.time_ns - before) * 1e-9);
    }
    n->s.record = n->record;
    CU_ASSERT_FATAL(fl_instance_step(n->in, &n->s, &n->decision, &d) == FL_OK);
    n->s.step++;
    for (uint32_t i = 0; i < n->s.gpu_count; i++) {
        mx_gpu *g = &n->gpu[i];
        double *at[FL_GPU_CONTROL_COUNT] = {[FL_SET_SM_MHZ] = &g->sm,
                                            [FL_SET_MEM_MHZ] = &g->mem,
                                            [FL_SET_POWER_LIMIT_W] = &g->limit_w,
                                            [FL_SET_RECORDS] = &g->records};
        for (int c = 0; c < FL_GPU_CONTROL_COUNT; c++)
            if (n->decision->gpu[i][c].set)
                *at[c] = n->decision->gpu[i][c].value;
    }
}

static inline double mx_now_s(const mx_node *n) { return (double)n->s.time_ns * 1e-9; }

static inline double mx_probe(const mx_node *n, uint32_t gpu, const char *name) {
    for (uint32_t i = 0; i < n->policy->probe_count; i++)
        if (strcmp(n->policy->probe[i].name, name) == 0)
            return n->decision->probe[i * n->s.gpu_count + gpu];
    FL_CHECK(false, "no probe %s", name);
    return NAN;
}

static inline void mx_until(mx_node *n, double seconds) {
    while (mx_now_s(n) < seconds)
        mx_step(n);
}

/* Steps until the probe has that value; false where it has not within `seconds`. */
static inline bool mx_wait(mx_node *n, uint32_t gpu, const char *name, double value, double seconds) {
    const double end = mx_now_s(n) + seconds;
    do {
        mx_step(n);
        if (mx_probe(n, gpu, name) == value)
            return true;
    } while (mx_now_s(n) < end);
    return false;
}
