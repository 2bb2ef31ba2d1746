/* libfoldline: the public calls, over scenes and runs. */
#include "harness/foldline/foldline.h"

#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "policies/registry/registry.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct foldline_scene { /* of a file, or of arrays */
    fl_scenes scenes;
    const fl_scene *from_file; /* NULL: of arrays, which the other members hold */
    fl_platform platform;
    fl_workload *w;
    fl_rates *rates;
    fl_facts facts;
};

const char *foldline_version(void) { return FL_VERSION; }

const char *foldline_policy_name(size_t index) { return index < fl_policies_count ? fl_policies[index]->name : NULL; }

static foldline_status told(const fl_diag *d, foldline_error *e) {
    const foldline_status status = d->status == FL_OK          ? FOLDLINE_OK
                                   : d->status == FL_BAD_INPUT ? FOLDLINE_BAD_INPUT
                                                               : FOLDLINE_SYSTEM;
    if (e) {
        e->status = status;
        if (status)
            (void)fl_diag_text(d, e->text, sizeof e->text);
        else
            e->text[0] = '\0';
    }
    return status;
}

/* ---- from a file ---- */

static fl_status open_file(const char *file, const foldline_options *o, foldline_scene *s, fl_diag *d) {
    fl_scene_options options = {.platform = o->platform,
                                .assume = o->assume,
                                .gpus = (int64_t)o->gpus,
                                .seed = o->seed ? (int64_t)o->seed : FL_SEED_STANDARD,
                                .no_cache = true};
    fl_texts files = {0};
    fl_status status = fl_texts_add(&files, file, d);
    if (!status && o->workload)
        status = fl_texts_add(&options.only, o->workload, d);
    if (!status)
        status = fl_scene_sort(&options, &files, d);
    if (!status && (options.serving.server || options.serving.requests || options.pipeline))
        status = fl_fail(d, FL_BAD_INPUT, file, 0, 0,
                         "is about servers or a pipeline, expected a trace, a sweep or programs");
    if (!status) {
        fl_scene_resolve(&options);
        status = fl_scenes_open(&options, &files, &s->scenes, d);
    }
    if (!status && s->scenes.count != 1)
        status = fl_fail(d, FL_BAD_INPUT, file, 0, 0, "has %zu workloads, expected the name of one", s->scenes.count);
    if (!status)
        s->from_file = s->scenes.item[0];
    fl_texts_free(&options.only);
    fl_texts_free(&files);
    return status;
}

/* ---- from arrays ---- */

static fl_status head_real(fl_head *head, const char *key, double value, fl_diag *d) {
    char text[FL_REAL_TEXT];
    return fl_head_set(head, key, fl_real_text(value, text)) ? FL_OK : fl_no_memory(d, "the kernels");
}

static fl_status take_kernels(const foldline_kernel *kernel, size_t count, double sm_mhz, double mem_mhz,
                              fl_kernel_trace *t, fl_diag *d) {
    static const uint32_t one[3] = {1, 1, 1};
    fl_status s = head_real(&t->head, "sm_mhz", sm_mhz, d);
    if (!s)
        s = head_real(&t->head, "mem_mhz", mem_mhz, d);
    for (size_t i = 0; !s && i < count; i++) {
        if (!kernel[i].name || kernel[i].end_ns < kernel[i].start_ns || kernel[i].start_ns < 0)
            return fl_refuse(d, "kernel %zu: no name, or an end before its start, expected a kernel that ran", i);
        const uint32_t kind = fl_trace_add_kind(t, kernel[i].name, one, one);
        const fl_trace_op op = {.start_ns = kernel[i].start_ns,
                                .end_ns = kernel[i].end_ns,
                                .launch_ns = INT64_MIN,
                                .bytes = -1,
                                .kind = kind,
                                .device = kernel[i].device,
                                .stream = kernel[i].stream,
                                .host_thread = -1,
                                .type = FL_OP_KERNEL};
        s = kind == UINT32_MAX || fl_trace_add_op(t, &op) ? fl_no_memory(d, "the kernels") : FL_OK;
    }
    return s;
}

