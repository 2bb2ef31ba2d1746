/* What all scenes share: clipping, defaults, checks, completion. */
#include "harness/input/scene/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "sim/gpu/gpu.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"
#include "traces/pipeline/pipeline.h"
#include "traces/serving/serving.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fl_program_set_leave(fl_program_set *set) {
    if (!set || --set->users)
        return;
    fl_programs_free(&set->p);
    fl_kinds_free(&set->kinds);
    free(set->kinds_path);
    free(set);
}

static void again_free(struct fl_scene_again *again) {
    if (!again)
        return;
    fl_program_set_leave(again->set);
    fl_kinds_free(&again->kinds);
    free(again);
}

static void scene_free(fl_scene *s) {
    if (!s)
        return;
    again_free(s->again);
    fl_facts_free(&s->facts);
    fl_rates_free(s->rates);
    fl_workload_free(s->w);
    fl_serving_scene_free(s->serving);
    fl_stated_free(&s->stated);
    fl_platform_free(&s->platform);
    free(s->source);
    free(s->kinds);
    free(s->order);
    free(s->slow);
    free(s->op);
    fl_pipeline_free(&s->pipeline);
    fl_pipeline_order_free(&s->instructions);
    free(s->asked);
    free(s->variant);
    for (size_t i = 0; i < s->note_count; i++)
        free(s->note[i]);
    free(s->note);
    free(s->arrivals);
    free(s->target_path);
    fl_target_free(&s->target);
    free(s->applications);
    free(s);
}

void fl_scenes_forget(fl_scenes *s, size_t first) {
    for (size_t i = first; i < s->count; i++) {
        fl_rates_free(s->item[i]->rates);
        s->item[i]->rates = NULL;
        fl_workload_forget(s->item[i]->w);
    }
}

void fl_scene_give_back(fl_scene *s) {
    if (!s->again)
        return;
    fl_rates_free(s->rates);
    s->rates = NULL;
    fl_workload_forget(s->w);
}

void fl_scenes_free(fl_scenes *s) {
    for (size_t i = 0; i < s->count; i++)
        scene_free(s->item[i]);
    free(s->item);
    *s = (fl_scenes){0};
}

fl_status fl_scenes_append(fl_scenes *all, fl_scenes *more, fl_diag *d) {
    if (fl_grow(&all->item, &all->room, all->count + more->count, sizeof *all->item))
        return fl_no_memory(d, NULL);
    for (size_t i = 0; i < more->count; i++)
        all->item[all->count++] = more->item[i];
    all->clipped += more->clipped;
    free(more->item);
    *more = (fl_scenes){0};
    return FL_OK;
}

bool fl_node_clip(fl_node_spec *n, double sm_min, double sm_max) {
    bool cut = false;
    for (uint32_t k = 0; k < n->device_count; k++) {
        fl_device *dev = &n->device[k];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < dev->sm_count; i++)
            if (dev->sm_mhz[i] >= sm_min && dev->sm_mhz[i] <= sm_max)
                dev->sm_mhz[kept++] = dev->sm_mhz[i];
        cut |= kept < dev->sm_count;
        dev->sm_count = kept;
        if (kept && dev->default_sm_mhz > dev->sm_mhz[kept - 1])
            dev->default_sm_mhz = dev->sm_mhz[kept - 1];
        if (kept && dev->default_sm_mhz < dev->sm_mhz[0])
            dev->default_sm_mhz = dev->sm_mhz[0];
    }
    return cut;
}

bool fl_node_clip_memory(fl_node_spec *n, const double *mhz, size_t count) {
    bool cut = false;
    for (uint32_t k = 0; k < n->device_count; k++) {
        fl_device *dev = &n->device[k];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < dev->mem_count; i++) {
            size_t m = 0;
            while (m < count && fabs(mhz[m] - dev->mem_mhz[i]) > 0.5)
                m++;
            if (m == count)
                continue;
            dev->mem_mhz[kept] = dev->mem_mhz[i];
            dev->b0_w[kept++] = dev->b0_w[i];
        }
        if (!kept)
            continue; /* another kind of GPU */
        cut |= kept < dev->mem_count;
        dev->mem_count = kept;
        if (fl_ladder_index(dev->mem_mhz, kept, dev->default_mem_mhz) < 0)
            dev->default_mem_mhz = dev->mem_mhz[kept - 1];
    }
    return cut;
}

