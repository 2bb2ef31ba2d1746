#include "harness/fit/fit_pipeline.h"

#include "models/least.h"
#include "sim/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How sure measured numbers are. Iterations repeat to 0.004 to 0.15 % in time and 0.02 to 0.08 % in energy; what the
 * laws leave out is larger. */
#define SD_ITERATION 0.001
#define SD_ENERGY 0.002
#define SD_INSTRUCTION 0.001 /* of a mean over many, */
#define SD_ONE 0.008         /* and of one alone */
#define SD_LAW 0.004         /* of the law of time at one clock */
#define WARM_UP 0.3          /* weight of a first plan at the top clocks: boards are colder then */

/* Expected of any chip. The means were chosen after the published plans of two chips had been seen (A100 and A40 of 300
 * W), and the spreads are wider than those two differ: most of the time of large matrix products follows the clock; the
 * limit holds the clock from about seven eighths of the top; voltage begins to rise near 0.7 of it; a board that
 * computes at three quarters of its clock draws four fifths of its limit, one that waits a quarter. The regulator
 * averages over waiting, so a burst passes the limit by some percent. */
const fl_pipeline_beliefs fl_pipeline_any_chip = {
    .share = {{0.7, 0.12}, {0.7, 0.12}},
    .wall = {{0.88, 0.06}, {0.86, 0.06}},
    .link_s = {0.008, 0.012},
    .tail_s = {0.05, 0.1},
    .power = {0.8, 0.1},
    .most = {1.08, 0.07},
    .blocked = {0.26, 0.06},
    .rank_sd = 0.027,
    .s = {0.3, 0.12},
    .knee = {0.71, 0.06},
    .rise = {0.8, 0.3},
};

/* ---- the program ---- */

/* One device for all ranks, whose own power is nothing: what a rank draws is in its tables. */
static fl_status make_node(fl_pipeline_fit *f, fl_diag *d) {
    const double x[2] = {1, f->r->top_mhz + 1}, y[2] = {1, 1};
    fl_device *dev = calloc(1, sizeof *dev);
    uint32_t *gpu = calloc(f->r->ranks, sizeof *gpu);
    f->node = (fl_node_spec){.device = dev, .device_count = 1, .gpu = gpu, .gpu_count = f->r->ranks};
    if (!dev || !gpu)
        return fl_no_memory(d, "the pipeline");
    *dev = (fl_device){.sm_count = 1, .mem_count = 1, .default_mem_mhz = 1, .sharpness = INFINITY};
    snprintf(dev->name, sizeof dev->name, "rank");
    snprintf(f->node.name, sizeof f->node.name, "ranks");
    dev->sm_mhz = calloc(1, sizeof *dev->sm_mhz);
    dev->mem_mhz = calloc(1, sizeof *dev->mem_mhz);
    dev->b0_w = calloc(1, sizeof *dev->b0_w);
    if (!dev->sm_mhz || !dev->mem_mhz || !dev->b0_w || fl_curve_new(&dev->voltage, x, y, 2))
        return fl_no_memory(d, "the pipeline");
    dev->sm_mhz[0] = (int32_t)f->r->top_mhz;
    dev->mem_mhz[0] = 1;
    dev->default_sm_mhz = dev->sm_mhz[0];
    return FL_OK;
}

static fl_status put(fl_pipeline *p, int32_t rank, fl_pipeline_what what, double mhz, double time_s, double power_w,
                     fl_diag *d) {
    const fl_pipeline_row row = {rank, FL_PIPELINE_ALL, what, mhz, time_s, power_w, 0};
    return fl_pipeline_add(p, &row, d);
}

/* Means of what was measured of a kind that does not follow the clock; 0 where nothing was. */
static double mean_of(const fl_pipeline_fit *f, uint32_t rank, fl_pipeline_what what, const bool *learn) {
    double sum = 0, count = 0;
    for (size_t i = 0; i < f->r->part_count; i++) {
        const fl_part_row *p = &f->r->part[i];
        if (p->rank == rank && p->what == what && (!learn || learn[p->plan])) {
            sum += p->mean_s * p->count;
            count += p->count;
        }
    }
    return count > 0 ? sum / count : 0;
}

