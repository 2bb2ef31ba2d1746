#include "harness/study/trial.h"

#include "harness/base/pool.h"
#include "harness/input/scene_text.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct fl_bench_scene { /* what all policies of a scene share */
    fl_scene *s;
    fl_run_result standard;
    fl_choice *choice;
    size_t choices;
    fl_static_point *point;
    fl_oracle_table table;
    bool has_table;
    const char *inexact; /* why the table is not exact */
    fl_reference ref;
    fl_kernel_total kernel; /* best clock per kind of kernel; NANs where it was not asked for */
    fl_kept *kept;          /* of the default's run, where runs are watched: its watch alone */
} fl_bench_scene;

typedef struct fl_job_place {
    size_t scene, index;
} fl_job_place;

struct fl_trials {
    const fl_comparison_options *o;
    fl_bench_scene *scene;
    fl_job_place *place; /* of the static runs */
};

static void kept_free(fl_kept *k) {
    if (!k)
        return;
    fl_run_result_free(&k->run);
    fl_watch_free(&k->watch);
    free(k);
}

void fl_row_free(fl_row_result *row) {
    kept_free(row->kept);
    row->kept = NULL;
}

/* Of a run that has been scored: what fl_measure tells, and no more, for there may be thousands of rows. */
static void keep(fl_kept *kept, fl_run_result *r) {
    kept->run = *r;
    free(r->mark_ps);
    free(r->class_energy_j);
    free(r->class_time_s);
    fl_service_free(&r->service);
    kept->run.mark_ps = NULL;
    kept->run.class_energy_j = kept->run.class_time_s = NULL;
    kept->run.service = (fl_service){0};
    kept->run.mark_count = 0;
    fl_watch_trim(&kept->watch);
}

/* Watches a run that is about to begin, where runs are watched. */
static fl_status watch(const fl_trials *w, fl_kept **kept, fl_run_options *run, fl_diag *d) {
    if (!w->o->watch_ns)
        return FL_OK;
    if (!(*kept = calloc(1, sizeof **kept)))
        return fl_no_memory(d, "the comparison");
    run->on_step = fl_watch_step;
    run->on_truth = fl_watch_truth;
    run->truth_ns = w->o->watch_ns;
    run->user = &(*kept)->watch;
    return fl_watch_open(&(*kept)->watch, run->policy, run->spec->gpu_count, d);
}

static fl_status run_standard(void *user, size_t i, fl_diag *d) {
    fl_trials *w = user;
    fl_scene *s = w->scene[i].s;
    fl_run_options run = {.w = s->w, .rates = s->rates, .spec = &s->platform.node, .facts = &s->facts};
    fl_status status = watch(w, &w->scene[i].kept, &run, d);
    if (!status)
        status = fl_run(&run, &w->scene[i].standard, d);
    if (status || !w->o->oracles || w->o->only_static)
        return status;
    w->scene[i].inexact = fl_oracle_inexact(s->w, s->rates, &s->platform.node);
    return fl_oracle_choices(s->w, &s->platform.node, &w->scene[i].choice, &w->scene[i].choices, d);
}

static fl_status run_static(void *user, size_t i, fl_diag *d) {
    fl_trials *w = user;
    fl_bench_scene *b = &w->scene[w->place[i].scene];
    size_t k = w->place[i].index;
    return fl_static_run(b->s->w, b->s->rates, &b->s->platform.node, &b->s->facts, &b->choice[k], &b->point[k], d);
}

/* One point, the best: the others are not known. */
static fl_status solve_static(const fl_trials *w, fl_bench_scene *b, fl_diag *d) {
    const fl_scene *s = b->s;
    bool found = false;
    fl_status status = fl_static_search(s->w, s->rates, &s->platform.node, &s->facts, w->o->objective,
                                        fl_limit_ps(b->standard.makespan_ps, w->o->bound), b->point, &found, d);
    b->choices = b->ref.point_count = found;
    return status ? status : fl_reference_solve(&b->ref, d);
}

static fl_status solve(void *user, size_t i, fl_diag *d) {
    fl_trials *w = user;
    fl_bench_scene *b = &w->scene[i];
    fl_scene *s = b->s;
    b->ref = (fl_reference){.w = s->w,
                            .standard = &b->standard,
                            .point = b->point,
                            .point_count = b->choices,
                            .objective = w->o->objective,
                            .bound = w->o->bound};
    b->kernel.energy_j = b->kernel.time_s = NAN;
    if (!w->o->oracles)
        return FL_OK;
    if (w->o->only_static)
        return solve_static(w, b, d);
    fl_status status = !b->inexact
                           ? fl_oracle_table_make(s->w, s->rates, &s->platform.node, w->o->positions, &b->table, d)
                           : fl_oracle_table_static(b->point, b->choices, &b->table, d);
    if (status)
        return status;
    if (!b->inexact) /* the static runs themselves, to the femtojoule (tests/test_oracle.c) */
        fl_oracle_table_points(&b->table, b->point);
    b->has_table = true;
    b->ref.table = &b->table;
    b->choices = b->ref.point_count = fl_risk_keep(b->s, w->o->bound, w->o->risk, b->point, b->choices);
    status = fl_reference_solve(&b->ref, d);
    if (!status && b->table.exact) {
        fl_kernel_choice *choice = calloc(s->w->class_count + 1, sizeof *choice);
        status = choice ? fl_oracle_per_kernel(s->w, s->rates, &s->platform.node, w->o->objective, w->o->bound, choice,
                                               &b->kernel, d)
                        : fl_no_memory(d, "the comparison");
        free(choice);
        if (!status)
            fl_reference_offer(&b->ref, b->kernel.energy_j, b->kernel.time_s, b->kernel.time_ps);
    }
    return status;
}

