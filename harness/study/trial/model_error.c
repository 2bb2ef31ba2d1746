/* Whether the ranking of policies survives the error of the model. */
#include "harness/study/trial/trial.h"

#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "policies/policy.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/oracle/oracle.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct outcome { /* of one policy on one workload in one draw */
    double ratio;        /* objective over the default's */
    double saving;       /* energy, against the default's */
    bool violated;
} outcome;

typedef struct work {
    const fl_comparison_options *o;
    const fl_model_error_options *e;
    outcome *out; /* draws x scenes x specs */
    bool *ranked; /* by spec: it is for some workload */
    bool *common; /* by scene: all ranked policies are for it */
    size_t commons;
} work;

static fl_status error_of(const work *w, const fl_scene *s, size_t draw, fl_model_error *e, fl_diag *d) {
    e->time_pct = isnan(w->e->time_pct) ? s->w->model_time_mape_pct : w->e->time_pct;
    e->power_pct = isnan(w->e->power_pct) ? s->w->model_power_mape_pct : w->e->power_pct;
    e->seed = w->e->seed * UINT64_C(0x9e3779b97f4a7c15) + draw;
    if (isnan(e->time_pct) || isnan(e->power_pct))
        return fl_fail(d, FL_BAD_INPUT, s->source, 0, 0,
                       "%s: the error of its model is unknown, expected --time-error and --power-error", s->w->name);
    return FL_OK;
}

static fl_status run_policy(const work *w, const fl_scene *s, fl_rates *rates, const fl_spec *spec,
                            const fl_run_result *standard, outcome *out, fl_diag *d) {
    fl_facts facts = s->facts;
    facts.seed = w->o->seed;
    fl_layer layer[2] = {{0}};
    fl_run_options run = {
        .w = s->w, .rates = rates, .spec = &s->platform.node, .facts = &facts, .target = fl_scene_target(s)};
    if (spec) {
        layer[0] = fl_platform_layer(&s->platform, spec->policy->name);
        layer[1] = spec->layer;
        run.policy = spec->policy;
        run.label = spec->label;
        run.layer = layer;
        run.layer_count = 2;
    }
    fl_run_result r;
    fl_status status = fl_run(&run, &r, d);
    if (status)
        return status;
    out->ratio = fl_objective_value(w->o->objective, r.energy_j, r.makespan_s) /
                 fl_objective_value(w->o->objective, standard->energy_j, standard->makespan_s);
    out->saving = 1 - r.energy_j / standard->energy_j;
    out->violated = r.makespan_ps > fl_limit_ps(standard->makespan_ps, w->o->bound);
    fl_run_result_free(&r);
    return FL_OK;
}

/* One draw on one workload: the rows are built anew, and with them the default. */
static fl_status run_draw(void *user, size_t job, fl_diag *d) {
    work *w = user;
    const size_t scenes = w->o->scenes->count, draw = job / scenes;
    fl_scene *s = w->o->scenes->item[job % scenes];
    fl_model_error error;
    fl_rates *rates = NULL;
    fl_run_result standard = {0};
    if (!w->common[job % scenes])
        return FL_OK;
    fl_status status = error_of(w, s, draw, &error, d);
    if (!status)
        status = fl_rates_new(&rates, s->w, &s->platform.node, d);
    if (!status) {
        fl_rates_err(rates, &error);
        const fl_run_options run = {.w = s->w, .rates = rates, .spec = &s->platform.node, .facts = &s->facts};
        status = fl_run(&run, &standard, d);
    }
    for (size_t i = 0; !status && i < w->o->spec_count; i++) {
        outcome *out = &w->out[job * w->o->spec_count + i];
        out->ratio = NAN;
        if (fl_spec_is_for(&w->o->spec[i], s))
            status = run_policy(w, s, rates, &w->o->spec[i], &standard, out, d);
    }
    fl_run_result_free(&standard);
    fl_rates_free(rates);
    return status;
}

typedef struct place {
    double ratio, saving;
    bool held;
} place;

/* Means over different workloads do not rank. */
static fl_status choose_common(work *w, fl_diag *d) {
    const fl_comparison_options *o = w->o;
    bool any = false;
    for (size_t i = 0; i < o->spec_count; i++) {
        for (size_t k = 0; k < o->scenes->count; k++)
            w->ranked[i] |= fl_spec_is_for(&o->spec[i], o->scenes->item[k]);
        any |= w->ranked[i];
    }
    for (size_t k = 0; any && k < o->scenes->count; k++) {
        w->common[k] = true;
        for (size_t i = 0; i < o->spec_count; i++)
            w->common[k] &= !w->ranked[i] || fl_spec_is_for(&o->spec[i], o->scenes->item[k]);
        w->commons += w->common[k];
    }
    if (!w->commons)
        return fl_refuse(d, "the policies have no workload in common, expected at least one to rank them on");
    return FL_OK;
}

