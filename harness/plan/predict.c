/* What a fit says: rows, plans run on the engine, power limits. */
#include "harness/plan/fit_pipeline.h"

#include "policies/random.h"
#include "sim/pipeline/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double power_at(const fl_pipeline_fit *f, uint32_t rank, double clock) {
    return fmin(f->power_w[rank] * fl_stage_power_at(&f->law, clock), f->most_w[rank]);
}

fl_status fl_pipeline_fit_rows(const fl_pipeline_fit *f, const double *mhz, size_t count, fl_pipeline *p, fl_diag *d) {
    fl_status s = fl_pf_program(f, p, d);
    for (uint32_t rank = 0; !s && rank < p->ranks; rank++) {
        const int32_t r = (int32_t)rank;
        for (size_t i = 0; !s && i < 2 * count; i++) {
            const double clock = fl_pf_clock(f, mhz[i / 2]);
            s = fl_pf_put(p, r, i % 2 ? FL_PIPELINE_BACKWARD : FL_PIPELINE_FORWARD, mhz[i / 2],
                          fl_stage_time_at(&f->time[rank][i % 2], clock), power_at(f, rank, clock), d);
        }
        if (!s && f->load_s[rank] > 0)
            s = fl_pf_put(p, r, FL_PIPELINE_LOAD, NAN, f->load_s[rank], NAN, d);
        if (!s && f->load_in_recv_s[rank] > 0)
            s = fl_pf_put(p, r, FL_PIPELINE_LOAD_IN_RECV, NAN, f->load_in_recv_s[rank], NAN, d);
        const uint32_t stage = rank % p->stages;
        if (!s && stage + 1 < p->stages)
            s = fl_pf_put(p, r, FL_PIPELINE_ACT, NAN, f->link_s[stage], NAN, d);
        if (!s && stage > 0)
            s = fl_pf_put(p, r, FL_PIPELINE_GRAD, NAN, f->link_s[stage - 1], NAN, d);
    }
    if (!s)
        s = fl_pf_put(p, -1, FL_PIPELINE_STEP, NAN, f->tail_s, NAN, d);
    if (!s)
        s = fl_pf_put(p, -1, FL_PIPELINE_BLOCKED, NAN, NAN, f->blocked_w, d);
    if (!s)
        s = fl_pipeline_finish(p, d);
    if (s)
        fl_pipeline_free(p);
    return s;
}

/* Half of the plans of learn, by chance. */
static void draw_half(const bool *learn, size_t plans, fl_random *g, bool *half) {
    size_t left = 0;
    for (size_t i = 0; i < plans; i++)
        left += learn[i];
    for (size_t i = 0, take = (left + 1) / 2; i < plans; i++) {
        half[i] = learn[i] && fl_random_below(g, left) < take;
        take -= half[i];
        left -= learn[i];
    }
}

fl_status fl_pipeline_fit_twins(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *b, uint32_t twins,
                                fl_pipeline *p, const double *mhz, size_t count, fl_diag *d) {
    bool *half = calloc(f->r->plan_count + 1, sizeof *half);
    fl_random g = fl_random_seed(1, 1);
    fl_status s = half ? FL_OK : fl_no_memory(d, "the fit");
    f->loads_of = learn; /* a half may have seen none: the fits' rows must be the same ones */
    for (uint32_t n = 0; !s && n < twins; n++) {
        fl_pipeline one = {0};
        draw_half(learn, f->r->plan_count, &g, half);
        s = fl_pipeline_fit_learn(f, half, b, d);
        if (!s)
            s = fl_pipeline_fit_rows(f, mhz, count, n ? &one : p, d);
        for (size_t i = 0; !s && n && i < p->row_count; i++) {
            p->row[i].time_s += (one.row[i].time_s - p->row[i].time_s) / (n + 1);
            p->row[i].power_w += (one.row[i].power_w - p->row[i].power_w) / (n + 1);
        }
        fl_pipeline_free(&one);
    }
    f->loads_of = NULL;
    if (!s)
        s = fl_pipeline_fit_learn(f, learn, b, d);
    if (s)
        fl_pipeline_free(p);
    free(half);
    return s;
}