/* Cut the memory clocks to those at which the load is known. */
static bool keep_memories(fl_node_spec *n, const fl_load *load) {
    const fl_device *dev = &n->device[n->gpu[0]];
    double mhz[FL_MEMORY_CLOCKS_MAX];
    size_t count = 0;
    for (uint32_t i = 0; i < dev->mem_count && count < FL_MEMORY_CLOCKS_MAX; i++)
        if (load->measured ? fl_measured_find(load->measured, load->ref_mem_mhz, dev->mem_mhz[i]) != NULL
                           : dev->mem_mhz[i] == load->ref_mem_mhz)
            mhz[count++] = dev->mem_mhz[i];
    return fl_node_clip_memory(n, mhz, count);
}

static fl_status rename_variant(fl_workload *w, const char *variant, fl_diag *d) {
    char *name;
    if (asprintf(&name, "%s [%s]", w->name, variant) < 0)
        return fl_no_memory(d, NULL);
    free(w->name);
    w->name = name;
    return FL_OK;
}

void fl_scene_resolve(fl_scene_options *o) {
    o->model = o->model ? o->model : FL_MODEL_STANDARD;
    o->repeat = o->repeat ? o->repeat : FL_REPEAT_STANDARD;
    o->windows = o->windows ? o->windows : FL_WINDOWS_STANDARD;
    o->seed = o->seed ? o->seed : FL_SEED_STANDARD;
    o->draws = o->draws ? o->draws : 1;
}

fl_status fl_scene_sort(fl_scene_options *o, fl_texts *files, fl_diag *d) {
    const char **into[FL_FILE_TYPES] = {[FL_FILE_SWEEP] = &o->sweep,
                                        [FL_FILE_PROGRAMS] = &o->programs,
                                        [FL_FILE_PIPELINE] = &o->pipeline,
                                        [FL_FILE_SERVING] = &o->serving.server,
                                        [FL_FILE_REQUESTS] = &o->serving.requests};
    size_t kept = 0;
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < files->count; i++) {
        const char *path = files->item[i];
        fl_file_type type;
        if ((s = fl_file_type_find(path, &type, d)))
            break;
        const char *name = fl_file_type_name(type);
        if (type == FL_FILE_RECORDING)
            files->item[kept++] = path;
        else if (!into[type])
            s = fl_fail(d, FL_BAD_INPUT, path, 1, 0,
                        "is %s, expected a kernel trace, a sweep, programs, a pipeline, or a server and requests%s",
                        name,
                        type == FL_FILE_RESULT ? " (show, plot and report read results, regress compares two)" : "");
        else if (*into[type])
            s = fl_fail(d, FL_BAD_INPUT, path, 1, 0, "is %s like %s, expected one file of this type", name,
                        *into[type]);
        else
            *into[type] = path;
    }
    files->count = s ? files->count : kept;
    return s;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* A trace that is named twice would count twice in every mean. */
static fl_status check_twice(const fl_texts *traces, fl_diag *d) {
    char **path = calloc(traces->count + 1, sizeof *path);
    fl_status s = path ? FL_OK : fl_no_memory(d, NULL);
    size_t count = 0;
    for (size_t i = 0; path && i < traces->count; i++)
        if (!fl_is_standard(traces->item[i]) && (path[count] = realpath(traces->item[i], NULL)))
            count++; /* the reader names a file that is missing */
    if (count)
        qsort(path, count, sizeof *path, by_text);
    for (size_t i = 1; !s && i < count; i++)
        if (!strcmp(path[i - 1], path[i]))
            s = fl_refuse(d, "%s is given twice, expected each trace once", path[i]);
    for (size_t i = 0; i < count; i++)
        free(path[i]);
    free(path);
    return s;
}

