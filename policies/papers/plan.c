/* Replays a plan of clocks: at each iteration marker that a GPU's program passes, the clock of what comes next. In a
 * pipeline of training a marker stands before each forward and backward, so the n-th marker of a GPU begins the n-th
 * instruction of its plan. After the last one the plan begins anew, as the next iteration of the program does.
 *
 * This is how the plans of Perseus (SOSP '24) were executed: the training program tells when each instruction begins,
 * and another process sets the clock meanwhile. */
#include "policies/policy.h"

#include <math.h>

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

static int on_ladder(fl_ladder l, double mhz) {
    for (uint32_t i = 0; i < l.count; i++)
        if (l.mhz[i] == mhz)
            return 1;
    return !l.count; /* a ladder that is not known refuses nothing */
}

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
            return "a row of plan asks for a clock that is not on its GPU's SM ladder";
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

FL_POLICY(plan) = {FL_POLICY_ABI,
                   .name = "plan",
                   .summary = "sets the clock that a plan states for each instruction, at the marker before it",
                   .source = "Perseus (SOSP '24), whose plans another process carries out as each instruction begins",
                   .gpu_needs = FL_BIT(FL_GPU_ITERATIONS),
                   .gpu_drives = FL_BIT(FL_SET_SM_MHZ),
                   .wakes = FL_BIT(FL_WAKE_MARKER),
                   .gpu_size = sizeof(plan_gpu),
                   FL_POLICY_PARTS(plan_params)};
