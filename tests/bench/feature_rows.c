/* What the features of a whole node cost: the same run with every feature off, with every feature on, and with every
 * signal read. With the features on, the power limit holds the clock down, so the same kernels take longer and more
 * steps. Hence there is one row per policy step and one per kernel. */
#include "tests/bench/case.h"

#include <stdio.h>

/* Turns on a wall and heat that act, a host CPU, meters and interference. The arrays stay the platform's. */
static fl_status all_on(const fl_bench *b, fl_node_spec *node, fl_device *dev, fl_diag *d) {
    *node = b->platform.node;
    *dev = node->device[0];
    node->device = dev;
    if (!node->host.cpu.count || dev->wall.period_ns <= 0)
        return fl_refuse(d, "platform %s: no CPU or no wall to measure", node->name);
    dev->power_default_w = 0.6 * dev->tdp_w;
    dev->thermal = (fl_thermal_spec){.period_ns = 100000000,
                                     .ambient_c = 30,
                                     .c_per_w = 40 / dev->tdp_w,
                                     .tau_s = 10,
                                     .leak_w_per_c = 0.002 * dev->tdp_w,
                                     .leak_ref_c = 40,
                                     .limit_c = 50,
                                     .release_c = 45};
    dev->interference = 0.2;
    for (int i = 0; i < FL_SENSOR_COUNT; i++)
        if (!dev->sensor[i].present)
            dev->sensor[i] = (fl_sensor_spec){.period_ns = 100000000, .window_ns = 100000000, .present = 1};
    for (int i = 0; i < FL_HOST_SENSOR_COUNT; i++)
        if (!node->host.sensor[i].present)
            node->host.sensor[i] = (fl_sensor_spec){.period_ns = 10000000, .window_ns = 10000000, .present = 1};
    return FL_OK;
}

static void take(fl_bench *b, const char *key, double ratio, const fl_bench_case *c) {
    if (!key || !fl_bench_wants(b, key))
        return;
    fl_bench_result *r = fl_bench_take(b, key, ratio);
    r->per_second = c->rate > r->per_second ? c->rate : r->per_second;
    r->step_ns = c->step_ns;
}

static const fl_signal_row usual_signals[] = {FL_NEEDS(GPU_UTIL_GPU_PCT), FL_NEEDS(GPU_POWER_W),
                                              FL_NEEDS(GPU_THROTTLE),     FL_NEEDS(HOST_CPU_UOPS),
                                              FL_NEEDS(HOST_CPU_CYCLES),  FL_NEEDS(HOST_NODE_POWER_W)};
#define GPU_ROW(id, ...) FL_NEEDS(GPU_##id),
#define HOST_ROW(id, ...) FL_NEEDS(HOST_##id),
static const fl_signal_row every_signal[] = {FL_GPU_SIGNALS(GPU_ROW) FL_HOST_SIGNALS(HOST_ROW)};

static fl_status measure(fl_bench *b, uint32_t streams, const char *step, const char *kernel, const char *signals,
                         fl_diag *d) {
    const fl_policy *plain = fl_bench_policy("utilizscale");
    fl_policy usual = *plain, every = *plain;
    fl_node_spec off_node, on_node;
    fl_device off_dev, on_dev;
    fl_bench_scene scene = {0};
    fl_synth_options o = fl_bench_trace(streams == 1 ? b->kernels : b->kernels / 5 + 1);
    o.streams = streams;
    o.sm_demand = streams == 1 ? 1 : 0.12;
    o.memory = streams == 1 ? 0.5 : 0;
    usual.signal = usual_signals;
    usual.signal_count = FL_COUNT(usual_signals);
    every.signal = every_signal;
    every.signal_count = FL_COUNT(every_signal);
    fl_bench_features_off(b, &off_node, &off_dev);
    fl_status s = all_on(b, &on_node, &on_dev, d);
    fl_bench_case off = {.node = &off_node, .policy = plain, .period_ms = "10"},
                  on = {.node = &on_node, .policy = &usual, .period_ms = "10"},
                  all = {.node = &on_node, .policy = &every, .period_ms = "10"};
    if (!s)
        s = fl_bench_scene_open(&scene, b, &o, d);
    for (int64_t r = 0; !s && r < b->repeat; r++) {
        if ((s = fl_bench_pass(b, &scene, &off, d)) || (s = fl_bench_pass(b, &scene, &on, d)) ||
            (signals && (s = fl_bench_pass(b, &scene, &all, d))))
            break;
        take(b, step, off.step_ns / on.step_ns, &on);
        take(b, kernel, on.rate / off.rate, &on);
        if (signals)
            take(b, signals, off.step_ns / all.step_ns, &all);
    }
    fl_bench_scene_close(&scene);
    return s;
}

fl_status fl_bench_features(fl_bench *b, fl_diag *d) {
    fl_status s = FL_OK;
    if (fl_bench_wants(b, "features.step") || fl_bench_wants(b, "features.kernel") ||
        fl_bench_wants(b, "features.signals_step"))
        s = measure(b, 1, "features.step", "features.kernel", "features.signals_step", d);
    if (!s && fl_bench_wants(b, "features.eight"))
        s = measure(b, 8, NULL, "features.eight", NULL, d);
    return s;
}