fl_status fl_scene_check(const fl_scene_options *o, const fl_texts *traces, fl_diag *d) {
    fl_status twice = check_twice(traces, d);
    if (twice)
        return twice;
    const bool programs = o->programs || o->applications, other = traces->count || programs || o->sweep || o->pipeline;
    const bool any = other || o->serving.server;
    const fl_status served = fl_serving_choice_check(&o->serving, d);
    if (served)
        return served;
    if (o->serving.server && other)
        return fl_refuse(d, "a server and another workload have different targets and results, expected only one of "
                            "them");
    if (o->serving.server && (o->gpus || o->arrivals || o->kinds || o->assume))
        return fl_refuse(d, "%s has no effect on a server, expected none",
                         o->gpus       ? "--gpus (a server states its GPUs)"
                         : o->arrivals ? "--arrivals (requests have their times)"
                         : o->kinds    ? "--kinds"
                                       : "--assume");
    if (any && !o->sweep && o->model)
        return fl_refuse(d, "--model has no effect without a sweep, expected one as well");
    if (any && !o->sweep && !o->pipeline && o->repeat)
        return fl_refuse(d, "--repeat has no effect without a sweep or a pipeline, expected one as well");
    if (any && !o->sweep && fl_replay_chosen(&o->replay, false))
        return fl_refuse(d, "%s has no effect without a sweep, expected one as well",
                         fl_replay_chosen(&o->replay, false));
    if (any && !o->pipeline && o->slow.count)
        return fl_refuse(d, "--slow has no effect without a pipeline, expected one as well");
    if (o->pipeline && o->gpus)
        return fl_refuse(d, "--gpus has no effect with a pipeline, which has one GPU per rank, expected it "
                            "without");
    if (o->pipeline && o->arrivals)
        return fl_refuse(d, "--arrivals has no effect with a pipeline, expected a workload that serves requests");
    if (any && !programs && o->seconds > 0)
        return fl_refuse(d, "--seconds has no effect without programs, expected a file of them as well");
    if (any && !programs && !o->sweep && o->only.count)
        return fl_refuse(d, "--workload has no effect without a sweep or programs, expected one as well");
    return FL_OK;
}

fl_status fl_scene_serve(fl_scene *s, const fl_scene_options *o, fl_diag *d) {
    fl_arrivals_spec spec;
    fl_arrivals a = {0};
    fl_status status = fl_arrivals_spec_parse(o->arrivals, &spec, d);
    if (!status)
        status = fl_arrivals_make(&spec, (uint64_t)o->seed, s->draw, &a, d);
    if (!status)
        status = fl_workload_serve(s->w, a.t_ns, a.count, (uint32_t)o->windows, d);
    fl_arrivals_free(&a);
    return status || s->arrivals || (s->arrivals = strdup(o->arrivals)) ? status : fl_no_memory(d, NULL);
}

/* What is stated of the streams must be so: a policy may rest its promise on it. */
static fl_status check_streams(const fl_scene *s, const fl_stated_facts *stated, fl_diag *d) {
    for (uint32_t i = 0; stated->streams && i < s->w->stream_count; i++) {
        int64_t count = 0;
        for (uint32_t k = 0; k < s->w->stream_count; k++)
            count += s->w->stream[k].gpu == s->w->stream[i].gpu;
        if (count > stated->streams)
            return fl_fail(d, FL_BAD_INPUT, s->source, 0, 0, "%lld streams use GPU %u, but --streams is %lld",
                           (long long)count, s->w->stream[i].gpu, (long long)stated->streams);
    }
    return FL_OK;
}

const fl_target *fl_scene_target(const fl_scene *s) { return s->target.count ? &s->target : NULL; }

static fl_status read_target(fl_scene *s, const char *path, fl_diag *d) {
    if (!path)
        return FL_OK;
    const fl_status status = fl_target_read(path, &s->target, d);
    return status || (s->target_path = strdup(path)) ? status : fl_no_memory(d, NULL);
}

