#include "harness/base/command.h"
#include "harness/base/grid.h"
#include "harness/base/json_out.h"
#include "harness/base/pool.h"
#include "harness/bench/bare_loop.h"
#include "harness/bench/bench.h"
#include "harness/cmd/commands.h"
#include "harness/input/platform.h"
#include "policies/registry.h"
#include "sim/run.h"
#include "sim/synth.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const fl_command_help help = {"bench", "[--kernels N] [--only PART] [--json]",
                                     "Measures the simulator: one stream and eight (free, then scarce) on a seeded "
                                     "trace, a policy every 10 ms, full accounts;\n"
                                     "beside them a bare loop over the same records as the ceiling. Then how a grid "
                                     "of runs scales over threads, and how fast traces load.",
                                     "Machines are noisy: only the ratios within one run count. Every figure is the "
                                     "best of --repeat passes, in processor\n"
                                     "time where one thread works. The bare loop sums time and energy of records of 24 "
                                     "bytes under the clock of the\n"
                                     "moment, cut exactly at each policy step. Events count a kernel's start and its "
                                     "end."};

typedef struct fl_bench {
    fl_platform platform;
    fl_facts facts;
    int64_t kernels, repeat;
    double bare; /* kernels per second */
    fl_grid grid;
    cJSON *rows;
} fl_bench;

static fl_status make(const fl_bench *b, uint32_t streams, double sm_demand, fl_workload **w, fl_diag *d) {
    fl_synth_options o = fl_synth_standard;
    o.kernels = (uint64_t)b->kernels;
    o.kinds = 512;
    o.streams = streams;
    o.mean_us = 50;
    o.gap_us = 2;
    o.sm_demand = sm_demand;
    o.memory = sm_demand < 0.2 ? 0 : 0.5;
    o.burst = 1;
    return fl_synth_workload(&o, &b->platform.node, 20, w, d);
}

static void add_result(fl_bench *b, const char *what, double rate, const char *unit, double ratio, const char *of) {
    fl_grid_add(&b->grid, "%s", what);
    fl_grid_add(&b->grid, "%.1f", rate);
    fl_grid_add(&b->grid, "%s", unit);
    fl_grid_add(&b->grid, "%.2g", ratio);
    fl_grid_add(&b->grid, "%s", of);
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "what", what);
    fl_json_add_real(row, "rate", rate);
    cJSON_AddStringToObject(row, "unit", unit);
    fl_json_add_real(row, "ratio", ratio);
    cJSON_AddStringToObject(row, "of", of);
    cJSON_AddItemToArray(b->rows, row);
}

static void show_part(void *user, const char *what, double rate, const char *unit, double ratio, const char *of) {
    add_result(user, what, rate, unit, ratio, of);
}

/* The ceiling, kernels per second: one pass over the workload's kernels at the policy's steps of 10 ms. Both variants
 * of the loop run, as which is faster hangs on the machine. */
static double bare_loop(const fl_bare_rec *rec, size_t count, const fl_device *dev) {
    const double top = dev->sm_mhz[dev->sm_count - 1], second = dev->sm_mhz[dev->sm_count - 2];
    const fl_bare_clock clock[] = {{1, 1, dev->c_w, dev->a_w, dev->b_w},
                                   {(float)(top / second), 1, dev->c_w, dev->a_w * second / top, dev->b_w}};
    const fl_bare_function variant[] = {fl_bare_loop, fl_bare_wide()};
    double best = 0;
    for (size_t v = 0; v < sizeof variant / sizeof *variant && variant[v]; v++) {
        const double start = fl_bench_cpu_seconds();
        volatile double kept = variant[v](rec, count, clock, 2, 0.01).energy_j;
        (void)kept;
        best = fmax(best, (double)count / (fl_bench_cpu_seconds() - start));
    }
    return best;
}

typedef struct fl_timed {
    fl_bench *b;
    const fl_node_spec *node; /* NULL: the plain platform */
    fl_workload *w;
    fl_rates *rates;
    const fl_policy *policy;
    const char *period_ms;
    bool streams_only;
} fl_timed;

static fl_status one_run(const fl_timed *t, fl_diag *d) {
    fl_setting setting = {.name = "period_ms", .text = t->period_ms};
    fl_layer layer = {.origin = "bench", .setting = &setting, .count = t->policy ? 1 : 0};
    fl_run_options o = {.w = t->w,
                        .rates = t->rates,
                        .spec = t->node ? t->node : &t->b->platform.node,
                        .facts = &t->b->facts,
                        .policy = t->policy,
                        .layer = &layer,
                        .layer_count = 1,
                        .path = t->streams_only ? FL_PATH_EVENTS : FL_PATH_AUTO};
    fl_run_result r;
    fl_status s = fl_run(&o, &r, d);
    fl_run_result_free(&r);
    return s;
}

/* One pass; keeps the best rate in kernels per second. */
static fl_status pass(const fl_timed *t, double *best, fl_diag *d) {
    double start = fl_bench_cpu_seconds();
    fl_status s = one_run(t, d);
    double rate = (double)t->w->op_count / (fl_bench_cpu_seconds() - start);
    *best = rate > *best ? rate : *best;
    return s;
}

