/* The whole course of every policy of the registry on simulated nodes of every kind: what it set and showed at each
 * step, and the time and energy that came out, against tests/golden/courses.csv. Nothing here says that a course is
 * right. It says that a change of behaviour is seen, and of whose: bless it (FL_BLESS=1) after you know why it moved.
 */
#include "harness/base/cli/cli.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "policies/policy.h"
#include "policies/registry/registry.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "traces/io/io.h"
#include "tests/support/golden.h"

#include <math.h>

typedef struct scene {
    const char *name;
    fl_scene_options how;
    const char *trace, *only;
} scene;

#define SAMPLE(name) FL_ROOT "/traces/samples/" name
static const scene SCENES[] = {
    {"one GPU with records",
     {.platform = "rtx3080ti", .programs = SAMPLE("mf-gpoeo.programs.csv"), .seconds = 90},
     NULL,
     "AI_I2T"},
    {"eight GPUs", {.platform = "generic", .seed = 3}, SAMPLE("mix8.csv"), NULL},
    {"no clock of energy", {.platform = "rtx4070-laptop", .seed = 2}, SAMPLE("sweetspot-blackscholes.csv"), NULL},
    {"a power limit",
     {.platform = "k20xm-e5-2660", .programs = SAMPLE("powercap.programs.csv"), .seconds = 12},
     NULL,
     "gpustream"},
    {"CPU and GPU in one",
     {.platform = "apu-a10-5800k", .programs = SAMPLE("dynaco.programs.csv"), .seconds = 4},
     NULL,
     "miniFE"},
    {"requests", {.platform = "a100", .arrivals = "poisson:rate=20,count=60,seed=1"}, SAMPLE("inference.csv"), NULL},
};

enum { STEPS = 4000 }; /* a course ends there, without a time and an energy */

typedef struct course {
    uint64_t
        digest; /* FNV-1a of the text of each step; six digits, so that the last bits of a library's exp do not count */
    uint64_t steps, sets;
    const fl_policy *policy;
} course;

static void add(course *c, const char *name, double value) {
    char text[64];
    snprintf(text, sizeof text, "%s %.6g;", name, value);
    for (const char *p = text; *p; p++)
        c->digest = (c->digest ^ (uint8_t)*p) * UINT64_C(0x100000001b3);
}

static fl_status on_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    course *c = user;
    size_t cell = 0;
    (void)d;
    c->steps++;
    add(c, "t", (double)sample->time_ns);
    add(c, "delay", (double)decision->delay_ns);
    for (uint32_t g = 0; g < decision->gpu_count; g++)
        for (int k = 0; k < FL_GPU_CONTROL_COUNT; k++)
            if (decision->gpu[g][k].set) {
                c->sets++;
                add(c, fl_rows_at(FL_ROWS_GPU_CONTROL, (size_t)k)->name, decision->gpu[g][k].value);
            }
    for (int k = 0; k < FL_HOST_CONTROL_COUNT; k++)
        if (decision->host[k].set)
            add(c, fl_rows_at(FL_ROWS_HOST_CONTROL, (size_t)k)->name, decision->host[k].value);
    for (uint32_t i = 0; i < c->policy->probe_count; i++)
        for (uint32_t g = 0; g < (c->policy->probe[i].per_gpu ? decision->gpu_count : 1); g++, cell++)
            if (!isnan(decision->probe[cell]))
                add(c, c->policy->probe[i].name, decision->probe[cell]);
    return c->steps < STEPS ? FL_OK : FL_BAD_INPUT;
}

static void run_one(FILE *out, const char *name, const fl_scene *on, const char *policy) {
    fl_diag d = {0};
    fl_spec spec;
    fl_run_result r = {0};
    FL_CHECK(!fl_spec_open(policy, &spec, &d), "%s", d.message);
    course c = {.digest = UINT64_C(0xcbf29ce484222325), .policy = spec.policy};
    const fl_layer layer[2] = {fl_platform_layer(&on->platform, policy), spec.layer};
    const fl_run_options o = {.w = on->w,
                              .rates = on->rates,
                              .spec = &on->platform.node,
                              .facts = &on->facts,
                              .policy = spec.policy,
                              .layer = layer,
                              .layer_count = 2,
                              .on_step = on_step,
                              .user = &c};
    const fl_status s = fl_run(&o, &r, &d);
    fprintf(out, "%s,%s,%016llx,%llu,%llu", name, policy, (unsigned long long)c.digest, (unsigned long long)c.steps,
            (unsigned long long)c.sets);
    if (!s)
        fprintf(out, ",%llu,%.9g,%.9g\n", (unsigned long long)r.switches, r.makespan_s, r.node_energy_j);
    else
        fprintf(out, ",,,\n");
    fl_run_result_free(&r);
    fl_spec_free(&spec);
}

static void test_courses(void) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    CU_ASSERT_FATAL(out != NULL);
    fprintf(out, "scene,policy,digest,steps,sets,switches,makespan_s,energy_j\n");
    for (size_t i = 0; i < sizeof SCENES / sizeof *SCENES; i++) {
        const scene *s = &SCENES[i];
        fl_scene_options how = s->how;
        const char *trace = s->trace, *only = s->only;
        const fl_texts traces = {.item = &trace, .count = trace ? 1 : 0};
        fl_scenes scenes = {0};
        fl_diag d = {0};
        how.only = (fl_texts){.item = &only, .count = only ? 1 : 0};
        FL_CHECK(!fl_scenes_open(&how, &traces, &scenes, &d), "%s: %s", s->name, d.message);
        for (size_t k = 0; k < fl_policies_count && scenes.count; k++)
            run_one(out, s->name, scenes.item[0], fl_policies[k]->name);
        fl_scenes_free(&scenes);
    }
    fclose(out);
    fl_golden_check("courses.csv", text);
    free(text);
}

FL_SUITE("courses", {"courses", test_courses})
