/* Runs policies over scenes and scores them. */
#include "harness/study/trial/inside.h"

#include "harness/base/work/work.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "harness/study/trial/trial.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/oracle/oracle.h"
#include "sim/serving/serving.h"
#include "traces/io/io.h"

#include <fnmatch.h>
#include <malloc.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

struct fl_trials {
    const fl_comparison_options *o;
    fl_solved *scene;
};

static bool promised(const fl_trials *w) { return w->o->promises && w->o->promises->count; }

/* Time and energy do not tell all that is asked of a static clock: each is a run of its own, kept as a row. */
static bool has_rows(const fl_trials *w, const fl_solved *b) { return promised(w) || b->s->serving; }

static fl_status run_standard(fl_trials *w, size_t i, fl_diag *d) {
    fl_scene *s = w->scene[i].s;
    fl_run_options run = {
        .w = s->w, .rates = s->rates, .spec = &s->platform.node, .facts = &s->facts, .target = fl_scene_target(s)};
    fl_kept_watch(&w->scene[i].kept, w->o->watch_ns, &run);
    const fl_status status = fl_run(&run, &w->scene[i].standard, d);
    if (status || !w->o->oracles || (w->o->only_static && !has_rows(w, &w->scene[i])))
        return status;
    w->scene[i].inexact = fl_oracle_inexact(s->w, s->rates, &s->platform.node);
    return fl_oracle_choices(s->w, &s->platform.node, &w->scene[i].choice, &w->scene[i].choices, d);
}

static fl_status run_static(fl_trials *w, size_t i, size_t k, fl_diag *d) {
    fl_solved *b = &w->scene[i];
    const fl_promised_under under = {w->o->promises, w->o->bound, w->o->watch_ns, w->o->objective};
    if (has_rows(w, b))
        return fl_static_promised(b->s, &b->standard, &under, &b->choice[k], &b->point[k], &b->promised[k], d);
    return fl_static_run(b->s->w, b->s->rates, &b->s->platform.node, &b->s->facts, &b->choice[k], &b->point[k], d);
}

/* One point, the best: the others are not known. */
static fl_status solve_static(const fl_trials *w, fl_solved *b, fl_diag *d) {
    const fl_scene *s = b->s;
    bool found = false;
    fl_status status = fl_static_search(s->w, s->rates, &s->platform.node, &s->facts, w->o->objective,
                                        fl_limit_ps(b->standard.makespan_ps, w->o->bound), b->point, &found, d);
    b->choices = b->ref.point_count = found;
    return status ? status : fl_reference_solve(&b->ref, d);
}

static fl_status judge_clairvoyant(const fl_trials *w, fl_solved *b, fl_diag *d);

static fl_status solve_promised(fl_solved *b, fl_diag *d) {
    b->choices = b->ref.point_count = fl_static_keep(b->promised, b->point, b->choices);
    return fl_reference_solve(&b->ref, d);
}

static fl_status bound_served(fl_solved *b, fl_diag *d) {
    fl_serving_bound bound;
    if (!b->s->w->serving)
        return FL_OK;
    const fl_status s = fl_serving_bound_of(b->s->w, b->s->rates, &b->s->platform.node, &bound, d);
    b->served_least_j = bound.energy_j;
    return s;
}

static fl_status solve(fl_trials *w, size_t i, fl_diag *d) {
    fl_solved *b = &w->scene[i];
    fl_scene *s = b->s;
    b->ref = (fl_reference){.w = s->w,
                            .standard = &b->standard,
                            .point = b->point,
                            .point_count = b->choices,
                            .objective = w->o->objective,
                            .bound = w->o->bound};
    b->kernel.energy_j = b->kernel.time_s = NAN;
    b->served_least_j = NAN;
    if (!w->o->oracles)
        return FL_OK;
    fl_status least = bound_served(b, d);
    if (least)
        return least;
    if (w->o->only_static)
        return has_rows(w, b) ? solve_promised(b, d) : solve_static(w, b, d);
    fl_status status = !b->inexact
                           ? fl_oracle_table_make(s->w, s->rates, &s->platform.node, w->o->positions, &b->table, d)
                           : fl_oracle_table_static(b->point, b->choices, &b->table, d);
    if (status)
        return status;
    if (!b->inexact) /* the static runs themselves, to the femtojoule (tests/sim/test_oracle.c) */
        fl_oracle_table_points(&b->table, b->point);
    b->has_table = true;
    b->ref.table = &b->table;
    if (b->promised)
        b->choices = fl_static_keep(b->promised, b->point, b->choices);
    b->choices = b->ref.point_count = fl_risk_keep(b->s, w->o->bound, w->o->risk, b->point, b->choices);
    status = fl_reference_solve(&b->ref, d);
    if (!status && b->table.exact) {
        fl_kernel_choice *choice = fl_must(calloc(s->w->class_count + 1, sizeof *choice));
        status = fl_oracle_per_kernel(s->w, s->rates, &s->platform.node, w->o->objective, w->o->bound, &b->table,
                                      choice, &b->kernel, d);
        free(choice);
        if (!status && !promised(w)) /* which it may break */
            fl_reference_offer(&b->ref, b->kernel.energy_j, b->kernel.time_s, b->kernel.time_ps);
    }
    return status ? status : judge_clairvoyant(w, b, d);
}

