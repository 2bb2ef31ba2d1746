/* One SM clock, or one power limit, for each role of split servers: what the split allows without any control loop. The
 * best pair of clocks is what `compare` calls baseline:static where there are pools. */
#include "policies/policy.h"

#include <stdint.h>

typedef struct params {
    double prefill_mhz, decode_mhz, prefill_w, decode_w;
} params;

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    uint32_t roles = 0;
    (void)state;
    (void)param_bytes;
    for (uint32_t i = 0; i < facts->server_count; i++)
        roles += facts->server[i].role != FL_ROLE_MIXED;
    return roles ? NULL : "the node has no server with a role, expected pools of prefill and decode servers";
}

static void set(fl_command *c, uint32_t gpu, int control, double value) {
    if (value > 0)
        fl_set_gpu(c, gpu, control, value);
}

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample, fl_command *c) {
    const params *p = param_bytes;
    (void)state;
    c->delay_ns = 1000000000;
    for (uint32_t i = 0; i < facts->server_count && !sample->step; i++)
        for (uint32_t k = 0; k < facts->server[i].gpu_count; k++) {
            const uint32_t gpu = facts->server[i].gpu[k], role = facts->server[i].role;
            set(c, gpu, FL_SET_SM_MHZ,
                role == FL_ROLE_PREFILL  ? p->prefill_mhz
                : role == FL_ROLE_DECODE ? p->decode_mhz
                                         : 0);
            set(c, gpu, FL_SET_POWER_LIMIT_W,
                role == FL_ROLE_PREFILL  ? p->prefill_w
                : role == FL_ROLE_DECODE ? p->decode_w
                                         : 0);
        }
}

static const fl_param param_rows[] = {
    FL_PARAM(params, prefill_mhz, REAL(0, 100000), "MHz", "0", "SM clock of prefill servers; 0: the default"),
    FL_PARAM(params, decode_mhz, REAL(0, 100000), "MHz", "0", "SM clock of decode servers; 0: the default"),
    FL_PARAM(params, prefill_w, REAL(0, 100000), "W", "0", "power limit of prefill servers; 0: the default"),
    FL_PARAM(params, decode_w, REAL(0, 100000), "W", "0", "power limit of decode servers; 0: the default"),
};

/* A node without servers is refused. */
static const fl_signal_row signal_rows[] = {
    FL_NEEDS(SERVER_RUNNING),
};

FL_POLICY(fixed_pools) = {FL_POLICY_ABI,
                          .name = "fixed-pools",
                          .summary = "sets one clock, or one power limit, for each role of split servers",
                          .source = "static caps per role, a usual way to provision power for split serving",
                          FL_SIGNAL_ROWS(signal_rows),
                          .gpu_drives = FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_POWER_LIMIT_W),
                          FL_PARAM_ROWS(param_rows, params),
                          .init = init,
                          .step = step};