static fl_status take_kinds(const foldline_kind *kind, size_t count, double sharpness, fl_kinds *k, fl_diag *d) {
    if (!(k->kind = calloc(count + 1, sizeof *k->kind)))
        return fl_no_memory(d, "the kinds");
    for (; k->count < count; k->count++) {
        const foldline_kind *from = &kind[k->count];
        const double other = 1 - pow(pow(from->core, sharpness) + pow(from->memory, sharpness), 1 / sharpness);
        if (!from->name || !(from->core >= 0 && from->memory >= 0 && other >= -1e-9) ||
            !(from->core_power >= 0 && from->core_power <= 1 && from->memory_power >= 0 && from->memory_power <= 1))
            return fl_refuse(d, "kind %zu: no name, or shares that make no whole, expected shares from 0 to 1",
                             k->count);
        k->kind[k->count] = (fl_kind_load){.name = strdup(from->name),
                                           .tc = from->core,
                                           .tm = from->memory,
                                           .tl = fmax(0, other),
                                           .sharpness = sharpness,
                                           .alpha = from->core_power,
                                           .beta = from->memory_power,
                                           .sm_demand = NAN,
                                           .phase = 1,
                                           .host_bound = NAN,
                                           .host_alpha = NAN,
                                           .host_upc = NAN,
                                           .host_gb_s = NAN};
        if (!k->kind[k->count].name)
            return fl_no_memory(d, "the kinds");
    }
    return FL_OK;
}

static fl_status open_arrays(const fl_kernel_trace *t, const foldline_kind *kind, size_t kinds,
                             const foldline_options *o, foldline_scene *s, fl_diag *d) {
    fl_kinds k = {0};
    fl_status status = fl_platform_open(o->platform, o->gpus, &s->platform, d);
    if (!status && kinds)
        status = take_kinds(kind, kinds, s->platform.node.device[s->platform.node.gpu[0]].sharpness, &k, d);
    const fl_build_options build = {.kinds = kinds ? &k : NULL, .assume = o->assume};
    if (!status)
        status = fl_build_trace(&s->w, "kernels", t, &s->platform.node, &build, d);
    if (!status)
        status = fl_rates_new(&s->rates, s->w, &s->platform.node, d);
    if (!status)
        status = fl_facts_make(&s->platform.node, o->seed ? o->seed : FL_SEED_STANDARD, &s->facts, d);
    fl_kinds_free(&k);
    return status;
}

/* ---- open and close ---- */

static foldline_status close_or_keep(foldline_scene *s, foldline_scene **scene, const fl_diag *d, foldline_error *e) {
    if (d->status) {
        foldline_close(s);
        s = NULL;
    }
    *scene = s;
    return told(d, e);
}

foldline_status foldline_open(const char *file, const foldline_options *o, foldline_scene **scene, foldline_error *e) {
    fl_diag d = {0};
    foldline_scene *s = calloc(1, sizeof *s);
    if (!s)
        (void)fl_no_memory(&d, "the scene");
    else if (!o->platform)
        (void)fl_refuse(&d, "no platform given");
    else
        (void)open_file(file, o, s, &d);
    return close_or_keep(s, scene, &d, e);
}

foldline_status foldline_open_kernels(const foldline_kernel *kernel, size_t count, double sm_mhz, double mem_mhz,
                                      const foldline_kind *kind, size_t kinds, const foldline_options *o,
                                      foldline_scene **scene, foldline_error *e) {
    fl_diag d = {0};
    fl_kernel_trace t = {0};
    foldline_scene *s = calloc(1, sizeof *s);
    if (!s)
        (void)fl_no_memory(&d, "the scene");
    else if (!o->platform)
        (void)fl_refuse(&d, "no platform given");
    else if (!take_kernels(kernel, count, sm_mhz, mem_mhz, &t, &d))
        (void)open_arrays(&t, kind, kinds, o, s, &d);
    fl_kernel_trace_free(&t);
    return close_or_keep(s, scene, &d, e);
}

void foldline_close(foldline_scene *s) {
    if (!s)
        return;
    fl_scenes_free(&s->scenes);
    fl_facts_free(&s->facts);
    fl_rates_free(s->rates);
    fl_workload_free(s->w);
    fl_platform_free(&s->platform);
    free(s);
}

static const fl_platform *platform_of(const foldline_scene *s) {
    return s->from_file ? &s->from_file->platform : &s->platform;
}

