/* Compares policies over distribution replays. */
#include "harness/study/compare/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "harness/study/compare/compare.h"
#include "harness/study/trial/trial.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/draws/draws.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/oracle/oracle.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the workloads of a replay ---- */

typedef struct work {
    const fl_comparison_options *o;
    fl_draws *draws; /* by scene */
    size_t *best;    /* by scene: the clock of the least energy under the bound */
    fl_row_result *row;
} work;

/* ---- the parameters of the draws ---- */

/* A number, or an object with one for each workload. */
static fl_status read_one(const fl_json *at, const char *key, const char *workload, double *into, fl_diag *d) {
    fl_json value;
    if (!fl_json_has(at, key))
        return FL_OK;
    const fl_status s = fl_json_get(at, key, &value, d);
    if (s)
        return s;
    return cJSON_IsObject(value.node) ? fl_json_get_real(&value, workload, -HUGE_VAL, HUGE_VAL, into, d)
                                      : fl_json_real(&value, -HUGE_VAL, HUGE_VAL, into, d);
}

static fl_status read_options(const fl_json *at, const char *workload, fl_draws_options *o, fl_diag *d) {
    const struct {
        const char *key;
        double *into;
    } row[] = {{"step_ms", &o->step_ms},
               {"steps_max", &o->steps_max},
               {"energy_cv", &o->energy_cv},
               {"ratio", &o->ratio},
               {"ratio_exponent", &o->ratio_exponent},
               {"ratio_best_mhz", &o->best_mhz},
               {"ratio_slope", &o->slope},
               {"ratio_cv", &o->ratio_cv}};
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < sizeof row / sizeof *row; i++)
        s = read_one(at, row[i].key, workload, row[i].into, d);
    if (!s && fl_json_has(at, "one_seed"))
        s = fl_json_get_bool(at, "one_seed", &o->one_seed, d);
    return s;
}

static fl_status options_of(const fl_experiment *e, const char *workload, const char *variant, fl_draws_options *o,
                            fl_diag *d) {
    const fl_json root = fl_json_root(e->tree, e->path);
    fl_json at, all;
    *o = (fl_draws_options){.step_ms = 10, .energy_cv = 0.1, .ratio = 1, .ratio_exponent = 1, .ratio_cv = 0.1};
    fl_status s = fl_json_get_object(&root, "draws", &at, d);
    if (!s)
        s = read_options(&at, workload, o, d);
    if (s || !variant)
        return s;
    s = fl_json_get_object(&root, "variants", &all, d);
    if (!s)
        s = fl_json_get_object(&all, variant, &at, d);
    return s ? s : read_options(&at, workload, o, d);
}

static fl_status make_draws(const fl_experiment *e, const fl_scene *s, fl_draws *draws, fl_diag *d) {
    fl_draws_options o;
    fl_sweep sweep = {0};
    fl_left_out left; /* the scene has told of it */
    fl_status status = fl_sweep_read(s->source, &sweep, &left, d);
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; !status && i < sweep.row_count; i++)
        if (fl_workload_matches(s->w->name, s->variant, sweep.names[sweep.rows[i].workload]))
            found = sweep.rows[i].workload;
    if (!status && found == UINT32_MAX)
        status = fl_fail(d, FL_BAD_INPUT, s->source, 0, 0, "no rows of '%s' to draw from", s->w->name);
    if (!status)
        status = options_of(e, sweep.names[found], s->variant, &o, d);
    if (!status)
        status = fl_draws_make(draws, &sweep, found, &o, d);
    fl_sweep_free(&sweep);
    return status;
}

static const fl_draw_clock *top(const fl_draws *draws) { return &draws->clock[draws->clock_count - 1]; }

/* ---- rows ---- */

