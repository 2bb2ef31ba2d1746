/* The simulator's own calls where memory runs out: each allocation of a call fails in turn. The call then says so, and
 * what it had made is freed (the leak checker sees the rest); or it does without, and its result is the same. */
#include "tests/support/fail_alloc.c"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "policies/registry/registry.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/oracle/inside.h"
#include "sim/oracle/oracle.h"
#include "sim/pipeline/pipeline.h"
#include "sim/serving/serving.h"
#include "sim/synth/inside.h"
#include "sim/synth/synth.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/pipeline/pipeline.h"
#include "traces/serving/serving.h"
#include "tests/support/serving_fixture.h"

enum { TRIES = 1000 }; /* so many allocations of a call fail, spread over all of them */

static long armed; /* which allocation of the calls under trial is to fail; 0: none */

/* Calls under trial are the only ones whose allocations count. */
static void trial(bool on) { fail_at = on ? armed : -1; }

#define TRY(s, call)                                                                                                   \
    do {                                                                                                               \
        if (!(s)) {                                                                                                    \
            trial(true);                                                                                               \
            (s) = (call);                                                                                              \
            trial(false);                                                                                              \
        }                                                                                                              \
    } while (0)

/* Runs its calls, frees what they made, and adds what they found to *digest. */
typedef fl_status scenario(uint64_t *digest, fl_diag *d);

static void add(uint64_t *digest, uint64_t value) { *digest = (*digest ^ value) * UINT64_C(0x100000001b3); }

static long count_of(scenario *run, uint64_t *digest) {
    fl_diag d = {0};
    armed = 0, seen = 0;
    const fl_status s = run(digest, &d);
    FL_CHECK(s == FL_OK, "%s", d.message);
    return seen;
}

static void each_fails(scenario *run) {
    uint64_t whole = 1, again = 1;
    const long count = count_of(run, &whole);
    FL_CHECK(count > 0, "it allocates");
    count_of(run, &again); /* what is made once in the life of the process is there now */
    FL_CHECK(whole == again, "the same again");
    long refused = 0;
    for (long n = 1; n <= count; n += 1 + count / TRIES) {
        fl_diag d = {0};
        uint64_t digest = 1;
        armed = n, seen = 0;
        const fl_status s = run(&digest, &d);
        refused += s == FL_NO_MEMORY;
        FL_CHECK(s == FL_NO_MEMORY ? strstr(d.message, "memory") != NULL : !s && digest == whole,
                 "allocation %ld of %ld: status %d, %s", n, count, s, d.message);
    }
    FL_CHECK(refused > 0, "no failure was told");
}

/* ---- workloads ---- */

static fl_synth_options traced(bool launches) {
    fl_synth_options o = fl_synth_standard;
    o.kernels = 60, o.kinds = 5, o.streams = 2, o.gpus = 2, o.launches = launches;
    return o;
}

static void add_workload(uint64_t *digest, const fl_workload *w) {
    if (!w)
        return;
    add(digest, w->op_count);
    add(digest, w->class_count);
    for (uint32_t i = 0; i < w->stream_count; i++)
        add(digest, (uint64_t)w->stream[i].work_ns);
}

static fl_status from_trace(bool launches, uint64_t *digest, fl_diag *d) {
    const fl_synth_options o = traced(launches);
    fl_kernel_trace t = {0};
    fl_kinds k = {0};
    fx_rig r;
    fx_open(&r, 2);
    fl_workload *w = NULL;
    fl_critical c = {0};
    fl_status s = FL_OK;
    TRY(s, fl_synth_trace(&o, 1000, 800, &t, &k, d));
    const fl_build_options b = {.windows = 3, .kinds = &k};
    TRY(s, fl_build_trace(&w, "trace", &t, &r.spec, &b, d));
    TRY(s, fl_workload_mark_ops(w, d));
    if (launches) {
        TRY(s, fl_critical_new(&c, w, d));
        fl_critical_free(&c);
    }
    add_workload(digest, s ? NULL : w);
    fl_workload_free(w);
    fl_kernel_trace_free(&t);
    fl_kinds_free(&k);
    fx_close(&r);
    return s;
}

static fl_status gaps(uint64_t *digest, fl_diag *d) { return from_trace(false, digest, d); }
static fl_status launched(uint64_t *digest, fl_diag *d) { return from_trace(true, digest, d); }