static fl_status program_head(const fl_pipeline_fit *f, fl_pipeline *p, fl_diag *d) {
    *p = (fl_pipeline){.schedule = f->p.schedule,
                       .stages = f->p.stages,
                       .microbatches = f->p.microbatches,
                       .chunks = 1,
                       .data_parallel = f->p.data_parallel,
                       .tensor_parallel = f->p.tensor_parallel,
                       .ranks = f->p.ranks,
                       .file = strdup("the fit")};
    return p->file ? FL_OK : fl_no_memory(d, "the pipeline");
}

static fl_status make_program(fl_pipeline_fit *f, fl_diag *d) {
    fl_pipeline p;
    fl_status s = program_head(f, &p, d);
    for (int k = 0; !s && k < 2; k++)
        s = put(&p, -1, k ? FL_PIPELINE_BACKWARD : FL_PIPELINE_FORWARD, f->r->top_mhz, 1, 1, d);
    if (!s)
        s = put(&p, -1, FL_PIPELINE_BLOCKED, NAN, NAN, 1, d);
    for (uint32_t rank = 0; !s && rank < p.ranks; rank++) /* where one fetches its input while it receives */
        if (mean_of(f, rank, FL_PIPELINE_LOAD_IN_RECV, NULL) > 0)
            s = put(&p, (int32_t)rank, FL_PIPELINE_LOAD_IN_RECV, NAN, 1, NAN, d);
    if (!s)
        s = fl_pipeline_finish(&p, d);
    if (!s)
        s = fl_build_pipeline(&f->w, "the plans", &p, &f->order, &f->node, 1, NULL, &f->op, d);
    if (!s)
        s = fl_critical_new(&f->path, f->w, d);
    fl_pipeline_free(&p);
    return s;
}

/* A list that says what 1F1B makes is called so. */
static fl_status make_order(fl_pipeline_fit *f, fl_diag *d) {
    fl_status s = fl_pipeline_schedule_make(&f->p, &f->order, d);
    if (s || !f->p.order)
        return s;
    fl_pipeline plain = f->p;
    fl_pipeline_order usual;
    plain.schedule = FL_PIPELINE_1F1B;
    s = fl_pipeline_schedule_make(&plain, &usual, d);
    if (!s && fl_pipeline_order_same(&usual, &f->order))
        f->p.schedule = FL_PIPELINE_1F1B;
    if (!s)
        fl_pipeline_order_free(&usual);
    return s;
}

fl_status fl_pipeline_fit_open(fl_pipeline_fit *f, const fl_pipeline_runs *r, uint32_t stages, uint32_t tensor_parallel,
                               const char *order_file, double limit_w, fl_diag *d) {
    const uint32_t replicas = r->ranks / stages;
    *f = (fl_pipeline_fit){.r = r, .limit_w = limit_w};
    if (r->ranks % stages || replicas % tensor_parallel)
        return fl_refuse(d, "%u ranks, expected a multiple of %u stages x %u tensor-parallel ranks", r->ranks, stages,
                         tensor_parallel);
    f->p = (fl_pipeline){.schedule = order_file ? FL_PIPELINE_LIST : FL_PIPELINE_1F1B,
                         .stages = stages,
                         .microbatches = r->microbatches,
                         .chunks = 1,
                         .tensor_parallel = tensor_parallel,
                         .data_parallel = replicas / tensor_parallel,
                         .ranks = r->ranks};
    f->p.order = order_file ? strdup(order_file) : NULL;
    f->time = calloc(r->ranks, sizeof *f->time);
    f->load_s = calloc(r->ranks, sizeof *f->load_s);
    f->load_in_recv_s = calloc(r->ranks, sizeof *f->load_in_recv_s);
    f->link_s = calloc(stages, sizeof *f->link_s);
    f->power_w = calloc(r->ranks, sizeof *f->power_w);
    f->most_w = calloc(r->ranks, sizeof *f->most_w);
    fl_status s =
        f->time && f->load_s && f->load_in_recv_s && f->link_s && f->power_w && f->most_w && (f->p.order || !order_file)
            ? FL_OK
            : fl_no_memory(d, "the fit");
    if (!s)
        s = make_order(f, d);
    if (!s)
        s = make_node(f, d);
    if (!s)
        s = make_program(f, d);
    return s;
}