static void score(const work *w, size_t scene, double energy_j, double time_s, fl_row_result *row) {
    const fl_draws *draws = &w->draws[scene];
    const fl_scene *s = w->o->scenes->item[scene];
    const bool found = w->best[scene] < draws->clock_count;
    const double best_j = found ? draws->clock[w->best[scene]].total_j : (double)NAN;
    fl_score *x = &row->score;
    row->workload = s->w->name;
    row->variant = s->variant;
    row->platform = s->platform.name;
    *x = (fl_score){.energy_j = energy_j,
                    .makespan_s = time_s,
                    .mean_power_w = energy_j / time_s,
                    .peak_power_w = NAN,
                    .edp = energy_j * time_s,
                    .ed2p = energy_j * time_s * time_s,
                    .slowdown = time_s / top(draws)->time_s - 1,
                    .worst_window_slowdown = NAN,
                    .regret_static_j = NAN,
                    .regret_static_pct = NAN,
                    .regret_clairvoyant_j = NAN,
                    .regret_clairvoyant_pct = NAN,
                    .regret_at_own_slowdown_j = NAN,
                    .switches = row->score.switches};
    x->violated = x->slowdown > w->o->bound * (1 + 1e-12);
    if (!x->violated) {
        x->regret_static_j = energy_j - best_j;
        x->regret_static_pct = 100 * (energy_j / best_j - 1);
    }
    row->violated = x->violated;
    row->energy_saving_pct = 100 * (1 - energy_j / top(draws)->total_j);
    row->latency = fl_times_of(NULL, 0);
    row->energy_per_request_j = row->offered_load = NAN;
    fl_row_fill_served(row, &(fl_run_result){0});
    row->saving_static_pct = row->saving_most_pct = row->sets = NAN;
    row->target_error_w = row->target_above_pct = row->work_lost_pct = NAN;
    row->node_energy_j = row->policy_cost_s = row->oracle_j = row->oracle_bound_j = row->oracle_gap_pct = NAN;
    row->oracle_objective = row->oracle_objective_bound = row->bound_break_chance = row->expected_regret = NAN;
    fl_row_finish(row, FL_MIN_ENERGY, top(draws)->total_j);
}

static double regret_of_step(const fl_draws *draws, size_t clock) {
    double best = -HUGE_VAL;
    for (size_t i = 0; i < draws->clock_count; i++)
        best = fmax(best, -draws->clock[i].energy_j * draws->clock[i].ratio);
    return best + draws->clock[clock].energy_j * draws->clock[clock].ratio;
}

static const char default_name[] = "baseline:default";

/* What is known of a run at one clock. *all, which it points to, is its whole time there. */
static fl_kept kept_at(const fl_draw_clock *at, fl_residence *all) {
    *all = (fl_residence){.sm_mhz = (uint32_t)at->mhz, .ps = (int64_t)(at->time_s * 1e12)};
    return (fl_kept){.run = {.last_sm_mhz = at->mhz,
                             .last_mem_mhz = NAN,
                             .last_cpu_mhz = NAN,
                             .hottest_c = NAN,
                             .residence = all,
                             .residence_count = 1}};
}

static fl_row_result static_row(const work *w, size_t scene, const char *name, size_t clock) {
    const fl_draws *draws = &w->draws[scene];
    const fl_draw_clock *at = &draws->clock[clock];
    fl_row_result row = {.policy = name, .seed = w->o->seed};
    score(w, scene, at->total_j, at->time_s, &row);
    row.reward_regret = regret_of_step(draws, clock) * at->time_s * 1e9 / (double)draws->step_ns;
    fl_residence all;
    fl_kept kept = kept_at(at, &all);
    row.kept = &kept; /* clocks may be promised too */
    fl_promises_judge(w->o->promises, w->o->bound, &row);
    row.kept = NULL;
    return row;
}

/* The clock of the least energy that holds all bounds; clock_count where none does. */
static size_t best_static(const work *w, size_t scene) {
    const fl_draws *draws = &w->draws[scene];
    const size_t none = draws->clock_count;
    size_t best = static_row(w, scene, "", none - 1).violated > 0 ? none : none - 1;
    for (size_t i = 0; i < none; i++)
        if ((best == none || draws->clock[i].total_j < draws->clock[best].total_j) &&
            !(static_row(w, scene, "", i).violated > 0))
            best = i;
    return best;
}

