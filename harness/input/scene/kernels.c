/* Scenes of kernels, read from a trace or made from a program, and their second build. */
#include "harness/input/scene/inside.h"

#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "sim/gpu/gpu.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HELD_OPS = 50000 }; /* 400 KB: what is shorter is held, not built again */

/* TRACE.kinds.csv beside TRACE.csv. NULL: there is none. */
static char *kinds_beside(const char *trace) {
    char *path = NULL;
    size_t stem = fl_plain_length(trace);
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

fl_status fl_scene_kinds_read(const char *given, const char *trace, const fl_head *head, const char *assume,
                              char **path, fl_kinds *kinds, fl_diag *d) {
    const char *named = given ? NULL : fl_head_get(head, "kinds");
    *path = given ? strdup(given) : named ? fl_path_named(trace, named) : kinds_beside(trace);
    if (!*path)
        return given || named ? fl_no_memory(d, trace) : FL_OK;
    if (!named || !access(*path, R_OK))
        return fl_kinds_read(*path, kinds, d);
    const int reason = errno;
    free(*path);
    *path = NULL;
    if (assume && *assume)
        return FL_OK;
    return fl_fail(d, FL_BAD_INPUT, trace, fl_head_line(head, "kinds"), 0,
                   "kinds is '%.100s', which cannot be opened (%s), expected that file beside this one, --kinds FILE%s",
                   named, fl_reason(reason), assume ? " or --assume compute|balanced|memory" : "");
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

static uint32_t device_count(const fl_scene_origin *from) { return from->set ? 1 : devices_of(&from->in.kernels); }

static fl_status read_trace(const char *path, fl_scene_origin *from, fl_diag *d) {
    fl_status status = fl_trace_open_key(path, NULL, NULL, &from->in, &from->key, &from->known, d);
    if (!status && !from->in.has_kernels)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "%s, expected a kernel trace",
                         from->in.has_telemetry ? "has telemetry only"
                         : from->in.has_requests
                             ? "has requests to a server"
                             : "has measured settings of another tool, which foldline import makes a sweep");
    return status;
}

static fl_status build_program(fl_scene *s, const char *name, fl_scene_origin *from, const fl_build_options *build,
                               fl_diag *d) {
    fl_status status =
        fl_build_program(&s->w, name, from->set, from->index, from->seed, from->seconds, &s->platform.node, build, d);
    if (status || s->w)
        return status;
    status = fl_synth_program(from->set, from->index, from->seed, from->seconds, &from->in.kernels, d);
    return status ? status : fl_build_trace(&s->w, name, &from->in.kernels, &s->platform.node, build, d);
}

static fl_status build(fl_scene *s, const char *name, fl_scene_origin *from, const fl_build_options *build,
                       fl_diag *d) {
    return from->set ? build_program(s, name, from, build, d)
                     : fl_build_trace(&s->w, name, &from->in.kernels, &s->platform.node, build, d);
}

void fl_scene_origin_free(fl_scene_origin *from) { fl_imported_free(&from->in); }

/* Fills the scene of kernels that were read or made. */
fl_status fl_scene_from_kernels(const fl_scene_options *o, fl_scene *s, const char *name, const fl_head *head,
                                fl_scene_origin *from, fl_diag *d) {
    fl_kinds kinds = {0};
    fl_status status = FL_OK;
    if (!from->set)
        status = fl_scene_kinds_read(o->kinds, s->source, head, o->assume ? o->assume : "", &s->kinds, &kinds, d);
    const bool beside = !from->set && s->kinds;
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
        status = fl_scene_complete(s, o, d);
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

const fl_kinds *fl_program_set_kinds(const fl_program_set *set) { return set->has_kinds ? &set->kinds : NULL; }

/* Finds where the kernels of a scene come from: its trace, or else the program that was expanded. */
static void find_origin(const fl_scene *s, fl_scene_origin *from) {
    const struct fl_scene_again *again = s->again;
    from->kinds = again->has_kinds ? &again->kinds : NULL;
    if (!again->set)
        return;
    from->kinds = fl_program_set_kinds(again->set);
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
static fl_status read_again(const fl_scene *s, fl_scene_origin *from, fl_diag *d) {
    const fl_status status = read_trace(s->source, from, d);
    if (status || (from->known && !memcmp(from->key.hash, s->again->key.hash, sizeof from->key.hash)))
        return status;
    return fl_fail(d, FL_BAD_INPUT, s->source, 0, 0,
                   "changed while the command ran, expected the trace to stay as it was until the end");
}

fl_status fl_scene_build(fl_scene *s, fl_diag *d) {
    if (s->rates)
        return FL_OK;
    const fl_scene_options *o = &s->again->o;
    fl_scene_origin from = {0};
    fl_workload *old = s->w;
    find_origin(s, &from);
    s->w = NULL;
    fl_status status = from.set ? FL_OK : read_again(s, &from, d);
    const fl_build_options options = {.windows = (uint32_t)o->windows, .kinds = from.kinds, .assume = o->assume};
    if (!status)
        status = build(s, old->name, &from, &options, d);
    if (!status && o->arrivals)
        status = fl_scene_serve(s, o, d);
    if (!status)
        replace_workload(old, s->w);
    else
        fl_workload_free(s->w);
    s->w = old;
    if (!status)
        status = fl_rates_new(&s->rates, s->w, &s->platform.node, d);
    fl_scene_origin_free(&from);
    return status;
}

fl_status fl_scene_make_again(fl_scene *s, const fl_scene_options *o, fl_program_set *set, size_t index, fl_diag *d) {
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

#define FAR 1.1 /* beyond the ladder, as a ratio of clocks */

/* Write the names of the platforms with both clocks into text: "a, b"; empty where there are none. */
static void name_fitting(double sm_mhz, double mem_mhz, char *text, size_t size) {
    char **name = NULL;
    size_t count = 0;
    fl_diag ignored = {0};
    *text = '\0';
    if (fl_platform_list(&name, &count, &ignored))
        return;
    for (size_t i = 0; i < count; i++) {
        fl_platform p = {0};
        fl_diag none = {0};
        if (!fl_platform_open(name[i], 0, &p, &none) && p.node.gpu_count) {
            const fl_device *dev = &p.node.device[p.node.gpu[0]];
            if (fl_ladder_index(dev->sm_mhz, dev->sm_count, (int)sm_mhz) >= 0 &&
                fl_ladder_index(dev->mem_mhz, dev->mem_count, mem_mhz) >= 0) {
                const size_t at = strlen(text);
                (void)snprintf(text + at, size - at, "%s%s", at ? ", " : "", name[i]);
            }
        }
        fl_platform_free(&p);
    }
    fl_place_list_free(name, count);
}

/* A recording at a clock far beyond the platform's ladder is of another chip. */
static fl_status tell_clocks(fl_scene *s, const fl_head *head, fl_diag *d) {
    const fl_device *dev = &s->platform.node.device[s->platform.node.gpu[0]];
    const char *text = fl_head_get(head, "sm_mhz"), *memory = fl_head_get(head, "mem_mhz");
    char fitting[128], aside[96] = "";
    const int32_t low = dev->sm_mhz[0], high = dev->sm_mhz[dev->sm_count - 1];
    double mhz, mem_mhz = 0;
    if (!text || fl_real_parse(text, &mhz) != FL_NUMBER_OK || (mhz <= high * FAR && mhz * FAR >= low))
        return FL_OK;
    if (memory && fl_real_parse(memory, &mem_mhz) == FL_NUMBER_OK && mem_mhz != dev->default_mem_mhz)
        (void)snprintf(aside, sizeof aside, ", and of its memory %g instead of %g MHz", dev->default_mem_mhz, mem_mhz);
    name_fitting(mhz, mem_mhz, fitting, sizeof fitting);
    return fl_sweep_note(&s->note, &s->note_count, d,
                         "recorded at %g MHz, but the clocks of %s are %d to %d MHz%s: times are scaled by these "
                         "clocks, as of the same work on another chip; platforms with the recorded clocks: %s",
                         mhz, s->platform.name, low, high, aside, *fitting ? fitting : "none is shipped");
}

/* Any format that has kernels; what it does not carry is the platform's. */
fl_status fl_scenes_from_trace(const fl_scene_options *o, const char *path, fl_scenes *all, fl_diag *d) {
    fl_scene_origin from = {0};
    fl_scene *s = NULL;
    fl_status status = read_trace(path, &from, d);
    if (!status)
        status = fl_scene_add(all, path, &s, d);
    if (!status)
        status = take_notes(s, from.in.note, from.in.note_count, d);
    if (!status && o->hold != FL_SCENES_AT_ONCE && from.known) { /* which can be read again */
        status = fl_scene_make_again(s, o, NULL, 0, d);
        if (!status)
            s->again->key = from.key;
    }
    if (!status)
        status = fl_scene_from_kernels(o, s, fl_input_name(path), &from.in.kernels.head, &from, d);
    if (!status)
        status = tell_clocks(s, &from.in.kernels.head, d);
    fl_scene_origin_free(&from);
    return status;
}
