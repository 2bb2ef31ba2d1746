#include "harness/comparison.h"

#include "harness/pool.h"

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
    double kernel_j, kernel_s; /* best clock per kind of kernel */
} fl_bench_scene;

typedef struct fl_job_place {
    size_t scene, index;
} fl_job_place;

typedef struct fl_work {
    const fl_comparison_options *o;
    fl_bench_scene *scene;
    fl_job_place *place; /* of the static runs */
    fl_row_result *row;  /* of the policies' runs */
    uint64_t *ignored, *faults;
    fl_kept **kept; /* of the defaults, then of the policies' runs; NULL entries: not watched */
} fl_work;

static void fl_kept_free(fl_kept *k) {
    fl_run_result_free(&k->run);
    fl_watch_free(&k->watch);
    free(k);
}

static fl_status no_memory(fl_diag *d) {
    return fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory for the comparison");
}

/* Watches a run that is about to begin, where runs are watched. */
static fl_status watch(const fl_work *w, size_t i, fl_run_options *run, fl_diag *d) {
    if (!w->o->watch_ns)
        return FL_OK;
    if (!(w->kept[i] = calloc(1, sizeof **w->kept)))
        return no_memory(d);
    run->on_step = fl_watch_step;
    run->on_truth = fl_watch_truth;
    run->truth_ns = w->o->watch_ns;
    run->user = &w->kept[i]->watch;
    return fl_watch_open(&w->kept[i]->watch, run->policy, run->spec->gpu_count, d);
}

static fl_status run_standard(void *user, size_t i, fl_diag *d) {
    fl_work *w = user;
    fl_scene *s = w->scene[i].s;
    fl_run_options run = {.w = s->w, .rates = s->rates, .spec = &s->platform.node, .facts = &s->facts};
    fl_status status = watch(w, i, &run, d);
    if (!status)
        status = fl_run(&run, &w->scene[i].standard, d);
    if (!status && w->o->oracles)
        w->scene[i].inexact = fl_oracle_inexact(s->w, s->rates, &s->platform.node);
    if (!status && w->o->oracles)
        status = fl_oracle_choices(s->w, &s->platform.node, &w->scene[i].choice, &w->scene[i].choices, d);
    return status;
}

static fl_status run_static(void *user, size_t i, fl_diag *d) {
    fl_work *w = user;
    fl_bench_scene *b = &w->scene[w->place[i].scene];
    size_t k = w->place[i].index;
    return fl_static_run(b->s->w, b->s->rates, &b->s->platform.node, &b->s->facts, &b->choice[k], &b->point[k], d);
}

/* Where the table is exact, the sums of its columns are the static runs, to the femtojoule (tests/test_oracle.c). */
static void sum_columns(fl_bench_scene *b) {
    for (size_t c = 0; c < b->table.choices; c++) {
        fl_static_point *p = &b->point[c];
        *p = (fl_static_point){.at = b->table.choice[c]};
        for (size_t i = 0; i < b->table.positions; i++) {
            p->makespan_ps += b->table.time_ps[i * b->table.choices + c];
            p->energy_fj += b->table.energy_fj[i * b->table.choices + c];
        }
    }
}

static fl_status solve(void *user, size_t i, fl_diag *d) {
    fl_work *w = user;
    fl_bench_scene *b = &w->scene[i];
    fl_scene *s = b->s;
    b->ref = (fl_reference){.w = s->w,
                            .standard = &b->standard,
                            .point = b->point,
                            .point_count = b->choices,
                            .objective = w->o->objective,
                            .bound = w->o->bound};
    b->kernel_j = b->kernel_s = NAN;
    if (!w->o->oracles)
        return FL_OK;
    fl_status status = !b->inexact
                           ? fl_oracle_table_make(s->w, s->rates, &s->platform.node, w->o->positions, &b->table, d)
                           : fl_oracle_table_static(b->point, b->choices, &b->table, d);
    if (status)
        return status;
    if (!b->inexact)
        sum_columns(b);
    b->has_table = true;
    b->ref.table = &b->table;
    status = fl_reference_solve(&b->ref, d);
    if (!status && b->table.exact) {
        fl_kernel_choice *choice = calloc(s->w->class_count + 1, sizeof *choice);
        status = choice ? fl_oracle_per_kernel(s->w, s->rates, &s->platform.node, w->o->objective, w->o->bound, choice,
                                               &b->kernel_j, &b->kernel_s, d)
                        : no_memory(d);
        free(choice);
    }
    return status;
}

