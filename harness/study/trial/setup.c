/* Options, experiment, policies and scenes of compare, grid, search and regress. */
#include "harness/study/trial/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "harness/study/trial/trial.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fl_setup_options_free(fl_setup_options *o) {
    fl_texts_free(&o->rest);
    fl_texts_free(&o->policies);
    fl_texts_free(&o->bounds);
    fl_texts_free(&o->scene.only);
}

/* Two policies of one name would share one row of means. Those of an experiment may be for different workloads, and on
 * the command line the same text is the same policy. */
static fl_status check_name(const fl_setup *u, size_t i, const fl_texts *texts, fl_diag *d) {
    const fl_spec *spec = u->spec;
    for (size_t k = 0; k < i; k++)
        if (!strcmp(spec[k].label, spec[i].label) && !(spec[k].only.count && spec[i].only.count) &&
            !(texts && !strcmp(texts->item[k], texts->item[i])))
            return fl_fail(d, FL_BAD_INPUT, texts ? NULL : u->experiment.path, 0, 0,
                           "two policies have the name '%.60s', expected a different name for each", spec[i].label);
    return FL_OK;
}

/* Those of the command line, else the experiment's. Their texts become the options: they are part of a grid's key. */
static fl_status open_specs(fl_setup *u, fl_texts *policies, fl_diag *d) {
    const fl_texts own = *policies;
    *policies = (fl_texts){0};
    fl_status s = fl_experiment_specs(&u->experiment, &own, &u->spec, &u->o.spec_count, policies, d);
    for (size_t i = 1; !s && i < u->o.spec_count; i++)
        s = check_name(u, i, own.count ? policies : NULL, d);
    free(own.item);
    if (!s && !u->o.spec_count)
        s = fl_refuse(d, "no policy given, expected --policy NAME (foldline list policies lists them)");
    for (size_t i = 0; !s && i < u->o.spec_count; i++)
        s = fl_texts_add(&u->labels, u->spec[i].label, d);
    return s;
}

/* Policies that need activity records once more, with records that take no time: what their cost does stands beside
 * it. */
static void add_twins(fl_setup *u) {
    const size_t own = u->o.spec_count;
    fl_spec *all = u->spec = fl_must(realloc(u->spec, 2 * own * sizeof *all));
    for (size_t i = 0; i < own; i++) {
        if (!fl_spec_records(&all[i]))
            continue;
        fl_spec *twin = &all[u->o.spec_count++];
        *twin = all[i];
        twin->twin_of = all[i].label;
        twin->label = fl_must_print("%s (records free)", all[i].label);
    }
}

/* What neither the command line nor the experiment gave. */
static void resolve(fl_setup_options *o) {
    fl_scene_resolve(&o->scene);
    o->seeds = o->seeds ? o->seeds : FL_SEEDS_STANDARD;
    o->objective = o->objective ? o->objective : FL_OBJECTIVE_STANDARD;
}

fl_status fl_setup_next(fl_setup *u, fl_setup_options *o, fl_diag *d) {
    fl_scenes more = {0};
    if (u->draw_count)
        o->scene.application_seed = u->draw[u->draws_open];
    fl_status s = fl_experiment_scenes(&u->experiment, &o->scene, &u->traces, &more, &u->variants, d);
    if (!s)
        s = fl_scenes_append(&u->scenes, &more, d);
    fl_scenes_free(&more);
    u->draws_open++;
    if (u->draw_count)
        u->o.draws = (int64_t)u->draws_open;
    return s;
}

/* The applications that the experiment draws, unless the command line has workloads of its own. */
static fl_status find_draws(fl_setup *u, fl_setup_options *o, fl_diag *d) {
    if (u->traces.count || o->scene.sweep || o->scene.programs || o->scene.pipeline || o->scene.serving.server)
        return FL_OK;
    return fl_experiment_applications(&u->experiment, &o->scene.applications, &u->draw, &u->draw_count, d);
}

static bool names_workload(const fl_experiment *e) {
    static const char *const key[] = {"traces", "sweep", "programs", "pipeline", "serving", "applications", "draws"};
    bool any = false;
    for (size_t i = 0; i < FL_COUNT(key); i++)
        any |= cJSON_HasObjectItem(e->tree, key[i]) != 0;
    return any;
}

/* An experiment may leave its workloads to the command line; what it needs its about says first. */
static fl_status check_workloads(const fl_setup *u, const fl_setup_options *o, fl_diag *d) {
    const cJSON *about = cJSON_GetObjectItem(u->experiment.tree, "about");
    if (!u->experiment.tree || u->traces.count || o->scene.sweep || o->scene.programs || o->scene.pipeline ||
        o->scene.serving.server || o->scene.applications)
        return FL_OK;
    return fl_fail(d, FL_BAD_INPUT, u->experiment.path, 0, 0,
                   "the experiment names no workload, expected a sweep, programs, a server and requests, or a "
                   "kernel trace as well%s%.80s",
                   cJSON_IsString(about) ? ". It says: " : "", cJSON_IsString(about) ? about->valuestring : "");
}

/* Open each policy once, before anything runs: its init may refuse the first node that it is for, of which the input
 * says more than fl_scene_check_policies knew. */
