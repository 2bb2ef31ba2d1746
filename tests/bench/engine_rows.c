/* Rows about one run at a time: one stream and many, with and without launches, gaps and prefix sums. */
#include "tests/bench/case.h"
#include "models/laws/device.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/synth/synth.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdlib.h>

static bool any(const fl_bench *b, const fl_bench_case *c, size_t count) {
    for (size_t i = 0; i < count; i++)
        if ((c[i].key && fl_bench_wants(b, c[i].key)) || (c[i].step_key && fl_bench_wants(b, c[i].step_key)))
            return true;
    return false;
}

/* Opens a scene for these cases, unless none of their rows is wanted. */
static fl_status on_trace(fl_bench *b, const fl_synth_options *o, fl_bench_case *c, size_t count, fl_diag *d) {
    if (!any(b, c, count))
        return FL_OK;
    fl_bench_scene scene;
    fl_status s = fl_bench_scene_open(&scene, b, o, d);
    if (!s)
        s = fl_bench_rounds(b, &scene, c, count, d);
    fl_bench_scene_close(&scene);
    return s;
}

/* A prefix table exists once the stream has been scanned twice at a clock. These runs pay for that before the
 * rounds, as the first runs of a grid do. The runs then follow each other, also as in a grid: a single run after the
 * bare loop would find no table in the caches, and spend most of its time on memory. */
static fl_status steps(fl_bench *b, fl_bench_scene *scene, fl_bench_case *c, size_t count, fl_diag *d) {
    fl_status s = FL_OK;
    if (!any(b, c, count))
        return s;
    for (size_t i = 0; !s && i < count; i++)
        for (uint32_t k = 0; !s && c[i].path != FL_PATH_PLAIN && fl_bench_wants(b, c[i].step_key) &&
                             k < (c[i].parameter ? 2 * b->platform.node.device[0].sm_count + 3 : 4);
             k++)
            s = fl_bench_pass(b, scene,
                              &(fl_bench_case){.node = c[i].node,
                                               .policy_name = c[i].policy_name,
                                               .parameter = c[i].parameter,
                                               .period_ms = c[i].period_ms},
                              d);
    return s ? s : fl_bench_rounds(b, scene, c, count, d);
}

static fl_status launches(fl_bench *b, fl_diag *d) {
    fl_bench_case c = {.key = "one.launches", .policy_name = "utilizscale", .period_ms = "10"};
    fl_synth_options o = fl_bench_trace(b->kernels / 5 + 1);
    fl_bench_scene scene = {0};
    fl_kernel_trace t = {0};
    fl_kinds kinds = {0};
    const fl_device *dev = &b->platform.node.device[0];
    if (!any(b, &c, 1))
        return FL_OK;
    o.launches = true;
    fl_status s = fl_synth_trace(&o, dev->default_sm_mhz, dev->default_mem_mhz, &t, &kinds, d);
    if (!s)
        s = fl_build_trace(&scene.w, "bench", &t, &b->platform.node,
                           &(fl_build_options){.windows = 20, .kinds = &kinds}, d);
    fl_kernel_trace_free(&t);
    fl_kinds_free(&kinds);
    if (!s)
        s = fl_rates_new(&scene.rates, scene.w, &b->platform.node, d);
    if (!s)
        s = fl_bench_rounds(b, &scene, &c, 1, d);
    fl_bench_scene_close(&scene);
    return s;
}

