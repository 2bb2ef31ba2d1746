/* The distribution replay: from the rows of a sweep to draws, and one policy over them. */
#include "sim/draws/draws.h"

#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FL_DRAWS_STEPS_MAX UINT64_C(1000000000)

/* ---- the distribution ---- */

static int by_clock(const void *a, const void *b) {
    const double x = ((const fl_draw_clock *)a)->mhz, y = ((const fl_draw_clock *)b)->mhz;
    return (x > y) - (x < y);
}

/* The cost of a step over that at the best clock. */
static double cost_at(const fl_draws_options *o, double mhz) { return 1 + o->slope * fabs(mhz - o->best_mhz) / 100; }

fl_status fl_draws_make(fl_draws *out, const fl_sweep *s, uint32_t name, const fl_draws_options *o, fl_diag *d) {
    *out = (fl_draws){
        .step_ns = (int64_t)(o->step_ms * 1e6 + 0.5), .steps_max = (uint64_t)o->steps_max, .one_seed = o->one_seed};
    out->clock = calloc(s->row_count + 1, sizeof *out->clock);
    if (!out->clock)
        return fl_no_memory(d, "the distribution replay");
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        if (r->workload != name || isnan(r->sm_mhz))
            continue;
        const double mean = r->energy_j * o->step_ms * 1e-3 / r->time_s;
        out->clock[out->clock_count++] =
            (fl_draw_clock){.mhz = r->sm_mhz,
                            .time_s = r->time_s,
                            .total_j = r->energy_j,
                            .energy_j = mean,
                            .energy_sd_j = mean * (isnan(r->energy_cv) ? o->energy_cv : r->energy_cv),
                            .ratio = r->ratio, /* NAN: filled below */
                            .ratio_sd = isnan(r->ratio_cv) ? o->ratio_cv : r->ratio_cv};
    }
    if (!out->clock_count) {
        fl_draws_free(out);
        return fl_refuse(d, "%s: no rows with a clock to draw from", s->names[name]);
    }
    qsort(out->clock, out->clock_count, sizeof *out->clock, by_clock);
    const fl_draw_clock *top = &out->clock[out->clock_count - 1];
    for (size_t i = 0; i < out->clock_count; i++) {
        fl_draw_clock *c = &out->clock[i];
        if (i && c->mhz == c[-1].mhz) {
            const double mhz = c->mhz;
            fl_draws_free(out);
            return fl_refuse(d, "%s: two rows at %g MHz, expected one for each clock", s->names[name], mhz);
        }
        if (isnan(c->ratio))
            c->ratio =
                o->ratio * (o->best_mhz > 0 ? top->energy_j / c->energy_j * cost_at(o, c->mhz) / cost_at(o, top->mhz)
                                            : pow(c->time_s / top->time_s, o->ratio_exponent));
        c->ratio_sd *= c->ratio;
    }
    return FL_OK;
}

void fl_draws_free(fl_draws *draws) {
    free(draws->clock);
    *draws = (fl_draws){0};
}

uint64_t fl_draws_seed(const fl_draws *draws, uint64_t first, uint64_t repetition) {
    return draws->one_seed ? first : first + repetition;
}

/* ---- the replay ---- */

typedef struct host {
    const fl_draws_run *o;
    fl_instance *instance;
    fl_normals energy, ratio;
    fl_gpu_sample *gpu;
    int64_t now_ns;
    uint64_t steps_max, to_mark; /* until the next mark of the regret */
    double step_s, step_ns, gpus;
    const fl_draw_clock *clock, *best; /* in force; with the highest expected reward */
    double *spent;                     /* of the result's step_count, that of the clock in force */
    double gain;                       /* of progress by one step at the clock in force */
    double regret;                     /* of one step there */
    double progress;
    double energy_j, compute_ns, copy_ns; /* counters of each GPU */
} host;

static double draw_positive(fl_normals *r, double mean, double sd) {
    double x = mean;
    if (sd > 0)
        do
            x = mean + sd * fl_normals_next(r);
        while (!(x > 0));
    return x;
}

static double reward(const fl_draw_clock *c) { return -c->energy_j * c->ratio; }

static void show_counters(host *h, double power_w) {
    const uint32_t gpus = h->o->facts->gpu_count;
    for (uint32_t i = 0; i < gpus; i++) {
        fl_gpu_sample *g = &h->gpu[i];
        g->valid = FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS) | FL_BIT(FL_GPU_COMPUTE_NS) |
                   FL_BIT(FL_GPU_COPY_NS) | FL_BIT(FL_GPU_SM_MHZ) | (isnan(power_w) ? 0 : FL_BIT(FL_GPU_POWER_W));
        g->fresh = g->valid;
        g->value[FL_GPU_ENERGY_J] = h->energy_j;
        g->value[FL_GPU_ENERGY_NS] = (double)h->now_ns;
        g->value[FL_GPU_COMPUTE_NS] = h->compute_ns;
        g->value[FL_GPU_COPY_NS] = h->copy_ns;
        g->value[FL_GPU_SM_MHZ] = h->clock->mhz;
        g->value[FL_GPU_POWER_W] = power_w;
    }
}

static size_t nearest(const fl_draws *draws, double mhz) {
    size_t best = 0;
    for (size_t i = 1; i < draws->clock_count; i++)
        if (fabs(draws->clock[i].mhz - mhz) < fabs(draws->clock[best].mhz - mhz))
            best = i;
    return best;
}

static void take_clock(host *h, size_t clock, fl_draws_result *r) {
    h->clock = &h->o->draws->clock[clock];
    h->spent = &r->step_count[clock];
    h->gain = h->step_s / h->clock->time_s;
    h->regret = reward(h->best) - reward(h->clock);
}