static void fill_row(const fl_trials *w, const fl_solved *b, const fl_run_result *run, const char *policy,
                     fl_row_result *row) {
    fl_row_fill(row, b->s, run, policy, b->standard.energy_j);
    bool solved = b->has_table && b->table.exact && b->ref.clairvoyant.feasible;
    row->oracle_j = solved ? b->ref.clairvoyant.energy_j : NAN;
    row->oracle_bound_j = w->o->objective != FL_MIN_ENERGY ? (double)NAN
                          : solved                         ? b->ref.clairvoyant.bound_j
                                                           : b->served_least_j;
    row->saving_most_pct = 100 * (1 - b->served_least_j / b->standard.energy_j);
    row->oracle_gap_pct = solved ? b->ref.clairvoyant.gap_pct : NAN;
    row->oracle_objective = solved ? b->ref.clairvoyant.objective : NAN;
    row->oracle_objective_bound = solved ? b->ref.clairvoyant.objective_bound : NAN;
    if (b->ref.best_static < b->choices)
        row->saving_static_pct = 100 * (1 - row->score.energy_j / fl_joules(b->point[b->ref.best_static].energy_fj));
    fl_row_finish(row, w->o->objective,
                  fl_objective_value(w->o->objective, b->standard.energy_j, b->standard.makespan_s));
    if (w->o->oracles && b->has_table && !b->table.exact)
        snprintf(row->note, sizeof row->note, "%s: no clairvoyant bound", b->inexact);
}

/* Behind what the row says already, as far as there is room. */
__attribute__((format(printf, 2, 3))) static void add_note(fl_row_result *row, const char *format, ...) {
    const size_t used = strlen(row->note), left = sizeof row->note - used;
    va_list arguments;
    va_start(arguments, format);
    if (left > 2) {
        snprintf(row->note + used, left, "%s", used ? "; " : "");
        vsnprintf(row->note + strlen(row->note), sizeof row->note - strlen(row->note), format, arguments);
    }
    va_end(arguments);
}

/* The clairvoyant schedule is bounded in time alone: where it breaks a promise, nobody is held against it. */
static void judge(const fl_trials *w, const fl_solved *b, fl_row_result *row) {
    fl_promises_judge(w->o->promises, w->o->bound, row);
    if (promised(w) && !b->kept_word)
        row->score.regret_clairvoyant_j = row->score.regret_clairvoyant_pct = NAN;
    fl_row_count_regrets(row);
}

/* A policy may go where the model was only extrapolated: its row says for how long. */
static void note_outside(const fl_scene *s, const fl_run_result *r, fl_row_result *row) {
    double outside = 0, all = 0;
    for (size_t i = 0; s->w->predicted && i < r->residence_count; i++) {
        const fl_residence *at = &r->residence[i];
        all += (double)at->ps;
        outside += at->sm_mhz < s->w->sm_min_mhz || at->sm_mhz > s->w->sm_max_mhz ? (double)at->ps : 0;
    }
    if (outside > 0)
        add_note(row, "%.1f %% of the time extrapolated, outside %g to %g MHz", 100 * outside / all,
                 ceil(s->w->sm_min_mhz), floor(s->w->sm_max_mhz));
}

/* The name of a workload ends in its variant, which a pattern does not name. */
bool fl_workload_matches(const char *workload, const char *variant, const char *pattern) {
    char name[512];
    const size_t size = strlen(workload) - (variant ? strlen(variant) + 3 : 0);
    if (size >= sizeof name)
        return !strcmp(pattern, "*");
    memcpy(name, workload, size);
    name[size] = 0;
    return !fnmatch(pattern, name, 0);
}

bool fl_spec_is_for(const fl_spec *spec, const fl_scene *s) {
    bool is = !spec->only.count;
    for (size_t i = 0; !is && i < spec->only.count; i++)
        is = fl_workload_matches(s->w->name, s->variant, spec->only.item[i]);
    return is;
}

