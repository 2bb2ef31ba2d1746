/* What a fit says: rows, plans run on the engine, power limits. */
#include "harness/plan/inside.h"

#include "harness/base/work/work.h"
#include "harness/plan/plan.h"
#include "models/laws/laws.h"
#include "policies/random.h"
#include "sim/pipeline/pipeline.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- predicting a plan ---- */

static double power_at(const fl_pipeline_fit *f, uint32_t rank, double clock) {
    return fmin(f->power_w[rank] * fl_stage_power_at(&f->law, clock), f->most_w[rank]);
}

fl_status fl_pipeline_fit_rows(const fl_pipeline_fit *f, const double *mhz, size_t count, fl_pipeline *p, fl_diag *d) {
    fl_status s = FL_OK;
    *p = fl_pf_program(f);
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

/* Half of the plans of learn, by chance. A first plan at the top clocks is in every half: savings count from it, and a
 * fit that has not seen it extends its laws beyond the power limit. */
static void draw_half(const fl_pipeline_runs *r, const bool *learn, fl_random *g, bool *half) {
    const size_t first = fl_pipeline_warm_up(r) && learn[0] ? 1 : 0;
    size_t left = 0;
    half[0] = learn[0];
    for (size_t i = first; i < r->plan_count; i++)
        left += learn[i];
    for (size_t i = first, take = (left + 1) / 2; i < r->plan_count; i++) {
        half[i] = learn[i] && fl_random_below(g, left) < take;
        take -= half[i];
        left -= learn[i];
    }
}

fl_status fl_pipeline_fit_twins(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *b, uint32_t twins,
                                fl_pipeline *p, const double *mhz, size_t count, fl_diag *d) {
    bool *half = fl_must(calloc(f->r->plan_count + 1, sizeof *half));
    fl_random g = fl_random_seed(1, 1);
    fl_status s = FL_OK;
    f->loads_of = learn; /* a half may have seen none: the fits' rows must be the same ones */
    for (uint32_t n = 0; !s && n < twins; n++) {
        fl_pipeline one = {0};
        draw_half(f->r, learn, &g, half);
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

/* Predicts a plan on the engine: seconds and joules of one iteration, all ranks. */
static fl_status fl_pipeline_fit_predict(const fl_pipeline_fit *f, size_t plan, double *seconds, double *joules,
                                         fl_diag *d) {
    double mhz[FL_PF_CLOCKS_MAX + 1];
    fl_pipeline_clocks c = fl_pf_clocks_new(f, plan);
    fl_pipeline p = {0};
    fl_status s = fl_pipeline_fit_rows(f, mhz, asked_clocks(&c, f->r->top_mhz, mhz, FL_PF_CLOCKS_MAX), &p, d);
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

/* The same under a power limit of each rank, the clocks left to the boards. */
/* A rank under a limit goes as fast as at the clock at which it would draw what it may: a plan that asks for that clock
 * takes as long at as many watts. The clocks are left to the boards, which ask for the top. */
static fl_status fl_pipeline_fit_limits(const fl_pipeline_fit *f, const double *limit_w, double *seconds,
                                        double *joules, fl_diag *d) {
    fl_pipeline p = {0}, one = fl_pf_program(f);
    const double top = f->r->top_mhz;
    fl_status s = fl_pipeline_fit_rows(f, &top, 1, &p, d);
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

/* ---- errors of predictions ---- */

const char *const fl_pipeline_learn_name[FL_LEARNS] = {"all", "half", "others", "three", "first", "slow"};

/* Plans at least as slow as the median of those behind the warm-up. */
static void choose_slow(const fl_pipeline_runs *r, bool *learn) {
    const size_t first = fl_pipeline_warm_up(r) ? 1 : 0, count = r->plan_count - first;
    for (size_t i = first; i < r->plan_count; i++) {
        size_t slower = 0;
        for (size_t k = first; k < r->plan_count; k++)
            slower += r->time_s[k] > r->time_s[i] || (r->time_s[k] == r->time_s[i] && k < i);
        learn[i] = slower < count / 2;
    }
}

void fl_pipeline_learn_choose(const fl_pipeline_runs *r, fl_pipeline_learn how, bool *learn) {
    for (size_t i = 0; i < r->plan_count; i++)
        learn[i] = how == FL_LEARN_ALL || (how == FL_LEARN_HALF && i % 2 == 0) || (how == FL_LEARN_OTHERS && i % 2);
    if (how == FL_LEARN_FIRST || how == FL_LEARN_THREE)
        learn[0] = true;
    if (how == FL_LEARN_THREE) {
        size_t slowest = r->plan_count > 1;
        for (size_t i = 1; i < r->plan_count; i++)
            slowest = r->time_s[i] > r->time_s[slowest] ? i : slowest;
        learn[slowest] = learn[r->plan_count / 2] = true;
    }
    if (how == FL_LEARN_SLOW)
        choose_slow(r, learn);
}

static fl_pipeline_error error_of(double *percent, size_t count) {
    fl_pipeline_error e = {NAN, NAN, NAN};
    double sum = 0;
    if (!count)
        return e;
    for (size_t i = 0; i < count; i++)
        sum += percent[i] = fabs(percent[i]);
    gsl_sort(percent, 1, count);
    e.mean = sum / (double)count;
    e.p95 = percent[(19 * count + 19) / 20 - 1];
    e.worst = percent[count - 1];
    return e;
}

/* Without a model: what the nearest plans on both sides took, or the nearest one. `first`: not the warm-up. */
static double near_mean(const double *x, const bool *learn, size_t first, size_t count, size_t plan) {
    size_t below = plan, above = plan;
    while (below > first && !learn[below])
        below--;
    while (above + 1 < count && !learn[above])
        above++;
    if (learn[below] && learn[above])
        return (x[below] + x[above]) / 2;
    return learn[below] ? x[below] : learn[above] ? x[above] : NAN;
}

static fl_status score_limits(const fl_pipeline_fit *f, double least_w, double *time, double *energy,
                              fl_pipeline_score *s, fl_diag *d) {
    const fl_pipeline_runs *r = f->r;
    fl_status status = FL_OK;
    for (size_t k = 0; !status && k < r->cap_count; k++) {
        const double *limit = r->limit_w + k * r->ranks;
        double seconds, joules;
        bool counts = r->cap[k].plan > 0; /* the first of each family is a warm-up */
        for (uint32_t rank = 0; rank < r->ranks; rank++)
            counts = counts && limit[rank] >= least_w;
        if (!counts)
            continue;
        status = fl_pipeline_fit_limits(f, limit, &seconds, &joules, d);
        time[s->limited] = 100 * (seconds / r->cap[k].time_s - 1);
        energy[s->limited++] = 100 * (joules / r->cap[k].energy_j - 1);
    }
    s->cap_time = error_of(time, s->limited);
    s->cap_energy = error_of(energy, s->limited);
    return status;
}

fl_status fl_pipeline_score_make(const fl_pipeline_fit *f, const bool *learn, double least_limit_w,
                                 fl_pipeline_score *s, fl_diag *d) {
    const fl_pipeline_runs *r = f->r;
    const size_t room = r->plan_count + r->cap_count + 1;
    *s = (fl_pipeline_score){.seconds = fl_must(calloc(room, sizeof *s->seconds)),
                             .joules = fl_must(calloc(room, sizeof *s->joules))};
    double *percent = fl_must(calloc(4 * room, sizeof *percent));
    double *time = percent, *energy = percent + room, *near_time = percent + 2 * room,
           *near_energy = percent + 3 * room;
    fl_status status = FL_OK;
    const size_t first = fl_pipeline_warm_up(r) ? 1 : 0;
    size_t near = 0;
    for (size_t i = 0; !status && i < r->plan_count; i++) {
        status = fl_pipeline_fit_predict(f, i, &s->seconds[i], &s->joules[i], d);
        s->learned += learn[i];
        if (status || learn[i] || i < first)
            continue;
        time[s->left_out] = 100 * (s->seconds[i] / r->time_s[i] - 1);
        energy[s->left_out++] = 100 * (s->joules[i] / r->energy_j[i] - 1);
        near_time[near] = 100 * (near_mean(r->time_s, learn, first, r->plan_count, i) / r->time_s[i] - 1);
        near_energy[near] = 100 * (near_mean(r->energy_j, learn, first, r->plan_count, i) / r->energy_j[i] - 1);
        near += isnan(near_time[near]) ? 0 : 1;
    }
    if (!status) {
        s->time = error_of(time, s->left_out);
        s->energy = error_of(energy, s->left_out);
        s->near_time = error_of(near_time, near);
        s->near_energy = error_of(near_energy, near);
        status = score_limits(f, least_limit_w, time, energy, s, d);
    }
    free(percent);
    if (status)
        fl_pipeline_score_free(s);
    return status;
}

void fl_pipeline_score_free(fl_pipeline_score *s) {
    free(s->seconds);
    free(s->joules);
    *s = (fl_pipeline_score){0};
}
