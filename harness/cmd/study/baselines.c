/* What `foldline compare` prints without a policy: the baselines, and what there is to gain. */
#include "harness/cmd/study/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/scene/scene.h"
#include "harness/serving/serving.h"
#include "harness/study/trial/trial.h"
#include "models/laws/device.h"
#include "sim/base/base.h"
#include "sim/node/node.h"
#include "sim/oracle/oracle.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fl_oracle_job {
    const fl_solved *solved;
    fl_kernel_choice *kernel;
    fl_kernel_total whole; /* with the best clock per kind of kernel */
    uint64_t switches;     /* of the clairvoyant schedule */
} fl_oracle_job;

typedef struct fl_oracle_jobs {
    fl_oracle_job *job;
    const fl_comparison_options *o;
    const fl_promises *promises;
    bool several, wide; /* workloads; columns of the table */
} fl_oracle_jobs;

/* What no comparison asks of a scene. */
static fl_status solve(void *user, size_t i, fl_diag *d) {
    const fl_oracle_jobs *w = user;
    fl_oracle_job *j = &w->job[i];
    const fl_solved *x = j->solved;
    const fl_scene *s = x->s;
    fl_oracle_result r;
    fl_status status = fl_oracle_clairvoyant(&x->table, w->o->objective,
                                             fl_limit_ps(x->standard.makespan_ps, w->o->bound), true, &r, d);
    j->switches = status ? 0 : r.switches;
    free(r.schedule);
    free(r.change);
    j->kernel = fl_must(calloc(s->w->class_count + 1, sizeof *j->kernel));
    return status ? status
                  : fl_oracle_per_kernel(s->w, s->rates, &s->platform.node, w->o->objective, w->o->bound, &x->table,
                                         j->kernel, &j->whole, d);
}

/* What is minimised has columns of its own where it is not the energy. */
static void add_heads(fl_grid *g, const fl_oracle_jobs *w) {
    char head[32];
    const char *title = fl_objective_title[w->o->objective];
    if (w->several)
        fl_grid_column(g, "workload", "what runs");
    fl_grid_column(g, "policy", "the default, and what is best for the workload under the bound");
    fl_grid_column(g, "energy J", "energy of the GPUs");
    fl_grid_column(g, "saved %", "energy saved against the driver's default");
    if (w->o->objective != FL_MIN_ENERGY) {
        snprintf(head, sizeof head, "%s saved %%", title);
        fl_grid_column(g, head, "%s saved against the driver's default", title);
    }
    fl_grid_column(g, "time s", "time until the work is done");
    fl_grid_column(g, "slowdown %", "time above the driver's default");
    if (w->o->objective != FL_MIN_ENERGY && w->wide) {
        snprintf(head, sizeof head, "%s %s", title, fl_objective_unit[w->o->objective]);
        fl_grid_column(g, head, "what is minimised");
    }
    fl_grid_column(g, "", "remarks");
}

/* against_j, against_s: what it is compared with. */
static void add_line(fl_grid *g, const fl_oracle_jobs *w, const fl_oracle_job *j, const char *what, double energy_j,
                     double time_s, double against_j, double against_s, const char *remark) {
    const double own = fl_objective_value(w->o->objective, energy_j, time_s);
    if (w->several)
        fl_grid_add(g, "%s", j->solved->s->w->name);
    fl_grid_add(g, "%s", what);
    fl_grid_number(g, energy_j, -6, "");
    fl_grid_number(g, 100 * (1 - energy_j / against_j), 2, ""); /* n/a: nothing ran */
    if (w->o->objective != FL_MIN_ENERGY)
        fl_grid_number(g, 100 * (1 - own / fl_objective_value(w->o->objective, against_j, against_s)), 2, "");
    fl_grid_number(g, time_s, -6, "");
    fl_grid_number(g, 100 * (time_s / against_s - 1), 2, "");
    if (w->o->objective != FL_MIN_ENERGY && w->wide)
        fl_grid_number(g, own, -6, "");
    fl_grid_add(g, "%s", remark);
}