static void fill_row(const fl_work *w, const fl_bench_scene *b, const fl_run_result *run, const char *policy,
                     fl_row_result *row) {
    row->workload = b->s->w->name;
    row->policy = policy;
    row->variant = b->s->variant;
    row->energy_saving_pct = 100 * (1 - row->score.energy_j / b->standard.energy_j);
    row->node_energy_j = run ? run->node_energy_j : NAN;
    row->policy_cost_s = run ? fl_seconds(run->policy_cost_ps) : NAN;
    bool solved = b->has_table && b->table.exact && b->ref.clairvoyant.feasible;
    row->oracle_j = solved ? b->ref.clairvoyant.energy_j : NAN;
    row->oracle_bound_j = solved ? b->ref.clairvoyant.bound_j : NAN;
    row->oracle_gap_pct = solved ? b->ref.clairvoyant.gap_pct : NAN;
    row->violated = row->score.violated;
    row->reward_regret = NAN;
    if (w->o->oracles && b->has_table && !b->table.exact)
        snprintf(row->note, sizeof row->note, "%s: no clairvoyant bound", b->inexact);
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

static fl_status run_policy(void *user, size_t i, fl_diag *d) {
    fl_work *w = user;
    const fl_comparison_options *o = w->o;
    fl_bench_scene *b = &w->scene[i / (o->spec_count * o->seeds)];
    const fl_spec *spec = &o->spec[i / o->seeds % o->spec_count];
    if (!fl_spec_is_for(spec, b->s))
        return FL_OK;             /* its row stays without a policy, and is left out */
    fl_facts facts = b->s->facts; /* the same machine under another seed */
    facts.seed = o->seed + i % o->seeds;
    fl_layer layer[2] = {fl_platform_layer(&b->s->platform, spec->policy->name), spec->layer};
    fl_run_options run = {.w = b->s->w,
                          .rates = b->s->rates,
                          .spec = &b->s->platform.node,
                          .facts = &facts,
                          .policy = spec->policy,
                          .layer = layer,
                          .layer_count = 2};
    fl_run_result r;
    const size_t keep = w->o->scenes->count + i;
    fl_status status = watch(w, keep, &run, d);
    if (!status)
        status = fl_run(&run, &r, d);
    if (status)
        return status;
    status = fl_score_run(&r, &b->ref, &w->row[i].score, d);
    fill_row(w, b, &r, spec->label, &w->row[i]);
    w->row[i].seed = facts.seed;
    w->ignored[i] = r.ignored_sets;
    w->faults[i] = r.counts.faults;
    if ((w->row[i].kept = w->kept[keep]))
        w->kept[keep]->run = r;
    else
        fl_run_result_free(&r);
    return status;
}

fl_status fl_comparison_add(fl_comparison *c, const fl_row_result *row, fl_diag *d) {
    if (fl_grow(&c->row, &c->room, c->count + 1, sizeof *c->row))
        return no_memory(d);
    c->row[c->count++] = *row;
    return FL_OK;
}

/* The row of something that was not run as a policy: a static clock or a schedule, scored by its energy and time. */
static fl_status add_reference(const fl_work *w, const fl_bench_scene *b, const char *name, double energy_j,
                               double time_s, int64_t makespan_ps, fl_comparison *c, fl_diag *d) {
    if (!isfinite(energy_j) || !isfinite(time_s))
        return FL_OK;
    fl_run_result r = {.makespan_ps = makespan_ps,
                       .energy_j = energy_j,
                       .gpu_energy_j = energy_j,
                       .node_energy_j = energy_j + b->s->platform.node.host.static_w * time_s,
                       .makespan_s = time_s,
                       .mean_power_w = energy_j / time_s,
                       .peak_power_w = NAN};
    fl_row_result row = {.seed = w->o->seed};
    fl_status status = fl_score_run(&r, &b->ref, &row.score, d);
    fill_row(w, b, &r, name, &row);
    row.policy_cost_s = NAN;
    row.score.worst_window_slowdown = NAN;
    return status ? status : fl_comparison_add(c, &row, d);
}

fl_status fl_comparison_keep(fl_comparison *c, fl_kept *kept, fl_diag *d) {
    if (!fl_grow(&c->kept, &c->kept_room, c->kept_count + 1, sizeof *c->kept)) {
        c->kept[c->kept_count++] = kept;
        return FL_OK;
    }
    fl_kept_free(kept);
    return no_memory(d);
}

/* The clocks of the best static choice, for the row just added. */
static fl_status keep_clocks(fl_comparison *c, const fl_choice *at, fl_diag *d) {
    fl_kept *kept = calloc(1, sizeof *kept);
    fl_status s = kept ? fl_comparison_keep(c, kept, d) : no_memory(d);
    if (s)
        return s;
    kept->run.last_sm_mhz = at->sm_mhz;
    kept->run.last_mem_mhz = at->mem_mhz;
    kept->run.last_cpu_mhz = NAN;
    c->row[c->count - 1].kept = kept;
    return FL_OK;
}

static fl_status add_baselines(const fl_work *w, const fl_bench_scene *b, fl_comparison *c, fl_diag *d) {
    fl_row_result row = {.seed = w->o->seed};
    fl_status s = fl_score_run(&b->standard, &b->ref, &row.score, d);
    fill_row(w, b, &b->standard, "baseline:default", &row);
    row.kept = w->kept[(size_t)(b - w->scene)];
    if (!s)
        s = fl_comparison_add(c, &row, d);
    if (!s && b->has_table && b->ref.best_static < b->choices) {
        const fl_static_point *p = &b->point[b->ref.best_static];
        s = add_reference(w, b, "baseline:static", fl_joules(p->energy_fj), fl_seconds(p->makespan_ps), p->makespan_ps,
                          c, d);
        if (!s)
            s = keep_clocks(c, &p->at, d);
        if (!s)
            fl_clocks_text(&b->s->platform.node.device[b->s->platform.node.gpu[0]], p->at.sm_mhz, p->at.mem_mhz,
                           c->row[c->count - 1].note, sizeof c->row->note);
    }
    if (!s)
        s = add_reference(w, b, "baseline:per-kernel", b->kernel_j, b->kernel_s, (int64_t)(b->kernel_s * 1e12 + 0.5), c,
                          d);
    if (!s && b->has_table && b->table.exact && b->ref.clairvoyant.feasible)
        s = add_reference(w, b, "baseline:clairvoyant", b->ref.clairvoyant.energy_j, b->ref.clairvoyant.time_s,
                          b->ref.clairvoyant.time_ps, c, d);
    return s;
}

/* Means over workloads and seeds, cells that are not defined left out; `violated` counts. */
static bool same_group(const fl_row_result *a, const fl_row_result *b) {
    return !strcmp(a->policy, b->policy) &&
           (a->variant && b->variant ? !strcmp(a->variant, b->variant) : a->variant == b->variant);
}

/* What a mean is a mean of: the policy, and the variant of the node where there are any. */
static fl_status mean_label(fl_comparison *c, const fl_row_result *row, const char **label, fl_diag *d) {
    char *text;
    *label = row->policy;
    if (!row->variant)
        return FL_OK;
    if (fl_grow(&c->label, &c->label_room, c->label_count + 1, sizeof *c->label) ||
        asprintf(&text, "%s [%s]", row->policy, row->variant) < 0)
        return no_memory(d);
    *label = c->label[c->label_count++] = text;
    return FL_OK;
}

fl_status fl_comparison_means(fl_comparison *c, fl_diag *d) {
    size_t rows = c->count;
    double *value = malloc((rows + 1) * sizeof *value);
    if (!value)
        return no_memory(d);
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < rows; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen |= same_group(&c->row[k], &c->row[i]);
        if (seen)
            continue;
        fl_row_result mean = {.workload = "mean", .seed = c->row[i].seed};
        s = mean_label(c, &c->row[i], &mean.policy, d);
        if (s)
            break;
        double half;
#define FL_MEAN(field)                                                                                                 \
    do {                                                                                                               \
        size_t n = 0;                                                                                                  \
        for (size_t k = i; k < rows; k++)                                                                              \
            if (same_group(&c->row[k], &c->row[i]))                                                                    \
                value[n++] = (double)c->row[k].field;                                                                  \
        fl_mean_interval(value, n, &mean.field, &half);                                                                \
    } while (0)
        FL_MEAN(score.energy_j);
        FL_MEAN(score.makespan_s);
        FL_MEAN(score.mean_power_w);
        FL_MEAN(score.peak_power_w);
        FL_MEAN(score.edp);
        FL_MEAN(score.ed2p);
        FL_MEAN(score.slowdown);
        FL_MEAN(score.worst_window_slowdown);
        FL_MEAN(score.regret_static_j);
        FL_MEAN(score.regret_static_pct);
        FL_MEAN(score.regret_clairvoyant_j);
        FL_MEAN(score.regret_clairvoyant_pct);
        FL_MEAN(score.regret_at_own_slowdown_j);
        FL_MEAN(energy_saving_pct);
        FL_MEAN(node_energy_j);
        FL_MEAN(policy_cost_s);
        FL_MEAN(oracle_j);
        FL_MEAN(oracle_bound_j);
        FL_MEAN(oracle_gap_pct);
        FL_MEAN(reward_regret);
#undef FL_MEAN
        size_t n = 0;
        uint64_t switches = 0;
        for (size_t k = i; k < rows; k++)
            if (same_group(&c->row[k], &c->row[i])) {
                mean.violated += c->row[k].violated;
                switches += c->row[k].score.switches;
                n++;
            }
        mean.score.switches = (switches + n / 2) / n;
        s = fl_comparison_add(c, &mean, d);
    }
    free(value);
    c->mean_first = rows;
    return s;
}

