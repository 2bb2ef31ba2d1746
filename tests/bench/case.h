/* What the rows about the engine share: a seeded workload, and runs over it that are timed in turn. */
#pragma once

#include "tests/bench/bench.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/synth/synth.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

typedef struct fl_bench_scene {
    fl_workload *w;
    fl_rates *rates;
} fl_bench_scene;

/* 512 kinds, 50 us a kernel, 2 us before each: of which the groups change what they are about. */
fl_synth_options fl_bench_trace(uint64_t kernels);
fl_status fl_bench_scene_open(fl_bench_scene *scene, const fl_bench *b, const fl_synth_options *o, fl_diag *d);
void fl_bench_scene_close(fl_bench_scene *scene);

typedef struct fl_bench_case { /* one way to run a scene; policy NULL: nothing is set */
    const char *key;           /* the row that gets kernels/s as a ratio to the bare loop; NULL = none */
    const char *step_key;      /* the row that gets ns a policy step; NULL = none */
    const fl_node_spec *node;  /* NULL: that of the platform */
    const char *policy_name;
    const fl_policy *policy; /* instead of the name's */
    const char *parameter;   /* the policy's period; "period_ms" where NULL */
    const char *period_ms;
    fl_path path;
    int passes;           /* that follow each other and are timed as one; 0 = 1, or of a row about kernels as many as
                             last FL_BENCH_ROUND_S */
    double rate, step_ns; /* of the last pass: kernels per second, and ns of one policy step */
    double took_s;        /* all passes of it */
} fl_bench_case;

/* Runs it once, or `passes` times; its rate and step_ns are the mean of these, in processor time. */
fl_status fl_bench_pass(const fl_bench *b, const fl_bench_scene *scene, fl_bench_case *c, fl_diag *d);

/* Each round: the bare loop, then every case whose row is asked for. */
fl_status fl_bench_rounds(fl_bench *b, const fl_bench_scene *scene, fl_bench_case *c, size_t count, fl_diag *d);

/* The platform's node with a board that holds no power limit, so that what runs together runs at full clock; its
 * arrays stay the platform's. */
void fl_bench_without_wall(const fl_bench *b, fl_node_spec *node, fl_device *dev);

/* The same, and no heat, no host CPU and no interference either: nothing but a policy's steps stops a stream then, and
 * nothing remembers what was before. */
void fl_bench_features_off(const fl_bench *b, fl_node_spec *node, fl_device *dev);

const fl_policy *fl_bench_policy(const char *name);