/* Of the whole workload, against its default. */
static void add_whole(fl_grid *g, const fl_oracle_jobs *w, const fl_oracle_job *j, const char *what, double energy_j,
                      double time_s, const char *remark) {
    add_line(g, w, j, what, energy_j, time_s, j->solved->standard.energy_j, j->solved->standard.makespan_s, remark);
}

/* Of the best static clock; NAN where there is none, or the model states nothing. */
static fl_risk risk_of(const fl_oracle_jobs *w, const fl_oracle_job *j) {
    if (j->solved->ref.best_static >= j->solved->choices)
        return (fl_risk){NAN, NAN};
    return fl_risk_at(j->solved->s, &j->solved->point[j->solved->ref.best_static].at, w->o->bound, w->o->objective);
}

/* "; COLUMN VALUE" of all that was promised. */
static void add_promised(const fl_oracle_jobs *w, const fl_oracle_job *j, char *text, size_t size) {
    const fl_choice *at = &j->solved->point[j->solved->ref.best_static].at;
    size_t k = 0;
    while (w->promises->count && (j->solved->choice[k].sm != at->sm || j->solved->choice[k].mem != at->mem))
        k++;
    for (size_t i = 0; i < w->promises->count; i++) {
        const size_t used = strlen(text);
        double value = NAN;
        fl_row_value(&j->solved->promised[k], w->promises->item[i].column, &value, NULL);
        snprintf(text + used, size - used, "; %s %.5g", w->promises->item[i].column, value);
    }
}

static void add_none(fl_grid *g, const fl_oracle_jobs *w, const fl_oracle_job *j) {
    char all[512] = "no clock holds", text[FL_PROMISE_TEXT];
    for (size_t bit = isinf(w->o->bound) ? 1 : 0; bit <= w->promises->count; bit++) {
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s %s", used > 14 ? " and" : "",
                 fl_promises_name(w->promises, w->o->bound, bit, text));
    }
    add_whole(g, w, j, "baseline:static", NAN, NAN, all);
}

static const char *alone(const fl_oracle_jobs *w) { return w->promises->count ? "; bounded in time alone" : ""; }

/* A schedule over other tables than exact ones is not told under bounds that it may break. */
static bool told(const fl_oracle_jobs *w, const fl_oracle_job *j) {
    return j->solved->ref.clairvoyant.feasible && (j->solved->table.exact || !w->promises->count);
}

/* A reference counts against others only while it is the best one known. */
static void add_clairvoyant(fl_grid *g, const fl_oracle_jobs *w, const fl_oracle_job *j) {
    char remark[192], at[48] = "";
    const fl_oracle_result *c = &j->solved->ref.clairvoyant;
    const fl_scene *s = j->solved->s;
    if (!told(w, j))
        return;
    if (j->solved->table.exact) {
        if (j->solved->table.positions)
            snprintf(at, sizeof at, " at %zu positions", j->solved->table.positions);
        const double behind = c->objective > 0 ? 1 - j->solved->ref.known / c->objective : 0;
        const int used = snprintf(remark, sizeof remark, "%llu switches%s, bound %.6g %s, gap %.2g %%%s",
                                  (unsigned long long)j->switches, at, c->objective_bound,
                                  fl_objective_unit[w->o->objective], c->gap_pct, alone(w));
        if (behind > 1e-6)
            snprintf(remark + used, sizeof remark - (size_t)used, "; not the best known: a baseline is %.3g %% below",
                     100 * behind);
        add_whole(g, w, j, "baseline:clairvoyant", c->energy_j, c->time_s, remark);
    } else {
        const char *why = fl_oracle_inexact(s->w, s->rates, &s->platform.node);
        snprintf(remark, sizeof remark, "%s: no bound", why ? why : "not exact");
        add_whole(g, w, j, "reference", c->energy_j, c->time_s, remark);
    }
}

