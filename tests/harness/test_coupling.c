/* How CPU and GPU hang together: what DynaCo measured on an APU (Figs. 6 and 7), and a program on a V100 whose launches
 * set the pace. */
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "sim/workload/inside.h"
#include "sim/workload/workload.h"
#include "tests/support/sim_fixture.h"

typedef struct stage {
    fl_platform p;
    fl_facts facts;
    fl_workload *w;
    fl_rates *rates;
} stage;

static void open_stage(stage *s, const char *platform) {
    char path[512];
    *s = (stage){0};
    snprintf(path, sizeof path, "%s/models/platforms/%s.json", FL_ROOT, platform);
    FX_MUST(fl_platform_open(path, 1, &s->p, d));
    FX_MUST(fl_facts_make(&s->p.node, 1, &s->facts, d));
    FX_MUST(fl_workload_new(&s->w, platform, d));
    s->w->launch_queue = s->p.node.host.launch_queue;
}

static void close_stage(stage *s) {
    fl_rates_free(s->rates);
    fl_workload_free(s->w);
    fl_facts_free(&s->facts);
    fl_platform_free(&s->p);
}

static uint32_t kernel_class(stage *s, double tc, double tm, double tl, double alpha, double beta) {
    const fl_device *dev = &s->p.node.device[0];
    const fl_load load = {.tc = tc,
                          .tm = tm,
                          .tl = tl,
                          .alpha = alpha,
                          .beta = beta,
                          .sm_demand = 1,
                          .ref_sm_mhz = dev->sm_mhz[dev->sm_count - 1],
                          .ref_mem_mhz = dev->default_mem_mhz};
    const fl_kernel_kind kind = {.name = "kernel", .grid = {1, 1, 1}, .block = {1, 1, 1}};
    uint32_t id;
    FX_MUST(fl_workload_add_class(s->w, &load, &kind, &id, d));
    return id;
}

/* A host thread that computes for host_ns before each launch; it waits for each kernel where sync is set. */
static void add_phase(stage *s, uint32_t class_id, int count, int64_t host_ns, int64_t kernel_ns, bool sync) {
    uint32_t stream, thread;
    FX_MUST(fl_workload_add_stream(s->w, 0, 0, 0, &stream, d));
    FX_MUST(fl_workload_add_thread(s->w, 0, &thread, d));
    for (int i = 0; i < count; i++) {
        FX_MUST(fl_workload_add_op(s->w, stream, 0, kernel_ns, class_id, d));
        const fl_item launch = {.type = FL_ITEM_LAUNCH, .host_ns = host_ns, .stream = stream};
        FX_MUST(fl_workload_add_item(s->w, thread, &launch, d));
        if (!sync && i + 1 < count)
            continue;
        const fl_item wait = {.type = FL_ITEM_SYNC};
        FX_MUST(fl_workload_add_item(s->w, thread, &wait, d));
        FX_MUST(fl_workload_add_sync_wait(s->w, thread, (fl_wait){stream, (uint64_t)i + 1}, d));
    }
    FX_MUST(fl_workload_finish(s->w, 10, d));
    FX_MUST(fl_rates_new(&s->rates, s->w, &s->p.node, d));
}

typedef struct outcome {
    double time_s, cpu_w, gpu_w, upc, mem_pct;
} outcome;

/* cpu_mhz 0: nothing set, so the hardware boosts. */
static outcome play(const stage *s, double cpu_mhz, double sm_mhz) {
    const fl_node_options o = {.w = s->w,
                               .rates = s->rates,
                               .spec = &s->p.node,
                               .seed = 1,
                               .gpu_needs = FL_BIT(FL_GPU_UTIL_MEM_PCT),
                               .first_sm_mhz = sm_mhz};
    fl_node *n;
    FX_MUST(fl_node_open(&n, &o, d));
    fl_node_set(n, 0, 0, sm_mhz, (double)NAN);
    if (cpu_mhz > 0)
        fl_node_set_cpu(n, 0, cpu_mhz, 0, (double)NAN);
    fl_gpu_sample seen = {0};
    while (!fl_node_done(n)) {
        fx_advance(n, fl_node_now(n) + FL_BOUNDARY_MAX_PS / 2);
        if (!fl_node_done(n))
            fl_node_read(n, 0, true, &seen);
    }
    const fl_cpu *cpu = fl_node_cpu(n);
    const double t = fl_seconds(fl_node_now(n));
    const outcome r = {.time_s = t,
                       .cpu_w = fl_joules(cpu->sums.cpu_fj) / t,
                       .gpu_w = fl_joules(fx_energy(n)) / t,
                       .upc = (double)cpu->sums.uops / (double)cpu->sums.cycles,
                       .mem_pct = seen.value[FL_GPU_UTIL_MEM_PCT]};
    fl_node_close(n);
    return r;
}

enum { SMALL, MEMORY, COMPUTE, PHASES };

