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
    const fl_expert_row *row; /* count; those below `least` experts are left out */
    size_t count;
    double least, start[NUMBERS];
} problem;

static double at(const problem *p, const double *x, const fl_expert_row *r) {
    return p->start[FLOOR] * exp(x[FLOOR]) + fl_time_norm(p->start[TOKEN] * exp(x[TOKEN]) * r->tokens,
                                                          p->start[EXPERT] * exp(x[EXPERT]) * r->experts,
                                                          1 + p->start[SHARP] * exp(x[SHARP]));
}

static void residuals(void *user, const double *x, double *residual) {
    const problem *p = user;
    size_t n = 0;
    for (size_t i = 0; i < p->count; i++)
        if (p->row[i].experts >= p->least)
            residual[n++] = log(at(p, x, &p->row[i]) / p->row[i].time_s);
    for (size_t k = 0; k < NUMBERS; k++) /* what the rows do not tell stays where it began */
        residual[n++] = 1e-3 * x[k];
}

/* A table repeats one block, so its fewest experts may stay in the L2 cache between repeats, where those of a whole
 * model do not: rows of the fewest experts are left out wherever others are left. */
static double least_experts(const fl_expert_rows *t) {
    double least = INFINITY, next = INFINITY;
    for (size_t i = 0; i < t->count; i++)
        least = fmin(least, t->row[i].experts);
    for (size_t i = 0; i < t->count; i++)
        if (t->row[i].experts > least)
            next = fmin(next, t->row[i].experts);
    return isinf(next) ? least : next;
}

/* A first guess: the row of the most experts and fewest tokens reads weights, that of the most tokens computes. */
static size_t guess(problem *p) {
    const fl_expert_row *reads = NULL, *computes = NULL;
    size_t rows = 0;
    for (size_t i = 0; i < p->count; i++) {
        const fl_expert_row *r = &p->row[i];
        rows += r->experts >= p->least;
        reads = !reads || r->experts > reads->experts ? r : reads;
        if (r->experts >= p->least && (!computes || r->tokens > computes->tokens))
            computes = r;
    }
    p->start[EXPERT] = reads->time_s / reads->experts;
    p->start[TOKEN] = computes->time_s / computes->tokens;
    p->start[FLOOR] = 0.1 * computes->time_s;
    p->start[SHARP] = 0.5;
    return rows;
}

static void take_grid(const fl_expert_rows *t, double least, uint32_t blocks, fl_step_grid *g) {
    g->at = fl_must(malloc(t->count * sizeof *g->at));
    g->kv = fl_must(malloc(t->count * sizeof *g->kv));
    g->time_s = fl_must(malloc(t->count * sizeof *g->time_s));
    for (size_t i = 0; i < t->count; i++) {
        if (t->row[i].experts < least)
            continue;
        g->at[g->count] = t->row[i].tokens;
        g->kv[g->count] = t->row[i].experts;
        g->time_s[g->count++] = blocks * t->row[i].time_s;
    }
}

static void count_experts(const fl_serving_layers *t, fl_step_law *law) {
    double most = 0, one = 0;
    for (size_t i = 0; i < t->moe.count; i++) {
        const fl_expert_row *r = &t->moe.row[i];
        most = fmax(most, r->experts);
        if (r->tokens <= t->moe.row[0].tokens) /* the fewest tokens touch no more experts than they choose */
            one = fmax(one, r->experts / r->tokens);
    }
    law->experts = t->experts ? t->experts : (uint32_t)most;
    law->top_k = t->top_k ? t->top_k : (uint32_t)one;
}

fl_status fl_serving_experts_fit(const fl_serving_layers *t, const fl_serving *s, fl_step_law *law,
                                 fl_serving_errors *seen, fl_diag *d) {
    problem p = {.row = t->moe.row, .count = t->moe.count, .least = least_experts(&t->moe)};
    double x[NUMBERS] = {0};
    const size_t rows = guess(&p);
    const uint32_t gpus = s->tensor_parallel * t->data_parallel;
    if (rows < NUMBERS)
        return fl_refuse(d, "%zu rows of experts, expected at least %d with more than the fewest experts", rows,
                         NUMBERS);
    count_experts(t, law);
    if (law->top_k > law->experts || gpus > law->experts)
        return fl_refuse(d, "%u experts on %u GPUs, %u chosen by a token, expected at least as many experts",
                         law->experts, gpus, law->top_k);
    const fl_model_status m = fl_least_squares(residuals, &p, x, NUMBERS, rows + NUMBERS);
    fl_must_have(m != FL_MODEL_NO_MEMORY);
    if (m != FL_MODEL_OK)
        return fl_refuse(d, "no law fits the table of experts: %s", fl_model_text(m));
    for (size_t i = 0; i < p.count; i++)
        if (p.row[i].experts >= p.least)
            fl_serving_errors_add(seen, at(&p, x, &p.row[i]), p.row[i].time_s);
    law->expert_floor_s = t->blocks * p.start[FLOOR] * exp(x[FLOOR]);
    law->expert_s = t->blocks * p.start[EXPERT] * exp(x[EXPERT]);
    law->expert_token = t->blocks * p.start[TOKEN] * exp(x[TOKEN]) * t->sm_mhz / 1000;
    law->expert_sharpness = 1 + p.start[SHARP] * exp(x[SHARP]);
    law->expert_ranks = t->expert_parallel ? gpus : 1;
    law->expert_slices = t->expert_parallel ? 1 : gpus;
    take_grid(&t->moe, p.least, t->blocks, &law->by_experts);
    return FL_OK;
}
