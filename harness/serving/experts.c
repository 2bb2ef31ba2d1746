/* The experts of a server's law from a table of times by tokens and touched experts, and what the exchange costs. */
#include "harness/serving/inside.h"

#include "harness/base/work/work.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { FLOOR, EXPERT, TOKEN, SHARP, NUMBERS };

typedef struct problem {
    const fl_expert_rows *t;
    double start[NUMBERS];
} problem;

/* The numbers of one block, in seconds at the clock of the table (that is, at 1 GHz of a law of its own). */
static fl_step_law law_of(const problem *p, const double *x) {
    fl_step_law l = fl_step_law_none();
    l.expert_floor_s = p->start[FLOOR] * exp(x[FLOOR]);
    l.expert_s = p->start[EXPERT] * exp(x[EXPERT]);
    l.expert_token = p->start[TOKEN] * exp(x[TOKEN]);
    l.expert_sharpness = 1 + p->start[SHARP] * exp(x[SHARP]);
    return l;
}

static double at(const fl_step_law *l, const fl_expert_row *r) {
    return fl_step_experts_row(l, r->tokens, r->experts, 1000, 1).time_s;
}

static void residuals(void *user, const double *x, double *residual) {
    const problem *p = user;
    const fl_step_law l = law_of(p, x);
    for (size_t i = 0; i < p->t->count; i++)
        residual[i] = log(at(&l, &p->t->row[i]) / p->t->row[i].time_s);
    for (size_t k = 0; k < NUMBERS; k++) /* what the rows do not tell stays where it began */
        residual[p->t->count + k] = 1e-3 * x[k];
}

/* A first guess: the row of the most experts and fewest tokens reads weights, that of the most tokens computes. */
static void guess(problem *p) {
    const fl_expert_row *reads = p->t->row, *computes = reads;
    for (const fl_expert_row *r = reads; r < p->t->row + p->t->count; r++) {
        reads = r->experts > reads->experts ? r : reads;
        computes = r->tokens > computes->tokens ? r : computes;
    }
    p->start[EXPERT] = reads->time_s / reads->experts;
    p->start[TOKEN] = computes->time_s / computes->tokens;
    p->start[FLOOR] = 0.1 * computes->time_s;
    p->start[SHARP] = 0.5;
}

static void take_grid(const fl_expert_rows *t, uint32_t blocks, fl_step_grid *g) {
    g->at = fl_must(malloc(t->count * sizeof *g->at));
    g->kv = fl_must(malloc(t->count * sizeof *g->kv));
    g->time_s = fl_must(malloc(t->count * sizeof *g->time_s));
    for (g->count = 0; g->count < t->count; g->count++) {
        g->at[g->count] = t->row[g->count].tokens;
        g->kv[g->count] = t->row[g->count].experts;
        g->time_s[g->count] = blocks * t->row[g->count].time_s;
    }
}

void fl_serving_experts_take(fl_serving_layers *t) {
    fl_expert_rows *e = &t->moe;
    double most = 0, least = INFINITY, one = 0;
    for (size_t i = 0; i < e->count; i++) {
        const fl_expert_row *r = &e->row[i];
        most = fmax(most, r->experts);
        least = fmin(least, r->experts);
        if (r->tokens <= e->row[0].tokens) /* the fewest tokens touch no more experts than they choose */
            one = fmax(one, r->experts / r->tokens);
    }
    t->experts = t->experts ? t->experts : (uint32_t)most;
    t->top_k = t->top_k ? t->top_k : (uint32_t)one;
    const size_t all = e->count;
    e->count = 0;
    for (size_t i = 0; i < all; i++)
        if (e->row[i].experts > least || most <= least)
            e->row[e->count++] = e->row[i];
}

fl_status fl_serving_experts_fit(const fl_serving_layers *t, const fl_serving *s, fl_step_law *law,
                                 fl_serving_errors *seen, fl_diag *d) {
    problem p = {.t = &t->moe};
    double x[NUMBERS] = {0};
    const uint32_t gpus = s->tensor_parallel * t->data_parallel;
    if (t->moe.count < NUMBERS)
        return fl_refuse(d, "%zu rows of experts, expected at least %d with more than the fewest experts", t->moe.count,
                         NUMBERS);
    if (t->top_k > t->experts || gpus > t->experts)
        return fl_refuse(d, "%u experts on %u GPUs, %u chosen by a token, expected at least as many experts",
                         t->experts, gpus, t->top_k);
    guess(&p);
    const fl_model_status m = fl_least_squares(residuals, &p, x, NUMBERS, t->moe.count + NUMBERS);
    fl_must_have(m != FL_MODEL_NO_MEMORY);
    if (m != FL_MODEL_OK)
        return fl_refuse(d, "no law fits the table of experts: %s", fl_model_text(m));
    const fl_step_law l = law_of(&p, x);
    for (size_t i = 0; i < t->moe.count; i++)
        fl_serving_errors_add(seen, at(&l, &t->moe.row[i]), t->moe.row[i].time_s);
    law->experts = t->experts;
    law->top_k = t->top_k;
    law->expert_floor_s = t->blocks * l.expert_floor_s;
    law->expert_s = t->blocks * l.expert_s;
    law->expert_token = t->blocks * l.expert_token * t->sm_mhz / 1000;
    law->expert_sharpness = l.expert_sharpness;
    law->expert_ranks = t->expert_parallel ? gpus : 1;
    law->expert_slices = t->expert_parallel ? 1 : gpus;
    take_grid(&t->moe, t->blocks, &law->by_experts);
    return FL_OK;
}