const fl_solved *fl_trials_solved(const fl_trials *w, size_t scene) { return &w->scene[scene]; }

size_t fl_trials_count(const fl_comparison_options *o) { return o->scenes->count * o->spec_count * o->seeds; }

fl_status fl_trials_run(fl_trials *w, size_t i, fl_row_result *row, fl_diag *d) {
    const fl_comparison_options *o = w->o;
    fl_solved *b = &w->scene[i / (o->spec_count * o->seeds)];
    const fl_spec *spec = &o->spec[i / o->seeds % o->spec_count];
    *row = (fl_row_result){0};
    if (!fl_spec_is_for(spec, b->s))
        return FL_OK;
    fl_facts facts = b->s->facts; /* the same machine under another seed */
    facts.seed = o->seed + b->s->draw + i % o->seeds;
    facts.bound = isfinite(o->bound) ? o->bound : 0;
    fl_laid laid;
    fl_status status = fl_plan_lay(spec, b->s, &laid, d);
    fl_layer layer[] = {fl_platform_layer(&b->s->platform, spec->policy->name), spec->layer, laid.layer};
    fl_run_options run = {.w = b->s->w,
                          .rates = b->s->rates,
                          .spec = &b->s->platform.node,
                          .facts = &facts,
                          .policy = spec->policy,
                          .label = spec->label,
                          .target = fl_scene_target(b->s),
                          .records_free = spec->twin_of != NULL,
                          .layer = layer,
                          .layer_count = FL_COUNT(layer)};
    fl_run_result r;
    fl_kept *kept = NULL;
    fl_kept_watch(&kept, w->o->watch_ns, &run);
    if (!status)
        status = fl_run(&run, &r, d);
    fl_laid_free(&laid);
    if (status) {
        fl_kept_free(kept);
        return status;
    }
    status = fl_score_run(&r, &b->ref, &row->score, d);
    fill_row(w, b, &r, spec->label, row);
    fl_row_fill_target(row, b->s, &r);
    row->seed = facts.seed;
    row->twin_of = spec->twin_of;
    if (fl_spec_records(spec))
        row->records = spec->twin_of || !fl_device_records_cost(&b->s->platform.node.device[0]) ? "free" : "cost";
    note_outside(b->s, &r, row);
    row->ignored_sets = r.ignored_sets;
    row->unstepped = fl_spec_unstepped(spec, r.counts.steps);
    if (row->unstepped)
        add_note(row, "ended before the policy looked a second time");
    row->faults = r.counts.faults;
    if ((row->kept = kept))
        fl_kept_take(kept, &r);
    else
        fl_run_result_free(&r);
    judge(w, b, row);
    if (status)
        fl_row_free(row);
    return status;
}

/* The row of something that was not run as a policy: a static clock or a schedule, scored by its energy and time. */
static fl_status add_reference(const fl_trials *w, const fl_solved *b, const char *name, double energy_j, double time_s,
                               int64_t makespan_ps, fl_row_result *rows, size_t *count, fl_diag *d) {
    if (!isfinite(energy_j) || !isfinite(time_s))
        return FL_OK;
    fl_run_result r = {.makespan_ps = makespan_ps,
                       .energy_j = energy_j,
                       .gpu_energy_j = energy_j,
                       .node_energy_j = energy_j + b->s->platform.node.host.static_w * time_s,
                       .makespan_s = time_s,
                       .mean_power_w = energy_j / time_s,
                       .peak_power_w = NAN};
    fl_row_result *row = &rows[(*count)++];
    *row = (fl_row_result){.seed = w->o->seed + b->s->draw};
    fl_status status = fl_score_run(&r, &b->ref, &row->score, d);
    fill_row(w, b, &r, name, row);
    row->policy_cost_s = NAN;
    row->score.worst_window_slowdown = NAN;
    if (promised(w) && !row->note[0])
        snprintf(row->note, sizeof row->note, "bounded in time alone");
    return status;
}

/* Whether the schedule that was bounded in time alone holds what else was promised, as far as it is known. */
static fl_status judge_clairvoyant(const fl_trials *w, fl_solved *b, fl_diag *d) {
    fl_row_result row[1];
    size_t count = 0;
    const fl_oracle_result *c = &b->ref.clairvoyant;
    if (!promised(w) || !b->table.exact || !c->feasible)
        return FL_OK;
    fl_status s = add_reference(w, b, "baseline:clairvoyant", c->energy_j, c->time_s, c->time_ps, row, &count, d);
    if (count)
        fl_promises_judge(w->o->promises, w->o->bound, row);
    b->kept_word = count && !(row->violated > 0);
    return s;
}

