/* Fits a pipeline's times and powers to executed plans. */
#include "harness/plan/inside.h"

#include "harness/base/work/work.h"
#include "harness/plan/plan.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "sim/pipeline/pipeline.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* How sure measured numbers are. Iterations repeat to 0.004 to 0.15 % in time and 0.02 to 0.08 % in energy; what the
 * laws leave out is larger. */
#define FL_PF_SD_ITERATION 0.001
#define FL_PF_SD_ENERGY 0.002
#define FL_PF_SD_INSTRUCTION 0.001 /* of a mean over many, */
#define FL_PF_SD_ONE 0.008         /* and of one alone */
#define FL_PF_SD_LAW 0.004         /* of the law of time at one clock */

static inline double fl_pf_believed(const fl_belief *b, double x) { return b->mean + b->sd * x; }

/* What transfers and the end of an iteration take, from how long iterations took. */

/* Length of each op of a plan, but for transfers. */
static void lengths_of(const fl_pipeline_fit *f, const fl_pipeline_clocks *c, double *length_s) {
    for (uint32_t rank = 0; rank < f->p.ranks; rank++) {
        double known[2][2] = {{0}}; /* the last clock and its time, forward and backward: plans are runs of one clock */
        for (size_t i = f->path.first[rank]; i < f->path.first[rank + 1]; i++) {
            const fl_pipeline_op *op = &f->op[i];
            const bool backward = op->part == FL_PART_OF_BACKWARD;
            length_s[i] = 0;
            if (op->part == FL_PART_OF_LOAD)
                length_s[i] = f->load_s[rank];
            else if (op->part == FL_PART_OF_LOAD_IN_RECV)
                length_s[i] = f->load_in_recv_s[rank];
            else if (backward || op->part == FL_PART_OF_FORWARD) {
                const double mhz = *fl_pipeline_clock(c, rank, backward, 0, (uint32_t)op->microbatch);
                if (known[backward][0] != mhz) {
                    known[backward][0] = mhz;
                    known[backward][1] = fl_stage_time_at(&f->time[rank][backward], fl_pf_clock(f, mhz));
                }
                length_s[i] = known[backward][1];
            }
        }
    }
}

static double iteration(const fl_pipeline_fit *f, double *length_s, double *end_s, const double *link_s,
                        double tail_s) {
    for (size_t i = 0; i < f->path.count; i++)
        if (f->op[i].part == FL_PART_OF_TRANSFER)
            length_s[i] = link_s[f->op[i].link];
    return fl_critical_ends(&f->path, length_s, end_s, NULL) + tail_s;
}

typedef struct links {
    const fl_pipeline_fit *f;
    const fl_pipeline_beliefs *b;
    double **length_s; /* by plan that is learned from */
    size_t *plan;
    size_t count, pairs;
    double *end_s, *link_s;
} links;

static double take_links(const links *l, const double *x) {
    for (size_t k = 0; k < l->pairs; k++)
        l->link_s[k] = fmax(fl_pf_believed(&l->b->link_s, x[k]), 0);
    return fmax(fl_pf_believed(&l->b->tail_s, x[l->pairs]), 0);
}

static void link_residuals(void *user, const double *x, double *residual) {
    const links *l = user;
    const double tail_s = take_links(l, x);
    for (size_t k = 0; k < l->count; k++) {
        const double got = iteration(l->f, l->length_s[k], l->end_s, l->link_s, tail_s);
        residual[k] = fl_pf_weight(l->f, l->plan[k]) * (got / l->f->r->time_s[l->plan[k]] - 1) / FL_PF_SD_ITERATION;
    }
    for (size_t k = 0; k <= l->pairs; k++)
        residual[l->count + k] = x[k];
}

static fl_status fl_pf_learn_links(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *b, fl_diag *d) {
    links l = {.f = f, .b = b, .pairs = f->p.stages - 1, .link_s = f->link_s};
    double *x = fl_must(calloc(f->p.stages, sizeof *x));
    l.length_s = fl_must(calloc(f->r->plan_count, sizeof *l.length_s));
    l.plan = fl_must(calloc(f->r->plan_count, sizeof *l.plan));
    l.end_s = fl_must(calloc(f->path.count + 1, sizeof *l.end_s));
    fl_status s = FL_OK;
    for (size_t plan = 0; plan < f->r->plan_count; plan++) {
        if (!learn[plan])
            continue;
        fl_pipeline_clocks c = fl_pf_clocks_new(f, plan);
        l.length_s[l.count] = fl_must(calloc(f->path.count + 1, sizeof **l.length_s));
        lengths_of(f, &c, l.length_s[l.count]);
        l.plan[l.count++] = plan;
        free(c.mhz);
    }
    if (fl_least_squares(link_residuals, &l, x, l.pairs + 1, l.count + l.pairs + 1))
        s = fl_error(d, FL_MODEL_FAULT, "the transfers cannot be fitted");
    if (!s)
        f->tail_s = take_links(&l, x);
    for (size_t k = 0; k < l.count; k++)
        free(l.length_s[k]);
    free(l.length_s);
    free(l.plan);
    free(l.end_s);
    free(x);
    return s;
}