size_t foldline_clocks(const foldline_scene *s, double *mhz, size_t room) {
    const fl_node_spec *node = &platform_of(s)->node;
    const fl_device *dev = &node->device[node->gpu[0]];
    for (size_t i = 0; i < dev->sm_count && i < room; i++)
        mhz[i] = dev->sm_mhz[i];
    return dev->sm_count;
}

/* ---- a run ---- */

typedef struct timeline {
    foldline_result *r;
    size_t room;
    fl_wide *energy_fj; /* of each GPU at the last point */
    int64_t last_ps;
} timeline;

static fl_status add_points(void *user, const fl_node *node, int64_t t_ps, fl_diag *d) {
    timeline *l = user;
    const uint32_t gpus = fl_node_gpu_count(node);
    const double passed_ps = (double)(t_ps - l->last_ps);
    if (fl_grow(&l->r->point, &l->room, l->r->points + gpus, sizeof *l->r->point))
        return fl_no_memory(d, "the time line");
    for (uint32_t i = 0; i < gpus && passed_ps > 0; i++) {
        const fl_gpu *g = fl_node_gpu(node, i);
        l->r->point[l->r->points++] =
            (foldline_point){.t_s = (double)t_ps * 1e-12,
                             .gpu = i,
                             .sm_mhz = g->dev->sm_mhz[g->sm],
                             .mem_mhz = g->dev->mem_mhz[g->mem],
                             .limit_w = fl_node_limit_w(node, i),
                             .power_w = (double)(g->sums.energy_fj - l->energy_fj[i]) / passed_ps * 1e-3};
        l->energy_fj[i] = g->sums.energy_fj;
    }
    l->last_ps = t_ps;
    return FL_OK;
}

static fl_status run(const foldline_scene *s, const foldline_run_options *o, fl_spec *spec, foldline_result *out,
                     fl_diag *d) {
    const fl_platform *platform = platform_of(s);
    const fl_policy *policy = o->own ? o->own : spec->policy;
    const fl_facts *facts = s->from_file ? &s->from_file->facts : &s->facts;
    const fl_layer layer[] = {policy ? fl_platform_layer(platform, policy->name) : (fl_layer){0}, spec->layer};
    timeline line = {.r = out, .energy_fj = calloc(facts->gpu_count, sizeof *line.energy_fj)};
    fl_run_result r = {0};
    const fl_run_options options = {.w = s->from_file ? s->from_file->w : s->w,
                                    .rates = s->from_file ? s->from_file->rates : s->rates,
                                    .spec = &platform->node,
                                    .facts = facts,
                                    .policy = policy,
                                    .layer = layer,
                                    .layer_count = policy ? FL_COUNT(layer) : 0,
                                    .on_truth = o->every_s > 0 ? add_points : NULL,
                                    .truth_ns = (int64_t)(o->every_s * 1e9),
                                    .user = &line};
    fl_status status = line.energy_fj ? fl_run(&options, &r, d) : fl_no_memory(d, "the time line");
    if (!status) {
        out->energy_j = r.energy_j;
        out->node_energy_j = r.node_energy_j;
        out->time_s = r.makespan_s;
        out->mean_power_w = r.mean_power_w;
        out->peak_power_w = r.peak_power_w;
        out->kernels = r.kernels;
        out->switches = r.switches;
        out->faults = r.counts.faults;
    }
    fl_run_result_free(&r);
    free(line.energy_fj);
    return status;
}

foldline_status foldline_run(const foldline_scene *s, const foldline_run_options *o, foldline_result *r,
                             foldline_error *e) {
    fl_diag d = {0};
    fl_spec spec = {0};
    *r = (foldline_result){0};
    if (o->policy && o->own)
        (void)fl_refuse(&d, "a policy by name and one of the caller's, expected one of them");
    else if (!(o->every_s == 0 || (o->every_s >= 1e-9 && o->every_s <= 1e9)))
        (void)fl_refuse(&d, "every_s is out of range, expected 0 or 1e-9 to 1e9");
    else if (!o->policy || !fl_spec_open(o->policy, &spec, &d))
        (void)run(s, o, &spec, r, &d);
    fl_spec_free(&spec);
    return told(&d, e);
}

void foldline_result_free(foldline_result *r) {
    free(r->point);
    *r = (foldline_result){0};
}
