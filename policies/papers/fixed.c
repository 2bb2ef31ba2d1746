/* Policies that read nothing, or next to nothing: the baselines of GEEPAFS (EuroSys '24) and SweetSpot, and any fixed
 * setting. Those that set once do so at their first step and then only keep the loop's rhythm. */
#include "policies/policy.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* Replays a plan of clocks: at each iteration marker that a GPU's program passes, the clock of what comes next. In a
 * pipeline of training a marker stands before each forward and backward, so the n-th marker of a GPU begins the n-th
 * instruction of its plan. After the last one the plan begins anew, as the next iteration of the program does.
 *
 * This is how the plans of Perseus (SOSP '24) were executed: the training program tells when each instruction begins,
 * and another process sets the clock meanwhile. */

enum { COLUMN_GPU, COLUMN_COUNT, COLUMN_MHZ, COLUMNS };

typedef struct plan_params {
    fl_table plan;
    double period_s;
} plan_params;

typedef struct plan_gpu {
    uint32_t first, rows;  /* its rows of the table; none: it is left to the driver */
    uint64_t instructions; /* in one pass of its plan */
    uint32_t row;          /* that holds for the instruction under way, */
    uint32_t spare;
    uint64_t began;   /* and the instruction at which that row begins */
    double asked_mhz; /* last; 0: nothing so far */
} plan_gpu;

/* As many instructions as doubles count exactly. */
#define INSTRUCTIONS_MAX 1e15

static double cell(const plan_params *p, uint32_t row, int column) {
    return p->plan.cell[row * COLUMNS + (uint32_t)column];
}

static plan_gpu *gpus_of(void *state) { return fl_gpu_states(state, 0); }

/* A ladder that the host does not know (no clocks) refuses nothing. */
static int on_ladder(fl_ladder l, double mhz) { return !l.count || fl_ladder_has(l, mhz); }

static const char *init(void *state, const void *params, const fl_facts *facts) {
    const plan_params *p = params;
    plan_gpu *gpu = gpus_of(state);
    uint32_t last = 0;
    for (uint32_t i = 0; i < p->plan.row_count; i++) {
        const double g = cell(p, i, COLUMN_GPU), count = cell(p, i, COLUMN_COUNT);
        if (!(g >= 0 && g < facts->gpu_count) || g != floor(g))
            return "a row of plan names a GPU that the machine does not have";
        if (!(count >= 1 && count <= INSTRUCTIONS_MAX) || count != floor(count))
            return "a row of plan is for a count of instructions that is no whole number from 1 on";
        plan_gpu *of = &gpu[(uint32_t)g];
        if (of->rows && (uint32_t)g != last)
            return "rows of plan for one GPU do not follow each other, expected each GPU's rows together, in its order";
        if (!on_ladder(facts->gpu[(uint32_t)g].sm, cell(p, i, COLUMN_MHZ)))
            return "plan asks for a clock that is not on its GPU's SM ladder";
        of->first = of->rows ? of->first : i;
        of->rows++;
        of->instructions += (uint64_t)count;
        if ((double)of->instructions > INSTRUCTIONS_MAX)
            return "plan has too many instructions";
        last = (uint32_t)g;
    }
    return NULL;
}

/* The clock of instruction `at` of a pass. Instructions come one after the other, so that the row is nearly always the
 * one before or the next. */
static double clock_of(const plan_params *p, plan_gpu *g, uint64_t at) {
    if (at < g->began) {
        g->began = 0;
        g->row = 0;
    }
    for (;;) {
        const uint64_t count = (uint64_t)cell(p, g->first + g->row, COLUMN_COUNT);
        if (at - g->began < count)
            return cell(p, g->first + g->row, COLUMN_MHZ);
        g->began += count;
        g->row++;
    }
}

enum { PROBE_INSTRUCTION, PROBES };

static const fl_probe probe_rows[PROBES] = {
    [PROBE_INSTRUCTION] = {"instruction", "", "place in the plan of the instruction under way", 1},
};

static void step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample, fl_command *command) {
    const plan_params *p = params;
    plan_gpu *gpu = gpus_of(state);
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        plan_gpu *g = &gpu[i];
        const fl_gpu_sample *s = &sample->gpu[i];
        const double passed = s->value[FL_GPU_ITERATIONS];
        if (!g->rows || !fl_gpu_known(s, FL_GPU_ITERATIONS) || !(passed >= 0 && passed <= INSTRUCTIONS_MAX))
            continue;
        /* What comes before the first instruction runs at its clock. */
        const uint64_t at = passed >= 1 ? ((uint64_t)passed - 1) % g->instructions : 0;
        const double mhz = clock_of(p, g, at);
        if (mhz != g->asked_mhz)
            fl_set_gpu(command, i, FL_SET_SM_MHZ, mhz);
        g->asked_mhz = mhz;
        fl_show_gpu(command, i, PROBE_INSTRUCTION, (double)at);
    }
    command->wake = FL_BIT(FL_WAKE_MARKER);
    command->delay_ns = (int64_t)(p->period_s * 1e9 + 0.5);
}

