/* Policies that read nothing, or next to nothing: the baselines of GEEPAFS (EuroSys '24) and SweetSpot, and any fixed
 * setting. Those that set once do so at their first step and then only keep the loop's rhythm. */
#include "policies/policy.h"

#include <math.h>

#define PERIOD_ROW(struct_)                                                                                            \
    FL_PARAM(struct_, period_ms, REAL(0.001, 3.6e6), "ms", "200", "time from one loop to the next")

typedef struct once_state {
    uint64_t done; /* the setting has been made */
} once_state;

static int64_t delay_ns(double period_ms) { return (int64_t)(period_ms * 1e6 + 0.5); }

static int first_time(once_state *s) {
    uint64_t done = s->done;
    s->done = 1;
    return !done;
}

static const char *need_ladders(const fl_facts *facts) {
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        if (!facts->gpu[i].sm.count)
            return "needs the SM ladder of every GPU";
    return NULL;
}

/* A ladder that the host does not know (no clocks) refuses nothing. */
static int on_ladder(fl_ladder l, double mhz) {
    for (uint32_t i = 0; i < l.count; i++)
        if (l.mhz[i] == mhz)
            return 1;
    return !l.count;
}

/* ---- fixed --------------------------------------------------------------------------------------------------------
 */

typedef struct fixed_params {
    double sm_mhz, mem_mhz, power_limit_w, cpu_mhz, period_ms;
    int64_t cpu_boost;
    fl_table power_limits_w; /* of each GPU; no rows: power_limit_w holds for all */
} fixed_params;

static double limit_of(const fixed_params *p, uint32_t gpu) {
    return p->power_limits_w.row_count ? p->power_limits_w.cell[gpu] : p->power_limit_w;
}

static const char *fixed_init(void *state, const void *params, const fl_facts *facts) {
    const fixed_params *p = params;
    (void)state;
    if (p->sm_mhz == FL_DEFAULT && p->mem_mhz == FL_DEFAULT && p->power_limit_w == FL_DEFAULT &&
        p->cpu_mhz == FL_DEFAULT && p->cpu_boost && !p->power_limits_w.row_count)
        return "nothing to set, expected a clock, a limit or cpu_boost=0 (nvboost leaves all to the driver)";
    if ((p->sm_mhz <= 0 && p->sm_mhz != FL_DEFAULT) || (p->mem_mhz <= 0 && p->mem_mhz != FL_DEFAULT) ||
        (p->power_limit_w <= 0 && p->power_limit_w != FL_DEFAULT))
        return "a clock or limit must be above 0, or -1 for the driver's default";
    if (p->power_limits_w.row_count && p->power_limit_w != FL_DEFAULT)
        return "power_limit_w and power_limits_w, expected one of them";
    if (p->power_limits_w.row_count && p->power_limits_w.row_count != facts->gpu_count)
        return "power_limits_w needs one limit for each GPU";
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        if (p->sm_mhz != FL_DEFAULT && !on_ladder(facts->gpu[i].sm, p->sm_mhz))
            return "sm_mhz is not on the SM ladder of every GPU, expected one of its clocks";
        if (p->mem_mhz != FL_DEFAULT && !on_ladder(facts->gpu[i].mem, p->mem_mhz))
            return "mem_mhz is not on the memory ladder of every GPU, expected one of its clocks";
        if (limit_of(p, i) != FL_DEFAULT && facts->gpu[i].power_max_w > 0 &&
            (limit_of(p, i) < facts->gpu[i].power_min_w || limit_of(p, i) > facts->gpu[i].power_max_w))
            return "power_limit_w is not a limit that every GPU's board takes, expected one in its range";
    }
    if (p->cpu_mhz != FL_DEFAULT && (!facts->host.cpu.count || !on_ladder(facts->host.cpu, p->cpu_mhz)))
        return "cpu_mhz is not a state that software may set on this host, expected one of its clocks";
    return NULL;
}

static void fixed_step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample,
                       fl_command *command) {
    const fixed_params *p = params;
    (void)sample;
    command->delay_ns = delay_ns(p->period_ms);
    if (!first_time(state))
        return;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        if (p->sm_mhz != FL_DEFAULT)
            fl_set_gpu(command, i, FL_SET_SM_MHZ, p->sm_mhz);
        if (p->mem_mhz != FL_DEFAULT)
            fl_set_gpu(command, i, FL_SET_MEM_MHZ, p->mem_mhz);
        if (limit_of(p, i) != FL_DEFAULT)
            fl_set_gpu(command, i, FL_SET_POWER_LIMIT_W, limit_of(p, i));
    }
    if (p->cpu_mhz != FL_DEFAULT)
        fl_set_host(command, FL_SET_HOST_CPU_MHZ, p->cpu_mhz);
    if (!p->cpu_boost)
        fl_set_host(command, FL_SET_HOST_CPU_BOOST, 0);
}