static const fl_node_choice varying = {.bus_spread = 0.02}; /* 73 to 77 % of the peak */

/* The three behaviours of miniMD: communication and other short kernels, each waited for; neighbor, which saturates the
 * bus from the medium GPU clock on; force, which computes. */
static void open_phase(stage *s, int phase) {
    open_stage(s, "apu-a10-5800k");
    FX_MUST(fl_node_choose(&s->p.node, &varying, d));
    if (phase == SMALL)
        add_phase(s, kernel_class(s, 0.3, 0.3, 0.5, 0.4, 0.3), 20000, 40000, 40000, true);
    else if (phase == MEMORY)
        add_phase(s, kernel_class(s, 0.7, 1, 0, 0.6, 1), 200, 100000, 20000000, false);
    else
        add_phase(s, kernel_class(s, 1, 0.3, 0, 1, 0.3), 200, 100000, 20000000, false);
}

static void test_cpu_states(void) {
    outcome p2[PHASES], p4[PHASES], boost[PHASES];
    for (int i = 0; i < PHASES; i++) {
        stage s;
        open_phase(&s, i);
        p2[i] = play(&s, 2900, 800);
        p4[i] = play(&s, 1900, 800);
        boost[i] = play(&s, 0, 800);
        close_stage(&s);
    }
    FL_CHECK(p4[SMALL].time_s > 1.1 * p2[SMALL].time_s, "small kernels from P2 to P4: %g to %g s", p2[SMALL].time_s,
             p4[SMALL].time_s);
    FL_CHECK(p4[MEMORY].time_s < 1.02 * p2[MEMORY].time_s, "memory-bound: %g to %g s", p2[MEMORY].time_s,
             p4[MEMORY].time_s);
    FL_CHECK(p4[COMPUTE].time_s < 1.02 * p2[COMPUTE].time_s, "compute-bound: %g to %g s", p2[COMPUTE].time_s,
             p4[COMPUTE].time_s);
    /* the waiting CPU is where the power is: 70 to 80 % of DynaCo's saving is CPU scaling */
    FL_CHECK(boost[MEMORY].cpu_w > 1.8 * p2[MEMORY].cpu_w && boost[MEMORY].time_s > 0.98 * p2[MEMORY].time_s,
             "memory-bound, boost %g W in %g s, P2 %g W in %g s", boost[MEMORY].cpu_w, boost[MEMORY].time_s,
             p2[MEMORY].cpu_w, p2[MEMORY].time_s);
    /* DynaCo's threshold of 0.4 tells the phases apart */
    FL_CHECK(p2[SMALL].upc > 0.4 && p2[MEMORY].upc < 0.4, "clock-weighted UPC %g and %g", p2[SMALL].upc,
             p2[MEMORY].upc);
}

/* A steady bus, and a kernel that fills it from 480 MHz on. */
static void test_steady_bus(void) {
    stage s;
    open_stage(&s, "apu-a10-5800k");
    add_phase(&s, kernel_class(&s, 0.6, 1, 0, 0.6, 1), 200, 100000, 20000000, false);
    const outcome high = play(&s, 2900, 800), med = play(&s, 2900, 633), low = play(&s, 2900, 400);
    close_stage(&s);
    FL_CHECK(med.time_s < 1.02 * high.time_s && low.time_s > 1.15 * med.time_s, "%g, %g, %g s", high.time_s, med.time_s,
             low.time_s);
}

static void test_gpu_states(void) {
    outcome high[PHASES], med[PHASES], low[PHASES];
    for (int i = 0; i < PHASES; i++) {
        stage s;
        open_phase(&s, i);
        high[i] = play(&s, 2900, 800);
        med[i] = play(&s, 2900, 633);
        low[i] = play(&s, 2900, 400);
        close_stage(&s);
    }
    FL_CHECK(med[MEMORY].time_s < 1.02 * high[MEMORY].time_s, "memory-bound: %g s at medium, %g s at high",
             med[MEMORY].time_s, high[MEMORY].time_s);
    FL_CHECK(low[MEMORY].time_s > 1.15 * med[MEMORY].time_s, "but %g s at low", low[MEMORY].time_s);
    FL_CHECK(med[COMPUTE].time_s > 1.2 * high[COMPUTE].time_s, "compute-bound: %g s at medium, %g s at high",
             med[COMPUTE].time_s, high[COMPUTE].time_s);
    FL_CHECK(med[SMALL].time_s < 1.08 * high[SMALL].time_s, "small kernels: %g s at medium, %g s at high",
             med[SMALL].time_s, high[SMALL].time_s);
}

/* The host launches every 100 us, the GPU needs 45 us for it at 1530 MHz and 91 us at 757: it is never the bottleneck.
 */