/* What a rank draws while it computes and while it waits, from the energy of whole iterations. */

typedef struct spent { /* what one rank did in one plan: time at each clock, and waiting */
    uint32_t rank;
    double weight, joules, blocked_s;
    size_t first, count; /* of the arrays below */
} spent;

typedef struct powers {
    const fl_pipeline_fit *f;
    const fl_pipeline_beliefs *b;
    double *power; /* by rank: what is expected of it */
    spent *spent;
    size_t count;
    double *clock, *seconds;
    size_t clocks, clock_room, second_room;
    double limit_w;
} powers;

enum { LAW_S, LAW_KNEE, LAW_RISE, BLOCKED, COMMON };

/* No board draws less than nothing, whatever the numbers ask for. */
static void take_powers(const powers *p, const double *x, fl_stage_power *law, double *blocked_w, double *power_w,
                        double *most_w) {
    *law =
        (fl_stage_power){fmin(fmax(fl_pf_believed(&p->b->s, x[LAW_S]), 0), 0.95),
                         fl_pf_believed(&p->b->knee, x[LAW_KNEE]), fmax(fl_pf_believed(&p->b->rise, x[LAW_RISE]), 0)};
    *blocked_w = fmax(fl_pf_believed(&p->b->blocked, x[BLOCKED]), 0) * p->limit_w;
    for (uint32_t rank = 0; rank < p->f->p.ranks; rank++) {
        power_w[rank] = fmax(p->power[rank] + p->b->power.sd * x[COMMON + rank], 0) * p->limit_w;
        most_w[rank] = fmax(fl_pf_believed(&p->b->most, x[COMMON + p->f->p.ranks + rank]), 0) * p->limit_w;
    }
}

static void power_residuals(void *user, const double *x, double *residual) {
    const powers *p = user;
    const uint32_t ranks = p->f->p.ranks;
    fl_stage_power law;
    double blocked_w, mean = 0;
    take_powers(p, x, &law, &blocked_w, p->f->power_w, p->f->most_w);
    for (size_t k = 0; k < p->count; k++) {
        const spent *s = &p->spent[k];
        double joules = blocked_w * s->blocked_s;
        for (size_t i = s->first; i < s->first + s->count; i++)
            joules += p->seconds[i] *
                      fmin(p->f->power_w[s->rank] * fl_stage_power_at(&law, p->clock[i]), p->f->most_w[s->rank]);
        residual[k] = s->weight * (joules / s->joules - 1) / FL_PF_SD_ENERGY;
    }
    double *prior = residual + p->count;
    for (uint32_t k = 0; k < COMMON; k++)
        *prior++ = x[k];
    for (uint32_t rank = 0; rank < ranks; rank++)
        mean += x[COMMON + rank] / ranks;
    *prior++ = mean;
    for (uint32_t rank = 0; rank < ranks; rank++)
        *prior++ = (x[COMMON + rank] - mean) * p->b->power.sd / p->b->rank_sd;
    for (uint32_t rank = 0; rank < ranks; rank++)
        *prior++ = x[COMMON + ranks + rank];
}

static void add_spent(powers *p, size_t plan, uint32_t rank) {
    const fl_pipeline_runs *r = p->f->r;
    spent s = {.rank = rank, .weight = fl_pf_weight(p->f, plan), .first = p->clocks};
    double busy_s = 0;
    for (size_t i = fl_pipeline_runs_part(r, (uint32_t)plan, rank); i < r->part_count; i++) {
        const fl_part_row *row = &r->part[i];
        if (row->plan != plan || row->rank != rank)
            break;
        if (row->what != FL_PIPELINE_FORWARD && row->what != FL_PIPELINE_BACKWARD)
            continue;
        fl_must_grow(&p->clock, &p->clock_room, p->clocks + 1, sizeof *p->clock);
        fl_must_grow(&p->seconds, &p->second_room, p->clocks + 1, sizeof *p->seconds);
        p->clock[p->clocks] = fl_pf_clock(p->f, row->sm_mhz);
        p->seconds[p->clocks++] = row->mean_s * row->count;
        busy_s += row->mean_s * row->count;
        s.count++;
    }
    s.joules = r->run[plan * r->ranks + rank].energy_j;
    s.blocked_s = fmax(r->time_s[plan] - busy_s, 0);
    p->spent[p->count++] = s;
}

static fl_status fl_pf_learn_powers(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *b, fl_diag *d) {
    powers p = {.f = f, .b = b, .limit_w = f->limit_w};
    const size_t unknown = COMMON + 2 * (size_t)f->p.ranks;
    double *x = fl_must(calloc(unknown, sizeof *x));
    p.power = fl_must(calloc(f->p.ranks, sizeof *p.power));
    p.spent = fl_must(calloc(f->r->plan_count * f->p.ranks + 1, sizeof *p.spent));
    fl_status s = FL_OK;
    for (uint32_t rank = 0; rank < f->p.ranks; rank++)
        p.power[rank] = fl_pf_power(f, rank, learn, b);
    for (size_t plan = 0; plan < f->r->plan_count; plan++)
        for (uint32_t rank = 0; learn[plan] && rank < f->p.ranks; rank++)
            add_spent(&p, plan, rank);
    if (fl_least_squares(power_residuals, &p, x, unknown, p.count + unknown + 1))
        s = fl_error(d, FL_MODEL_FAULT, "the powers cannot be fitted");
    if (!s)
        take_powers(&p, x, &f->law, &f->blocked_w, f->power_w, f->most_w);
    free(p.power);
    free(p.spent);
    free(p.clock);
    free(p.seconds);
    free(x);
    return s;
}

