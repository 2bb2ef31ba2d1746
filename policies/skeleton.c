/* A policy to start from: copy this file, rename the policy, change the rows and the step. It compiles
 *
 *   as a built-in: put it into policies/ and add its row to policies/registry/registry.c;
 *   as a plug-in, anywhere, with nothing but the repository's headers:
 *       cc -std=gnu17 -O2 -fPIC -shared -fvisibility=hidden -DPOLICY_PLUGIN -I REPOSITORY -o mine.so mine.c -lm
 *       foldline run --policy ./mine.so ...
 *
 * What it does: it steps each GPU down its ladder while the GPU is used less than `low_pct`, and up while it is used
 * more than `high_pct`; between the two it leaves the clock alone. */
#include "policies/policy.h"

/* Parameters: a plain struct, and one row for each member (below). The host fills it before init. */
typedef struct params {
    double low_pct, high_pct;
    int64_t stride; /* ladder clocks per step */
    double period_ms;
} params;

/* State: plain bytes, zeroed by the host, that it may copy at any time. No pointers. One for the node, one for each
 * GPU, which the host keeps aligned and apart. */
typedef struct node_state {
    uint64_t moves; /* clock changes so far */
} node_state;

typedef struct gpu_state {
    double mhz; /* the clock that is set */
} gpu_state;

static gpu_state *gpus(void *state) { return fl_gpu_states(state, sizeof(node_state)); }

/* Once, before the first step: check what a range in a row cannot say. NULL, or why this policy cannot run here. */
static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const params *p = param_bytes;
    if (p->low_pct > p->high_pct)
        return "low_pct must not exceed high_pct";
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        gpus(state)[i].mhz = fl_ladder_max(facts->gpu[i].sm);
    return fl_need_ladders(facts);
}

/* Probes: what a user may want to see of the inside. Last in a row: 1 for a value of each GPU, 0 for one of the node.
 */
enum { PROBE_MOVES, PROBE_INDEX };

static const fl_probe probe_rows[] = {
    [PROBE_MOVES] = {"moves", "", "clock changes so far", 0},
    [PROBE_INDEX] = {"index", "", "current clock, counted from the bottom of the ladder", 1},
};

/* Every delay_ns: look at the sample, set what should change. What is not set keeps its value. */
static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample,
                 fl_command *command) {
    const params *p = param_bytes;
    node_state *node = state;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        gpu_state *g = &gpus(state)[i];
        fl_ladder ladder = facts->gpu[i].sm;
        int64_t index = fl_ladder_index_down(ladder, g->mhz);

        /* Any signal may be unknown at any step; unknown is not zero. Here an unknown reading moves nothing. */
        if (fl_gpu_known(&sample->gpu[i], FL_GPU_UTIL_GPU_PCT)) {
            double util = sample->gpu[i].value[FL_GPU_UTIL_GPU_PCT];
            if (util < p->low_pct)
                index -= p->stride;
            else if (util > p->high_pct)
                index += p->stride;
        }
        double mhz = fl_ladder_at(ladder, index); /* the top or the lowest clock beyond the ladder's ends */

        if (mhz != g->mhz || sample->step == 0) {
            g->mhz = mhz;
            node->moves++;
            fl_set_gpu(command, i, FL_SET_SM_MHZ, mhz);
        }
        fl_show_gpu(command, i, PROBE_INDEX, fl_ladder_index_down(ladder, g->mhz));
    }
    fl_show_node(command, PROBE_MOVES, (double)node->moves);
    command->delay_ns = (int64_t)(p->period_ms * 1e6 + 0.5);
}

/* Rows: struct, member, type and range, unit, default, help. */
static const fl_param param_rows[] = {
    FL_PARAM(params, low_pct, REAL(0, 100), "%", "60", "below this, the clock goes down"),
    FL_PARAM(params, high_pct, REAL(0, 100), "%", "90", "above this, the clock goes up"),
    FL_PARAM(params, stride, INT(1, 1000), "", "1", "ladder clocks per step"),
    FL_PARAM(params, period_ms, REAL(0.001, 3.6e6), "ms", "200", "time between steps"),
};

/* What it reads, so that the host measures and logs it. FL_USES instead: the policy does without where there is none.
 */
static const fl_signal_row signal_rows[] = {FL_NEEDS(GPU_UTIL_GPU_PCT)};

FL_POLICY(skeleton) = {FL_POLICY_ABI,
                       .name = "skeleton",
                       .summary = "steps the SM clock up or down with GPU utilisation: a policy to start from",
                       .source = "example",
                       .gpu_drives = FL_BIT(FL_SET_SM_MHZ), /* setting anything else is a fault */
                       .state_size = sizeof(node_state),
                       .gpu_size = sizeof(gpu_state),
                       FL_POLICY_PARTS(params)}; /* the rows of params, signals and probes, init and step */