static void add_static(const work *w, size_t scene, const char *name, size_t clock, fl_comparison *c) {
    const fl_draw_clock *at = &w->draws[scene].clock[clock];
    fl_row_result row = static_row(w, scene, name, clock);
    snprintf(row.note, sizeof row.note, "%g MHz", at->mhz);
    if (name != default_name)
        fl_row_clock(&row, at->mhz, 0, 0);
    row.kept = fl_must(malloc(sizeof *row.kept));
    *row.kept = kept_at(at, fl_must(malloc(sizeof *row.kept->run.residence)));
    fl_comparison_add(c, &row);
}

static void keep_run(const work *w, size_t scene, fl_kept *kept, fl_draws_result *r) {
    const fl_draws *draws = &w->draws[scene];
    kept->run.makespan_s = r->time_s;
    kept->run.energy_j = kept->run.node_energy_j = r->energy_j;
    kept->run.last_sm_mhz = kept->run.last_mem_mhz = kept->run.last_cpu_mhz = kept->run.hottest_c = NAN;
    kept->run.residence = fl_must(calloc(draws->clock_count, sizeof *kept->run.residence));
    for (size_t i = 0; i < draws->clock_count; i++)
        kept->run.residence[kept->run.residence_count++] = (fl_residence){
            .sm_mhz = (uint32_t)draws->clock[i].mhz, .ps = (int64_t)(r->step_count[i] * (double)draws->step_ns * 1e3)};
    kept->watch.regret_mark = r->regret_mark;
    kept->watch.regret_count = r->mark_count;
    r->regret_mark = NULL;
}

static fl_status run_one(void *user, size_t i, fl_diag *d) {
    work *w = user;
    const fl_comparison_options *o = w->o;
    const size_t scene = i / (o->spec_count * o->seeds);
    fl_scene *s = o->scenes->item[scene];
    const fl_spec *spec = &o->spec[i / o->seeds % o->spec_count];
    if (!fl_spec_is_for(spec, s))
        return FL_OK;
    fl_facts facts = s->facts;
    facts.seed = fl_draws_seed(&w->draws[scene], o->seed, i % o->seeds);
    facts.bound = isfinite(o->bound) ? o->bound : 0;
    fl_laid none;
    const fl_status lies = fl_plan_lay(spec, s, &none, d); /* a sweep has no order to lay a plan out in */
    if (lies)
        return lies;
    fl_layer layer[2] = {fl_platform_layer(&s->platform, spec->policy->name), spec->layer};
    fl_draws_run run = {.draws = &w->draws[scene],
                        .facts = &facts,
                        .policy = spec->policy,
                        .label = spec->label,
                        .run = s->w->name,
                        .layer = layer,
                        .layer_count = 2};
    fl_row_result *row = &w->row[i];
    *row = (fl_row_result){.seed = o->seed + i % o->seeds, .kept = fl_must(calloc(1, sizeof *row->kept))};
    fl_watch_open(&row->kept->watch, spec->policy, facts.gpu_count);
    run.on_step = fl_watch_step;
    run.user = &row->kept->watch;
    fl_draws_result r = {0};
    const fl_status status = fl_draws_replay(&run, &r, d);
    if (status)
        return status;
    row->policy = spec->label;
    row->score.switches = r.switches;
    row->reward_regret = r.reward_regret;
    score(w, scene, r.energy_j, r.time_s, row);
    row->faults = r.faults;
    if (r.progress < 1)
        snprintf(row->note, sizeof row->note, "cut off after %llu steps: %.1f %% of the work done",
                 (unsigned long long)r.steps, 100 * r.progress);
    keep_run(w, scene, row->kept, &r);
    fl_watch_end(&row->kept->watch);
    fl_promises_judge(o->promises, o->bound, row);
    fl_draws_result_free(&r);
    return FL_OK;
}

