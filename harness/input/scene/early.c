/* Checks policies before any trace is read. */
#include "harness/input/scene/inside.h"

#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GPUS_TRIED = 16 };

typedef struct early { /* what is known of the node before the input is */
    fl_platform p;
    fl_facts facts;
} early;

static void early_close(early *e) {
    fl_facts_free(&e->facts);
    fl_platform_free(&e->p);
    *e = (early){0};
}

/* gpus 0: as many as the platform has. */
static fl_status early_open(early *e, const fl_scene_options *o, uint32_t gpus, fl_diag *d) {
    *e = (early){0};
    fl_status s = fl_platform_open(o->platform, gpus, &e->p, d);
    if (!s)
        s = fl_node_choose(&e->p.node, &o->node, d);
    if (!s)
        s = fl_facts_make(&e->p.node, (uint64_t)o->seed, &e->facts, d);
    if (!s)
        fl_facts_state(&o->stated, &e->facts);
    if (s)
        early_close(e);
    return s;
}

static fl_status check_parameters(const early *e, const fl_spec *spec, fl_diag *d) {
    const fl_layer layer[] = {fl_platform_layer(&e->p, spec->policy->name), spec->layer};
    void *params = NULL;
    const fl_status s = fl_params_resolve(&params, spec->policy, layer, FL_COUNT(layer), d);
    fl_params_free(spec->policy, params);
    return s;
}

static fl_status check_init(const early *e, const fl_spec *spec, fl_diag *d) {
    const fl_layer layer[] = {fl_platform_layer(&e->p, spec->policy->name), spec->layer};
    const fl_instance_options how = {
        .policy = spec->policy, .facts = &e->facts, .layer = layer, .layer_count = FL_COUNT(layer)};
    fl_instance *in = NULL;
    const fl_status s = fl_instance_open(&in, &how, d);
    fl_instance_close(in);
    return s;
}

/* Whether init accepts another number of GPUs: a recording may use more than the platform has. */
static bool accepts_more(const fl_scene_options *o, const fl_spec *spec) {
    bool accepts = false;
    fl_diag ignored = {0};
    for (uint32_t n = 1; !accepts && !o->gpus && n <= GPUS_TRIED; n++) {
        early e;
        if (!early_open(&e, o, n, &ignored))
            accepts = !check_init(&e, spec, &ignored);
        early_close(&e);
    }
    return accepts;
}

fl_status fl_scene_check_policies(const fl_scene_options *o, const fl_spec *spec, size_t count, bool varies,
                                  fl_diag *d) {
    early e;
    if (!o->platform)
        return FL_OK; /* fl_scenes_open tells */
    /* The ladder ends where a sweep does, and a pipeline and servers bring facts of their own. */
    const bool init = !varies && !o->sweep && !o->pipeline && !o->serving.server;
    fl_status s = early_open(&e, o, (uint32_t)o->gpus, d);
    for (size_t i = 0; !s && i < count; i++) {
        s = check_parameters(&e, &spec[i], d);
        if (s || !init || spec[i].plans || spec[i].only.count)
            continue;
        s = check_init(&e, &spec[i], d);
        if (s == FL_BAD_INPUT && accepts_more(o, &spec[i]))
            s = FL_OK;
    }
    early_close(&e);
    return s;
}