/* Each kind against itself at the default clocks: with the host time they are the whole of baseline:per-kernel. */
static void add_kernels(fl_grid *g, const fl_oracle_jobs *w, const fl_oracle_job *j) {
    char remark[64], name[96];
    const fl_device *dev = &j->solved->s->platform.node.device[j->solved->s->platform.node.gpu[0]];
    for (uint32_t k = 0; k < j->solved->s->w->class_count; k++) {
        const fl_kernel_choice *c = &j->kernel[k];
        if (!(c->standard_time_s > 0)) /* a marker, or a kind of which nothing runs */
            continue;
        snprintf(name, sizeof name, "  %s", j->solved->s->w->class[k].kind.name);
        add_line(g, w, j, name, c->energy_j, c->time_s, c->standard_energy_j, c->standard_time_s,
                 fl_clocks_text(dev, c->at.sm_mhz, c->at.mem_mhz, remark, sizeof remark));
    }
    if (j->whole.gap_time_s > 0)
        add_line(g, w, j, "  (host time)", j->whole.gap_energy_j, j->whole.gap_time_s, j->whole.standard_gap_energy_j,
                 j->whole.gap_time_s, "at the clock of the kernel that follows");
}

static void print_job(fl_grid *g, const fl_oracle_jobs *w, const fl_oracle_job *j, bool kernels) {
    char remark[512];
    const fl_scene *s = j->solved->s;
    const fl_device *dev = &s->platform.node.device[s->platform.node.gpu[0]];
    add_whole(g, w, j, "baseline:default", j->solved->standard.energy_j, j->solved->standard.makespan_s, "");
    if (j->solved->ref.best_static < j->solved->choices) {
        const fl_static_point *p = &j->solved->point[j->solved->ref.best_static];
        const fl_risk risk = risk_of(w, j);
        fl_clocks_text(dev, p->at.sm_mhz, p->at.mem_mhz, remark, sizeof remark);
        if (fl_scene_interpolated(s, p->at.sm_mhz, p->at.mem_mhz))
            strcat(remark, ", not measured: interpolated");
        const size_t used = strlen(remark);
        if (!isnan(risk.chance))
            snprintf(remark + used, sizeof remark - used,
                     "; breaks the bound with a chance of %.1f %%, expected regret %.2f %%", 100 * risk.chance,
                     100 * risk.regret);
        add_promised(w, j, remark, sizeof remark);
        add_whole(g, w, j, "baseline:static", fl_joules(p->energy_fj), fl_seconds(p->makespan_ps), remark);
    } else if (w->promises->count) {
        add_none(g, w, j);
    }
    if (j->solved->table.exact) {
        snprintf(remark, sizeof remark, "switches free%s%s", j->whole.held ? "" : "; does not hold the bound",
                 alone(w));
        add_whole(g, w, j, "baseline:per-kernel", j->whole.energy_j, j->whole.time_s, remark);
    }
    add_clairvoyant(g, w, j);
    if (kernels)
        add_kernels(g, w, j);
}

static void print_text(const fl_oracle_jobs *w, const fl_scenes *scenes, bool kernels) {
    fl_grid g = {0};
    add_heads(&g, w);
    for (size_t i = 0; i < scenes->count; i++)
        print_job(&g, w, &w->job[i], kernels);
    if (w->several)
        printf("each of %zu workloads", scenes->count);
    else
        printf("%s", scenes->item[0]->w->name);
    fl_promises_put(w->promises, w->o->bound, w->o->objective, stdout);
    fputs("\n\n", stdout);
    fl_grid_print(&g, 1 + w->several, stdout);
    fputc('\n', stdout);
    fl_scene_notes(scenes, stdout);
}

static cJSON *kernels_json(const fl_oracle_job *j) {
    cJSON *all = cJSON_CreateArray();
    for (uint32_t k = 0; k < j->solved->s->w->class_count; k++) {
        const fl_kernel_choice *c = &j->kernel[k];
        cJSON *o = fl_json_add_row(all);
        cJSON_AddStringToObject(o, "name", j->solved->s->w->class[k].kind.name);
        fl_json_add_real(o, "sm_mhz", c->at.sm_mhz);
        fl_json_add_real(o, "mem_mhz", c->at.mem_mhz);
        fl_json_add_real(o, "energy_j", c->energy_j);
        fl_json_add_real(o, "time_s", c->time_s);
        fl_json_add_real(o, "default_j", c->standard_energy_j);
        fl_json_add_real(o, "default_s", c->standard_time_s);
    }
    return all;
}

