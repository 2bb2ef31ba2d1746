/* A node under one of the power capping methods, for their tests: readings of the node meter in, clocks and internals
 * out. */
#pragma once

#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <math.h>

extern const fl_policy fl_policy_cap_dynamic_min, fl_policy_cap_dynamic_max, fl_policy_cap_static,
    fl_policy_cap_hybrid1, fl_policy_cap_hybrid2, fl_policy_cap_static_max, fl_policy_cap_static_min;

enum { GPUS_MAX = 8, SETTINGS_MAX = 12 };
enum { HELD, METER_W, EXCESS_PCT, MEAN_W, PREDICTED_W, PREDICTED_S, PREDICTED_J, MODEL_MHZ, MODEL_CPU_MHZ };
#define COUNT(a) (sizeof(a) / sizeof *(a))
#define SECOND INT64_C(1000000000)

static const int32_t sm[] = {500, 600, 700, 800, 900};
static const int32_t cpu[] = {1000, 2000, 3000};

typedef struct rig {
    fl_instance *in;
    fl_gpu_facts gpu[GPUS_MAX];
    fl_facts facts;
    fl_gpu_sample sample[GPUS_MAX];
    fl_sample s;
    const fl_decision *decision;
} rig;

static inline void facts_make(rig *r, uint32_t gpus) {
    memset(r, 0, sizeof *r);
    for (uint32_t i = 0; i < gpus; i++)
        r->gpu[i].sm = (fl_ladder){sm, COUNT(sm)};
    r->facts = (fl_facts){.gpu_count = gpus, .gpu = r->gpu, .host = {.cpu = {cpu, COUNT(cpu)}}};
}

/* settings: pairs of name and text, ended by NULL. */
static inline fl_status rig_try(rig *r, const fl_policy *policy, const char *const *settings, const fl_table *model,
                                fl_diag *d) {
    fl_setting setting[SETTINGS_MAX];
    fl_layer layer = {.origin = "test", .setting = setting};
    for (; settings && *settings; settings += 2)
        setting[layer.count++] = (fl_setting){.name = settings[0], .text = settings[1]};
    if (model)
        setting[layer.count++] = (fl_setting){.name = "model", .table = model};
    r->s = (fl_sample){.gpu_count = r->facts.gpu_count, .gpu = r->sample};
    fl_instance_options o = {.policy = policy, .facts = &r->facts, .layer = &layer, .layer_count = 1};
    return fl_instance_open(&r->in, &o, d);
}

static inline void rig_open(rig *r, const fl_policy *policy, const char *const *settings, const fl_table *model) {
    fl_diag d = {0};
    const fl_status s = rig_try(r, policy, settings, model, &d);
    FL_CHECK(s == FL_OK, "%s: %s", policy->name, d.message);
    if (s)
        exit(1);
}

#define MISSING NAN  /* the meter shows nothing */
#define STALE (-1.0) /* a value that it showed before */

static inline void rig_step(rig *r, double watts) {
    fl_diag d = {0};
    const uint64_t bit = FL_BIT(FL_HOST_NODE_POWER_W);
    r->s.host.valid = isnan(watts) ? 0 : bit;
    r->s.host.fresh = isnan(watts) || watts == STALE ? 0 : bit;
    if (watts != STALE)
        r->s.host.value[FL_HOST_NODE_POWER_W] = watts;
    CU_ASSERT_FATAL(fl_instance_step(r->in, &r->s, &r->decision, &d) == FL_OK);
    r->s.step++;
    r->s.time_ns += r->decision->delay_ns;
}

static inline double set_of(const rig *r, uint32_t gpu) { /* 0: nothing set */
    const fl_decided *d = &r->decision->gpu[gpu][FL_SET_SM_MHZ];
    return d->set ? d->value : 0;
}

static inline double probe(const rig *r, int p) { return r->decision->probe[p]; }
