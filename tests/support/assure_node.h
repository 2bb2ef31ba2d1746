/* A node of up to three GPUs under Assure or SweetSpot, for their tests: readings in, clocks and internals out. */
#pragma once

#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <math.h>

extern const fl_policy fl_policy_assure, fl_policy_sweetspot;

enum { GPUS_MAX = 3, PROBES_MAX = 6, LADDER = 91 };
enum { NODE_COUNTER, NODE_SINCE, NODE_PROBES };
enum { CAP, BOUND, EFFICIENT, CHOICE, FIT, FIT_ERROR, SLOPE_LOW, SLOPE_HIGH };

static int32_t ladder[LADDER]; /* 100..1000 by 10: products and quotients that a hand can check */

typedef struct node {
    fl_instance *in;
    fl_gpu_facts gpu[GPUS_MAX];
    fl_facts facts;
    fl_gpu_sample sample[GPUS_MAX];
    fl_sample s;
    const fl_decision *decision;
} node;

/* settings: pairs of name and text, ended by NULL. */
static inline void node_open(node *n, const fl_policy *policy, uint32_t gpus, const char *const *settings) {
    fl_setting setting[16];
    fl_layer layer = {.origin = "test", .setting = setting};
    fl_diag d;
    for (; settings && *settings; settings += 2)
        setting[layer.count++] = (fl_setting){.name = settings[0], .text = settings[1]};
    for (int i = 0; i < LADDER; i++)
        ladder[i] = 100 + 10 * i;
    memset(n, 0, sizeof *n);
    for (uint32_t i = 0; i < gpus; i++)
        n->gpu[i].sm = (fl_ladder){ladder, LADDER};
    n->facts = (fl_facts){.gpu_count = gpus, .gpu = n->gpu};
    fl_instance_options o = {.policy = policy, .facts = &n->facts, .layer = &layer, .layer_count = 1};
    fl_status status = fl_instance_open(&n->in, &o, &d);
    FL_CHECK(status == FL_OK, "open: %s", d.message);
    if (status != FL_OK)
        exit(1);
    n->s = (fl_sample){.gpu_count = gpus, .gpu = n->sample};
}

static inline void read_gpu(node *n, uint32_t gpu, double util, double mem, double power, double mhz) {
    fl_gpu_sample *s = &n->sample[gpu];
    s->valid = s->fresh = fl_reads_of(&fl_policy_assure).gpu_needs;
    s->value[FL_GPU_UTIL_GPU_PCT] = util;
    s->value[FL_GPU_UTIL_MEM_PCT] = mem;
    s->value[FL_GPU_POWER_W] = power;
    s->value[FL_GPU_SM_MHZ] = mhz;
}

/* Steps once; loop_ns < 0: the host does not know how long the loop before took. */
static inline void node_step(node *n, double loop_ns) {
    fl_diag d;
    n->s.host.valid = n->s.host.fresh = loop_ns >= 0 ? FL_BIT(FL_HOST_LOOP_NS) : 0;
    n->s.host.value[FL_HOST_LOOP_NS] = loop_ns;
    CU_ASSERT_FATAL(fl_instance_step(n->in, &n->s, &n->decision, &d) == FL_OK);
    n->s.step++;
    n->s.time_ns += n->decision->delay_ns;
}

static inline double set_of(const node *n, uint32_t gpu) { /* -1: nothing set */
    const fl_decided *d = &n->decision->gpu[gpu][FL_SET_SM_MHZ];
    return d->set ? d->requested : -1;
}

static inline double shown(const node *n, uint32_t gpu, int row) {
    return n->decision->probe[NODE_PROBES + (uint32_t)row * n->facts.gpu_count + gpu];
}

static inline bool near(double got, double want) {
    return isnan(want) ? isnan(got) : fabs(got - want) <= 1e-6 * fmax(1, fabs(want));
}

/* Takes a freshly opened node through the probe that begins at its first step, up to the step that sets the choice. */
static inline void run_probe(node *n, uint32_t samples, const double *probe_mhz, const double *mem, const double *util,
                             const double *power, const double *mhz) {
    uint32_t m = samples / 2;
    for (uint32_t k = 0; k <= samples + 1; k++) {
        if (k == 0 || k > samples) { /* readings that belong to no sample must not matter */
            read_gpu(n, 0, 3, 77, 1, 100);
        } else {
            uint32_t i = k - 1, p = i < m ? i : samples - 1 - i;
            read_gpu(n, 0, util[i], mem[i], power[i], mhz && mhz[i] > 0 ? mhz[i] : probe_mhz[p]);
            n->sample[0].valid &= ~(util[i] < 0 ? FL_BIT(FL_GPU_UTIL_GPU_PCT) : 0);
            n->sample[0].valid &= ~(mem[i] < 0 ? FL_BIT(FL_GPU_UTIL_MEM_PCT) : 0);
            n->sample[0].valid &= ~(power[i] < 0 ? FL_BIT(FL_GPU_POWER_W) : 0);
        }
        node_step(n, 0);
        if (k == samples)
            continue;
        double want = k > samples ? shown(n, 0, CHOICE) : probe_mhz[k < m ? k : samples - 1 - k];
        FL_CHECK(set_of(n, 0) == want, "step %u sets %g, expected %g", k, set_of(n, 0), want);
    }
}
