/* Opens the scenes that the options ask for: programs, sweeps, pipelines, servers. */
#include "harness/input/scene/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "sim/pipeline/pipeline.h"
#include "sim/serving/serving.h"
#include "sim/synth/synth.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"
#include "traces/pipeline/pipeline.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- scenes of programs ---- */

#define BRIEF_S 1.0 /* of a program that is built only to see that it can be */

typedef struct program_jobs { /* programs are made side by side: each is a job */
    const fl_scene_options *o;
    fl_program_set *set;
    size_t *index;    /* of the program of each job */
    fl_scene **scene; /* of each job */
} program_jobs;

static fl_status make_program(void *user, size_t job, fl_diag *d) {
    const program_jobs *j = user;
    const fl_scene_options *o = j->o;
    const fl_programs *p = &j->set->p;
    const size_t i = j->index[job];
    const bool briefly = o->hold == FL_SCENES_IN_TURN && !o->arrivals && !(o->seconds > 0 && o->seconds < 10 * BRIEF_S);
    fl_scene_origin from = {.kinds = fl_program_set_kinds(j->set),
                            .set = p,
                            .index = i,
                            .seed = (uint64_t)o->seed,
                            .seconds = briefly ? BRIEF_S : o->seconds};
    fl_scene *scene = j->scene[job];
    fl_status s = FL_OK;
    if (j->set->kinds_path && !(scene->kinds = strdup(j->set->kinds_path)))
        s = fl_no_memory(d, NULL);
    if (!s)
        s = fl_scene_from_kernels(o, scene, p->names[p->programs[i]], &p->head, &from, d);
    fl_scene_origin_free(&from);
    return s;
}

/* Drawn for the platform's first GPU, from a seed and nothing else. */
static fl_status draw_applications(const fl_scene_options *o, fl_programs *p, fl_kinds *k, fl_diag *d) {
    fl_platform platform;
    fl_status s = fl_platform_open(o->platform, 0, &platform, d);
    if (s)
        return s;
    s = fl_synth_apps(&platform.node.device[0], (uint32_t)o->applications, (uint64_t)o->application_seed, p, k, d);
    fl_platform_free(&platform);
    return s;
}

static fl_status read_set(const fl_scene_options *o, fl_program_set **out, fl_diag *d) {
    fl_program_set *set = *out = calloc(1, sizeof *set);
    if (!set)
        return fl_no_memory(d, NULL);
    set->users = 1;
    set->has_kinds = o->applications > 0;
    if (set->has_kinds)
        return draw_applications(o, &set->p, &set->kinds, d);
    fl_status s = fl_programs_read(o->programs, &set->p, d);
    if (!s)
        s = fl_scene_kinds_read(o->kinds, o->programs, &set->p.head, o->assume ? o->assume : "", &set->kinds_path,
                                &set->kinds, d);
    set->has_kinds = set->kinds_path != NULL;
    return s;
}

static fl_status fl_scenes_from_programs(const fl_scene_options *o, fl_scenes *all, fl_diag *d) {
    program_jobs j = {.o = o};
    size_t jobs = 0;
    char seed[24];
    const char *source = o->applications ? "drawn applications" : o->programs;
    snprintf(seed, sizeof seed, "%lld", (long long)o->application_seed);
    fl_status status = read_set(o, &j.set, d);
    const fl_programs *p = status ? NULL : &j.set->p;
    if (!status)
        status = fl_scene_check_wanted(&o->only, source, p->names, p->programs, p->program_count, d);
    if (!status) {
        j.index = calloc(p->program_count, sizeof *j.index);
        j.scene = calloc(p->program_count, sizeof *j.scene);
        status = j.index && j.scene ? FL_OK : fl_no_memory(d, NULL);
    }
    for (size_t i = 0; !status && i < p->program_count; i++)
        if (fl_scene_wanted(&o->only, p->names[p->programs[i]])) {
            j.index[jobs] = i;
            status = fl_scene_add(all, source, &j.scene[jobs++], d);
            if (!status && o->applications && !(j.scene[jobs - 1]->applications = strdup(seed)))
                status = fl_no_memory(d, NULL);
            if (!status && o->hold != FL_SCENES_AT_ONCE)
                status = fl_scene_make_again(j.scene[jobs - 1], o, j.set, i, d);
        }
    if (!status)
        status = fl_pool_run(make_program, &j, jobs, 0, "programs", d);
    free(j.index);
    free(j.scene);
    fl_program_set_leave(j.set);
    return status;
}

/* ---- all scenes ---- */

static fl_status from_sweep(const fl_scene_options *o, const char *path, const fl_texts *only, fl_scenes *all,
                            fl_diag *d) {
    fl_sweep_model m = {0};
    fl_sweep_replay replay = {
        .repeat = (uint32_t)o->repeat, .windows = (uint32_t)o->windows, .seed = (uint64_t)o->seed + (uint64_t)o->draw};
    fl_status status = fl_replay_choose(&o->replay, &replay, d);
    if (!status)
        status = fl_sweep_model_open(path, o->model, o->platform, &m, d);
    if (!status)
        status = fl_scene_check_wanted(only, path, m.sweep.names, m.names, m.count, d);
    for (size_t i = 0; !status && i < m.count; i++) {
        if (!fl_scene_wanted(only, m.sweep.names[m.names[i]]))
            continue;
        fl_scene *s = NULL;
        status = fl_scene_add(all, path, &s, d);
        if (!status)
            status = fl_platform_open(o->platform, (uint32_t)o->gpus, &s->platform, d);
        if (!status)
            status = fl_node_choose(&s->platform.node, &o->node, d);
        if (!status)
            status =
                fl_sweep_model_build(&m, i, &s->platform.node, &replay, &s->w, &s->stated, &s->note, &s->note_count, d);
        if (s)
            s->jitter = replay.jitter, s->iteration_ns = replay.iteration_ns, s->op_ns = replay.op_ns,
            s->repeat = replay.repeat;
        if (!status)
            status = fl_scene_complete(s, o, d);
        all->clipped += s && s->clipped;
    }
    fl_sweep_model_free(&m);
    return status;
}