/* The clocks that a plan asks for, and the top clock, at which the boards stand. */
static size_t asked_clocks(const fl_pipeline_clocks *c, double top_mhz, double *mhz, size_t room) {
    size_t n = 1;
    mhz[0] = top_mhz;
    for (size_t i = 0; i < (size_t)c->ranks * 2 * c->microbatches; i++) {
        size_t k = 0;
        while (k < n && mhz[k] < c->mhz[i])
            k++;
        if ((k < n && mhz[k] == c->mhz[i]) || n == room)
            continue;
        memmove(mhz + k + 1, mhz + k, (n - k) * sizeof *mhz);
        mhz[k] = c->mhz[i];
        n++;
    }
    return n;
}

fl_status fl_pipeline_fit_predict(const fl_pipeline_fit *f, size_t plan, double *seconds, double *joules, fl_diag *d) {
    double mhz[FL_PF_CLOCKS_MAX + 1];
    fl_pipeline_clocks c;
    fl_pipeline p = {0};
    fl_status s = fl_pf_clocks_new(f, plan, &c, d);
    if (!s)
        s = fl_pipeline_fit_rows(f, mhz, asked_clocks(&c, f->r->top_mhz, mhz, FL_PF_CLOCKS_MAX), &p, d);
    if (!s)
        s = fl_pipeline_run(&p, &f->order, &f->node, &c, seconds, joules, d);
    fl_pipeline_free(&p);
    free(c.mhz);
    return s;
}

/* ---- power limits ---- */

/* The clock at which a rank draws so many watts while it computes: the law rises, so it is found by halving. */
static double clock_at(const fl_pipeline_fit *f, uint32_t rank, double watts) {
    double low = 0.1, high = 1.5;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        *(f->power_w[rank] * fl_stage_power_at(&f->law, middle) < watts ? &low : &high) = middle;
    }
    return low;
}

static double microbatch_s(const fl_pipeline_fit *f, uint32_t rank) {
    return fl_stage_time_at(&f->time[rank][0], 1) + fl_stage_time_at(&f->time[rank][1], 1);
}

/* What a rank may draw while it computes under a power limit. The regulator averages over the microbatch, waiting for
 * the slowest rank included, so that a burst passes the limit (most_w, at the limit of the plans), and the mean of
 * burst and waiting follows the limit. */
static double allowed_w(const fl_pipeline_fit *f, uint32_t rank, double limit_w) {
    double slowest_s = 0;
    for (uint32_t r = 0; r < f->p.ranks; r++)
        slowest_s = fmax(slowest_s, microbatch_s(f, r));
    const double busy = microbatch_s(f, rank) / slowest_s, waits_w = (1 - busy) * f->blocked_w;
    return fmax(((busy * f->most_w[rank] + waits_w) * limit_w / f->limit_w - waits_w) / busy, f->blocked_w);
}

/* A rank under a limit goes as fast as at the clock at which it would draw what it may: a plan that asks for that clock
 * takes as long at as many watts. The clocks are left to the boards, which ask for the top. */
fl_status fl_pipeline_fit_limits(const fl_pipeline_fit *f, const double *limit_w, double *seconds, double *joules,
                                 fl_diag *d) {
    fl_pipeline p = {0}, one = {0};
    const double top = f->r->top_mhz;
    fl_status s = fl_pipeline_fit_rows(f, &top, 1, &p, d);
    if (!s)
        s = fl_pf_program(f, &one, d);
    for (size_t i = 0; !s && i < p.row_count; i++) {
        fl_pipeline_row row = p.row[i];
        if (row.what == FL_PIPELINE_FORWARD || row.what == FL_PIPELINE_BACKWARD) {
            const uint32_t rank = (uint32_t)row.rank;
            const double watts = allowed_w(f, rank, limit_w[rank]), clock = fmin(clock_at(f, rank, watts), 1);
            row.time_s = fl_stage_time_at(&f->time[rank][row.what == FL_PIPELINE_BACKWARD], clock);
            row.power_w = fmin(f->power_w[rank] * fl_stage_power_at(&f->law, 1), watts);
        }
        s = fl_pipeline_add(&one, &row, d);
    }
    if (!s)
        s = fl_pipeline_finish(&one, d);
    if (!s)
        s = fl_pipeline_run(&one, &f->order, &f->node, NULL, seconds, joules, d);
    fl_pipeline_free(&p);
    fl_pipeline_free(&one);
    return s;
}