fl_status fl_scene_complete(fl_scene *s, const fl_scene_options *o, fl_diag *d) {
    s->draw = (uint64_t)o->draw;
    fl_status asked = read_target(s, o->target, d);
    if (asked)
        return asked;
    if (o->arrivals) {
        fl_status served = fl_scene_serve(s, o, d);
        if (served)
            return served;
    }
    if (o->variant) {
        fl_status renamed = rename_variant(s->w, o->variant, d);
        if (renamed)
            return renamed;
        if (!(s->variant = strdup(o->variant)))
            return fl_no_memory(d, NULL);
    }
    if (s->w->measured) /* a measured table is never extrapolated: the ladder ends where the measurements end */
        s->clipped = fl_node_clip(&s->platform.node, s->w->sm_min_mhz, s->w->sm_max_mhz);
    if ((s->w->measured || s->w->predicted) && keep_memories(&s->platform.node, &s->w->class[0].load))
        s->clipped |= s->w->measured;
    s->node = o->node;
    if (!(s->asked = strdup(o->platform)))
        return fl_no_memory(d, NULL);
    if (!s->platform.node.device[s->platform.node.gpu[0]].sm_count)
        return fl_fail(d, FL_BAD_INPUT, s->source, 0, 0,
                       "%s was measured from %g to %g MHz, but %s has no clock in that range", s->w->name,
                       s->w->sm_min_mhz, s->w->sm_max_mhz, s->platform.name);
    fl_status status = fl_rates_new(&s->rates, s->w, &s->platform.node, d);
    if (!status)
        status = fl_facts_make(&s->platform.node, (uint64_t)o->seed + s->draw, &s->facts, d);
    if (!status)
        fl_facts_state(&o->stated, &s->facts);
    return status ? status : check_streams(s, &o->stated, d);
}

fl_status fl_scene_add(fl_scenes *all, const char *source, fl_scene **s, fl_diag *d) {
    if (fl_grow(&all->item, &all->room, all->count + 1, sizeof *all->item))
        return fl_no_memory(d, NULL);
    if (!(*s = all->item[all->count++] = calloc(1, sizeof **s)) || !((*s)->source = strdup(source)))
        return fl_no_memory(d, NULL);
    return FL_OK;
}

/* Which of `count` workloads named by `name` are wanted: all, or those that `only` lists. */
bool fl_scene_wanted(const fl_texts *only, const char *name) {
    bool wanted = !only->count;
    for (size_t k = 0; !wanted && k < only->count; k++)
        wanted = !strcmp(name, only->item[k]);
    return wanted;
}

/* Each wanted name must be one of those that names[index[0..count)] gives. */
fl_status fl_scene_check_wanted(const fl_texts *only, const char *path, char *const *names, const uint32_t *index,
                                size_t count, fl_diag *d) {
    const char **all = malloc((count + 1) * sizeof *all);
    fl_status s = all ? FL_OK : fl_no_memory(d, NULL);
    for (size_t i = 0; all && i < count; i++)
        all[i] = names[index[i]];
    for (size_t k = 0; !s && k < only->count; k++) {
        size_t i = 0;
        while (i < count && strcmp(all[i], only->item[k]))
            i++;
        if (i == count)
            s = fl_fail_unknown(d, path, "workload", only->item[k], all, count);
    }
    free(all);
    return s;
}

fl_status fl_scenes_spare(const fl_scenes *s, const fl_spec *spec, size_t specs, const fl_option *option, size_t count,
                          fl_diag *d) {
    fl_status status = FL_OK;
    for (size_t k = 0; k < s->count; k++) {
        const fl_scene *scene = s->item[k];
        const char *const in[] = {scene->source, scene->kinds, scene->platform.path, scene->order, scene->target_path};
        for (size_t n = 0; !status && n < sizeof in / sizeof *in; n++)
            status = fl_args_spare(option, count, in[n], d);
    }
    for (size_t k = 0; k < specs; k++) {
        for (size_t n = 0; !status && n < spec[k].layer.count; n++)
            status = fl_args_spare(option, count, spec[k].file[n], d);
        if (!status)
            status = fl_args_spare(option, count, spec[k].plugin, d);
    }
    return status;
}