/* The best clock per kind of kernel and the clairvoyant schedule: both are bounded in time alone. */
static void add_schedules(cJSON *o, const fl_oracle_jobs *w, const fl_oracle_job *j) {
    const fl_oracle_result *c = &j->solved->ref.clairvoyant;
    const bool exact = j->solved->table.exact, any = told(w, j), bounded = any && c->bounded;
    fl_json_add_real(o, "per_kernel_j", exact ? j->whole.energy_j : NAN);
    fl_json_add_real(o, "per_kernel_s", exact ? j->whole.time_s : NAN);
    cJSON_AddItemToObject(o, "per_kernel_held", exact ? cJSON_CreateBool(j->whole.held) : cJSON_CreateNull());
    fl_json_add_real(o, "oracle_j", any ? c->energy_j : NAN);
    fl_json_add_real(o, "oracle_s", any ? c->time_s : NAN);
    fl_json_add_real(o, "oracle_bound_j", bounded && w->o->objective == FL_MIN_ENERGY ? c->bound_j : NAN);
    fl_json_add_real(o, "oracle_objective", any ? c->objective : NAN);
    fl_json_add_real(o, "oracle_objective_bound", bounded ? c->objective_bound : NAN);
    fl_json_add_real(o, "oracle_gap_pct", bounded ? c->gap_pct : NAN);
    fl_json_add_real(o, "best_known_objective", any ? j->solved->ref.known : NAN);
    cJSON_AddBoolToObject(o, "bounded", bounded);
    cJSON_AddBoolToObject(o, "oracle_bounded_in_time_alone", any && w->promises->count);
}

/* With the host time the kinds are the whole of per_kernel_j. */
static void add_kernels_json(cJSON *o, const fl_oracle_job *j) {
    cJSON_AddItemToObject(o, "kernels", kernels_json(j));
    fl_json_add_real(o, "host_j", j->whole.gap_energy_j);
    fl_json_add_real(o, "host_s", j->whole.gap_time_s);
    fl_json_add_real(o, "host_default_j", j->whole.standard_gap_energy_j);
}

static cJSON *to_json(const fl_oracle_jobs *w, size_t count, bool kernels) {
    cJSON *all = cJSON_CreateArray();
    for (size_t i = 0; i < count; i++) {
        const fl_oracle_job *j = &w->job[i];
        cJSON *o = fl_json_add_row(all);
        cJSON_AddStringToObject(o, "workload", j->solved->s->w->name);
        fl_json_add_real(o, "default_j", j->solved->standard.energy_j);
        fl_json_add_real(o, "default_s", j->solved->standard.makespan_s);
        cJSON_AddBoolToObject(o, "assumed_power", fl_scene_power_assumed(j->solved->s));
        cJSON_AddStringToObject(o, "objective", fl_objective_names[w->o->objective]);
        cJSON_AddStringToObject(o, "objective_unit", fl_objective_unit[w->o->objective]);
        fl_json_add_real(
            o, "default_objective",
            fl_objective_value(w->o->objective, j->solved->standard.energy_j, j->solved->standard.makespan_s));
        bool found = j->solved->ref.best_static < j->solved->choices;
        fl_json_add_real(o, "static_mhz", found ? j->solved->point[j->solved->ref.best_static].at.sm_mhz : NAN);
        fl_json_add_real(o, "static_mem_mhz", found ? j->solved->point[j->solved->ref.best_static].at.mem_mhz : NAN);
        const fl_choice *at = &j->solved->point[found ? j->solved->ref.best_static : 0].at;
        cJSON_AddBoolToObject(o, "static_interpolated",
                              found && fl_scene_interpolated(j->solved->s, at->sm_mhz, at->mem_mhz));
        fl_json_add_real(o, "static_j",
                         found ? fl_joules(j->solved->point[j->solved->ref.best_static].energy_fj) : NAN);
        fl_json_add_real(o, "static_s",
                         found ? fl_seconds(j->solved->point[j->solved->ref.best_static].makespan_ps) : NAN);
        fl_json_add_real(o, "static_break_chance", risk_of(w, j).chance);
        fl_json_add_real(o, "static_expected_regret", risk_of(w, j).regret);
        add_schedules(o, w, j);
        cJSON_AddItemToObject(o, "bounds", fl_promises_json(w->promises)); /* the best static clock holds them */
        if (kernels)
            add_kernels_json(o, j);
    }
    return all;
}

