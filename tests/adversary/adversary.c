#include "tests/adversary/adversary.h"

#include "harness/base/work/work.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/inside.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 32, WORST = 16 }; /* trials that see the same worst ones; how many of those are changed */
#define NEW_SHARE 0.25

typedef struct hunt {
    const fl_adversary_options *o;
    fl_spec top;
    fl_adversary_trial worst[WORST]; /* the worst first */
    size_t worst_count, first;       /* first: trials before this batch */
    fl_adversary_trial batch[BATCH];
    fl_adversary_law law[BATCH];
    fl_stage stage;
} hunt;

typedef struct stage_set { /* a case, ready to run */
    fl_programs programs;
    fl_kinds kinds;
    fl_workload *w;
    fl_rates *rates;
    fl_facts facts;
} stage_set;

static const fl_device *first_device(const fl_adversary_options *o) {
    return &o->platform->node.device[o->platform->node.gpu[0]];
}

static double top_mhz(const fl_device *dev) { return dev->sm_mhz[dev->sm_count - 1]; }

/* As harness/input/scene/scene.c builds a program, so that a replay of the files is the trial itself. */
static fl_status build(const fl_adversary_options *o, const fl_adversary_case *c, stage_set *set, fl_diag *d) {
    const fl_node_spec *node = &o->platform->node;
    const fl_device *dev = first_device(o);
    fl_kernel_trace t = {0};
    fl_status s = fl_adversary_files(c, top_mhz(dev), dev->default_mem_mhz, &set->programs, &set->kinds, d);
    const fl_build_options how = {.kinds = &set->kinds};
    if (!s)
        s = fl_build_program(&set->w, "worst", &set->programs, 0, c->seed, 0, node, &how, d);
    if (!s && !set->w) {
        s = fl_synth_program(&set->programs, 0, c->seed, 0, &t, d);
        if (!s)
            s = fl_build_trace(&set->w, "worst", &t, node, &how, d);
        fl_kernel_trace_free(&t);
    }
    if (!s)
        s = fl_rates_new(&set->rates, set->w, node, d);
    if (!s)
        s = fl_facts_make(node, c->seed, &set->facts, d);
    set->facts.bound = o->bound;
    return s;
}

static void set_free(stage_set *set) {
    fl_facts_free(&set->facts);
    fl_rates_free(set->rates);
    fl_workload_free(set->w);
    fl_kinds_free(&set->kinds);
    fl_programs_free(&set->programs);
}

static fl_status run_policy(const hunt *h, const stage_set *set, const fl_spec *spec, double *time_s, double *energy_j,
                            fl_diag *d) {
    const fl_layer layer[2] = {fl_platform_layer(h->o->platform, spec->policy->name), spec->layer};
    const fl_run_options run = {.w = set->w,
                                .rates = set->rates,
                                .spec = &h->o->platform->node,
                                .facts = &set->facts,
                                .policy = spec->policy,
                                .label = spec->label,
                                .layer = layer,
                                .layer_count = FL_COUNT(layer)};
    fl_run_result r;
    fl_laid none;
    fl_status s = fl_plan_lay(spec, NULL, &none, d); /* no such program is a pipeline */
    if (!s)
        s = fl_run(&run, &r, d);
    if (s)
        return s;
    *time_s = r.makespan_s;
    *energy_j = r.energy_j;
    fl_run_result_free(&r);
    return FL_OK;
}

/* The program at each fixed clock. */
static fl_status find_law(const hunt *h, const stage_set *set, fl_adversary_law *law, fl_diag *d) {
    const fl_device *dev = first_device(h->o);
    double top_s = NAN;
    *law = (fl_adversary_law){.least = INFINITY};
    for (uint32_t i = dev->sm_count; i-- > 0;) {
        const fl_run_options run = {.w = set->w,
                                    .rates = set->rates,
                                    .spec = &h->o->platform->node,
                                    .facts = &set->facts,
                                    .first_sm_mhz = dev->sm_mhz[i],
                                    .first_mem_mhz = dev->default_mem_mhz};
        fl_run_result r;
        const fl_status s = fl_run(&run, &r, d);
        if (s)
            return s;
        top_s = i == dev->sm_count - 1 ? r.makespan_s : top_s;
        const double slowdown = r.makespan_s / top_s;
        law->least = fmin(law->least, slowdown);
        law->most = fmax(law->most, slowdown * dev->sm_mhz[i] / top_mhz(dev));
        fl_run_result_free(&r);
    }
    law->held = law->least >= 1 - 1e-6 && law->most <= 1 + FL_ADVERSARY_TOLERANCE;
    return FL_OK;
}