static const fl_param fixed_rows[] = {
    FL_PARAM(fixed_params, sm_mhz, REAL(-1, 100000), "MHz", "-1", "SM clock; -1: left to the driver"),
    FL_PARAM(fixed_params, mem_mhz, REAL(-1, 100000), "MHz", "-1", "memory clock; -1: left to the driver"),
    FL_PARAM(fixed_params, power_limit_w, REAL(-1, 100000), "W", "-1", "board power limit; -1: left to the driver"),
    FL_PARAM(fixed_params, power_limits_w, LIST(0.001, 100000), "W", "", "board power limit of each GPU in turn"),
    FL_PARAM(fixed_params, cpu_mhz, REAL(-1, 100000), "MHz", "-1", "CPU clock; -1: left to the system"),
    FL_PARAM(fixed_params, cpu_boost, BOOL, "", "1", "0: hardware may not enter its boost states"),
    PERIOD_ROW(fixed_params),
};

FL_POLICY(fixed) = {FL_POLICY_ABI,
                    .name = "fixed",
                    .summary = "sets given clocks and limits once",
                    .source = "static setting",
                    .gpu_drives = FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_MEM_MHZ) | FL_BIT(FL_SET_POWER_LIMIT_W),
                    .host_drives = FL_BIT(FL_SET_HOST_CPU_MHZ) | FL_BIT(FL_SET_HOST_CPU_BOOST),
                    FL_PARAM_ROWS(fixed_rows, fixed_params),
                    .state_size = sizeof(once_state),
                    .init = fixed_init,
                    .step = fixed_step};

#ifndef POLICY_PLUGIN /* a plug-in holds one policy */

/* ---- nvboost ------------------------------------------------------------------------------------------------------
 */

typedef struct period_params {
    double period_ms;
} period_params;
static const fl_param period_rows[] = {PERIOD_ROW(period_params)};

static const char *nvboost_init(void *state, const void *params, const fl_facts *facts) {
    (void)state;
    (void)params;
    (void)facts;
    return NULL;
}

static void nvboost_step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample,
                         fl_command *command) {
    const period_params *p = params;
    (void)state;
    (void)facts;
    (void)sample;
    command->delay_ns = delay_ns(p->period_ms);
}

FL_POLICY(nvboost) = {FL_POLICY_ABI,
                      .name = "nvboost",
                      .summary = "sets nothing: the driver's own boost",
                      .source = "GEEPAFS (EuroSys '24), baseline NVboost",
                      FL_PARAM_ROWS(period_rows, period_params),
                      .init = nvboost_init,
                      .step = nvboost_step};

/* ---- maxfreq ------------------------------------------------------------------------------------------------------
 */

static const char *maxfreq_init(void *state, const void *params, const fl_facts *facts) {
    (void)state;
    (void)params;
    return need_ladders(facts);
}

static void maxfreq_step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample,
                         fl_command *command) {
    const period_params *p = params;
    (void)sample;
    command->delay_ns = delay_ns(p->period_ms);
    if (!first_time(state))
        return;
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        fl_set_gpu(command, i, FL_SET_SM_MHZ, fl_ladder_max(facts->gpu[i].sm));
}

FL_POLICY(maxfreq) = {FL_POLICY_ABI,
                      .name = "maxfreq",
                      .summary = "locks the top SM clock once",
                      .source = "GEEPAFS (EuroSys '24), baseline MaxFreq",
                      .gpu_drives = FL_BIT(FL_SET_SM_MHZ),
                      FL_PARAM_ROWS(period_rows, period_params),
                      .state_size = sizeof(once_state),
                      .init = maxfreq_init,
                      .step = maxfreq_step};

/* ---- efficientfix -------------------------------------------------------------------------------------------------
 */

typedef struct efficientfix_params {
    double efficient_mhz, period_ms;
} efficientfix_params;

static const char *efficientfix_init(void *state, const void *params, const fl_facts *facts) {
    const efficientfix_params *p = params;
    (void)state;
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        if (p->efficient_mhz > 0 && !on_ladder(facts->gpu[i].sm, p->efficient_mhz))
            return "efficient_mhz is not on the SM ladder of every GPU, expected one of its clocks";
    return need_ladders(facts);
}