static fl_status mixed(uint64_t *digest, fl_diag *d) {
    const fl_synth_options o = traced(false);
    fl_kernel_trace t = {0}, mix = {0};
    fl_kinds k = {0};
    fx_rig r;
    fx_open(&r, 2);
    fl_workload *w = NULL;
    fl_status s = fl_synth_trace(&o, 1000, 800, &t, &k, d);
    TRY(s, fl_synth_workload(&o, &r.spec, 3, &w, d));
    TRY(s, fl_synth_mix(&k, 3, 0.02, 500, 1000, 800, &mix, d));
    add_workload(digest, s ? NULL : w);
    add(digest, s ? 0 : mix.op_count);
    fl_workload_free(w);
    fl_kernel_trace_free(&mix);
    fl_kernel_trace_free(&t);
    fl_kinds_free(&k);
    fx_close(&r);
    return s;
}

static fl_status sweep(uint64_t *digest, fl_diag *d) {
    static char *names[] = {(char *)(uintptr_t) "a", (char *)(uintptr_t) ""};
    fl_sweep_row rows[6];
    for (int i = 0; i < 6; i++)
        rows[i] = (fl_sweep_row){.workload = 0,
                                 .kernel = 1,
                                 .sm_mhz = 500 + 500 * (i % 3),
                                 .mem_mhz = i < 3 ? 800 : 400,
                                 .power_cap_w = NAN,
                                 .time_s = 3 - i % 3,
                                 .power_w = 100,
                                 .energy_j = 100};
    const fl_sweep sw = {.names = names, .name_count = 2, .rows = rows, .row_count = 6};
    const fl_sweep_law law = {.predicted = true, .sm_min_mhz = 500, .sm_max_mhz = 1500};
    const fl_sweep_replay replay = {.repeat = 1, .windows = 2, .seed = 1, .iteration_ns = 100000000};
    fx_rig r;
    fx_open(&r, 1);
    fl_workload *w = NULL;
    uint32_t *found = NULL;
    size_t count = 0;
    fl_status s = FL_OK;
    TRY(s, fl_sweep_workloads(&sw, &found, &count, d));
    TRY(s, fl_build_sweep(&w, "s.csv", &sw, 0, &law, &replay, &r.spec, d));
    add_workload(digest, s ? NULL : w);
    free(found);
    fl_workload_free(w);
    fx_close(&r);
    return s;
}

static fl_status requests(uint64_t *digest, fl_diag *d) {
    fl_synth_requests_options o = fl_synth_requests_standard;
    o.most = 50;
    fl_requests r = {0};
    fl_status s = FL_OK;
    TRY(s, fl_synth_requests(&o, &r, d));
    add(digest, s ? 0 : r.count);
    fl_requests_free(&r);
    return s;
}

/* ---- runs ---- */

static fl_status watch_truth(void *user, const fl_node *node, int64_t t_ps, fl_diag *d) {
    (void)user, (void)node, (void)t_ps, (void)d;
    return FL_OK;
}

static fl_status watch_sensors(void *user, const fl_gpu_sample *gpu, uint32_t count, int64_t t_ps, fl_diag *d) {
    (void)user, (void)gpu, (void)count, (void)t_ps, (void)d;
    return FL_OK;
}

static const fl_policy *policy_named(const char *name) {
    for (size_t i = 0; i < fl_policies_count; i++)
        if (!strcmp(fl_policies[i]->name, name))
            return fl_policies[i];
    return NULL;
}

static fl_status run_of(fx_rig *r, const char *policy, uint64_t *digest, fl_diag *d) {
    static const fl_fault fault = {
        .type = FL_FAULT_FREEZE, .gpu = 0, .row = FL_GPU_POWER_W, .from_ns = 1000000, .until_ns = 9000000};
    const fl_run_options o = {.w = r->w,
                              .rates = r->rates,
                              .spec = &r->spec,
                              .facts = &r->facts,
                              .policy = policy ? policy_named(policy) : NULL,
                              .fault = policy ? &fault : NULL,
                              .fault_count = policy != NULL,
                              .classes = true,
                              .on_truth = watch_truth,
                              .on_watch = watch_sensors,
                              .watch_needs = FL_BIT(FL_GPU_POWER_W),
                              .truth_ns = 3000000};
    fl_run_result result = {0};
    fl_status s = FL_OK;
    TRY(s, fl_run(&o, &result, d));
    if (!s)
        add(digest, (uint64_t)result.makespan_ps);
    fl_run_result_free(&result);
    return s;
}