static fl_status try_case(const hunt *h, fl_adversary_trial *t, bool always, fl_adversary_law *law, fl_diag *d) {
    stage_set set = {0};
    double top_j = NAN, energy_j = NAN;
    fl_status s = build(h->o, &t->c, &set, d);
    if (!s)
        s = run_policy(h, &set, &h->top, &t->top_s, &top_j, d);
    if (!s)
        s = run_policy(h, &set, h->o->spec, &t->time_s, &energy_j, d);
    if (!s) {
        t->slowdown = t->time_s / t->top_s - 1;
        t->saving = 1 - energy_j / top_j;
    }
    if (!s && (always || t->slowdown > h->o->bound))
        s = find_law(h, &set, law, d);
    set_free(&set);
    return s;
}

static fl_status run_one(void *user, size_t i, fl_diag *d) {
    hunt *h = user;
    fl_adversary_trial *t = &h->batch[i];
    fl_random r = fl_random_seed(h->o->seed, h->first + i);
    const bool fresh = !h->worst_count || fl_random_unit(&r) < NEW_SHARE;
    *t = (fl_adversary_trial){.number = h->first + i + 1};
    if (fresh)
        t->c = fl_adversary_draw(&r, &h->o->range);
    else
        t->c = fl_adversary_change(&h->worst[fl_random_below(&r, h->worst_count)].c, &r, &h->o->range);
    const fl_status s = try_case(h, t, false, &h->law[i], d);
    fl_stage_add(h->stage, 1);
    return s;
}

/* Among the worst, those before it first where they are as bad. */
static void keep(hunt *h, const fl_adversary_trial *t) {
    size_t at = h->worst_count;
    while (at && h->worst[at - 1].slowdown < t->slowdown)
        at--;
    if (at == WORST)
        return;
    h->worst_count += h->worst_count < WORST;
    memmove(&h->worst[at + 1], &h->worst[at], (h->worst_count - 1 - at) * sizeof *h->worst);
    h->worst[at] = *t;
}

static void take_batch(hunt *h, size_t count, fl_adversary_result *out) {
    for (size_t i = 0; i < count; i++) {
        const fl_adversary_trial *t = &h->batch[i];
        const bool beyond = t->slowdown > h->o->bound, outside = beyond && !h->law[i].held;
        out->beyond += beyond && !outside;
        out->outside_count += outside;
        if (!outside)
            keep(h, t);
        else if (!out->outside.number || t->slowdown > out->outside.slowdown)
            out->outside = *t;
    }
}

fl_status fl_adversary_run(const fl_adversary_options *o, fl_adversary_result *out, fl_diag *d) {
    *out = (fl_adversary_result){0};
    hunt *h = calloc(1, sizeof *h);
    if (!h)
        return fl_no_memory(d, "the search");
    h->o = o;
    fl_status s = fl_spec_open("maxfreq", &h->top, d);
    h->stage = fl_stage_begin("trials", o->trials);
    while (!s && h->first < o->trials) {
        const size_t left = o->trials - h->first, count = left < BATCH ? left : BATCH;
        s = fl_pool_run(run_one, h, count, o->threads, NULL, d);
        if (!s)
            take_batch(h, count, out);
        h->first += count;
    }
    fl_stage_end(h->stage);
    if (!s && h->worst_count) {
        out->worst = h->worst[0];
        s = try_case(h, &out->worst, true, &out->law, d);
    }
    fl_spec_free(&h->top);
    free(h);
    return s;
}

fl_status fl_adversary_bound(const fl_platform *p, const fl_spec *spec, double *bound, fl_diag *d) {
    const fl_layer layer[2] = {fl_platform_layer(p, spec->policy->name), spec->layer};
    void *params;
    *bound = NAN;
    fl_status s = fl_params_resolve(&params, spec->policy, layer, FL_COUNT(layer), d);
    for (uint32_t i = 0; !s && i < spec->policy->param_count; i++) {
        char text[64];
        if (!strcmp(spec->policy->param[i].name, "bound") && spec->policy->param[i].type == FL_PARAM_REAL)
            *bound = strtod(fl_params_text(spec->policy, params, i, text, sizeof text), NULL);
    }
    if (!s)
        fl_params_free(spec->policy, params);
    return s;
}