/* How long each rank's forward and backward take at which clock. */

typedef struct times { /* of one part: what was measured at each clock */
    double clock[FL_PF_CLOCKS_MAX], log_s[FL_PF_CLOCKS_MAX], sd[FL_PF_CLOCKS_MAX];
    size_t count;
    const fl_belief *share;
    fl_belief wall;
    double start; /* of log_t0 */
} times;

static void add_time(times *t, double *weight, double clock, double mean_s, double count) {
    size_t k = 0;
    while (k < t->count && t->clock[k] != clock)
        k++;
    if (k == FL_PF_CLOCKS_MAX)
        return; /* more clocks than any ladder has */
    if (k == t->count) {
        t->count++;
        t->clock[k] = clock;
        t->log_s[k] = weight[k] = 0;
    }
    t->log_s[k] += mean_s * count;
    weight[k] += count;
}

static void gather(const fl_pipeline_fit *f, uint32_t rank, fl_pipeline_what what, const bool *learn, times *t) {
    double weight[FL_PF_CLOCKS_MAX];
    t->count = 0;
    for (size_t i = 0; i < f->r->part_count; i++) {
        const fl_part_row *p = &f->r->part[i];
        if (p->rank == rank && p->what == what && learn[p->plan])
            add_time(t, weight, fl_pf_clock(f, p->sm_mhz), p->mean_s, p->count);
    }
    for (size_t k = 0; k < t->count; k++) {
        t->log_s[k] = log(t->log_s[k] / weight[k]);
        t->sd[k] = sqrt(FL_PF_SD_INSTRUCTION * FL_PF_SD_INSTRUCTION + FL_PF_SD_ONE * FL_PF_SD_ONE / weight[k]);
    }
}

static fl_stage_time time_of(const times *t, const double *x) {
    /* A share and a wall that no part can have would give no logarithm. */
    return (fl_stage_time){.log_t0 = t->start + 0.1 * x[0],
                           .share = fmin(fmax(fl_pf_believed(t->share, x[1]), 0), 1),
                           .wall = fmax(fl_pf_believed(&t->wall, x[2]), 0.2)};
}

static void time_residuals(void *user, const double *x, double *residual) {
    const times *t = user;
    const fl_stage_time law = time_of(t, x);
    for (size_t k = 0; k < t->count; k++)
        residual[k] = (log(fl_stage_law_at(&law, t->clock[k])) - t->log_s[k]) / hypot(FL_PF_SD_LAW, t->sd[k]);
    residual[t->count] = x[1];
    residual[t->count + 1] = x[2];
}

/* The three parts of a fit, in this order: each takes what those before it found. */
static fl_status fl_pf_learn_time(fl_pipeline_fit *f, uint32_t rank, int k, const bool *learn,
                                  const fl_pipeline_beliefs *b, fl_diag *d) {
    const fl_pipeline_what what = k ? FL_PIPELINE_BACKWARD : FL_PIPELINE_FORWARD;
    times t = {.share = &b->share[k], .wall = fl_pf_wall(f, rank, k, learn, b)};
    double x[3] = {0};
    gather(f, rank, what, learn, &t);
    if (!t.count)
        return fl_refuse(d, "no %s of rank %u was measured in the plans to learn from", fl_pipeline_what_name[what],
                         rank);
    t.start = t.log_s[0];
    if (fl_least_squares(time_residuals, &t, x, 3, t.count + 2))
        return fl_error(d, FL_MODEL_FAULT, "the times of rank %u cannot be fitted", rank);
    fl_stage_time_free(&f->time[rank][k]);
    f->time[rank][k] = time_of(&t, x);
    fl_must_have(!fl_stage_time_correct(&f->time[rank][k], t.clock, t.log_s, t.sd, t.count));
    return FL_OK;
}

/* ---- learning from plans ---- */

fl_status fl_pipeline_fit_learn(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *b, fl_diag *d) {
    const bool *loads = f->loads_of ? f->loads_of : learn;
    fl_status s = FL_OK;
    for (uint32_t rank = 0; !s && rank < f->p.ranks; rank++) {
        f->load_s[rank] = fl_pf_mean(f, rank, FL_PIPELINE_LOAD, loads);
        f->load_in_recv_s[rank] = fl_pf_mean(f, rank, FL_PIPELINE_LOAD_IN_RECV, loads);
        for (int k = 0; !s && k < 2; k++)
            s = fl_pf_learn_time(f, rank, k, learn, b, d);
    }
    if (!s)
        s = fl_pf_learn_links(f, learn, b, d);
    return s ? s : fl_pf_learn_powers(f, learn, b, d);
}