void fl_pipeline_fit_close(fl_pipeline_fit *f) {
    for (uint32_t rank = 0; f->time && rank < f->p.ranks; rank++)
        for (int k = 0; k < 2; k++)
            fl_stage_time_free(&f->time[rank][k]);
    fl_critical_free(&f->path);
    fl_workload_free(f->w);
    fl_node_spec_free(&f->node);
    fl_pipeline_order_free(&f->order);
    fl_pipeline_free(&f->p);
    free(f->op);
    free(f->time);
    free(f->load_s);
    free(f->load_in_recv_s);
    free(f->link_s);
    free(f->power_w);
    free(f->most_w);
}

static double clock_of(const fl_pipeline_fit *f, double mhz) { return mhz / f->r->top_mhz; }

/* The first plan of a series at the top clocks everywhere runs on colder boards. */
static double weight_of(const fl_pipeline_fit *f, size_t plan) {
    bool top = plan == 0;
    for (size_t i = 0; top && i < f->r->asked_count && f->r->asked[i].plan == 0; i++)
        top = f->r->asked[i].sm_mhz == f->r->top_mhz;
    return top ? WARM_UP : 1;
}

/* ---- times of forward and backward ---- */

enum { CLOCKS_MAX = 512 };

typedef struct times { /* of one part: what was measured at each clock */
    double clock[CLOCKS_MAX], log_s[CLOCKS_MAX], sd[CLOCKS_MAX];
    size_t count;
    const fl_belief *share, *wall;
    double start; /* of log_t0 */
} times;

static void add_time(times *t, double *weight, double clock, double mean_s, double count) {
    size_t k = 0;
    while (k < t->count && t->clock[k] != clock)
        k++;
    if (k == CLOCKS_MAX)
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
    double weight[CLOCKS_MAX];
    t->count = 0;
    for (size_t i = 0; i < f->r->part_count; i++) {
        const fl_part_row *p = &f->r->part[i];
        if (p->rank == rank && p->what == what && learn[p->plan])
            add_time(t, weight, clock_of(f, p->sm_mhz), p->mean_s, p->count);
    }
    for (size_t k = 0; k < t->count; k++) {
        t->log_s[k] = log(t->log_s[k] / weight[k]);
        t->sd[k] = sqrt(SD_INSTRUCTION * SD_INSTRUCTION + SD_ONE * SD_ONE / weight[k]);
    }
}

static double believed(const fl_belief *b, double x) { return b->mean + b->sd * x; }

static fl_stage_time time_of(const times *t, const double *x) {
    /* A share and a wall that no part can have would give no logarithm. */
    return (fl_stage_time){.log_t0 = t->start + 0.1 * x[0],
                           .share = fmin(fmax(believed(t->share, x[1]), 0), 1),
                           .wall = fmax(believed(t->wall, x[2]), 0.2)};
}

static void time_residuals(void *user, const double *x, double *residual) {
    const times *t = user;
    const fl_stage_time law = time_of(t, x);
    for (size_t k = 0; k < t->count; k++)
        residual[k] = (log(fl_stage_law_at(&law, t->clock[k])) - t->log_s[k]) / hypot(SD_LAW, t->sd[k]);
    residual[t->count] = x[1];
    residual[t->count + 1] = x[2];
}

static fl_status learn_time(fl_pipeline_fit *f, uint32_t rank, int k, const bool *learn, const fl_pipeline_beliefs *b,
                            fl_diag *d) {
    const fl_pipeline_what what = k ? FL_PIPELINE_BACKWARD : FL_PIPELINE_FORWARD;
    times t = {.share = &b->share[k], .wall = &b->wall[k]};
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
    return fl_stage_time_correct(&f->time[rank][k], t.clock, t.log_s, t.sd, t.count) ? fl_no_memory(d, "the fit")
                                                                                     : FL_OK;
}