static fl_status write_rows(const fl_baselines_how *how, const cJSON *rows, fl_diag *d) {
    const fl_status s = how->out ? fl_json_write_rows(how->out, rows, d) : FL_OK;
    if (!s && how->out && !how->json)
        printf("written: %s\n", how->out);
    return s;
}

/* Of servers there are more choices than clocks, and no schedule that is known to be the best. */
static fl_status tell_serving(const fl_serving_oracle_options *o, const fl_baselines_how *how, fl_diag *d) {
    fl_serving_oracle r;
    fl_status s = fl_serving_oracle_run(o, &r, d);
    cJSON *result = s ? NULL : fl_serving_oracle_json(&r, o);
    if (!s && how->json) {
        fl_json_print(result, stdout);
    } else if (!s) {
        fl_serving_oracle_print(&r, o, how->wide, stdout);
        fl_scene_notes(&r.scenes, stdout);
    }
    if (!s)
        s = write_rows(how, cJSON_GetObjectItem(result, "points"), d);
    cJSON_Delete(result);
    fl_serving_oracle_free(&r);
    return s;
}

fl_status fl_baselines_tell(fl_setup_options *o, const fl_baselines_how *how, fl_diag *d) {
    fl_scenes scenes = {0};
    fl_promises promises = {0};
    fl_comparison_options all = {.scenes = &scenes,
                                 .promises = &promises,
                                 .bound = INFINITY,
                                 .risk = o->risk,
                                 .positions = (size_t)o->positions,
                                 .threads = (unsigned)o->threads,
                                 .oracles = true};
    fl_oracle_jobs w = {.o = &all, .promises = &promises, .wide = how->wide};
    fl_trials *t = NULL;
    fl_status s = fl_objective_parse(o->objective ? o->objective : FL_OBJECTIVE_STANDARD, &all.objective, d);
    if (!s)
        s = fl_promises_parse(&o->bounds, &promises, &all.bound, d);
    if (!s)
        s = fl_scene_sort(&o->scene, &o->rest, d);
    if (!s)
        s = fl_scene_check(&o->scene, &o->rest, d);
    if (!s)
        s = fl_promises_targets(&o->scene.serving, &promises, d);
    if (!s && o->scene.serving.server) {
        const fl_serving_oracle_options serving = {&o->scene, &promises, all.bound, all.objective, all.threads};
        if (how->kernels || o->risk > 0)
            return fl_refuse(d, "%s has no effect on a server, expected none", how->kernels ? "--kernels" : "--risk");
        return tell_serving(&serving, how, d);
    }
    if (!s)
        s = fl_scenes_open(&o->scene, &o->rest, &scenes, d);
    if (!s)
        s = fl_risk_check(&scenes, all.bound, o->risk, d);
    if (!s)
        s = fl_promises_check(&promises, &scenes, d);
    if (!s)
        fl_scene_warnings(&scenes);
    all.watch_ns = fl_promises_watched(&promises) ? FL_POWER_WINDOW_NS : 0;
    if (!s)
        s = fl_trials_open(&t, &all, d);
    w.several = scenes.count > 1;
    w.job = fl_must(calloc(scenes.count + 1, sizeof *w.job));
    for (size_t i = 0; !s && i < scenes.count; i++)
        w.job[i].solved = fl_trials_solved(t, i);
    if (!s)
        s = fl_pool_run(solve, &w, scenes.count, all.threads, NULL, d);
    cJSON *result = s ? NULL : to_json(&w, scenes.count, how->kernels);
    if (!s && how->json)
        fl_json_print(result, stdout);
    else if (!s)
        print_text(&w, &scenes, how->kernels);
    if (!s)
        s = write_rows(how, result, d);
    cJSON_Delete(result);
    for (size_t i = 0; i < scenes.count; i++)
        free(w.job[i].kernel);
    free(w.job);
    fl_trials_close(t);
    fl_scenes_free(&scenes);
    return s;
}
