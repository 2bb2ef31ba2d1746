/* What a rank draws while it computes and while it waits, from the energy of whole iterations. */
#include "harness/plan/program.h"

#include "models/math/least.h"

#include <math.h>
#include <stdlib.h>

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

static fl_status add_spent(powers *p, size_t plan, uint32_t rank, fl_diag *d) {
    const fl_pipeline_runs *r = p->f->r;
    spent s = {.rank = rank, .weight = fl_pf_weight(p->f, plan), .first = p->clocks};
    double busy_s = 0;
    for (size_t i = fl_pipeline_runs_part(r, (uint32_t)plan, rank); i < r->part_count; i++) {
        const fl_part_row *row = &r->part[i];
        if (row->plan != plan || row->rank != rank)
            break;
        if (row->what != FL_PIPELINE_FORWARD && row->what != FL_PIPELINE_BACKWARD)
            continue;
        if (fl_grow(&p->clock, &p->clock_room, p->clocks + 1, sizeof *p->clock) ||
            fl_grow(&p->seconds, &p->second_room, p->clocks + 1, sizeof *p->seconds))
            return fl_no_memory(d, "the fit");
        p->clock[p->clocks] = fl_pf_clock(p->f, row->sm_mhz);
        p->seconds[p->clocks++] = row->mean_s * row->count;
        busy_s += row->mean_s * row->count;
        s.count++;
    }
    s.joules = r->run[plan * r->ranks + rank].energy_j;
    s.blocked_s = fmax(r->time_s[plan] - busy_s, 0);
    p->spent[p->count++] = s;
    return FL_OK;
}

fl_status fl_pf_learn_powers(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *b, fl_diag *d) {
    powers p = {.f = f, .b = b, .limit_w = f->limit_w};
    const size_t unknown = COMMON + 2 * (size_t)f->p.ranks;
    double *x = calloc(unknown, sizeof *x);
    p.power = calloc(f->p.ranks, sizeof *p.power);
    p.spent = calloc(f->r->plan_count * f->p.ranks + 1, sizeof *p.spent);
    fl_status s = x && p.power && p.spent ? FL_OK : fl_no_memory(d, "the fit");
    for (uint32_t rank = 0; !s && rank < f->p.ranks; rank++)
        p.power[rank] = fl_pf_power(f, rank, learn, b);
    for (size_t plan = 0; !s && plan < f->r->plan_count; plan++)
        for (uint32_t rank = 0; !s && learn[plan] && rank < f->p.ranks; rank++)
            s = add_spent(&p, plan, rank, d);
    if (!s && fl_least_squares(power_residuals, &p, x, unknown, p.count + unknown + 1))
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