/* What only its run tells of the best static clock. */
static void take_promised(const fl_solved *b, fl_row_result *row) {
    const fl_static_point *p = &b->point[b->ref.best_static];
    size_t k = 0;
    while (b->choice[k].sm != p->at.sm || b->choice[k].mem != p->at.mem || b->choice[k].decode_mhz != p->at.decode_mhz)
        k++;
    fl_row_result *run = &b->promised[k];
    row->score.worst_window_slowdown = run->score.worst_window_slowdown;
    row->score.peak_power_w = run->score.peak_power_w;
    row->node_energy_j = run->node_energy_j;
    row->policy_cost_s = run->policy_cost_s;
    if (b->s->serving)
        fl_row_take_served(row, run);
    if (run->kept) {
        fl_kept_free(row->kept);
        row->kept = run->kept;
        run->kept = NULL;
    }
}

/* The best static choice, and its clocks. */
static fl_status add_static(const fl_trials *w, const fl_solved *b, fl_row_result *rows, size_t *count, fl_diag *d) {
    const fl_static_point *p = &b->point[b->ref.best_static];
    const fl_device *dev = &b->s->platform.node.device[b->s->platform.node.gpu[0]];
    fl_status s = add_reference(w, b, "baseline:static", fl_joules(p->energy_fj), fl_seconds(p->makespan_ps),
                                p->makespan_ps, rows, count, d);
    if (s)
        return s;
    fl_row_result *row = &rows[*count - 1];
    fl_clocks_text(dev, p->at.sm_mhz, p->at.mem_mhz, row->note, sizeof row->note);
    fl_row_clock(row, p->at.sm_mhz, dev->mem_count > 1 ? p->at.mem_mhz : 0, p->at.decode_mhz);
    if (p->at.decode_mhz > 0) {
        const size_t used = strlen(row->note);
        snprintf(row->note + used, sizeof row->note - used, ", decode %g MHz", p->at.decode_mhz);
    }
    fl_row_fill_latency(row, p->latency, p->load);
    row->kept = fl_must(calloc(1, sizeof *row->kept));
    row->kept->run.last_sm_mhz = p->at.sm_mhz;
    row->kept->run.last_mem_mhz = p->at.mem_mhz;
    row->kept->run.last_cpu_mhz = NAN;
    if (b->promised)
        take_promised(b, row);
    const fl_risk risk = fl_risk_at(b->s, &p->at, w->o->bound, w->o->objective);
    row->bound_break_chance = risk.chance;
    row->expected_regret = risk.regret;
    return FL_OK;
}

fl_status fl_trials_baselines(fl_trials *w, size_t scene, fl_row_result row[FL_BASELINES], size_t *count, fl_diag *d) {
    fl_solved *b = &w->scene[scene];
    *count = 1;
    row[0] = (fl_row_result){.seed = w->o->seed + b->s->draw};
    fl_status s = fl_score_run(&b->standard, &b->ref, &row[0].score, d);
    fill_row(w, b, &b->standard, "baseline:default", &row[0]);
    fl_row_fill_target(&row[0], b->s, &b->standard);
    if ((row[0].kept = b->kept)) { /* handed over; what the scores of policies need of it stays */
        fl_run_result all = b->standard;
        b->standard = (fl_run_result){.makespan_ps = all.makespan_ps,
                                      .energy_j = all.energy_j,
                                      .makespan_s = all.makespan_s,
                                      .mark_ps = all.mark_ps,
                                      .mark_count = all.mark_count};
        all.mark_ps = NULL;
        fl_kept_take(b->kept, &all);
        b->kept = NULL;
    }
    if (!s && w->o->oracles && b->ref.best_static < b->choices)
        s = add_static(w, b, row, count, d);
    if (!s)
        s = add_reference(w, b, "baseline:per-kernel", b->kernel.energy_j, b->kernel.time_s, b->kernel.time_ps, row,
                          count, d);
    if (!s && b->has_table && b->table.exact && b->ref.clairvoyant.feasible)
        s = add_reference(w, b, "baseline:clairvoyant", b->ref.clairvoyant.energy_j, b->ref.clairvoyant.time_s,
                          b->ref.clairvoyant.time_ps, row, count, d);
    if (!s && !strcmp(row[*count - 1].policy, "baseline:clairvoyant"))
        add_note(&row[*count - 1], "certified: nothing is more than %.2g %% better", b->ref.clairvoyant.gap_pct);
    for (size_t i = 0; i < *count; i++)
        judge(w, b, &row[i]);
    for (size_t i = 0; s && i < *count; i++)
        fl_row_free(&row[i]);
    return s;
}