static fl_status check_policies(const fl_setup *u, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < u->o.spec_count; i++) {
        const fl_spec *spec = &u->spec[i];
        size_t k = 0;
        while (k < u->scenes.count && !fl_spec_is_for(spec, u->scenes.item[k]))
            k++;
        if (k == u->scenes.count)
            continue;
        const fl_scene *scene = u->scenes.item[k];
        fl_laid laid;
        s = fl_plan_lay(spec, scene, &laid, d);
        const fl_layer layer[] = {fl_platform_layer(&scene->platform, spec->policy->name), spec->layer, laid.layer};
        const fl_instance_options o = {
            .policy = spec->policy, .facts = &scene->facts, .layer = layer, .layer_count = FL_COUNT(layer)};
        fl_instance *in = NULL;
        if (!s)
            s = fl_instance_open(&in, &o, d);
        fl_instance_close(in);
        fl_laid_free(&laid);
    }
    return s;
}

fl_status fl_setup_open(fl_setup *u, fl_setup_options *o, fl_diag *d) {
    *u = (fl_setup){.o = {.bound = o->bound, .risk = o->risk, .threads = (unsigned)o->threads, .draws = 1}};
    fl_experiment *e = &u->experiment;
    u->o.promises = &u->promises;
    fl_status s = fl_promises_parse(&o->bounds, &u->promises, &u->o.bound, d);
    if (!s)
        s = fl_experiment_find(&o->rest, e, &u->traces, d);
    if (!s)
        s = fl_scene_sort(&o->scene, &u->traces, d);
    const bool given =
        u->traces.count || o->scene.sweep || o->scene.programs || o->scene.pipeline || o->scene.serving.server;
    u->own = (given && (!e->tree || names_workload(e))) || o->policies.count || o->scene.only.count;
    if (s || (s = find_draws(u, o, d)) ||
        (e->tree && ((s = fl_experiment_apply(e, &o->scene, &u->traces, &o->objective, &o->seeds, d)) ||
                     (s = fl_promises_read(e, &u->promises, &u->o.bound, d)) ||
                     (s = fl_experiment_positions(e, &o->positions, d)))))
        goto out;
    if ((s = fl_scene_check(&o->scene, &u->traces, d)) || (s = check_workloads(u, o, d)))
        goto out;
    resolve(o);
    if ((s = fl_promises_targets(&o->scene.serving, &u->promises, d)))
        goto out;
    s = fl_objective_parse(o->objective, &u->o.objective, d);
    if (!s)
        s = open_specs(u, &o->policies, d);
    u->own_specs = u->o.spec_count; /* those that were opened, also where one was refused */
    if (s)
        goto out;
    if (o->scene.node.records && !strcmp(o->scene.node.records, FL_RECORDS_BOTH))
        add_twins(u);
    if (o->scene.arrivals && fl_experiment_draws(e)) {
        s = fl_fail(d, FL_BAD_INPUT, e->path, 0, 0,
                    "arrivals have no effect in a distribution replay, expected an experiment with kernels");
        goto out;
    }
    if (fl_replay_chosen(&o->scene.replay, true) && fl_experiment_draws(e)) {
        s = fl_fail(d, FL_BAD_INPUT, e->path, 0, 0, "%s has no effect in a distribution replay, expected none",
                    fl_replay_chosen(&o->scene.replay, true));
        goto out;
    }
    if (o->seeds > 1 && fl_experiment_redraws(e, &o->scene)) {
        /* other arrivals or other work, so other defaults and references too */
        o->scene.draws = u->o.draws = o->seeds;
        o->seeds = 1;
    }
    s = fl_scene_check_policies(&o->scene, u->spec, u->own_specs,
                                e->platforms.count || cJSON_HasObjectItem(e->tree, "variants"), d);
    if (s)
        goto out;
    do
        s = fl_setup_next(u, o, d);
    while (!s && !o->by_draw && u->draws_open < u->draw_count);
    if (!s)
        s = check_policies(u, d);
    if (!s)
        s = fl_risk_check(&u->scenes, u->o.bound, u->o.risk, d);
    if (!s)
        s = fl_promises_check(&u->promises, &u->scenes, d);
    u->o.watch_ns = fl_promises_watched(&u->promises) ? FL_POWER_WINDOW_NS : 0;
    u->o.scenes = &u->scenes;
    u->o.spec = u->spec;
    u->o.positions = (size_t)o->positions;
    u->o.seed = (uint64_t)o->scene.seed;
    u->o.seeds = (uint32_t)o->seeds;
    fl_oracles which = FL_ORACLES_NONE;
    if (!s && !o->no_oracle)
        s = fl_experiment_oracles(e, &which, d);
    u->o.oracles = which != FL_ORACLES_NONE;
    u->o.only_static = which == FL_ORACLES_STATIC;
out:
    if (s)
        fl_setup_free(u);
    return s;
}

size_t fl_setup_seeds(const fl_setup *u) { return u->o.seeds * (size_t)u->o.draws; }

void fl_setup_free(fl_setup *u) {
    fl_scenes_free(&u->scenes);
    for (size_t i = u->own_specs; i < u->o.spec_count; i++)
        free(u->spec[i].label);
    for (size_t i = 0; i < u->own_specs; i++)
        fl_spec_free(&u->spec[i]);
    free(u->spec);
    free(u->draw);
    fl_experiment_free(&u->experiment);
    fl_texts_free(&u->traces);
    fl_texts_free(&u->labels);
    *u = (fl_setup){0};
}