/* One stream by sums over its ops, whose jumps are recorded for the times of its classes. */
static fl_status run_by_sums(uint64_t *digest, fl_diag *d) {
    fx_rig r;
    fx_open(&r, 1);
    const uint32_t id = fx_light(&r), heavy = fx_class(&r, 0.5, 0.5, 0, 1, 1, 0.8), s = fx_stream(&r, 0, 0);
    for (int i = 0; i < 600; i++)
        fx_op(&r, s, 1000, 40000 + i, i % 3 ? id : heavy);
    fx_finish(&r, 7);
    const fl_run_options o = {.w = r.w,
                              .rates = r.rates,
                              .spec = &r.spec,
                              .facts = &r.facts,
                              .policy = policy_named("assure"),
                              .path = FL_PATH_PREFIX,
                              .classes = true};
    fl_run_result result = {0};
    fl_status status = FL_OK;
    TRY(status, fl_run(&o, &result, d));
    if (!status) {
        add(digest, (uint64_t)result.makespan_ps);
        for (uint32_t c = 0; c < result.class_count; c++)
            add(digest, (uint64_t)llround(result.class_time_s[c] * 1e12));
    }
    fl_run_result_free(&result);
    fx_close(&r);
    return status;
}

/* Two GPUs; one has two streams of which one waits for the other GPU's, and a thread that launches. */
static fl_status run_busy(uint64_t *digest, fl_diag *d) {
    fx_rig r;
    fx_open(&r, 2);
    const uint32_t id = fx_light(&r), heavy = fx_class(&r, 0.5, 0.5, 0, 1, 1, 0.8);
    const uint32_t a = fx_stream(&r, 0, 0), b = fx_stream(&r, 0, 1), c = fx_stream(&r, 1, 0), t = fx_thread(&r);
    for (int i = 0; i < 12; i++) {
        fx_op(&r, a, 1000, 4000000, id);
        fx_op(&r, b, 0, 3000000, heavy);
        fx_op(&r, c, 0, 5000000, heavy);
        if (i)
            fx_wait(&r, b, c, (uint64_t)i);
        fx_launch(&r, t, 1000, a);
    }
    r.w->stream[a].launched = true;
    fl_status s = FL_OK;
    TRY(s, fl_workload_finish(r.w, 3, d));
    TRY(s, fl_rates_new(&r.rates, r.w, &r.spec, d));
    if (!s)
        s = run_of(&r, "assure", digest, d);
    if (!s)
        s = run_of(&r, "mf-gpoeo", digest, d);
    if (!s)
        s = run_of(&r, NULL, digest, d);
    fx_close(&r);
    return s;
}

static fl_status serve(uint64_t *digest, fl_diag *d) {
    sx_rig x;
    sx_open(&x, 2, 1);
    fl_random g = fl_random_seed(1, 1);
    sx_random_requests(&x, &g, 20, 1e7, 300, 20);
    fl_status s = FL_OK;
    TRY(s, fl_serving_workload(&x.r.w, "serving", &x.setup, d));
    TRY(s, fl_rates_new(&x.r.rates, x.r.w, &x.r.spec, d));
    if (!s) {
        fl_serving_facts(&x.setup, x.facts);
        x.r.facts.server = x.facts;
        x.r.facts.server_count = x.setup.server_count;
        s = run_of(&x.r, "throttllem", digest, d);
        fl_serving_bound bound;
        TRY(s, fl_serving_bound_of(x.r.w, x.r.rates, &x.r.spec, &bound, d));
        if (!s)
            add(digest, (uint64_t)(bound.energy_j * 1e6));
    }
    sx_close(&x);
    return s;
}

/* ---- what could have been achieved ---- */

static fl_status look_back(fx_rig *r, size_t positions, uint64_t *digest, fl_diag *d) {
    fl_oracle_table t = {0};
    fl_oracle_result out = {0};
    fl_kernel_total total;
    int64_t fastest = 0;
    fl_kernel_choice *choice = fx_alloc(r->w->class_count, sizeof *choice);
    fl_status s = FL_OK;
    TRY(s, fl_oracle_table_make(r->w, r->rates, &r->spec, positions, &t, d));
    TRY(s, fl_oracle_fastest(&t, &fastest, d));
    TRY(s, fl_oracle_clairvoyant(&t, FL_MIN_ENERGY, fastest + fastest / 10, true, &out, d));
    TRY(s, fl_oracle_per_kernel(r->w, r->rates, &r->spec, FL_MIN_ENERGY, 0.1, &t, choice, &total, d));
    if (!s) {
        add(digest, (uint64_t)out.time_ps);
        add(digest, (uint64_t)total.time_ps);
    }
    free(choice);
    free(out.schedule);
    free(out.change);
    fl_oracle_table_free(&t);
    return s;
}