static fl_status many(void *user, size_t i, fl_diag *d) {
    (void)i;
    return one_run(user, d);
}

static const fl_policy *find_policy(const char *name) {
    for (size_t i = 0; i < fl_policies_count; i++)
        if (!strcmp(fl_policies[i]->name, name))
            return fl_policies[i];
    return NULL;
}

static fl_status one_stream(fl_bench *b, fl_diag *d) {
    fl_workload *w = NULL;
    fl_rates *rates = NULL;
    fl_bare_rec *rec = NULL;
    fl_timed t = {.b = b, .policy = find_policy("utilizscale"), .period_ms = "10"};
    fl_status s = make(b, 1, 1, &w, d);
    if (!s)
        s = fl_rates_new(&rates, w, &b->platform.node, d);
    if (!s && !(rec = fl_bare_records(w)))
        s = fl_no_memory(d, NULL);
    t.w = w;
    t.rates = rates;
    fl_timed off = t, general = t;
    off.policy = NULL;
    general.streams_only = true;
    double with = 0, without = 0, streams = 0;
    for (int64_t r = 0; !s && r < b->repeat; r++) { /* in turn, so that a slow moment of the machine hits all of them */
        double bare = bare_loop(rec, w->stream[0].count, &b->platform.node.device[0]);
        b->bare = bare > b->bare ? bare : b->bare;
        s = pass(&t, &with, d);
        if (!s)
            s = pass(&off, &without, d);
        if (!s)
            s = pass(&general, &streams, d);
    }
    if (!s) {
        add_result(b, "bare loop, one stream", b->bare / 1e6, "M kernels/s", 1, "ceiling");
        add_result(b, "one stream, policy every 10 ms", with / 1e6, "M kernels/s", with / b->bare, "of the bare loop");
        add_result(b, "one stream, no policy", without / 1e6, "M kernels/s", without / b->bare, "of the bare loop");
        add_result(b, "the same stream by the general path", 2 * streams / 1e6, "M events/s", streams / b->bare,
                   "of the bare loop (kernels)");
    }
    free(rec);
    double serial = HUGE_VAL, together = HUGE_VAL;
    for (int64_t r = 0; !s && r < b->repeat; r++) { /* that each reads all of the trace: memory bounds it too */
        double start = fl_bench_seconds();
        s = fl_pool_run(many, &t, 8, 1, NULL, d);
        serial = fmin(serial, fl_bench_seconds() - start);
        start = fl_bench_seconds();
        if (!s)
            s = fl_pool_run(many, &t, 8, 4, NULL, d);
        together = fmin(together, fl_bench_seconds() - start);
    }
    if (!s)
        add_result(b, "8 runs of this trace on 4 threads", 8e-6 * (double)w->op_count / together, "M kernels/s",
                   serial / together, "times one thread");
    fl_rates_free(rates);
    fl_workload_free(w);
    return s;
}

static fl_status eight_streams(fl_bench *b, const char *what, double sm_demand, fl_diag *d) {
    fl_workload *w = NULL;
    fl_rates *rates = NULL;
    fl_timed t = {.b = b, .policy = find_policy("utilizscale"), .period_ms = "10"};
    double rate = 0;
    fl_status s = make(b, 8, sm_demand, &w, d);
    if (!s)
        s = fl_rates_new(&rates, w, &b->platform.node, d);
    t.w = w;
    t.rates = rates;
    for (int64_t r = 0; !s && r < b->repeat; r++)
        s = pass(&t, &rate, d);
    if (!s)
        add_result(b, what, 2 * rate / 1e6, "M events/s", rate / b->bare, "of the bare loop (kernels)");
    fl_rates_free(rates);
    fl_workload_free(w);
    return s;
}

/* The platform with every feature of a node at work: a wall and heat that act, a host CPU, meters, interference. The
 * arrays stay the platform's. */
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

