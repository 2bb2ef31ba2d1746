#include "tests/bench/case.h"

#include "models/laws/device.h"
#include "policies/policy.h"
#include "policies/registry/registry.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/synth/inside.h"
#include "sim/synth/synth.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <math.h>
#include <string.h>

fl_synth_options fl_bench_trace(uint64_t kernels) {
    fl_synth_options o = fl_synth_standard;
    o.kernels = kernels;
    o.kinds = 512;
    o.mean_us = 50;
    o.gap_us = 2;
    o.burst = 1;
    return o;
}

fl_status fl_bench_scene_open(fl_bench_scene *scene, const fl_bench *b, const fl_synth_options *o, fl_diag *d) {
    *scene = (fl_bench_scene){0};
    const fl_status s = fl_synth_workload(o, &b->platform.node, 20, &scene->w, d);
    return s ? s : fl_rates_new(&scene->rates, scene->w, &b->platform.node, d);
}

void fl_bench_scene_close(fl_bench_scene *scene) {
    fl_rates_free(scene->rates);
    fl_workload_free(scene->w);
}

const fl_policy *fl_bench_policy(const char *name) {
    for (size_t i = 0; name && i < fl_policies_count; i++)
        if (!strcmp(fl_policies[i]->name, name))
            return fl_policies[i];
    return NULL;
}

void fl_bench_without_wall(const fl_bench *b, fl_node_spec *node, fl_device *dev) {
    *node = b->platform.node;
    *dev = node->device[0];
    node->device = dev;
    dev->wall.period_ns = 0;
}

void fl_bench_features_off(const fl_bench *b, fl_node_spec *node, fl_device *dev) {
    fl_bench_without_wall(b, node, dev);
    dev->thermal.period_ns = 0;
    dev->interference = 0;
    node->host.cpu.count = 0;
}

fl_status fl_bench_pass(const fl_bench *b, const fl_bench_scene *scene, fl_bench_case *c, fl_diag *d) {
    const fl_policy *policy = c->policy ? c->policy : fl_bench_policy(c->policy_name);
    fl_setting setting = {.name = (char *)(c->parameter ? c->parameter : "period_ms"), .text = (char *)c->period_ms};
    const fl_layer layer = {.origin = "bench", .setting = &setting, .count = policy ? 1 : 0};
    const fl_run_options o = {.w = scene->w,
                              .rates = scene->rates,
                              .spec = c->node ? c->node : &b->platform.node,
                              .facts = &b->facts,
                              .policy = policy,
                              .layer = &layer,
                              .layer_count = 1,
                              .path = c->path};
    const bool fill = !c->passes && c->key;
    int passes = 0;
    fl_status s = FL_OK;
    uint64_t steps = 0;
    const double start = fl_bench_cpu_seconds();
    do {
        fl_run_result r;
        s = fl_run(&o, &r, d);
        steps += r.counts.steps;
        fl_run_result_free(&r);
        passes++;
    } while (!s && (passes < c->passes || (fill && fl_bench_cpu_seconds() - start < FL_BENCH_ROUND_S)));
    const double took = c->took_s = fmax(fl_bench_cpu_seconds() - start, 1e-9);
    c->rate = passes * (double)scene->w->op_count / took;
    c->step_ns = steps ? took * 1e9 / (double)steps : 0;
    return s;
}

fl_status fl_bench_rounds(fl_bench *b, const fl_bench_scene *scene, fl_bench_case *c, size_t count, fl_diag *d) {
    fl_status s = FL_OK;
    for (int64_t r = 0; !s && r < b->repeat; r++) {
        const double bare = fl_bench_bare(b);
        for (size_t i = 0; !s && i < count; i++) {
            const bool per_kernel = c[i].key && fl_bench_wants(b, c[i].key);
            const bool per_step = c[i].step_key && fl_bench_wants(b, c[i].step_key);
            if (!per_kernel && !per_step)
                continue;
            s = fl_bench_pass(b, scene, &c[i], d);
            fl_bench_result *row[2] = {NULL, NULL};
            if (!s && per_kernel)
                row[0] = fl_bench_take(b, c[i].key, c[i].rate / bare);
            if (!s && per_step)
                row[1] = fl_bench_take(b, c[i].step_key, c[i].step_ns);
            for (int k = 0; k < 2; k++)
                if (row[k]) {
                    row[k]->per_second = fmax(row[k]->per_second, c[i].rate);
                    row[k]->step_ns = c[i].step_ns;
                    row[k]->brief = c[i].took_s < FL_BENCH_ROUND_S / 2;
                }
        }
    }
    return s;
}