static fl_status oracle(uint64_t *digest, fl_diag *d) {
    fx_rig r;
    fx_open(&r, 1);
    fl_random g = fl_random_seed(2, 1);
    fx_random_classes(&r, &g, 3, 1);
    const uint32_t stream = fx_stream(&r, 0, 0);
    for (uint32_t i = 0; i < 30; i++)
        fx_op(&r, stream, 1000, 1000000 + 10000 * i, i % 3);
    fl_static_point best;
    bool found = false;
    fl_status s = FL_OK;
    TRY(s, fl_workload_finish(r.w, 3, d));
    TRY(s, fl_rates_new(&r.rates, r.w, &r.spec, d));
    if (!s)
        s = look_back(&r, FL_POSITIONS_ALL, digest, d);
    if (!s)
        s = look_back(&r, 6, digest, d);
    TRY(s, fl_static_search(r.w, r.rates, &r.spec, &r.facts, FL_MIN_EDP, INT64_MAX, &best, &found, d));
    if (!s)
        add(digest, (uint64_t)best.makespan_ps);
    fx_close(&r);
    return s;
}

/* ---- pipelines ---- */

static void put(fl_pipeline *p, fl_pipeline_what what, double mhz, double time_s, double watts) {
    const fl_pipeline_row row = {-1, FL_PIPELINE_ALL, what, mhz, time_s, watts, 0};
    FX_MUST(fl_pipeline_add(p, &row, d));
}

static void put_pipeline(fl_pipeline *p) {
    *p = (fl_pipeline){.schedule = FL_PIPELINE_1F1B,
                       .stages = 2,
                       .microbatches = 3,
                       .chunks = 1,
                       .data_parallel = 1,
                       .tensor_parallel = 1,
                       .ranks = 2,
                       .file = strdup("test")};
    for (int k = 0; k < 3; k++) {
        put(p, FL_PIPELINE_FORWARD, 500 + 500 * k, 0.03 / (1 + k), 100 + 60 * k);
        put(p, FL_PIPELINE_BACKWARD, 500 + 500 * k, 0.06 / (1 + k), 100 + 70 * k);
    }
    put(p, FL_PIPELINE_LOAD, NAN, 1e-3, NAN);
    put(p, FL_PIPELINE_ACT, NAN, 2e-3, NAN);
    put(p, FL_PIPELINE_GRAD, NAN, 2e-3, NAN);
    put(p, FL_PIPELINE_STEP, NAN, 5e-3, NAN);
    put(p, FL_PIPELINE_BLOCKED, NAN, NAN, 60);
    FX_MUST(fl_pipeline_finish(p, d));
}

static fl_status plan(uint64_t *digest, fl_diag *d) {
    static const int32_t mhz[] = {500, 1000, 1500};
    fl_pipeline p, slow = {0};
    fl_pipeline_order o = {0};
    fl_node_spec node = {0};
    fl_plan_program g = {0};
    fl_planner pl = {0};
    fl_plan_point *point = NULL;
    size_t found = 0;
    double seconds = 0, joules = 0;
    put_pipeline(&p);
    fl_status s = FL_OK;
    TRY(s, fl_pipeline_slowed(&p, 1, 1.3, &slow, d));
    TRY(s, fl_pipeline_schedule_make(&p, &o, d));
    TRY(s, fl_pipeline_node(&node, 2, mhz, 3, d));
    TRY(s, fl_plan_program_new(&g, &p, &o, &node, NULL, d));
    TRY(s, fl_planner_new(&pl, &g, d));
    TRY(s, fl_plan_frontier(&pl, 4, &point, &found, d));
    TRY(s, fl_pipeline_run(&p, &o, &node, NULL, &seconds, &joules, d));
    if (!s)
        add(digest, found), add(digest, (uint64_t)(1e12 * seconds)), add(digest, (uint64_t)(1e9 * joules));
    for (size_t i = 0; i < found; i++)
        fl_plan_point_free(&point[i]);
    free(point);
    fl_planner_free(&pl);
    fl_plan_program_free(&g);
    fl_node_spec_free(&node);
    fl_pipeline_order_free(&o);
    fl_pipeline_free(&slow);
    fl_pipeline_free(&p);
    return s;
}

/* ---- what is refused anyway ---- */