/* ---- scene by scene ---- */

#define TABLES_PER_THREAD (INT64_C(32) << 20) /* bytes: a table of some ten million kernels at one clock */

fl_trials *fl_trials_new(const fl_comparison_options *o) {
    fl_trials *w = fl_must(calloc(1, sizeof *w));
    w->o = o;
    if (o->scenes->count > fl_threads(o->threads)) /* they are built in turn, so that memory stays small */
        fl_run_tables_most(TABLES_PER_THREAD * (int64_t)fl_threads(o->threads));
    w->scene = fl_must(calloc(o->scenes->count + 1, sizeof *w->scene));
    for (size_t i = 0; i < o->scenes->count; i++)
        w->scene[i].s = o->scenes->item[i];
    return w;
}

/* Room for what is known of the static clocks. */
static void make_points(const fl_trials *w, fl_solved *b) {
    b->choice_count = b->choices;
    b->point = fl_must(calloc(b->choices + 1, sizeof *b->point));
    b->promised = has_rows(w, b) && b->choices ? fl_must(calloc(b->choices, sizeof *b->promised)) : NULL;
}

size_t fl_trials_jobs(const fl_trials *w, size_t scene, fl_trials_stage stage) {
    const fl_solved *b = &w->scene[scene];
    return stage != FL_TRIALS_STATIC ? 1 : b->inexact || has_rows(w, b) ? b->choices : 0;
}

fl_status fl_trials_prepare(fl_trials *w, size_t scene, fl_trials_stage stage, size_t job, fl_diag *d) {
    fl_solved *b = &w->scene[scene];
    fl_status s;
    switch (stage) {
    case FL_TRIALS_BUILD:
        return fl_scene_build(b->s, d);
    case FL_TRIALS_STANDARD:
        s = run_standard(w, scene, d);
        if (!s)
            make_points(w, b);
        return s;
    case FL_TRIALS_STATIC:
        return run_static(w, scene, job, d);
    default:
        return solve(w, scene, d);
    }
}

void fl_trials_forget(fl_trials *w, size_t scene) {
    fl_solved *b = &w->scene[scene];
    for (size_t k = 0; b->promised && k < b->choice_count; k++)
        fl_row_free(&b->promised[k]);
    free(b->promised);
    fl_run_result_free(&b->standard);
    fl_oracle_table_free(&b->table);
    free(b->choice);
    free(b->point);
    fl_kept_free(b->kept);
    fl_scene_give_back(b->s);
    *b = (fl_solved){.s = b->s};
#ifdef __GLIBC__
    malloc_trim(0); /* of 60 MB of heap after three short draws 40 were free, between rows that stay */
#endif
}

void fl_trials_close(fl_trials *w) {
    for (size_t i = 0; w && i < w->o->scenes->count; i++)
        fl_trials_forget(w, i);
    if (w)
        free(w->scene);
    free(w);
}

enum { SCENE = 1000 }; /* parts of a scene's work, in the progress that is shown */

typedef struct opening {
    fl_trials *trials;
    fl_stage told;
} opening;

static size_t jobs_to_open(void *user, size_t scene, size_t stage) {
    return stage < FL_TRIALS_READY ? fl_trials_jobs(((opening *)user)->trials, scene, (fl_trials_stage)stage)
                                   : FL_TURNS_OVER;
}

/* Almost all of the work is in the static clocks, where they are runs. */
static fl_status run_to_open(void *user, size_t scene, size_t stage, size_t job, fl_diag *d) {
    opening *o = user;
    const size_t runs = stage < FL_TRIALS_STATIC ? 0 : fl_trials_jobs(o->trials, scene, FL_TRIALS_STATIC);
    const fl_status s = fl_trials_prepare(o->trials, scene, (fl_trials_stage)stage, job, d);
    if (stage == FL_TRIALS_STATIC)
        fl_stage_add(o->told, SCENE / runs);
    else if (stage + 1 == FL_TRIALS_READY && !runs)
        fl_stage_add(o->told, SCENE);
    return s;
}

fl_status fl_trials_open(fl_trials **out, const fl_comparison_options *o, fl_diag *d) {
    const size_t n = o->scenes->count;
    opening open = {.trials = *out = fl_trials_new(o), .told = fl_stage_begin("baselines", n * SCENE)};
    const fl_turns all = {jobs_to_open, run_to_open, &open, n, n ? n : 1};
    const fl_status s = fl_turns_run(&all, o->threads, d);
    fl_stage_end(open.told);
    if (s) {
        fl_trials_close(*out);
        *out = NULL;
    }
    return s;
}
