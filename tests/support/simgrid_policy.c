/* A plug-in for tests/simgrid.sh: each 10 ms it reads the energy and sets the clock that the rule draws. */
#include "policies/policy.h"
#include "tests/support/simgrid_rule.h"

typedef struct params {
    int64_t lowest;
} params;

typedef struct node_state {
    double energy_j, most_j; /* last reading, and the most of one step: a reading that nobody uses might be left out */
    uint32_t clock;
} node_state;

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const params *p = param_bytes;
    node_state *n = state;
    n->clock = UINT32_MAX;
    return facts->gpu_count && p->lowest < (int64_t)facts->gpu->sm.count ? NULL : "needs a ladder that has `lowest`";
}

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample, fl_command *c) {
    const params *p = param_bytes;
    node_state *n = state;
    c->delay_ns = 10000000;
    if (fl_gpu_known(&sample->gpu[0], FL_GPU_ENERGY_J)) {
        const double now_j = sample->gpu[0].value[FL_GPU_ENERGY_J];
        if (now_j - n->energy_j > n->most_j)
            n->most_j = now_j - n->energy_j;
        n->energy_j = now_j;
    }
    const fl_ladder *sm = &facts->gpu->sm;
    const uint32_t clock = fl_rule_clock(facts->seed, sample->step, (uint32_t)p->lowest, sm->count);
    if (clock != n->clock)
        fl_set_gpu(c, 0, FL_SET_SM_MHZ, sm->mhz[clock]);
    n->clock = clock;
}

static const fl_param param_rows[] = {
    FL_PARAM(params, lowest, INT(0, 1000), "", "0", "lowest clock that is drawn, counted from the bottom")};

static const fl_signal_row signal_rows[] = {FL_NEEDS(GPU_ENERGY_J)};

FL_POLICY(rule) = {FL_POLICY_ABI,
                   .name = "rule",
                   .summary = "reads the energy and draws a clock at each step",
                   .source = "made for a test",
                   FL_SIGNAL_ROWS(signal_rows),
                   .gpu_drives = FL_BIT(FL_SET_SM_MHZ),
                   .param = param_rows,
                   .param_count = FL_COUNT(param_rows),
                   .param_size = sizeof(params),
                   .state_size = sizeof(node_state),
                   .init = init,
                   .step = step};