static bool before(const place *a, const place *b) { return a->held != b->held ? a->held : a->ratio < b->ratio; }

static void rank_draw(const work *w, size_t draw, place *p, fl_ranking *ranking) {
    const size_t specs = w->o->spec_count, scenes = w->o->scenes->count;
    const double n = (double)w->commons;
    for (size_t i = 0; i < specs; i++) {
        p[i] = (place){.held = true};
        for (size_t k = 0; k < scenes; k++) {
            const outcome *x = &w->out[(draw * scenes + k) * specs + i];
            if (!w->ranked[i] || !w->common[k])
                continue;
            p[i].ratio += x->ratio / n;
            p[i].saving += x->saving / n;
            p[i].held &= !x->violated;
        }
    }
    for (size_t i = 0; i < specs; i++) {
        size_t rank = 1;
        if (!w->ranked[i])
            continue;
        for (size_t k = 0; k < specs; k++)
            rank += w->ranked[k] && (before(&p[k], &p[i]) || (k < i && !before(&p[i], &p[k]) && !before(&p[k], &p[i])));
        ranking[i].first += rank == 1;
        ranking[i].held += p[i].held;
        ranking[i].mean_rank += (double)rank;
        ranking[i].saving_pct += 100 * p[i].saving;
        ranking[i].saving_sd_pct += 100 * p[i].saving * 100 * p[i].saving;
    }
}

fl_status fl_model_error_run(const fl_comparison_options *o, const fl_model_error_options *e, fl_ranking *ranking,
                             fl_diag *d) {
    const size_t jobs = e->draws * o->scenes->count;
    work w = {.o = o,
              .e = e,
              .out = fl_must(calloc(jobs * o->spec_count + 1, sizeof *w.out)),
              .ranked = fl_must(calloc(o->spec_count + 1, sizeof *w.ranked)),
              .common = fl_must(calloc(o->scenes->count + 1, sizeof *w.common))};
    place *p = fl_must(calloc(o->spec_count + 1, sizeof *p));
    fl_status s = choose_common(&w, d);
    if (!s)
        s = fl_pool_run(run_draw, &w, jobs, o->threads, "draws", d);
    for (size_t i = 0; !s && i < o->spec_count; i++)
        ranking[i] = (fl_ranking){.workloads = w.ranked[i] ? w.commons : 0};
    for (size_t i = 0; !s && i < e->draws; i++)
        rank_draw(&w, i, p, ranking);
    const double n = (double)e->draws;
    for (size_t i = 0; !s && i < o->spec_count; i++) {
        ranking[i].mean_rank /= n;
        ranking[i].saving_pct /= n;
        const double square = ranking[i].saving_sd_pct / n - ranking[i].saving_pct * ranking[i].saving_pct;
        ranking[i].saving_sd_pct = sqrt(fmax(0, square));
        if (!w.ranked[i])
            ranking[i].mean_rank = ranking[i].saving_pct = ranking[i].saving_sd_pct = NAN;
    }
    free(w.out);
    free(w.ranked);
    free(w.common);
    free(p);
    return s;
}

void fl_model_error_print(const fl_comparison_options *o, const fl_model_error_options *e, const fl_ranking *ranking,
                          FILE *out) {
    fl_grid g = {0};
    fl_grid_column(&g, "policy", "the policies of the comparison");
    fl_grid_column(&g, "first in", "draws in which it saved most");
    fl_grid_column(&g, "mean rank", "mean over the draws; 1 is first");
    fl_grid_column(&g, "saved %", "mean of the savings over workloads and draws");
    fl_grid_column(&g, "+- sd", "their standard deviation over the draws");
    fl_grid_column(&g, "bound held in", "draws in which it held the bound everywhere");
    size_t workloads = 0;
    for (size_t i = 0; i < o->spec_count; i++) {
        fl_grid_add(&g, "%s", o->spec[i].label);
        if (!ranking[i].workloads) {
            for (size_t k = 1; k < g.columns; k++)
                fl_grid_add(&g, "n/a");
            continue;
        }
        workloads = ranking[i].workloads;
        fl_grid_add(&g, "%zu\t%.2f\t%.2f\t%.2f\t%zu", ranking[i].first, ranking[i].mean_rank, ranking[i].saving_pct,
                    ranking[i].saving_sd_pct, ranking[i].held);
    }
    fprintf(out, "the model moved within its error, %zu draws: ", e->draws);
    if (isnan(e->time_pct) || isnan(e->power_pct))
        fprintf(out, "each workload's own mean error\n");
    else
        fprintf(out, "%g %% in time, %g %% in power on average\n", e->time_pct, e->power_pct);
    if (workloads < o->scenes->count)
        fprintf(out, "ranked on the %zu of %zu workloads that all policies support\n", workloads, o->scenes->count);
    fputc('\n', out);
    fl_grid_print(&g, 1, out);
}
