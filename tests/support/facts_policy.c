/* A plug-in that decides by one fact of the first GPU, or of the run, each named by `fact`: another value, other
 * clocks. What is not known leaves the clocks alone (tests/program/facts.sh). */
#include "policies/policy.h"

#include <math.h>

enum { BOUND, DEADLINE, EXPECTED, STREAMS, LAG, SETTLE, RECORDS, VOLT, A, A0, B, B0, C };

typedef struct params {
    int64_t fact;
} params;

static const fl_param param_rows[] = {FL_PARAM(
    params, fact, CHOICE("bound|deadline|expected|streams|lag|settle|records|volt|a|a0|b|b0|c"), "", "bound", "which")};

static const char *init(void *state, const void *p, const fl_facts *facts) {
    (void)state;
    (void)p;
    return facts->gpu_count && facts->gpu->sm.count ? NULL : "needs a ladder";
}

static double value_of(const fl_facts *f, int64_t fact) {
    const fl_gpu_facts *g = f->gpu;
    const fl_power_law *l = &g->law;
    double volt = 0;
    for (uint32_t i = 0; l->volt && i < g->sm.count; i++)
        volt += l->volt[i] * (1 + i);
    const double value[] = {f->bound,
                            (double)f->deadline_ns,
                            (double)f->expected_ns,
                            (double)f->streams,
                            (double)g->power_lag_ns,
                            (double)g->settle_ns,
                            (double)g->records_ns,
                            volt,
                            l->a_w,
                            l->a0_w,
                            l->b_w,
                            l->b0_w,
                            l->c_w};
    return fact <= RECORDS || l->volt ? value[fact] : 0;
}

/* Digits of the value, as far as there are some. */
static void step(void *state, const void *p, const fl_facts *facts, const fl_sample *sample, fl_command *c) {
    (void)state;
    const double value = value_of(facts, ((const params *)p)->fact);
    const fl_ladder *sm = &facts->gpu->sm;
    c->delay_ns = 10000000;
    if (!(value > 0))
        return;
    const double digits = fmod(value / pow(10, floor(log10(value))) * pow(10, (double)(sample->step % 8)), 1);
    fl_set_gpu(c, 0, FL_SET_SM_MHZ, sm->mhz[(uint32_t)(digits * sm->count) % sm->count]);
}

FL_POLICY(facts) = {FL_POLICY_ABI,
                    .name = "facts",
                    .summary = "decides by one fact",
                    .source = "made for a test",
                    .gpu_drives = FL_BIT(FL_SET_SM_MHZ),
                    .param = param_rows,
                    .param_count = FL_COUNT(param_rows),
                    .param_size = sizeof(params),
                    .init = init,
                    .step = step};