/* ---- clocks and lengths of a plan ---- */

static void clocks_of(const fl_pipeline_fit *f, size_t plan, fl_pipeline_clocks *c) {
    for (size_t i = 0; i < f->r->asked_count; i++) {
        const fl_plan_row *a = &f->r->asked[i];
        for (uint32_t m = 0; a->plan == plan && m < a->count; m++)
            *fl_pipeline_clock(c, a->rank, a->backward, 0, a->first + m) = a->sm_mhz;
    }
}

static fl_status clocks_new(const fl_pipeline_fit *f, size_t plan, fl_pipeline_clocks *c, fl_diag *d) {
    *c = (fl_pipeline_clocks){.ranks = f->p.ranks, .chunks = 1, .microbatches = f->p.microbatches};
    c->mhz = calloc((size_t)c->ranks * 2 * c->microbatches, sizeof *c->mhz);
    if (!c->mhz)
        return fl_no_memory(d, "the plan");
    clocks_of(f, plan, c);
    return FL_OK;
}

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
                    known[backward][1] = fl_stage_time_at(&f->time[rank][backward], clock_of(f, mhz));
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

/* ---- transfers and the end of an iteration ---- */

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
        l->link_s[k] = fmax(believed(&l->b->link_s, x[k]), 0);
    return fmax(believed(&l->b->tail_s, x[l->pairs]), 0);
}

static void link_residuals(void *user, const double *x, double *residual) {
    const links *l = user;
    const double tail_s = take_links(l, x);
    for (size_t k = 0; k < l->count; k++) {
        const double got = iteration(l->f, l->length_s[k], l->end_s, l->link_s, tail_s);
        residual[k] = weight_of(l->f, l->plan[k]) * (got / l->f->r->time_s[l->plan[k]] - 1) / SD_ITERATION;
    }
    for (size_t k = 0; k <= l->pairs; k++)
        residual[l->count + k] = x[k];
}

static fl_status learn_links(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *b, fl_diag *d) {
    links l = {.f = f, .b = b, .pairs = f->p.stages - 1, .link_s = f->link_s};
    double *x = calloc(f->p.stages, sizeof *x);
    l.length_s = calloc(f->r->plan_count, sizeof *l.length_s);
    l.plan = calloc(f->r->plan_count, sizeof *l.plan);
    l.end_s = calloc(f->path.count + 1, sizeof *l.end_s);
    fl_status s = x && l.length_s && l.plan && l.end_s ? FL_OK : fl_no_memory(d, "the fit");
    for (size_t plan = 0; !s && plan < f->r->plan_count; plan++) {
        fl_pipeline_clocks c;
        if (!learn[plan])
            continue;
        s = clocks_new(f, plan, &c, d);
        if (!s && !(l.length_s[l.count] = calloc(f->path.count + 1, sizeof **l.length_s)))
            s = fl_no_memory(d, "the fit");
        if (!s) {
            lengths_of(f, &c, l.length_s[l.count]);
            l.plan[l.count++] = plan;
        }
        free(c.mhz);
    }
    if (!s && fl_least_squares(link_residuals, &l, x, l.pairs + 1, l.count + l.pairs + 1))
        s = fl_error(d, FL_MODEL_FAULT, "the transfers cannot be fitted");
    if (!s)
        f->tail_s = take_links(&l, x);
    for (size_t k = 0; l.length_s && k < l.count; k++)
        free(l.length_s[k]);
    free(l.length_s);
    free(l.plan);
    free(l.end_s);
    free(x);
    return s;
}

/* ---- powers ---- */

typedef struct spent { /* what one rank did in one plan: time at each clock, and waiting */
    uint32_t rank;
    double weight, joules, blocked_s;
    size_t first, count; /* of the arrays below */
} spent;

typedef struct powers {
    const fl_pipeline_fit *f;
    const fl_pipeline_beliefs *b;
    spent *spent;
    size_t count;
    double *clock, *seconds;
    size_t clocks, clock_room, second_room;
    double limit_w;
} powers;

enum { LAW_S, LAW_KNEE, LAW_RISE, BLOCKED, COMMON };

