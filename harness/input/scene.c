#include "harness/input/scene.h"

#include "harness/base/pool.h"
#include "harness/input/outline_file.h"
#include "harness/input/sweep_model.h"
#include "sim/build_program.h"
#include "sim/instance.h"
#include "sim/serve.h"
#include "sim/synth_apps.h"
#include "sim/synth_program.h"
#include "traces/gzip.h"
#include "traces/kernels.h"
#include "traces/standard.h"
#include "traces/trace_open.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BRIEF_S 1.0        /* of a program that is built only to see that it can be */
enum { HELD_OPS = 50000 }; /* 400 KB: what is shorter is held, not built again */

/* The programs of a file, or those that were drawn: shared by their scenes, freed with the last. */
typedef struct program_set {
    fl_programs p;
    fl_kinds kinds;
    char *kinds_path; /* of the file that the kinds were read from; NULL: they were drawn, or there are none */
    bool has_kinds;
    size_t users;
} program_set;

struct fl_scene_again {
    fl_scene_options o;
    program_set *set; /* NULL: a trace */
    size_t index;     /* of the program */
    fl_kinds kinds;   /* of a trace: read once, for the file may change, or be a pipe */
    bool has_kinds;
    fl_cache_key key; /* of a trace: of the bytes that were read */
};

static void leave_set(program_set *set) {
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
    leave_set(again->set);
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

bool fl_node_clip(fl_node_spec *n, double sm_min, double sm_max, double mem_mhz) {
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
        int mem = fl_ladder_index(dev->mem_mhz, dev->mem_count, mem_mhz);
        if (mem < 0)
            continue;
        cut |= dev->mem_count > 1;
        dev->mem_mhz[0] = dev->mem_mhz[mem];
        dev->b0_w[0] = dev->b0_w[mem];
        dev->default_mem_mhz = dev->mem_mhz[0];
        dev->mem_count = 1;
    }
    return cut;
}

/* Cuts the memory clocks to those that a predicted load has. */
static void keep_memories(fl_node_spec *n, const fl_load *load) {
    for (uint32_t k = 0; k < n->device_count; k++) {
        fl_device *dev = &n->device[k];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < dev->mem_count; i++)
            if (fl_measured_find(load->measured, load->ref_mem_mhz, dev->mem_mhz[i])) {
                dev->mem_mhz[kept] = dev->mem_mhz[i];
                dev->b0_w[kept++] = dev->b0_w[i];
            }
        if (!kept)
            continue; /* another kind of GPU */
        dev->mem_count = kept;
        if (fl_ladder_index(dev->mem_mhz, kept, dev->default_mem_mhz) < 0)
            dev->default_mem_mhz = dev->mem_mhz[kept - 1];
    }
}