static const char *idle_init(void *state, const void *params, const fl_facts *facts) {
    (void)state, (void)params, (void)facts;
    return NULL;
}

static void idle_step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample,
                      fl_command *command) {
    (void)state, (void)params, (void)facts, (void)sample;
    command->delay_ns = 1000;
}

/* A parameter that no policy has, its name near that of one: without memory to look for that, the call says so. */
static void test_misspelt(void) {
    static const fl_param rows[] = {{"step_us", "us", FL_PARAM_INT, 0, "1000", 1, 1e12, NULL, "between steps"}};
    static const fl_policy policy = {FL_POLICY_ABI,
                                     .name = "idle",
                                     .summary = "",
                                     .source = "",
                                     .param = rows,
                                     .param_count = 1,
                                     .param_size = sizeof(int64_t),
                                     .init = idle_init,
                                     .step = idle_step};
    static const fl_facts facts = {.seed = 1};
    const fl_setting setting = {.name = "step_ms", .text = "1"};
    const fl_layer layer = {.origin = "test", .setting = &setting, .count = 1};
    const fl_instance_options o = {.policy = &policy, .facts = &facts, .layer = &layer, .layer_count = 1};
    fl_status s = FL_NO_MEMORY;
    int refused = 0;
    for (armed = 1; s == FL_NO_MEMORY && armed < 100; armed++) {
        fl_instance *in = NULL;
        fl_diag d = {0};
        s = FL_OK;
        seen = 0;
        TRY(s, fl_instance_open(&in, &o, &d));
        refused += s == FL_NO_MEMORY;
        FL_CHECK(!in && (s == FL_NO_MEMORY ? strstr(d.message, "memory") != NULL
                                           : s == FL_BAD_INPUT && strstr(d.message, "did you mean 'step_us'")),
                 "allocation %ld: status %d, %s", armed, s, d.message);
        fl_instance_close(in);
    }
    FL_CHECK(s == FL_BAD_INPUT && refused > 1, "%d allocations failed, then status %d", refused, s);
}

/* A CPU of three states and two loads: whichever of its tables finds no memory, it does not open. */
static void test_cpu(void) {
    static int32_t mhz[] = {1000, 1500, 2000};
    static double volt[] = {1, 1, 1};
    const fl_host_spec host = {.name = "host",
                               .cpu = {.mhz = mhz,
                                       .volt = volt,
                                       .count = 3,
                                       .default_mhz = 2000,
                                       .ref_mhz = 2000,
                                       .static_w = 10,
                                       .core_w = 5,
                                       .bound = 0.5,
                                       .alpha = 1,
                                       .upc = 1,
                                       .bytes_per_s = 1e9}};
    const fl_host_load other = {.bound = 0, .alpha = 2, .upc = 0.5, .bytes_per_s = 4e9};
    fl_status s = FL_NO_MEMORY;
    int refused = 0;
    for (armed = 1; s == FL_NO_MEMORY && armed < 100; armed++) {
        fl_cpu c;
        fl_diag d = {0};
        s = FL_OK;
        seen = 0;
        TRY(s, fl_cpu_open(&c, &host, 0, &other, 2, &d));
        refused += s == FL_NO_MEMORY;
        FL_CHECK(s == FL_NO_MEMORY ? strstr(d.message, "memory") != NULL && !c.state && !c.row && !c.slot : !s,
                 "allocation %ld: status %d, %s", armed, s, d.message);
        if (!s)
            fl_cpu_close(&c);
    }
    FL_CHECK(s == FL_OK && refused == 9, "%d allocations failed, then status %d", refused, s);
}

static void test_gaps(void) { each_fails(gaps); }
static void test_launched(void) { each_fails(launched); }
static void test_mixed(void) { each_fails(mixed); }
static void test_sweep(void) { each_fails(sweep); }
static void test_requests(void) { each_fails(requests); }
static void test_run(void) { each_fails(run_busy); }
static void test_sums(void) { each_fails(run_by_sums); }
static void test_serve(void) { each_fails(serve); }
static void test_oracle(void) { each_fails(oracle); }
static void test_plan(void) { each_fails(plan); }

FL_SUITE("allocations", {"a misspelt parameter", test_misspelt}, {"a CPU", test_cpu}, {"a trace", test_gaps},
         {"a trace with launches", test_launched}, {"synthetic", test_mixed}, {"a sweep", test_sweep},
         {"requests", test_requests}, {"runs", test_run}, {"runs by sums", test_sums}, {"servers", test_serve},
         {"oracle", test_oracle}, {"planner", test_plan})
