/* One GPU under DEPO, in a world that goes by the clock: it knows when the released program measures, and says what
 * each window sees. Between windows it says something else, so that a window at the wrong time shows in the limits. */
#pragma once

#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <math.h>

extern const fl_policy fl_policy_depo;

enum { BASE_WINDOWS = 4, TRIALS_MAX = 20 };
static const int64_t second_ns = 1000000000;

typedef struct response {
    double kernels, watts; /* kernels: in 4 s */
} response;

/* The window of that number, under that limit in watts (FL_DEFAULT: the default); the first four are the baseline. */
typedef response respond(void *world, int window, double limit_w);

typedef struct node {
    fl_instance *in;
    fl_gpu_facts gpu_facts;
    fl_facts facts;
    fl_gpu_sample gpu;
    fl_sample s;
    const fl_decision *decision;
    respond *respond;
    void *world;
    response now, between;
    double kernels, joules;                      /* at the start of the segment */
    int64_t period_ns, first_ns, from_ns, to_ns; /* first_ns: when kernels are first seen */
    int window;                                  /* the next one */
    bool pause;                                  /* between two windows */
    double limit_w, limits[TRIALS_MAX + 64];
    int sets;
    bool lost, no_power, no_kernels, no_counter;
} node;

/* settings: pairs of name and text, ended by NULL. */
static inline node *open_node(respond *what, void *world, const char *const *settings, int period_ms) {
    node *n = calloc(1, sizeof *n);
    fl_setting setting[16];
    fl_layer layer = {.origin = "test", .setting = setting};
    fl_diag d = {0};
    char period[16];
    CU_ASSERT_FATAL(n != NULL);
    snprintf(period, sizeof period, "%d", period_ms);
    setting[layer.count++] = (fl_setting){.name = "period_ms", .text = period};
    for (; settings && *settings; settings += 2)
        setting[layer.count++] = (fl_setting){.name = settings[0], .text = settings[1]};
    n->gpu_facts = (fl_gpu_facts){.name = "gpu", .power_min_w = 100, .power_max_w = 380, .power_default_w = 350};
    n->facts = (fl_facts){.gpu_count = 1, .gpu = &n->gpu_facts, .host = {.name = "host"}};
    const fl_instance_options o = {.policy = &fl_policy_depo, .facts = &n->facts, .layer = &layer, .layer_count = 1};
    const fl_status status = fl_instance_open(&n->in, &o, &d);
    FL_CHECK(status == FL_OK, "%s", d.message);
    if (status != FL_OK)
        exit(1);
    n->s = (fl_sample){.gpu_count = 1, .gpu = &n->gpu};
    n->respond = what;
    n->world = world;
    n->limit_w = FL_DEFAULT;
    n->period_ns = n->first_ns = (int64_t)period_ms * 1000000;
    n->now = n->between = (response){9000, 111}; /* what no window may see */
    n->pause = true;
    n->to_ns = n->first_ns + 17 * second_ns;
    return n;
}

static inline void close_node(node *n) {
    fl_instance_close(n->in);
    free(n);
}

static inline double kernels_of(const node *n) { return floor(n->now.kernels * (double)(n->to_ns - n->from_ns) / 4e9); }

static inline double joules_of(const node *n) { return n->now.watts * (double)(n->to_ns - n->from_ns) * 1e-9; }

/* What ran since the segment began; at its end exactly what was said of it. */
static inline void read_node(node *n) {
    const double part = (double)(n->s.time_ns - n->from_ns) / (double)(n->to_ns - n->from_ns);
    const double kernels = n->kernels + floor(kernels_of(n) * part), joules = n->joules + joules_of(n) * part;
    n->gpu.valid = n->gpu.fresh = n->lost ? 0 : fl_reads_of(&fl_policy_depo).gpu_needs;
    if (n->no_power)
        n->gpu.valid &= ~(FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS));
    if (n->no_counter)
        n->gpu.valid &= ~(FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS));
    if (n->no_kernels)
        n->gpu.valid &= ~FL_BIT(FL_GPU_KERNELS);
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++)
        n->gpu.value[id] = NAN;
    if (n->lost)
        return;
    n->gpu.value[FL_GPU_POWER_W] = n->now.watts;
    n->gpu.value[FL_GPU_ENERGY_J] = joules;
    n->gpu.value[FL_GPU_ENERGY_NS] = (double)n->s.time_ns;
    n->gpu.value[FL_GPU_KERNELS] = kernels;
}

/* The segments: four times a window and a second between, then windows without a break. */
static inline void next_segment(node *n) {
    n->kernels += kernels_of(n);
    n->joules += joules_of(n);
    n->from_ns = n->to_ns;
    n->pause = !n->pause && n->window < BASE_WINDOWS;
    n->now = n->pause ? n->between : n->respond(n->world, n->window++, n->limit_w);
    n->to_ns += n->pause ? second_ns : 4 * second_ns;
}

static inline void step_node(node *n) {
    fl_diag d;
    n->s.time_ns += n->s.step ? n->decision->delay_ns : 0;
    read_node(n);
    CU_ASSERT_FATAL(fl_instance_step(n->in, &n->s, &n->decision, &d) == FL_OK);
    n->s.step++;
    const fl_decided *set = &n->decision->gpu[0][FL_SET_POWER_LIMIT_W];
    if (set->set) {
        n->limit_w = set->value;
        if (n->sets < TRIALS_MAX + 64)
            n->limits[n->sets++] = set->value;
    }
    if (n->s.time_ns >= n->to_ns)
        next_segment(n);
}

static inline double probe(const node *n, const char *name) {
    for (uint32_t i = 0; i < fl_policy_depo.probe_count; i++)
        if (strcmp(fl_policy_depo.probe[i].name, name) == 0)
            return n->decision->probe[i];
    FL_CHECK(false, "no probe %s", name);
    return NAN;
}

static inline double now_s(const node *n) { return (double)n->s.time_ns * 1e-9; }

static inline void until(node *n, double seconds) {
    while (now_s(n) < seconds)
        step_node(n);
}