fl_status fl_bench_one_stream(fl_bench *b, fl_diag *d) {
    fl_node_spec node; /* for the rows per step: wall and heat would read the past between two steps */
    fl_device dev;
    fl_bench_features_off(b, &node, &dev);
    fl_bench_case scan[] = {
        {.key = "one.utilizscale", .policy_name = "utilizscale", .period_ms = "10"},
        {.key = "one.random", .policy_name = "random", .parameter = "interval_ms", .period_ms = "10"},
        {.key = "one.energyucb", .policy_name = "energyucb", .parameter = "interval_ms", .period_ms = "10"},
        {.key = "one.none", .path = FL_PATH_VECTOR},
        {.key = "one.1s", .policy_name = "utilizscale", .period_ms = "1000", .path = FL_PATH_VECTOR},
        {.step_key = "step.plain",
         .node = &node,
         .policy_name = "utilizscale",
         .period_ms = "1000",
         .path = FL_PATH_PLAIN},
        {.key = "one.events", .policy_name = "utilizscale", .period_ms = "10", .path = FL_PATH_EVENTS}};
    fl_bench_case prefix[] = {
        {.step_key = "step.cold", .node = &node, .policy_name = "utilizscale", .period_ms = "1000"},
        {.step_key = "step.prefix", .node = &node, .policy_name = "utilizscale", .period_ms = "1000", .passes = 100},
        {.step_key = "step.random",
         .node = &node,
         .policy_name = "random",
         .parameter = "interval_ms",
         .period_ms = "1000",
         .passes = 100}};
    fl_bench_case far = {
        .step_key = "step.prefix_100m", .node = &node, .policy_name = "utilizscale", .period_ms = "1000", .passes = 20};
    /* The goal is for steps of 1 s. With these gaps a step of 10 ms has 33 kernels, and the step itself takes as long
     * as they do, so it has a separate row. */
    fl_bench_case gaps[] = {
        {.key = "one.gaps", .policy_name = "utilizscale", .period_ms = "10"},
        {.key = "one.gaps_1s", .policy_name = "utilizscale", .period_ms = "1000", .path = FL_PATH_VECTOR}};
    fl_bench_scene scene;
    fl_synth_options o = fl_bench_trace(b->kernels);
    fl_status s = fl_bench_scene_open(&scene, b, &o, d);
    if (!s && !(b->rec = fl_bare_records(scene.w)))
        s = fl_no_memory(d, NULL);
    b->rec_count = s ? 0 : scene.w->stream[0].count;
    if (!s && !any(b, scan, sizeof scan / sizeof *scan))
        fl_bench_bare(b);
    else if (!s)
        s = fl_bench_rounds(b, &scene, scan, sizeof scan / sizeof *scan, d);
    b->scan = scan[0].rate;
    if (!s)
        s = steps(b, &scene, prefix, sizeof prefix / sizeof *prefix, d);
    fl_bench_scene_close(&scene);
    if (!s)
        s = launches(b, d);
    o = fl_bench_trace(b->kernels / 5 + 1);
    o.gap_us = 200;
    if (!s)
        s = on_trace(b, &o, gaps, sizeof gaps / sizeof *gaps, d);
    if (s || !b->thorough || !any(b, &far, 1))
        return s;
    o = fl_bench_trace(10 * b->kernels);
    s = fl_bench_scene_open(&scene, b, &o, d);
    if (!s)
        s = steps(b, &scene, &far, 1, d);
    fl_bench_scene_close(&scene);
    return s;
}

fl_status fl_bench_streams(fl_bench *b, fl_diag *d) {
    static const struct {
        const char *key;
        uint32_t streams;
        double sm_demand, memory, gap_us;
    } row[] = {{"free.2", 2, 0.48, 0, 2},
               {"free.8", 8, 0.12, 0, 2},
               {"free.32", 32, 0.03, 0, 2},
               {"scarce.gaps", 8, 0.9, 0.5, 2},
               {"scarce.none", 8, 0.9, 0.5, 0}};
    fl_node_spec node;
    fl_device dev;
    fl_status s = FL_OK;
    fl_bench_without_wall(b, &node, &dev);
    for (size_t i = 0; !s && i < sizeof row / sizeof *row; i++) {
        fl_bench_case c = {.key = row[i].key, .node = &node, .policy_name = "utilizscale", .period_ms = "10"};
        fl_synth_options o = fl_bench_trace(b->kernels / 5 + 1);
        o.streams = row[i].streams;
        o.sm_demand = row[i].sm_demand;
        o.memory = row[i].memory;
        o.gap_us = row[i].gap_us;
        s = on_trace(b, &o, &c, 1, d);
    }
    return s;
}