static fl_status rename_variant(fl_workload *w, const char *variant, fl_diag *d) {
    char *name;
    if (asprintf(&name, "%s [%s]", w->name, variant) < 0)
        return fl_no_memory(d, NULL);
    free(w->name);
    w->name = name;
    return FL_OK;
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

void fl_scene_resolve(fl_scene_options *o) {
    o->model = o->model ? o->model : FL_MODEL_STANDARD;
    o->repeat = o->repeat ? o->repeat : FL_REPEAT_STANDARD;
    o->windows = o->windows ? o->windows : FL_WINDOWS_STANDARD;
    o->seed = o->seed ? o->seed : FL_SEED_STANDARD;
    o->draws = o->draws ? o->draws : 1;
}

fl_status fl_scene_check(const fl_scene_options *o, const fl_texts *traces, fl_diag *d) {
    const bool programs = o->programs || o->applications, other = traces->count || programs || o->sweep || o->pipeline;
    const bool any = other || o->serving.server;
    const fl_status served = fl_serving_choice_check(&o->serving, d);
    if (served)
        return served;
    if (o->serving.server && other)
        return fl_refuse(d, "--serving and another workload, expected one of them: their targets and results differ");
    if (o->serving.server && (o->gpus || o->arrivals || o->kinds || o->assume))
        return fl_refuse(d, "%s does nothing with --serving, expected it without",
                         o->gpus       ? "--gpus (a server states its GPUs)"
                         : o->arrivals ? "--arrivals (requests have their times)"
                         : o->kinds    ? "--kinds"
                                       : "--assume");
    if (any && !o->sweep && o->model)
        return fl_refuse(d, "--model is of the workloads of a sweep and does nothing here, expected --sweep FILE with it");
    if (any && !o->sweep && !o->pipeline && o->repeat)
        return fl_refuse(d, "--repeat is of the workloads of a sweep or of a pipeline and does nothing here, expected "
                            "--sweep FILE or --pipeline FILE with it");
    if (any && !o->sweep && (o->replay.jitter || o->replay.iteration_s > 0))
        return fl_refuse(d, "%s is of the workloads of a sweep and does nothing here, expected --sweep FILE with it",
                         o->replay.jitter ? "--jitter" : "--iteration");
    if (any && !o->pipeline && o->slow.count)
        return fl_refuse(d, "--slow is of the ranks of a pipeline and does nothing here, expected --pipeline FILE with it");
    if (o->pipeline && o->gpus)
        return fl_refuse(d, "--gpus does nothing with a pipeline, which has a GPU for each rank; expected it without");
    if (o->pipeline && o->arrivals)
        return fl_refuse(d, "--arrivals does nothing with a pipeline, expected a workload that serves requests");
    if (any && !programs && o->seconds > 0)
        return fl_refuse(d, "--seconds is of programs and does nothing here, expected --programs FILE with it");
    if (any && !programs && !o->sweep && o->only.count)
        return fl_refuse(d, "--workload chooses among those of a sweep or of programs and does nothing here, expected "
                            "--sweep FILE or --programs FILE with it");
    return FL_OK;
}

static fl_status serve(fl_scene *s, const fl_scene_options *o, fl_diag *d) {
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

static fl_status complete(fl_scene *s, const fl_scene_options *o, fl_diag *d) {
    s->draw = (uint64_t)o->draw;
    if (o->arrivals) {
        fl_status served = serve(s, o, d);
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
        s->clipped =
            fl_node_clip(&s->platform.node, s->w->sm_min_mhz, s->w->sm_max_mhz, s->w->class[0].load.ref_mem_mhz);
    if (s->w->predicted)
        keep_memories(&s->platform.node, &s->w->class[0].load);
    s->node = o->node;
    if (!(s->asked = strdup(o->platform)))
        return fl_no_memory(d, NULL);
    if (!s->platform.node.device[s->platform.node.gpu[0]].sm_count)
        return fl_fail(d, FL_BAD_INPUT, s->source, 0, 0, "%s: measured from %g to %g MHz, and %s has no clock there",
                       s->w->name, s->w->sm_min_mhz, s->w->sm_max_mhz, s->platform.name);
    fl_status status = fl_rates_new(&s->rates, s->w, &s->platform.node, d);
    if (!status)
        status = fl_facts_make(&s->platform.node, (uint64_t)o->seed + s->draw, &s->facts, d);
    if (!status)
        fl_facts_state(&o->stated, &s->facts);
    return status;
}

static fl_status add_scene(fl_scenes *all, const char *source, fl_scene **s, fl_diag *d) {
    if (fl_grow(&all->item, &all->room, all->count + 1, sizeof *all->item))
        return fl_no_memory(d, NULL);
    if (!(*s = all->item[all->count++] = calloc(1, sizeof **s)) || !((*s)->source = strdup(source)))
        return fl_no_memory(d, NULL);
    return FL_OK;
}

char *fl_scene_kinds_path(const char *given, const char *trace, const fl_head *head) {
    if (given)
        return strdup(given);
    const char *named = fl_head_get(head, "kinds"), *slash = strrchr(trace, '/');
    char *path = NULL;
    size_t stem = fl_plain_length(trace);
    if (named && (named[0] == '/' || !slash))
        return strdup(named);
    if (named)
        return asprintf(&path, "%.*s/%s", (int)(slash - trace), trace, named) < 0 ? NULL : path;
    for (size_t i = stem; i && trace[i - 1] != '/'; i--)
        if (trace[i - 1] == '.') {
            stem = i - 1;
            break;
        }
    if (asprintf(&path, "%.*s.kinds.csv", (int)stem, trace) < 0)
        return NULL;
    if (access(path, R_OK)) {
        free(path);
        return NULL;
    }
    return path;
}

static uint32_t devices_of(const fl_kernel_trace *t) {
    int32_t seen[1024];
    uint32_t n = 0;
    for (size_t i = 0; i < t->op_count && n < 1024; i++) {
        uint32_t k = 0;
        while (k < n && seen[k] != t->ops[i].device)
            k++;
        if (k == n)
            seen[n++] = t->ops[i].device;
    }
    return n;
}

/* What a workload is built of: kernels that were read or made, or, of a trace, the workload as it was kept. */
typedef struct origin {
    fl_imported in;
    const fl_kinds *kinds;  /* of the set, or read before; NULL: the scene's source names them, or there are none */
    const fl_programs *set; /* where the kernels are those of a program: its place in the set, seed and length */
    size_t index;
    uint64_t seed;
    double seconds;
    fl_kept_workload kept;
    fl_cache_key key;
    bool known; /* key is that of in */
} origin;

static const fl_kernel_trace *kernels_of(const origin *from) {
    return from->kept.w ? &from->kept.t : &from->in.kernels;
}

static uint32_t device_count(const origin *from) {
    if (from->set)
        return 1;
    return from->kept.w ? from->kept.outline.device_count : devices_of(&from->in.kernels);
}

static fl_status read_trace(const char *path, origin *from, fl_diag *d) {
    fl_status status = fl_trace_open_key(path, NULL, NULL, &from->in, &from->key, &from->known, d);
    if (!status && !from->in.has_kernels)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "%s, expected a kernel trace",
                         from->in.has_telemetry  ? "has telemetry only"
                         : from->in.has_requests ? "has requests to a server"
                                                 : "is a sweep, which --sweep FILE takes");
    return status;
}

static fl_status build_kernels(fl_scene *s, const char *name, origin *from, const fl_build_options *build, fl_diag *d) {
    fl_outline outline;
    const fl_status status =
        fl_build_trace_outline(&s->w, &outline, name, &from->in.kernels, &s->platform.node, build, d);
    if (status)
        return status;
    if (from->known)
        fl_kept_workload_save(s->source, &from->key, &from->in, &outline, s->w);
    fl_outline_free(&outline);
    return FL_OK;
}

static fl_status build_program(fl_scene *s, const char *name, origin *from, const fl_build_options *build, fl_diag *d) {
    fl_status status =
        fl_build_program(&s->w, name, from->set, from->index, from->seed, from->seconds, &s->platform.node, build, d);
    if (status || s->w)
        return status;
    status = fl_synth_program(from->set, from->index, from->seed, from->seconds, &from->in.kernels, d);
    return status ? status : build_kernels(s, name, from, build, d);
}

/* As it was kept, if it is the same for this platform and these kinds; else from the trace. */
static fl_status build(fl_scene *s, const char *name, origin *from, const fl_build_options *build, fl_diag *d) {
    bool fits = false;
    if (from->set)
        return build_program(s, name, from, build, d);
    if (!from->kept.w)
        return build_kernels(s, name, from, build, d);
    free(from->kept.w->name);
    if (!(from->kept.w->name = strdup(name)))
        return fl_no_memory(d, "the workload");
    fl_status status =
        fl_build_outline(from->kept.w, &from->kept.outline, &from->kept.t, &s->platform.node, build, &fits, d);
    if (fits) {
        s->w = from->kept.w;
        from->kept.w = NULL;
    }
    if (status || fits)
        return status;
    fl_kept_workload_free(&from->kept);
    status = read_trace(s->source, from, d);
    return status ? status : build_kernels(s, name, from, build, d);
}

static void origin_free(origin *from) {
    fl_kept_workload_free(&from->kept);
    fl_imported_free(&from->in);
}

/* Fills the scene of kernels that were read, made or kept. */
static fl_status from_kernels(const fl_scene_options *o, fl_scene *s, const char *name, const fl_head *head,
                              origin *from, fl_diag *d) {
    fl_kinds kinds = {0};
    if (!from->set)
        s->kinds = fl_scene_kinds_path(o->kinds, s->source, head);
    const bool beside = !from->set && s->kinds;
    fl_status status = beside ? fl_kinds_read(s->kinds, &kinds, d) : FL_OK;
    if (!status)
        status = fl_platform_open(o->platform, (uint32_t)o->gpus, &s->platform, d);
    uint32_t devices = status ? 0 : device_count(from);
    if (!status && !o->gpus && devices > s->platform.node.gpu_count) {
        fl_platform_free(&s->platform);
        status = fl_platform_open(o->platform, devices, &s->platform, d);
    }
    if (!status)
        status = fl_node_choose(&s->platform.node, &o->node, d);
    const fl_build_options options = {
        .windows = (uint32_t)o->windows, .kinds = beside ? &kinds : from->kinds, .assume = o->assume};
    if (!status)
        status = build(s, name, from, &options, d);
    if (!status)
        status = complete(s, o, d);
    if (!status && beside && s->again) {
        s->again->kinds = kinds;
        s->again->has_kinds = true;
        kinds = (fl_kinds){0};
    }
    fl_kinds_free(&kinds);
    if (!status && s->again && (s->w->op_count > HELD_OPS || from->seconds != o->seconds))
        fl_scene_give_back(s);
    return status;
}

static const fl_kinds *kinds_of(const program_set *set) { return set->has_kinds ? &set->kinds : NULL; }

/* Of a trace, the trace; the program that it was, else. */
static void find_origin(const fl_scene *s, origin *from) {
    const struct fl_scene_again *again = s->again;
    from->kinds = again->has_kinds ? &again->kinds : NULL;
    if (!again->set)
        return;
    from->kinds = kinds_of(again->set);
    from->set = &again->set->p;
    from->index = again->index;
    from->seed = (uint64_t)again->o.seed;
    from->seconds = again->o.seconds;
}

/* The workload stays where it is: rates and rows point to it, and its name may say more than that of its source. */
static void replace_workload(fl_workload *old, fl_workload *made) {
    char *name = old->name;
    old->name = made->name;
    made->name = name;
    const fl_workload first = *old;
    *old = *made;
    *made = first;
    fl_workload_free(made);
}

/* The trace of a scene that is built again, which must be the one that it was built of first. */
static fl_status read_again(const fl_scene *s, origin *from, fl_diag *d) {
    const fl_status status = fl_kept_workload_load(s->source, &from->kept) ? FL_OK : read_trace(s->source, from, d);
    const fl_cache_key *now = from->kept.w ? &from->kept.key : from->known ? &from->key : NULL;
    if (status || (now && !memcmp(now->hash, s->again->key.hash, sizeof now->hash)))
        return status;
    return fl_fail(d, FL_BAD_INPUT, s->source, 0, 0,
                   "changed while the command ran, expected the trace to stay as it was until the end");
}

fl_status fl_scene_build(fl_scene *s, fl_diag *d) {
    if (s->rates)
        return FL_OK;
    const fl_scene_options *o = &s->again->o;
    origin from = {0};
    fl_workload *old = s->w;
    find_origin(s, &from);
    s->w = NULL;
    fl_status status = from.set ? FL_OK : read_again(s, &from, d);
    const fl_build_options options = {.windows = (uint32_t)o->windows, .kinds = from.kinds, .assume = o->assume};
    if (!status)
        status = build(s, old->name, &from, &options, d);
    if (!status && o->arrivals)
        status = serve(s, o, d);
    if (!status)
        replace_workload(old, s->w);
    else
        fl_workload_free(s->w);
    s->w = old;
    if (!status)
        status = fl_rates_new(&s->rates, s->w, &s->platform.node, d);
    origin_free(&from);
    return status;
}

static fl_status make_again(fl_scene *s, const fl_scene_options *o, program_set *set, size_t index, fl_diag *d) {
    if (!(s->again = calloc(1, sizeof *s->again)))
        return fl_no_memory(d, NULL);
    *s->again = (struct fl_scene_again){.o = *o, .set = set, .index = index};
    if (set)
        set->users++;
    return FL_OK;
}

static fl_status take_notes(fl_scene *s, char **note, size_t count, fl_diag *d) {
    if (!(s->note = calloc(count + 1, sizeof *s->note)))
        return fl_no_memory(d, NULL);
    for (; s->note_count < count; s->note_count++)
        if (!(s->note[s->note_count] = strdup(note[s->note_count])))
            return fl_no_memory(d, NULL);
    return FL_OK;
}

/* Any format that has kernels; what it does not carry is the platform's. */
static fl_status from_trace(const fl_scene_options *o, const char *path, fl_scenes *all, fl_diag *d) {
    origin from = {0};
    fl_scene *s = NULL;
    fl_status status = fl_kept_workload_load(path, &from.kept) ? FL_OK : read_trace(path, &from, d);
    if (!status)
        status = add_scene(all, path, &s, d);
    if (!status)
        status = from.kept.w ? take_notes(s, from.kept.note, from.kept.note_count, d)
                             : take_notes(s, from.in.note, from.in.note_count, d);
    if (!status && o->hold != FL_SCENES_AT_ONCE && (from.kept.w || from.known)) { /* which can be read again */
        status = make_again(s, o, NULL, 0, d);
        if (!status)
            s->again->key = from.kept.w ? from.kept.key : from.key;
    }
    if (!status)
        status = from_kernels(o, s, fl_input_name(path), &kernels_of(&from)->head, &from, d);
    origin_free(&from);
    return status;
}

/* Which of `count` workloads named by `name` are wanted: all, or those that `only` lists. */
static bool is_wanted(const fl_texts *only, const char *name) {
    bool wanted = !only->count;
    for (size_t k = 0; !wanted && k < only->count; k++)
        wanted = !strcmp(name, only->item[k]);
    return wanted;
}

/* Each wanted name must be one of those that names[index[0..count)] gives. */
static fl_status check_wanted(const fl_texts *only, const char *path, char *const *names, const uint32_t *index,
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

typedef struct program_jobs { /* programs are made side by side: each is a job */
    const fl_scene_options *o;
    program_set *set;
    size_t *index;    /* of the program of each job */
    fl_scene **scene; /* of each job */
} program_jobs;

static fl_status make_program(void *user, size_t job, fl_diag *d) {
    const program_jobs *j = user;
    const fl_scene_options *o = j->o;
    const fl_programs *p = &j->set->p;
    const size_t i = j->index[job];
    const bool briefly = o->hold == FL_SCENES_IN_TURN && !o->arrivals && !(o->seconds > 0 && o->seconds < 10 * BRIEF_S);
    origin from = {.kinds = kinds_of(j->set),
                   .set = p,
                   .index = i,
                   .seed = (uint64_t)o->seed,
                   .seconds = briefly ? BRIEF_S : o->seconds};
    fl_scene *scene = j->scene[job];
    fl_status s = FL_OK;
    if (j->set->kinds_path && !(scene->kinds = strdup(j->set->kinds_path)))
        s = fl_no_memory(d, NULL);
    if (!s)
        s = from_kernels(o, scene, p->names[p->programs[i]], &p->head, &from, d);
    origin_free(&from);
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

static fl_status read_set(const fl_scene_options *o, program_set **out, fl_diag *d) {
    program_set *set = *out = calloc(1, sizeof *set);
    if (!set)
        return fl_no_memory(d, NULL);
    set->users = 1;
    set->has_kinds = o->applications > 0;
    if (set->has_kinds)
        return draw_applications(o, &set->p, &set->kinds, d);
    fl_status s = fl_programs_read(o->programs, &set->p, d);
    if (!s && (set->kinds_path = fl_scene_kinds_path(o->kinds, o->programs, &set->p.head))) {
        s = fl_kinds_read(set->kinds_path, &set->kinds, d);
        set->has_kinds = true;
    }
    return s;
}

static fl_status from_programs(const fl_scene_options *o, fl_scenes *all, fl_diag *d) {
    program_jobs j = {.o = o};
    size_t jobs = 0;
    char seed[24];
    const char *source = o->applications ? "drawn applications" : o->programs;
    snprintf(seed, sizeof seed, "%lld", (long long)o->application_seed);
    fl_status status = read_set(o, &j.set, d);
    const fl_programs *p = status ? NULL : &j.set->p;
    if (!status)
        status = check_wanted(&o->only, source, p->names, p->programs, p->program_count, d);
    if (!status) {
        j.index = calloc(p->program_count, sizeof *j.index);
        j.scene = calloc(p->program_count, sizeof *j.scene);
        status = j.index && j.scene ? FL_OK : fl_no_memory(d, NULL);
    }
    for (size_t i = 0; !status && i < p->program_count; i++)
        if (is_wanted(&o->only, p->names[p->programs[i]])) {
            j.index[jobs] = i;
            status = add_scene(all, source, &j.scene[jobs++], d);
            if (!status && o->applications && !(j.scene[jobs - 1]->applications = strdup(seed)))
                status = fl_no_memory(d, NULL);
            if (!status && o->hold != FL_SCENES_AT_ONCE)
                status = make_again(j.scene[jobs - 1], o, j.set, i, d);
        }
    if (!status)
        status = fl_pool_run(make_program, &j, jobs, 0, "programs", d);
    free(j.index);
    free(j.scene);
    leave_set(j.set);
    return status;
}

static fl_status from_sweep(const fl_scene_options *o, const char *path, const fl_texts *only, fl_scenes *all,
                            fl_diag *d) {
    fl_sweep_model m = {0};
    fl_sweep_replay replay = {.repeat = (uint32_t)o->repeat,
                              .windows = (uint32_t)o->windows,
                              .seed = (uint64_t)o->seed + (uint64_t)o->draw};
    fl_status status = fl_replay_choose(&o->replay, &replay, d);
    if (!status)
        status = fl_sweep_model_open(path, o->model, o->platform, &m, d);
    if (!status)
        status = check_wanted(only, path, m.sweep.names, m.names, m.count, d);
    for (size_t i = 0; !status && i < m.count; i++) {
        if (!is_wanted(only, m.sweep.names[m.names[i]]))
            continue;
        fl_scene *s = NULL;
        status = add_scene(all, path, &s, d);
        if (!status)
            status = fl_platform_open(o->platform, (uint32_t)o->gpus, &s->platform, d);
        if (!status)
            status = fl_node_choose(&s->platform.node, &o->node, d);
        if (!status)
            status = fl_sweep_model_build(&m, i, &s->platform.node, &replay, &s->w, &s->stated, &s->note,
                                          &s->note_count, d);
        if (s)
            s->jitter = replay.jitter, s->iteration_ns = replay.iteration_ns, s->repeat = replay.repeat;
        if (!status)
            status = complete(s, o, d);
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
        status = add_scene(all, o->pipeline, &s, d);
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
        status = fl_build_pipeline(&s->w, fl_input_name(o->pipeline), &p, &order, &s->platform.node,
                                   (uint32_t)o->repeat, NULL, &s->op, d);
    if (!status)
        status = complete(s, o, d);
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
    fl_status status = add_scene(all, o->serving.requests, &s, d);
    if (!status)
        status = fl_serving_scene_open(&o->serving, &s->serving, d);
    if (!status)
        status = fl_platform_open(o->platform, fl_serving_scene_gpus(s->serving), &s->platform, d);
    if (!status)
        status = fl_node_choose(&s->platform.node, &o->node, d);
    if (!status)
        status = fl_serving_workload(&s->w, fl_input_name(o->serving.requests), &s->serving->setup, d);
    if (!status)
        status = complete(s, o, d);
    if (!status) {
        s->facts.server = s->serving->facts;
        s->facts.server_count = s->serving->setup.server_count;
    }
    return status;
}

fl_status fl_scenes_open(const fl_scene_options *o, const fl_texts *traces, fl_scenes *scenes, fl_diag *d) {
    *scenes = (fl_scenes){0};
    if (!o->platform)
        return fl_refuse(d, "no platform given, expected --platform NAME (foldline platforms lists them)");
    if (!traces->count && !o->sweep && !o->programs && !o->applications && !o->pipeline && !o->serving.server)
        return fl_refuse(d, "nothing to replay, expected a kernel trace, --programs, --sweep, --pipeline or --serving FILE");
    fl_status status = FL_OK;
    fl_scene_options one = *o;
    fl_trace_keep(!o->no_cache);
    fl_scene_resolve(&one);
    for (one.draw = 0; !status && one.draw < one.draws; one.draw++) {
        for (size_t i = 0; !status && i < traces->count; i++)
            status = from_trace(&one, traces->item[i], scenes, d);
        if (!status && (o->programs || o->applications))
            status = from_programs(&one, scenes, d);
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

fl_status fl_scenes_spare(const fl_scenes *s, const fl_option *option, size_t count, fl_diag *d) {
    for (size_t i = 0; i < count; i++) {
        const char *out = option[i].type == FL_OPTION_OUTPUT ? *(const char *const *)option[i].into : NULL;
        for (size_t k = 0; out && k < s->count; k++) {
            const fl_scene *scene = s->item[k];
            const char *const in[] = {scene->source, scene->kinds, scene->platform.path};
            for (size_t n = 0; n < sizeof in / sizeof *in; n++)
                if (in[n] && fl_same_file(in[n], out))
                    return fl_fail(d, FL_BAD_INPUT, out, 0, 0, "is an input, expected another file to write");
        }
    }
    return FL_OK;
}