static fl_status join_texts(const fl_texts *t, char **joined, fl_diag *d) {
    for (size_t i = 0; i < t->count; i++) {
        char *more;
        if (asprintf(&more, "%s%s%s", *joined ? *joined : "", i ? " " : "", t->item[i]) < 0)
            return fl_no_memory(d, NULL);
        free(*joined);
        *joined = more;
    }
    return FL_OK;
}

/* A limit that the file does not state may have been another. */
static fl_status tell_limit(fl_scene *s, const fl_pipeline *p, fl_diag *d) {
    const fl_device *dev = &s->platform.node.device[0];
    if (p->limit_w > 0 || dev->wall.period_ns <= 0 || dev->wall.burst_w <= dev->wall.measured_w)
        return FL_OK;
    return fl_sweep_note(&s->note, &s->note_count, d,
                         "rows draw up to %.0f W, above the power limit of %g W of %s: taken as measured under it "
                         "('# power_limit_w: W' in the file states another)",
                         dev->wall.burst_w, dev->wall.measured_w, s->platform.name);
}

/* The ladder is cut to clocks at which every rank's times are known. */
static fl_status from_pipeline(const fl_scene_options *o, fl_scenes *all, fl_diag *d) {
    fl_pipeline p = {0};
    fl_pipeline_order order = {0};
    fl_scene *s = NULL;
    fl_status status = fl_pipeline_read(o->pipeline, &p, d);
    if (!status)
        status = fl_pipeline_slow_down(&p, &o->slow, d);
    if (!status)
        status = p.schedule == FL_PIPELINE_LIST ? fl_pipeline_order_read(p.order, p.stages, p.microbatches, &order, d)
                                                : fl_pipeline_schedule_make(&p, &order, d);
    if (!status)
        status = fl_scene_add(all, o->pipeline, &s, d);
    if (!status)
        status = join_texts(&o->slow, &s->slow, d);
    if (s)
        s->repeat = o->repeat;
    if (!status && p.order && !(s->order = strdup(p.order)))
        status = fl_no_memory(d, NULL);
    if (!status)
        status = fl_platform_open(o->platform, p.ranks, &s->platform, d);
    fl_node_choice node = o->node; /* training has a process for each of its GPUs */
    node.hosts = node.hosts ? node.hosts : FL_HOSTS_PER_GPU;
    if (!status)
        status = fl_node_choose(&s->platform.node, &node, d);
    if (!status)
        fl_pipeline_allow_bursts(&p, &s->platform.node);
    if (!status)
        status = tell_limit(s, &p, d);
    if (!status)
        status = fl_build_pipeline(&s->w, fl_input_name(o->pipeline), &p, &order, &s->platform.node,
                                   (uint32_t)o->repeat, NULL, &s->op, d);
    if (!status)
        status = fl_scene_complete(s, o, d);
    all->clipped += s && s->clipped;
    if (!status) {
        s->pipeline = p;
        s->instructions = order;
        return FL_OK;
    }
    fl_pipeline_order_free(&order);
    fl_pipeline_free(&p);
    return status;
}

/* Servers, each with GPUs of its own, as many as they need. */
static fl_status from_serving(const fl_scene_options *o, fl_scenes *all, fl_diag *d) {
    fl_scene *s = NULL;
    fl_status status = fl_scene_add(all, o->serving.requests, &s, d);
    if (!status)
        status = fl_serving_scene_open(&o->serving, &s->serving, d);
    if (!status)
        status = fl_platform_open(o->platform, fl_serving_scene_gpus(s->serving), &s->platform, d);
    if (!status)
        status = fl_node_choose(&s->platform.node, &o->node, d);
    if (!status)
        status = fl_serving_workload(&s->w, fl_input_name(o->serving.requests), &s->serving->setup, d);
    if (!status)
        status = fl_scene_complete(s, o, d);
    if (!status) {
        s->facts.server = s->serving->facts;
        s->facts.server_count = s->serving->setup.server_count;
    }
    return status;
}

fl_status fl_scenes_open(const fl_scene_options *o, const fl_texts *traces, fl_scenes *scenes, fl_diag *d) {
    *scenes = (fl_scenes){0};
    if (!o->platform)
        return fl_refuse(d, "no platform given, expected --platform NAME (foldline list platforms lists them)");
    if (!traces->count && !o->sweep && !o->programs && !o->applications && !o->pipeline && !o->serving.server)
        return fl_refuse(
            d, "nothing to replay, expected a kernel trace, a sweep, programs, a pipeline, or a server and requests");
    fl_status status = FL_OK;
    fl_scene_options one = *o;
    fl_trace_keep(!o->no_cache);
    fl_scene_resolve(&one);
    for (one.draw = 0; !status && one.draw < one.draws; one.draw++) {
        for (size_t i = 0; !status && i < traces->count; i++)
            status = fl_scenes_from_trace(&one, traces->item[i], scenes, d);
        if (!status && (o->programs || o->applications))
            status = fl_scenes_from_programs(&one, scenes, d);
        if (!status && o->sweep)
            status = from_sweep(&one, o->sweep, &o->only, scenes, d);
        if (!status && o->pipeline)
            status = from_pipeline(&one, scenes, d);
        if (!status && o->serving.server)
            status = from_serving(&one, scenes, d);
    }
    if (status)
        fl_scenes_free(scenes);
    return status;
}