static void efficientfix_step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample,
                              fl_command *command) {
    const efficientfix_params *p = params;
    (void)sample;
    command->delay_ns = delay_ns(p->period_ms);
    if (!first_time(state))
        return;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        fl_ladder ladder = facts->gpu[i].sm;
        double mhz = p->efficient_mhz; /* a share of a whole clock may exceed it by a rounding */
        fl_set_gpu(command, i, FL_SET_SM_MHZ, mhz > 0 ? mhz : fl_ladder_up(ladder, 0.7 * fl_ladder_max(ladder) - 1e-6));
    }
}

static const fl_param efficientfix_rows[] = {
    FL_PARAM(efficientfix_params, efficient_mhz, REAL(0, 100000), "MHz", "0",
             "clock that is most efficient on average; 0: the ladder's clock at or above 0.7 of its top"),
    PERIOD_ROW(efficientfix_params),
};

FL_POLICY(efficientfix) = {FL_POLICY_ABI,
                           .name = "efficientfix",
                           .summary = "locks the SM clock that is most efficient on average, once",
                           .source = "GEEPAFS (EuroSys '24), baseline EfficientFix",
                           .gpu_drives = FL_BIT(FL_SET_SM_MHZ),
                           FL_PARAM_ROWS(efficientfix_rows, efficientfix_params),
                           .state_size = sizeof(once_state),
                           .init = efficientfix_init,
                           .step = efficientfix_step};

/* ---- utilizscale --------------------------------------------------------------------------------------------------
 * The published rule. In the released daemon the count of loops stays at 0, so that it sets nothing: that is nvboost.
 * Each cycle: the top clock, then, from the utilisation read under it, the share of that clock that was in use. A GPU
 * whose utilisation is not known stays at the top clock until it is, or until the cycle begins anew. */

typedef struct utilizscale_params {
    double lowest_mhz, period_ms;
    int64_t repeat_loops;
} utilizscale_params;

typedef struct utilizscale_node {
    int64_t loop; /* of the cycle */
} utilizscale_node;

typedef struct utilizscale_gpu {
    double scaled_mhz; /* set in this cycle; 0 = not yet */
} utilizscale_gpu;

static const char *utilizscale_init(void *state, const void *params, const fl_facts *facts) {
    (void)state;
    (void)params;
    return need_ladders(facts);
}

static void utilizscale_step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample,
                             fl_command *command) {
    const utilizscale_params *p = params;
    utilizscale_node *node = state;
    utilizscale_gpu *gpu = fl_gpu_states(state, sizeof *node);
    command->delay_ns = delay_ns(p->period_ms);
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        const fl_gpu_sample *s = &sample->gpu[i];
        fl_ladder ladder = facts->gpu[i].sm;
        double fmax_mhz = fl_ladder_max(ladder), util = s->value[FL_GPU_UTIL_GPU_PCT];
        if (node->loop == 0) {
            gpu[i].scaled_mhz = 0;
            fl_set_gpu(command, i, FL_SET_SM_MHZ, fmax_mhz);
        } else if (!(gpu[i].scaled_mhz > 0) && fl_gpu_known(s, FL_GPU_UTIL_GPU_PCT) && isfinite(util)) {
            double mhz = util * fmax_mhz / 100;
            gpu[i].scaled_mhz = fl_ladder_up(ladder, mhz > p->lowest_mhz ? mhz : p->lowest_mhz);
            fl_set_gpu(command, i, FL_SET_SM_MHZ, gpu[i].scaled_mhz);
        }
    }
    node->loop = (node->loop + 1) % p->repeat_loops;
}

static const fl_param utilizscale_rows[] = {
    FL_PARAM(utilizscale_params, lowest_mhz, REAL(0, 100000), "MHz", "0",
             "lowest clock ever set; 0: the bottom of the ladder"),
    PERIOD_ROW(utilizscale_params),
    FL_PARAM(utilizscale_params, repeat_loops, INT(2, 1000000), "", "20", "loops of a cycle"),
};

FL_POLICY(utilizscale) = {FL_POLICY_ABI,
                          .name = "utilizscale",
                          .summary = "scales the SM clock with GPU utilisation, read anew at the top clock each cycle",
                          .source = "GEEPAFS (EuroSys '24), baseline UtilizScale",
                          .gpu_needs = FL_BIT(FL_GPU_UTIL_GPU_PCT),
                          .gpu_drives = FL_BIT(FL_SET_SM_MHZ),
                          FL_PARAM_ROWS(utilizscale_rows, utilizscale_params),
                          .state_size = sizeof(utilizscale_node),
                          .gpu_size = sizeof(utilizscale_gpu),
                          .init = utilizscale_init,
                          .step = utilizscale_step};

#endif