static const fl_param param_rows[] = {
    FL_PARAM(plan_params, plan, TABLE("gpu|count|sm_mhz"), "MHz", "",
             "the clock of each instruction of a GPU, for `count` of them at a time, in its order; or a plan file "
             "(# foldline-plan 1), which a pipeline lays out. GPUs without rows keep the driver's default"),
    FL_PARAM(plan_params, period_s, REAL(0.000001, 3600), "s", "1", "time between steps while no marker is passed"),
};

static const fl_signal_row signal_rows[] = {
    FL_NEEDS(GPU_ITERATIONS),
};

FL_POLICY(plan) = {FL_POLICY_ABI,
                   .name = "plan",
                   .summary = "sets the planned clock of each forward and backward pass, at the marker before it",
                   .source = "Perseus (SOSP '24), where another process sets the clock as each pass begins",
                   .gpu_drives = FL_BIT(FL_SET_SM_MHZ),
                   .wakes = FL_BIT(FL_WAKE_MARKER),
                   .gpu_size = sizeof(plan_gpu),
                   FL_POLICY_PARTS(plan_params)};

/* ---- rows that several share ---- */

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
            return "sm_mhz is not on the SM ladder of every GPU";
        if (p->mem_mhz != FL_DEFAULT && !on_ladder(facts->gpu[i].mem, p->mem_mhz))
            return "mem_mhz is not on the memory ladder of every GPU";
        if (limit_of(p, i) != FL_DEFAULT && facts->gpu[i].power_max_w > 0 &&
            (limit_of(p, i) < facts->gpu[i].power_min_w || limit_of(p, i) > facts->gpu[i].power_max_w))
            return "power_limit_w is not a limit that every GPU's board takes, expected one in its range";
    }
    if (p->cpu_mhz != FL_DEFAULT && !fl_ladder_has(facts->host.cpu, p->cpu_mhz))
        return "cpu_mhz is not on the ladder of clocks that software may set on this host";
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
                      .summary = "sets nothing, so the driver's own boost acts",
                      .source = "GEEPAFS (EuroSys '24), baseline NVboost",
                      FL_PARAM_ROWS(period_rows, period_params),
                      .init = nvboost_init,
                      .step = nvboost_step};

/* ---- maxfreq ------------------------------------------------------------------------------------------------------
 */

static const char *maxfreq_init(void *state, const void *params, const fl_facts *facts) {
    (void)state;
    (void)params;
    return fl_need_ladders(facts);
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
            return "efficient_mhz is not on the SM ladder of every GPU";
    return fl_need_ladders(facts);
}

static void efficientfix_step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample,
                              fl_command *command) {
    const efficientfix_params *p = params;
    (void)sample;
    command->delay_ns = delay_ns(p->period_ms);
    if (!first_time(state))
        return;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        const double mhz = p->efficient_mhz;
        fl_set_gpu(command, i, FL_SET_SM_MHZ, mhz > 0 ? mhz : fl_ladder_share(facts->gpu[i].sm, 0.7));
    }
}

static const fl_param efficientfix_rows[] = {
    FL_PARAM(efficientfix_params, efficient_mhz, REAL(0, 100000), "MHz", "0",
             "clock that is most efficient on average; 0: the ladder's clock at or above 0.7 of its top"),
    PERIOD_ROW(efficientfix_params),
};

FL_POLICY(efficientfix) = {FL_POLICY_ABI,
                           .name = "efficientfix",
                           .summary = "locks, for the whole run, the SM clock that is most efficient on average",
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
    return fl_need_ladders(facts);
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

static const fl_signal_row utilizscale_signals[] = {
    FL_NEEDS(GPU_UTIL_GPU_PCT),
};

FL_POLICY(utilizscale) = {FL_POLICY_ABI,
                          .name = "utilizscale",
                          .summary = "scales the SM clock with GPU utilisation, read at the top clock in each cycle",
                          .source = "GEEPAFS (EuroSys '24), baseline UtilizScale",
                          FL_SIGNAL_ROWS(utilizscale_signals),
                          .gpu_drives = FL_BIT(FL_SET_SM_MHZ),
                          FL_PARAM_ROWS(utilizscale_rows, utilizscale_params),
                          .state_size = sizeof(utilizscale_node),
                          .gpu_size = sizeof(utilizscale_gpu),
                          .init = utilizscale_init,
                          .step = utilizscale_step};

#endif