static void take_powers(const powers *p, const double *x, fl_stage_power *law, double *blocked_w, double *power_w,
                        double *most_w) {
    *law = (fl_stage_power){fmin(fmax(believed(&p->b->s, x[LAW_S]), 0), 0.95), believed(&p->b->knee, x[LAW_KNEE]),
                            fmax(believed(&p->b->rise, x[LAW_RISE]), 0)};
    *blocked_w = believed(&p->b->blocked, x[BLOCKED]) * p->limit_w;
    for (uint32_t rank = 0; rank < p->f->p.ranks; rank++) {
        power_w[rank] = believed(&p->b->power, x[COMMON + rank]) * p->limit_w;
        most_w[rank] = believed(&p->b->most, x[COMMON + p->f->p.ranks + rank]) * p->limit_w;
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
        residual[k] = s->weight * (joules / s->joules - 1) / SD_ENERGY;
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

static fl_status add_spent(powers *p, size_t plan, uint32_t rank, fl_diag *d) {
    const fl_pipeline_runs *r = p->f->r;
    spent s = {.rank = rank, .weight = weight_of(p->f, plan), .first = p->clocks};
    double busy_s = 0;
    for (size_t i = 0; i < r->part_count; i++) {
        const fl_part_row *row = &r->part[i];
        if (row->plan != plan || row->rank != rank ||
            (row->what != FL_PIPELINE_FORWARD && row->what != FL_PIPELINE_BACKWARD))
            continue;
        if (fl_grow(&p->clock, &p->clock_room, p->clocks + 1, sizeof *p->clock) ||
            fl_grow(&p->seconds, &p->second_room, p->clocks + 1, sizeof *p->seconds))
            return fl_no_memory(d, "the fit");
        p->clock[p->clocks] = clock_of(p->f, row->sm_mhz);
        p->seconds[p->clocks++] = row->mean_s * row->count;
        busy_s += row->mean_s * row->count;
        s.count++;
    }
    s.joules = r->run[plan * r->ranks + rank].energy_j;
    s.blocked_s = fmax(r->time_s[plan] - busy_s, 0);
    p->spent[p->count++] = s;
    return FL_OK;
}

static fl_status learn_powers(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *b, fl_diag *d) {
    powers p = {.f = f, .b = b, .limit_w = f->limit_w};
    const size_t unknown = COMMON + 2 * (size_t)f->p.ranks;
    double *x = calloc(unknown, sizeof *x);
    p.spent = calloc(f->r->plan_count * f->p.ranks + 1, sizeof *p.spent);
    fl_status s = x && p.spent ? FL_OK : fl_no_memory(d, "the fit");
    for (size_t plan = 0; !s && plan < f->r->plan_count; plan++)
        for (uint32_t rank = 0; !s && learn[plan] && rank < f->p.ranks; rank++)
            s = add_spent(&p, plan, rank, d);
    if (!s && fl_least_squares(power_residuals, &p, x, unknown, p.count + unknown + 1))
        s = fl_error(d, FL_MODEL_FAULT, "the powers cannot be fitted");
    if (!s)
        take_powers(&p, x, &f->law, &f->blocked_w, f->power_w, f->most_w);
    free(p.spent);
    free(p.clock);
    free(p.seconds);
    free(x);
    return s;
}

fl_status fl_pipeline_fit_learn(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *b, fl_diag *d) {
    fl_status s = FL_OK;
    for (uint32_t rank = 0; !s && rank < f->p.ranks; rank++) {
        f->load_s[rank] = mean_of(f, rank, FL_PIPELINE_LOAD, learn);
        f->load_in_recv_s[rank] = mean_of(f, rank, FL_PIPELINE_LOAD_IN_RECV, learn);
        for (int k = 0; !s && k < 2; k++)
            s = learn_time(f, rank, k, learn, b, d);
    }
    if (!s)
        s = learn_links(f, learn, b, d);
    return s ? s : learn_powers(f, learn, b, d);
}

/* ---- what it says ---- */

static double power_at(const fl_pipeline_fit *f, uint32_t rank, double clock) {
    return fmin(f->power_w[rank] * fl_stage_power_at(&f->law, clock), f->most_w[rank]);
}

fl_status fl_pipeline_fit_rows(const fl_pipeline_fit *f, const double *mhz, size_t count, fl_pipeline *p, fl_diag *d) {
    fl_status s = program_head(f, p, d);
    for (uint32_t rank = 0; !s && rank < p->ranks; rank++) {
        const int32_t r = (int32_t)rank;
        for (size_t i = 0; !s && i < 2 * count; i++) {
            const double clock = clock_of(f, mhz[i / 2]);
            s = put(p, r, i % 2 ? FL_PIPELINE_BACKWARD : FL_PIPELINE_FORWARD, mhz[i / 2],
                    fl_stage_time_at(&f->time[rank][i % 2], clock), power_at(f, rank, clock), d);
        }
        if (!s && f->load_s[rank] > 0)
            s = put(p, r, FL_PIPELINE_LOAD, NAN, f->load_s[rank], NAN, d);
        if (!s && f->load_in_recv_s[rank] > 0)
            s = put(p, r, FL_PIPELINE_LOAD_IN_RECV, NAN, f->load_in_recv_s[rank], NAN, d);
        const uint32_t stage = rank % p->stages;
        if (!s && stage + 1 < p->stages)
            s = put(p, r, FL_PIPELINE_ACT, NAN, f->link_s[stage], NAN, d);
        if (!s && stage > 0)
            s = put(p, r, FL_PIPELINE_GRAD, NAN, f->link_s[stage - 1], NAN, d);
    }
    if (!s)
        s = put(p, -1, FL_PIPELINE_STEP, NAN, f->tail_s, NAN, d);
    if (!s)
        s = put(p, -1, FL_PIPELINE_BLOCKED, NAN, NAN, f->blocked_w, d);
    if (!s)
        s = fl_pipeline_finish(p, d);
    if (s)
        fl_pipeline_free(p);
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

static fl_status run_plan(const fl_pipeline_fit *f, const fl_pipeline *p, const fl_pipeline_clocks *c, double *seconds,
                          double *joules, fl_diag *d) {
    fl_workload *w = NULL;
    fl_rates *rates = NULL;
    fl_facts facts = {0};
    fl_run_result result = {0};
    fl_status s = fl_build_pipeline(&w, "the plan", p, &f->order, &f->node, 1, c, NULL, d);
    if (!s)
        s = fl_rates_new(&rates, w, &f->node, d);
    const fl_run_options o = {.w = w, .rates = rates, .spec = &f->node, .facts = &facts};
    if (!s)
        s = fl_run(&o, &result, d);
    if (!s) {
        *seconds = result.makespan_s;
        *joules = result.gpu_energy_j;
    }
    fl_run_result_free(&result);
    fl_rates_free(rates);
    fl_workload_free(w);
    return s;
}

fl_status fl_pipeline_fit_predict(const fl_pipeline_fit *f, size_t plan, double *seconds, double *joules, fl_diag *d) {
    double mhz[CLOCKS_MAX + 1];
    fl_pipeline_clocks c;
    fl_pipeline p = {0};
    fl_status s = clocks_new(f, plan, &c, d);
    if (!s)
        s = fl_pipeline_fit_rows(f, mhz, asked_clocks(&c, f->r->top_mhz, mhz, CLOCKS_MAX), &p, d);
    if (!s)
        s = run_plan(f, &p, &c, seconds, joules, d);
    fl_pipeline_free(&p);
    free(c.mhz);
    return s;
}

/* ---- power limits ---- */

/* The clock at which a part draws `ratio` times what it draws at `clock`: the law rises, so it is found by halving. */
static double clock_at(const fl_stage_power *law, double clock, double ratio) {
    const double wanted = ratio * fl_stage_power_at(law, clock);
    double low = 0.1, high = 1.5;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        *(fl_stage_power_at(law, middle) < wanted ? &low : &high) = middle;
    }
    return low;
}

/* A lower limit holds the clock where the power is lower by as much. The clocks are left to the boards, which ask for
 * the top. */
fl_status fl_pipeline_fit_limits(const fl_pipeline_fit *f, const double *limit_w, double *seconds, double *joules,
                                 fl_diag *d) {
    fl_pipeline p = {0}, one = {0};
    const double top = f->r->top_mhz;
    fl_status s = fl_pipeline_fit_rows(f, &top, 1, &p, d);
    if (!s)
        s = program_head(f, &one, d);
    for (size_t i = 0; !s && i < p.row_count; i++) {
        fl_pipeline_row row = p.row[i];
        if (row.what == FL_PIPELINE_FORWARD || row.what == FL_PIPELINE_BACKWARD) {
            const double ratio = limit_w[row.rank] / f->limit_w;
            fl_stage_time t = f->time[row.rank][row.what == FL_PIPELINE_BACKWARD];
            t.wall = fmin(t.wall, clock_at(&f->law, t.wall, ratio));
            row.time_s = fl_stage_law_at(&t, 1);
            row.power_w = fmin(f->power_w[row.rank] * fl_stage_power_at(&f->law, 1), f->most_w[row.rank] * ratio);
        }
        s = fl_pipeline_add(&one, &row, d);
    }
    if (!s)
        s = fl_pipeline_finish(&one, d);
    if (!s)
        s = run_plan(f, &one, NULL, seconds, joules, d);
    fl_pipeline_free(&p);
    fl_pipeline_free(&one);
    return s;
}

/* ---- what others lead to expect ---- */

/* Mean and spread of n numbers; no narrower than `least`, and of a few numbers wider. */
static void belief_of(const double *x, size_t n, double least, fl_belief *out) {
    double sum = 0, square = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    for (size_t i = 0; i < n; i++)
        square += (x[i] - sum / (double)n) * (x[i] - sum / (double)n);
    out->mean = sum / (double)n;
    out->sd = hypot(n > 1 ? sqrt(square / (double)(n - 1)) : 0, least);
}

static double mean_time(const fl_pipeline_fit *f, int k, bool wall) {
    double sum = 0;
    for (uint32_t rank = 0; rank < f->p.ranks; rank++)
        sum += wall ? f->time[rank][k].wall : f->time[rank][k].share;
    return sum / f->p.ranks;
}

static double mean_over(const double *x, uint32_t count) {
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += x[i];
    return count ? sum / count : 0;
}

void fl_pipeline_fit_believe(const fl_pipeline_fit *const *fit, size_t count, fl_pipeline_beliefs *out) {
    enum { SHARE, WALL = 2, LINK = 4, TAIL, POWER, MOST, WAIT, S, KNEE, RISE, BELIEFS };
    static const double LEAST[BELIEFS] = {0.04, 0.04, 0.02, 0.02, 0.004, 0.03, 0.04, 0.02, 0.015, 0.04, 0.02, 0.1};
    fl_belief *const into[BELIEFS] = {&out->share[0], &out->share[1], &out->wall[0], &out->wall[1],
                                      &out->link_s,   &out->tail_s,   &out->power,   &out->most,
                                      &out->blocked,  &out->s,        &out->knee,    &out->rise};
    double x[64];
    count = count < 64 ? count : 64;
    *out = fl_pipeline_any_chip;
    for (size_t k = 0; count && k < BELIEFS; k++) {
        for (size_t i = 0; i < count; i++) {
            const fl_pipeline_fit *f = fit[i];
            x[i] = k < WALL     ? mean_time(f, (int)k - SHARE, false)
                   : k < LINK   ? mean_time(f, (int)k - WALL, true)
                   : k == LINK  ? mean_over(f->link_s, f->p.stages - 1)
                   : k == TAIL  ? f->tail_s
                   : k == POWER ? mean_over(f->power_w, f->p.ranks) / f->limit_w
                   : k == MOST  ? mean_over(f->most_w, f->p.ranks) / f->limit_w
                   : k == WAIT  ? f->blocked_w / f->limit_w
                   : k == S     ? f->law.s
                   : k == KNEE  ? f->law.knee
                                : f->law.rise;
        }
        belief_of(x, count, LEAST[k], into[k]);
    }
}
