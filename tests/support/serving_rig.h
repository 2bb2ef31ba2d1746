/* One server on two GPUs (or one) under a policy, stepped by hand: a test says what the signals are, and which steps
 * the engine made. */
#pragma once

#include "policies/policy.h"
#include "policies/registry/registry.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <math.h>

enum { RIG_GPUS = 2, RIG_BATCHES = 4096, RIG_TOP = 1500 };
static const int32_t rig_ladder[] = {500, 600, 700, 800, 900, 1000, 1100, 1200, 1300, 1400, RIG_TOP};

typedef struct rig {
    fl_gpu_facts gpu[RIG_GPUS];
    uint32_t index[RIG_GPUS];
    fl_server_facts server;
    fl_facts facts;
    fl_instance *in;
    fl_gpu_sample seen[RIG_GPUS];
    fl_server_sample u;
    fl_batch_record batch[RIG_BATCHES];
    uint64_t batches;
    int64_t now_ns, engine_ns; /* the engine's steps are told up to here */
    uint64_t step;
    double mhz; /* as set last; FL_DEFAULT, or 0: never set */
    uint64_t sets;
    const fl_decision *decision;
} rig;

static inline void rig_know(rig *r, int id, double value) {
    r->u.value[id] = value;
    r->u.valid |= FL_BIT(id);
    r->u.fresh |= FL_BIT(id);
}

static inline void rig_add(rig *r, int id, double more) {
    rig_know(r, id, (fl_server_known(&r->u, id) ? r->u.value[id] : 0) + more);
}

static inline void rig_gpu(rig *r, int id, double value) {
    for (uint32_t i = 0; i < r->facts.gpu_count; i++) {
        r->seen[i].value[id] = value;
        r->seen[i].valid |= FL_BIT(id);
        r->seen[i].fresh |= FL_BIT(id);
    }
}

/* Facts as of a server that states both targets; to be changed before rig_open. */
static inline void rig_begin(rig *r, uint32_t gpus) {
    memset(r, 0, sizeof *r);
    for (uint32_t i = 0; i < gpus; i++) {
        r->index[i] = i;
        r->gpu[i] = (fl_gpu_facts){
            .name = "gpu", .sm = {rig_ladder, FL_COUNT(rig_ladder)}, .default_sm_mhz = RIG_TOP, .power_default_w = 300};
    }
    r->server = (fl_server_facts){.gpu = r->index,
                                  .gpu_count = gpus,
                                  .max_seqs = 64,
                                  .token_budget = 2048,
                                  .kv_tokens = 10000,
                                  .ttft_target_ns = 1000000000,
                                  .tbt_target_ns = 15000000,
                                  .target_share = 0.99};
    r->facts = (fl_facts){
        .seed = 1, .gpu_count = gpus, .gpu = r->gpu, .server_count = 1, .server = &r->server, .host = {.name = "host"}};
}

static inline fl_status rig_try(rig *r, const char *policy, const fl_setting *setting, size_t settings, fl_diag *d) {
    const fl_policy *p = NULL;
    for (size_t i = 0; i < fl_policies_count; i++)
        p = strcmp(fl_policies[i]->name, policy) == 0 ? fl_policies[i] : p;
    CU_ASSERT_FATAL(p != NULL);
    const fl_layer layer = {"test", setting, settings};
    const fl_instance_options o = {.policy = p, .facts = &r->facts, .layer = &layer, .layer_count = 1};
    return fl_instance_open(&r->in, &o, d);
}

static inline void rig_open(rig *r, const char *policy, const fl_setting *setting, size_t settings) {
    fl_diag d = {0};
    const fl_status s = rig_try(r, policy, setting, settings, &d);
    FL_CHECK(s == FL_OK, "%s: %s", policy, d.message);
    CU_ASSERT_FATAL(s == FL_OK);
}

static inline void rig_close(rig *r) {
    FL_CHECK(fl_instance_counts_of(r->in).faults == 0, "%llu faults",
             (unsigned long long)fl_instance_counts_of(r->in).faults);
    fl_instance_close(r->in);
}

/* A step of the engine, from where the last one ended. */
static inline void rig_batch(rig *r, const fl_batch_record *load, double time_s) {
    fl_batch_record b = *load;
    b.start_ns = r->engine_ns;
    b.end_ns = r->engine_ns += (int64_t)(time_s * 1e9);
    if (r->batches < RIG_BATCHES)
        r->batch[r->batches++] = b;
}

/* One step of the policy; time goes on by its delay. The achieved clock is the one set. */
static inline void rig_step(rig *r) {
    fl_sample sample = {.time_ns = r->now_ns,
                        .step = r->step++,
                        .gpu_count = r->facts.gpu_count,
                        .gpu = r->seen,
                        .server_count = r->facts.server_count,
                        .server = &r->u,
                        .batch = r->batches ? r->batch : NULL,
                        .batch_count = r->batches};
    fl_diag d = {0};
    CU_ASSERT_FATAL(fl_instance_step(r->in, &sample, &r->decision, &d) == FL_OK);
    for (uint32_t i = 0; i < r->facts.gpu_count; i++)
        if (r->decision->gpu[i][FL_SET_SM_MHZ].set) {
            r->mhz = r->decision->gpu[i][FL_SET_SM_MHZ].value;
            r->sets++;
        }
    rig_gpu(r, FL_GPU_SM_MHZ, r->mhz > 0 ? r->mhz : RIG_TOP);
    r->now_ns += r->decision->delay_ns;
    r->batches = 0;
    r->engine_ns = r->engine_ns < r->now_ns - r->decision->delay_ns ? r->now_ns - r->decision->delay_ns : r->engine_ns;
}

/* The engine makes steps of this load until the policy's next one: each `clock_s` at the top clock, longer at a lower
 * one, and `flat_s` that no clock changes. */
static inline void rig_serve(rig *r, const fl_batch_record *load, double clock_s, double flat_s) {
    while (r->engine_ns < r->now_ns) {
        const double time_s = clock_s * RIG_TOP / (r->mhz > 0 ? r->mhz : RIG_TOP) + flat_s;
        rig_batch(r, load, time_s);
        rig_add(r, FL_SERVER_TBT_SUM_NS, time_s * 1e9 * load->decode_sequences);
        rig_add(r, FL_SERVER_TBT_COUNT, load->decode_sequences);
        if (time_s * 1e9 > (double)r->server.tbt_target_ns)
            rig_add(r, FL_SERVER_TBT_MISSED, load->decode_sequences);
    }
}