fl_status fl_comparison_run(const fl_comparison_options *o, fl_comparison *c, fl_diag *d) {
    *c = (fl_comparison){0};
    size_t n = o->scenes->count, runs = n * o->spec_count * o->seeds, statics = 0;
    fl_work w = {.o = o};
    w.scene = calloc(n + 1, sizeof *w.scene);
    w.row = calloc(runs + 1, sizeof *w.row);
    w.ignored = calloc(runs + 1, sizeof *w.ignored);
    w.faults = calloc(runs + 1, sizeof *w.faults);
    w.kept = calloc(n + runs + 1, sizeof *w.kept);
    fl_status s = w.scene && w.row && w.ignored && w.faults && w.kept ? FL_OK : no_memory(d);
    for (size_t i = 0; !s && i < n; i++)
        w.scene[i].s = o->scenes->item[i];
    if (!s)
        s = fl_pool_run(run_standard, &w, n, o->threads, "defaults", d);
    for (size_t i = 0; !s && i < n; i++) {
        statics += w.scene[i].inexact ? w.scene[i].choices : 0;
        w.scene[i].point = calloc(w.scene[i].choices + 1, sizeof *w.scene[i].point);
        s = w.scene[i].point ? FL_OK : no_memory(d);
    }
    w.place = s ? NULL : calloc(statics + 1, sizeof *w.place);
    if (!s && !w.place)
        s = no_memory(d);
    for (size_t i = 0, at = 0; !s && i < n; i++)
        for (size_t k = 0; w.scene[i].inexact && k < w.scene[i].choices; k++)
            w.place[at++] = (fl_job_place){i, k};
    if (!s)
        s = fl_pool_run(run_static, &w, statics, o->threads, "static clocks", d);
    if (!s)
        s = fl_pool_run(solve, &w, n, o->threads, "oracles", d);
    if (!s)
        s = fl_pool_run(run_policy, &w, runs, o->threads, "policies", d);
    for (size_t i = 0, at = 0; !s && i < n; i++) {
        s = add_baselines(&w, &w.scene[i], c, d);
        for (size_t k = 0; !s && k < o->spec_count * o->seeds; k++, at++) {
            s = w.row[at].policy ? fl_comparison_add(c, &w.row[at], d) : FL_OK;
            c->ignored_sets += w.ignored[at];
            c->faults += w.faults[at];
        }
    }
    if (!s)
        s = fl_comparison_means(c, d);
    for (size_t i = 0; w.kept && i < n + runs; i++) { /* what is kept belongs to the comparison, also after a failure */
        if (!w.kept[i])
            continue;
        if (i < n) {
            w.kept[i]->run = w.scene[i].standard;
            w.scene[i].standard = (fl_run_result){0};
        }
        fl_status kept = fl_comparison_keep(c, w.kept[i], d);
        s = s ? s : kept;
    }
    for (size_t i = 0; w.scene && i < n; i++) {
        fl_run_result_free(&w.scene[i].standard);
        fl_oracle_table_free(&w.scene[i].table);
        free(w.scene[i].choice);
        free(w.scene[i].point);
    }
    free(w.scene);
    free(w.place);
    free(w.row);
    free(w.ignored);
    free(w.faults);
    free(w.kept);
    if (s)
        fl_comparison_free(c);
    return s;
}

void fl_comparison_free(fl_comparison *c) {
    for (size_t i = 0; i < c->label_count; i++)
        free(c->label[i]);
    free(c->label);
    for (size_t i = 0; i < c->kept_count; i++)
        fl_kept_free(c->kept[i]);
    free(c->kept);
    free(c->row);
    *c = (fl_comparison){0};
}