/* What a whole node costs: the same run with every feature off, and with every feature on and every signal read. */
static fl_status whole_node(fl_bench *b, uint32_t streams, double sm_demand, const char *off_name, const char *on_name,
                            const char *all_name, fl_diag *d) {
    fl_workload *w = NULL;
    fl_rates *rates = NULL;
    fl_node_spec on_node, off_node = b->platform.node;
    fl_device on_dev, off_dev = off_node.device[0];
    off_node.device = &off_dev;
    off_dev.wall.period_ns = off_dev.thermal.period_ns = 0;
    off_dev.interference = 0;
    off_node.host.cpu.count = 0;
    fl_policy usual = *find_policy("utilizscale"), every = usual;
    usual.gpu_needs |= FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_THROTTLE);
    usual.host_needs = FL_BIT(FL_HOST_CPU_UOPS) | FL_BIT(FL_HOST_CPU_CYCLES) | FL_BIT(FL_HOST_NODE_POWER_W);
    every.gpu_needs = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1;
    every.host_needs = FL_BIT(FL_HOST_SIGNAL_COUNT) - 1;
    fl_status s = all_on(b, &on_node, &on_dev, d);
    if (!s)
        s = make(b, streams, sm_demand, &w, d);
    if (!s)
        s = fl_rates_new(&rates, w, &b->platform.node, d);
    fl_timed off = {
        .b = b, .node = &off_node, .w = w, .rates = rates, .policy = find_policy("utilizscale"), .period_ms = "10"};
    fl_timed on = off;
    on.node = &on_node;
    on.policy = &usual;
    fl_timed all = on;
    all.policy = &every;
    double with = 0, without = 0, with_all = 0;
    for (int64_t r = 0; !s && r < b->repeat; r++) {
        s = pass(&off, &without, d);
        if (!s)
            s = pass(&on, &with, d);
        if (!s)
            s = pass(&all, &with_all, d);
    }
    if (!s) {
        add_result(b, off_name, without / 1e6, "M kernels/s", without / b->bare, "of the bare loop");
        add_result(b, on_name, with / 1e6, "M kernels/s", with / without, "of all features off");
        add_result(b, all_name, with_all / 1e6, "M kernels/s", with_all / without, "of all features off");
    }
    fl_rates_free(rates);
    fl_workload_free(w);
    return s;
}

static fl_status engine(fl_bench *b, fl_diag *d) {
    fl_status s = fl_platform_open("generic", 1, &b->platform, d);
    if (!s)
        s = fl_facts_make(&b->platform.node, 1, &b->facts, d);
    if (!s)
        s = one_stream(b, d);
    if (!s)
        s = eight_streams(b, "eight streams, nothing scarce", 0.12, d);
    if (!s)
        s = eight_streams(b, "eight streams, scarce at every event", 0.9, d);
    if (!s)
        s = whole_node(b, 1, 1, "one stream, all features off", "one stream, all features on",
                       "and each of the 30 signals read", d);
    if (!s)
        s = whole_node(b, 8, 0.12, "eight streams, all features off", "eight streams, all features on",
                       "and each of the 30 signals read", d);
    return s;
}

/* At the standard size 10,000 runs, 3 M rows and a profile of 1 GB; less where less is asked for. */
static fl_status with_files(fl_bench *b, bool sweep, bool load, fl_diag *d) {
    const char *base = getenv("TMPDIR");
    char folder[256];
    const double share = fmin(1, (double)b->kernels / 10e6);
    const int n = snprintf(folder, sizeof folder, "%s/foldline-bench-XXXXXX", base && *base ? base : "/tmp");
    if (n < 0 || (size_t)n >= sizeof folder || !mkdtemp(folder))
        return fl_error(d, FL_IO, "no folder for temporary files: %s", fl_reason(errno));
    fl_status s = sweep ? fl_bench_sweep(folder, (size_t)fmax(20, 10000 * share), b->repeat, show_part, b, d) : FL_OK;
    if (!s && load)
        s = fl_bench_load(folder, b->kernels < 3000000 ? (uint64_t)b->kernels : 3000000, b->repeat,
                          (uint64_t)(1e9 * share), show_part, b, d);
    rmdir(folder);
    return s;
}

int fl_cmd_bench(int argc, char **argv) {
    fl_bench b = {.kernels = 10000000, .repeat = 5, .grid = {.columns = 5}};
    bool json = false;
    const char *only = NULL;
    const fl_option option[] = {
        {"kernels", "N", FL_OPTION_INT, &b.kernels, 1000, 1e9, "kernels of the trace (10000000)"},
        {"repeat", "N", FL_OPTION_INT, &b.repeat, 1, 1000, "passes, of which the best counts (5)"},
        {"only", "PART", FL_OPTION_TEXT, &only, 0, 0, "engine, sweep or load (all)"},
        {"json", NULL, FL_OPTION_FLAG, &json, 0, 0, "prints the result as JSON"},
    };
    fl_texts rest = {0};
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0};
    b.rows = cJSON_CreateArray();
    const bool part[] = {!only || !strcmp(only, "engine"), !only || !strcmp(only, "sweep"),
                         !only || !strcmp(only, "load")};
    fl_status s = rest.count ? fl_refuse(&d, "unexpected '%s'", rest.item[0]) : FL_OK;
    if (!s && !part[0] && !part[1] && !part[2])
        s = fl_refuse(&d, "--only '%s', expected engine, sweep or load", only);
    if (!s && part[0])
        s = engine(&b, &d);
    if (!s && (part[1] || part[2]))
        s = with_files(&b, part[1], part[2], &d);
    if (s)
        status = fl_command_fail("bench", &d);
    else if (json)
        fl_json_print(b.rows, stdout);
    else
        fl_grid_print(&b.grid, 1, stdout);
    fl_grid_free(&b.grid);
    cJSON_Delete(b.rows);
    fl_facts_free(&b.facts);
    fl_platform_free(&b.platform);
    fl_texts_free(&rest);
    return status;
}