static void test_launches_run_ahead(void) {
    stage s;
    open_stage(&s, "v100-300w");
    add_phase(&s, kernel_class(&s, 1, 0.3, 0, 0.95, 0.25), 50000, 100000, 45000, false);
    const outcome fast = play(&s, 0, 1530), slow = play(&s, 0, 757);
    close_stage(&s);
    FL_CHECK(slow.time_s < 1.02 * fast.time_s, "%g s at 1530 MHz, %g s at 757", fast.time_s, slow.time_s);
    FL_CHECK(slow.gpu_w < 0.67 * fast.gpu_w, "%g W at 1530 MHz, %g W at 757", fast.gpu_w, slow.gpu_w);
    FL_CHECK(fast.mem_pct < 30 && slow.mem_pct < 30, "memory utilisation %g %% and %g %%: not memory-bound",
             fast.mem_pct, slow.mem_pct);
}

/* CPU and GPU of an APU are one die: each look at its temperature sees what both drew in the whole period before,
 * wherever else the node stood still. */
static void test_one_die(void) {
    const int64_t period = INT64_C(973) * FX_MS_PS / 10; /* at no other's instants */
    stage s;
    open_stage(&s, "apu-a10-5800k");
    const fl_node_choice hot = {.heat = true};
    FX_MUST(fl_node_choose(&s.p.node, &hot, d));
    fl_thermal_spec *heat = &s.p.node.device[0].thermal;
    heat->tau_s = 1e-3; /* a look sees the period alone */
    heat->period_ns = period / FL_PS_PER_NS;
    heat->leak_w_per_c = 0;
    add_phase(&s, kernel_class(&s, 1, 0.3, 0, 1, 0.3), 20, 70000000, 30000000, true);
    const fl_node_options o = {.w = s.w, .rates = s.rates, .spec = &s.p.node, .seed = 1};
    fl_node *n;
    FX_MUST(fl_node_open(&n, &o, d));
    double before_j = 0;
    for (int64_t k = 1; k <= 10; k++) {
        fx_advance(n, k * period - 7 * FX_MS_PS / 10);
        fx_advance(n, k * period);
        const double cpu_j = fl_joules(fl_node_cpu(n)->sums.cpu_fj), die_j = cpu_j + fl_joules(fx_energy(n));
        fx_advance(n, k * period + FX_MS_PS / 10);
        const double expected = heat->ambient_c + heat->c_per_w * (die_j - before_j) / 0.0973;
        FL_CHECK(fx_near(fl_node_gpu(n, 0)->temp_c, expected, 1e-9) && cpu_j > 0.5 * die_j,
                 "period %lld: %.9g C, expected %.9g", (long long)k, fl_node_gpu(n, 0)->temp_c, expected);
        before_j = die_j;
    }
    fl_node *alone; /* nobody looks on the way */
    FX_MUST(fl_node_open(&alone, &o, d));
    fx_advance(alone, fl_node_now(n));
    FL_CHECK(fl_node_gpu(alone, 0)->temp_c == fl_node_gpu(n, 0)->temp_c &&
                 fl_node_gpu(alone, 0)->hottest_c == fl_node_gpu(n, 0)->hottest_c,
             "%.12g C, with others looking %.12g C", fl_node_gpu(alone, 0)->temp_c, fl_node_gpu(n, 0)->temp_c);
    fl_node_close(alone);
    fl_node_close(n);
    close_stage(&s);
}

/* Mean and peak of an APU are of the same parts. */
static void test_package_power(void) {
    stage s;
    open_stage(&s, "apu-a10-5800k");
    add_phase(&s, kernel_class(&s, 1, 0.3, 0, 1, 0.3), 20, 20000000, 30000000, true);
    const fl_run_options o = {.w = s.w, .rates = s.rates, .spec = &s.p.node, .facts = &s.facts};
    fl_run_result r;
    FX_MUST(fl_run(&o, &r, d));
    const double cpu_w = r.cpu_energy_j / r.makespan_s, gpu_w = r.gpu_energy_j / r.makespan_s,
                 rest_w = s.p.node.host.static_w;
    FL_CHECK(fx_near(r.mean_power_w, cpu_w + gpu_w + rest_w, 1e-9) && r.peak_parts == 2, "mean %g W", r.mean_power_w);
    FL_CHECK(r.peak_power_w > r.mean_power_w && r.peak_power_w < 1.6 * r.mean_power_w &&
                 r.peak_power_w > cpu_w + rest_w + 30,
             "peak %g W, mean %g W: CPU %g, GPU %g, rest %g", r.peak_power_w, r.mean_power_w, cpu_w, gpu_w, rest_w);
    fl_run_result_free(&r);
    close_stage(&s);
}

FL_SUITE("coupling", {"CPU states on an APU", test_cpu_states}, {"GPU states on an APU", test_gpu_states},
         {"an APU's steady bus", test_steady_bus}, {"launches that run ahead", test_launches_run_ahead},
         {"one die", test_one_die}, {"power of a package", test_package_power})