static void carry_out(host *h, const fl_decision *decision, fl_draws_result *r) {
    const fl_draws *draws = h->o->draws;
    const fl_decided *set = &decision->gpu[0][FL_SET_SM_MHZ];
    if (!set->set)
        return;
    const size_t next = set->value > 0 ? nearest(draws, set->value) : draws->clock_count - 1;
    r->switches += &draws->clock[next] != h->clock;
    take_clock(h, next, r);
}

/* One step at the clock in force; returns the mean power of each GPU. */
static double pass(host *h, fl_draws_result *r) {
    const fl_draw_clock *c = h->clock;
    const double step_s = h->step_s, gain = h->gain, left = 1 - h->progress;
    /* the last step ends with the work; within rounding of its end it is whole */
    const double share = gain * (1 - 1e-9) <= left ? 1 : left / gain;
    const double energy = draw_positive(&h->energy, c->energy_j, c->energy_sd_j),
                 ratio = draw_positive(&h->ratio, c->ratio, c->ratio_sd);
    const double each = h->gpus > 1 ? energy / h->gpus : energy, step_ns = h->step_ns;
    h->energy_j += each;
    h->compute_ns += step_ns * ratio / (1 + ratio); /* both within the step, their ratio as drawn */
    h->copy_ns += step_ns / (1 + ratio);
    h->now_ns += h->o->draws->step_ns;
    h->progress += gain * share;
    if (h->progress > 1 - 1e-12)
        h->progress = 1;
    r->energy_j += energy * share;
    r->time_s += step_s * share;
    *h->spent += share;
    r->reward_regret += h->regret;
    r->steps++;
    return each / step_s;
}

static fl_status note_regret(host *h, fl_draws_result *r, fl_diag *d) {
    if (--h->to_mark)
        return FL_OK;
    h->to_mark = FL_DRAWS_MARK;
    if (fl_grow(&r->regret_mark, &r->mark_room, r->mark_count + 1, sizeof *r->regret_mark))
        return fl_no_memory(d, "the distribution replay");
    r->regret_mark[r->mark_count++] = r->reward_regret;
    return FL_OK;
}

static bool over(const host *h, const fl_draws_result *r) { return !(h->progress < 1) || r->steps >= h->steps_max; }

static fl_status drive(host *h, fl_draws_result *r, fl_diag *d) {
    double power_w = NAN;
    fl_sample sample = {.gpu_count = h->o->facts->gpu_count, .gpu = h->gpu};
    for (bool ended = over(h, r); !ended;) {
        const fl_decision *decision;
        show_counters(h, power_w);
        sample.time_ns = h->now_ns;
        fl_status s = fl_instance_step(h->instance, &sample, &decision, d);
        if (!s && h->o->on_step)
            s = h->o->on_step(h->o->user, &sample, decision, d);
        if (s)
            return s;
        carry_out(h, decision, r);
        sample.step++;
        const int64_t until = h->now_ns + decision->delay_ns;
        do { /* at least one step: nothing can be decided within it */
            power_w = pass(h, r);
            s = note_regret(h, r, d);
            ended = over(h, r);
        } while (!s && !ended && h->now_ns + h->o->draws->step_ns <= until);
        if (s)
            return s;
        if (r->steps > FL_DRAWS_STEPS_MAX)
            return fl_refuse(d, "more than 1e9 steps to the end of the work, expected fewer");
    }
    r->progress = h->progress;
    return FL_OK;
}

fl_status fl_draws_replay(const fl_draws_run *o, fl_draws_result *r, fl_diag *d) {
    *r = (fl_draws_result){0};
    host h = {.o = o,
              .steps_max = o->draws->steps_max ? o->draws->steps_max : UINT64_MAX,
              .to_mark = FL_DRAWS_MARK,
              .step_ns = (double)o->draws->step_ns,
              .step_s = (double)o->draws->step_ns * 1e-9,
              .gpus = o->facts->gpu_count};
    h.energy = fl_normals_seed(o->facts->seed, UINT64_C(0x656e65726779));
    h.ratio = fl_normals_seed(o->facts->seed, UINT64_C(0x726174696f));
    h.best = o->draws->clock;
    for (size_t i = 1; i < o->draws->clock_count; i++)
        if (reward(&o->draws->clock[i]) > reward(h.best))
            h.best = &o->draws->clock[i];
    h.gpu = calloc(o->facts->gpu_count, sizeof *h.gpu);
    r->step_count = calloc(o->draws->clock_count, sizeof *r->step_count);
    fl_status s = h.gpu && r->step_count ? FL_OK : fl_no_memory(d, "the distribution replay");
    if (!s)
        take_clock(&h, o->draws->clock_count - 1, r);
    const fl_instance_options in = {.policy = o->policy,
                                    .facts = o->facts,
                                    .label = o->label,
                                    .run = o->run,
                                    .unwatched = !o->on_step,
                                    .layer = o->layer,
                                    .layer_count = o->layer_count};
    if (!s)
        s = fl_instance_open(&h.instance, &in, d);
    if (!s)
        s = drive(&h, r, d);
    if (!s)
        r->faults = fl_instance_counts_of(h.instance).faults;
    fl_instance_close(h.instance);
    free(h.gpu);
    if (s)
        fl_draws_result_free(r);
    return s;
}

void fl_draws_result_free(fl_draws_result *r) {
    free(r->step_count);
    free(r->regret_mark);
    *r = (fl_draws_result){0};
}