fl_status fl_draws_compare(const fl_experiment *e, const fl_comparison_options *o, fl_comparison *c, fl_diag *d) {
    *c = (fl_comparison){0};
    const size_t n = o->scenes->count, runs = n * o->spec_count * o->seeds;
    work w = {.o = o,
              .draws = fl_must(calloc(n + 1, sizeof *w.draws)),
              .best = fl_must(calloc(n + 1, sizeof *w.best)),
              .row = fl_must(calloc(runs + 1, sizeof *w.row))};
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < n; i++)
        if (!(s = make_draws(e, o->scenes->item[i], &w.draws[i], d)))
            w.best[i] = best_static(&w, i);
    if (!s)
        s = fl_pool_run(run_one, &w, runs, o->threads, "policies", d);
    for (size_t i = 0, at = 0; !s && i < n; i++) {
        add_static(&w, i, default_name, w.draws[i].clock_count - 1, c);
        if (w.best[i] < w.draws[i].clock_count)
            add_static(&w, i, "baseline:static", w.best[i], c);
        for (size_t k = 0; k < o->spec_count * o->seeds; k++, at++) {
            if (!w.row[at].policy)
                continue;
            c->faults += w.row[at].faults;
            fl_comparison_add(c, &w.row[at]);
            w.row[at].kept = NULL; /* the comparison's now */
        }
    }
    if (!s)
        fl_comparison_means(c);
    for (size_t i = 0; i < n; i++)
        fl_draws_free(&w.draws[i]);
    free(w.draws);
    free(w.best);
    for (size_t i = 0; i < runs; i++)
        fl_row_free(&w.row[i]);
    free(w.row);
    if (s)
        fl_comparison_free(c);
    return s;
}

/* ---- cumulative regret ---- */

static bool same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

static bool together(const fl_row_result *a, const fl_row_result *b) {
    return same_text(a->workload, b->workload) && same_text(a->policy, b->policy) &&
           same_text(a->variant, b->variant) && same_text(a->platform, b->platform);
}

static void write_mark(FILE *f, const fl_row_result *r, size_t mark, const fl_interval *x) {
    char text[3][32];
    fl_csv_put(f, r->workload);
    fputc(',', f);
    fl_csv_put(f, r->policy);
    fputc(',', f);
    fl_csv_put(f, r->platform ? r->platform : "");
    fputc(',', f);
    fl_csv_put(f, r->variant ? r->variant : "");
    fprintf(f, ",%zu,%zu,%s,%s,%s\n", (mark + 1) * FL_DRAWS_MARK, x->runs, fl_cell_text(x->mean, text[0]),
            fl_cell_text(x->low, text[1]), fl_cell_text(x->high, text[2]));
}

fl_status fl_draws_write_regret(const fl_comparison *c, const char *path, uint64_t seed, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    const fl_bootstrap b = {.seed = seed, .draws = FL_DRAWS_STANDARD};
    if (!o)
        return d->status;
    double *value = fl_must(malloc((c->count + 1) * sizeof *value));
    fputs("workload,policy,platform,variant,step,runs,reward_regret,low,high\n", fl_output_file(o));
    for (size_t i = 0, end; i < c->mean_first; i = end) {
        size_t marks = SIZE_MAX;
        for (end = i; end < c->mean_first && together(&c->row[i], &c->row[end]); end++) {
            const fl_kept *kept = c->row[end].kept;
            marks = kept && kept->watch.regret_count < marks ? kept->watch.regret_count : kept ? marks : 0;
        }
        for (size_t m = 0; m < marks; m++) { /* as far as all of its runs went */
            fl_interval x;
            for (size_t k = i; k < end; k++)
                value[k - i] = c->row[k].kept->watch.regret_mark[m];
            fl_must_have(!fl_bootstrap_mean(value, 1, end - i, &b, &x, d));
            write_mark(fl_output_file(o), &c->row[i], m, &x);
        }
    }
    free(value);
    return fl_output_commit(o, d);
}