static void fill_latency(fl_row_result *row, fl_times latency, double load) {
    const bool any = latency.count > 0;
    row->latency = any ? latency : fl_times_of(NULL, 0);
    row->offered_load = any ? load : (double)NAN;
    row->overloaded = any && fl_service_overloaded(latency.count, load);
    row->energy_per_request_j = any ? row->score.energy_j / (double)latency.count : (double)NAN;
}

static void fill_row(const fl_trials *w, const fl_bench_scene *b, const fl_run_result *run, const char *policy,
                     fl_row_result *row) {
    row->workload = b->s->w->name;
    row->policy = policy;
    row->variant = b->s->variant;
    row->platform = b->s->platform.name;
    row->draw = b->s->applications;
    row->energy_saving_pct = 100 * (1 - row->score.energy_j / b->standard.energy_j);
    row->node_energy_j = run ? run->node_energy_j : NAN;
    row->policy_cost_s = run ? fl_seconds(run->policy_cost_ps) : NAN;
    bool solved = b->has_table && b->table.exact && b->ref.clairvoyant.feasible;
    row->oracle_j = solved ? b->ref.clairvoyant.energy_j : NAN;
    row->oracle_bound_j = solved && w->o->objective == FL_MIN_ENERGY ? b->ref.clairvoyant.bound_j : NAN;
    row->oracle_gap_pct = solved ? b->ref.clairvoyant.gap_pct : NAN;
    row->violated = row->score.violated;
    row->reward_regret = row->bound_break_chance = row->expected_regret = NAN;
    fill_latency(row, run->service.latency, run->service.load);
    if (w->o->oracles && b->has_table && !b->table.exact)
        snprintf(row->note, sizeof row->note, "%s: no clairvoyant bound", b->inexact);
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
        snprintf(row->note, sizeof row->note, "%.1f %% of the time extrapolated, outside %g to %g MHz",
                 100 * outside / all, ceil(s->w->sm_min_mhz), floor(s->w->sm_max_mhz));
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

size_t fl_trials_count(const fl_comparison_options *o) { return o->scenes->count * o->spec_count * o->seeds; }

fl_status fl_trials_run(fl_trials *w, size_t i, fl_row_result *row, fl_diag *d) {
    const fl_comparison_options *o = w->o;
    fl_bench_scene *b = &w->scene[i / (o->spec_count * o->seeds)];
    const fl_spec *spec = &o->spec[i / o->seeds % o->spec_count];
    *row = (fl_row_result){0};
    if (!fl_spec_is_for(spec, b->s))
        return FL_OK;
    fl_facts facts = b->s->facts; /* the same machine under another seed */
    facts.seed = o->seed + b->s->draw + i % o->seeds;
    fl_layer layer[2] = {fl_platform_layer(&b->s->platform, spec->policy->name), spec->layer};
    fl_run_options run = {.w = b->s->w,
                          .rates = b->s->rates,
                          .spec = &b->s->platform.node,
                          .facts = &facts,
                          .policy = spec->policy,
                          .records_free = spec->twin_of != NULL,
                          .layer = layer,
                          .layer_count = 2};
    fl_run_result r;
    fl_kept *kept = NULL;
    fl_status status = watch(w, &kept, &run, d);
    if (!status)
        status = fl_run(&run, &r, d);
    if (status) {
        kept_free(kept);
        return status;
    }
    status = fl_score_run(&r, &b->ref, &row->score, d);
    fill_row(w, b, &r, spec->label, row);
    row->seed = facts.seed;
    row->twin_of = spec->twin_of;
    if (fl_spec_records(spec))
        row->records = spec->twin_of || !(b->s->platform.node.device[0].records_slowdown > 0) ? "free" : "cost";
    note_outside(b->s, &r, row);
    row->ignored_sets = r.ignored_sets;
    row->unstepped = fl_spec_unstepped(spec, r.counts.steps);
    row->faults = r.counts.faults;
    if ((row->kept = kept))
        keep(kept, &r);
    else
        fl_run_result_free(&r);
    return status;
}

/* The row of something that was not run as a policy: a static clock or a schedule, scored by its energy and time. */
static fl_status add_reference(const fl_trials *w, const fl_bench_scene *b, const char *name, double energy_j,
                               double time_s, int64_t makespan_ps, fl_row_result *rows, size_t *count, fl_diag *d) {
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
    return status;
}

/* The best static choice, and its clocks. */
static fl_status add_static(const fl_trials *w, const fl_bench_scene *b, fl_row_result *rows, size_t *count,
                            fl_diag *d) {
    const fl_static_point *p = &b->point[b->ref.best_static];
    const fl_device *dev = &b->s->platform.node.device[b->s->platform.node.gpu[0]];
    fl_status s = add_reference(w, b, "baseline:static", fl_joules(p->energy_fj), fl_seconds(p->makespan_ps),
                                p->makespan_ps, rows, count, d);
    if (s)
        return s;
    fl_row_result *row = &rows[*count - 1];
    fl_clocks_text(dev, p->at.sm_mhz, p->at.mem_mhz, row->note, sizeof row->note);
    fill_latency(row, p->latency, p->load);
    if (!(row->kept = calloc(1, sizeof *row->kept)))
        return fl_no_memory(d, "the comparison");
    row->kept->run.last_sm_mhz = p->at.sm_mhz;
    row->kept->run.last_mem_mhz = p->at.mem_mhz;
    row->kept->run.last_cpu_mhz = NAN;
    const fl_risk risk = fl_risk_at(b->s, &p->at, w->o->bound, w->o->objective);
    row->bound_break_chance = risk.chance;
    row->expected_regret = risk.regret;
    return FL_OK;
}

fl_status fl_trials_baselines(fl_trials *w, size_t scene, fl_row_result row[FL_BASELINES], size_t *count, fl_diag *d) {
    fl_bench_scene *b = &w->scene[scene];
    *count = 1;
    row[0] = (fl_row_result){.seed = w->o->seed + b->s->draw};
    fl_status s = fl_score_run(&b->standard, &b->ref, &row[0].score, d);
    fill_row(w, b, &b->standard, "baseline:default", &row[0]);
    if ((row[0].kept = b->kept)) { /* handed over; what the scores of policies need of it stays */
        fl_run_result all = b->standard;
        b->standard = (fl_run_result){.makespan_ps = all.makespan_ps,
                                      .energy_j = all.energy_j,
                                      .makespan_s = all.makespan_s,
                                      .mark_ps = all.mark_ps,
                                      .mark_count = all.mark_count};
        all.mark_ps = NULL;
        keep(b->kept, &all);
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
        snprintf(row[*count - 1].note, sizeof row->note, "certified: nothing is more than %.2g %% better",
                 b->ref.clairvoyant.gap_pct);
    for (size_t i = 0; s && i < *count; i++)
        fl_row_free(&row[i]);
    return s;
}

fl_status fl_trials_open(fl_trials **out, const fl_comparison_options *o, fl_diag *d) {
    const size_t n = o->scenes->count;
    size_t statics = 0;
    fl_trials *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w)
        return fl_no_memory(d, "the comparison");
    w->o = o;
    w->scene = calloc(n + 1, sizeof *w->scene);
    fl_status s = w->scene ? FL_OK : fl_no_memory(d, "the comparison");
    for (size_t i = 0; !s && i < n; i++)
        w->scene[i].s = o->scenes->item[i];
    if (!s)
        s = fl_pool_run(run_standard, w, n, o->threads, "defaults", d);
    for (size_t i = 0; !s && i < n; i++) {
        statics += w->scene[i].inexact ? w->scene[i].choices : 0;
        w->scene[i].point = calloc(w->scene[i].choices + 1, sizeof *w->scene[i].point);
        s = w->scene[i].point ? FL_OK : fl_no_memory(d, "the comparison");
    }
    w->place = s ? NULL : calloc(statics + 1, sizeof *w->place);
    if (!s && !w->place)
        s = fl_no_memory(d, "the comparison");
    for (size_t i = 0, at = 0; !s && i < n; i++)
        for (size_t k = 0; w->scene[i].inexact && k < w->scene[i].choices; k++)
            w->place[at++] = (fl_job_place){i, k};
    if (!s)
        s = fl_pool_run(run_static, w, statics, o->threads, "static clocks", d);
    if (!s)
        s = fl_pool_run(solve, w, n, o->threads, "oracles", d);
    if (s)
        fl_trials_close(w);
    else
        *out = w;
    return s;
}

void fl_trials_close(fl_trials *w) {
    for (size_t i = 0; w && w->scene && i < w->o->scenes->count; i++) {
        fl_run_result_free(&w->scene[i].standard);
        fl_oracle_table_free(&w->scene[i].table);
        free(w->scene[i].choice);
        free(w->scene[i].point);
        kept_free(w->scene[i].kept);
    }
    if (w) {
        free(w->scene);
        free(w->place);
    }
    free(w);
}
